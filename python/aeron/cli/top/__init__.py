"""``aeron top``: a live view of a driver on the whole screen, or its snapshot once.

Rows, rates, sorting and filtering (`series`, `rows`, `views`, `watch`) need no terminal. `app` shows them with the
library textual, which only the live view imports.
"""

from __future__ import annotations

import json
import sys

import click

import aeron
from aeron import metrics
from aeron.cli.options import LONGEST_S, directory_option
from aeron.cli.text import printable_lines


@click.command("top")
@directory_option
@click.option("--once", is_flag=True, help="Print the views once and end. Needs no textual.")
@click.option("--json", "as_json", is_flag=True, help="With --once: print the snapshot as one JSON object.")
@click.option(
    "-u",
    "--update-period",
    "period_ms",
    type=click.IntRange(min=100, max=1000 * LONGEST_S),
    default=1000,
    show_default=True,
    help="Milliseconds between updates.",
)
def command(*, directory: str, once: bool, as_json: bool, period_ms: int) -> None:
    """Show streams, readers, clients, recordings and errors of a driver until q, Ctrl-C or SIGTERM.

    The view reads files and is no client of the driver. It goes on when the driver is restarted.
    """
    if once or as_json:
        _print_once(directory, as_json)
        return
    try:
        from aeron.cli.top.app import show
    except ImportError as error:
        if not (error.name or "").startswith("textual"):
            raise
        raise click.ClickException("the live view needs textual: pip install 'aeron-py[top]'") from error
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.ClickException("the live view needs a terminal: use --once, or --once --json")
    show(directory, period_ms / 1000)


def _print_once(directory: str, as_json: bool) -> None:
    try:
        found = metrics.snapshot(directory)
    except (aeron.AeronError, OSError) as error:
        raise click.ClickException(printable_lines(str(error)).rstrip()) from error
    if as_json:
        from aeron.cli.top.plain import plain

        click.echo(json.dumps(plain(found), indent=2))
    else:
        from aeron.cli.top.page import page

        click.echo(page(found))
