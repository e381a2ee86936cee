"""Runs groups of cells in rounds, until each line has its verdict or the time is over."""

import sys
import time
from dataclasses import asdict, dataclass

from bench import measure
from bench.conditions import Observation
from bench.evaluation import evaluate
from bench.measure import VoidError
from bench.placement import FREE, cpus
from bench.results import Run
from bench.statistics import LOOKS, OPEN

REPEATS = 3
"""Number of times that a void run is repeated."""
_LONGEST_REASON = 200
"""Characters of the reason of a void run that the raw results keep: the end of the output of a failed process."""


@dataclass(frozen=True)
class Limits:
    """How long a group is measured."""

    seconds: float
    """Seconds of a run that count."""
    minutes: float
    """Longest time for all rounds. The first round is always measured."""
    rounds: int = LOOKS[-1]
    may_be_busy: bool = False
    """Whether runs count even if other programs use the processors."""


def in_order(cells, number):
    """Returns the cells in the order of a round: each cell twice, mirrored. Each round begins with another cell.

    A slow change of the machine's state then affects all cells of a round equally.
    """
    first = number % len(cells)
    turned = cells[first:] + cells[:first]
    return turned + turned[::-1]


def measure_group(results, group, limits):
    """Measures rounds of a group. Ends if all goals are decided at a look, or if the next round would end too late."""
    begin = time.monotonic()
    for number in range(limits.rounds):
        for turn, cell in enumerate(in_order(group.cells, number)):
            print(f"{group.name}, round {number + 1}, run {turn + 1}: {cell.name}", file=sys.stderr, flush=True)
            _measure_cell(results, cell, limits, group=group.name, round=number, turn=turn)
        done = number + 1
        if done in LOOKS and all(_is_decided(results, group, goal) for goal in group.goals):
            return
        if (time.monotonic() - begin) * (done + 1) / done > limits.minutes * 60:
            return


def _is_decided(results, group, goal):
    line = evaluate(results, group.name, goal)
    return line is not None and line.verdict != OPEN


def _measure_cell(results, cell, limits, **place):
    """Measures a cell. A void run is repeated. If no run counts, neither does the round, for the lines of this cell."""
    place["placement"] = getattr(cell, "placement", FREE).name
    for _ in range(1 + REPEATS):
        values, conditions, void = _observed(cell, limits)
        rounded = {metric: float(f"{value:.6g}") for metric, value in values.items()}
        kept = void and void[-_LONGEST_REASON:]
        results.add(Run(cell=cell.name, values=rounded, conditions=asdict(conditions), void=kept, **place))
        if not void:
            return
        print(f"VOID: {void}", file=sys.stderr, flush=True)


def _observed(cell, limits):
    """Runs a cell once. Returns its values, the conditions of the run, and the reason why it does not count."""
    observation = Observation(measure.probe if len(cpus()) > 1 else None)
    values, void = {}, None
    try:
        values = cell.measure(limits.seconds)
    except (VoidError, AssertionError) as error:
        void = str(error)
    conditions = observation.end()
    return values, conditions, void or (None if limits.may_be_busy else conditions.objection())
