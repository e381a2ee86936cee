"""Tests of ``rust/simulator/night.py``, which runs schedules of new seeds for hours."""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "rust/simulator"))
import night

TODAY = datetime.date(2026, 11, 28)


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.setattr(night, "STATE", tmp_path / "cache" / "night.json")
    monkeypatch.setattr(night, "FOUND", tmp_path / "found.txt")


def simulator(tmp_path, monkeypatch, script):
    """Replaces the simulator by a shell script. The arguments of all its runs are in a file."""
    program = tmp_path / "simulator"
    program.write_text(f"#!/bin/sh\necho $@ >> {tmp_path}/runs\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(night, "build", lambda: program)
    monkeypatch.setattr(sys, "argv", ["night.py", "0"])
    return tmp_path / "runs"


def test_a_day_begins_with_seeds_that_no_other_day_has():
    assert night.first_seed(TODAY) == 202611280000000


def test_a_second_run_on_the_same_day_continues_after_the_first(tmp_path, monkeypatch):
    runs = simulator(tmp_path, monkeypatch, "exit 0")
    assert night.main() == 0
    first = night.first_seed(datetime.date.today())
    assert json.loads(night.STATE.read_text())["next_seed"] == first
    night.main()
    ranges = [line.split()[-1] for line in runs.read_text().splitlines() if not line.startswith("--")]
    assert len(ranges) == len(set(ranges)) == 2
    assert ranges[1].startswith(f"{first}..")


def test_each_finding_is_noted_with_its_kind_and_seed_and_the_run_fails(tmp_path, monkeypatch):
    script = 'case $1 in --followers) echo "seed 12 (--followers): after 1.5 s: a message is missing"; exit 1;; esac'
    simulator(tmp_path, monkeypatch, script)
    assert night.main() == 1
    assert night.FOUND.read_text() == "followers seed 12: after 1.5 s: a message is missing\n"
