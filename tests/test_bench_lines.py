"""Tests of the result tables of the benchmarks with Spark. A goal has one line, with a text and often with a peer."""

from __future__ import annotations

import itertools
from dataclasses import asdict

from bench import report
from bench.conditions import Conditions
from bench.lines import PARTS
from bench.results import Results, Run
from tests.test_bench_report import HEADING

SPARK = PARTS["spark"]

_KINDS = ("64 B", "1 KiB", "48 B typed")
_TARGETS = {
    "shared archive, files, compared with the private one": 0.95,
    "shared archive, replays, compared with the private one": 0.5,
    **{
        f"{read}, {kind}, {partitions}": 0.8
        for read in ("source", "batch read")
        for kind in _KINDS
        for partitions in ("1 partition", "2 partitions")
    },
    "recording, compared with readStream, 64 B": 2,
    "recording, compared with readStream, 1 KiB": 1.5,
    "recording, compared with readStream, 48 B typed": 2,
    "source, compared with tuples by hand, 64 B": 4,
    **{f"sink, {kind}, maxBytesPerBatch {limit}": 0.7 for kind in _KINDS for limit in ("no limit", "default")},
    "sink, compared with an offer for each row": 5,
    "sink without limit, compared with an offer for each row": 15,
    "sink, compared with pyzmq for each row": 5,
    "round, 48 B typed": 0.6,
    "typed decode, compared with from_json": 5,
    "typed decode, compared with arrow_udf": 1.3,
    "SBE decode, compared with typed columns": 0.7,
    "latestOffset and partitions, p50": 5,
    "trigger of 100 rows, p50": 1.1,
    "idle query: CPU of Python": 1,
    "idle query: CPU of all": 3,
    "source process: growth in 10^8 messages": 64,
}
"""Limit of each goal, by the text of its line. There are no other goals."""
_REPORTED = ("recording on disk, 64 B", "live, 64 B", "live, 1 KiB", "write, 48 B typed, 2 partitions")


def _measured() -> Results:
    """Returns results with invented values for eight rounds of all cells."""
    found = Results(HEADING)
    conditions = asdict(Conditions(None, 0.0, 0.0, "", 0.0, 0, 0, 0, 0, 0))
    for name in SPARK.groups:
        group = SPARK.group(name)
        metrics = {(cell.name, "rate") for cell in group.cells}
        for goal in group.goals:
            metrics |= {(cell, goal.metric) for cell in (goal.ours, *(goal.peers or ()))}
        for (cell, metric), number in itertools.product(sorted(metrics), range(8)):
            for value in (2e6 - 1e4 * number, 4e12 / (2e6 - 1e4 * number)):
                found.add(Run(name, cell, number, 0, "free", {metric: value}, conditions))
    return found


def test_every_line_has_its_goal_and_the_table_shows_the_peer_the_ratio_and_the_spread_of_the_runs() -> None:
    """08-84"""
    goals = [goal for name in SPARK.groups for goal in SPARK.group(name).goals if goal.kind != "same"]
    assert {goal.text: goal.at_least or goal.at_most for goal in goals} == _TARGETS
    lines = report.section(SPARK, _measured()).splitlines()
    for goal in goals:
        line = next(line for line in lines if line.startswith(f"| {goal.text} |"))
        if goal.peers:
            assert any(f"| {peer}: " in line for peer in goal.peers), line
            assert "| 1 [1 - 1] |" in line
    for name in _REPORTED:
        assert f"| {name} | 2.00 M/s | 2.00 M/s [1.93 M/s - 2.07 M/s] | 16 | 0 |" in lines
