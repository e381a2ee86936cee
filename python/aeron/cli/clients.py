"""``aeron clients``: the clients of a driver, and what they own."""

from __future__ import annotations

import dataclasses
import json

import click

import aeron
from aeron import metrics
from aeron.cli.options import directory_option
from aeron.cli.table import aligned
from aeron.cli.text import printable, printable_lines

_COLUMNS = ("id", "name", "version", "commit", "heartbeat age ms", "publications", "images", "counters")
_TEXTS = frozenset({"name", "version", "commit"})


@click.command("clients")
@directory_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def command(*, directory: str, as_json: bool) -> None:
    """Show the clients of a driver: name, version, age of the heartbeat, and the numbers of what they own."""
    try:
        clients = metrics.snapshot(directory).clients
    except (aeron.AeronError, OSError) as error:
        raise click.ClickException(printable_lines(str(error)).rstrip()) from error
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(each) for each in clients], indent=2))
        return
    rows = [tuple(printable(str(value)) for value in dataclasses.astuple(each)) for each in clients]
    click.echo("\n".join(aligned(_COLUMNS, rows, texts=_TEXTS)))
