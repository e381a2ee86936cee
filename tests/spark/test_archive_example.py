"""Test of the example that reads the recordings of a running archive."""

from __future__ import annotations

import re
import sys

from examples import run_example


def test_the_example_reads_each_message_once_and_counts_them(java: None) -> None:
    printed = run_example("spark_archive.py", timeout=200, warnings="default", PYSPARK_PYTHON=sys.executable)
    batches = re.findall(r"^batch \d+: (.*)$", printed, re.MULTILINE)
    assert [text for text in batches if text != "no rows"] == ["one, two", "three"]
    assert "the archive has 3 messages" in printed
