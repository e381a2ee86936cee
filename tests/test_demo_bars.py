"""Tests of the parts of ``aeron demo --spark`` that need no Spark.

These parts are the length of a bar, the printed lines, the page of charts, the replay, and the comparison of bars.
"""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from aeron.cli.demo import _has_spark, _show_crashes, name_of
from aeron.demo.bars import BAR, BAR_LAYOUT, TRADE_LAYOUT, usual_bar_us
from aeron.demo.live import Lines, check, longest_gap_s
from aeron.demo.picture import DOWN, UP, Chart, figure, page
from aeron.demo.pipeline import reason
from aeron.demo.plan import Replay, Source
from aeron.demo.replay import in_time_order
from aeron.demo.trades import TRADE, generate_trades
from commands import run

DATA = Path(__file__).parent.parent / "examples" / "data"
SECOND_US = 1_000_000


def some_bars(count: int = 5) -> np.ndarray:
    bars = np.zeros(count, BAR)
    bars["start"] = np.datetime64("2021-01-08", "us") + np.arange(count) * SECOND_US
    bars["symbol"] = "A<B"
    bars["open"], bars["close"] = 10.0 + np.arange(count), 10.5
    bars["low"], bars["high"] = 9.0, 16.0
    bars["vwap"], bars["volume"], bars["trades"] = 10.25, 3, 2
    return bars


@pytest.mark.parametrize(
    ("span_s", "bar_s"), [(46.4, 1), (2100, 60), (20_000, 600), (0.4, 0.01), (86_400 * 40, 86_400), (0, 0.001)]
)
def test_the_length_of_a_bar_is_a_usual_length_near_a_fortieth_of_the_time_span(span_s: float, bar_s: float) -> None:
    assert usual_bar_us(np.array([0, int(span_s * 1e9)])) == bar_s * SECOND_US


@pytest.mark.parametrize(("layout", "dtype"), [(TRADE_LAYOUT, TRADE), (BAR_LAYOUT, BAR)])
def test_the_layouts_for_spark_match_the_numpy_types_of_the_records(layout: str, dtype: np.dtype) -> None:
    sizes = {"i64": 8, "f64": 8, "ts_ns": 8, "ts_us": 8, "char[16]": 16}
    columns = [column.split() for column in layout.split(", ")]
    assert [sizes[kind] for _, kind in columns] == [dtype[name].itemsize for name in dtype.names]
    assert sum(sizes[kind] for _, kind in columns) == dtype.itemsize


def test_a_replay_is_ordered_by_time_and_then_by_position_in_the_file() -> None:
    records = generate_trades(4).records
    records["time_ns"] = [5, 1, 5, 3]
    records["price"] = [1, 2, 3, 4]
    assert in_time_order(records)["price"].tolist() == [2, 4, 1, 3]


def test_the_longest_gap_of_a_replay_is_the_longest_pause_of_the_trades_at_its_speed() -> None:
    trades = generate_trades(4)
    trades.records["time_ns"] = np.array([7200, 0, 10, 3610]) * 10**9
    assert longest_gap_s(trades, speed=2.0) == 1800
    assert longest_gap_s(generate_trades(1), speed=1.0) == 0


def test_two_files_of_the_same_name_have_separate_bars() -> None:
    paths = ("a/x.csv", "b/x.parquet", None, "y.csv", "x.csv")
    sources = [Source(path, None, None, None, None, None, 1, 1) for path in paths]
    assert [name_of(sources, number) for number in range(5)] == ["x", "x-2", "generated", "y", "x-3"]


def test_a_replay_is_described_in_one_line() -> None:
    replay = Replay("dir", "aeron:ipc", 1001, Source("x.csv", None, None, None, None, "X", 0, 1), 2.5, 10**9)
    assert "\n" not in replay.to_json()
    assert Replay.from_json(replay.to_json()) == replay


def test_the_page_has_an_interactive_chart_of_each_symbol_and_loads_no_other_file() -> None:
    text = page([Chart("A<B", "bars & more", some_bars(), SECOND_US)] * 2)
    loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=[^>]*>", text)
    assert not [tag for tag in loaded if "data:" not in tag]
    assert text.count("Plotly.newPlot(") == 2
    assert 'id="chart-0"' in text
    assert 'id="chart-1"' in text
    # One copy of plotly's library has more than 3 MB and two have more than 8 MB, so both charts share one copy.
    assert 3_000_000 < len(text) < 8_000_000
    assert "<h2>A&lt;B</h2>" in text
    assert "bars &amp; more" in text


def test_each_bar_is_drawn_as_a_candle_with_volume_and_vwap_in_the_middle_of_its_window() -> None:
    bars = some_bars()
    candles, vwap, volume = figure(Chart("A<B", "", bars, SECOND_US)).data
    for name in ("open", "high", "low", "close"):
        assert candles[name].tolist() == bars[name].tolist()
    assert vwap.y.tolist() == bars["vwap"].tolist()
    assert volume.y.tolist() == bars["volume"].tolist()
    assert volume.customdata.tolist() == bars["trades"].tolist()
    # The first bar opened at 10 and closed at 10.5. All others closed lower than they opened.
    assert volume.marker.color.tolist() == [UP, DOWN, DOWN, DOWN, DOWN]
    for trace in (candles, vwap, volume):
        assert trace.x.tolist() == [f"2021-01-08T00:00:0{second}.000000" for second in range(5)]
        assert (trace.xperiod, trace.xperiod0, trace.xperiodalignment) == (1000, trace.x[0], "middle")


def test_windows_without_trades_stay_empty_in_the_chart() -> None:
    bars = some_bars()[[0, 1, 4]]
    drawn = figure(Chart("X", "", bars, SECOND_US))
    assert [text[-9:] for text in drawn.data[0].x] == ["00.000000", "01.000000", "04.000000"]
    # Unlike an axis of labels, a time axis leaves space for windows without trades.
    assert drawn.layout.xaxis.type == "date"


def test_the_demo_without_plotly_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeron.demo.picture.find_spec", lambda _: None)
    monkeypatch.setattr("aeron.spark.check", list)
    console = Console(file=io.StringIO(), width=200)
    assert _has_spark(console)
    assert "No bars.html in this demo: plotly is not installed; pip install 'aeron-py[demo]'" in console.file.getvalue()


def test_without_pandas_the_demo_of_crashes_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeron.demo.expected.find_spec", lambda _: None)
    console = Console(file=io.StringIO(), width=200)
    _show_crashes(Source(None, None, None, None, None, None, 1, 1), console)
    assert "No crashes in this demo: pandas is not installed; pip install 'aeron-py[demo]'" in console.file.getvalue()


def test_a_bar_is_printed_in_the_columns_of_the_header() -> None:
    trades = generate_trades(10)
    for bar_us, start in ((SECOND_US, "00:00:01"), (60 * 10 * SECOND_US, "01-08 00:00"), (10_000, "00:00:01.000000")):
        lines = Lines(trades, bar_us)
        bar = some_bars()[1]
        assert lines.line(bar).startswith(start)
        assert re.split(r"\s{2,}| (?=[\d.]+ |\d+$)", lines.line(bar))[-1] == "2"
        assert len(lines.header) == len(lines.line(bar))


def test_bars_that_differ_or_miss_a_trade_are_reported() -> None:
    bars = some_bars()
    check(bars, bars, 10)
    almost = bars.copy()
    almost["vwap"] *= 1 + 1e-12
    check(bars, almost, 10)
    for name in ("open", "volume", "vwap", "trades"):
        other = bars.copy()
        other[name][3] *= 2
        with pytest.raises(RuntimeError, match=r"received .*00:00:03.*, but the Parquet files have .*00:00:03"):
            check(bars, other, 10)
    with pytest.raises(RuntimeError, match="5 bars were received, but 4 are in the Parquet files"):
        check(bars, bars[:-1], 10)
    with pytest.raises(RuntimeError, match="the bars stand for 10 trades, but 11 were published"):
        check(bars, bars, 11)


def test_the_reason_of_a_spark_error_is_the_line_of_our_own_exception() -> None:
    trace = 'Traceback\n  File "x"\naeron.spark.errors.AeronDriverTimeout: no driver in /x\n\n=== Streaming Query ==='
    assert reason(f"[STREAM_FAILED] Query failed\n{trace}") == "no driver in /x"
    assert reason("[OTHER] what failed\nand more") == "[OTHER] what failed"


def test_the_demo_without_a_jdk_names_the_version_to_install_and_runs_without_spark(tmp_path: Path) -> None:
    """08-82: on a machine without Java"""
    os.mkdir(tmp_path / "empty")
    options = ["--repeat", 1, "--seconds", 0.1, "--output", tmp_path / "bars"]
    result = run("demo", "--spark", "-i", DATA / "usdjpy-ticks.csv", *options, JAVA_HOME=str(tmp_path / "empty"))
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "No Spark in this demo: Java: none in JAVA_HOME" in text
    assert "install a JDK 17 or 21" in text
    assert "quotes received" in text
    assert not (tmp_path / "bars").exists()
