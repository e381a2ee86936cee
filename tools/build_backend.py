"""Builds packages with maturin, as the build backend of ``pip install``. The stubs of a wheel get docstrings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import maturin
from maturin import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

import stub_docstrings

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Builds a wheel. Returns the name of its file in `wheel_directory`."""
    name: str = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    if not stub_docstrings.add_docstrings([Path(wheel_directory) / name]):
        print(f"{name} is for another kind of machine: its stubs have no docstrings", file=sys.stderr)
    return name
