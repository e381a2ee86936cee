"""``aeron archive record``: a running archive records a stream while the command runs, or longer (``--detach``)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import click

from aeron.cli.archive.files import RECORDING_ID, json_option
from aeron.cli.archive.live import ArchiveSession, Target, archive_options, archive_session, signal_as_json, signal_line
from aeron.cli.options import stream_options

if TYPE_CHECKING:
    from aeron.types import SourceLocation


@click.command("record")
@stream_options
@archive_options
@click.option(
    "--source",
    type=click.Choice(["LOCAL", "REMOTE"]),
    default="LOCAL",
    show_default=True,
    help="LOCAL: spy on a publication of the archive's driver. REMOTE: subscribe to the channel.",
)
@click.option(
    "--on-failure",
    type=click.Choice(["block", "release"]),
    help="After a failure of the recording: block the publisher, or read and drop the rest. Default: the setting of "
    "the archive.",
)
@click.option("--extend", "extended_id", type=RECORDING_ID, help="Continue this recording.")
@click.option("--detach", is_flag=True, help="End at once. The archive continues to record.")
@click.option("--recordings", type=click.IntRange(min=1), help="End after this number of recordings has stopped.")
@json_option
def record(
    *,
    target: Target,
    channel: str,
    stream_id: int,
    source: SourceLocation,
    on_failure: Literal["block", "release"] | None,
    extended_id: int | None,
    detach: bool,
    recordings: int | None,
    as_json: bool,
) -> None:
    """Record a channel and stream with a running archive, and print the start and stop of recordings.

    When the command ends, the archive stops recording the stream, except with --detach.
    """
    with archive_session(target) as session:
        if extended_id is None:
            subscription_id = session.archive.start_recording(channel, stream_id, source=source, on_failure=on_failure)
        else:
            subscription_id = session.archive.extend_recording(
                extended_id, channel, stream_id, source=source, on_failure=on_failure
            )
        if as_json:
            click.echo(json.dumps({"subscription_id": subscription_id, "channel": channel, "stream_id": stream_id}))
        else:
            click.echo(f"Recording channel {channel} on Stream ID {stream_id}, subscription {subscription_id}")
        if detach:
            return
        try:
            _print_signals(session, subscription_id, recordings, as_json)
        finally:
            if not session.archive.is_closed:
                _stop(session, subscription_id, as_json)


def _print_signals(session: ArchiveSession, subscription_id: int, recordings: int | None, as_json: bool) -> None:
    stopped = 0
    for signal in session.signals():
        if signal.subscription_id != subscription_id:
            continue
        click.echo(signal_as_json(signal) if as_json else signal_line(signal))
        stopped += signal.signal == "STOP"
        if stopped == recordings:
            return


def _stop(session: ArchiveSession, subscription_id: int, as_json: bool) -> None:
    """Stops the recording, and prints the signals that follow."""
    if not session.archive.try_stop_recording(subscription_id):
        return
    for signal in session.archive.signals(timeout=0.1):
        if signal.subscription_id == subscription_id:
            click.echo(signal_as_json(signal) if as_json else signal_line(signal))
