"""Tests of the examples that make bars of a live stream."""

from __future__ import annotations

import re
import sys

from examples import run_example


def test_the_example_prints_three_bars(java: None) -> None:
    printed = run_example("spark_bars.py", timeout=200, warnings="default", PYSPARK_PYTHON=sys.executable)
    [header, *bars] = [line.strip("|").split("|") for line in printed.splitlines() if line.startswith("|")]
    assert [name.strip() for name in header] == ["start", "open", "high", "low", "close", "volume"]
    assert len(bars) == 3
    for start, *values in bars:
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", start)
        open_, high, low, close, volume = map(float, values)
        assert low <= min(open_, close) <= max(open_, close) <= high
        assert volume > 0


def test_the_example_with_sbe_prints_three_bars(java: None) -> None:
    printed = run_example("spark_sbe.py", timeout=200, warnings="default", PYSPARK_PYTHON=sys.executable)
    [header, *bars] = [line.strip("|").split("|") for line in printed.splitlines() if line.startswith("|")]
    assert [name.strip() for name in header] == ["symbol", "start", "high", "low", "volume", "bought"]
    assert len(bars) == 3
    for symbol, start, *values in bars:
        assert symbol.strip() == "ESZ6"
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", start)
        high, low, volume, bought = map(float, values)
        assert 99 < low <= high < 101
        assert volume >= bought >= 0
