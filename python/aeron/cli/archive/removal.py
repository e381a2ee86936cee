"""``aeron archive compact`` and ``delete-orphans``: delete entries and files that no recording needs, as ArchiveTool
does."""

from __future__ import annotations

import click

from aeron.cli.archive.files import (
    archive_argument,
    confirmed,
    explained,
    json_option,
    open_files,
    print_json,
    recording_argument,
    yes_option,
)


@click.command("compact")
@archive_argument
@yes_option
@json_option
def compact(*, directory: str, yes: bool, as_json: bool) -> None:
    """Delete the segment files of INVALID and DELETED recordings, and remove their entries from the catalog."""
    warning = (
        "Compacting the Catalog is non-recoverable operation! All non-ACTIVE recordings will be deleted along with the "
        "corresponding segment files."
    )
    with open_files(directory, write=True) as files, explained():
        if not confirmed(warning, yes):
            return
        result = files.compact()
    if as_json:
        print_json({"entries": result.entries, "bytes": result.bytes, "files": result.files})
    else:
        click.echo(f"Compaction result: deleted {result.entries} records and reclaimed {result.bytes} bytes")


@click.command("delete-orphans")
@archive_argument
@recording_argument
@yes_option
@json_option
def delete_orphans(*, directory: str, recording_id: int | None, yes: bool, as_json: bool) -> None:
    """Delete segment files before the start or after the stop of their recording, for all recordings or for one."""
    with open_files(directory, write=True) as files, explained():
        orphans = files.orphans(recording_id)
        owner = "" if recording_id is None else f" owned by the RecordingId[{recording_id}]"
        names = "".join(f"\n  {name}" for name in orphans)
        if orphans and not confirmed(f"All orphaned segment files{owner} will be deleted.{names}", yes):
            return
        for name in orphans:
            files.delete_orphan(name)
            if not as_json:
                click.echo(f"deleted {name}")
    if as_json:
        print_json({"deleted": orphans})
