"""``aeron loss``: the losses of a driver's images, in the form of LossStat (docs/spec/06, section 1.4)."""

from __future__ import annotations

import json

import click

import aeron
from aeron.cli.options import directory_option
from aeron.cli.text import printable
from aeron.cli.timestamps import local_time

_HEADER = (
    "OBSERVATION_COUNT, TOTAL_BYTES_LOST, FIRST_OBSERVATION,LAST_OBSERVATION, SESSION_ID, STREAM_ID, CHANNEL, SOURCE"
)


@click.command("loss")
@directory_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def command(*, directory: str, as_json: bool) -> None:
    """Show the streams that a driver has received with gaps: number of gaps, bytes, first and last time."""
    try:
        losses = aeron.read_loss_report(directory)
    except OSError as error:
        raise click.ClickException(f"Loss report does not exist: {directory}/loss-report.dat") from error
    if as_json:
        click.echo(json.dumps([_as_json(loss) for loss in losses], indent=2))
        return
    click.echo(_HEADER)
    for loss in losses:
        first, last = local_time(loss.first_observation_ms), local_time(loss.last_observation_ms)
        click.echo(
            f"{loss.observation_count},{loss.total_bytes_lost},{first},{last},"
            f"{loss.session_id},{loss.stream_id},{printable(loss.channel)},{printable(loss.source)}"
        )
    click.echo(f"{len(losses)} entries read")


def _as_json(loss: aeron.LossObservation) -> dict[str, object]:
    return {
        "observation_count": loss.observation_count,
        "total_bytes_lost": loss.total_bytes_lost,
        "first_observation_ms": loss.first_observation_ms,
        "last_observation_ms": loss.last_observation_ms,
        "session_id": loss.session_id,
        "stream_id": loss.stream_id,
        "channel": loss.channel,
        "source": loss.source,
    }
