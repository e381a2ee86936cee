"""State of a market-data consumer: last, high, low and volume per symbol. `Totals` also checks the sequence of
trades."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aeron.demo.trades import TRADE

_MULTIPLIER = 0x9E3779B97F4A7C15
"""Multiplier that mixes one word of a symbol into the other: an odd number with spread bits."""


@dataclass
class SymbolTotals:
    """The running figures of one symbol."""

    trades: int = 0
    last: float = 0.0
    high: float = float("-inf")
    low: float = float("inf")
    volume: float = 0.0


class Totals:
    """Adds up batches of trade records. It works on whole columns, and creates no Python object for each trade."""

    def __init__(self) -> None:
        self.by_symbol: dict[str, SymbolTotals] = {}
        self.received = 0
        self._table = _SymbolTable()

    def add(self, records: npt.NDArray[np.void]) -> None:
        """Adds one batch.

        Raises:
            RuntimeError: a trade is missing, doubled or out of order.
        """
        self._check_sequence(records["sequence"])
        order, starts, names = self._group(records["symbol"])
        price, quantity = records["price"][order], records["quantity"][order]
        ends = np.append(starts[1:], len(price))
        columns = (
            ends - starts,
            price[ends - 1],
            np.maximum.reduceat(price, starts),
            np.minimum.reduceat(price, starts),
            np.add.reduceat(quantity, starts),
        )
        figures = zip(*(column.tolist() for column in columns), strict=True)
        for name, (trades, last, high, low, volume) in zip(names, figures, strict=True):
            totals = self.by_symbol.setdefault(name, SymbolTotals())
            totals.trades += trades
            totals.last = last
            totals.high = max(totals.high, high)
            totals.low = min(totals.low, low)
            totals.volume += volume

    def _group(self, symbols: npt.NDArray[np.bytes_]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], list[str]]:
        """Groups trades by symbol. Returns a stable sort order, the start of each group, and the symbol of each
        group."""
        numbers = self._table.numbers(symbols)
        order = np.argsort(numbers, kind="stable")
        grouped = numbers[order]
        starts = np.flatnonzero(np.diff(grouped, prepend=grouped[0] + 1))
        return order, starts, [self._table.names[number] for number in grouped[starts]]

    def _check_sequence(self, sequence: npt.NDArray[np.int64]) -> None:
        expected = np.arange(self.received, self.received + len(sequence))
        if not np.array_equal(sequence, expected):
            at = int(np.argmax(sequence != expected))
            raise RuntimeError(f"expected trade {expected[at]} but received {sequence[at]}")
        self.received += len(sequence)


class _SymbolTable:
    """Numbers symbols with small integers in the order of their first occurrence.

    A symbol is two 64-bit words, which are mixed to one word. A search for this word is four times as fast as a
    comparison of texts. The multiplier changes until all known symbols have different mixed words.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self._multiplier = _MULTIPLIER
        self._learn(np.zeros(1, TRADE["symbol"]))

    def numbers(self, symbols: npt.NDArray[np.bytes_]) -> npt.NDArray[np.unsignedinteger]:
        """Returns the number of each symbol: its index in ``names``."""
        words = _words(symbols)
        numbers = self._look_up(words)
        unknown = (self._known[0][numbers] != words[0]) | (self._known[1][numbers] != words[1])
        if unknown.any():
            self._learn(np.unique(symbols[unknown]))
            numbers = self._look_up(words)
        return numbers

    def _learn(self, symbols: npt.NDArray[np.bytes_]) -> None:
        self.names += [symbol.decode() for symbol in symbols.tolist()]
        self._known = _words(np.array([name.encode() for name in self.names], TRADE["symbol"]))
        while len(np.unique(mixed := self._mixed(self._known))) < len(self.names):
            self._multiplier += 2
        # The numbers have the smallest possible type: numpy sorts integers of 8 and 16 bits by radix, which is faster.
        self._order = np.argsort(mixed).astype(np.min_scalar_type(len(self.names)))
        self._sorted = mixed[self._order]

    def _look_up(self, words: npt.NDArray[np.uint64]) -> npt.NDArray[np.unsignedinteger]:
        found = np.searchsorted(self._sorted, self._mixed(words))
        numbers: npt.NDArray[np.unsignedinteger] = self._order.take(found, mode="clip")
        return numbers

    def _mixed(self, words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        mixed: npt.NDArray[np.uint64] = words[0] ^ (words[1] * np.uint64(self._multiplier))
        return mixed


def _words(symbols: npt.NDArray[np.bytes_]) -> npt.NDArray[np.uint64]:
    """Returns two rows: the first word of each symbol, and the second word of each symbol."""
    return np.ascontiguousarray(symbols).view(np.uint64).reshape(-1, 2).T
