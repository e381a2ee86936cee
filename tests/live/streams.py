"""Numbered messages, and the check of received rows."""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

import aeron
from live.segments import Message

MTU = 1408
"""MTU of all streams of these tests, in bytes."""


def numbered(number: int, size: int = 8) -> bytes:
    """Returns a message that contains its number."""
    return number.to_bytes(8, "little").ljust(size, b"\xaa")


def publish(publication: aeron.ExclusivePublication, count: int, *, first: int = 0, size: int = 8) -> list[bytes]:
    """Publishes `count` messages with numbers from `first` on, and returns them. Waits during back pressure."""
    sent = [numbered(number, size) for number in range(first, first + count)]
    for message in sent:
        publication.publish(message, timeout=10)
    return sent


def fill(publication: aeron.ExclusivePublication, *, first: int = 0, size: int = 1024) -> int:
    """Publishes until back pressure has lasted for 0.5 s. Returns the number of published messages."""
    count, deadline = 0, time.monotonic() + 0.5
    while time.monotonic() < deadline:
        if publication.offer(numbered(first + count, size)) > 0:
            count += 1
            deadline = time.monotonic() + 0.5
    return count


def payloads(rows: Sequence[Message]) -> list[bytes]:
    """Returns the payloads of rows."""
    return [row.payload for row in rows]


def number(row: Message) -> int:
    """Returns the number of the row's message."""
    return int.from_bytes(row.payload[:8], "little")


def begin(row: Message) -> int:
    """Returns the position of the start of the row's first frame."""
    whole, rest = divmod(len(row.payload), MTU - 32)
    framed = whole * MTU + (rest > 0 or whole == 0) * ((rest + 63) // 32 * 32)
    return row.position - framed


def missing_bytes(rows: Sequence[Message]) -> int:
    """Checks that no message occurs twice, and that each recording is in order. Returns the number of missing bytes."""
    for recording in _grouped(rows, lambda row: (row.session_id, row.recording_id)):
        assert recording == sorted(recording, key=lambda row: row.position), "a recording is not in order"
    missing = 0
    for session in _grouped(rows, lambda row: row.session_id):
        session.sort(key=lambda row: row.position)
        numbers = [number(row) for row in session]
        assert numbers == sorted(set(numbers)), "a message occurs twice or not in order"
        for before, after in itertools.pairwise(session):
            if number(after) != number(before) + 1:
                missing += begin(after) - before.position
    return missing


def _grouped(rows: Sequence[Message], key: Callable[[Message], object]) -> list[list[Message]]:
    groups = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return list(groups.values())
