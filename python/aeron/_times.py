"""Converts times of programs to microseconds since the epoch, the unit of the index of a recording."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from aeron.exceptions import ArgumentTypeError

__all__ = ["epoch_us"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def epoch_us(value: object, name: str) -> int:
    """Converts a time to microseconds since the epoch. Rounds up, because arrival times have whole
    microseconds.

    Args:
        value: A datetime with a time zone, or a numpy ``datetime64``, which numpy defines in UTC.
        name: Name of the parameter, for the text of an error.

    Returns:
        The microseconds.

    Raises:
        ValueError: If the value is a datetime without a time zone, or numpy's ``NaT``.
        ArgumentTypeError: If the value has another type.
    """
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            message = f"{name}={value!r} has no time zone: pass datetime(..., tzinfo=UTC), or value.astimezone()"
            raise ValueError(message)
        return -((_EPOCH - value) // _MICROSECOND)
    if type(value).__module__ == "numpy" and type(value).__name__ == "datetime64":
        return _numpy_epoch_us(value, name)
    raise ArgumentTypeError(f"{name}={value!r} is not a time: pass a datetime with a time zone, or a numpy.datetime64")


def _numpy_epoch_us(value: object, name: str) -> int:
    import numpy as np

    time = np.datetime64(value)  # type: ignore[call-overload]
    if np.isnat(time):
        raise ValueError(f"{name}={value!r} is not a time")
    whole = time.astype("datetime64[us]")
    return int(whole.astype(np.int64)) + int(whole < time)
