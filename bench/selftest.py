"""Plants a known slowness into our native program, and counts how often the benchmark finds it."""

from dataclasses import dataclass, replace

from bench.evaluation import evaluate
from bench.goals import Group, same
from bench.results import Results
from bench.runner import measure_group
from bench.statistics import MISSED, geometric_mean

PLANTED = (0.0, 0.05, 0.10)
"""Shares of the time of a message. The first one counts false finds."""
_BASE_ROUNDS = 3
_NS_OF = {"rate": lambda rate: 1e9 / rate, "p50": lambda ns: ns, "cost": lambda cpu_s: cpu_s * 1e3}
"""Nanoseconds for a message from the value of each metric."""


@dataclass
class Found:
    """How often a planted slowness was found."""

    line: str
    planted: float
    lines: list
    """The evaluated line of each try."""

    @property
    def count(self):
        return sum(line.verdict == MISSED for line in self.lines)

    def __str__(self):
        rounds = sum(line.rounds for line in self.lines) / len(self.lines)
        ratio = geometric_mean([line.interval.estimate for line in self.lines])
        modes = sum(any(line.modes) for line in self.lines)
        return (
            f"{self.line}: planted {self.planted:.0%}, found {self.count} of {len(self.lines)}, "
            f"mean ratio {ratio:.3f}, {rounds:.0f} rounds, {modes} tries with two modes"
        )


def selftest(lines, tries, limits):
    """Yields what was found for each line and each planted share. `lines` are pairs of a cell and its goal."""
    for cell, goal in lines:
        for share in PLANTED:
            yield Found(goal.text, share, [planted(cell, goal, share, limits) for _ in range(tries)])


def planted(cell, goal, share, limits):
    """Measures a cell beside the same cell with a delay for each message, the given share of the time of a message.
    Returns the evaluated line."""
    base = Results({})
    measure_group(base, Group([cell], [], "base"), replace(limits, rounds=_BASE_ROUNDS))
    message_ns = _NS_OF[goal.metric](geometric_mean(base.values("base", cell.name, goal.metric)))
    name = f"{cell.name}, delayed by {share:.0%}"
    slow = replace(cell, name=name, settings={**cell.settings, "delay_ns": round(share * message_ns, 3)})
    delayed = same(f"{goal.text}, delayed", replace(goal, ours=name), cell.name)
    results = Results({})
    measure_group(results, Group([cell, slow], [delayed], "planted"), limits)
    return evaluate(results, "planted", delayed)
