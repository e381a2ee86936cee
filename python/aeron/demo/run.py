"""The first part of the demo: an embedded driver and a subscriber in this process, a publisher in another process."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

import aeron
from aeron.demo.patience import Patience
from aeron.demo.plan import Plan
from aeron.demo.publishing import Publisher, publishing
from aeron.demo.totals import Totals
from aeron.demo.trades import TRADE, Trades

LIMIT = 16_384
"""Maximum number of messages per poll. With aligned frames of 96 bytes, a poll reads at most 1.5 MiB of the log."""


@dataclass(frozen=True)
class Result:
    """Rate of phase one in trades per second, latencies of phase two, and the figures per symbol."""

    rate: float
    latencies_ns: npt.NDArray[np.int64]
    totals: Totals


def run(plan: Plan, trades: Trades, console: Console) -> Result:
    """Runs both phases and shows their progress.

    Raises:
        RuntimeError: the publisher ended early, no trades arrive, or a trade is missing, occurs twice or is out of
            order.
    """
    with aeron.MediaDriver(dir=plan.directory), aeron.connect(plan.directory) as client:
        subscription = client.add_subscription(plan.channel, plan.stream_id)
        with publishing(plan) as publisher, _progress(console) as progress:
            receiver = _Receiver(subscription, publisher)
            fast = len(trades.records) * plan.repeat
            seconds = receiver.receive(fast, progress, "as fast as it goes")
            publisher.tell()
            latencies: list[npt.NDArray[np.int64]] = []
            receiver.receive(plan.paced, progress, f"paced, {plan.rate:,}/s", latencies)
            publisher.tell()
        return Result(fast / seconds, np.concatenate(latencies), receiver.totals)


class _Receiver:
    """Polls batches of trades, and adds them to the totals."""

    def __init__(self, subscription: aeron.Subscription, publisher: Publisher) -> None:
        self._subscription = subscription
        self._publisher = publisher
        self.totals = Totals()

    def receive(
        self, count: int, progress: Progress, name: str, latencies: list[npt.NDArray[np.int64]] | None = None
    ) -> float:
        """Receives ``count`` trades. If ``latencies`` is a list, appends the latency of each trade.

        Returns the seconds from the sending of the first trade to the arrival of the last trade.
        """
        task = progress.add_task(name, total=count, rate="")
        first_ns = last_ns = 0
        start, shown_ns = self.totals.received, 0
        while (received := self.totals.received - start) < count:
            records, last_ns = self._next_batch(min(LIMIT, count - received))
            first_ns = first_ns or int(records["sent_ns"][0])
            if latencies is not None:
                latencies.append(last_ns - records["sent_ns"])
            self.totals.add(records)
            if last_ns - shown_ns > 100_000_000:
                shown_ns = last_ns
                rate = received / (last_ns - first_ns) * 1e9
                progress.update(task, completed=received, rate=_rate(rate))
        seconds = (last_ns - first_ns) / 1e9
        progress.update(task, completed=count, rate=_rate(count / seconds))
        return seconds

    def _next_batch(self, limit: int) -> tuple[npt.NDArray[np.void], int]:
        """Waits for the next trades. Returns the trades and the time of their arrival, in monotonic nanoseconds."""
        patience = Patience(f"trades arrive after {self.totals.received:,} trades")
        while not (batch := self._subscription.poll_batch(limit)):
            os.sched_yield()
            self._publisher.check(self.totals.received, "trades")
            patience.look()
        return batch.as_records(TRADE), time.monotonic_ns()


def report(result: Result, trades: Trades) -> list[Table]:
    """Returns two tables: the figures per symbol, and the rate with the latency percentiles."""
    prices = _table(
        f"{trades.source}: {result.totals.received:,} {trades.kind} received",
        ("symbol", trades.kind, "last", "high", "low", "count" if trades.is_quotes else "volume"),
    )
    rows = sorted(result.totals.by_symbol.items())
    decimals = max(_decimals(price) for _, totals in rows for price in (totals.last, totals.high, totals.low))
    for symbol, totals in rows:
        figures = (f"{price:,.{decimals}f}" for price in (totals.last, totals.high, totals.low))
        volume = f"{totals.volume:,.{0 if trades.is_quotes else 3}f}"
        prices.add_row(symbol, f"{totals.trades:,}", *figures, volume)
    percentiles = (50, 90, 99, 99.9, 100)
    speed = _table(
        "rate as fast as it goes; latency when paced, from when a trade was due to after the poll",
        ("rate", *("max" if percentile == 100 else f"p{percentile:g}" for percentile in percentiles)),
    )
    speed.add_row(_rate(result.rate), *map(_duration, np.percentile(result.latencies_ns, percentiles)))
    return [prices, speed]


def _table(title: str, columns: tuple[str, ...]) -> Table:
    """Returns a table with right-aligned numbers. In a narrow terminal, long values are wrapped, not truncated."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(columns):
        table.add_column(name, justify="right" if index or name == "rate" else "left", overflow="fold")
    return table


def _decimals(price: float) -> int:
    """Returns the number of decimal places to show for a price: at least two and at most six."""
    return max(2, len(f"{price:.6f}".rstrip("0").partition(".")[2]))


def _duration(ns: float) -> str:
    return f"{ns / 1e3:,.1f} us" if ns < 1e7 else f"{ns / 1e6:,.1f} ms"


def _rate(per_second: float) -> str:
    return f"{per_second / 1e6:.2f} M/s"


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<18}"),
        BarColumn(bar_width=None),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        TextColumn("{task.fields[rate]:>10}"),
        console=console,
        expand=True,
    )
