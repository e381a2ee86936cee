"""``aeron archive count``, ``pid``, ``errors`` and ``capacity``."""

from __future__ import annotations

import click

import aeron
from aeron.cli.archive.files import (
    archive_argument,
    entries_of,
    explained,
    json_option,
    mark_file,
    open_files,
    print_json,
)
from aeron.cli.errors import error_as_json, print_errors
from aeron.cli.options import size


@click.command("count")
@archive_argument
@json_option
def count(*, directory: str, as_json: bool) -> None:
    """Print the number of recordings, without deleted and invalid recordings."""
    number = sum(entry.state == "VALID" for entry in entries_of(open_files(directory), None))
    if as_json:
        print_json({"count": number})
    else:
        click.echo(number)


@click.command("pid")
@archive_argument
@json_option
def pid(*, directory: str, as_json: bool) -> None:
    """Print the process id of the archive that runs or ran in DIRECTORY."""
    mark = mark_file(directory)
    if as_json:
        print_json({"pid": mark.pid, "is_active": mark.is_active})
    else:
        click.echo(mark.pid)


@click.command("errors")
@archive_argument
@json_option
def errors(*, directory: str, as_json: bool) -> None:
    """Show the distinct errors of the archive, then the errors of its driver if the driver's directory exists."""
    mark = mark_file(directory)
    of_driver, reason = _driver_errors(mark.aeron_directory)
    if as_json:
        found = None if of_driver is None else [error_as_json(error) for error in of_driver]
        print_json({"archive": [error_as_json(error) for error in mark.errors], "driver": found})
        return
    click.echo("Archive error log:")
    print_errors(mark.errors)
    click.echo(f"\nAeron driver error log (directory: {mark.aeron_directory}):")
    if of_driver is None:
        click.echo(f"not readable: {reason}")
    else:
        print_errors(of_driver)


@click.command("capacity")
@archive_argument
@click.argument("capacity_bytes", type=size, required=False, metavar="[BYTES]")
@json_option
def capacity(*, directory: str, capacity_bytes: int | None, as_json: bool) -> None:
    """Print the length of the catalog in bytes, or increase the length to BYTES. BYTES may have the suffix k, m or
    g."""
    with open_files(directory, write=capacity_bytes is not None) as files, explained():
        if capacity_bytes is not None:
            files.grow(capacity_bytes)
        found = files.capacity
    if as_json:
        print_json({"capacity": found})
    else:
        click.echo(found)


def _driver_errors(directory: str) -> tuple[list[aeron.ErrorObservation] | None, str]:
    """Returns the errors of the driver, or ``None`` and the reason why they cannot be read."""
    try:
        with aeron.CncFile(directory, timeout_ms=0) as cnc:
            return cnc.errors(), ""
    except aeron.AeronError as error:
        return None, str(error)
