"""A snapshot as values that JSON has."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable
from enum import Enum
from typing import Any


def plain(value: Any) -> Any:
    """Returns a value as JSON has it: an object has its attributes, an enum is its name, and bytes are hexadecimal."""
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Iterable):
        return [plain(each) for each in value]
    return {name: plain(getattr(value, name)) for name in _attributes(type(value))}


def _attributes(kind: type) -> list[str]:
    if dataclasses.is_dataclass(kind):
        return [each.name for each in dataclasses.fields(kind)]
    # The order of a native class differs from build to build.
    return sorted(name for name, member in vars(kind).items() if inspect.isgetsetdescriptor(member))
