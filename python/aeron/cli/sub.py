"""``aeron sub``: prints messages, with the texts of BasicSubscriber (docs/spec/06, 3.2 and 4.2)."""

from __future__ import annotations

import contextlib
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import click

import aeron
from aeron.cli.options import client_options, destination_option, linger_option, size, stream_options
from aeron.cli.sbe_text import sbe_option, schema_in, text_of
from aeron.cli.session import session
from aeron.cli.text import printable

if TYPE_CHECKING:
    from aeron.sbe import Schema

_FRAGMENT_LIMIT = 10

_MAX_IDLE_PARK_NS = 10_000_000
"""Longest park without messages, in nanoseconds. A poll every 10 ms costs less than 1 % of a core."""


@click.command("sub")
@stream_options
@client_options
@click.option(
    "-m", "--messages", type=click.IntRange(min=1), help="End after this number of messages.  [default: no limit]"
)
@click.option(
    "-L", "--length", type=size, default="16m", help="Show at most this number of bytes of a message.  [default: all]"
)
@sbe_option
@linger_option
@destination_option
def command(
    *,
    channel: str,
    stream_id: int,
    directory: str,
    embedded: bool,
    driver_timeout_s: float | None,
    messages: int | None,
    length: int,
    sbe: str | None,
    linger_s: float,
    destinations: tuple[str, ...],
) -> None:
    """Print the messages of a stream and the start and end of its images, until interrupted."""
    schema = None if sbe is None else schema_in(sbe)
    click.echo(f"Subscribing to channel {channel} on Stream ID {stream_id}")
    with session(directory, embedded, driver_timeout_s) as (client, stop):
        printer = _Printer(channel, stream_id, length, schema)
        subscription = client.add_subscription(
            channel,
            stream_id,
            on_available_image=printer.on_available_image,
            on_unavailable_image=printer.on_unavailable_image,
        )
        for destination in destinations:
            subscription.add_destination(destination)
        click.echo(f"Subscription channel status {subscription.channel_status}")
        resolved = subscription.try_resolve_channel_endpoint_port()
        if resolved not in (None, channel):
            click.echo(f"Subscribing to channel {resolved}")
        _receive(subscription, messages, printer, stop)
        stop.wait(linger_s)
        printer.print_images()
    click.echo("Shutting down...")


def _receive(
    subscription: aeron.Subscription, messages: int | None, printer: _Printer, stop: aeron.ShutdownSignalBarrier
) -> None:
    assembler = aeron.FragmentAssembler(printer.on_message)
    idle = aeron.BackoffIdleStrategy(max_idle_park_ns=_MAX_IDLE_PARK_NS)
    while not stop.is_signalled and (messages is None or printer.messages < messages):
        limit = _FRAGMENT_LIMIT if messages is None else min(_FRAGMENT_LIMIT, messages - printer.messages)
        idle(subscription.poll(assembler, limit))
        printer.print_images()


class _Printer:
    """Prints messages and image events in their order, although the client reports image events on another thread."""

    def __init__(self, channel: str, stream_id: int, length: int, schema: Schema | None) -> None:
        self._stream = f"{channel} streamId={stream_id}"
        self._length = length
        self._schema = schema
        self._images: SimpleQueue[tuple[int, str]] = SimpleQueue()
        self._announced: set[int] = set()
        self.messages = 0

    def on_available_image(self, image: aeron.Image) -> None:
        """Queues the start of an image. The client calls this method on another thread."""
        text = (
            f"Available image on {self._stream} sessionId={image.session_id} mtu={image.mtu_length} "
            f"term-length={image.term_buffer_length} from {printable(image.source_identity)}"
        )
        self._images.put((image.session_id, text))

    def on_unavailable_image(self, image: aeron.Image) -> None:
        """Queues the end of an image. The client calls this method on another thread."""
        text = f"Unavailable image on {self._stream} sessionId={image.session_id}"
        self._images.put((image.session_id, text))

    def on_message(self, payload: bytes, header: aeron.Header) -> None:
        """Prints a message, but first the start of its image. A poll calls this method."""
        self.print_images()
        with contextlib.suppress(Empty):
            while header.session_id not in self._announced:
                self._print_image(*self._images.get(timeout=1))
        self.messages += 1
        if self._schema is not None:
            text = text_of(self._schema, payload)
        else:
            text = printable(payload[: self._length].decode("utf-8", "backslashreplace"))
        click.echo(
            f"Message to stream {header.stream_id} from session {header.session_id} ({len(payload)} bytes) <<{text}>>"
        )

    def print_images(self) -> None:
        """Prints the image events that the client has reported."""
        with contextlib.suppress(Empty):
            while True:
                self._print_image(*self._images.get_nowait())

    def _print_image(self, session_id: int, text: str) -> None:
        self._announced ^= {session_id}
        click.echo(text)
