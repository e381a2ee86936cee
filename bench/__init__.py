"""Benchmarks against peers. `python -m bench run` runs them, in most cases between two processes, and writes
`docs/performance.md`.

A *line* is a row in the tables of that document. It compares *ours* (this project) with *peers* (other software). If
there are no peers, the line compares ours with a fixed bound. A *cell* is one measured program with its settings. The
cells of a line belong to one *group*. A *round* runs every cell of the group twice. The receiver checks the sequence of
the records and adds up one column of the records. A run with a loss does not count. No test depends on a measured rate,
because other programs on a shared machine change the rate.
"""

import sys
from pathlib import Path

PROJECT = Path(__file__).parent.parent

# The benchmarks use the drivers and environments of the interop tests.
sys.path.insert(0, str(PROJECT / "tests"))
