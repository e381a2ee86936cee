"""``aeron archive name``: names and metadata of recordings in a running archive."""

from __future__ import annotations

import base64

import click

import aeron
from aeron.cli.archive.files import RECORDING_ID, json_option, print_json
from aeron.cli.archive.live import Target, archive_options, archive_session
from aeron.cli.lazy import LazyCommand, LazyGroup
from aeron.cli.table import aligned
from aeron.cli.text import printable

_MODULE = "aeron.cli.archive.name"
_COMMANDS = {
    "set": LazyCommand(_MODULE, "set_command", "Name a recording."),
    "list": LazyCommand(_MODULE, "list_command", "List the recordings with a name or metadata."),
}
_COLUMNS = ("recording", "name", "bytes of metadata", "continues", "from", "to")


@click.group("name", cls=LazyGroup, commands_of=_COMMANDS)
def command() -> None:
    """Name the recordings of a running archive."""


@click.command("set")
@click.argument("recording_id", type=RECORDING_ID)
@click.argument("name")
@archive_options
@json_option
def set_command(*, target: Target, recording_id: int, name: str, as_json: bool) -> None:
    """Name the recording RECORDING_ID. An empty NAME removes the name."""
    with archive_session(target) as session:
        session.archive.set_recording_name(recording_id, name)
    if as_json:
        print_json({"recording_id": recording_id, "name": name})
    else:
        click.echo(f"(recordingId={recording_id}) has the name {printable(name)}" if name else "removed the name")


@click.command("list")
@archive_options
@click.option("--recording", "recording_id", type=RECORDING_ID, help="Only this recording.")
@click.option("--name", help="Only the recording with this name.")
@json_option
def list_command(*, target: Target, recording_id: int | None, name: str | None, as_json: bool) -> None:
    """List the recordings that have a name or metadata, or that continue an earlier recording."""
    with archive_session(target) as session:
        infos = session.archive.list_recording_info(recording_id=recording_id, name=name)
    if as_json:
        print_json([info_as_json(info) for info in infos])
        return
    click.echo("\n".join(aligned(_COLUMNS, [_cells(info) for info in infos], texts={"name"})))


def info_as_json(info: aeron.RecordingInfo) -> dict[str, object]:
    """Returns all fields of the information. Metadata are in Base64. A field without a value is null."""
    return {
        "recording_id": info.recording_id,
        "name": info.name,
        "metadata": base64.b64encode(info.metadata).decode(),
        "predecessor_id": info.predecessor_id,
        "gap_from": info.gap_from,
        "gap_to": info.gap_to,
    }


def _cells(info: aeron.RecordingInfo) -> tuple[str, ...]:
    numbers = (info.predecessor_id, info.gap_from, info.gap_to)
    texts = ["" if number is None else f"{number:,}" for number in numbers]
    return (str(info.recording_id), printable(info.name), f"{len(info.metadata):,}", *texts)
