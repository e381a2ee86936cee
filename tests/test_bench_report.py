"""Tests of the tables of the benchmarks. They are made from raw results alone."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from bench import report, results
from bench.conditions import Conditions
from bench.goals import Goal, Group, Part
from bench.lines import PARTS
from bench.placement import SPLIT
from bench.results import Results, Run
from tests.test_bench_runs import Cell

HEADING = {
    "date": "2026-11-29", "commit": "abc1234", "processor": "a processor", "cores": 2, "kernel": "6.18", "rust": "1.95",
    "versions": "peer==1", "seconds": 0.7, "may_be_busy": False,
}  # fmt: skip


def a_part(**bound: float | str) -> Part:
    goals = [Goal("the line", "ours", ("peer",), **bound), Goal("alone", "ours", None, at_most=3e6)]  # type: ignore[arg-type]
    return Part("part", {"group": lambda: Group([Cell("ours", []), Cell("peer", [])], goals)}, 1, 1)


def written(file: Path, rounds: int = 8, ours: float = 2e6, again: float = 2e6) -> Path:
    """Writes results with the same mean in each round, and with one void run."""
    found = Results(HEADING, file=file)
    conditions = asdict(Conditions((130.0, 140.0), 0.0, 0.0, "", 0.5, 1, 2, 3, 4, 5))
    found.add(Run("group", "peer", 0, 0, SPLIT.name, {}, conditions, void="lost"))
    for number in range(rounds):
        for factor in (1 - (number + 1) / 1000, 1 / (1 - (number + 1) / 1000)):
            for cell, value in (("ours", ours), ("peer", 1.25e6), ("ours, again", again)):
                found.add(Run("group", cell, number, 0, SPLIT.name, {"rate": value * factor}, conditions))
    return file


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = written(tmp_path / "below" / "part.jsonl")
    found = results.read(file)
    assert found.heading == HEADING
    assert [json.dumps(asdict(run)) for run in found.runs] == file.read_text().splitlines()[1:]


@pytest.mark.parametrize(
    ("bound", "ours", "goal", "mark"),
    [
        ({"at_least": 1.5}, 2e6, "at least 1.5x", "met"),
        ({"at_least": 3.0}, 2e6, "at least 3x", "**missed**"),
        ({"at_least": 0.85, "kind": "limit"}, 2e6, "at least 0.85x", "limit void"),
        ({"at_most": 1.5}, 2e6, "at most 1.5x", "**missed**"),
    ],
)
def test_a_line_has_both_sides_the_ratio_with_its_interval_and_the_verdict(
    tmp_path: Path, bound: dict[str, float | str], ours: float, goal: str, mark: str
) -> None:
    text = report.section(a_part(**bound), results.read(written(tmp_path / "part.jsonl", ours=ours)))
    assert f"| the line | 2.00 M/s | peer: 1.25 M/s | 1.6 [1.6 - 1.6] | 8 |  | {goal} | {mark} |" in text
    assert "| alone | 2.00 M/s [2.00 M/s - 2.00 M/s] |  |  | 8 |  | at most 3000000.0 messages/s | met |" in text


def test_a_single_round_has_no_interval(tmp_path: Path) -> None:
    text = report.section(a_part(at_least=1.5), results.read(written(tmp_path / "part.jsonl", rounds=1)))
    assert "| the line | 2.00 M/s | peer: 1.25 M/s | 1.6 | 1 |  | at least 1.5x | open |" in text
    assert "| alone | 2.00 M/s |  |  | 1 |" in text


def test_the_verdicts_of_a_part_are_counted(tmp_path: Path) -> None:
    text = report.section(a_part(at_least=1.6), results.read(written(tmp_path / "part.jsonl", ours=2.2e6)))
    assert "Of 2 lines, 2 are *met*, 0 are *missed*, 0 are *open*, 0 are *limit void*." in text
    text = report.section(a_part(at_least=1.6), results.read(written(tmp_path / "part.jsonl", rounds=7)))
    assert "Of 2 lines, 0 are *met*, 0 are *missed*, 2 are *open*, 0 are *limit void*." in text


def test_the_heading_says_where_and_how_and_the_figures_have_extremes_and_void_runs(tmp_path: Path) -> None:
    text = report.section(a_part(at_least=1.5), results.read(written(tmp_path / "part.jsonl")))
    assert text.startswith(
        "2026-11-29, commit abc1234, a processor, 2 cores, Linux 6.18, Rust 1.95, peer==1. "
        "Runs of 0.7 s, 1 of 49 void. Load average 0.5 to 0.5. Round trip of a cache line 130 to 140 ns.\n"
    )
    assert "| peer | 1.25 M/s | 1.25 M/s [1.24 M/s - 1.26 M/s] | 16 | 1 |" in text


@pytest.mark.parametrize(
    ("again", "verdict", "counts"),
    [
        (2e6, "no change", "1 are *no change* or *open*, 0 are *missed* against 1.00, and 0 are *met*"),
        (2.2e6, "missed", "0 are *no change* or *open*, 1 are *missed* against 1.00, and 0 are *met*"),
        (1.8e6, "met", "0 are *no change* or *open*, 0 are *missed* against 1.00, and 1 are *met*"),
    ],
)
def test_lines_that_compare_a_cell_with_itself_are_counted(
    tmp_path: Path, again: float, verdict: str, counts: str
) -> None:
    text = report.section(a_part(at_least=1.5), results.read(written(tmp_path / "part.jsonl", again=again)))
    ratio = f"{2e6 / again:.3f}"
    assert f"| A against A: ours | {ratio} [{ratio} - {ratio}] | {verdict} |" in text
    assert f"Of 1 lines that compare a cell with itself, {counts} against a gain of 5 %." in text


def test_modes_are_shown_with_their_shares_and_the_ratio_inside_them(tmp_path: Path) -> None:
    found = Results(HEADING)
    conditions = asdict(Conditions((130.0, 140.0), 0.0, 0.0, "", 0.5, 1, 2, 3, 4, 5))
    for number in range(8):
        factor = 4 if number % 2 else 1
        for cell, value in (("ours", 1.1e6), ("peer", 1e6), ("ours, again", 1e6)):
            for noise in (0.99, 1.01):
                found.add(Run("group", cell, number, 0, SPLIT.name, {"rate": value * factor * noise}, conditions))
    text = report.section(a_part(at_least=1.5), found)
    modes = "ours 50% 1.10 M/s, 50% 4.40 M/s; peer 50% 999.9 k/s, 50% 4.00 M/s; ratio inside 1.1, 1.1; not as the probe"
    assert modes in text


def test_a_page_has_the_tables_of_parts_with_results_and_keeps_the_rest(tmp_path: Path) -> None:
    page = "before\n<!-- part: begin -->\nold\n<!-- part: end -->\n<!-- other: begin -->\nkept\n<!-- other: end -->\n"
    file = written(tmp_path / "part.jsonl")
    part = a_part(at_least=1.5)
    changed = report.page(page, [part, Part("other", {}, 1, 1)], tmp_path)
    section = report.section(part, results.read(file))
    assert changed == page.replace("old", section)
    assert report.page(changed, [part], tmp_path) == changed


@pytest.mark.parametrize("part", PARTS)
def test_the_document_has_the_tables_that_its_raw_results_make(part: str) -> None:
    text = report.DOCUMENT.read_text()
    assert f"<!-- {part}: begin -->" in text
    assert report.page(text, [PARTS[part]], results.DIRECTORY) == text


def test_raw_results_of_a_part_are_shorter_than_two_mebibytes() -> None:
    assert all(file.stat().st_size < 2 << 20 for file in results.DIRECTORY.glob("*.jsonl"))
