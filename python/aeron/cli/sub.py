"""``aeron sub``: prints what arrives, with the texts of BasicSubscriber (reference 06, 3.2 and 4.2)."""

from __future__ import annotations

import click

import aeron
from aeron.cli.options import client_options, linger_option, size, stream_options
from aeron.cli.session import session

_FRAGMENT_LIMIT = 10

_MAX_IDLE_PARK_NS = 10_000_000
"""After a while without messages: a look every 10 ms costs less than 1 % of a core."""


@click.command("sub")
@stream_options
@client_options
@click.option("-m", "--messages", type=click.IntRange(min=1), help="End after so many messages.  [default: run on]")
@click.option(
    "-L", "--length", type=size, default="16m", help="Show at most so many bytes of a message.  [default: all]"
)
@linger_option
def command(
    *,
    channel: str,
    stream_id: int,
    directory: str,
    embedded: bool,
    driver_timeout_s: float,
    messages: int | None,
    length: int,
    linger_s: float,
) -> None:
    """Print the messages of a stream, and the images that come and go, until interrupted."""
    click.echo(f"Subscribing to channel {channel} on Stream ID {stream_id}")
    with session(directory, embedded, driver_timeout_s) as (client, stop):

        def say(text: str) -> None:
            """For the client's dispatcher thread, on which nobody else would end the command at a closed pipe."""
            try:
                click.echo(text)
            except BrokenPipeError:
                stop.signal()

        subscription = client.add_subscription(
            channel,
            stream_id,
            on_available_image=lambda image: say(
                f"Available image on {channel} streamId={stream_id} sessionId={image.session_id} "
                f"mtu={image.mtu_length} term-length={image.term_buffer_length} from {image.source_identity}"
            ),
            on_unavailable_image=lambda image: say(
                f"Unavailable image on {channel} streamId={stream_id} sessionId={image.session_id}"
            ),
        )
        click.echo(f"Subscription channel status {subscription.channel_status}")
        _receive(subscription, messages, length, stop)
        stop.wait(linger_s)
    click.echo("Shutting down...")


def _receive(
    subscription: aeron.Subscription, messages: int | None, length: int, stop: aeron.ShutdownSignalBarrier
) -> None:
    received = 0

    def on_message(payload: bytes, header: aeron.Header) -> None:
        nonlocal received
        received += 1
        text = payload[:length].decode("utf-8", "backslashreplace")
        click.echo(
            f"Message to stream {header.stream_id} from session {header.session_id} ({len(payload)} bytes) <<{text}>>"
        )

    assembler = aeron.FragmentAssembler(on_message)
    idle = aeron.BackoffIdleStrategy(max_idle_park_ns=_MAX_IDLE_PARK_NS)
    while not stop.is_signalled and (messages is None or received < messages):
        limit = _FRAGMENT_LIMIT if messages is None else min(_FRAGMENT_LIMIT, messages - received)
        idle(subscription.poll(assembler, limit))
