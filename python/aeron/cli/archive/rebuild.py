"""``aeron archive rebuild-catalog``: writes a lost catalog again from the segment files."""

from __future__ import annotations

import os

import click

from aeron._pipeline import _rebuild_archive_catalog
from aeron.cli.archive.describe import descriptor_line
from aeron.cli.archive.files import (
    MISUSED,
    archive_argument,
    check_directory,
    explained,
    json_option,
    open_files,
    print_json,
    progress_bar,
)
from aeron.cli.text import printable_lines


@click.command("rebuild-catalog")
@archive_argument
@click.option(
    "--channel", help="Channel of all recordings. Segment files do not have it. Without this option, it stays empty."
)
@json_option
def rebuild_catalog(*, directory: str, channel: str | None, as_json: bool) -> None:
    """Write the catalog of the archive in DIRECTORY again from its segment files, if the catalog is lost.

    A catalog that exists is never replaced, and no segment file is changed. Each line about a recording ends with what
    the files do not prove. The exit status is 255 if a recording is left out: its segment files stay.
    """
    check_directory(directory)
    with explained():
        files = (entry for entry in os.scandir(directory) if entry.name.endswith(".rec"))
        total = sum(entry.stat(follow_symlinks=False).st_size for entry in files)
        with progress_bar("reading", total, hidden=as_json) as bar:
            recordings, skipped = _rebuild_archive_catalog(directory, channel, bar.advance)
    if as_json:
        print_json(
            {
                "recordings": [{"recording_id": id_, "notes": notes} for id_, notes in recordings],
                "left_out": [{"recording_id": id_, "reason": reason} for id_, reason in skipped],
            }
        )
    else:
        entries = open_files(directory)
        for id_, notes in recordings:
            click.echo(descriptor_line(entries.entry(id_)))
            for note in notes:
                click.echo(printable_lines(f"(recordingId={id_}) {note}"))
        for id_, reason in skipped:
            click.echo(printable_lines(f"(recordingId={id_}) left out, its segment files stay: {reason}"))
    if skipped:
        raise SystemExit(MISUSED)
