"""Makes record layouts from numpy structured dtypes, so that a service and a Spark job can share one definition."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aeron.spark.errors import AeronOptionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["layout"]

_TIMESTAMPS = {"ms": "ts_ms", "us": "ts_us", "ns": "ts_ns"}


def layout(dtype: npt.DTypeLike) -> str:
    """Returns the text of the option ``valueSchema`` for a structured `dtype`: fields, offsets and length.

    >>> layout([("ts", "<i8"), ("px", "<f8"), ("sym", "S8")])
    'ts i64, px f64, sym char[8]'

    Texts (``S``) become ``char[n]``, and raw bytes (``V``) become ``bytes[n]``. A ``datetime64`` in ms, us or ns
    becomes a timestamp.

    Args:
        dtype: A structured numpy dtype. Names of fields consist of letters, digits and ``_``.

    Returns:
        The text of the option.

    Raises:
        AeronOptionError: If a field has another type, fields overlap, or a record is longer than 64 KiB.
    """
    import numpy as np

    record: np.dtype[np.void] = np.dtype(dtype)
    if record.fields is None or record.names is None:
        raise AeronOptionError(f"option valueSchema: {record} has no fields; give a structured dtype")
    parts, packed = [], 0
    for name in record.names:
        if not re.fullmatch(r"\w+", name):
            raise AeronOptionError(
                f"option valueSchema: field '{name}' has a name with more than letters, digits and '_'; rename it"
            )
        field, offset = record.fields[name][:2]
        place = "" if offset == packed else f"@{offset} "
        parts.append(f"{place}{name} {_type(name, field)}")
        packed = offset + field.itemsize
    end = "" if record.itemsize == packed else f" ={record.itemsize}"
    return _checked(", ".join(parts) + end)


def _checked(text: str) -> str:
    from aeron._pipeline import Layout

    Layout(text)
    return text


def _type(name: str, field: np.dtype[Any]) -> str:
    text = None
    if field.subdtype is None and field.fields is None:
        text = _scalar_type(field)
    if text is None:
        raise AeronOptionError(
            f"option valueSchema: field '{name}' is {field}; "
            "a layout has integers, f4, f8, bool, S, V, and datetime64 of ms, us, ns"
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
