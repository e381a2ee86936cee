"""Tests of ``aeron demo --spark`` with example files and generated trades: a first run, a second run, and interrupted
runs.
"""

from __future__ import annotations

import math
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil
import pytest
from pyarrow import parquet
from tests.conftest import eventually
from tests.spark.collecting import until

import aeron
from aeron.demo.bars import usual_bar_us
from aeron.demo.live import Followed, subscribers
from aeron.demo.pipeline import Pipeline
from aeron.demo.replay import in_time_order
from aeron.demo.trades import Trades, generate_trades, load_trades
from commands import SHARED_MEMORY, Command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATA = Path(__file__).parents[2] / "examples" / "data"
BRIEF = ["--repeat", 1, "--seconds", 0.1, "--rate", 2000]
GENERATED, SEED = 3000, 3
ENDS_WITHIN_S = 500

whole = pytest.mark.timeout(ENDS_WITHIN_S + 60)
"""Time limit of tests with whole demos. Each demo takes half a minute on an idle machine."""


@dataclass(frozen=True)
class Finished:
    """Output of a completed demo, and the directory of its files."""

    text: str
    output: Path

    def bars(self, name: str) -> list[dict[str, object]]:
        table = parquet.read_table(self.output / f"{name}-bars.parquet")
        rows = table.to_pylist()
        return sorted(rows, key=lambda bar: (bar["start"], bar["symbol"]))


@pytest.fixture(scope="module")
def finished(java: None, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    output = tmp_path_factory.mktemp("demo") / "bars"
    files = ["-i", DATA / "btcusdt-trades.parquet", "-i", DATA / "usdjpy-ticks.csv"]
    made_up = ["--generate", "--trades", GENERATED, "--seed", SEED]
    return run_demo(*files, *made_up, "--output", output, output=output)


def run_demo(*options: object, output: Path) -> Finished:
    before = left_behind()
    with Command("demo", "--spark", *options, *BRIEF, COLUMNS="120") as demo:
        assert demo.end(ENDS_WITHIN_S) == 0, demo.output() + demo.errors()
    assert demo.errors() == ""
    assert left_behind() == before
    return Finished(demo.output(), output)


def left_behind() -> tuple[set[str], set[str]]:
    """Returns the directories of demos in the temporary directory, and all paths in the current directory."""
    names = os.listdir(SHARED_MEMORY or tempfile.gettempdir())
    return {name for name in names if name.startswith("aeron-demo-")}, set(Path.cwd().iterdir())


def bars_by_numpy(trades: Trades) -> dict[tuple[int, str], dict[str, float]]:
    """Computes the bars from the same records without Spark. Returns them by start (in microseconds) and symbol."""
    records = in_time_order(trades.records)
    bar_us = usual_bar_us(records["time_ns"])
    starts = records["time_ns"] // 1000 // bar_us * bar_us
    bars = {}
    for start, symbol in {(int(start), symbol) for start, symbol in zip(starts, records["symbol"], strict=True)}:
        mine = records[(starts == start) & (records["symbol"] == symbol)]
        price, quantity = mine["price"], mine["quantity"]
        places = (Decimal(repr(float(each))).quantize(Decimal("1e-8"), ROUND_HALF_UP) for each in quantity)
        bars[start, symbol.decode()] = {
            "open": price[0],
            "high": price.max(),
            "low": price.min(),
            "close": price[-1],
            "volume": float(sum(places)),
            "vwap": math.fsum(price * quantity) / math.fsum(quantity),
            "trades": len(mine),
        }
    return bars


@whole
@pytest.mark.parametrize("name", ["btcusdt-trades", "usdjpy-ticks", "generated"])
def test_bars_of_the_stream_equal_those_that_numpy_makes_of_the_same_trades(finished: Finished, name: str) -> None:
    """08-81: with real and with generated data. A later test has late rows."""
    [path] = [*DATA.glob(f"{name}.*"), None][:1]
    trades = load_trades(path) if path else generate_trades(GENERATED, SEED)
    expected = bars_by_numpy(trades)
    assert len(expected) > 30
    found = finished.bars(name)
    keys = [(round(bar.pop("start").timestamp() * 1e6), bar.pop("symbol")) for bar in found]
    assert keys == sorted(expected)
    for key, bar in zip(keys, found, strict=True):
        right = expected[key]
        assert bar.pop("vwap") == pytest.approx(right.pop("vwap"), rel=1e-9, abs=0)
        assert bar == right, key


@whole
def test_the_bars_are_printed_compared_and_drawn(finished: Finished) -> None:
    """08-82, 08-83: the demo itself fails if a received bar differs from the bar in Parquet."""
    text = " ".join(finished.text.split())
    for name, symbols, what in (
        ("btcusdt-trades", {"btcusdt-trades"}, "2,001 trades"),
        ("usdjpy-ticks", {"usdjpy-ticks"}, "1,000 quotes"),
        ("generated", {"ALPHA", "BRAVO", "CHARLIE", "DELTA"}, f"{GENERATED:,} trades"),
    ):
        bars = finished.bars(name)
        assert f"{len(bars)} bars of {what}: those received over Aeron are those in Parquet" in text
        assert {bar["symbol"] for bar in bars} == symbols
        page = (finished.output / "bars.html").read_text()
        assert all(f"<h2>{symbol}, " in page for symbol in symbols)
    printed = re.findall(r"^(?:\d\d-\d\d )?\d\d:\d\d(?::\d\d)? .* \d+$", finished.text, re.MULTILINE)
    assert len(printed) == sum(len(finished.bars(name)) for name in ("btcusdt-trades", "usdjpy-ticks", "generated"))
    assert all(bar["volume"] == bar["trades"] for bar in finished.bars("usdjpy-ticks"))


@whole
def test_the_live_lines_show_the_state_of_both_queries(finished: Finished) -> None:
    for name in ("to Aeron", "to Parquet"):
        said = rf"{name}: 2,002 rows, [\d,]+ rows/s, batch [\d,]+ ms, backlog 0, retained [\d.]+ MiB, 0 late"
        assert re.search(said, finished.text), finished.text


@whole
def test_a_second_run_replaces_the_files_of_the_first_run(finished: Finished) -> None:
    """08-82"""
    before = finished.bars("usdjpy-ticks")
    again = run_demo("-i", DATA / "usdjpy-ticks.csv", "--output", finished.output, output=finished.output)
    exact = [{name: value for name, value in bar.items() if name != "vwap"} for bar in before]
    assert [
        {name: value for name, value in bar.items() if name != "vwap"} for bar in again.bars("usdjpy-ticks")
    ] == exact
    assert len(re.findall(r"Plotly\.newPlot\(", (finished.output / "bars.html").read_text())) == 1


@whole
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_no_files_or_processes(java: None, tmp_path: Path, number: signal.Signals) -> None:
    """08-82"""
    before = left_behind()
    options = ["--generate", "--trades", 50_000, "--repeat", 1, "--seconds", 0.1, "--rate", 500]
    with Command("demo", "--spark", *options, "--output", tmp_path / "bars") as demo:
        demo.wait_for("vwap trades", timeout=ENDS_WITHIN_S)
        processes = psutil.Process(demo.pid).children(recursive=True)
        assert "java" in names_of(processes)
        demo.send(number)
        assert demo.end(60) == 1
    assert demo.errors().strip() == "Aborted!"
    _, alive = psutil.wait_procs(processes, timeout=15)
    assert alive == []
    assert left_behind() == before
    assert not (tmp_path / "bars").exists()


def names_of(processes: list[psutil.Process]) -> list[str]:
    """Returns the names of processes that still run. (Scripts that start a JVM have children that end at once.)"""
    names = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            names.append(process.name())
    return names


@whole
def test_a_demo_interrupted_while_spark_starts_leaves_no_jvm(java: None, tmp_path: Path) -> None:
    """08-82"""
    before = left_behind()
    with Command("demo", "--spark", "--generate", "--trades", 1000, *BRIEF, "--output", tmp_path / "bars") as demo:
        demo.wait_for("Starting Spark", timeout=ENDS_WITHIN_S)
        starting = psutil.Process(demo.pid)
        eventually(lambda: "java" in names_of(starting.children(recursive=True)), 60)
        processes = starting.children(recursive=True)
        demo.send(signal.SIGINT)
        assert demo.end(ENDS_WITHIN_S) == 1
    assert demo.errors().strip() == "Aborted!"
    _, alive = psutil.wait_procs(processes, timeout=60)
    assert alive == []
    assert left_behind() == before


@whole
def test_late_trades_are_counted_and_left_out(
    spark: SparkSession, shared_memory: Path, media_driver: aeron.MediaDriver
) -> None:
    """08-81"""
    pipeline = Pipeline(media_driver.dir, "aeron:ipc", 8101, 8102, 1_000_000, shared_memory)
    queries = []
    trades = generate_trades(4).records
    trades["symbol"], trades["sequence"] = b"X", np.arange(4)
    trades["time_ns"] = np.array([0, 10, 0, 20]) * 1_000_000_000
    try:
        for query in pipeline.start(spark):
            # Each query has subscribed before the first message is published.
            until(query, lambda query=query: query.lastProgress is not None)
            queries.append(Followed(query))
        with aeron.connect(media_driver) as client:
            subscriber = client.add_subscription("aeron:ipc", 8102)
            publication = client.add_exclusive_publication("aeron:ipc", 8101)
            # Waits for both queries, because the first one alone connects the publication.
            eventually(lambda: subscribers(client, 8101) == len(queries), 60)
            publication.wait_connected(timeout=5)
            for record, watermark in zip(trades, (-1, 9, 9, 19), strict=True):
                publication.publish(record.tobytes(), timeout=5)
                follow(queries, lambda at=watermark: all(query.watermark >= at for query in queries))
                follow(queries, lambda at=record["sequence"] + 1: all(query.rows == at for query in queries))
            assert subscriber.is_connected
    finally:
        for query in spark.streams.active:
            query.stop()
    assert [query.late for query in queries] == [1, 1]
    assert all(str(query).endswith(", 1 late") for query in queries)
    [first, second] = parquet.read_table(pipeline.parquet).sort_by("start").column("trades").to_pylist()
    assert (first, second) == (1, 1)


def follow(queries: list[Followed], condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, [(str(query), query.watermark) for query in queries]
        time.sleep(0.05)
        for query in queries:
            query.look()


@pytest.fixture(autouse=True)
def no_query_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "spark" in request.fixturenames:
        assert request.getfixturevalue("spark").streams.active == []
