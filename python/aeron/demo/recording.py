"""The demo of the archive. The archive is killed while it records trades. Then it starts again and replays them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich import box
from rich.table import Table

import aeron
from aeron.demo.patience import STANDSTILL_S, Patience
from aeron.demo.trades import TRADE, Trades

_CHANNEL = "aeron:ipc?term-length=16m"
_STREAM_ID = 1001
_LIVENESS_NS, _TIMER_NS = 1_000_000_000, 100_000_000
"""Client liveness timeout and timer interval of the driver, in nanoseconds. They are short, because the second archive
waits until the driver has freed the counters of the killed archive."""
_FEWEST = 1_000_000
"""Minimum number of trades. With fewer trades, all of them might be recorded before the kill."""


@dataclass(frozen=True)
class Outcome:
    """Results of the demo: the numbers of published, confirmed and replayed trades, the durations of restart and
    replay, and the archive's files.
    """

    published: int
    confirmed: int
    replayed: int
    restart_s: float
    replay_s: float
    files: tuple[str, ...]


def run(place: Path, trades: Trades) -> Outcome:
    """Records the trades, kills the archive, starts it again, and compares the replayed trades with the published ones.

    Raises:
        RuntimeError: a confirmed trade is missing, or a replayed trade differs.
    """
    records = np.tile(trades.records, -(-_FEWEST // len(trades.records)))
    records["sequence"] = np.arange(len(records))
    driver_directory, directory = place / "archive-driver", place / "trades"
    with (
        aeron.MediaDriver(dir=driver_directory, client_liveness_timeout_ns=_LIVENESS_NS, timer_interval_ns=_TIMER_NS),
        aeron.connect(driver_directory) as client,
    ):
        with _archive_process(driver_directory, directory) as process:
            published, confirmed = _record(client, records, process)
        begin = time.monotonic()
        with (
            _archive_process(driver_directory, directory),
            aeron.connect_archive(client, message_timeout=STANDSTILL_S) as archive,
        ):
            restart_s, begin = time.monotonic() - begin, time.monotonic()
            replayed = _replay(archive, records)
            replay_s = time.monotonic() - begin
    if replayed < confirmed:
        raise RuntimeError(f"{confirmed:,} trades were confirmed, but only {replayed:,} were replayed")
    files = tuple(sorted(os.listdir(directory)))
    return Outcome(published, confirmed, replayed, restart_s, replay_s, files)


def report(outcome: Outcome) -> Table:
    """Returns the table of the outcome."""
    title = "recorded; archive killed; started again; replayed, each trade as it was published"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("published", "confirmed before the kill", "replayed", "restart", "replay"):
        table.add_column(name, justify="right", overflow="fold")
    rate = outcome.replayed / outcome.replay_s / 1e6
    counts = (f"{count:,}" for count in (outcome.published, outcome.confirmed, outcome.replayed))
    table.add_row(*counts, f"{outcome.restart_s:.2f} s", f"{rate:.2f} M/s")
    return table


@contextmanager
def _archive_process(driver: Path, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Runs ``aeron archive run`` in a separate process during the block. Kills the process at the end of the block."""
    options = {
        "aeron.archive.control.channel.enabled": "false",
        "aeron.log.level": "error",
        "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
    }
    command = [sys.executable, "-m", "aeron", "archive", "run", "--dir", str(driver)]
    command += ["--archive-dir", str(directory)]
    command += [f"-D{name}={value}" for name, value in options.items()]
    # The archive has a separate process group, so that it gets no Ctrl-C. This process gets Ctrl-C, and ends the
    # archive.
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, process_group=0) as process:
        try:
            yield process
        finally:
            process.kill()


def _record(client: aeron.Aeron, records: npt.NDArray[np.void], process: subprocess.Popen[bytes]) -> tuple[int, int]:
    """Publishes three quarters of the trades, and then kills the archive.

    The first half of the trades is confirmed: it is recorded before further trades are published. Returns the numbers
    of published and of confirmed trades.
    """
    with (
        aeron.connect_archive(client, message_timeout=STANDSTILL_S) as archive,
        archive.add_recorded_exclusive_publication(_CHANNEL, _STREAM_ID) as publication,
    ):
        confirmed = len(records) // 2
        _publish(publication, records, 0, confirmed)
        archive.wait_recorded(publication, publication.position, timeout=STANDSTILL_S)
        published = confirmed + _publish(publication, records[: confirmed + confirmed // 2], confirmed, confirmed)
        process.kill()
        process.wait()
        return published, confirmed


def _publish(publication: aeron.ExclusivePublication, records: npt.NDArray[np.void], start: int, count: int) -> int:
    end, at = min(start + count, len(records)), start
    patience = Patience(f"{end:,} trades are published", lambda: at)
    while at < end:
        at += publication.offer_batch(records[:end], start=at)
        patience.look()
    return at - start


def _replay(archive: aeron.AeronArchive, records: npt.NDArray[np.void]) -> int:
    """Replays the only recording, and compares its trades with the published ones. Returns their number."""
    [recording] = archive.list_recordings()
    count = 0
    with archive.replay(recording.recording_id, length=aeron.REPLAY_ALL_AND_STOP) as replay:
        for batch in replay.batches():
            found = batch.as_records(TRADE)
            if found.tobytes() != records[count : count + len(found)].tobytes():
                raise RuntimeError(f"the trade after {count:,} trades differs from the published one")
            count += len(found)
    return count
