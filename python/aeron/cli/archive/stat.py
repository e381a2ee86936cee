"""``aeron archive stat``: rate, bytes, age, readers and retention of a running archive's recordings."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import click

import aeron
from aeron.cli.archive.describe import copied_as_json
from aeron.cli.archive.files import json_option, print_json
from aeron.cli.archive.keeping import Keeping, KeepingSampler, keeping_as_json, lag_cell, retention_cell
from aeron.cli.archive.live import ArchiveSession, Target, archive_options, archive_session
from aeron.cli.options import LONGEST_S, STREAM_ID
from aeron.cli.screen import watch
from aeron.cli.text import printable
from aeron.cli.timestamps import duration, local_time

_COLUMNS = (
    *("id", "bytes/s", "bytes", "position", "age", "stopped", "lag", "retention", "copied from", "copied to"),
    *("stream", "session", "channel"),
)
_ERRORS_TYPE_ID = 101
"""Type id of the counter of an archive's errors."""
# Columns that are shown only if a recording has something in them.
_OPTIONAL = frozenset({"lag", "retention", "copied from", "copied to"})
_LEFT_ALIGNED = frozenset({"stopped", "lag", "retention", "channel"})


@dataclass(frozen=True)
class RecordingStat:
    """A recording at one moment.

    ``bytes_per_s`` is the rate since the previous sample; it is ``None`` without such a sample. ``keeping`` is ``None``
    if the archive does not support named readers and retention. ``copied`` is ``None`` without copies in object
    storage, and ``"unknown"`` if the archive does not know the copies of the recording yet.
    """

    recording: aeron.Recording
    position: int
    bytes_per_s: float | None
    keeping: Keeping | None
    copied: aeron.CopiedRange | Literal["unknown"] | None = None

    @property
    def bytes(self) -> int:
        """Number of bytes from the start position to the recorded position."""
        return self.position - self.recording.start_position


@dataclass(frozen=True)
class Sample:
    """The recordings at one moment: first the active recordings by id, then the stopped recordings, the last stopped
    one first."""

    time_ms: int
    stats: list[RecordingStat]


class Sampler:
    """Requests recordings and positions from an archive. Each sample has the rates since the previous sample."""

    def __init__(self, session: ArchiveSession, channel: str | None, stream_id: int | None, active: bool) -> None:
        self._session = session
        self._channel, self._stream_id, self._active = channel, stream_id, active
        self._before: dict[int, tuple[int, float]] = {}
        self._keeping = KeepingSampler(session.archive)
        self._has_copies = True

    def sample(self) -> Sample:
        """Returns the recordings that the options select.

        Raises:
            click.ClickException: the archive has reported an error.
            aeron.AeronError: the archive refuses a request or does not respond.
        """
        archive = self._session.archive
        # A retention policy limits all its recordings together, also those that the options do not select.
        positions = list(_positions(archive, archive.list_recordings()))
        recorded = {recording.recording_id: (recording, position) for recording, position, _ in positions}
        keeping = self._keeping.sample(recorded)
        # An archive that does not support named readers does not support copies either.
        stats = [
            self._stat(recording, position, now_s, None if keeping is None else keeping[recording.recording_id])
            for recording, position, now_s in positions
            if self._selects(recording)
        ]
        self._before = {recording.recording_id: (position, now_s) for recording, position, now_s in positions}
        if self._active:
            stats = [stat for stat in stats if stat.recording.is_active]
        copies = {} if keeping is None else self._copies(archive, [stat.recording.recording_id for stat in stats])
        self._session.check()
        stats = [replace(stat, copied=copies.get(stat.recording.recording_id)) for stat in stats]
        return Sample(time.time_ns() // 1_000_000, sorted(stats, key=_order))

    def _selects(self, recording: aeron.Recording) -> bool:
        is_of_channel = self._channel is None or self._channel in recording.original_channel
        return is_of_channel and self._stream_id in (None, recording.stream_id)

    def _copies(
        self, archive: aeron.AeronArchive, recording_ids: list[int]
    ) -> Mapping[int, aeron.CopiedRange | Literal["unknown"]]:
        """Returns the copies by recording. If the archive does not support the request, sends it only once."""
        if not self._has_copies:
            return {}
        try:
            return {copied.recording_id: copied for copied in archive.list_copied_ranges()}
        except aeron.NotSupportedByArchiveError:
            self._has_copies = False
            return {}
        except aeron.ArchiveRefusedError as error:
            if error.code != aeron.ArchiveRefusedError.code:
                raise
        return _copies_of_each(archive, recording_ids)

    def _stat(self, recording: aeron.Recording, position: int, now_s: float, keeping: Keeping | None) -> RecordingStat:
        before = self._before.get(recording.recording_id)
        if before is None:
            return RecordingStat(recording, position, None, keeping)
        position_before, before_s = before
        # A truncation moves the position back.
        return RecordingStat(recording, position, max(position - position_before, 0) / (now_s - before_s), keeping)


def _copies_of_each(
    archive: aeron.AeronArchive, recording_ids: list[int]
) -> Mapping[int, aeron.CopiedRange | Literal["unknown"]]:
    """Returns the copies by recording, for an archive that does not know the copies of all its recordings yet."""
    requests = {each: archive.async_list_copied_ranges(recording_id=each) for each in recording_ids}
    copies: dict[int, aeron.CopiedRange | Literal["unknown"]] = {}
    for recording_id, request in requests.items():
        try:
            copies.update((copied.recording_id, copied) for copied in request.result())
        except aeron.ArchiveRefusedError as error:
            if error.code != aeron.ArchiveRefusedError.code:
                raise
            copies[recording_id] = "unknown"
    return copies


def _positions(
    archive: aeron.AeronArchive, recordings: aeron.Recordings
) -> Iterator[tuple[aeron.Recording, int, float]]:
    """Yields each recording with its recorded position, and the time of that position in seconds."""
    requests = {
        each.recording_id: archive.async_get_max_recorded_position(each.recording_id)
        for each in recordings
        if each.stop_position is None
    }
    for recording in recordings:
        position = recording.stop_position
        if position is None:
            try:
                position = requests[recording.recording_id].result()
            except aeron.UnknownRecordingError:
                continue  # deleted in the meantime
        yield recording, position, time.monotonic()


def _order(stat: RecordingStat) -> tuple[bool, int, int]:
    recording = stat.recording
    return not recording.is_active, -(recording.stop_timestamp_ms or 0), recording.recording_id


@click.command("stat")
@archive_options
@click.option("-c", "--channel", metavar="TEXT", help="Only recordings with this text in their channel.")
@click.option("-s", "--stream", "stream_id", type=STREAM_ID, help="Only recordings of this stream id.")
@click.option("--active", is_flag=True, help="Only active recordings.")
@click.option("--once", is_flag=True, help="Print the recordings once and end.")
@json_option
@click.option(
    "-u",
    "--update-period",
    "period_ms",
    type=click.IntRange(min=10, max=1000 * LONGEST_S),
    default=1000,
    show_default=True,
    help="Milliseconds between updates, over which rates are measured.",
)
def stat(
    *,
    target: Target,
    channel: str | None,
    stream_id: int | None,
    active: bool,
    once: bool,
    as_json: bool,
    period_ms: int,
) -> None:
    """Show the recordings of a running archive until interrupted: rate, bytes, position and age.

    "lag" has the bytes that the slowest named reader has not committed. "retention" has what the archive deletes next:
    the bytes that it deletes now, the reader or replay that holds them, or the bytes or the age until the next
    deletion. A column appears only if at least one recording has a value in it. "copied from" is "unknown" if the
    archive could not list the copies in object storage since its start.

    Active recordings come first, then stopped recordings, of which the last stopped one comes first. With --once
    or --json the command measures the rates over one period, and ends.
    """
    with archive_session(target) as session:
        sampler = Sampler(session, channel, stream_id, active)

        def pause() -> bool:
            return session.stop.wait(period_ms / 1000)

        if not (once or as_json):
            advice = "narrow them with --active, --channel or --stream, or use --once"
            watch(lambda: render(session.archive, sampler.sample()), pause, advice=advice)
            return
        sampler.sample()
        if pause():
            return
        sample = sampler.sample()
        if as_json:
            print_json(_as_json(session.archive, sample))
        else:
            click.echo("\n".join(render(session.archive, sample)))


def render(archive: aeron.AeronArchive, sample: Sample) -> list[str]:
    """Returns a header with the sums, and a table with a line for each recording."""
    stats = sample.stats
    rate = sum(stat.bytes_per_s or 0 for stat in stats)
    header = (
        f"{local_time(sample.time_ms)} - archive {archive.archive_id}: {len(stats)} recordings, "
        f"{sum(stat.recording.is_active for stat in stats)} active, {sum(stat.bytes for stat in stats):,} bytes, "
        f"{rate:,.0f} bytes/s"
    )
    if errors := error_count(archive):
        header += f", {errors:,} errors: see aeron archive errors"
    cells = [_cells(stat, sample.time_ms) for stat in stats]
    columns = [name for name in _COLUMNS if name not in _OPTIONAL or any(row[name] for row in cells)]
    rows = [{name: name for name in columns}, *cells]
    widths = {name: max(len(row[name]) for row in rows) for name in columns}
    return [header, "=" * 70, *(_line(row, widths) for row in rows)]


def error_count(archive: aeron.AeronArchive) -> int | None:
    """Returns the number of errors since the start of the archive. Returns ``None`` if the archive uses another driver
    than this command."""
    counters = archive.client.counters_reader.snapshot()
    is_it = archive.archive_id.to_bytes(8, "little", signed=True).__eq__
    values = (counter.value for counter in counters if counter.type_id == _ERRORS_TYPE_ID and is_it(counter.key[:8]))
    return next(values, None)


def _line(row: Mapping[str, str], widths: Mapping[str, int]) -> str:
    cells = [
        row[name].ljust(width) if name in _LEFT_ALIGNED else row[name].rjust(width) for name, width in widths.items()
    ]
    return "  ".join(cells).rstrip()


def _cells(stat: RecordingStat, now_ms: int) -> dict[str, str]:
    recording = stat.recording
    stopped_ms = recording.stop_timestamp_ms
    return {
        "id": str(recording.recording_id),
        "bytes/s": "-" if stat.bytes_per_s is None else f"{stat.bytes_per_s:,.0f}",
        "bytes": f"{stat.bytes:,}",
        "position": f"{stat.position:,}",
        "age": duration(now_ms - recording.start_timestamp_ms),
        "stopped": "active" if stopped_ms is None else f"{duration(now_ms - stopped_ms)} ago",
        "lag": "" if stat.keeping is None else lag_cell(stat.keeping, stat.position),
        "retention": "" if stat.keeping is None else retention_cell(stat.keeping),
        "copied from": _copied_from(stat.copied),
        "copied to": f"{stat.copied.copied_position:,}" if isinstance(stat.copied, aeron.CopiedRange) else "",
        "stream": str(recording.stream_id),
        "session": str(recording.session_id),
        "channel": printable(recording.original_channel),
    }


def _copied_from(copied: aeron.CopiedRange | Literal["unknown"] | None) -> str:
    return f"{copied.start_position:,}" if isinstance(copied, aeron.CopiedRange) else copied or ""


def _as_json(archive: aeron.AeronArchive, sample: Sample) -> Mapping[str, object]:
    return {
        "archive_id": archive.archive_id,
        "time_ms": sample.time_ms,
        "errors": error_count(archive),
        "recordings": [_stat_as_json(stat, sample.time_ms) for stat in sample.stats],
    }


def _stat_as_json(stat: RecordingStat, now_ms: int) -> dict[str, object]:
    recording = stat.recording
    return {
        "recording_id": recording.recording_id,
        "is_active": recording.is_active,
        "bytes_per_s": stat.bytes_per_s,
        "bytes": stat.bytes,
        "start_position": recording.start_position,
        "position": stat.position,
        "age_ms": max(now_ms - recording.start_timestamp_ms, 0),
        "start_timestamp_ms": recording.start_timestamp_ms,
        "stop_timestamp_ms": recording.stop_timestamp_ms,
        "stream_id": recording.stream_id,
        "session_id": recording.session_id,
        "original_channel": recording.original_channel,
        **keeping_as_json(stat.keeping, stat.position),
        **_copies_as_json(stat.copied),
    }


def _copies_as_json(copied: aeron.CopiedRange | Literal["unknown"] | None) -> dict[str, object]:
    """Returns the field ``copies``: absent without copies, and ``null`` if the archive does not know them yet."""
    if copied is None:
        return {}
    return {"copies": copied_as_json(copied) if isinstance(copied, aeron.CopiedRange) else None}
