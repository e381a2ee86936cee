"""Times of Python and numpy as integers. The native module calls these functions when it encodes SBE messages.

Each function returns `None` for ``NaT``, which is null. It raises `ValueError` if the time is not a whole number of
units, and `TypeError` if the object is no time.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from operator import ne
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ATTOSECONDS = {
    "W": 7 * 86_400 * 10**18,
    "D": 86_400 * 10**18,
    "h": 3_600 * 10**18,
    "m": 60 * 10**18,
    "s": 10**18,
    "ms": 10**15,
    "us": 10**12,
    "ns": 10**9,
    "ps": 10**6,
    "fs": 10**3,
    "as": 1,
}


def _timestamp(value: Any, unit_ns: int) -> int | None:
    """Returns the units of this number of nanoseconds from 1970 to a time. A time without a zone is in UTC."""
    if _is_null(value):
        return None
    if hasattr(value, "dtype"):
        return _numpy_units(value, unit_ns)
    if not isinstance(value, datetime):
        raise TypeError
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return _whole((aware - _EPOCH) // _MICROSECOND * 1000 + getattr(value, "nanosecond", 0), unit_ns)


def _time_of_day(value: Any, unit_ns: int) -> int | None:
    """Returns the units of this number of nanoseconds from midnight to a time of day."""
    if _is_null(value):
        return None
    if not isinstance(value, time):
        raise TypeError
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return _whole(seconds * 1_000_000_000 + value.microsecond * 1000, unit_ns)


def _date(value: Any, unit_ns: int) -> int | None:
    """Returns the days from 1970 to a date."""
    if _is_null(value):
        return None
    if hasattr(value, "dtype"):
        return _numpy_units(value, unit_ns)
    if not isinstance(value, date):
        raise TypeError
    return date(value.year, value.month, value.day).toordinal() - _EPOCH.toordinal()


def _is_null(value: Any) -> bool:
    """Returns whether a time is ``NaT`` of numpy or pandas, the only times that differ from themselves."""
    return bool(ne(value, value))


def _numpy_units(value: Any, unit_ns: int) -> int:
    """Converts a ``datetime64`` by integers of Python, because a conversion by numpy wraps around silently."""
    import numpy as np

    if value.dtype.kind != "M":
        raise TypeError
    name, count = np.datetime_data(value.dtype)
    if name in ("Y", "M"):
        months = int(value.astype("int64")) * count * (12 if name == "Y" else 1)
        year = 1970 + months // 12
        if not 1 <= year <= 9999:
            raise OverflowError
        days = date(year, months % 12 + 1, 1).toordinal() - _EPOCH.toordinal()
        return _whole(days * _ATTOSECONDS["D"], unit_ns * 10**9)
    return _whole(int(value.astype("int64")) * count * _ATTOSECONDS[name], unit_ns * 10**9)


def _whole(number: int, unit: int) -> int:
    units, rest = divmod(number, unit)
    if rest:
        raise ValueError
    return units
