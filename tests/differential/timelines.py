"""Frames that timers of a driver send, with their times, and the comparison of two such records."""

import statistics
import time
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from differential import wire
from differential.rig import PACE

_LOOK_S = 0.001


@dataclass
class Timeline:
    """A scene of one driver with a plan of pairs (seconds, action). It runs the actions and records received frames."""

    scene: object
    plan: list
    frames: list = field(default_factory=list)

    def run(self, now):
        while self.plan and now >= self.plan[0][0]:
            _, act = self.plan.pop(0)
            act(self.scene)
        for socket in self.scene.listening():
            socket.take()
            self.frames += [(at, datagram) for at, datagram, _ in socket.taken]
            socket.taken.clear()

    def forget(self):
        """Drops the frames that arrived before the record starts."""
        for socket in self.scene.listening():
            socket.take()
            socket.taken.clear()

    def runs(self, ignored_session=None):
        """Returns the runs of equal frames for each kind of frame: frame, number of repetitions, and median
        interval."""
        by_kind = {}
        for at, datagram in self.frames:
            if wire.kind(datagram) != wire.RTTM and wire.session(datagram) != ignored_session:
                line = wire.readable(datagram, getattr(self.scene, "receivers", ()))
                by_kind.setdefault(line.split()[0], []).append((at, line))
        return {
            kind: [_run(line, list(row)) for line, row in groupby(rows, lambda row: row[1])]
            for kind, rows in by_kind.items()
        }


@dataclass(frozen=True)
class Run:
    """Consecutive repetitions of one frame."""

    line: str
    count: int
    interval_s: float

    def is_like(self, other):
        """Returns whether another driver sent the same frame with nearly the same count and nearly the same
        interval."""
        count_tolerance = max(1, round(0.15 * self.count))
        is_as_often = abs(self.count - other.count) <= count_tolerance
        is_as_fast = abs(self.interval_s - other.interval_s) <= max(0.02 * PACE, 0.1 * self.interval_s)
        return self.line == other.line and is_as_often and (is_as_fast or min(self.count, other.count) < 4)


def _run(line, rows):
    intervals = [after - before for (before, _), (after, _) in pairwise(rows)]
    return Run(line, len(rows), statistics.median(intervals) if intervals else 0)


def record(timelines, duration_s):
    """Runs timelines side by side. Returns the longest time in which no timeline was polled."""
    for timeline in timelines:
        timeline.forget()
    begin = last = time.monotonic()
    longest = 0
    while (now := time.monotonic()) - begin < duration_s:
        longest, last = max(longest, now - last), now
        for timeline in timelines:
            timeline.run(now - begin)
        time.sleep(_LOOK_S)
    return longest


def parting(theirs, ours):
    """Returns the differences of two records as a text. The text is empty if the records are alike."""
    lines = []
    for kind in sorted(theirs.keys() | ours.keys()):
        some, others = theirs.get(kind, []), ours.get(kind, [])
        alike = len(some) == len(others) and all(a.is_like(b) for a, b in zip(some, others, strict=True))
        if not alike:
            lines += [f"{kind}:", *(f"  C:    {run}" for run in some), *(f"  ours: {run}" for run in others)]
    return "\n".join(lines)
