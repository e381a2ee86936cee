"""The ``aeron`` command: a driver, an archive, publishers, subscribers, and views of the files of driver and archive.
Each subcommand of ``aeron`` except ``driver`` has a module.

``aeron driver`` is ``aeronmd`` and ``aeron archive run`` is ``aeronarchive``. Both start as fast as these programs,
because the libraries of the command line are imported only for the other commands.
"""

from __future__ import annotations

import signal
import sys

from aeron.cli.ending import run_to_end


def main() -> None:
    """Runs the command that the arguments name. The process ends with the exit status of the command."""
    run_to_end(_run)


def _run() -> object:
    if sys.argv[1:2] == ["driver"] or sys.argv[1:3] == ["archive", "run"]:
        for argument in sys.argv:
            argument.encode()  # raises UnicodeEncodeError for an argument that a native program cannot take
    if sys.argv[1:2] == ["driver"]:
        from aeron._aeron import aeronmd_main

        return aeronmd_main(sys.argv[2:])
    if sys.argv[1:3] == ["archive", "run"]:
        from aeron._aeron import aeronarchive_main

        return aeronarchive_main(sys.argv[3:])
    from aeron.cli.commands import aeron

    # SIGTERM ends a command like Ctrl-C: the command closes its resources first.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return aeron(prog_name="aeron")
