"""``aeron errors``: a driver's distinct errors in the form of ErrorStat (docs/spec/06, section 1.3)."""

from __future__ import annotations

import json
from pathlib import Path

import click

import aeron
from aeron._folder import open_regular
from aeron.cli.options import directory_option, size, timeout_option
from aeron.cli.session import cnc_file
from aeron.cli.text import printable_lines
from aeron.cli.timestamps import local_time


@click.command("errors")
@directory_option
@timeout_option
@click.option(
    "-f",
    "--file",
    "error_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with a distinct error log. Overrides --dir.",
)
@click.option("-o", "--offset", type=size, default="0", show_default=True, help="Byte offset of the log in that file.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def command(directory: str, timeout_ms: int, error_file: Path | None, offset: int, as_json: bool) -> None:
    """Show the distinct errors that a driver has recorded: count, first and last time, and text."""
    errors = _read(directory, timeout_ms, error_file, offset)
    if as_json:
        click.echo(json.dumps([error_as_json(error) for error in errors], indent=2))
        return
    print_errors(errors)


def print_errors(errors: list[aeron.ErrorObservation]) -> None:
    """Prints errors in the form of ErrorStat."""
    for error in errors:
        first, last = local_time(error.first_observation_ms), local_time(error.last_observation_ms)
        text = printable_lines(error.text)
        click.echo(f"***\n{error.observation_count} observations from {first} to {last} for:\n {text}")
    click.echo(f"\n{len(errors)} distinct errors observed.")


def _read(directory: str, timeout_ms: int, error_file: Path | None, offset: int) -> list[aeron.ErrorObservation]:
    if error_file is None:
        with cnc_file(directory, timeout_ms) as cnc:
            return cnc.errors()
    try:
        with open_regular(error_file) as file:
            return aeron.read_error_log(file.read(), offset)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{error_file}: {error}") from error


def error_as_json(error: aeron.ErrorObservation) -> dict[str, object]:
    """Returns the error as a JSON object, with all its fields."""
    return {
        "observation_count": error.observation_count,
        "first_observation_ms": error.first_observation_ms,
        "last_observation_ms": error.last_observation_ms,
        "text": error.text,
    }
