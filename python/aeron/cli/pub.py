"""``aeron pub``: publishes messages at a steady interval, with the texts of BasicPublisher (docs/spec/06, 3.2 and
4.1)."""

from __future__ import annotations

import click

import aeron
from aeron.cli.options import (
    LONGEST_S,
    Number,
    check_message_length,
    client_options,
    destination_option,
    linger_option,
    size,
    stream_options,
)
from aeron.cli.session import Publication, add_publication, session


@click.command("pub")
@stream_options
@client_options
@click.option(
    "-m",
    "--messages",
    type=click.IntRange(min=0),
    default=10_000_000,
    show_default=True,
    help="Number of messages to send.",
)
@click.option(
    "-L",
    "--length",
    type=size,
    default="32",
    show_default=True,
    help="Minimum length of a message in bytes; spaces fill it. May have the suffix k, m or g.",
)
@click.option(
    "-f", "--fill-mtu", is_flag=True, help="Send the longest messages that fit one frame. Overrides --length."
)
@click.option(
    "--interval",
    "interval_s",
    type=Number(min=0, max=LONGEST_S),
    default=1.0,
    show_default=True,
    help="Seconds between messages.",
)
@linger_option
@destination_option
@click.option("--exclusive", is_flag=True, help="Use an exclusive publication.")
def command(
    *,
    channel: str,
    stream_id: int,
    directory: str,
    embedded: bool,
    driver_timeout_s: float | None,
    messages: int,
    length: int,
    fill_mtu: bool,
    interval_s: float,
    linger_s: float,
    exclusive: bool,
    destinations: tuple[str, ...],
) -> None:
    """Publish 'Hello World! N' at a steady interval, and print the result of each offer."""
    click.echo(f"Publishing to channel {channel} on Stream ID {stream_id}")
    with session(directory, embedded, driver_timeout_s) as (client, stop):
        publication = add_publication(client, channel, stream_id, exclusive)
        for destination in destinations:
            publication.add_destination(destination)
        click.echo(f"Publication channel status {publication.channel_status}")
        if fill_mtu:
            length = publication.max_payload_length
            click.echo(f"Using message of {length} bytes")
        check_message_length(length, publication)
        _await_window(publication, stop)
        _publish(publication, messages, length, interval_s, stop)
        if not stop.is_signalled:
            click.echo("Done sending.")
        if not stop.is_signalled and linger_s > 0:
            click.echo(f"Lingering for {round(linger_s * 1e9)} nanoseconds")
            stop.wait(linger_s)
        interrupted = stop.is_signalled
    if interrupted:
        click.echo("Shutting down...")


def _await_window(publication: Publication, stop: aeron.ShutdownSignalBarrier) -> None:
    """Waits a moment for subscribers that already exist, so that they miss no message."""
    for _ in range(100):
        if publication.available_window > 0 or stop.wait(0.001):
            return


def _publish(
    publication: Publication, messages: int, length: int, interval_s: float, stop: aeron.ShutdownSignalBarrier
) -> None:
    for number in range(messages):
        if number and stop.wait(interval_s):
            return
        message = f"Hello World! {number}".encode().ljust(length)
        click.echo(f"offering {number}/{messages} - {_offer(publication, message)}")
        if publication.is_closed:
            return
        if not publication.is_connected:
            click.echo("No active subscribers detected")


def _offer(publication: Publication, message: bytes) -> str:
    try:
        result = publication.offer(message)
    except aeron.PublicationClosedError:
        return "Offer failed because publication is closed"
    except aeron.MaxPositionExceededError:
        return "Offer failed due to publication reaching its max position"
    return "yay!" if result else _FAILURES[int(result)]


_FAILURES = {
    int(aeron.NOT_CONNECTED): "Offer failed because publisher is not connected to a subscriber",
    int(aeron.BACK_PRESSURED): "Offer failed due to back pressure",
    int(aeron.ADMIN_ACTION): "Offer failed because of an administration action in the system",
}
