"""Tests of the rounds of the benchmarks with invented cells: order, void runs, looks, builds, planted slowness."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from bench import __main__ as command_line
from bench import conditions, decide, environments, report, results, runner, selftest
from bench.conditions import Conditions
from bench.evaluation import evaluate
from bench.goals import Goal, Group, Part, with_twin
from bench.lines import PARTS
from bench.measure import VoidError
from bench.placement import FREE, SPLIT, WITH_PUBLISHER, WITH_SUBSCRIBER, Placement
from bench.results import Results
from bench.runner import Limits, in_order, measure_group

QUIET = Conditions((130.0, 131.0), 0.0, 0.0, "", 0.1, 1, 2, 3, 4, 5)
SHORT = Limits(seconds=0.1, minutes=60)


@dataclass
class Cell:
    """A cell that returns the next of its values again and again. A value can be an error."""

    name: str
    values: list[float | Exception]
    settings: dict[str, float] = field(default_factory=dict)
    placement: Placement = SPLIT
    unit: str = "messages/s"

    def __post_init__(self) -> None:
        self._next = itertools.cycle(self.values)

    def measure(self, seconds: float) -> dict[str, float]:
        value = next(self._next)
        if isinstance(value, Exception):
            raise value
        return {"rate": 1e9 / (1e9 / value + self.settings.get("delay_ns", 0.0))}


@pytest.fixture(autouse=True)
def observed(monkeypatch: pytest.MonkeyPatch) -> list[Conditions]:
    """The conditions that the next runs observe. Without any, the machine is quiet."""
    coming: list[Conditions] = []

    class Observation:
        def __init__(self, probe: Callable[[], float]) -> None:
            pass

        def end(self) -> Conditions:
            return coming.pop(0) if coming else QUIET

    monkeypatch.setattr(runner, "Observation", Observation)
    return coming


def a_goal(**bound: Any) -> Goal:
    return Goal("the line", "ours", ("peer",), **bound)


def measured(
    ours: list[float | Exception], peer: list[float | Exception], goal: Goal, limits: Limits = SHORT
) -> Results:
    results = Results({})
    measure_group(results, Group([Cell("ours", ours), Cell("peer", peer)], [goal], "group"), limits)
    return results


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_round_has_each_cell_twice_in_mirrored_order_and_begins_with_another_cell_than_the_last(count: int) -> None:
    cells = list(range(count))
    rounds = [in_order(cells, number) for number in range(count)]
    for cells_of_round in rounds:
        assert cells_of_round == cells_of_round[::-1]
        assert sorted(cells_of_round) == sorted(cells * 2)
    assert [cells_of_round[0] for cells_of_round in rounds] == cells


def test_a_run_records_its_round_its_turn_its_placement_and_the_conditions() -> None:
    results = measured([2e6], [1e6], a_goal(at_least=1.5), replace(SHORT, rounds=2))
    assert [(run.round, run.turn, run.cell) for run in results.runs] == [
        (0, 0, "ours"), (0, 1, "peer"), (0, 2, "peer"), (0, 3, "ours"),
        (1, 0, "peer"), (1, 1, "ours"), (1, 2, "ours"), (1, 3, "peer"),
    ]  # fmt: skip
    assert results.runs[0].group == "group"
    assert results.runs[0].placement == "split"
    assert results.runs[0].values == {"rate": 2e6}
    assert results.runs[0].conditions["migrations"] == 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"steal": 0.011}, "steal of 1.1%"),
        ({"others": 0.021, "busiest": "rustc"}, "another process, rustc, used 2.1% of a core"),
        ({"probe_ns": (130.0, 500.0)}, "the probe changed from 130 to 500 ns"),
        ({"probe_ns": (500.0, 130.0)}, "the probe changed from 500 to 130 ns"),
        ({"steal": 0.01, "others": 0.02, "probe_ns": (130.0, 190.0)}, None),
        ({"probe_ns": None}, None),
    ],
)
def test_steal_other_processes_and_a_changed_probe_make_a_run_void(change: dict[str, Any], reason: str | None) -> None:
    assert replace(QUIET, **change).objection() == reason


def test_a_void_run_is_repeated_and_recorded(observed: list[Conditions]) -> None:
    observed += [replace(QUIET, steal=0.5), QUIET]
    results = measured([2e6], [1e6], a_goal(at_least=1.5), replace(SHORT, rounds=1))
    assert [(run.turn, run.void) for run in results.runs[:2]] == [(0, "steal of 50.0%"), (0, None)]
    assert results.voids("group", "ours") == 1
    assert results.values("group", "ours", "rate") == [2e6, 2e6]


def test_a_run_with_lost_messages_is_void_and_has_no_values() -> None:
    results = measured([VoidError("lost"), 2e6], [1e6], a_goal(at_least=1.5), replace(SHORT, rounds=1))
    assert [(run.void, run.values) for run in results.runs[:2]] == [("lost", {}), (None, {"rate": 2e6})]


def test_after_three_repeats_the_round_does_not_count_for_the_lines_of_the_cell() -> None:
    lost = [VoidError("lost")] * 4
    results = measured([*lost, *[2e6] * 3], [1e6], a_goal(at_least=1.5), replace(SHORT, rounds=2))
    assert [(run.round, run.turn) for run in results.runs if run.void] == [(0, 0)] * 4
    assert [len(side) for side in results.sides("group", "rate", "ours", "peer")] == [1, 1]


def test_runs_count_on_a_busy_machine_if_the_limits_allow_it(observed: list[Conditions]) -> None:
    observed += [replace(QUIET, others=1.0)] * 4
    results = measured([2e6], [1e6], a_goal(at_least=1.5), replace(SHORT, rounds=1, may_be_busy=True))
    assert len(results.runs) == 4
    assert results.runs[0].conditions["others"] == 1.0


@pytest.mark.parametrize(
    ("ours", "bound", "rounds", "verdict"),
    [
        ([2e6, 2.1e6], 1.5, 8, "met"),
        ([1e6, 1.1e6], 1.5, 8, "missed"),
        ([1e6, 2.1e6, 1e6], 1.28, 32, "open"),
    ],
)
def test_a_group_ends_at_the_first_look_at_which_its_lines_are_decided(
    ours: list[float | Exception], bound: float, rounds: int, verdict: str
) -> None:
    goal = a_goal(at_least=bound)
    line = evaluate(measured(ours, [1e6], goal), "group", goal)
    assert (line.rounds, line.verdict) == (rounds, verdict)


def test_a_group_with_an_open_line_goes_on() -> None:
    goals = [a_goal(at_least=1.0), a_goal(at_least=1.28)]
    results = Results({})
    measure_group(results, Group([Cell("ours", [1e6, 2.1e6, 1e6]), Cell("peer", [1e6])], goals, "group"), SHORT)
    assert [evaluate(results, "group", goal).verdict for goal in goals] == ["met", "open"]
    assert results.runs[-1].round == 31


def test_a_group_ends_if_its_time_is_over() -> None:
    goal = a_goal(at_least=1.5)
    assert evaluate(measured([2e6], [1e6], goal, replace(SHORT, minutes=0)), "group", goal).rounds == 1


def test_less_than_eight_rounds_leave_a_line_open() -> None:
    goal = a_goal(at_least=1.5)
    verdicts = [
        evaluate(measured([2e6], [1e6], goal, replace(SHORT, rounds=rounds)), "group", goal).verdict
        for rounds in (7, 8)
    ]
    assert verdicts == ["open", "met"]


def test_a_small_change_of_a_line_with_two_modes_is_no_change() -> None:
    goal = a_goal(at_least=1.0, kind="same")
    for values, verdict in (([1.0, 1.01, 0.99], "missed"), ([1.0, 1.0, 4.0, 4.0], "no change")):
        ours: list[float | Exception] = [0.96e6 * value for value in values]
        assert evaluate(measured(ours, [1e6 * value for value in values], goal), "group", goal).verdict == verdict


def test_of_two_configurations_of_a_peer_the_better_one_counts() -> None:
    for bound, better in (({"at_least": 1.0}, "fast"), ({"at_most": 1.0}, "slow")):
        goal = replace(a_goal(**bound), peers=("slow", "fast"))
        results = Results({})
        cells = [Cell("ours", [2e6]), Cell("slow", [1e6]), Cell("fast", [3e6])]
        measure_group(results, Group(cells, [goal], "group"), SHORT)
        assert evaluate(results, "group", goal).peer == better


def test_a_round_with_a_value_of_zero_does_not_count_for_a_ratio_but_for_a_value() -> None:
    results = Results({})
    cell = Cell("ours", [1.0])
    cell.measure = itertools.cycle([{"rate": 0.0}, *[{"rate": 2.0}] * 15]).__next__  # type: ignore[method-assign]
    cell.measure = lambda seconds, take=cell.measure: take()  # type: ignore[method-assign,misc]
    measure_group(results, Group([cell, Cell("peer", [1.0])], [], "group"), replace(SHORT, rounds=8))
    assert evaluate(results, "group", a_goal(at_least=1.5)).rounds == 7
    alone = evaluate(results, "group", Goal("alone", "ours", None, at_most=3))
    assert (alone.rounds, alone.verdict) == (8, "met")


def test_modes_of_both_sides_are_compared_and_seen_to_follow_the_probe(observed: list[Conditions]) -> None:
    for number in range(4 * 32):
        probe = 130.0 if number // 4 % 2 else 500.0
        observed.append(replace(QUIET, probe_ns=(probe, probe)))
    fast, slow = [4e6, 4e6], [1e6, 1e6]
    goal = a_goal(at_least=1.0)
    line = evaluate(measured([*slow, *fast], [*slow, *fast], goal), "group", goal)
    assert [[len(mode) for mode in side] for side in line.modes] == [[8, 8]] * 2
    assert line.ratios_in_modes() == pytest.approx([1.0, 1.0])
    assert line.follows_probe


def test_an_observation_counts_faults_and_switches_of_awaited_children_only() -> None:
    observation = conditions.Observation(None)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.01)"])
    conditions.add_migrations(child.pid)
    child.wait()
    found = observation.end()
    assert found.probe_ns is None
    assert found.minor_faults > 100
    assert found.voluntary >= 1
    assert conditions.Observation(None).end().minor_faults == 0


def test_an_observation_finds_the_busiest_process_that_this_process_has_not_started() -> None:
    observation = conditions.Observation(None)
    busy = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.2: pass'"
    # The shell ends at once, so its child becomes the child of another process.
    subprocess.run(["sh", "-c", f"{busy} &"], check=True)
    time.sleep(0.5)
    found = observation.end()
    assert found.others > conditions.MAX_OTHERS
    assert found.busiest


def test_this_process_its_children_and_kernel_threads_are_not_other_processes() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    others = {pid for pid, _ in conditions._ticks_of_others()}
    child.communicate(b"\n")
    assert not {os.getpid(), child.pid, 2} & others
    assert 1 in others


def test_a_placement_puts_the_processes_on_the_cpus_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {8, 3, 7})
    roles = ("publisher", "subscriber", "driver")
    cpus = {
        place.name: [place.prefix(role)[-1:] for role in roles] for place in (SPLIT, WITH_PUBLISHER, WITH_SUBSCRIBER)
    }
    assert cpus == {
        "split": [("3",), ("7",), ()],
        "publisher+driver": [("3",), ("7",), ("3",)],
        "subscriber+driver": [("3",), ("7",), ("7",)],
    }
    assert {FREE.prefix(role) for role in roles} == {()}
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {4})
    assert SPLIT.prefix("subscriber") == ("taskset", "-c", "4")


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_each_goal_names_cells_of_its_group_and_each_group_compares_one_cell_with_itself(part: Part) -> None:
    for name in part.groups:
        group = part.group(name)
        names = [cell.name for cell in group.cells]
        assert len(set(names)) == len(names)
        for goal in group.goals:
            assert {goal.ours, *(goal.peers or ())} <= set(names)
            assert (goal.at_least is None) != (goal.at_most is None)
        [twins] = [goal for goal in group.goals if goal.kind == "same"]
        assert twins.peers == (f"{twins.ours}, again",)


def test_all_parts_together_take_at_most_three_hours() -> None:
    assert sum(part.minutes for part in PARTS.values()) <= 180


def test_each_line_is_found_by_its_text() -> None:
    texts = [goal.text for part in PARTS.values() for name in part.groups for goal in part.group(name).goals]
    assert len(set(texts)) == len(texts)
    for text in texts:
        assert decide.find_line(PARTS.values(), text)[2].text == text
    with pytest.raises(decide.LineError, match=r"0 lines have the text 'no such line':\n  native, message by message"):
        decide.find_line(PARTS.values(), "no such line")
    with pytest.raises(decide.LineError, match=r"\d lines have the text 'round trip, p99':\n  native round trip, p99"):
        decide.find_line(PARTS.values(), "round trip, p99")


def test_a_line_is_measured_with_its_cells_alone() -> None:
    part, name, goal = decide.find_line(PARTS.values(), "UDP 1 KiB, GSO and GRO off")
    group = decide.line_alone(part, name, goal)
    assert [cell.name for cell in group.cells] == ["ours, UDP without GSO and GRO, 1 KiB", "C driver, UDP, 1 KiB"]
    assert group.goals == [goal]


def test_two_builds_are_compared_in_the_same_rounds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(environments, "made_build", lambda: tmp_path / "this")
    used: list[Path] = []

    class ByBuild(Cell):
        def measure(self, seconds: float) -> dict[str, float]:
            used.append(environments.native())
            return super().measure(seconds)

    goal = a_goal(at_least=3.0)
    part = Part("part", {"group": lambda: Group([ByBuild("ours", [2e6]), Cell("peer", [1e6])], [goal])}, 1, 1)
    group = decide.against(part, "group", goal, tmp_path / "other")
    results = Results({})
    measure_group(results, group, replace(SHORT, rounds=1))
    assert [path.parent.parent.name for path in used] == ["this", "other", "other", "this"]
    assert [run.placement for run in results.runs] == ["split"] * 4
    [compared] = group.goals
    assert (compared.at_least, compared.kind) == (1.0, "same")
    with pytest.raises(decide.LineError, match="part run in the process of the benchmark"):
        decide.against(replace(part, runs_in_this_process=True), "group", goal, tmp_path)


@pytest.mark.parametrize(("share", "count"), [(0.0, 0), (0.1, 2)])
def test_a_planted_slowness_is_found_and_no_slowness_is_not(share: float, count: int) -> None:
    cell = Cell("ours", [1.00e6, 1.01e6, 0.99e6])
    lines = [selftest.planted(cell, a_goal(at_least=3.0), share, SHORT) for _ in range(2)]
    found = selftest.Found("the line", share, lines)
    assert found.count == count
    assert found.lines[0].interval.estimate == pytest.approx(1 / (1 + share), rel=0.01)
    assert str(found).startswith(f"the line: planted {share:.0%}, found {count} of 2, mean ratio")


def test_the_twin_of_a_time_has_a_maximum() -> None:
    group = with_twin(Group([Cell("ours", [1.0])], [replace(a_goal(at_most=0.5), unit="ns", metric="p50")]))
    [goal] = group.goals[1:]
    assert (goal.at_most, goal.at_least, goal.metric, goal.unit) == (1.0, None, "p50", "ns")


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., object]:
    """Runs a command line of the benchmarks for an invented part, with results and a page in `tmp_path`. Returns the
    exit code, or the text of the error."""
    cells = [Cell("ours", [2e6]), Cell("peer", [1.25e6])]
    part = Part("part", {"group": lambda: Group(cells, [a_goal(at_least=1.5)])}, 1, 1)
    monkeypatch.setattr(command_line, "PARTS", {"part": part})
    monkeypatch.setattr(command_line, "_commit", lambda: "abc1234")
    monkeypatch.setattr(results, "DIRECTORY", tmp_path)
    monkeypatch.setattr(report, "DOCUMENT", tmp_path / "page.md")
    report.DOCUMENT.write_text("<!-- part: begin -->\nold\n<!-- part: end -->\n")

    def run(*words: str) -> object:
        monkeypatch.setattr(sys, "argv", ["bench", *words])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        return ended.value.code

    return run


def test_a_whole_part_writes_its_raw_results_and_its_tables(command: Callable[..., object]) -> None:
    assert command("run", "part") is None
    page = report.DOCUMENT.read_text()
    assert "| the line | 2.00 M/s | peer: 1.25 M/s | 1.6 [1.6 - 1.6] | 8 |" in page
    report.DOCUMENT.write_text("<!-- part: begin -->\nold\n<!-- part: end -->\n")
    assert command("report") is None
    assert report.DOCUMENT.read_text() == page


@pytest.mark.parametrize("word", ["--quick", "--busy"])
def test_a_run_that_cannot_decide_writes_nothing(command: Callable[..., object], tmp_path: Path, word: str) -> None:
    assert command("run", "part", word) is None
    assert [file.name for file in tmp_path.iterdir()] == ["page.md"]
    assert "old" in report.DOCUMENT.read_text()
    assert command("run", "part", word, "--results", str(tmp_path / "raw")) is None
    assert len(results.read(tmp_path / "raw" / "part.jsonl").runs) == (6 if word == "--quick" else 48)


def test_a_line_is_decided_on_the_command_line(
    command: Callable[..., object], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert command("decide", "the line") is None
    line = "| the line | 2.00 M/s | peer: 1.25 M/s | 1.6 [1.6 - 1.6] | 8 |  | at least 1.5x | met |"
    assert line in capsys.readouterr().out
    assert command("decide", "the line", "--against", str(tmp_path)) is None
    line = "compared with the other build | 2.00 M/s | ours, other build: 2.00 M/s | 1 [1 - 1] | 8 |  | at least 1x |"
    assert line in capsys.readouterr().out
    assert command("decide", "no line") == "0 lines have the text 'no line':\n  the line\n  A against A: ours"
    assert command("run", "other") == "unknown: other"
