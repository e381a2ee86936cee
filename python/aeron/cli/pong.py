"""``aeron pong``: sends each message of ``aeron ping`` back (docs/spec/06, section 5)."""

from __future__ import annotations

import click

import aeron
from aeron.cli.options import client_options, ping_pong_options
from aeron.cli.session import Publication, add_publication, session

_MAX_IDLE_PARK_NS = 10_000_000


@click.command("pong")
@ping_pong_options
@client_options
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
    exclusive: bool,
) -> None:
    """Send every message back unchanged, until interrupted."""
    click.echo(f"Subscribing Ping at channel {ping_channel} on Stream ID {ping_stream_id}")
    click.echo(f"Publishing Pong at channel {pong_channel} on Stream ID {pong_stream_id}")
    with session(directory, embedded, driver_timeout_s) as (client, stop):
        subscription = client.add_subscription(ping_channel, ping_stream_id)
        publication = add_publication(client, pong_channel, pong_stream_id, exclusive)
        click.echo(f"Subscription channel status {subscription.channel_status}")
        click.echo(f"Publication channel status {publication.channel_status}")
        _answer(subscription, publication, stop)
    click.echo("Shutting down...")


def _answer(
    subscription: aeron.Subscription,
    publication: Publication,
    stop: aeron.ShutdownSignalBarrier,
) -> None:
    def send_back(payload: bytes, _: aeron.Header) -> None:
        while publication.offer(payload) in _TRY_AGAIN and not stop.is_signalled:
            busy()

    busy = aeron.YieldingIdleStrategy()
    # The strategy spins and yields for a long time before it sleeps, because a sleep between pings would be part of the
    # measured time.
    idle = aeron.BackoffIdleStrategy(max_spins=1000, max_yields=10_000, max_idle_park_ns=_MAX_IDLE_PARK_NS)
    assembler = aeron.FragmentAssembler(send_back)
    while not stop.is_signalled:
        idle(subscription.poll(assembler))


_TRY_AGAIN = (aeron.BACK_PRESSURED, aeron.ADMIN_ACTION)
