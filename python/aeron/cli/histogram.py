"""A histogram of durations, printed in the form of Aeron's samples (docs/spec/06, section 3.2).

Values are rounded to three significant digits, as in HdrHistogram with 2,048 sub-buckets up to ten seconds. So the size
of the histogram does not grow with the number of values."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator

import numpy as np

_SUB_BUCKET_BITS = 11
_BUCKETS = 24
_TICKS_PER_HALF_DISTANCE = 5
_PENDING_LIMIT = 100_000

HEADER = f"{'Value':>12} {'Percentile':>12} {'TotalCount':>12} {'1/(1-Percentile)':>12}"


class Histogram:
    """Counts durations in nanoseconds."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._pending = array("q")
        self.count = 0
        self.max_ns = 0
        self._sum = 0.0
        self._sum_of_squares = 0.0

    def record(self, duration_ns: int) -> None:
        """Counts one duration."""
        self._pending.append(duration_ns)
        if len(self._pending) == _PENDING_LIMIT:
            self._fold()

    def render(self) -> Iterator[str]:
        """Yields the lines of the printed histogram, in microseconds."""
        self._fold()
        yield HEADER
        yield ""
        for value_ns, percentile, total in self._percentiles():
            inverse = "inf" if percentile == 1 else f"{1 / (1 - percentile):.2f}"
            yield f"{value_ns / 1000:12.3f} {percentile:12.6f} {total:12d} {inverse:>12}"
        mean = self._sum / self.count if self.count else 0.0
        variance = self._sum_of_squares / self.count - mean * mean if self.count else 0.0
        deviation = math.sqrt(max(variance, 0.0))
        yield f"#[Mean    = {mean / 1000:12.3f}, StdDeviation   = {deviation / 1000:12.3f}]"
        yield f"#[Max     = {self.max_ns / 1000:12.3f}, Total count    = {self.count:12d}]"
        yield f"#[Buckets = {_BUCKETS:12d}, SubBuckets     = {1 << _SUB_BUCKET_BITS:12d}]"

    def _fold(self) -> None:
        """Moves the recorded values into the buckets."""
        if not self._pending:
            return
        values = np.array(self._pending, dtype=np.int64)
        del self._pending[:]
        self.count += len(values)
        self.max_ns = max(self.max_ns, int(values.max()))
        self._sum += float(values.sum())
        self._sum_of_squares += float(np.square(values, dtype=np.float64).sum())
        _, bits = np.frexp(np.maximum(values, 1))
        shift = np.maximum(bits - _SUB_BUCKET_BITS, 0).astype(np.int64)
        highest = ((values >> shift) << shift) + (np.int64(1) << shift) - 1
        for value, count in zip(*map(np.ndarray.tolist, np.unique(highest, return_counts=True)), strict=True):
            self._counts[value] = self._counts.get(value, 0) + count

    def _percentiles(self) -> Iterator[tuple[int, float, int]]:
        """Yields tuples of a value, its percentile, and the number of values up to this value.

        The steps between percentiles become half as long each time the distance to 100 % halves.
        """
        level, total, value = 0.0, 0, 0
        for value, count in sorted(self._counts.items()):
            total += count
            while level <= 100 * total / self.count and total < self.count:
                yield value, level / 100, total
                level += _step(level)
            if total == self.count and level <= 100:
                yield value, level / 100, total
        if self.count:
            yield value, 1.0, total


def _step(level: float) -> float:
    half_distances = 1 << (int(math.log2(100 / (100 - level))) + 1)
    return 100 / (_TICKS_PER_HALF_DISTANCE * half_distances)
