"""Benchmarks beside the peers: `python -m bench` measures between two processes and writes `docs/performance.md`.

Each line is measured with ours and with its peers in the same run, interleaved. The receiver checks the sequence and
sums a column of every record, and a loss voids the run. Never a test: a shared machine says nothing about speed.
"""

import sys
from pathlib import Path

PROJECT = Path(__file__).parent.parent

# The drivers and environments of the interop tests serve here too.
sys.path.insert(0, str(PROJECT / "tests"))
