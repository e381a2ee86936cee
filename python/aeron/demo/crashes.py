"""The demo of crashes. Spark makes bars of recorded trades, while Spark, the archive and the driver are killed in turn.

A `RecordedPublisher` publishes the trades. At the end, the bars must be equal to the bars that pandas makes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich import box
from rich.console import Console
from rich.table import Table

import aeron
from aeron.demo.bars import usual_bar_us
from aeron.demo.crash_query import Query
from aeron.demo.expected import bars_by_pandas, check_equal
from aeron.demo.live import in_order, read_parquet
from aeron.demo.patience import Patience
from aeron.demo.replay import closing, in_time_order
from aeron.demo.trades import Trades

_CHANNEL = "aeron:ipc?term-length=1m"
_STREAM_ID = 1001
_QUARTER_S = 2.0
"""Time in which a quarter of the trades is published, in seconds."""
_DRIVER_TIMEOUT_MS = 3000
_MAX_STARTS = 10
"""Number of starts of Spark or of the archive after which the demo fails."""
# The time-outs are short, so that a driver and an archive soon notice the death of another process.
_DRIVER_SETTINGS = {
    "aeron.log.level": "error",  # the kills are told by the demo itself
    "aeron.timer.interval": "100ms",
    "aeron.client.liveness.timeout": "2s",
    "aeron.publication.unblock.timeout": "2500ms",
    "aeron.image.liveness.timeout": "500ms",
    "aeron.publication.linger.timeout": "300ms",
}
_ARCHIVE_SETTINGS = {
    "aeron.log.level": "error",  # the kills are told by the demo itself
    "aeron.driver.timeout": str(_DRIVER_TIMEOUT_MS),
    "aeron.archive.control.channel.enabled": "false",
    "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
}


@dataclass(frozen=True)
class Outcome:
    """Numbers of the demo: all trades, trades that were offered again, started Spark processes, and bars."""

    trades: int
    offered_again: int
    spark_processes: int
    bars: int


def run(place: Path, trades: Trades, console: Console) -> Outcome:
    """Publishes the trades, kills each part in turn, and compares Spark's bars with the bars of pandas.

    Raises:
        RuntimeError: a process does not start or makes no progress, or a bar differs.
        KeyboardInterrupt: SIGINT or SIGTERM.
    """
    records = in_time_order(trades.records)
    records["sequence"] = np.arange(len(records))
    bar_us = usual_bar_us(records["time_ns"])
    with aeron.ShutdownSignalBarrier() as stop, _Parts(place, bar_us, console) as parts:
        parts.start_driver()
        parts.archive.start()
        with _publisher(parts) as publisher:
            stream = _Stream(publisher, np.append(records, closing(records, bar_us)), parts, stop)
            parts.spark.start()
            _kill_in_turn(stream, parts, len(records))
            stream.publish_to(len(records) + 1)
            stream.wait(lambda: publisher.unrecorded_messages == 0, "the last trade is recorded")
            offered_again = publisher.offered_again
        parts.spark.kill()
        parts.finish()
        made = in_order(read_parquet(parts.query.result))
    # Spark has made the bars of all trades: only the window of the closing record is not complete, and it has no
    # trades.
    check_equal(made, bars_by_pandas(records, bar_us))
    return Outcome(len(records), offered_again, parts.spark.starts, len(made))


def report(outcome: Outcome) -> Table:
    """Returns the table of the outcome."""
    title = "Spark, archive and driver killed in turn; bars equal to those of pandas"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("trades", "offered again", "starts of Spark", "bars"):
        table.add_column(name, justify="right", overflow="fold")
    table.add_row(*(f"{n:,}" for n in (outcome.trades, outcome.offered_again, outcome.spark_processes, outcome.bars)))
    return table


def _kill_in_turn(stream: _Stream, parts: _Parts, count: int) -> None:
    """Publishes the trades in four quarters. Kills one part in the middle of each quarter after the first one. After
    each quarter, waits until Spark has made another batch."""
    quarter = count // 4
    stream.publish_to(quarter)
    stream.wait_for_batches(2)
    kills: list[tuple[str, Callable[[], None]]] = [
        ("Spark", parts.restart_spark),
        ("the archive", parts.restart_archive),
        ("the driver", parts.restart_driver),
    ]
    for number, (name, restart) in enumerate(kills, start=1):
        stream.publish_to(number * quarter + quarter // 2)
        parts.say(f"{name} is killed after {stream.published:,} of {count:,} trades")
        restart()
        stream.publish_to((number + 1) * quarter)
        stream.wait_for_batches(1)
        parts.say(f"Spark has made {parts.query.batches():,} batches")


@contextmanager
def _publisher(parts: _Parts) -> Iterator[aeron.RecordedPublisher]:
    with aeron.RecordedPublisher(
        _CHANNEL,
        _STREAM_ID,
        driver=parts.driver_directory,
        alias="trades",
        driver_timeout_ms=_DRIVER_TIMEOUT_MS,
        on_reconnect=lambda position: parts.say(f"the publisher goes on at position {position:,}"),
        on_error=lambda _: None,
    ) as publisher:
        yield publisher


class _Stream:
    """Publishes the trades at a steady rate, and checks the processes while it waits."""

    def __init__(
        self,
        publisher: aeron.RecordedPublisher,
        records: npt.NDArray[np.void],
        parts: _Parts,
        stop: aeron.ShutdownSignalBarrier,
    ) -> None:
        self._publisher = publisher
        self._records = records
        self._parts = parts
        self._stop = stop
        self._per_s = len(records) / (4 * _QUARTER_S)
        self.published = 0

    def publish_to(self, end: int) -> None:
        """Publishes the trades before the index `end`."""
        first, begin = self.published, time.monotonic()

        def is_done() -> bool:
            due = min(end, first + int((time.monotonic() - begin) * self._per_s))
            self.published += self._publisher.offer_batch(self._records[:due], start=self.published)
            return self.published == end

        self.wait(is_done, f"{end:,} trades are published")

    def wait_for_batches(self, count: int) -> None:
        """Waits until Spark has committed `count` further batches."""
        wanted = self._parts.query.batches() + count
        self.wait(lambda: self._parts.query.batches() >= wanted, f"Spark makes its batch {wanted}")

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Polls the publisher until the condition is true.

        Raises:
            RuntimeError: there is no progress, or a process has failed.
            KeyboardInterrupt: SIGINT or SIGTERM.
        """
        marks = lambda: (self.published, self._publisher.unrecorded_messages, self._parts.query.written())  # noqa: E731
        patience = Patience(what, marks, say=self._parts.say)
        while not condition():
            self._publisher.poll()
            self._parts.check()
            patience.look()
            if self._stop.wait(0.001):
                raise KeyboardInterrupt


class _Parts:
    """The driver, the archive and Spark, each in its own process. As a context manager, kills them at the end."""

    def __init__(self, place: Path, bar_us: int, console: Console) -> None:
        self._console = console
        self._begin = time.monotonic()
        self.driver_directory = place / "driver"
        archive = place / "archive"
        (place / "query").mkdir()
        self.query = Query(str(self.driver_directory), str(archive), _STREAM_ID, bar_us, str(place / "query"), False)
        aeron_command = ("-m", "aeron")
        self.driver = _Part("driver", (*aeron_command, "driver", "--dir", self.driver_directory), _DRIVER_SETTINGS)
        archive_command = (*aeron_command, "archive", "run", "--dir", self.driver_directory, "--archive-dir", archive)
        self.archive = _Part("archive", archive_command, _ARCHIVE_SETTINGS)
        self.spark = _Part("Spark", ("-m", "aeron.demo.crash_query", self.query.to_json()), {})

    def restart_spark(self) -> None:
        """Kills Spark with all its processes, and starts it again with the same checkpoint."""
        self.spark.kill()
        self.spark.start()

    def restart_archive(self) -> None:
        """Kills the archive, and starts it again with the same directory."""
        self.archive.kill()
        self.archive.start()

    def restart_driver(self) -> None:
        """Kills the driver, and the archive, which cannot continue without its driver. Starts both again."""
        self.driver.kill()
        self.archive.kill()
        self.start_driver()
        self.archive.start()

    def start_driver(self) -> None:
        """Starts the driver, and waits until a client can connect.

        Raises:
            RuntimeError: the driver ends, or does not start.
        """
        self.driver.start()
        patience = Patience("the driver has started", say=self.say)
        # The file of a killed driver stays, and its last heartbeat is recent. So a client would connect to that driver.
        while not self._is_driver_running():
            self.driver.check()
            patience.look()
            time.sleep(0.02)
        aeron.connect(self.driver_directory).close()

    def _is_driver_running(self) -> bool:
        with (
            contextlib.suppress(aeron.AeronError, OSError),
            aeron.CncFile(self.driver_directory, timeout_ms=0) as cnc,
        ):
            return cnc.pid == self.driver.pid
        return False

    def check(self) -> None:
        """Starts Spark or the archive again if it has ended by itself. Spark ends if the driver was killed. On a busy
        machine, the driver may regard a slow archive as dead, and then the archive ends.

        Raises:
            RuntimeError: the driver has ended, or Spark or the archive has ended after more than ten starts.
        """
        self.driver.check()
        for name, part in (("the archive", self.archive), ("Spark", self.spark)):
            if part.has_ended():
                if part.starts > _MAX_STARTS:
                    raise RuntimeError(f"{name} has ended after each of {part.starts} starts: see its log or output")
                self.say(f"{name} has ended with an error, and starts again")
                part.start()

    def finish(self) -> None:
        """Runs Spark up to the last recorded trade."""
        last = Query(**{**vars(self.query), "is_last": True})
        self.say("Spark reads the rest")
        command = [sys.executable, "-m", "aeron.demo.crash_query", last.to_json()]
        with subprocess.Popen(command, process_group=0) as process:
            patience = Patience("Spark has read the rest", last.written, say=self.say)
            try:
                while (status := process.poll()) is None:
                    patience.look()
                    time.sleep(0.1)
                if status:
                    raise RuntimeError(f"Spark ended with status {status}")
            finally:
                _kill_group(process)
        self.spark.starts += 1

    def say(self, text: str) -> None:
        """Prints an event with its time."""
        self._console.print(f"{time.monotonic() - self._begin:6.1f} s  {text}")

    def __enter__(self) -> _Parts:
        return self

    def __exit__(self, *_: object) -> None:
        for part in (self.spark, self.archive, self.driver):
            part.kill()


class _Part:
    """A Python process and its children. The demo kills the process and starts it again."""

    def __init__(self, name: str, arguments: tuple[object, ...], settings: dict[str, str]) -> None:
        self._name = name
        self._command = [sys.executable, *map(str, arguments), *(f"-D{key}={value}" for key, value in settings.items())]
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def start(self) -> None:
        """Starts the process. It has its own process group, so that it does not get Ctrl-C."""
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, process_group=0
        )
        self.starts += 1

    @property
    def pid(self) -> int | None:
        """Process id; ``None`` before the start and after :meth:`kill`."""
        return None if self._process is None else self._process.pid

    def has_ended(self) -> bool:
        """Returns whether the process has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def check(self) -> None:
        """Raises ``RuntimeError`` if the process has ended by itself."""
        if self._process is not None and (status := self._process.poll()) is not None:
            raise RuntimeError(f"the {self._name} ended with status {status}")

    def kill(self) -> None:
        """Kills the process and its children. Idempotent."""
        if self._process is not None:
            _kill_group(self._process)
            self._process.wait()
            self._process = None


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
