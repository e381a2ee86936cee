"""Runs the demo's pipeline: a publisher replays trades, Spark makes bars of them, and a subscriber prints the bars.

At the end, the bars that were received over Aeron are compared with the bars in the Parquet files, and no trade may be
missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.live import Live
from rich.text import Text

import aeron.spark
from aeron.demo.bars import BAR, FIGURES, time_text
from aeron.demo.patience import STANDSTILL_S
from aeron.demo.pipeline import Pipeline, reason
from aeron.demo.plan import Replay
from aeron.demo.publishing import Publisher, publishing
from aeron.demo.trades import Trades

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_S = 0.1
_SUBSCRIBER_POSITION = 4


def run(
    spark: SparkSession, pipeline: Pipeline, replay: Replay, trades: Trades, console: Console
) -> npt.NDArray[np.void]:
    """Runs the pipeline to its end. Returns the bars, sorted by start and symbol.

    Raises:
        RuntimeError: a query or the publisher ended early, nothing happened for too long, or the received bars differ
            from the bars in the files.
        KeyboardInterrupt: SIGINT or SIGTERM.
    """
    with (
        aeron.ShutdownSignalBarrier() as stop,
        aeron.MediaDriver(dir=pipeline.directory),
        aeron.connect(pipeline.directory) as client,
        publishing(replay) as publisher,
        _ended(spark),
        Live(console=console, refresh_per_second=4, redirect_stderr=False) as live,
    ):
        subscription = client.add_subscription(pipeline.channel, pipeline.bars_stream_id)
        silence_s = STANDSTILL_S + longest_gap_s(trades, replay.speed)
        view = _View(subscription, publisher, stop, live, Lines(trades, pipeline.bar_us), silence_s=silence_s)
        for query in pipeline.start(spark):
            view.queries.append(Followed(query))
            view.wait(lambda: subscribers(client, pipeline.trades_stream_id) == len(view.queries), "a query subscribes")
        publisher.tell()
        console.print(view.lines.header, soft_wrap=True, style="bold")
        end = _end_of_bars(trades, pipeline.bar_us)
        view.wait(lambda: all(query.watermark >= end for query in view.queries), "the last bar is made")
        written = read_parquet(pipeline.parquet)
        view.wait(lambda: view.received >= len(written), "the last bar arrives")
        publisher.tell()
    received = in_order(np.concatenate(view.bars))
    check(received, written, len(trades.records))
    return received


def read_parquet(directory: Path) -> npt.NDArray[np.void]:
    """Reads the bars in Parquet files. Returns them as records of the same type as the published bars."""
    from pyarrow import parquet

    table = parquet.read_table(directory)
    records = np.zeros(table.num_rows, BAR)
    for name in ("start", *FIGURES, "trades"):
        records[name] = table.column(name).to_numpy()
    records["symbol"] = [symbol.encode() for symbol in table.column("symbol").to_pylist()]
    return in_order(records)


def in_order(bars: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Sorts bars by start and symbol, because the bars of a batch have no order."""
    return bars[np.argsort(bars, order=("start", "symbol"))]


def check(received: npt.NDArray[np.void], written: npt.NDArray[np.void], trades: int) -> None:
    """Checks that the received bars are equal to the written bars, and contain all trades.

    The last digits of the VWAP may differ. All other figures must be identical.

    Raises:
        RuntimeError: a bar differs, or bars or trades are missing. The text contains both bars or both numbers.
    """
    if len(received) != len(written):
        raise RuntimeError(f"{len(received):,} bars were received, but {len(written):,} are in the Parquet files")
    # The two queries add in different orders, so the last digits of a VWAP may differ.
    same = np.isclose(received["vwap"], written["vwap"], rtol=1e-9, atol=0)
    for name in ("start", "symbol", "open", "high", "low", "close", "volume", "trades"):
        same &= received[name] == written[name]
    if not same.all():
        at = int(np.argmin(same))
        raise RuntimeError(f"received {received[at]}, but the Parquet files have {written[at]}")
    if (counted := int(received["trades"].sum())) != trades:
        raise RuntimeError(f"the bars stand for {counted:,} trades, but {trades:,} were published")


class Lines:
    """Formats bars as lines of text. The columns are as narrow as these trades permit. Times are in UTC."""

    def __init__(self, trades: Trades, bar_us: int) -> None:
        self._time = time_text(bar_us)
        self._symbol = max(len("symbol"), *map(len, trades.symbols))
        width = len(f"{datetime.now():{self._time}}")
        self.header = f"{'start':{width}} {'symbol':{self._symbol}}{''.join(f'{name:>9}' for name in FIGURES)} trades"

    def line(self, bar: np.void) -> str:
        """Returns the line for one bar."""
        figures = "".join(f" {bar[name]:8.7g}" for name in FIGURES)
        return f"{bar['start'].item():{self._time}} {bar['symbol'].decode():{self._symbol}}{figures} {bar['trades']:6}"


class Followed:
    """A query and its progress: the numbers of rows and of late rows, and the watermark in seconds since the epoch."""

    def __init__(self, query: StreamingQuery) -> None:
        self.rows = self.late = 0
        self.watermark = 0.0
        self._query = query
        self._seen = ""
        self._speed = self._figures = ""

    def look(self) -> bool:
        """Reads the progress of new batches. Returns whether there was a new batch.

        Raises:
            RuntimeError: the query has failed.
        """
        if failure := self._query.exception():
            raise RuntimeError(f"{self._query.name} failed: {reason(str(failure))}")
        news = [batch for batch in self._query.recentProgress if batch["timestamp"] > self._seen]
        for batch in news:
            self._take(batch)
        return bool(news)

    def __str__(self) -> str:
        """Returns the line that shows the progress."""
        return f"{self._query.name}: {self.rows:,} rows{self._figures}, {self.late:,} late"

    def _take(self, batch: Any) -> None:
        self._seen = batch["timestamp"]
        self.rows += batch["numInputRows"]
        self.late += sum(state["numRowsDroppedByWatermark"] for state in batch["stateOperators"])
        if text := batch["eventTime"].get("watermark"):
            self.watermark = datetime.fromisoformat(text).timestamp()
        if batch["numInputRows"]:
            # A batch without rows has no meaningful rate: it only moves the watermark and completes bars.
            rate, took_ms = batch["processedRowsPerSecond"], batch["durationMs"]["triggerExecution"]
            self._speed = f", {rate:,.0f} rows/s, batch {took_ms:,} ms"
        for source in aeron.spark.progress(self._query):
            if source.retained_bytes is None or source.backlog_messages is None:
                continue
            retained_mib = source.retained_bytes / 2**20
            self._figures = f"{self._speed}, backlog {source.backlog_messages:,}, retained {retained_mib:.1f} MiB"


class _View:
    """Polls all parts of the pipeline. Prints the bars that arrive, and shows the progress of the queries."""

    def __init__(
        self,
        subscription: aeron.Subscription,
        publisher: Publisher,
        stop: aeron.ShutdownSignalBarrier,
        live: Live,
        lines: Lines,
        *,
        silence_s: float,
    ) -> None:
        self._subscription = subscription
        self._publisher = publisher
        self._stop = stop
        self._live = live
        self.lines = lines
        self._silence_s = silence_s
        self.bars: list[npt.NDArray[np.void]] = [np.zeros(0, BAR)]
        self.queries: list[Followed] = []

    @property
    def received(self) -> int:
        """Number of bars that have arrived."""
        return sum(map(len, self.bars))

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Polls until the condition is true.

        Raises:
            RuntimeError: a query or the publisher has ended, or nothing happened for too long.
        """
        deadline = time.monotonic() + self._silence_s
        while not condition():
            if self._look():
                deadline = time.monotonic() + self._silence_s
            self._publisher.check(self.received, "bars")
            if time.monotonic() > deadline:
                raise RuntimeError(f"nothing happened for {self._silence_s:.0f} s while waiting until {what}")
            # If a signal handler raised an exception during a call to the JVM, the connection to the JVM would break.
            # The connection is needed to end the queries. So signals only wake the barrier, and this loop handles them.
            if self._stop.wait(_LOOK_S):
                raise KeyboardInterrupt

    def _look(self) -> bool:
        happened = False
        while batch := self._subscription.poll_batch():
            happened = True
            self.bars.append(in_order(batch.as_records(BAR)))
            for bar in self.bars[-1]:
                self._live.console.print(self.lines.line(bar), soft_wrap=True)
        for query in self.queries:
            happened |= query.look()
        self._live.update(Text("\n".join(map(str, self.queries))))
        return happened


def longest_gap_s(trades: Trades, speed: float) -> float:
    """Returns the longest pause of the replay, in seconds."""
    times = np.sort(trades.records["time_ns"])
    return float(np.diff(times).max(initial=0)) / 1e9 / speed


def _end_of_bars(trades: Trades, bar_us: int) -> float:
    last_us = int(trades.records["time_ns"].max()) // 1000
    return (last_us // bar_us + 1) * bar_us / 1e6


def subscribers(client: aeron.Aeron, stream_id: int) -> int:
    """Returns the number of subscribers with an image of the stream, according to the driver's position counters."""
    positions = (each for each in client.counters_reader if each.type_id == _SUBSCRIBER_POSITION)
    return sum(position.stream_id == stream_id for position in positions)


@contextmanager
def _ended(spark: SparkSession) -> Iterator[None]:
    """Stops the queries at the end of the block, before the contexts of the publisher, the client and the driver
    end."""
    try:
        yield
    finally:
        for query in spark.streams.active:
            query.stop()
