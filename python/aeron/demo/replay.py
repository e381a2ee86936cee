"""The publishing process of the demo's pipeline. Usage: ``python -m aeron.demo.replay PLAN``."""

from __future__ import annotations

import sys
import time

import numpy as np
import numpy.typing as npt

import aeron
from aeron.demo.plan import Replay
from aeron.demo.publisher import publish_when_due
from aeron.demo.trades import TRADE

_REST_S = 0.001
"""Time between two checks for due trades, in seconds. While the process sleeps, Spark can use the cores."""
_NEVER_NS = 2.0**62


def main(plan: Replay) -> None:
    """Waits for a line on standard input, publishes the trades, and ends after another line.

    The parent process writes the first line when all subscribers are connected.
    """
    records = in_time_order(plan.source.load().records)
    times = np.append(records["time_ns"], records["time_ns"][-1] + plan.closing_ns)
    with aeron.connect(plan.directory) as client:
        publication = client.add_exclusive_publication(plan.channel, plan.stream_id)
        sys.stdin.readline()
        due_ns = np.minimum((times - times[0]) / plan.speed, _NEVER_NS).astype(np.int64)
        # The closing record is not a trade, so it is published without a wait.
        due_ns[-1] = due_ns[-2]
        records = np.append(records, _record_at(int(times[-1])))
        publish_when_due(publication, records, due_ns, lambda: time.sleep(_REST_S))
        sys.stdin.readline()


def in_time_order(records: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Returns the records in the order of the replay. Records with equal times stay in file order."""
    return records[np.argsort(records["time_ns"], kind="stable")]


def closing(records: npt.NDArray[np.void], bar_us: int) -> npt.NDArray[np.void]:
    """Returns a record that completes the bars of these records. Its time is three lengths of a bar after the last
    record.
    """
    return _record_at(int(records["time_ns"].max()) + 3 * bar_us * 1000)


def _record_at(time_ns: int) -> npt.NDArray[np.void]:
    """Returns a record without symbol and quantity. The record is in no bar, because its window is never completed."""
    record = np.zeros(1, TRADE)
    record["time_ns"] = time_ns
    return record


if __name__ == "__main__":
    try:
        main(Replay.from_json(sys.argv[1]))
    except aeron.AeronError as error:
        sys.exit(f"publisher: {error}".rstrip())
