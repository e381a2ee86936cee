"""``aeron driver``: a media driver in the foreground, the same program as ``aeronmd``."""

from __future__ import annotations

import sys

import click

from aeron._aeron import aeronmd_main


@click.command(
    "driver",
    context_settings={
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
        "help_option_names": ["--help"],
    },
)
@click.option("--dir", "directory", help="Directory of the driver; wins over AERON_DIR.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-v] [-Dname=value]... [PROPERTIES_FILE]...")
def command(directory: str | None, arguments: tuple[str, ...]) -> None:
    """Run a media driver until SIGINT, SIGTERM or a terminate command.

    Settings come from AERON_* environment variables, then -Dname=value, then properties files; later ones win.
    The exit status is the signal's number, 0 after a terminate command, 1 when the driver cannot start.
    """
    own = (f"-Daeron.dir={directory}",) if directory else ()
    sys.exit(aeronmd_main([*arguments, *own]))
