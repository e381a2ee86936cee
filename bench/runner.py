"""Runs groups of cells. A round measures each cell of a group once, so ours and its peers run under the same load."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.environments import PEER_PACKAGES
from bench.measure import VoidError
from interop import toolchain

_COST = "CPU s/M"
_UNITS = {
    **dict.fromkeys(("rss", "retained", "freed", "scrubbed"), "MiB"),
    **dict.fromkeys(("record cost", "replay cost"), "ns/KiB"),
    **dict.fromkeys(("first message", "start", "over driver", "listing"), "ms"),
    **dict.fromkeys(("cost", "JVM", "Python", "driver", "archive", "broker"), _COST),
}


@dataclass
class Goal:
    """Goal of a line: a limit for the ratio to the best peer, or for the value itself if the line has no peers."""

    text: str
    ours: str
    peers: tuple | None
    metric: str = "rate"
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "messages/s"

    @property
    def sign(self):
        """1 if the highest value is the best, as for a rate. -1 if the lowest value is the best, as for a time."""
        return 1 if self.at_least else -1


@dataclass
class Group:
    """Cells that are measured one after the other in each round, and the goals for them."""

    name: str
    cells: list
    goals: list


@dataclass
class Part:
    """Groups of cells with a common table. A part sets the number of rounds and the seconds for which publishers send.

    `versions` returns the measured peers with their versions. `missing` returns the reason why this machine cannot run
    the part. If it can, `missing` returns `None` or an empty text.
    """

    name: str
    groups: dict
    seconds: float
    runs: int = 7
    versions: Callable = lambda: (*PEER_PACKAGES[:-1], toolchain.JAR)
    missing: Callable = lambda: None


@dataclass
class Results:
    """All measured values, by cell and metric."""

    groups: list
    runs: int
    seconds: float
    versions: str
    machine: dict
    voids: list = field(default_factory=list)
    """Names of cells that could not be measured, one entry for each such round."""
    _values: dict = field(default_factory=dict)

    def add(self, cell, measured):
        for metric, value in measured.items():
            self._values.setdefault((cell.name, metric), []).append(value)

    def values(self, name, metric):
        return self._values[name, metric]

    def has(self, goal):
        return all((name, goal.metric) in self._values for name in (goal.ours, *(goal.peers or ())))

    def figures(self):
        """Yields the name, metric, unit and values of each measurement."""
        for group in self.groups:
            for cell in group.cells:
                for (name, metric), values in self._values.items():
                    if name == cell.name and metric != "count":
                        yield name, metric, _UNITS.get(metric, cell.unit), values


def measure(results):
    """Runs the groups one after the other. A round measures each cell of a group once.

    Each round begins with another cell, because the first cell of a round may be slower: if the kernel has reclaimed
    memory, that cell must obtain the memory again.
    """
    for group in results.groups:
        for turn in range(results.runs):
            first = turn % len(group.cells)
            for cell in group.cells[first:] + group.cells[:first]:
                print(f"{group.name}, run {turn + 1} of {results.runs}: {cell.name}", file=sys.stderr, flush=True)
                _measure_cell(results, cell)


def _measure_cell(results, cell, attempts=3):
    """Measures a cell. A run with a loss or without a response is repeated. There are at most `attempts` runs.

    If no run succeeds, the cell has no value in this round.
    """
    for _ in range(attempts):
        try:
            results.add(cell, cell.measure(results.seconds))
            return
        except (VoidError, AssertionError) as void:
            print(f"VOID: {void}", file=sys.stderr, flush=True)
    results.voids.append(cell.name)
