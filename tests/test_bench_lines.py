"""Tests of the result tables of the benchmarks with Spark. A goal has one line, with a text and often with a peer."""

from __future__ import annotations

from typing import Any

from bench.report import table
from bench.runner import Results
from bench.spark.lines import SPARK_GROUPS

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
    "latestOffset and partitions, p50": 5,
    "trigger of 100 rows, p50": 1.1,
    "idle query: CPU of Python": 1,
    "idle query: CPU of all": 3,
    "source process: growth in 10^8 messages": 64,
}
"""Limit of each goal, by the text of its line. There are no other goals."""
_REPORTED = ("recording on disk, 64 B", "live, 64 B", "live, 1 KiB", "write, 48 B typed, 2 partitions")


def _measured() -> Results:
    """Returns results with invented values for three rounds of all cells."""
    groups: list[Any] = [make() for make in SPARK_GROUPS.values()]
    results = Results(groups, 3, 1.0, "versions", {})
    cells = {cell.name: cell for group in groups for cell in group.cells}
    metrics = {(name, "rate") for name in cells}
    for goal in (goal for group in groups for goal in group.goals):
        metrics |= {(name, goal.metric) for name in (goal.ours, *(goal.peers or ()))}
    for name, metric in sorted(metrics):
        for value in (2e6, 1e6, 3e6):
            results.add(cells[name], {metric: value})
    return results


def test_every_line_has_its_goal_and_the_table_shows_the_peer_the_ratio_and_the_spread_of_the_runs() -> None:
    """08-84"""
    results = _measured()
    goals = [goal for group in results.groups for goal in group.goals]
    assert {goal.text: goal.at_least or goal.at_most for goal in goals} == _TARGETS
    lines = table(results).splitlines()
    for goal in goals:
        line = next(line for line in lines if line.startswith(f"| {goal.text} |"))
        if goal.peers:
            assert any(f"| {peer}: " in line for peer in goal.peers), line
            assert "| 1.00 [1.00 - 1.00] |" in line
    for name in _REPORTED:
        assert f"| {name} | 2.00 M/s [1.00 M/s - 3.00 M/s] | 3 |" in lines
