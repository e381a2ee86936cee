"""``aeron archive reader``: the named readers of recordings in a running archive."""

from __future__ import annotations

import click

import aeron
from aeron.cli.archive.files import RECORDING_ID, confirmed, json_option, print_json, yes_option
from aeron.cli.archive.live import Target, archive_options, archive_session
from aeron.cli.lazy import LazyCommand, LazyGroup
from aeron.cli.table import aligned
from aeron.cli.text import printable
from aeron.cli.timestamps import local_time

_MODULE = "aeron.cli.archive.reader"
_COMMANDS = {
    "list": LazyCommand(_MODULE, "list_command", "List the named readers."),
    "remove": LazyCommand(_MODULE, "remove", "Remove a named reader."),
}
_COLUMNS = ("recording", "name", "position", "committed", "max age", "max lag")


@click.group("reader", cls=LazyGroup, commands_of=_COMMANDS)
def command() -> None:
    """List and remove the named readers of a running archive."""


@click.command("list")
@archive_options
@click.option("--recording", "recording_id", type=RECORDING_ID, help="Only this recording.")
@click.option("--name", help="Only readers with this name.")
@json_option
def list_command(*, target: Target, recording_id: int | None, name: str | None, as_json: bool) -> None:
    """List the named readers with their positions."""
    with archive_session(target) as session:
        readers = session.archive.list_readers(recording_id=recording_id, name=name)
    if as_json:
        print_json([reader_as_json(reader) for reader in readers])
        return
    click.echo("\n".join(aligned(_COLUMNS, [_cells(reader) for reader in readers], texts={"name", "committed"})))


@click.command("remove")
@click.argument("recording_id", type=RECORDING_ID)
@click.argument("name")
@archive_options
@yes_option
@json_option
def remove(*, target: Target, recording_id: int, name: str, yes: bool, as_json: bool) -> None:
    """Remove the reader NAME of the recording RECORDING_ID. Retention then no longer keeps data for this reader."""
    warning = f"Retention may delete data of recording {recording_id} that the reader has not committed."
    if not confirmed(warning, yes):
        return
    with archive_session(target) as session:
        removed = session.archive.remove_reader(recording_id, name)
    if as_json:
        print_json({"recording_id": recording_id, "name": name, "removed": removed})
    elif removed:
        click.echo(f"(recordingId={recording_id}) removed the reader {printable(name)}")
    else:
        raise click.ClickException(f"recording {recording_id} has no reader {printable(name)}")


def reader_as_json(reader: aeron.NamedReader) -> dict[str, object]:
    """Returns the reader with all its fields. A field without a value is null."""
    return {
        "recording_id": reader.recording_id,
        "name": reader.name,
        "position": reader.position,
        "committed_timestamp_ms": reader.committed_timestamp_ms,
        "max_age_ms": reader.max_age_ms,
        "max_lag_bytes": reader.max_lag_bytes,
    }


def _cells(reader: aeron.NamedReader) -> tuple[str, ...]:
    return (
        str(reader.recording_id),
        printable(reader.name),
        f"{reader.position:,}",
        local_time(reader.committed_timestamp_ms),
        "" if reader.max_age_ms is None else f"{reader.max_age_ms:,} ms",
        "" if reader.max_lag_bytes is None else f"{reader.max_lag_bytes:,}",
    )
