"""``aeron archive mark-valid`` and ``mark-invalid``: change the state of a recording, as ArchiveTool does."""

from __future__ import annotations

import click

from aeron.cli.archive.files import RECORDING_ID, archive_argument, explained, json_option, open_files, print_json


@click.command("mark-valid")
@archive_argument
@click.argument("recording_id", type=RECORDING_ID)
@json_option
def mark_valid(*, directory: str, recording_id: int, as_json: bool) -> None:
    """Mark an INVALID recording as VALID again."""
    _mark(directory, recording_id, is_valid=True, as_json=as_json)


@click.command("mark-invalid")
@archive_argument
@click.argument("recording_id", type=RECORDING_ID)
@json_option
def mark_invalid(*, directory: str, recording_id: int, as_json: bool) -> None:
    """Mark a recording as INVALID. The archive then treats the recording as if it did not exist."""
    _mark(directory, recording_id, is_valid=False, as_json=as_json)


def _mark(directory: str, recording_id: int, *, is_valid: bool, as_json: bool) -> None:
    state = "VALID" if is_valid else "INVALID"
    with open_files(directory, write=True) as files, explained():
        is_changed = files.mark(recording_id, is_valid)
    if as_json:
        print_json({"recording_id": recording_id, "state": state, "changed": is_changed})
    elif is_changed:
        click.echo(f"(recordingId={recording_id}) changed state to {state}")
