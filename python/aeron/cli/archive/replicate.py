"""``aeron archive replicate``: a running archive copies a recording of another archive."""

from __future__ import annotations

import json
import time

import click

import aeron
from aeron.cli.archive.copying import Source, follow
from aeron.cli.archive.files import RECORDING_ID, json_option
from aeron.cli.archive.live import ArchiveSession, Target, archive_options, archive_session, signal_as_json, signal_line
from aeron.cli.options import STREAM_ID
from aeron.cli.text import printable_lines

NO_RECORDING = -1
"""Recording id in the signal of a replication that has no recording yet."""

_ERROR_TIMEOUT_S = 1.0


@click.command("replicate")
@click.argument("src_recording_id", type=RECORDING_ID)
@click.argument("src_control_channel", metavar="SRC_CONTROL_CHANNEL")
@archive_options
@click.option(
    "--src-control-stream",
    "src_control_stream_id",
    type=STREAM_ID,
    default=10,
    show_default=True,
    help="Stream id for requests to the other archive.",
)
@click.option("--src-response-channel", metavar="URI", help="Channel for responses of the other archive.")
@click.option(
    "--src-credentials",
    envvar="AERON_ARCHIVE_SRC_CREDENTIALS",
    show_envvar=True,
    help="Credentials for the other archive.",
)
@click.option("--into", "dst_recording_id", type=RECORDING_ID, help="Continue this recording.  [default: a new one]")
@click.option("--to", "stop_position", type=click.IntRange(0, 2**63 - 1), help="Position to end at.")
@click.option(
    "--live-destination", metavar="URI", help="Channel of the live stream. The copy follows it after catching up."
)
@click.option("--replication-channel", metavar="URI", help="Channel on which the other archive replays the recording.")
@click.option("--detach", is_flag=True, help="End at once. The archive continues to replicate.")
@click.option(
    "--follow",
    "is_followed",
    is_flag=True,
    help="Continue the copy that the archive already has, and try again after errors, until the copy is complete.",
)
@json_option
def replicate(
    *,
    target: Target,
    src_recording_id: int,
    src_control_channel: str,
    src_control_stream_id: int,
    src_response_channel: str | None,
    src_credentials: str | None,
    dst_recording_id: int | None,
    stop_position: int | None,
    live_destination: str | None,
    replication_channel: str | None,
    detach: bool,
    is_followed: bool,
    as_json: bool,
) -> None:
    """Copy a recording of another archive to a running archive. SRC_CONTROL_CHANNEL is the channel for requests to
    the other archive.

    The command ends when the replication ends. Interrupting the command stops the replication.

    With --follow the command can be given again at any time: it finds the copy of the recording and continues the
    copy. The command shows its progress. It ends when the recording has stopped and is copied completely.
    """
    if is_followed:
        if detach or live_destination is not None:
            raise click.UsageError("--follow cannot be given with --detach or --live-destination")
        source = Source(
            src_recording_id,
            src_control_channel,
            src_control_stream_id,
            src_response_channel,
            None if src_credentials is None else src_credentials.encode(),
            replication_channel,
            stop_position,
        )
        follow(target, source, dst_recording_id, as_json=as_json)
        return
    with archive_session(target) as session:
        replication_id = session.archive.replicate(
            src_recording_id,
            src_control_channel,
            src_control_stream_id,
            stop_position=stop_position,
            dst_recording_id=dst_recording_id,
            live_destination=live_destination,
            replication_channel=replication_channel,
            src_response_channel=src_response_channel,
            encoded_credentials=None if src_credentials is None else src_credentials.encode(),
        )
        if as_json:
            click.echo(json.dumps({"replication_id": replication_id}))
        else:
            click.echo(f"Replication {replication_id} of recording {src_recording_id} from {src_control_channel}")
        if detach:
            return
        for signal in session.signals():
            if signal.correlation_id != replication_id:
                continue
            click.echo(signal_as_json(signal) if as_json else signal_line(signal))
            if signal.signal == "REPLICATE_END":
                _check(session, signal)
                return
        session.archive.try_stop_replication(replication_id)


def _check(session: ArchiveSession, end: aeron.RecordingSignal) -> None:
    """Raises an exception if an error ended the replication. The error may arrive after the signal
    ``REPLICATE_END``."""
    deadline = time.monotonic() + (_ERROR_TIMEOUT_S if end.recording_id == NO_RECORDING else 0)
    while not session.errors and time.monotonic() < deadline:
        session.archive.poll()
        time.sleep(0.01)
    if session.errors:
        raise click.ClickException(printable_lines(str(session.errors[0])))
    if end.recording_id == NO_RECORDING:
        raise click.ClickException("the replication ended before there was a recording")
