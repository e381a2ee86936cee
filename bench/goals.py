"""Goals of the lines, groups of cells, and parts of the document."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from bench.environments import PEER_PACKAGES
from bench.statistics import Bound
from interop import toolchain

_UNITS = {
    **dict.fromkeys(("rss", "retained", "freed", "scrubbed"), "MiB"),
    **dict.fromkeys(("record cost", "replay cost"), "ns/KiB"),
    **dict.fromkeys(("first message", "start", "over driver", "listing"), "ms"),
    **dict.fromkeys(("cost", "JVM", "Python", "driver", "archive", "broker"), "CPU s/M"),
}


@dataclass
class Goal:
    """Goal of a line: a bound for the ratio to the best peer, or for the value itself if the line has no peers."""

    text: str
    ours: str
    peers: tuple | None
    metric: str = "rate"
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "messages/s"
    kind: str = "peer"
    """Other side of the comparison: a `peer`, a `limit` of the machine, or the `same` program."""

    @property
    def bound(self):
        """The bound. A minimum if the highest value is the best, as for a rate; a maximum otherwise, as for a time."""
        value = self.at_most if self.at_least is None else self.at_least
        return Bound(value, self.at_least is not None, self.kind)


@dataclass
class Group:
    """Cells that are measured in the same rounds, and the goals for them."""

    cells: list
    goals: list
    name: str = ""

    def cell(self, name):
        return next(cell for cell in self.cells if cell.name == name)


def with_twin(group):
    """Returns the group with the cell of its first goal a second time, under another name.

    The line that compares the two should have no change: it shows what the benchmark finds where there is nothing.
    """
    first = group.goals[0]
    cell = group.cell(first.ours)
    twin = replace(cell, name=f"{cell.name}, again")
    again = same(f"A against A: {cell.name}", first, twin.name)
    return Group([*group.cells, twin], [*group.goals, again], group.name)


def same(text, goal, name):
    """Returns a goal like `goal`, which compares ours with the same program in the cell `name`."""
    bounds = {"at_least": 1.0} if goal.bound.is_minimum else {"at_most": 1.0}
    return Goal(text, goal.ours, (name,), goal.metric, **bounds, unit=goal.unit, kind="same")


def unit_of(metric, cell):
    """Returns the unit of a metric of this cell."""
    return _UNITS.get(metric, cell.unit)


@dataclass
class Part:
    """Groups of cells with a common table. A part sets the seconds of a run that count, and the minutes of all groups.

    `versions` returns the measured peers with their versions. `missing` returns the reason why this machine cannot run
    the part. If it can, `missing` returns `None` or an empty text.
    """

    name: str
    groups: dict
    seconds: float
    minutes: float
    versions: Callable = lambda: (*PEER_PACKAGES[:-1], toolchain.JAR)
    missing: Callable = lambda: None
    runs_in_this_process: bool = False
    """Whether the measured package is the one that the benchmark itself imports. Such a part cannot compare builds."""

    def group(self, name):
        """Makes a group, with the cell that is measured twice."""
        return with_twin(replace(self.groups[name](), name=name))
