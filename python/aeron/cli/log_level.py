"""``aeron log-level``: the level of the log of a running ``aeronmd`` or ``aeronarchive``."""

from __future__ import annotations

from pathlib import Path

import click

from aeron._aeron import default_directory
from aeron._pipeline import _read_archive_mark

DRIVER_FILE, ARCHIVE_FILE = "log-level", "archive.log-level"
"""Files that the programs read each second."""
_LEVELS = ["off", "error", "warn", "info", "default"]


@click.command("log-level")
@click.argument("level", type=click.Choice(_LEVELS))
@click.option("--dir", "directory", help="Directory of the driver.  [default: AERON_DIR or the default]")
@click.option("--archive", metavar="DIRECTORY", help="Directory of an archive, instead of a driver.")
def command(*, level: str, directory: str | None, archive: str | None) -> None:
    """Change the level of the log of a running aeronmd or aeronarchive.

    The program applies the level within a second, and keeps it until the next change or restart. The level "default" is
    that of AERON_LOG_LEVEL. A driver or archive inside a Python process logs through the module logging instead.
    """
    file = directory_of_program(directory, archive) / (DRIVER_FILE if archive is None else ARCHIVE_FILE)
    if level == "default":
        file.unlink(missing_ok=True)
        return
    try:
        # No temporary file: a driver does not start in a directory with a file that it does not know. A program that
        # reads half a level keeps the one before.
        file.write_text(level + "\n")
    except OSError as error:
        raise click.ClickException(str(error)) from error


def directory_of_program(directory: str | None, archive: str | None) -> Path:
    """Returns the directory of the driver or archive that the options ``--dir`` and ``--archive`` name."""
    if archive is not None and directory is not None:
        raise click.UsageError("pass --dir or --archive, not both")
    place = Path(archive or directory or default_directory())
    is_used = (place / "cnc.dat").exists() if archive is None else _read_archive_mark(str(place)) is not None
    if not is_used:
        raise click.ClickException(f"{place} has no {'driver' if archive is None else 'archive'}")
    return place
