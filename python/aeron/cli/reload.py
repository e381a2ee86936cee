"""``aeron reload``: lets a running ``aeronmd`` or ``aeronarchive`` read its files again."""

from __future__ import annotations

import secrets
import time
from pathlib import Path

import click

from aeron.cli.log_level import directory_of_program

DRIVER_FILE, ARCHIVE_FILE = "reload", "archive.reload"
"""Files with the request, in which the programs write the outcome. They look each second."""
_POLL_INTERVAL = 0.01


@click.command("reload")
@click.option("--dir", "directory", help="Directory of the driver.  [default: AERON_DIR or the default]")
@click.option("--archive", metavar="DIRECTORY", help="Directory of an archive, instead of a driver.")
@click.option(
    "--timeout", type=click.FloatRange(min=0), default=15, show_default=True, help="Longest wait for the program, in s."
)
def command(*, directory: str | None, archive: str | None, timeout: float) -> None:
    """Let a running aeronmd or aeronarchive read its files again, as SIGHUP does.

    An archive applies the users file, the retention file and the level of the log, a driver the level of the log. If a
    file is wrong, nothing changes, and the exit status is 1. A driver or archive inside a Python process does not
    reload.
    """
    place = directory_of_program(directory, archive)
    file = place / (DRIVER_FILE if archive is None else ARCHIVE_FILE)
    identity = secrets.token_hex(8)
    try:
        # No temporary file: a driver does not start in a directory with a file that it does not know.
        file.write_text(f"request {identity}\n")
        outcome = _outcome(file, identity, timeout)
    except OSError as error:
        raise click.ClickException(str(error)) from error
    finally:
        file.unlink(missing_ok=True)
    if outcome is None:
        raise click.ClickException(f"{place}: no response within {timeout:g} s: the program hangs, or does not reload")
    status, text = outcome
    if status != "done":
        raise click.ClickException(f"not reloaded, nothing has changed: {text}")
    click.echo(f"reloaded: {text}")


def _outcome(file: Path, identity: str, timeout: float) -> tuple[str, str] | None:
    """Waits for the outcome of a request. Returns its first word and its text."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        first, _, text = file.read_text().partition("\n")
        status, _, of = first.partition(" ")
        # Without the line break at its end, a text is half written.
        if status in ("done", "failed") and of == identity and text.endswith("\n"):
            return status, text.rstrip("\n")
        time.sleep(_POLL_INTERVAL)
    return None
