"""``aeron ping``: measures round trips to ``aeron pong``, with the texts of the C sample (docs/spec/06, section 5)."""

from __future__ import annotations

import struct
import time

import click

import aeron
from aeron.cli.histogram import Histogram
from aeron.cli.options import check_message_length, client_options, ping_pong_options, size
from aeron.cli.session import Publication, add_publication, session

_TIMESTAMP = struct.Struct("<q")


@click.command("ping")
@ping_pong_options
@client_options
@click.option(
    "-m",
    "--messages",
    type=click.IntRange(min=0),
    default=10_000_000,
    show_default=True,
    help="Number of round trips to measure.",
)
@click.option(
    "-w",
    "--warm-up",
    type=click.IntRange(min=0),
    default=100_000,
    show_default=True,
    help="Number of round trips before the measurement.",
)
@click.option(
    "-L",
    "--length",
    type=size,
    default="32",
    show_default=True,
    help="Length of a message in bytes, at least 8 for the time of sending. May have the suffix k, m or g.",
)
@click.option("--exclusive", is_flag=True, help="Use an exclusive publication.")
def command(
    *,
    ping_channel: str,
    ping_stream_id: int,
    pong_channel: str,
    pong_stream_id: int,
    directory: str,
    embedded: bool,
    driver_timeout_s: float | None,
    messages: int,
    warm_up: int,
    length: int,
    exclusive: bool,
) -> None:
    """Send messages to a pong, one at a time, and show the distribution of round-trip times."""
    if length < _TIMESTAMP.size:
        raise click.UsageError(f"a message of {length} bytes has no room for its time, which takes {_TIMESTAMP.size}")
    click.echo(f"Publishing Ping at channel {ping_channel} on Stream ID {ping_stream_id}")
    click.echo(f"Subscribing Pong at channel {pong_channel} on Stream ID {pong_stream_id}")
    with session(directory, embedded, driver_timeout_s) as (client, stop):
        subscription = client.add_subscription(pong_channel, pong_stream_id)
        publication = add_publication(client, ping_channel, ping_stream_id, exclusive)
        click.echo(f"Publication channel status {publication.channel_status}")
        click.echo(f"Subscription channel status {subscription.channel_status}")
        check_message_length(length, publication)
        pinger = _Pinger(publication, subscription, length, stop)
        pinger.await_pong()
        click.echo(f"Warming up the media driver with {warm_up} messages of length {length} bytes")
        start_ns = time.perf_counter_ns()
        pinger.ping(warm_up)
        click.echo(f"Warm up complete in {time.perf_counter_ns() - start_ns}ns")
        click.echo(f"Pinging {messages} messages of length {length} bytes")
        histogram = pinger.ping(messages)
    click.echo("\n".join(histogram.render()))
    click.echo("Shutting down...")


class _Pinger:
    """Sends one message at a time, and waits for its pong before it sends the next one."""

    def __init__(
        self,
        publication: Publication,
        subscription: aeron.Subscription,
        length: int,
        stop: aeron.ShutdownSignalBarrier,
    ) -> None:
        self._publication = publication
        self._subscription = subscription
        self._stop = stop
        self._message = bytearray(length)
        self._idle = aeron.YieldingIdleStrategy()
        self._assembler = aeron.FragmentAssembler(self._on_message)
        self._histogram = Histogram()
        self._answered = 0

    def await_pong(self) -> None:
        """Waits until both directions are connected."""
        while not (self._publication.is_connected and self._subscription.is_connected):
            if self._stop.wait(0.001):
                return

    def ping(self, count: int) -> Histogram:
        """Makes ``count`` round trips, or fewer if the command must end. Returns their durations."""
        self._histogram = Histogram()
        for _ in range(count):
            self._answered = 0
            _TIMESTAMP.pack_into(self._message, 0, time.perf_counter_ns())
            while not self._publication.offer(self._message):
                if self._is_over():
                    return self._histogram
            while not self._answered:
                if not self._subscription.poll(self._assembler) and self._is_over():
                    return self._histogram
        return self._histogram

    def _on_message(self, payload: bytes, _: aeron.Header) -> None:
        (sent_ns,) = _TIMESTAMP.unpack_from(payload)
        self._histogram.record(time.perf_counter_ns() - sent_ns)
        self._answered += 1

    def _is_over(self) -> bool:
        """Idles once. Returns whether the command must end."""
        self._idle()
        if self._stop.is_signalled:
            return True
        if not self._subscription.is_connected and not self._subscription.is_closed:
            raise click.ClickException("the pong has gone away")
        return False
