"""Follows a driver: makes its state and the rows of its views from one snapshot after the other."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace

from aeron import metrics
from aeron._health import about_process
from aeron.cli.text import printable
from aeron.cli.top.cells import age, amount, count
from aeron.cli.top.rows import Row, positions_of, rows_of
from aeron.cli.top.series import Series
from aeron.exceptions import AeronError

GONE_S = 120.0
"""Time for which a client that has gone is still shown: an operator looks when something has happened."""
SILENT_MS = 3_000
"""Age of the heartbeat from which a driver counts as silent. A driver writes its heartbeat each second."""


@dataclass(frozen=True)
class Frame:
    """A driver at one moment. All texts are printable. Immutable.

    Args:
        driver: Directory, process and age of the driver.
        trouble: Why the driver cannot be used; `""` if it can.
        totals: Bytes, errors, and the room for counters and files.
        rows: Rows of each view by its name. If there is no driver, the rows of the last one.
    """

    driver: str
    trouble: str = ""
    totals: str = ""
    rows: dict[str, tuple[Row, ...]] = field(default_factory=dict)


class Watch:
    """Follows the driver of a directory, and the next driver that starts there. Not thread-safe."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._series = Series()
        self._network = Series()
        self._driver: tuple[int, int] | None = None
        self._heartbeat_ms = -1
        self._restarts = 0
        self._gone: dict[Hashable, tuple[Row, int]] = {}
        """Clients that have gone, with the monotonic time in nanoseconds."""
        self._last = Frame(printable(directory))

    def read(self) -> Frame:
        """Reads the files of the driver. Raises no error: a frame without a driver has the reason."""
        try:
            found = metrics.snapshot(self._directory)
        except (AeronError, OSError) as error:
            return self.missing(str(error), time.time_ns() // 1_000_000)
        return self.add(found, time.monotonic_ns())

    def missing(self, reason: str, now_ms: int) -> Frame:
        """Returns the frame for a directory without a usable driver, which keeps the rows of the last driver."""
        trouble = printable(f"no driver{self._seen(now_ms)}: waiting for one ({reason.strip()})")
        return Frame(self._last.driver, trouble, self._last.totals, self._last.rows)

    def add(self, found: metrics.DriverMetrics, time_ns: int) -> Frame:
        """Returns the frame of a snapshot, which was taken at a monotonic time in nanoseconds."""
        driver = found.pid, found.start_timestamp_ms
        if driver != self._driver:
            self._restarts += self._driver is not None
            self._driver, self._heartbeat_ms = driver, -1
            self._series, self._network = Series(), Series()
            self._gone, self._last = {}, Frame(self._last.driver)
        # A driver that ends overwrites its last heartbeat.
        self._heartbeat_ms = max(self._heartbeat_ms, found.heartbeat_ms)
        self._series.add(positions_of(found), time_ns)
        self._network.add({name: found.system.get(name, 0) for name in ("bytes_sent", "bytes_received")}, time_ns)
        rows = rows_of(found, self._series)
        rows["clients"] += self._gone_clients(rows["clients"], time_ns)
        self._last = Frame(self._described(found), self._trouble(found), self._totals(found), rows)
        return self._last

    def _gone_clients(self, present: tuple[Row, ...], time_ns: int) -> tuple[Row, ...]:
        """Returns the clients that have timed out or closed in the last minutes."""
        keys = {row.key for row in present}
        for row in self._last.rows.get("clients", ()):
            if row.key not in keys and row.key not in self._gone:
                self._gone[row.key] = row, time_ns
        self._gone = {
            key: (row, gone_ns) for key, (row, gone_ns) in self._gone.items() if time_ns - gone_ns < GONE_S * 1e9
        }
        return tuple(_gone(row, (time_ns - gone_ns) // 1_000_000) for row, gone_ns in self._gone.values())

    def _seen(self, now_ms: int) -> str:
        age_ms = max(now_ms - self._heartbeat_ms, 0)
        return f", last heartbeat {age(age_ms)} ago" if self._heartbeat_ms >= 0 else ""

    def _described(self, found: metrics.DriverMetrics) -> str:
        up = age(found.time_ms - found.start_timestamp_ms)
        restarts = f", {self._restarts} restart{'s' * (self._restarts > 1)}" if self._restarts else ""
        return printable(f"pid {found.pid}, up {up}{restarts}{self._seen(found.time_ms)}, {found.aeron_dir}")

    def _trouble(self, found: metrics.DriverMetrics) -> str:
        seen = self._seen(found.time_ms)
        if found.heartbeat_ms < 0:
            return f"the driver has ended{seen}: waiting for the next one"
        if found.time_ms - found.heartbeat_ms <= SILENT_MS:
            return ""
        return f"the driver does not respond{seen}, {about_process(found.pid)}"

    def _totals(self, found: metrics.DriverMetrics) -> str:
        sent, received = (self._network.history(name)[-1:] for name in ("bytes_sent", "bytes_received"))
        return (
            f"out {amount(*sent or (None,))}/s  in {amount(*received or (None,))}/s  "
            f"errors {count(found.system.get('errors', 0))}  "
            f"counters {count(len(found.counters))}/{count(found.max_counters)}  free {amount(found.free_bytes)}"
            f"{''.join(_events(found))}"
        )


def _gone(row: Row, milliseconds: int) -> Row:
    """Returns the row of a client that went some time ago."""
    ago = f"gone {age(milliseconds)} ago"
    cells = row.cells | {"name": f"{row.cells['name'] or 'client'} ({ago})", "heartbeat": None, "sends/s": None}
    return replace(row, title=f"{row.title}, {ago}", cells=cells, is_marked=True)


def _events(found: metrics.DriverMetrics) -> Iterator[str]:
    """Yields the counts of what has happened to clients and archives, if there are any."""
    of_archives = [archive.values for archive in found.archives]
    counts = {
        "client timeouts": found.system.get("client_timeouts", 0),
        "unfinished messages skipped": found.system.get("unblocked_publications", 0),
        "archive errors": sum(values.get("archive_errors", 0) for values in of_archives),
        "recordings failed": sum(values.get("archive_blocked_images", 0) for values in of_archives),
    }
    yield from (f"  {name} {count(number)}" for name, number in counts.items() if number)
