"""Formats times and durations, and parses the times of options."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

import click

from aeron.cli.options import age_ms

F = TypeVar("F", bound=Callable[..., object])


def local_time(epoch_ms: int) -> str:
    """Returns the local time as ``YYYY-MM-DD HH:MM:SS.mmm+ZZZZ``; ``-`` if `epoch_ms` is negative or too large."""
    if epoch_ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(epoch_ms / 1000).astimezone()
    except (OverflowError, ValueError, OSError):
        return "-"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}{moment:%z}"


def duration(milliseconds: int) -> str:
    """Returns a time in its two largest units: ``3d 4h``, ``2h 05m``, ``7m 30s``, ``12s``. A negative time is
    ``0s``."""
    seconds = max(milliseconds, 0) // 1000
    for unit, next_unit, length, next_length in (("d", "h", 86400, 3600), ("h", "m", 3600, 60), ("m", "s", 60, 1)):
        if seconds >= length:
            return f"{seconds // length}{unit} {seconds % length // next_length:02}{next_unit}"
    return f"{seconds}s"


def moment(text: str) -> datetime:
    """Parses a time in ISO 8601, or an age such as 15m. A time without a time zone is a local time."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        pass
    try:
        return datetime.now(UTC) - timedelta(milliseconds=age_ms(text))
    except (click.BadParameter, OverflowError) as error:
        raise click.BadParameter(
            f"{text!r} is neither a time such as 2026-11-26T14:00:00Z nor an age such as 15m"
        ) from error


def time_options(what: str) -> Callable[[F], F]:
    """Adds the options ``--since`` and ``--until``. ``what`` names the things that the options select."""
    since = click.option("--since", type=moment, metavar="TIME", help=f"Only {what} at or after this time.")
    until = click.option("--until", type=moment, metavar="TIME", help=f"Only {what} before this time.")

    def add(function: F) -> F:
        wrapped: Any = since(until(function))
        return cast(F, wrapped)

    return add
