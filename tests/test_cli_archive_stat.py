"""Tests of ``aeron archive stat``, which shows rate, bytes and age of the recordings of a running archive."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pty
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import eventually
from tests.recorded import CHANNEL, Recorder, offer_all, recorder

import aeron
from aeron.cli.timestamps import duration
from commands import Command, run

stream_ids = itertools.count(8000)


@pytest.fixture(scope="module")
def recordings(driver: aeron.MediaDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    with recorder(driver, tmp_path_factory.mktemp("archive") / "archive") as recordings:
        yield recordings


def stat(driver: aeron.MediaDriver, *arguments: object) -> str:
    result = run("archive", "stat", "--dir", driver.dir, "-u", 50, *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def stat_as_json(driver: aeron.MediaDriver, *arguments: object) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = json.loads(stat(driver, "--json", *arguments))["recordings"]
    return shown


@contextlib.contextmanager
def steady(recordings: Recorder, stream_id: int, bytes_per_s: int) -> Iterator[aeron.Recording]:
    """Publishes messages of 960 bytes until the end of the block. `bytes_per_s` counts their frames of 992 bytes."""
    with recordings.archive.add_recorded_exclusive_publication(CHANNEL, stream_id) as publication:
        begin, done = time.monotonic(), threading.Event()

        def publish() -> None:
            while not done.wait(0.001):
                due = int((time.monotonic() - begin) * bytes_per_s)
                offer_all(publication, [bytes(960)] * max((due - publication.position) // 992, 0))

        recording = recordings.archive.wait_recorded(publication, 0, timeout=10)
        publisher = threading.Thread(target=publish)
        publisher.start()
        try:
            yield recording
        finally:
            done.set()
            publisher.join()


def test_stat_shows_bytes_rate_and_age_of_each_recording(driver: aeron.MediaDriver, recordings: Recorder) -> None:
    stopped = recordings.record(next(stream_ids), [bytes(960)] * 10)
    active_stream = next(stream_ids)
    with steady(recordings, active_stream, 500_000) as active:
        first, *rest = stat_as_json(driver, "-u", 400)
        now_ms = time.time() * 1000
    assert first["recording_id"] == active.recording_id
    assert (first["is_active"], first["stop_timestamp_ms"]) == (True, None)
    assert 300_000 < first["bytes_per_s"] < 700_000
    assert first["bytes"] == first["position"] - first["start_position"] > 100_000
    assert 0 <= now_ms - first["start_timestamp_ms"] - first["age_ms"] < 5000
    [found] = [each for each in rest if each["recording_id"] == stopped.recording_id]
    assert (found["bytes"], found["bytes_per_s"], found["is_active"]) == (9920, 0, False)
    assert found["stop_timestamp_ms"] == stopped.stop_timestamp_ms
    for name in ("stream_id", "session_id", "original_channel", "start_timestamp_ms", "start_position"):
        assert found[name] == getattr(stopped, name)


def test_options_select_recordings(driver: aeron.MediaDriver, recordings: Recorder) -> None:
    stream_id, active_stream = next(stream_ids), next(stream_ids)
    ids = [recordings.record(stream_id, [b"message"]).recording_id for _ in range(3)]
    with steady(recordings, active_stream, 1000) as active:
        selected = [each["recording_id"] for each in stat_as_json(driver, "--stream", stream_id)]
        assert sorted(selected) == ids
        assert [each["recording_id"] for each in stat_as_json(driver, "--active")] == [active.recording_id]
        assert stat_as_json(driver, "--channel", "no such channel") == []
        assert len(stat_as_json(driver, "--channel", "aeron:ipc")) >= 4


def test_once_prints_sums_and_a_table(driver: aeron.MediaDriver, recordings: Recorder) -> None:
    stream_id = next(stream_ids)
    recording = recordings.record(stream_id, [bytes(960)] * 10)
    header, rule, columns, row = stat(driver, "--once", "--stream", stream_id).splitlines()
    assert re.fullmatch(
        r"\d{4}-.* - archive \d+: 1 recordings, 0 active, 9,920 bytes, 0 bytes/s(, \d+ errors: .*)?", header
    )
    assert rule == "=" * 70
    assert columns.split() == ["id", "bytes/s", "bytes", "position", "age", "stopped", "stream", "session", "channel"]
    expected = rf" *{recording.recording_id} +0  9,920 +9,920  +\d+s  \d+s ago +{stream_id} +{recording.session_id}"
    assert re.match(expected, row), row


def test_stat_prints_at_its_period_until_a_signal(driver: aeron.MediaDriver, recordings: Recorder) -> None:
    with (
        steady(recordings, next(stream_ids), 100_000),
        Command("archive", "stat", "--dir", driver.dir, "-u", 100, "--active") as command,
    ):
        eventually(lambda: command.output().count("1 active") > 5, timeout=20)
        command.send(signal.SIGINT)
        assert command.end() == 0
        first, *later = re.findall(r"active, [\d,]+ bytes, ([\d,]+) bytes/s", command.output())
        assert first == "0"
        assert "0" not in later


def test_stat_on_a_terminal_shows_as_many_lines_as_fit(driver: aeron.MediaDriver, recordings: Recorder) -> None:
    for _ in range(10):
        recordings.record(next(stream_ids), [b"message"])
    terminal, other_side = pty.openpty()
    screen = {"TERM": "xterm", "LINES": "9", "COLUMNS": "80"}
    with Command("archive", "stat", "--dir", driver.dir, "-u", 100, output=other_side, **screen) as command:
        os.close(other_side)
        shown, deadline = b"", time.monotonic() + 20
        while b"more: narrow them with --active" not in shown and time.monotonic() < deadline:
            shown += os.read(terminal, 65536)
        command.send(signal.SIGTERM)
        with contextlib.suppress(OSError):  # Linux returns an error if the other end is closed
            while data := os.read(terminal, 65536):
                shown += data
        assert command.end() == 0
    os.close(terminal)
    assert b"more: narrow them with --active" in shown


def test_stat_continues_although_recordings_start_and_are_purged_between_two_samples(
    driver: aeron.MediaDriver, recordings: Recorder
) -> None:
    done = threading.Event()

    def churn() -> None:
        while not done.is_set():
            recording = recordings.record(next(stream_ids), [b"message"])
            recordings.archive.purge_recording(recording.recording_id)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(5):
            stat_as_json(driver)
    finally:
        done.set()
        thread.join()


def test_the_error_of_stat_without_an_archive_mentions_the_archive(tmp_path: Path) -> None:
    with aeron.MediaDriver(dir=tmp_path / "driver") as lonely:
        result = run("archive", "stat", "--dir", lonely.dir, "--once", AERON_ARCHIVE_MESSAGE_TIMEOUT="200ms")
    assert result.exit_code == 1
    assert "archive" in result.stderr


def test_the_lag_of_readers_and_the_next_deletion_are_shown(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path
) -> None:
    stream = next(stream_ids)
    settings: dict[str, Any] = {"segment_file_length": 65536, "low_storage_space_threshold": 0}
    with (
        aeron.Archive(tmp_path / "archive", driver=driver, local_control_stream_id=stream, **settings),
        aeron.connect_archive(client, control_stream_id=stream) as archive,
    ):

        def shown(*options: object) -> str:
            return stat(driver, "--control-stream", stream, *options)

        def recording_as_json() -> dict[str, Any]:
            [recording] = json.loads(shown("--json"))["recordings"]
            return dict(recording)

        channel = "aeron:ipc?term-length=64k"
        with archive.add_recorded_exclusive_publication(channel, stream) as publication:
            position = offer_all(publication, [bytes(992)] * 64 * 3)
            recording = archive.wait_recorded(publication, position, timeout=5)
            assert "lag" not in shown("--once")
            assert (recording_as_json()["readers"], recording_as_json()["retention"]) == ([], None)

            archive.commit_reader(recording.recording_id, "bars", 65536)
            archive.commit_reader(recording.recording_id, "volume", 2 * 65536)
            assert f"{2 * 65536:,} bars (+1)" in shown("--once")
            readers = recording_as_json()["readers"]
            assert [(each["name"], each["lag_bytes"]) for each in readers] == [("bars", 131072), ("volume", 65536)]

            archive.set_retention(recording_id=recording.recording_id, max_bytes=4 * 65536)
            assert "after 65,536 bytes" in shown("--once")
            assert recording_as_json()["retention"]["room_bytes"] == 65536

            archive.commit_reader(recording.recording_id, "bars", 0)
            archive.set_retention(recording_id=recording.recording_id, max_bytes=65536)
            assert "held by reader bars" in shown("--once")
            retention = recording_as_json()["retention"]
            assert (retention["held_by"], retention["reader"], retention["deletes_bytes"]) == ("READER", "bars", 0)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (-5, "0s"),
        (59_999, "59s"),
        (60_000, "1m 00s"),
        (3_599_000, "59m 59s"),
        (3_600_000, "1h 00m"),
        (86_400_000 * 3 + 3_600_000 * 4, "3d 04h"),
    ],
)
def test_a_duration_is_printed_with_its_two_largest_units(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text
