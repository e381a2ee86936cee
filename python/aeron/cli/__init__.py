"""The ``aeron`` command: a driver, publishers, subscribers and views of a driver's files, one module per subcommand.

``aeron driver`` is ``aeronmd``, ``aeron archive run`` is ``aeronarchive``, and both start as fast: the libraries of the
command line are imported for the others only.
"""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Runs the command that the arguments name; its exit status is that of the process."""
    if sys.argv[1:2] == ["driver"]:
        from aeron._aeron import aeronmd_main

        sys.exit(aeronmd_main(sys.argv[2:]))
    if sys.argv[1:3] == ["archive", "run"]:
        from aeron._aeron import aeronarchive_main

        sys.exit(aeronarchive_main(sys.argv[3:]))
    from aeron.cli.commands import aeron

    # SIGTERM ends a command as Ctrl-C does: in order, with everything closed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    aeron(prog_name="aeron")
