"""Tests of ``aeron demo --archive --spark``: the kills of its processes, and the comparison of its bars with pandas.

The tests need pandas. Other tests must run without it, so only `make test-spark-connect` runs this file.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from aeron.demo import crashes
from aeron.demo.bars import BAR
from aeron.demo.expected import bars_by_pandas, check_equal
from aeron.demo.trades import generate_trades, load_trades

DATA = Path(__file__).parents[2] / "examples" / "data"
SECOND_US = 1_000_000


@pytest.mark.timeout(400)
def test_bars_of_real_trades_equal_those_of_pandas_although_each_part_was_killed(tmp_path: Path) -> None:
    trades = load_trades(DATA / "btcusdt-trades.parquet")
    console = Console(file=io.StringIO(), width=200)
    outcome = crashes.run(tmp_path, trades, console)
    assert outcome.trades == 2001
    assert outcome.bars > 40
    assert outcome.spark_processes >= 3
    killed = re.findall(r"(Spark|the archive|the driver) is killed", console.file.getvalue())
    assert killed == ["Spark", "the archive", "the driver"]


def test_the_first_and_last_prices_of_bars_by_pandas_follow_time_and_then_publication() -> None:
    records = generate_trades(5).records
    records["symbol"] = b"A"
    records["time_ns"] = np.array([1, 1, 2, 1_000_000_000, 999_999_999])
    records["price"] = [10, 11, 9, 20, 12]
    records["quantity"] = [1, 2, 3, 0, 4]
    first, second = bars_by_pandas(records, SECOND_US)
    assert (first["open"], first["high"], first["low"], first["close"]) == (10, 12, 9, 12)
    assert (first["volume"], first["trades"]) == (10, 4)
    assert first["vwap"] == pytest.approx((10 + 22 + 27 + 48) / 10)
    # The VWAP of a bar without a quantity is the last price, as in Spark's bars.
    assert (second["start"], second["volume"], second["vwap"]) == (np.datetime64("1970-01-01T00:00:01"), 0, 20)


def test_the_error_names_a_missing_duplicate_or_different_bar() -> None:
    bars = np.zeros(3, BAR)
    bars["start"] = np.arange(3).astype("datetime64[s]")
    bars["volume"] = 5
    check_equal(bars, bars)
    almost = bars.copy()
    almost["volume"] *= 1 + 1e-12
    check_equal(almost, bars)
    with pytest.raises(RuntimeError, match=r"Spark made no bar with start 1970-01-01T00:00:02"):
        check_equal(bars[:2], bars)
    with pytest.raises(RuntimeError, match="Spark made 4 bars, but pandas has 3"):
        check_equal(np.sort(np.append(bars, bars[:1])), bars)
    different = bars.copy()
    different["close"][1] = 1
    with pytest.raises(RuntimeError, match=r"1970-01-01T00:00:01.*pandas has"):
        check_equal(different, bars)
