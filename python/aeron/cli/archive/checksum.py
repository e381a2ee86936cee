"""``aeron archive checksum``: computes and stores checksums, as ArchiveTool does."""

from __future__ import annotations

import click

from aeron.cli.archive.files import (
    RECORDING_ID,
    all_option,
    archive_argument,
    entries_of,
    explained,
    json_option,
    open_files,
    print_json,
    progress_bar,
)


@click.command("checksum")
@archive_argument
@click.argument("name", metavar="CHECKSUM")
@click.argument("recording_id", type=RECORDING_ID, required=False)
@all_option
@json_option
def checksum(*, directory: str, name: str, recording_id: int | None, all_segments: bool, as_json: bool) -> None:
    """Store the CHECKSUM (CRC-32 or CRC-32C, or a class name) of each frame and entry, of all recordings or of one.

    The checksum of a frame replaces the session id in the segment file.
    """
    files = open_files(directory, write=True)
    entries = entries_of(files, recording_id)
    if recording_id is None:
        entries = [entry for entry in entries if entry.state != "DELETED"]
    results = []
    with explained():
        total = sum(files.segment_bytes(entry.recording.recording_id, all_segments) for entry in entries)
    with progress_bar("computing checksums", total, hidden=as_json) as advance, explained():
        for entry in entries:
            id = entry.recording.recording_id
            results.append({"recording_id": id, "frames": files.write_checksums(id, name, all_segments, advance)})
            if not as_json:
                click.echo("(recordingId={recording_id}) {frames} frames".format(**results[-1]))
    if as_json:
        print_json(results)
