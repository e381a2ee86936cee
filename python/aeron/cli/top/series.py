"""Rates of positions, with a short history of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping

HISTORY = 60
"""Number of rates that are kept for each position: as many as the widest sparkline shows."""


class Series:
    """The rates of positions between consecutive samples. Not thread-safe.

    A position that is missing in a sample is forgotten. So the memory is bounded by the last sample.
    """

    def __init__(self) -> None:
        self._time_ns = 0
        self._positions: Mapping[Hashable, int] = {}
        self._histories: dict[Hashable, deque[float]] = {}

    def add(self, positions: Mapping[Hashable, int], time_ns: int) -> None:
        """Adds a sample. Times are monotonic, in nanoseconds. A sample at the time of the last one is left out.

        A position that has decreased belongs to another object with the same key, so its history starts again.
        """
        elapsed_ns = time_ns - self._time_ns
        if self._positions and elapsed_ns <= 0:
            return
        histories = {}
        for key, position in positions.items():
            last = self._positions.get(key)
            if last is not None and position >= last:
                history = self._histories.get(key) or deque(maxlen=HISTORY)
                history.append((position - last) * 1e9 / elapsed_ns)
                histories[key] = history
        self._time_ns, self._positions, self._histories = time_ns, dict(positions), histories

    def history(self, key: Hashable) -> tuple[float, ...]:
        """Returns the last rates of a position in units per second, the oldest one first. Empty before two samples."""
        return tuple(self._histories.get(key, ()))
