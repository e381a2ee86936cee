"""Messages of fixed SBE templates as structured arrays of numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from aeron._sbe_arguments import parts

if TYPE_CHECKING:
    from aeron.sbe import Template

_COUNTS = {"numGroups", "numVarDataFields"}


def dtype_of(formats: Sequence[tuple[str, int, Any]], length: int) -> np.dtype[Any]:
    """Returns the type of rows of this length with these names, offsets and formats."""
    return np.dtype(
        {
            "names": [name for name, _, _ in formats],
            "formats": [dtype_of(*format) if isinstance(format, tuple) else format for _, _, format in formats],
            "offsets": [offset for _, offset, _ in formats],
            "itemsize": length,
        }
    )


def rows_of(template: Template, messages: Any, skip: int, drop: bool) -> np.ndarray[Any, Any]:
    """Returns the blocks of the messages of a template: a view of their memory if that is possible, or one copy."""
    taken = parts(messages)
    rows = _view(template, taken, skip)
    if rows is None:
        rows = _copy(template, taken, skip, drop)
    rows.flags.writeable = False
    return rows


def _copy(template: Template, messages: Any, skip: int, drop: bool) -> np.ndarray[Any, Any]:
    batch, count = template._native.fixed_blocks(template.name, messages, skip, drop)
    if not count * template.dtype.itemsize:
        return np.zeros(count, template.dtype)
    return np.ndarray(count, template.dtype, pa.record_batch(batch)["block"].buffers()[1])


def _view(template: Template, messages: Any, skip: int) -> np.ndarray[Any, Any] | None:
    """Returns a view of the blocks if all messages have the template, all its fields, and its block length."""
    array = _only_array(messages)
    place = None if array is None or array.null_count else _place(array)
    if array is None or place is None:
        return None
    header, dtype = dtype_of(*template._native.header_formats), template.dtype
    buffer, first, stride = place
    before = skip + header.itemsize
    # With counts in the header, a message may have groups that the template does not have. They need a check.
    if stride < before + dtype.itemsize or _COUNTS.intersection(header.names or ()) or not dtype.itemsize:
        return None
    headers = np.ndarray(len(array), header, buffer, first + skip, (stride,))
    newest = max((since for depth, *_, since in template._elements if depth == 0), default=0)
    is_usual = headers["templateId"] == template.id
    is_usual &= headers["schemaId"] == template.schema.id
    is_usual &= headers["blockLength"] == dtype.itemsize
    is_usual &= headers["version"] >= newest
    if not is_usual.all():
        return None
    return np.ndarray(len(array), dtype, buffer, first + before, (stride,))


def _only_array(messages: Any) -> pa.Array | None:
    """Returns the array of messages if they are one Arrow array, or a batch of columns with such an array."""
    if isinstance(messages, list) and len(messages) == 1:
        messages = messages[0]
    if not hasattr(messages, "__arrow_c_array__"):
        return None
    array = messages if isinstance(messages, pa.Array) else pa.array(messages)
    if not pa.types.is_struct(array.type):
        return array
    batch = pa.RecordBatch.from_struct_array(array)
    name = next((name for name in ("payload", "value") if name in batch.schema.names), None)
    return None if name is None else batch.column(name)


def _place(array: pa.Array) -> tuple[pa.Buffer, int, int] | None:
    """Returns the buffer of the messages, the offset of the first, and the distance between two."""
    if not len(array):
        return None
    kind = array.type
    if pa.types.is_fixed_size_binary(kind):
        buffer, first, stride = array.buffers()[1], array.offset * kind.byte_width, kind.byte_width
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        width = np.int64 if pa.types.is_large_binary(kind) else np.int32
        _, ends, buffer = array.buffers()
        offsets = np.frombuffer(ends, width)[array.offset : array.offset + len(array) + 1]
        first, stride = int(offsets[0]), int(offsets[1]) - int(offsets[0])
        if not (np.diff(offsets) == stride).all():
            return None
    else:
        return None
    is_inside = buffer is not None and first >= 0 and stride > 0 and first + stride * len(array) <= buffer.size
    return (buffer, first, stride) if is_inside else None
