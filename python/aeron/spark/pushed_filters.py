"""Filters of a batch read that Spark pushes down, as ranges of values by which the plan leaves out segments.

The ranges only make the plan smaller. Spark evaluates every filter again on the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

if TYPE_CHECKING:
    from aeron._stubs.pipeline import _RowFilter

__all__ = ["row_filter"]

Ranges: TypeAlias = list[tuple[int, int]]
"""Inclusive ranges of 64-bit values."""

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = ("recording_id", "stream_id", "session_id", "position", "timestamp")


def row_filter(filters: Iterable[Filter], hidden: Set[str] = frozenset()) -> _RowFilter | None:
    """Returns the values that rows must have in each header column; ``None`` if the filters restrict no such column.

    Args:
        filters: The filters.
        hidden: Names of record fields, in lower case. A filter on a record field restricts no header column.
    """
    found: dict[str, Ranges] = {}
    for each in filters:
        column, ranges = _restriction(each)
        if ranges is not None and column not in hidden:
            found[column] = _both(found[column], ranges) if column in found else ranges
    if not found:
        return None
    return {
        "recording_id": found.get("recording_id"),
        "stream_id": found.get("stream_id"),
        "session_id": found.get("session_id"),
        "position": found.get("position"),
        "timestamp": found.get("timestamp"),
    }


_RANGE_OF: Mapping[type[Filter], Callable[[int], tuple[int, int]]] = {
    EqualTo: lambda value: (value, value),
    EqualNullSafe: lambda value: (value, value),
    GreaterThan: lambda value: (value + 1, _HIGHEST),
    GreaterThanOrEqual: lambda value: (value, _HIGHEST),
    LessThan: lambda value: (_LOWEST, value - 1),
    LessThanOrEqual: lambda value: (_LOWEST, value),
}


def _restriction(each: Filter) -> tuple[str, Ranges | None]:
    """Returns the column of a filter and the values that fulfil it; no ranges if the filter is of another kind."""
    path: tuple[str, ...] = getattr(each, "attribute", ())
    column = path[0] if len(path) == 1 else ""
    if column not in _COLUMNS:
        return column, None
    if isinstance(each, In):
        values = [_number(column, value) for value in each.value]
        known = [value for value in values if value is not None]
        return column, [(value, value) for value in known] if len(known) == len(values) else None
    range_of, value = _RANGE_OF.get(type(each)), _number(column, getattr(each, "value", None))
    return column, None if range_of is None or value is None else [range_of(value)]


def _number(column: str, value: Any) -> int | None:
    """Returns a value as a whole number: microseconds since the epoch for a time. ``None`` for any other value."""
    if column == "timestamp":
        is_time = isinstance(value, datetime) and value.tzinfo is not None
        return (value - _EPOCH) // timedelta(microseconds=1) if is_time else None
    # A bound of a range may be one less or one more than the value, so the value must not be at the limit of 64 bits.
    is_number = isinstance(value, int) and not isinstance(value, bool) and _LOWEST < value < _HIGHEST
    return value if is_number else None


def _both(one: Ranges, other: Ranges) -> Ranges:
    """Returns the ranges of the values that both lists contain."""
    pairs = ((max(a[0], b[0]), min(a[1], b[1])) for a in one for b in other)
    return [(low, high) for low, high in pairs if low <= high]
