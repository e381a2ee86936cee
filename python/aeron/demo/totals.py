"""What a market-data consumer keeps: last, high, low and volume per symbol, a check of the sequence, and latencies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass
class SymbolTotals:
    """The running figures of one symbol."""

    trades: int = 0
    last: float = 0.0
    high: float = float("-inf")
    low: float = float("inf")
    volume: float = 0.0


class Totals:
    """Adds batches of trade records; columns are worked on whole, there is no Python object per trade."""

    def __init__(self) -> None:
        self.by_symbol: dict[str, SymbolTotals] = {}
        self.received = 0

    def add(self, records: npt.NDArray[np.void]) -> None:
        """Adds one batch.

        Raises:
            RuntimeError: a trade is missing, doubled or out of order.
        """
        self._check_sequence(records["sequence"])
        for symbol, mine in _by_symbol(records):
            price = mine["price"]
            totals = self.by_symbol.setdefault(symbol, SymbolTotals())
            totals.trades += len(mine)
            totals.last = float(price[-1])
            totals.high = max(totals.high, float(price.max()))
            totals.low = min(totals.low, float(price.min()))
            totals.volume += float(mine["quantity"].sum())

    def _check_sequence(self, sequence: npt.NDArray[np.int64]) -> None:
        expected = np.arange(self.received, self.received + len(sequence))
        if not np.array_equal(sequence, expected):
            at = int(np.argmax(sequence != expected))
            raise RuntimeError(f"expected trade {expected[at]} but received {sequence[at]}")
        self.received += len(sequence)


def _by_symbol(records: npt.NDArray[np.void]) -> list[tuple[str, npt.NDArray[np.void]]]:
    symbol = records["symbol"]
    if symbol[0] == symbol[-1] and (symbol == symbol[0]).all():
        return [(symbol[0].decode(), records)]
    return [(name.decode(), records[symbol == name]) for name in np.unique(symbol)]
