"""``aeron pub``: messages at a steady interval, with the texts of BasicPublisher (reference 06, 3.2 and 4.1)."""

from __future__ import annotations

import threading
import time

import click

import aeron
from aeron.cli.options import SIZE, client_options, connected, stream_options


@click.command("pub")
@stream_options
@client_options
@click.option(
    "-m", "--messages", type=click.IntRange(min=0), default=10_000_000, show_default=True, help="How many to send."
)
@click.option(
    "-L", "--length", type=SIZE, default=32, show_default=True, help="Least length of a message in bytes, space padded."
)
@click.option("-f", "--fill-mtu", is_flag=True, help="Messages as long as fit one frame; wins over --length.")
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="Seconds between messages.",
)
@click.option(
    "--linger",
    "linger_s",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="Seconds to stay after the last message.",
)
@click.option("--exclusive", is_flag=True, help="Use an exclusive publication.")
def command(
    *,
    channel: str,
    stream_id: int,
    directory: str,
    embedded: bool,
    driver_timeout_s: float,
    messages: int,
    length: int,
    fill_mtu: bool,
    interval_s: float,
    linger_s: float,
    exclusive: bool,
) -> None:
    """Publish 'Hello World! <n>' at a steady interval and say what became of each message."""
    ended = Ended()
    click.echo(f"Publishing to channel {channel} on Stream ID {stream_id}")
    with connected(directory, embedded, driver_timeout_s, ended.by_error) as client:
        add = client.add_exclusive_publication if exclusive else client.add_publication
        try:
            publication = add(channel, stream_id)
        except aeron.AeronError as error:
            raise click.ClickException(str(error)) from error
        click.echo(f"Publication channel status {publication.channel_status}")
        if fill_mtu:
            length = publication.max_payload_length
            click.echo(f"Using message of {length} bytes")
        _publish(publication, messages, length, interval_s, ended)
        ended.raise_error()
        click.echo("Done sending.")
        if linger_s > 0:
            click.echo(f"Lingering for {round(linger_s * 1e9)} nanoseconds")
            time.sleep(linger_s)
    ended.raise_error()


class Ended:
    """How a client ends before its work is done: what its error handler was told."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._error: BaseException | None = None

    def by_error(self, error: BaseException) -> None:
        """An error handler that keeps the first fatal error."""
        click.echo(f"ERROR: {error}", err=True)
        if self._error is None and isinstance(error, _FATAL):
            self._error = error
            self._event.set()

    def wait(self, seconds: float) -> bool:
        """Waits, and answers early with ``True`` when the client has ended."""
        return self._event.wait(seconds)

    def raise_error(self) -> None:
        """Ends the command with status 1 when the client has ended; its text was printed already."""
        if self._error is not None:
            raise SystemExit(1)


def _publish(
    publication: aeron.Publication | aeron.ExclusivePublication,
    messages: int,
    length: int,
    interval_s: float,
    ended: Ended,
) -> None:
    for number in range(messages):
        message = f"Hello World! {number}".encode().ljust(length)
        click.echo(f"offering {number}/{messages} - {_offer(publication, message)}")
        if not publication.is_connected:
            click.echo("No active subscribers detected")
        if publication.is_closed or ended.wait(interval_s if number + 1 < messages else 0):
            return


def _offer(publication: aeron.Publication | aeron.ExclusivePublication, message: bytes) -> str:
    try:
        result = publication.offer(message)
    except aeron.PublicationClosedError:
        return "Offer failed because publication is closed"
    except aeron.MaxPositionExceededError:
        return "Offer failed due to publication reaching its max position"
    except aeron.AeronError as error:
        raise click.ClickException(str(error)) from error
    return "yay!" if result else _FAILURES[int(result)]


_FATAL = (aeron.DriverTimeoutError, aeron.ClientTimeoutError, aeron.ConductorServiceTimeoutError)
"""What a client does not survive."""

_FAILURES = {
    int(aeron.NOT_CONNECTED): "Offer failed because publisher is not connected to a subscriber",
    int(aeron.BACK_PRESSURED): "Offer failed due to back pressure",
    int(aeron.ADMIN_ACTION): "Offer failed because of an administration action in the system",
}
