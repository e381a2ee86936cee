"""``aeron archive list``, ``describe`` and ``describe-all``. The last two print in the form of ArchiveTool."""

from __future__ import annotations

import re
import time
from datetime import datetime

import click

import aeron
from aeron._pipeline import _ArchiveFiles, _ArchiveMark, _CatalogEntry, _read_archive_mark
from aeron._times import epoch_us
from aeron.cli.archive.files import (
    archive_argument,
    entries_of,
    json_option,
    mark_file,
    open_files,
    print_json,
    recording_argument,
)
from aeron.cli.errors import error_as_json
from aeron.cli.table import aligned
from aeron.cli.text import printable
from aeron.cli.timestamps import local_time, time_options

_COLUMNS = ("id", "started", "stopped", "start position", "stop position", "bytes", "stream", "session", "channel")
_COPY_COLUMNS = ("copied from", "copied to")
"""Further columns, if recordings have copies in object storage."""
_TEXTS = frozenset({"started", "stopped", "channel"})
_HEADER_LENGTH = 8192


@click.command("list")
@archive_argument
@time_options("recordings that were active")
@json_option
def list_command(*, directory: str, since: datetime | None, until: datetime | None, as_json: bool) -> None:
    """Show the recordings of the archive in DIRECTORY, one recording per line."""
    files = open_files(directory)
    entries = [entry for entry in entries_of(files, None) if entry.state == "VALID"]
    entries = [entry for entry in entries if _is_within(entry.recording, since, until)]
    copies = {copied.recording_id: copied for copied in files.copied_ranges()}
    if as_json:
        print_json([entry_as_json(entry, copies.get(entry.recording.recording_id)) for entry in entries])
        return
    rows = [_cells(entry.recording, copies) for entry in entries]
    columns = _COLUMNS + (_COPY_COLUMNS if copies else ())
    click.echo("\n".join(aligned(columns, rows, texts=_TEXTS)))


def _is_within(recording: aeron.Recording, since: datetime | None, until: datetime | None) -> bool:
    """Returns whether the recording was active in a range of time. Its timestamps have whole milliseconds."""
    start_us, stop_ms = recording.start_timestamp_ms * 1_000, recording.stop_timestamp_ms
    if until is not None and start_us >= epoch_us(until, "until"):
        return False
    # If the clock was set back, the stop time may be before the start time.
    return since is None or stop_ms is None or max(stop_ms * 1_000, start_us) + 999 >= epoch_us(since, "since")


@click.command("describe")
@archive_argument
@recording_argument
@json_option
def describe(*, directory: str, recording_id: int | None, as_json: bool) -> None:
    """Print the mark file and the valid recordings, or the entry RECORDING_ID in any state."""
    files = open_files(directory)
    entries = entries_of(files, recording_id)
    if recording_id is not None:
        [entry] = entries
        copied = next((each for each in files.copied_ranges() if each.recording_id == recording_id), None)
        if as_json:
            errors = errors_of(_read_archive_mark(directory), recording_id)
            shown = entry_as_json(entry, copied) | {"frame_checksum": _frame_checksum(files, entry)}
            print_json(shown | {"errors": [error_as_json(error) for error in errors]} if errors else shown)
            return
        click.echo(descriptor_line(entry))
        print_checksum(files, entry)
        if copied is not None:
            click.echo(copied_line(copied))
        for error in errors_of(_read_archive_mark(directory), recording_id):
            click.echo(error_line(recording_id, error))
        return
    mark = mark_file(directory)
    valid = [entry for entry in entries if entry.state == "VALID"]
    if as_json:
        print_json(_archive_as_json(mark, files.capacity, valid))
        return
    print_heading(mark, files.capacity)
    for entry in valid:
        click.echo(descriptor_line(entry))
    for entry in valid:
        print_checksum(files, entry)
    for copied in files.copied_ranges():
        click.echo(copied_line(copied))


@click.command("describe-all")
@archive_argument
@json_option
def describe_all(*, directory: str, as_json: bool) -> None:
    """Print the mark file and all entries of the catalog with their states."""
    files = open_files(directory)
    entries = entries_of(files, None)
    mark = mark_file(directory)
    if as_json:
        print_json(_archive_as_json(mark, files.capacity, entries))
        return
    print_heading(mark, files.capacity)
    for entry in entries:
        click.echo(f"{descriptor_line(entry)}|{entry.state}")


def print_heading(mark: _ArchiveMark, capacity: int) -> None:
    """Prints the mark file and the capacity of the catalog."""
    now = local_time(time.time_ns() // 1_000_000)
    start, activity = local_time(mark.start_timestamp_ms), local_time(mark.activity_timestamp_ms)
    click.echo(f"{now} (start: {start}, activity: {activity})")
    fields = {
        "version": mark.version,
        "activityTimestamp": mark.activity_timestamp_ms,
        "startTimestamp": mark.start_timestamp_ms,
        "pid": mark.pid,
        "controlStreamId": mark.control_stream_id,
        "localControlStreamId": mark.local_control_stream_id,
        "eventsStreamId": mark.events_stream_id,
        "headerLength": _HEADER_LENGTH,
        "errorBufferLength": mark.error_buffer_length,
        "archiveId": mark.archive_id,
        "controlChannel": _quoted(mark.control_channel),
        "localControlChannel": _quoted(mark.local_control_channel),
        "eventsChannel": _quoted(mark.events_channel),
        "aeronDirectory": _quoted(mark.aeron_directory),
    }
    header = "sbeTemplateId=200|sbeSchemaId=100|sbeSchemaVersion=2|sbeBlockLength=128"
    click.echo(f"[MarkFileHeader]({header}):{_joined(fields)}")
    click.echo(f"Catalog capacity in bytes: {capacity}")


def descriptor_line(entry: _CatalogEntry) -> str:
    """Returns the entry in the form that ArchiveTool prints."""
    recording = entry.recording
    fields = {
        "controlSessionId": entry.control_session_id,
        "correlationId": entry.correlation_id,
        "recordingId": recording.recording_id,
        "startTimestamp": recording.start_timestamp_ms,
        "stopTimestamp": _or_null(recording.stop_timestamp_ms),
        "startPosition": recording.start_position,
        "stopPosition": _or_null(recording.stop_position),
        "initialTermId": recording.initial_term_id,
        "segmentFileLength": recording.segment_file_length,
        "termBufferLength": recording.term_buffer_length,
        "mtuLength": recording.mtu_length,
        "sessionId": recording.session_id,
        "streamId": recording.stream_id,
        "strippedChannel": _quoted(recording.stripped_channel),
        "originalChannel": _quoted(recording.original_channel),
        "sourceIdentity": _quoted(recording.source_identity),
    }
    header = "sbeTemplateId=22|sbeSchemaId=101|sbeSchemaVersion=13|sbeBlockLength=80"
    return f"[RecordingDescriptor]({header}):{_joined(fields)}"


def print_checksum(files: _ArchiveFiles, entry: _CatalogEntry) -> None:
    """Prints which checksums the frames of a recording have, unless no frame can be read."""
    checksum = _frame_checksum(files, entry)
    if checksum is not None:
        click.echo(f"(recordingId={entry.recording.recording_id}) frames: {checksum}")


def _frame_checksum(files: _ArchiveFiles, entry: _CatalogEntry) -> str | None:
    try:
        return files.frame_checksum(entry.recording.recording_id)
    except aeron.AeronError:
        return None  # The values of the entry are not valid.


def copied_line(copied: aeron.CopiedRange) -> str:
    """Returns a line about the copies of a recording in object storage, in the form of the other lines."""
    fields: dict[str, object] = {
        "recordingId": copied.recording_id,
        "startPosition": copied.start_position,
        "localStartPosition": copied.local_start_position,
        "copiedPosition": copied.copied_position,
    }
    return f"[CopiedRange]:{_joined(fields)}"


def errors_of(mark: _ArchiveMark | None, recording_id: int) -> list[aeron.ErrorObservation]:
    """Returns the errors of one recording in the error log of the archive. Their texts begin with the recording."""
    beginning = re.compile(rf"recording {recording_id}\b")
    return [] if mark is None else [error for error in mark.errors if beginning.match(error.text)]


def error_line(recording_id: int, error: aeron.ErrorObservation) -> str:
    """Returns a line about an error of a recording, in the form of the other lines."""
    fields: dict[str, object] = {
        "recordingId": recording_id,
        "observationCount": error.observation_count,
        "firstObservationTimestamp": error.first_observation_ms,
        "lastObservationTimestamp": error.last_observation_ms,
        "text": _quoted(error.text),
    }
    return f"[Error]:{_joined(fields)}"


def entry_as_json(entry: _CatalogEntry, copied: aeron.CopiedRange | None = None) -> dict[str, object]:
    """Returns the entry with all its fields. A field without a value is null. The field ``copies`` exists only if the
    recording has copies in object storage."""
    recording = entry.recording
    fields = {"recording_id": recording.recording_id, "state": entry.state} | recording_as_json(recording)
    return fields if copied is None else fields | {"copies": copied_as_json(copied)}


def copied_as_json(copied: aeron.CopiedRange) -> dict[str, int]:
    """Returns the start of the copies, the start of the local segment files, and the end of the copies."""
    return {
        "start_position": copied.start_position,
        "local_start_position": copied.local_start_position,
        "copied_position": copied.copied_position,
    }


def recording_as_json(recording: aeron.Recording) -> dict[str, object]:
    """Returns the recording with all its fields. A field without a value is null."""
    return {
        "recording_id": recording.recording_id,
        "start_position": recording.start_position,
        "stop_position": recording.stop_position,
        "start_timestamp_ms": recording.start_timestamp_ms,
        "stop_timestamp_ms": recording.stop_timestamp_ms,
        "session_id": recording.session_id,
        "stream_id": recording.stream_id,
        "stripped_channel": recording.stripped_channel,
        "original_channel": recording.original_channel,
        "source_identity": recording.source_identity,
        "initial_term_id": recording.initial_term_id,
        "term_buffer_length": recording.term_buffer_length,
        "segment_file_length": recording.segment_file_length,
        "mtu_length": recording.mtu_length,
    }


def mark_as_json(mark: _ArchiveMark) -> dict[str, object]:
    """Returns the fields of the mark file."""
    return {
        "path": str(mark.path),
        "version": mark.version,
        "is_active": mark.is_active,
        "activity_timestamp_ms": mark.activity_timestamp_ms,
        "start_timestamp_ms": mark.start_timestamp_ms,
        "pid": mark.pid,
        "archive_id": mark.archive_id,
        "control_stream_id": mark.control_stream_id,
        "local_control_stream_id": mark.local_control_stream_id,
        "events_stream_id": mark.events_stream_id,
        "error_buffer_length": mark.error_buffer_length,
        "control_channel": mark.control_channel,
        "local_control_channel": mark.local_control_channel,
        "events_channel": mark.events_channel,
        "aeron_directory": mark.aeron_directory,
    }


def _archive_as_json(mark: _ArchiveMark, capacity: int, entries: list[_CatalogEntry]) -> dict[str, object]:
    recordings = [entry_as_json(entry) for entry in entries]
    return {"mark_file": mark_as_json(mark), "catalog_capacity": capacity, "recordings": recordings}


def _cells(recording: aeron.Recording, copies: dict[int, aeron.CopiedRange]) -> tuple[str, ...]:
    stop = recording.stop_position
    cells = (
        str(recording.recording_id),
        local_time(recording.start_timestamp_ms),
        local_time(_or_null(recording.stop_timestamp_ms)),
        f"{recording.start_position:,}",
        "active" if stop is None else f"{stop:,}",
        "" if stop is None else f"{stop - recording.start_position:,}",
        str(recording.stream_id),
        str(recording.session_id),
        printable(recording.original_channel),
    )
    if not copies:
        return cells
    copied = copies.get(recording.recording_id)
    return cells + (("", "") if copied is None else (f"{copied.start_position:,}", f"{copied.copied_position:,}"))


def _or_null(value: int | None) -> int:
    return -1 if value is None else value


def _quoted(text: str) -> str:
    return f"'{printable(text)}'"


def _joined(fields: dict[str, object]) -> str:
    return "|".join(f"{name}={value}" for name, value in fields.items())
