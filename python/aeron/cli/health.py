"""``aeron health``: whether a driver and an archive live and are ready, for the probes of a supervisor."""

from __future__ import annotations

import dataclasses
import json
import os

import click

import aeron
from aeron._health import MIN_FREE_BYTES, MIN_FREE_COUNTERS
from aeron.cli.text import printable


@click.command("health")
@click.option("--dir", "directory", help="Directory of the driver.  [default: the archive's, or AERON_DIR]")
@click.option("--archive", metavar="DIRECTORY", help="Directory of an archive that must live too.")
@click.option("--stream", "streams", multiple=True, metavar="CHANNEL,ID", help="A stream that must be connected.")
@click.option(
    "--recording", "recordings", multiple=True, type=int, metavar="ID", help="A recording that must be active."
)
@click.option("--max-lag", type=click.IntRange(min=0), metavar="BYTES", help="How far readers may lag.")
@click.option(
    "--min-free", type=click.IntRange(min=0), default=MIN_FREE_BYTES, show_default=True, help="Bytes of free space."
)
@click.option(
    "--min-counters",
    type=click.IntRange(min=0),
    default=MIN_FREE_COUNTERS,
    show_default=True,
    help="Number of counters with room.",
)
@click.option("--live", is_flag=True, help="Check only whether driver and archive live.")
@click.option("--deep", is_flag=True, help="Also connect as a client, and add a counter and free it.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def command(
    *,
    directory: str | None,
    archive: str | None,
    streams: tuple[str, ...],
    recordings: tuple[int, ...],
    max_lag: int | None,
    min_free: int,
    min_counters: int,
    live: bool,
    deep: bool,
    as_json: bool,
) -> None:
    """Check whether a driver is ready. Exit status 0 if it is, or else 1, and one line for each reason.

    --live checks only heartbeats: a supervisor should restart a process that is not live, and send no work to one that
    is not ready. --max-lag applies to the named streams and recordings, or to all if none is named.
    """
    try:
        result = aeron.health(
            directory or (os.environ.get("AERON_DIR") if archive is None else None),
            archive=archive,
            streams=[_stream(text) for text in streams],
            recordings=recordings,
            max_lag=max_lag,
            min_free_bytes=0 if live else min_free,
            min_free_counters=0 if live else min_counters,
            deep=deep and not live,
        )
    except aeron.AeronError as error:
        raise click.UsageError(str(error)) from error
    is_good = result.is_live if live else result.is_ready
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(result), indent=2))
    elif is_good:
        click.echo("live" if live else "ready")
    else:
        click.echo("\n".join(printable(reason) for reason in result.reasons))
    raise SystemExit(0 if is_good else 1)


def _stream(text: str) -> tuple[str, int]:
    channel, separator, id = text.rpartition(",")
    if not separator or not id.removeprefix("-").isdecimal():
        raise click.UsageError(f"'--stream={text}' is not of the form CHANNEL,ID, such as aeron:ipc,1001")
    return channel, int(id)
