"""The end of a command: an output that cannot be written, or a text that is not UTF-8, ends it with one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn


def run_to_end(run: Callable[[], object]) -> NoReturn:
    """Runs a command, writes the rest of its output, and ends the process with its status."""
    try:
        try:
            status = run()
        except SystemExit as end:
            status = end.code
        sys.stdout.flush()
    except UnicodeEncodeError as error:
        _fail(f"not UTF-8: {ascii(error.object)[:200]}")
    except OSError as error:
        _fail(str(error))
    sys.exit(status)  # type: ignore[arg-type]


def _fail(reason: str) -> NoReturn:
    with suppress(OSError):
        print(f"Error: {reason}", file=sys.stderr, flush=True)
    # The rest of the output is dropped. Otherwise Python would try to write it once more, and print a traceback.
    with suppress(OSError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    sys.exit(1)
