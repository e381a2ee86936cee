"""Test hooks of the native module: points at which a test stops a process to kill it."""

from __future__ import annotations

from pathlib import Path

import aeron._aeron

VARIABLE = "AERON_PIPELINE_PAUSE"


def has_hooks() -> bool:
    """Returns whether the module was built with the Cargo feature ``test-hooks``. Only such a module
    contains the name of the variable."""
    return VARIABLE.encode() in Path(aeron._aeron.__file__).read_bytes()


def pause_at(point: str) -> dict[str, str]:
    """Returns environment variables for a process that must stop at ``<point>:<n>:<file>``."""
    assert has_hooks(), f"{aeron._aeron.__file__} has no test hooks, as the shipped module: run `make quick`"
    return {VARIABLE: point}
