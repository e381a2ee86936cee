"""Whether the native module has test hooks: points at which a test makes a process stand still, and kills it."""

from __future__ import annotations

from pathlib import Path

import aeron._aeron

VARIABLE = "AERON_PIPELINE_PAUSE"


def has_hooks() -> bool:
    """Returns whether the module was built with the Cargo feature ``test-hooks``: then the variable's name is in it."""
    return VARIABLE.encode() in Path(aeron._aeron.__file__).read_bytes()


def pause_at(point: str) -> dict[str, str]:
    """Returns what to add to the environment of a process that is to stand still at ``<point>:<n>:<file>``."""
    assert has_hooks(), f"{aeron._aeron.__file__} has no test hooks, as the shipped module: run `make quick`"
    return {VARIABLE: point}
