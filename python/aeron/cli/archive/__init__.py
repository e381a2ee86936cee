"""``aeron archive``: commands on the files of an archive, as in Aeron's ArchiveTool, and on a running archive."""

from __future__ import annotations

import click

from aeron.cli.archive.files import UnknownCommandError
from aeron.cli.lazy import LazyCommand, LazyGroup

_COMMANDS = {
    "list": LazyCommand("aeron.cli.archive.describe", "list_command", "Show the recordings as a table."),
    "describe": LazyCommand("aeron.cli.archive.describe", "describe", "Print the valid recordings, or one entry."),
    "describe-all": LazyCommand("aeron.cli.archive.describe", "describe_all", "Print all entries of the catalog."),
    "dump": LazyCommand("aeron.cli.archive.dump", "dump", "Print the recordings with their frames."),
    "count": LazyCommand("aeron.cli.archive.look", "count", "Print the number of recordings."),
    "pid": LazyCommand("aeron.cli.archive.look", "pid", "Print the process id of the archive."),
    "errors": LazyCommand("aeron.cli.archive.look", "errors", "Show the errors of the archive and its driver."),
    "capacity": LazyCommand("aeron.cli.archive.look", "capacity", "Print or increase the capacity of the catalog."),
    "verify": LazyCommand("aeron.cli.archive.verify", "verify", "Verify recordings, and repair the catalog."),
    "rebuild-catalog": LazyCommand(
        "aeron.cli.archive.rebuild", "rebuild_catalog", "Write a lost catalog again from the segment files."
    ),
    "checksum": LazyCommand("aeron.cli.archive.checksum", "checksum", "Write checksums of frames and entries."),
    "mark-valid": LazyCommand("aeron.cli.archive.mark", "mark_valid", "Mark an invalid recording as valid again."),
    "mark-invalid": LazyCommand("aeron.cli.archive.mark", "mark_invalid", "Mark a recording as broken."),
    "compact": LazyCommand("aeron.cli.archive.removal", "compact", "Delete invalid and deleted recordings."),
    "delete-orphans": LazyCommand(
        "aeron.cli.archive.removal", "delete_orphans", "Delete segment files outside of recordings."
    ),
    "export": LazyCommand("aeron.cli.archive.export", "export", "Write a recording to Parquet or Arrow files."),
    "record": LazyCommand("aeron.cli.archive.record", "record", "Record a stream with a running archive."),
    "replay": LazyCommand("aeron.cli.archive.replay", "replay", "Print the messages of a recording."),
    "follow": LazyCommand("aeron.cli.archive.replay", "follow", "Print messages while they are recorded."),
    "stat": LazyCommand("aeron.cli.archive.stat", "stat", "Show rate, bytes and age of recordings, live or once."),
    "replicate": LazyCommand("aeron.cli.archive.replicate", "replicate", "Copy a recording from another archive."),
    "purge": LazyCommand("aeron.cli.archive.purge", "purge", "Delete a recording of a running archive."),
    "retention": LazyCommand(
        "aeron.cli.archive.retention", "command", "Policies by which a running archive deletes old data."
    ),
    "reader": LazyCommand("aeron.cli.archive.reader", "command", "Named readers in a running archive."),
    "staged": LazyCommand("aeron.cli.archive.staged", "command", "Staged rows of exactly-once Spark queries."),
    "name": LazyCommand("aeron.cli.archive.name", "command", "Names of recordings in a running archive."),
}


@click.group(
    "archive",
    cls=LazyGroup,
    commands_of=_COMMANDS,
    native=[("run", "Run an archive in the foreground (same as aeronarchive).")],
    unknown_command=UnknownCommandError,
)
def command() -> None:
    """Inspect or repair the directory of an archive, or let a running archive record and replay."""
