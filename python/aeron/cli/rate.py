"""``aeron rate``: RateSubscriber, and with ``--publish`` StreamingPublisher (docs/spec/06, 4.5 and 4.6)."""

from __future__ import annotations

import time

import click
import numpy as np

import aeron
from aeron.cli.options import check_message_length, client_options, linger_option, size, stream_options
from aeron.cli.session import Publication, add_publication, session

_REPORT_INTERVAL_S = 1.0
_BATCH_BYTES = 64 * 1024
_MAX_IDLE_PARK_NS = 10_000_000


@click.command("rate")
@stream_options
@client_options
@click.option("--publish", is_flag=True, help="Send at full rate, instead of receiving.")
@click.option(
    "-m",
    "--messages",
    type=click.IntRange(min=1),
    show_default="10,000,000 to send, unlimited to receive",
    help="End after this number of messages.",
)
@click.option(
    "-L",
    "--length",
    type=size,
    default="32",
    show_default=True,
    help="Length of a sent message in bytes. May have the suffix k, m or g.",
)
@click.option("--exclusive", is_flag=True, help="Send through an exclusive publication.")
@linger_option
def command(
    *,
    channel: str,
    stream_id: int,
    directory: str,
    embedded: bool,
    driver_timeout_s: float | None,
    publish: bool,
    messages: int | None,
    length: int,
    exclusive: bool,
    linger_s: float,
) -> None:
    """Show every second the number of messages and bytes that arrived from a stream, or that were sent."""
    if publish:
        messages = messages or 10_000_000
        click.echo(
            f"Streaming {messages} messages of payload length {length} bytes to {channel} on stream id {stream_id}"
        )
    else:
        click.echo(f"Subscribing to channel {channel} on Stream ID {stream_id}")
    with session(directory, embedded, driver_timeout_s) as (client, stop):
        if messages is not None and publish:
            publication = add_publication(client, channel, stream_id, exclusive)
            click.echo(f"Publication channel status {publication.channel_status}")
            check_message_length(length, publication)
            _send(publication, messages, length, stop)
            if linger_s > 0 and not stop.is_signalled:
                click.echo(f"Lingering for {round(linger_s * 1e9)} nanoseconds")
        else:
            subscription = client.add_subscription(channel, stream_id)
            click.echo(f"Subscription channel status {subscription.channel_status}")
            _receive(subscription, messages, stop)
        stop.wait(linger_s)
    click.echo("Shutting down...")


class Rates:
    """Prints the rate of messages and bytes, each second and at the end."""

    def __init__(self) -> None:
        self._start_s = self._last_s = time.perf_counter()
        self._last_messages = self._last_bytes = 0
        self.messages = self.bytes = 0

    def add(self, messages: int, length: int) -> None:
        """Counts messages of `length` bytes in all."""
        self.messages += messages
        self.bytes += length

    def report_when_due(self) -> None:
        """Prints the rate since the last report, if a second has passed."""
        now_s = time.perf_counter()
        if now_s - self._last_s >= _REPORT_INTERVAL_S:
            duration_s, self._last_s = now_s - self._last_s, now_s
            messages, self._last_messages = self.messages - self._last_messages, self.messages
            length, self._last_bytes = self.bytes - self._last_bytes, self.bytes
            click.echo(self._line(duration_s, messages, length))

    def report_total(self) -> None:
        """Prints the rate since the start."""
        click.echo(f"Total: {self._line(time.perf_counter() - self._start_s, self.messages, self.bytes)}")

    def _line(self, duration_s: float, messages: int, length: int) -> str:
        return (
            f"{duration_s * 1000:.0f}ms, {messages / duration_s:.4g} msgs/sec, {length / duration_s:.4g} bytes/sec, "
            f"totals {self.messages} messages {self.bytes // (1 << 20)} MB payloads"
        )


def _receive(subscription: aeron.Subscription, messages: int | None, stop: aeron.ShutdownSignalBarrier) -> None:
    rates, polls, failed = Rates(), 0, 0
    idle = aeron.BackoffIdleStrategy(max_idle_park_ns=_MAX_IDLE_PARK_NS)
    while not stop.is_signalled and (messages is None or rates.messages < messages):
        limit = 4096 if messages is None else min(4096, messages - rates.messages)
        batch = subscription.poll_batch(limit)
        polls += 1
        failed += len(batch) == 0
        rates.add(len(batch), batch.payload.nbytes)
        rates.report_when_due()
        idle(len(batch))
    click.echo(f"Subscriber poll failure ratio {failed / max(polls, 1):g}")
    if messages is not None:
        rates.report_total()


def _send(
    publication: Publication,
    messages: int,
    length: int,
    stop: aeron.ShutdownSignalBarrier,
) -> None:
    batch = np.zeros((max(_BATCH_BYTES // max(length, 1), 1), length), dtype=np.uint8)
    while not publication.is_connected:
        if stop.wait(0.001):
            return
    rates, failed = Rates(), 0
    idle = aeron.YieldingIdleStrategy()
    while rates.messages < messages and not stop.is_signalled:
        offered = min(len(batch), messages - rates.messages)
        sent = publication.offer_batch(batch[:offered])
        rates.add(sent, sent * length)
        rates.report_when_due()
        failed += sent < offered
        idle(sent)
    click.echo("Done sending.")
    click.echo(f"Publisher back pressure ratio {failed / messages:g}")
    rates.report_total()
