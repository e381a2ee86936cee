"""Benchmarks against peers: `python -m bench` measures between two processes and writes `docs/performance.md`.

Each line is measured with ours and with its peers in the same run, interleaved. The receiver checks the sequence and
sums a column of every record. A loss voids the run. Benchmarks are never tests: rates of a shared machine mean nothing.
"""

import sys
from pathlib import Path

PROJECT = Path(__file__).parent.parent

# The benchmarks use the drivers and environments of the interop tests.
sys.path.insert(0, str(PROJECT / "tests"))
