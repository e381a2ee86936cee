"""Makes record layouts from numpy structured dtypes, so that a service and a Spark job can share one definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aeron.exceptions import InvalidArgumentError
from aeron.layouts import layout_text
from aeron.spark.errors import AeronOptionError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["layout"]


def layout(dtype: npt.DTypeLike) -> str:
    """Returns the text of the option ``valueSchema`` for a structured `dtype`: fields, offsets and length.

    >>> layout([("ts", "<i8"), ("px", "<f8"), ("sym", "S8")])
    'ts i64, px f64, sym char[8]'

    Texts (``S``) become ``char[n]``, and raw bytes (``V``) become ``bytes[n]``. A ``datetime64`` in ms, us or ns
    becomes a timestamp.

    Args:
        dtype: A structured numpy dtype. The names of its fields must consist of letters, digits and ``_``.

    Returns:
        The text of the option.

    Raises:
        AeronOptionError: If a field has another type, fields overlap, or a record is longer than 64 KiB.
    """
    from aeron._pipeline import Layout

    try:
        text = layout_text(dtype)
    except InvalidArgumentError as error:
        raise AeronOptionError(f"option valueSchema: {error}") from None
    Layout(text)
    return text
