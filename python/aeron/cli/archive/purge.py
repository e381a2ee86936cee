"""``aeron archive purge``: a running archive deletes a recording, or its first segments."""

from __future__ import annotations

import click

from aeron.cli.archive.files import RECORDING_ID, confirmed, json_option, print_json, yes_option
from aeron.cli.archive.live import Target, archive_options, archive_session


@click.command("purge")
@click.argument("recording_id", type=RECORDING_ID)
@archive_options
@click.option(
    "--before",
    type=click.IntRange(0, 2**63 - 1),
    metavar="POSITION",
    help="Delete only the segments before this position, which must be the start of a segment.",
)
@yes_option
@json_option
def purge(*, target: Target, recording_id: int, before: int | None, yes: bool, as_json: bool) -> None:
    """Delete the recording RECORDING_ID of a running archive, or with --before its first segments.

    Without --before, the recording must not be active. A deletion cannot be undone.
    """
    with archive_session(target) as session:
        recording = session.archive.list_recording(recording_id)
        if recording is None:
            raise click.ClickException(f"no recording found with recordingId: {recording_id}")
        what = "will be deleted" if before is None else f"will lose all data before position {before}"
        warning = f"Recording {recording_id} of {recording.original_channel}, stream {recording.stream_id}, {what}."
        if not confirmed(warning, yes):
            return
        if before is None:
            count = session.archive.purge_recording(recording_id)
        else:
            count = session.archive.purge_segments(recording_id, before)
    if as_json:
        print_json({"recording_id": recording_id, "segments": count})
    else:
        click.echo(f"(recordingId={recording_id}) deleted {count} segment files")
