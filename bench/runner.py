"""Runs groups of lines, each cell of a group once per round, so that ours and the peers meet the same machine."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.environments import PEER_PACKAGES
from bench.measure import VoidError
from interop import toolchain

_COST = "CPU s/M"
_UNITS = {
    **dict.fromkeys(("rss", "retained"), "MiB"),
    **dict.fromkeys(("record cost", "replay cost"), "ns/KiB"),
    **dict.fromkeys(("first message", "start", "over driver", "listing"), "ms"),
    **dict.fromkeys(("cost", "JVM", "Python", "driver", "broker"), _COST),
}


@dataclass
class Goal:
    """What a line must reach: a ratio to the best of its peers, or without peers a bound."""

    text: str
    ours: str
    peers: tuple | None
    metric: str = "rate"
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "messages/s"

    @property
    def sign(self):
        """Which of several peers is the best: the fastest rate, or the shortest time."""
        return 1 if self.at_least else -1


@dataclass
class Group:
    """Cells that are measured side by side."""

    name: str
    cells: list
    goals: list


@dataclass
class Part:
    """Groups whose table has a place of its own, how long their publishers send, and the rounds that a table needs.

    `versions` names what is measured beside ours, `missing` what this machine lacks for it, if anything.
    """

    name: str
    groups: dict
    seconds: float
    runs: int = 7
    versions: Callable = lambda: (*PEER_PACKAGES[:-1], toolchain.JAR)
    missing: Callable = lambda: None


@dataclass
class Results:
    """Every measured value, by cell and metric."""

    groups: list
    runs: int
    seconds: float
    versions: str
    machine: dict
    voids: list = field(default_factory=list)
    """Cells that could not be measured, once for each round."""
    _values: dict = field(default_factory=dict)

    def add(self, cell, measured):
        for metric, value in measured.items():
            self._values.setdefault((cell.name, metric), []).append(value)

    def values(self, name, metric):
        return self._values[name, metric]

    def has(self, goal):
        return all((name, goal.metric) in self._values for name in (goal.ours, *(goal.peers or ())))

    def figures(self):
        """(name, metric, unit, values) of everything that was measured."""
        for group in self.groups:
            for cell in group.cells:
                for (name, metric), values in self._values.items():
                    if name == cell.name and metric != "count":
                        yield name, metric, _UNITS.get(metric, cell.unit), values


def measure(results):
    """All groups, one after the other, the cells of each in turn."""
    for group in results.groups:
        for turn in range(results.runs):
            for cell in group.cells:
                print(f"{group.name}, run {turn + 1} of {results.runs}: {cell.name}", file=sys.stderr, flush=True)
                _measure_cell(results, cell)


def _measure_cell(results, cell, attempts=3):
    """A loss, or a process that does not answer, voids a run, which is repeated; after three the round goes without."""
    for _ in range(attempts):
        try:
            results.add(cell, cell.measure(results.seconds))
            return
        except (VoidError, AssertionError) as void:
            print(f"VOID: {void}", file=sys.stderr, flush=True)
    results.voids.append(cell.name)
