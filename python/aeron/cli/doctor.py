"""``aeron doctor``: checks this machine for a driver and for Spark's ``format("aeron")``, and says what to run."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from aeron._host import Finding, check_host, this_host
from aeron.cli.options import directory_option
from aeron.cli.table import aligned
from aeron.cli.text import printable
from aeron.spark.checks import Check, check


@click.command("doctor")
@click.argument("section", type=click.Choice(["host", "spark", "all"]), default="host")
@directory_option
@click.option("--archive-dir", help="Parent directory of private archives.  [default: as for the option archiveDir]")
def command(section: str, directory: str, archive_dir: str | None) -> None:
    """Check this machine, and print for each problem the command to run. It changes nothing.

    The section 'host' is about the system on which a driver runs. It only warns, so the exit status is 0. The section
    'spark' is about the requirements of Spark's format "aeron". The exit status is 1 if one is missing.
    """
    if section != "spark":
        _print_host(directory)
    if section == "all":
        click.echo()
    if section != "host":
        checks = check(directory, archive_dir)
        Console(soft_wrap=True).print(_table(checks))
        if not all(line.ok for line in checks):
            raise SystemExit(1)


def _print_host(directory: str) -> None:
    if sys.platform != "linux":
        click.echo("the checks of the host need Linux: 'aeron doctor spark' works here too")
        return
    host = this_host(directory)
    for line in _lines(check_host(host)):
        click.echo(printable(line))
    if host.is_container:
        click.echo("This is a container: run commands about the kernel on its host.")


def _lines(findings: list[Finding]) -> Iterator[str]:
    """Yields a table. Each warning has the command to run in a line of its own, which can be copied."""
    columns = ("", "what", "found", "wanted")
    rows = [(each.severity, each.name, each.found, each.wanted) for each in findings]
    header, *lines = aligned(columns, rows, texts=columns)
    yield header
    for finding, line in zip(findings, lines, strict=True):
        yield line
        if finding.command:
            yield f"      run: {finding.command}"


def _table(checks: list[Check]) -> Table:
    table = Table("", "what", "found", "remedy", box=None, pad_edge=False)
    for line in checks:
        mark = "[green]ok[/]" if line.ok else "[red]no[/]"
        table.add_row(mark, *map(escape, (line.what, line.found, "" if line.ok else line.remedy)))
    return table
