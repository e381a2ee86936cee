"""The publishing process of the demo. Usage: ``python -m aeron.demo.publisher PLAN``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

import aeron
from aeron.demo.patience import STANDSTILL_S
from aeron.demo.plan import Plan

BATCH = 4096
"""Trades per call in phase one: enough to make the cost of a call irrelevant, but few enough for the L2 cache."""


def main(plan: Plan) -> None:
    """Publishes the trades of both phases. After each phase, waits for a line on standard input. The parent process
    writes the line when the subscriber has received all trades."""
    records = plan.source.load().records
    with aeron.connect(plan.directory) as client:
        publication = client.add_exclusive_publication(plan.channel, plan.stream_id)
        publication.wait_connected(timeout=STANDSTILL_S)
        for _ in range(plan.repeat):
            for start in range(0, len(records), BATCH):
                _publish(publication, records[start : start + BATCH], time.monotonic_ns())
        sys.stdin.readline()
        due_ns = np.arange(plan.paced) * 1_000_000_000 // plan.rate
        publish_when_due(publication, records, due_ns, os.sched_yield)
        sys.stdin.readline()


class _Sequence:
    """Numbers the trades across all batches of this process."""

    def __init__(self) -> None:
        self._next = 0

    def stamp(self, records: npt.NDArray[np.void], sent_ns: int | npt.NDArray[np.int64]) -> None:
        records["sequence"] = np.arange(self._next, self._next + len(records))
        records["sent_ns"] = sent_ns
        self._next += len(records)


_sequence = _Sequence()


def _publish(
    publication: aeron.ExclusivePublication, records: npt.NDArray[np.void], sent_ns: int | npt.NDArray[np.int64]
) -> None:
    _sequence.stamp(records, sent_ns)
    sent = publication.offer_batch(records)
    while sent < len(records):
        os.sched_yield()
        sent += publication.offer_batch(records[sent:])


def publish_when_due(
    publication: aeron.ExclusivePublication,
    records: npt.NDArray[np.void],
    due_ns: npt.NDArray[np.int64],
    idle: Callable[[], object],
) -> None:
    """Publishes one record at each of the times ``due_ns``, in nanoseconds after the call. After the last record,
    begins again with the first one.

    ``sent_ns`` of a record is the time at which the record was due. So if the publisher stalls, the latency of a trade
    includes the delay.
    """
    start_ns = time.monotonic_ns()
    sent = 0
    while sent < len(due_ns):
        due = int(np.searchsorted(due_ns, time.monotonic_ns() - start_ns, side="right"))
        while sent < due:
            first = sent % len(records)
            batch = records[first : first + due - sent]
            _publish(publication, batch, start_ns + due_ns[sent : sent + len(batch)])
            sent += len(batch)
        idle()


if __name__ == "__main__":
    try:
        main(Plan.from_json(sys.argv[1]))
    except aeron.AeronError as error:
        sys.exit(f"publisher: {error}".rstrip())
