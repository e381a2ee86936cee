"""Evaluation of a line: its two sides, the interval, the verdict, and the modes of both sides."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bench import statistics
from bench.goals import Goal
from bench.statistics import LOOKS, OPEN, geometric_mean

LEAST_RUNS_IN_A_MODE = 5


@dataclass
class Line:
    """An evaluated line. Each side is an array of rounds and runs."""

    goal: Goal
    peer: str | None
    ours: np.ndarray
    theirs: np.ndarray | None
    follows_probe: bool
    """Whether the modes of a side are those of the machine's probe."""

    @property
    def rounds(self):
        return len(self.ours)

    @cached_property
    def interval(self):
        """Interval of the ratio to the peer, or of the value if there is no peer."""
        if self.theirs is None:
            return statistics.mean_interval(self.ours)
        return statistics.ratio_interval(self.ours, self.theirs)

    @cached_property
    def verdict(self):
        if self.rounds < LOOKS[0]:
            return OPEN
        return self.goal.bound.verdict(self.interval, has_modes=any(self.modes))

    @cached_property
    def modes(self):
        """The modes of ours and of the peer: two arrays for a side with two modes, the lower values first. Otherwise
        none."""
        return [_modes(side) for side in (self.ours, self.theirs)]

    def ratios_in_modes(self):
        """Returns the ratio of the sides in each mode that both sides have at least five times."""
        return [
            geometric_mean(ours) / geometric_mean(theirs)
            for ours, theirs in zip(*self.modes, strict=False)
            if min(len(ours), len(theirs)) >= LEAST_RUNS_IN_A_MODE
        ]


def evaluate(results, group, goal):
    """Evaluates the goal of a group with the rounds that are measured. Returns `None` if there are none."""
    if goal.peers is None:
        (ours,) = results.sides(group, goal.metric, goal.ours)
        return Line(goal, None, ours, None, follows_probe=False) if len(ours) else None
    sides = {peer: _positive(results.sides(group, goal.metric, goal.ours, peer)) for peer in goal.peers}
    measured = {peer: both for peer, both in sides.items() if len(both[0])}
    if not measured:
        return None
    # If a peer has two configurations, the better one counts.
    better = max if goal.bound.is_minimum else min
    peer = better(measured, key=lambda name: geometric_mean(measured[name][1]))
    follows_probe = any(_follows_probe(results, group, cell, goal.metric) for cell in (goal.ours, peer))
    return Line(goal, peer, *measured[peer], follows_probe)


def _positive(sides):
    """Leaves out the rounds with a value that has no logarithm, such as a CPU time below the resolution of its
    clock."""
    are_positive = np.logical_and.reduce([(side > 0).all(axis=1) for side in sides])
    return [side[are_positive] for side in sides]


def _modes(side):
    if side is None or (side <= 0).any():
        return []
    boundary = statistics.mode_boundary(side.ravel())
    return [] if boundary is None else list(statistics.split(side.ravel(), boundary))


def _follows_probe(results, group, cell, metric):
    runs = [run for run in results.of_cell(group, cell) if run.values.get(metric, 0) > 0 and run.conditions["probe_ns"]]
    values, probes = [run.values[metric] for run in runs], [run.conditions["probe_ns"][0] for run in runs]
    return statistics.goes_with_the_probe(values, probes)
