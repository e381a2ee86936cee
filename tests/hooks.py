"""Test hooks of the native module: points at which a test stops a process to kill it."""

from __future__ import annotations

from pathlib import Path

import aeron._aeron

VARIABLE = "AERON_PIPELINE_PAUSE"


def has_hooks() -> bool:
    """Returns whether the module was built with the Cargo feature ``test-hooks``.

    Only a module with that feature contains the name of the environment variable.
    """
    return VARIABLE.encode() in Path(aeron._aeron.__file__).read_bytes()


def pause_at(point: str) -> dict[str, str]:
    """Returns the environment variable that makes a process stop at a test hook.

    Args:
        point: ``<point>:<n>:<file>``. The thread that reaches the point for the n-th time creates the file and
            then sleeps for ever.
    """
    assert has_hooks(), f"{aeron._aeron.__file__} was built without test hooks: run `make quick`"
    return {VARIABLE: point}
