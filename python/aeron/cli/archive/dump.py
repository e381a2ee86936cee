"""``aeron archive dump``: entries and frames in the form of ArchiveTool."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

import click

import aeron
from aeron._pipeline import _ArchiveFiles, _CatalogEntry, _RecordedFrame
from aeron._times import epoch_us
from aeron.cli.archive.describe import descriptor_line, entry_as_json, print_heading
from aeron.cli.archive.files import archive_argument, entries_of, json_option, mark_file, open_files
from aeron.cli.text import printable
from aeron.cli.timestamps import time_options

_HEADER_LENGTH = 32
_NO_LIMIT = 2**63 - 1


@click.command("dump")
@archive_argument
@click.argument("limit", type=click.IntRange(min=1), required=False)
@time_options("frames of messages that arrived")
@json_option
def dump(*, directory: str, limit: int | None, since: datetime | None, until: datetime | None, as_json: bool) -> None:
    """Print each entry of the catalog, and the frames of the recordings that are not deleted.

    After each LIMIT frames of a recording the command asks whether to continue with this recording. With --json,
    the command continues with the next recording instead, and prints one object per line: an entry or a frame.
    """
    files = open_files(directory)
    entries = entries_of(files, None)
    if not as_json:
        print_heading(mark_file(directory), files.capacity)
        if limit is not None:
            click.echo(f"\nDumping up to {limit} fragments per recording")
    is_whole = True
    frames = _FramesInTime(files, since, until)
    for entry in entries:
        if as_json:
            is_whole &= _dump_as_json(frames, entry, limit or _NO_LIMIT)
        else:
            is_whole &= _dump(frames, entry, limit or _NO_LIMIT)
    if not is_whole:
        raise SystemExit(1)


class _FramesInTime:
    """The frames of recordings in a range of time. Where there is no index, the range includes whole segments."""

    def __init__(self, files: _ArchiveFiles, since: datetime | None, until: datetime | None) -> None:
        self._files = files
        self._since_us = None if since is None else epoch_us(since, "since")
        self._until_us = None if until is None else epoch_us(until, "until")

    def of(self, recording_id: int) -> Iterator[_RecordedFrame]:
        """Returns the frames of a recording."""
        return self._files.frames(recording_id, since_us=self._since_us, until_us=self._until_us)


def _dump(files: _FramesInTime, entry: _CatalogEntry, limit: int) -> bool:
    """Prints a recording. Returns ``False`` if the recording is valid and a frame of it cannot be read."""
    recording = entry.recording
    stop = recording.stop_position
    length = -1 if stop is None else stop - recording.start_position
    click.echo(
        f"\n\nRecording {recording.recording_id}\n  channel: {printable(recording.stripped_channel)}\n"
        f"  streamId: {recording.stream_id}\n  stream length: {length}"
    )
    click.echo(
        "[RecordingDescriptorHeader](sbeTemplateId=21|sbeSchemaId=101|sbeSchemaVersion=13|sbeBlockLength=32):"
        f"length={entry.length}|state={entry.state}|checksum={entry.checksum}|reserved=0"
    )
    click.echo(descriptor_line(entry))
    if entry.state == "DELETED":
        return True
    try:
        for number, frame in enumerate(files.of(recording.recording_id), start=1):
            offset = frame.position % recording.term_buffer_length + _HEADER_LENGTH
            shown = "padding" if frame.is_padding else "data"
            covered = frame.end_position - frame.position - _HEADER_LENGTH
            shown_length = covered if frame.is_padding else len(frame.payload)
            click.echo(
                f"\nFrame at position [{frame.position}] {shown} at offset [{offset}] with length = {shown_length}"
            )
            if frame.payload:
                click.echo(hex_dump(frame.payload))
            if number % limit == 0 and frame.end_position != stop:
                if stop is not None:
                    remaining = (
                        f"{stop - frame.end_position} bytes of (from {stop - recording.start_position}) remaining"
                    )
                    click.echo(f"{remaining} in recording id {recording.recording_id}")
                if not click.confirm(f"\nSpecified frame limit {limit} reached. Continue?", err=True):
                    break
    except aeron.AeronError as error:
        click.echo(f"\n(recordingId={recording.recording_id}) ERR: {error}")
        return entry.state != "VALID"
    return True


def _dump_as_json(files: _FramesInTime, entry: _CatalogEntry, limit: int) -> bool:
    recording_id = entry.recording.recording_id
    click.echo(json.dumps({"type": "recording"} | entry_as_json(entry)))
    if entry.state == "DELETED":
        return True
    try:
        for number, frame in enumerate(files.of(recording_id)):
            if number == limit:
                break
            click.echo(json.dumps(_frame_as_json(recording_id, frame)))
    except aeron.AeronError as error:
        click.echo(json.dumps({"type": "error", "recording_id": recording_id, "error": str(error)}))
        return entry.state != "VALID"
    return True


def _frame_as_json(recording_id: int, frame: _RecordedFrame) -> dict[str, object]:
    return {
        "type": "padding" if frame.is_padding else "data",
        "recording_id": recording_id,
        "position": frame.position,
        "end_position": frame.end_position,
        "flags": frame.flags,
        "reserved_value": frame.reserved_value,
        "payload": frame.payload.hex(),
    }


def hex_dump(data: bytes) -> str:
    """Returns a table of the bytes, with 16 bytes in a row, in hexadecimal digits and as ASCII."""
    rule = "+--------+-------------------------------------------------+----------------+"
    lines = [
        "         +-------------------------------------------------+",
        "         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |",
        rule,
    ]
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        lines.append(f"|{start:08x}| {row.hex(' '):<47} |{text:<16}|")
    return "\n".join([*lines, rule])
