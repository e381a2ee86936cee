"""Raw results: one line of JSON for each run. Tables and verdicts are made from them alone."""

import json
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from bench import PROJECT

DIRECTORY = PROJECT / "bench" / "results"
RUNS_IN_A_ROUND = 2


@dataclass
class Run:
    """A run of a cell."""

    group: str
    cell: str
    round: int
    turn: int
    """Place of the run in its round."""
    placement: str
    values: dict
    """Measured values by metric. Empty if the run has failed."""
    conditions: dict
    void: str | None = None
    """Reason why the run does not count."""


@dataclass
class Results:
    """Runs of a part, and the heading that says where and how they were measured. Each added run is also appended to
    `file`."""

    heading: dict
    runs: list = field(default_factory=list)
    file: Path | None = None

    def __post_init__(self):
        if self.file:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps(self.heading) + "\n")

    def add(self, run):
        self.runs.append(run)
        if self.file:
            with self.file.open("a") as out:
                out.write(json.dumps(asdict(run)) + "\n")

    def of_cell(self, group, cell):
        """Returns the runs of a cell that count."""
        return [run for run in self.runs if (run.group, run.cell) == (group, cell) and not run.void]

    def values(self, group, cell, metric):
        """Returns the values of all runs that count."""
        return [run.values[metric] for run in self.of_cell(group, cell) if metric in run.values]

    def sides(self, group, metric, *cells):
        """Returns an array of rounds and runs for each cell. It has the rounds in which all runs of all cells count."""
        rounds = defaultdict(lambda: defaultdict(list))
        for cell in cells:
            for run in self.of_cell(group, cell):
                if metric in run.values:
                    rounds[run.round][cell].append(run.values[metric])
        whole = [
            found for found in rounds.values() if all(len(found[cell]) == RUNS_IN_A_ROUND for cell in cells)
        ]  # fmt: skip
        return [np.array([found[cell] for found in whole]).reshape(-1, RUNS_IN_A_ROUND) for cell in cells]

    def voids(self, group, cell):
        """Returns the number of runs of a cell that do not count."""
        return sum(1 for run in self.runs if (run.group, run.cell) == (group, cell) and run.void)


def read(path):
    """Reads a file of results."""
    heading, *rows = map(json.loads, path.read_text().splitlines())
    return Results(heading, [Run(**row) for row in rows])
