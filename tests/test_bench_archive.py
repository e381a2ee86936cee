"""Tests of the archive's benchmarks. Each goal names existing cells and has one bound. A short run measures the start
of an archive."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bench import environments, measure
from bench.archive import catalogs, lines

PROGRAMS = Path(sys.executable).parent


@pytest.fixture(autouse=True)
def our_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the benchmarks use the installed programs. Otherwise they would build a release wheel first."""
    monkeypatch.setattr(environments, "aeronarchive", lambda: PROGRAMS / "aeronarchive")
    for module in (environments, measure):
        monkeypatch.setattr(module, "aeronmd", lambda: PROGRAMS / "aeronmd")


@pytest.mark.parametrize("name", lines.ARCHIVE_GROUPS)
def test_each_goal_names_cells_of_its_group_and_has_one_bound(name: str) -> None:
    group = lines.ARCHIVE_GROUPS[name]()
    names = [cell.name for cell in group.cells]
    assert len(set(names)) == len(names)
    for goal in group.goals:
        assert {goal.ours, *(goal.peers or ())} <= set(names)
        assert (goal.at_least is None) != (goal.at_most is None)


@pytest.mark.slow
@pytest.mark.parametrize("state", ["stopped", "to recover"])
def test_the_start_of_an_archive_with_copies_of_one_recording_is_measured(state: str) -> None:
    figures = catalogs.Start("many", "ours", state).measure(0.1)
    assert 0 < figures["start"] < 30_000
