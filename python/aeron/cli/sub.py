"""``aeron sub``: prints what arrives, with the texts of BasicSubscriber (reference 06, 3.2 and 4.2)."""

from __future__ import annotations

import signal
import time
from types import FrameType

import click

import aeron
from aeron.cli.options import client_options, connected, stream_options
from aeron.cli.pub import Ended


@click.command("sub")
@stream_options
@client_options
@click.option("-m", "--messages", type=click.IntRange(min=1), help="End after so many messages instead of running on.")
def command(
    *, channel: str, stream_id: int, directory: str, embedded: bool, driver_timeout_s: float, messages: int | None
) -> None:
    """Print the messages of a stream, and the images that come and go, until interrupted."""
    ended = Ended()
    stop = _StopSignal()
    click.echo(f"Subscribing to channel {channel} on Stream ID {stream_id}")
    with connected(directory, embedded, driver_timeout_s, ended.by_error) as client:
        try:
            subscription = client.add_subscription(
                channel,
                stream_id,
                on_available_image=lambda image: _available(channel, stream_id, image),
                on_unavailable_image=lambda image: click.echo(
                    f"Unavailable image on {channel} streamId={stream_id} sessionId={image.session_id}"
                ),
            )
        except aeron.AeronError as error:
            raise click.ClickException(str(error)) from error
        click.echo(f"Subscription channel status {subscription.channel_status}")
        _receive(subscription, messages, stop, ended)
    ended.raise_error()
    click.echo("Shutting down...")


class _StopSignal:
    """SIGINT and SIGTERM as a flag, so that a message being printed is printed whole."""

    def __init__(self) -> None:
        self.is_set = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._set)

    def _set(self, _number: int, _frame: FrameType | None) -> None:
        self.is_set = True


def _receive(subscription: aeron.Subscription, messages: int | None, stop: _StopSignal, ended: Ended) -> None:
    received = 0

    def on_message(payload: bytes, header: aeron.Header) -> None:
        nonlocal received
        received += 1
        text = payload.decode("utf-8", "backslashreplace")
        click.echo(
            f"Message to stream {header.stream_id} from session {header.session_id} ({len(payload)} bytes) <<{text}>>"
        )

    assembler = aeron.FragmentAssembler(on_message)
    while not stop.is_set and not ended.wait(0) and (messages is None or received < messages):
        limit = 10 if messages is None else min(10, messages - received)
        if subscription.poll(assembler, limit) == 0:
            time.sleep(0.001)


def _available(channel: str, stream_id: int, image: aeron.Image) -> None:
    click.echo(
        f"Available image on {channel} streamId={stream_id} sessionId={image.session_id} mtu={image.mtu_length} "
        f"term-length={image.term_buffer_length} from {image.source_identity}"
    )
