"""``aeron doctor``: whether this machine can run Spark's ``format("aeron")``, and what to do about what is missing."""

from __future__ import annotations

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from aeron.cli.options import directory_option
from aeron.spark.checks import Check, check


@click.command("doctor")
@directory_option
@click.option("--archive-dir", help="Where private archives are to be made.  [default: as the option archiveDir]")
def command(directory: str, archive_dir: str | None) -> None:
    """Look for what Spark's format "aeron" needs, and say what to do about what is missing; status 1 if anything is."""
    checks = check(directory, archive_dir)
    Console(soft_wrap=True).print(_table(checks))
    if not all(line.ok for line in checks):
        raise SystemExit(1)


def _table(checks: list[Check]) -> Table:
    table = Table("", "what", "found", "remedy", box=None, pad_edge=False)
    for line in checks:
        mark = "[green]ok[/]" if line.ok else "[red]no[/]"
        table.add_row(mark, *map(escape, (line.what, line.found, "" if line.ok else line.remedy)))
    return table
