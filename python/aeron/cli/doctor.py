"""``aeron doctor``: checks whether this machine can run Spark's ``format("aeron")``, and says how to install
missing requirements."""

from __future__ import annotations

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from aeron.cli.options import directory_option
from aeron.spark.checks import Check, check


@click.command("doctor")
@directory_option
@click.option("--archive-dir", help="Parent directory of private archives.  [default: as for the option archiveDir]")
def command(directory: str, archive_dir: str | None) -> None:
    """Check the requirements of Spark's format "aeron". Exit status 1 if one is missing; the output says what to do."""
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
