"""Formats times as Aeron's tools print them."""

from __future__ import annotations

from datetime import datetime


def local_time(epoch_ms: int) -> str:
    """Returns the local time as ``YYYY-MM-DD HH:MM:SS.mmm+ZZZZ``; ``-`` for -1 and for times outside the calendar."""
    if epoch_ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(epoch_ms / 1000).astimezone()
    except (OverflowError, ValueError, OSError):
        return "-"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}{moment:%z}"
