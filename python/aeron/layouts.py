"""Makes texts of record layouts from numpy structured dtypes, so that publishers and readers can share one definition.

The texts have the syntax of ``rust/columns/src/layout``: ``"ts ts_ns, px f64, @24 sym char[8] =32"``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aeron.exceptions import ArgumentTypeError, InvalidArgumentError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

__all__ = ["layout_text", "schema_text"]

_TIMESTAMPS = {"ms": "ts_ms", "us": "ts_us", "ns": "ts_ns"}


def layout_text(dtype: npt.DTypeLike) -> str:
    """Returns the text of a structured dtype: fields, offsets and length.

    The parser of texts checks the rest: whether names begin with a letter, whether fields overlap, and the length.

    Raises:
        ArgumentTypeError: if the argument is not a dtype.
        InvalidArgumentError: if the dtype has no fields, or a field has a type that no layout has.
    """
    import numpy as np

    try:
        record: np.dtype[np.void] = np.dtype(dtype)
    except TypeError as error:
        raise ArgumentTypeError(f"layout={dtype!r} is not a layout: pass its text, or a structured dtype") from error
    if record.fields is None or record.names is None:
        raise InvalidArgumentError(f"{record} has no fields; give a structured dtype")
    parts, packed = [], 0
    for name in record.names:
        if not re.fullmatch(r"\w+", name):
            raise InvalidArgumentError(f"field '{name}' has a name with more than letters, digits and '_'; rename it")
        field, offset = record.fields[name][:2]
        place = "" if offset == packed else f"@{offset} "
        parts.append(f"{place}{name} {_type(name, field)}")
        packed = offset + field.itemsize
    end = "" if record.itemsize == packed else f" ={record.itemsize}"
    return ", ".join(parts) + end


def schema_text(schema: pa.Schema) -> str:
    """Returns the text of records with a field for each column of an Arrow schema, without gaps between the fields.

    Raises:
        InvalidArgumentError: if a column has a type without a fixed length.
    """
    return ", ".join(f"{field.name} {_arrow_type(field)}" for field in schema)


def _arrow_type(field: pa.Field) -> str:
    import pyarrow as pa

    kind = field.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        letter = "f" if pa.types.is_floating(kind) else "i" if pa.types.is_signed_integer(kind) else "u"
        if not pa.types.is_float16(kind):
            return f"{letter}{kind.bit_width}"
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_fixed_size_binary(kind):
        return f"bytes[{kind.byte_width}]"
    if pa.types.is_timestamp(kind) and kind.unit in _TIMESTAMPS:
        return _TIMESTAMPS[kind.unit]
    raise InvalidArgumentError(
        f"column '{field.name}' is {kind}, which has no fixed length in a record: "
        "pass a layout as text, such as 'sym char[8]'"
    )


def _type(name: str, field: np.dtype[Any]) -> str:
    text = None
    if field.subdtype is None and field.fields is None:
        text = _scalar_type(field)
    if text is None:
        raise InvalidArgumentError(
            f"field '{name}' is {field}; a layout has integers, f4, f8, bool, S, V, and datetime64 of ms, us, ns"
        )
    return ">" + text if field.newbyteorder("=") != field else text


def _scalar_type(field: np.dtype[Any]) -> str | None:
    import numpy as np

    size = field.itemsize
    if field.kind == "M":
        unit, count = np.datetime_data(field)
        return _TIMESTAMPS.get(unit) if count == 1 else None
    plain = {"i": f"i{size * 8}", "u": f"u{size * 8}", "b": "bool", "S": f"char[{size}]", "V": f"bytes[{size}]"}
    return f"f{size * 8}" if field.kind == "f" and size in {4, 8} else plain.get(field.kind)
