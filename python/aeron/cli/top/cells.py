"""Texts for the values in the cells of a table: amounts, ages and sparklines."""

from __future__ import annotations

from collections.abc import Sequence

from aeron.cli.timestamps import duration

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_BARS = "▁▂▃▄▅▆▇█"


def amount(count: float | None) -> str:
    """Returns a number of bytes with three digits and a unit, in at most 8 characters; `-` for `None`."""
    if count is None:
        return "-"
    value = float(count)
    for unit in _UNITS:
        if value < 1023.5 or unit == _UNITS[-1]:
            break
        value /= 1024
    digits = 0 if unit == "B" or value >= 99.95 else 1
    return f"{value:.{digits}f} {unit}"


def count(number: int | None) -> str:
    """Returns a number with separators; `-` for `None`."""
    return "-" if number is None else f"{number:,}"


def age(milliseconds: int | None) -> str:
    """Returns a time in its two largest units, such as `2h 05m`; below ten seconds with tenths; `-` for `None`."""
    if milliseconds is None:
        return "-"
    return f"{milliseconds / 1000:.1f}s" if 0 <= milliseconds < 10_000 else duration(milliseconds)


def sparkline(rates: Sequence[float], width: int) -> str:
    """Returns a bar for each of the last `width` rates, the newest one on the right. The highest one fills its cell."""
    shown = rates[-width:] if width > 0 else ()
    highest = max(shown, default=0)
    bars = [_BARS[round(rate / highest * (len(_BARS) - 1)) if highest > 0 else 0] for rate in shown]
    return "".join(bars).rjust(width)
