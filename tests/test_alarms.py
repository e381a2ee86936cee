"""Each alarm of `dashboards/alerts.yml` fires on a recorded failure, and none fires in a healthy hour.

`tests/alarms/record.py` has made the recordings from real processes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from aeron._exporter import Reading
from alarms import series
from promtool import promtool

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "tests/alarms/recorded"
GUIDE = ROOT / "docs/how-to/alarms.md"
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in yaml.safe_load(series.RULES.read_text())["groups"] for rule in group["rules"]
}
LABEL = re.compile(r"\{\{ \$labels\.(\w+) \}\}")

IPC = {"driver": "quotes", "channel": "aeron:ipc", "stream_id": "1001"}
UDP = {"driver": "quotes", "stream_id": "1001"}
ARCHIVE = {"driver": "quotes", "client": "archive archiveId=1", "archive_id": "1"}
HEALTHY_S = 3600
SILENT_S = 75
"""The failures begin after 30 s, and each alarm waits for a minute."""


class Fires(NamedTuple):
    """An alarm, a recording on which the alarm fires with its labels then, and whether it is silent at first."""

    alarm: str
    recording: str
    labels: dict[str, str]
    is_silent_before: bool = True


EXPECTED = [
    Fires("AeronDriverDead", "driver_killed", {"driver": "quotes"}),
    Fires("AeronConductorStalled", "conductor_stalled", {"driver": "quotes"}),
    Fires("AeronConductorStalled", "conductor_paused", {"driver": "quotes"}),
    Fires("AeronClientTimeouts", "client_killed", {"driver": "quotes"}),
    Fires("AeronUnblockedPublications", "claim_abandoned", {"driver": "quotes"}),
    Fires("AeronErrorsGrowing", "errors", {"driver": "quotes"}),
    Fires("AeronCountersLow", "counters_low", {"driver": "quotes"}),
    Fires("AeronDriverDiskLow", "driver_disk_full", {"driver": "quotes"}, False),
    Fires("AeronNameLookupFailing", "neighbor_killed", {"driver": "quotes"}),
    Fires("AeronNameLookupFailing", "lookup_slow", {"driver": "quotes"}),
    Fires("AeronPublisherLimited", "reader_stuck", IPC | {"client": "feed", "by": "subscriber", "subscriber": "risk"}),
    Fires(
        "AeronPublisherLimitedByReceivers",
        "receiver_stuck",
        UDP | {"channel": "aeron:udp?endpoint=127.0.0.1:23306", "client": "feed", "by": "receivers"},
    ),
    Fires("AeronSubscriberStuck", "reader_stuck", IPC | {"client": "risk"}),
    Fires("AeronLagReachesWindow", "reader_slow", IPC | {"client": "risk"}),
    Fires("AeronLoss", "loss", UDP | {"channel": "aeron:udp?endpoint=127.0.0.1:23302"}, False),
    Fires("AeronNaks", "loss", UDP | {"channel": "aeron:udp?endpoint=127.0.0.1:23302", "client": "feed"}, False),
    Fires("AeronRetransmitOverflow", "retransmit_overflow", {"driver": "quotes"}, False),
    Fires("AeronArchiveDead", "archive_killed", {"archive": "journal"}),
    Fires("AeronArchiveErrorsGrowing", "recording_failed", {"driver": "quotes", "client": "archive archiveId=1"}),
    Fires("AeronRecordingFailed", "recording_failed", ARCHIVE),
    Fires("AeronRecordingFailed", "recording_released", ARCHIVE),
    Fires("AeronRecordingFailed", "disk_full", ARCHIVE),
    Fires("AeronRecordingStopped", "recording_stopped", IPC | {"archive_id": "1"}),
    Fires("AeronRecorderBehind", "recorder_behind", IPC | ARCHIVE),
    Fires("AeronRecordingStopped", "archive_killed", IPC | {"archive_id": "1"}),
    Fires(
        "AeronRecordingStopped",
        "recording_of_image_stopped",
        UDP | {"channel": "aeron:udp?endpoint=127.0.0.1:23307", "archive_id": "1"},
    ),
    Fires("AeronScrubFoundDamage", "segment_damaged", ARCHIVE),
    Fires("AeronCopiesBehind", "copies_failing", ARCHIVE, False),
    Fires("AeronArchiveDiskLow", "disk_full", {"archive": "journal"}, False),
]


def recorded(name: str) -> dict[str, list[float | None]]:
    """Returns the series of a recording: one value for each second."""
    lines = (line for line in (RECORDED / f"{name}.txt").read_text().splitlines() if not line.startswith("#"))
    found = (re.fullmatch(r"(\w+(?:\{.*\})?) (.*)", line) for line in lines)
    return {each[1]: series.decode(each[2]) for each in found if each}


def input_series(values: dict[str, list[float | None]], interval_s: int) -> list[dict[str, str]]:
    """Returns the series of a test of promtool: every `interval_s`-th value."""
    return [{"series": name, "values": series.encode(each[::interval_s])} for name, each in values.items()]


def alert(name: str, labels: dict[str, str]) -> dict[str, Any]:
    """Returns an alarm with its labels, its sentences and its link."""
    annotations = RULES[name]["annotations"]
    texts = {key: LABEL.sub(lambda found: labels[found[1]], text) for key, text in annotations.items()}
    return {"exp_labels": labels | RULES[name]["labels"], "exp_annotations": texts}


def run_promtool(directory: Path, values: dict[str, list[float | None]], interval_s: int, alerts: list[Any]) -> None:
    test = {
        "interval": f"{interval_s}s",
        "input_series": input_series(values, interval_s),
        "alert_rule_test": alerts,
    }
    file = directory / "test.yml"
    file.write_text(json.dumps({"rule_files": [str(series.RULES)], "evaluation_interval": "15s", "tests": [test]}))
    promtool("test", "rules", file)


# ---- rules -----------------------------------------------------------------------------------------------------------


@pytest.mark.interop
def test_promtool_accepts_the_rules() -> None:
    assert f"{len(RULES)} rules found" in promtool("check", "rules", series.RULES)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_a_severity_a_time_a_sentence_and_a_paragraph_of_the_guide(name: str) -> None:
    rule = RULES[name]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert re.fullmatch(r"\d+m", rule["for"])
    for text in (rule["annotations"]["summary"], rule["annotations"]["action"]):
        assert text[0].isupper()
        assert text.endswith(".")
        assert "\n" not in text
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert page == "how-to/alarms.html"
    [paragraph] = [each for each in re.split(r"^## ", GUIDE.read_text(), flags=re.M) if slug(each) == anchor]
    assert f"`{name}`" in paragraph
    assert all(f"* **{part}**: " in paragraph for part in ("Look", "Do"))


def slug(section: str) -> str:
    return section.partition("\n")[0].lower().replace(" ", "-")


def test_the_rules_use_metrics_of_the_exporter_only() -> None:
    names = {family.name for family in Reading([]).families()}
    assert len(series.metrics_of_rules()) > 15
    assert series.metrics_of_rules() <= names


@pytest.mark.parametrize(
    "values",
    [
        [None, None, 1.0, 2.0, 3.0, None, None, None, 7.0],
        [5.0, 5.0, 5.0, -2.5, -5.0, 1e-05, 1e20],
        [3.0],
        [1.0, None, 2.0],
    ],
)
def test_the_notation_of_a_recording_keeps_the_values(values: list[float | None]) -> None:
    assert series.decode(series.encode(values)) == values


# ---- recordings ------------------------------------------------------------------------------------------------------


def test_each_alarm_has_a_recording() -> None:
    assert {each.alarm for each in EXPECTED} == set(RULES)
    assert {path.stem for path in RECORDED.iterdir()} == {each.recording for each in EXPECTED} | {
        "healthy",
        "receiver_missing",
    }


# Prometheus reads the exporter each second, or as seldom as the guide allows.
@pytest.mark.interop
@pytest.mark.parametrize("interval_s", [1, 15])
@pytest.mark.parametrize("expected", EXPECTED, ids=lambda each: f"{each.alarm}-{each.recording}")
def test_an_alarm_fires_on_its_failure(expected: Fires, interval_s: int, tmp_path: Path) -> None:
    name, recording, labels, is_silent_before = expected
    values = recorded(recording)
    end = max(map(len, values.values())) // interval_s * interval_s - interval_s
    alerts = [{"eval_time": f"{end}s", "alertname": name, "exp_alerts": [alert(name, labels)]}]
    if is_silent_before:
        alerts.append({"eval_time": f"{SILENT_S}s", "alertname": name, "exp_alerts": []})
    run_promtool(tmp_path, values, interval_s, alerts)


@pytest.mark.interop
def test_a_publisher_without_receivers_is_not_limited_by_them(tmp_path: Path) -> None:
    values = recorded("receiver_missing")
    [limited] = [each for name, each in values.items() if 'client="feed",by="receivers"' in name]
    assert set(limited[1:]) == {1.0}
    alerts = [{"eval_time": f"{at}s", "alertname": name, "exp_alerts": []} for name in RULES for at in (60, 120, 209)]
    run_promtool(tmp_path, values, 1, alerts)


@pytest.mark.interop
def test_a_lag_that_does_not_grow_does_not_reach_the_window(tmp_path: Path) -> None:
    """The publisher of the recording waits for the reader, so the lag has been the same for two minutes."""
    alerts = [{"eval_time": "209s", "alertname": "AeronLagReachesWindow", "exp_alerts": []}]
    run_promtool(tmp_path, recorded("reader_stuck"), 1, alerts)


@pytest.mark.interop
def test_a_recording_whose_archive_got_its_name_late_has_not_stopped(tmp_path: Path) -> None:
    """Prometheus scraped the archive before its first heartbeat, and a stream without a client has ended then."""
    values = recorded("disk_full")
    named = [name for name in values if name.startswith("aeron_archive_recording_position_bytes_total")]
    assert len({"client=" in name for name in named}) == 2
    name = "AeronRecordingStopped"
    alerts = [{"eval_time": f"{at}s", "alertname": name, "exp_alerts": []} for at in range(15, 210, 15)]
    run_promtool(tmp_path, values, 1, alerts)


@pytest.mark.interop
def test_no_alarm_fires_in_a_healthy_hour(tmp_path: Path) -> None:
    """A reader and a publisher restart in the recording, which is shorter than an hour, and is repeated."""
    values = {name: repeated(name, each) for name, each in recorded("healthy").items()}
    assert {name.partition("{")[0] for name in values} >= {"aeron_driver_up", "aeron_archive_up"}
    times = range(15, HEALTHY_S, 15)
    alerts = [{"eval_time": f"{at}s", "alertname": name, "exp_alerts": []} for name in RULES for at in times]
    run_promtool(tmp_path, values, 15, alerts)


def repeated(name: str, values: list[float | None]) -> list[float | None]:
    """Repeats a series for an hour. A total goes on from its last value."""
    known = [value for value in values if value is not None]
    step = known[-1] - known[0] if re.match(r"\w+_total\b", name) else 0.0
    rounds = range(HEALTHY_S // len(values) + 1)
    return [None if value is None else value + step * number for number in rounds for value in values][:HEALTHY_S]
