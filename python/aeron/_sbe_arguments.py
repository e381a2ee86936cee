"""Arguments of `aeron.sbe`: checks, and conversions for the native module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from aeron._aeron import BufferClaim
from aeron.exceptions import ArgumentTypeError, InvalidArgumentError

SetColumn: TypeAlias = Literal["names", "booleans", "integer"]
"""Type of a column of sets."""

EnumColumn: TypeAlias = Literal["names", "integer"]
"""Type of a column of enums."""


def parts(messages: Any) -> Any:
    """Returns messages as the native module takes them: a list instead of a stream, which can be read only once."""
    if hasattr(messages, "__arrow_c_array__"):
        return messages
    if hasattr(messages, "__arrow_c_stream__"):
        import pyarrow as pa

        return list(pa.chunked_array(messages).chunks)
    if not isinstance(messages, list | tuple | Iterator):
        return messages
    items = list(messages)
    if items and all(isinstance(item, bytes) for item in items):
        import pyarrow as pa

        return pa.array(items, pa.binary())
    found: list[Any] = []
    for item in items:
        part = parts(item)
        found.extend(part if isinstance(part, list) else [part])
    return found


def column_options(
    decimal_scale: int | None, sets: SetColumn, enums: EnumColumn, refuse_unknown: bool
) -> dict[str, Any]:
    if decimal_scale is not None and not 0 <= decimal_scale <= 38:
        raise InvalidArgumentError(f"decimal_scale={decimal_scale}: pass 0 to 38, or None for floats")
    return {"decimal_scale": decimal_scale, "sets": sets, "enums": enums, "refuse_unknown": refuse_unknown}


def not_negative(name: str, value: int) -> int:
    if not isinstance(value, int):
        raise ArgumentTypeError(f"{name} is a {type(value).__name__}: pass an int")
    if not 0 <= value < 2**63:
        raise InvalidArgumentError(f"{name}={value}: pass a number from 0 to 2**63 - 1")
    return value


def writable(claim: Any) -> memoryview:
    """Returns the bytes of a claim or of another buffer."""
    try:
        buffer = memoryview(claim.view if isinstance(claim, BufferClaim) else claim)
    except (TypeError, BufferError):
        kind = type(claim).__name__
        raise ArgumentTypeError(f"the buffer is a {kind}: pass a claim or a writable buffer") from None
    if buffer.readonly or not buffer.c_contiguous:
        raise ArgumentTypeError("the buffer is read-only or has gaps: pass a claim or a writable buffer")
    return buffer.cast("B")
