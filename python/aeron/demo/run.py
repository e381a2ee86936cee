"""The demo itself: an embedded driver and a subscriber here, a publisher in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import aeron
from aeron.demo.plan import CHANNEL, STREAM_ID, Plan
from aeron.demo.totals import Totals
from aeron.demo.trades import TRADE, Trades

LIMIT = 16_384
"""Messages per poll: a bound on the memory of one batch (1.4 MiB with frames of 88 bytes)."""

SILENCE_S = 30.0
"""How long nothing may arrive before the demo gives up, naming what it has."""


@dataclass(frozen=True)
class Result:
    """Phase one's rate, phase two's latencies, and the figures per symbol."""

    rate: float
    latencies_ns: npt.NDArray[np.int64]
    totals: Totals


def run(plan_without_directory: Plan, trades: Trades, console: Console) -> Result:
    """Runs both phases and shows their progress.

    Raises:
        RuntimeError: the publisher ended early, trades stopped coming, or one is missing, doubled or out of order.
    """
    with tempfile.TemporaryDirectory(prefix="aeron-demo-", dir=_shared_memory()) as parent:
        directory = str(Path(parent) / "aeron")
        plan = Plan(**{**vars(plan_without_directory), "directory": directory})
        with aeron.MediaDriver(dir=directory), aeron.connect(directory) as client:
            subscription = client.add_subscription(CHANNEL, STREAM_ID)
            with _publisher(plan) as publisher, _progress(console) as progress:
                receiver = _Receiver(subscription, publisher)
                fast = len(trades.records) * plan.repeat
                seconds = receiver.receive(fast, progress, "as fast as it goes")
                receiver.latencies.clear()
                _tell(publisher)
                receiver.receive(plan.paced, progress, f"paced, {plan.rate:,}/s")
                _tell(publisher)
            return Result(fast / seconds, np.concatenate(receiver.latencies), receiver.totals)


class _Receiver:
    """Polls whole batches into the totals and notes how long each trade was under way."""

    def __init__(self, subscription: aeron.Subscription, publisher: subprocess.Popen[bytes]) -> None:
        self._subscription = subscription
        self._publisher = publisher
        self.totals = Totals()
        self.latencies: list[npt.NDArray[np.int64]] = []

    def receive(self, count: int, progress: Progress, name: str) -> float:
        """Receives ``count`` trades; answers the seconds from the first to the last."""
        task = progress.add_task(name, total=count, rate="")
        first_ns = last_ns = 0
        start, shown_ns = self.totals.received, 0
        while (received := self.totals.received - start) < count:
            last_ns = self._next_batch(min(LIMIT, count - received)) or last_ns
            first_ns = first_ns or last_ns
            if last_ns - shown_ns > 100_000_000:
                shown_ns = last_ns
                rate = received / max(last_ns - first_ns, 1) * 1e9
                progress.update(task, completed=received, rate=f"{rate / 1e6:.2f} M/s")
        seconds = max(last_ns - first_ns, 1) / 1e9
        progress.update(task, completed=count, rate=f"{count / seconds / 1e6:.2f} M/s")
        return seconds

    def _next_batch(self, limit: int) -> int:
        """Takes what is there within a while; answers when it arrived (monotonic ns), 0 when nothing did."""
        deadline = time.monotonic() + SILENCE_S
        while not (batch := self._subscription.poll_batch(limit)):
            os.sched_yield()
            if self._publisher.poll() not in (None, 0):
                raise RuntimeError(f"the publisher ended with status {self._publisher.returncode}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"nothing arrived for {SILENCE_S:.0f} s, after {self.totals.received:,} trades")
        now_ns = time.monotonic_ns()
        records = batch.as_records(TRADE)
        self.latencies.append(now_ns - records["sent_ns"])
        self.totals.add(records)
        return now_ns


def report(result: Result, trades: Trades) -> list[Table]:
    """The tables: figures per symbol, then rate and latency percentiles."""
    prices = Table(title=f"{trades.source}: {result.totals.received:,} trades received", title_justify="left")
    prices.add_column("symbol")
    for name in ("trades", "last", "high", "low", "count" if trades.is_quotes else "volume"):
        prices.add_column(name, justify="right")
    for symbol, totals in sorted(result.totals.by_symbol.items()):
        volume = f"{totals.volume:,.0f}" if trades.is_quotes else f"{totals.volume:,.3f}"
        figures = (f"{value:,.4f}" for value in (totals.last, totals.high, totals.low))
        prices.add_row(symbol, f"{totals.trades:,}", *figures, volume)
    speed = Table(title="rate, and latency from before the offer to after the poll", title_justify="left")
    speed.add_column("phase one", justify="right")
    percentiles = (50, 90, 99, 99.9, 100)
    for percentile in percentiles:
        speed.add_column("max" if percentile == 100 else f"p{percentile:g}", justify="right")
    values = np.percentile(result.latencies_ns, percentiles) / 1e3
    speed.add_row(f"{result.rate / 1e6:.2f} M/s", *(f"{value:,.1f} us" for value in values))
    return [prices, speed]


@contextmanager
def _publisher(plan: Plan) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-m", "aeron.demo.publisher", plan.to_json()], stdin=subprocess.PIPE)
    try:
        yield process
        process.wait(timeout=SILENCE_S)
    finally:
        process.kill()
        process.wait()


def _tell(publisher: subprocess.Popen[bytes]) -> None:
    """Says that a phase was received whole."""
    assert publisher.stdin is not None
    publisher.stdin.write(b"\n")
    publisher.stdin.flush()


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<20}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]:>12}"),
        TimeElapsedColumn(),
        console=console,
    )


def _shared_memory() -> str | None:
    """The platform's shared memory, where it has one: the driver's files should never meet a disk."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else None
