"""Plans for the publishing processes of the demo. A plan is one JSON text with the channel, the trades and the rate."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from aeron.demo.trades import ColumnNames, Trades, generate_trades, load_trades

CHANNEL = "aeron:ipc?term-length=16m"
"""Terms of 16 MiB are small enough for the active part of the log to stay in the processor's caches."""


@dataclass(frozen=True)
class Source:
    """Source of trades: a file with the names of its columns, or a number of trades to generate."""

    path: str | None
    time_column: str | None
    price_column: str | None
    quantity_column: str | None
    symbol_column: str | None
    symbol: str | None
    generated: int
    seed: int

    def load(self) -> Trades:
        """Loads or generates the trades.

        Raises:
            TradesError: the file cannot be read as trades.
        """
        if self.path is None:
            return generate_trades(self.generated, self.seed)
        names = ColumnNames(self.time_column, self.price_column, self.quantity_column, self.symbol_column)
        return load_trades(Path(self.path), names, self.symbol)


@dataclass(frozen=True)
class Plan:
    """Plan of two phases. Phase one publishes the source ``repeat`` times at full rate. Phase two publishes ``paced``
    trades at ``rate`` trades per second.
    """

    PROGRAM: ClassVar = "aeron.demo.publisher"

    directory: str
    channel: str
    stream_id: int
    source: Source
    repeat: int
    paced: int
    rate: int

    def to_json(self) -> str:
        """Returns the plan as one line."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Plan:
        """Parses a plan that :meth:`to_json` returned."""
        return Plan(**_fields(text))


@dataclass(frozen=True)
class Replay:
    """Plan to replay the source once, each trade at its own time, with ``speed`` market seconds per second.

    A closing record follows. Its market time is ``closing_ns`` after the last trade, so that Spark completes the last
    windows.
    """

    PROGRAM: ClassVar = "aeron.demo.replay"

    directory: str
    channel: str
    stream_id: int
    source: Source
    speed: float
    closing_ns: int

    def to_json(self) -> str:
        """Returns the plan as one line."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Replay:
        """Parses a plan that :meth:`to_json` returned."""
        return Replay(**_fields(text))


def _fields(text: str) -> dict[str, Any]:
    fields = json.loads(text)
    return {**fields, "source": Source(**fields["source"])}
