"""``aeron archive checksum``: computes and stores checksums, as ArchiveTool does."""

from __future__ import annotations

import click

import aeron
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
from aeron.cli.text import printable_lines


@click.command("checksum")
@archive_argument
@click.argument("name", metavar="CHECKSUM")
@click.argument("recording_id", type=RECORDING_ID, required=False)
@all_option
@json_option
def checksum(*, directory: str, name: str, recording_id: int | None, all_segments: bool, as_json: bool) -> None:
    """Store checksums in the entries of the catalog and in the frames of segment files.

    The command changes all recordings, or only the recording RECORDING_ID. Without --all, only the frames of the last
    segment file of a recording get checksums.

    CHECKSUM is CRC-32, CRC-32C or the name of Aeron's class. The checksum of a frame replaces the session id in the
    segment file. If a recording cannot be read, the other recordings get their checksums, and the exit status is 1.
    """
    results = []
    with open_files(directory, write=True) as files, explained():
        ids = [entry.recording.recording_id for entry in entries_of(files, recording_id)]
        if recording_id is not None and files.entry(recording_id).state == "DELETED":
            raise click.ClickException(f"no recording found with recordingId: {recording_id}")
        total = sum(files.segment_bytes(id, all_segments) for id in ids)
        with progress_bar("computing checksums", total, hidden=as_json) as bar:
            for id in ids:
                frames, problem = None, None
                try:
                    frames = files.write_checksums(id, name, all_segments, bar.advance)
                except aeron.ArchiveDirectoryError as error:
                    # The command continues with the other recordings.
                    problem = str(error)
                results.append({"recording_id": id, "frames": frames, "problem": problem})
                if not as_json:
                    text = f"{frames} frames" if problem is None else printable_lines(f"ERR: {problem}").rstrip()
                    bar.echo(f"(recordingId={id}) {text}")
    if as_json:
        print_json(results)
    if any(result["problem"] is not None for result in results):
        raise SystemExit(1)
