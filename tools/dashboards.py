"""Generates `dashboards/*.json`, the dashboards for Grafana, from the tables below.

Usage: `python tools/dashboards.py [--check]`. With `--check` no file changes: the exit status is 1 if a file differs.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from grafana_foundation_sdk.builders import dashboard, prometheus, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import DataSourceRef
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from aeron._exporter import Reading

DIRECTORY = Path(__file__).resolve().parents[1] / "dashboards"
METRIC = re.compile(r"\baeron_\w+")

_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_WIDTH, _HEIGHT = 12, 8
_STREAM = "{{channel}} {{stream_id}} {{client}}"
_ARCHIVE = "{{driver}} archive {{archive_id}}"
_OF_ARCHIVE = "{{channel}} {{stream_id}} archive {{archive_id}}"


@dataclass(frozen=True)
class Panel:
    """A graph of queries: expressions and the texts of their legends."""

    title: str
    unit: str
    queries: dict[str, str]


def _of_driver(metric: str) -> str:
    return f'{metric}{{driver=~"$driver"}}'


def _rate(metric: str) -> str:
    return f"rate({_of_driver(metric)}[$__rate_interval])"


def _by_stream(metric: str, legend: str = _STREAM) -> dict[str, str]:
    return {_rate(metric): legend}


ALARMS = 'ALERTS{alertname=~"Aeron.*",alertstate="firing"}'
"""The query of the table of alarms. It returns no series while no alarm fires."""

OVERVIEW = [
    Panel(
        "Drivers and archives that are up",
        "bool_yes_no",
        {_of_driver("aeron_driver_up"): "driver {{driver}}", "aeron_archive_up": "archive {{archive}}"},
    ),
    Panel(
        "Age of the heartbeat",
        "s",
        {
            f"timestamp({metric}) - {metric}": legend
            for metric, legend in (
                (_of_driver("aeron_driver_heartbeat_timestamp_seconds"), "driver {{driver}}"),
                ("aeron_archive_heartbeat_timestamp_seconds", "archive {{archive}}"),
            )
        },
    ),
    Panel("Clients", "short", {f"sum by (driver) ({_of_driver('aeron_clients')})": "{{driver}}"}),
    Panel(
        "Sent and received",
        "Bps",
        {
            _rate("aeron_sent_bytes_total"): "{{driver}} sent",
            _rate("aeron_received_bytes_total"): "{{driver}} received",
        },
    ),
    Panel(
        "Errors",
        "short",
        {
            _of_driver("aeron_errors_total"): "driver {{driver}}",
            _of_driver("aeron_archive_errors_total"): "{{driver}} {{client}}",
        },
    ),
    Panel(
        "Client timeouts and unblocked publications",
        "short",
        {
            _of_driver("aeron_client_timeouts_total"): "{{driver}} timeouts",
            _of_driver("aeron_unblocked_publications_total"): "{{driver}} unblocked",
        },
    ),
    Panel(
        "Longest duty cycle",
        "s",
        {
            _of_driver(f"aeron_{agent}_max_cycle_time_seconds"): f"{{{{driver}}}} {agent}"
            for agent in ("conductor", "sender", "receiver")
        },
    ),
    Panel(
        "Free space",
        "bytes",
        {
            _of_driver("aeron_driver_filesystem_free_bytes"): "driver {{driver}}",
            "aeron_archive_filesystem_free_bytes": "archive {{archive}}",
        },
    ),
    Panel("Free counters", "short", {_of_driver("aeron_driver_free_counters"): "{{driver}}"}),
    Panel(
        "Exporter",
        "short",
        {"aeron_exporter_series": "series", "aeron_exporter_dropped_series": "dropped series"},
    ),
]

STREAMS = [
    Panel("Publishers", "Bps", _by_stream("aeron_publisher_position_bytes_total")),
    Panel("Subscribers", "Bps", _by_stream("aeron_subscriber_position_bytes_total")),
    Panel("Lag of subscribers", "bytes", {_of_driver("aeron_subscriber_lag_bytes"): _STREAM}),
    Panel("Room of publishers", "bytes", {_of_driver("aeron_publication_window_bytes"): _STREAM}),
    Panel(
        "Publishers without room",
        "short",
        {_of_driver("aeron_publications_limited"): _STREAM + " by {{by}} {{subscriber}}"},
    ),
    Panel("Senders at their limit", "short", _by_stream("aeron_sender_back_pressure_total")),
    Panel("Receivers", "Bps", _by_stream("aeron_receiver_position_bytes_total")),
    Panel("Loss", "Bps", _by_stream("aeron_loss_bytes_total", "{{channel}} {{stream_id}}")),
    Panel(
        "NAKs",
        "short",
        _by_stream("aeron_receiver_naks_sent_total", _STREAM + " sent")
        | _by_stream("aeron_sender_naks_received_total", _STREAM + " received"),
    ),
    Panel(
        "Retransmits",
        "short",
        {
            _rate("aeron_retransmits_sent_total"): "{{driver}} sent",
            _rate("aeron_retransmit_overflow_total"): "{{driver}} ignored",
        },
    ),
    Panel(
        "Publications, images and subscribers",
        "short",
        {
            f"sum by (driver) ({_of_driver(f'aeron_{what}')})": f"{{{{driver}}}} {what}"
            for what in ("publications", "images", "subscribers")
        },
    ),
    Panel(
        "Messages of flow control",
        "short",
        {
            _rate("aeron_status_messages_sent_total"): "{{driver}} sent",
            _rate("aeron_status_messages_received_total"): "{{driver}} received",
        },
    ),
]

ARCHIVE = [
    Panel(
        "Sessions",
        "short",
        {
            _of_driver(f"aeron_archive_{kind}_sessions"): f"{_ARCHIVE} {kind}"
            for kind in ("recording", "replay", "control")
        },
    ),
    Panel("Recordings", "Bps", _by_stream("aeron_archive_recording_position_bytes_total", _OF_ARCHIVE)),
    Panel("Lag of recordings", "bytes", {_of_driver("aeron_archive_recording_lag_bytes"): _OF_ARCHIVE}),
    Panel(
        "Written and read",
        "Bps",
        {
            _rate("aeron_archive_recorder_write_bytes_total"): _ARCHIVE + " written",
            _rate("aeron_archive_replayer_read_bytes_total"): _ARCHIVE + " read",
        },
    ),
    Panel(
        "Share of time spent on files",
        "percentunit",
        {
            _rate("aeron_archive_recorder_write_time_seconds_total"): _ARCHIVE + " writing",
            _rate("aeron_archive_replayer_read_time_seconds_total"): _ARCHIVE + " reading",
        },
    ),
    Panel(
        "Longest write and read",
        "s",
        {
            _of_driver("aeron_archive_recorder_max_write_time_seconds"): _ARCHIVE + " write",
            _of_driver("aeron_archive_replayer_max_read_time_seconds"): _ARCHIVE + " read",
        },
    ),
    Panel(
        "Failed recordings",
        "short",
        {
            _of_driver("aeron_archive_blocked_images"): _ARCHIVE + " blocked images",
            _rate("aeron_archive_lost_bytes_total"): _ARCHIVE + " bytes not recorded per second",
        },
    ),
    Panel(
        "Scrubbing",
        "short",
        {
            _rate("aeron_archive_scrub_checked_bytes_total"): _ARCHIVE + " checked bytes per second",
            _of_driver("aeron_archive_scrub_findings_total"): _ARCHIVE + " findings",
        },
    ),
    Panel(
        "Deleted by retention",
        "Bps",
        {_rate("aeron_archive_retention_freed_bytes_total"): _ARCHIVE},
    ),
    Panel(
        "Object storage",
        "short",
        {
            _of_driver("aeron_archive_objects_copied_segments_total"): _ARCHIVE + " copied segments",
            _of_driver("aeron_archive_objects_failures_total"): _ARCHIVE + " failures",
        },
    ),
]

DASHBOARDS = {"overview": OVERVIEW, "streams": STREAMS, "archive": ARCHIVE}


def descriptions() -> dict[str, str]:
    """Returns the descriptions of the exporter's metrics."""
    return {family.name: family.help for family in Reading([]).families()}


def render(name: str) -> str:
    """Returns the JSON text of a dashboard."""
    builder = (
        dashboard.Dashboard(f"Aeron {name}")
        .uid(f"aeron-{name}")
        .tags(["aeron"])
        .refresh("15s")
        .time("now-1h", "now")
        .with_variable(dashboard.DatasourceVariable("datasource").type("prometheus"))
        .with_variable(
            dashboard.QueryVariable("driver")
            .datasource(_SOURCE)
            .query("label_values(aeron_driver_up, driver)")
            .include_all(True)
            .all_value(".*")
            .multi(True)
        )
    )
    if name == "overview":
        builder = builder.with_panel(_alarms())
    help = descriptions()
    for panel in DASHBOARDS[name]:
        builder = builder.with_panel(_graph(panel, help))
    return JSONEncoder(sort_keys=True, indent=1).encode(builder.build()) + "\n"


def _alarms() -> table.Panel:
    query = prometheus.Dataquery().ref_id("A").expr(ALARMS).instant().format(PromQueryFormat.TABLE)
    panel = table.Panel().title("Alarms that fire").datasource(_SOURCE).with_target(query)
    return panel.span(2 * _WIDTH).height(_HEIGHT)


def _graph(panel: Panel, help: dict[str, str]) -> timeseries.Panel:
    names = dict.fromkeys(name for expression in panel.queries for name in METRIC.findall(expression))
    graph = (
        timeseries.Panel()
        .title(panel.title)
        .description("\n".join(f"`{name}`: {help[name]}" for name in names))
        .datasource(_SOURCE)
        .unit(panel.unit)
        .min(0)
        .span(_WIDTH)
        .height(_HEIGHT)
    )
    for letter, (expression, legend) in zip("ABCD", panel.queries.items(), strict=False):
        graph = graph.with_target(prometheus.Dataquery().ref_id(letter).expr(expression).legend_format(legend))
    return graph


def main() -> None:
    """Writes the files, or compares them."""
    is_check = sys.argv[1:] == ["--check"]
    different = []
    for name in DASHBOARDS:
        path = DIRECTORY / f"{name}.json"
        text = render(name)
        if not path.exists() or path.read_text() != text:
            different.append(path.name)
            if not is_check:
                path.write_text(text)
    if is_check and different:
        sys.exit(f"{', '.join(different)} in dashboards: python tools/dashboards.py writes what is new")


if __name__ == "__main__":
    main()
