"""Tests of ``aeron demo`` with both example files and with generated trades, and of its tables at any terminal
width."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from rich.console import Console

import aeron
from aeron.demo.patience import Patience
from aeron.demo.plan import Plan, Source
from aeron.demo.publishing import publishing
from aeron.demo.run import Result, report
from aeron.demo.totals import Totals
from aeron.demo.trades import Trades, generate_trades
from commands import SHARED_MEMORY, Command, run

DATA = Path(__file__).parent.parent / "examples" / "data"
BRIEF = ["--repeat", 1, "--seconds", 0.2]
SUBSCRIBER_POSITION = 4
"""Type id of the counter with the position of a subscriber."""


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    before = set(psutil.Process().children(recursive=True))
    yield
    assert directories_of(os.getpid()) == []
    assert set(psutil.Process().children(recursive=True)) <= before


def directories_of(pid: int) -> list[str]:
    names = os.listdir(SHARED_MEMORY or tempfile.gettempdir())
    return [name for name in names if name.startswith(f"aeron-demo-{pid}-")]


def rows(text: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


def test_the_demo_sends_real_trades_from_one_process_to_another() -> None:
    result = run("demo", "-i", DATA / "btcusdt-trades.parquet", "--symbol", "BTCUSDT", *BRIEF, COLUMNS="120")
    assert result.exit_code == 0, result.output
    assert "2,001 trades of BTCUSDT, replayed 1 times to another process over aeron:ipc" in _one_line(result.stdout)
    assert "as fast as it goes" in result.stdout
    assert "paced, 100,000/s" in result.stdout
    # The first phase publishes the 2,001 trades of the file once. The second phase publishes 20,000 trades, so it ends
    # within the tenth repetition of the file.
    [row] = [row for row in rows(result.stdout) if row[0] == "BTCUSDT"]
    assert row[1] == "22,001"
    assert (row[3], row[4]) == ("39,550.00", "39,430.30")
    # The rate and all five latencies are on the same line.
    assert re.search(r"\d M/s( +[\d,]+\.\d [um]s){5}", result.stdout)


@pytest.mark.slow
def test_a_killed_archive_replays_all_trades_that_it_had_confirmed() -> None:
    result = run("demo", "-i", DATA / "btcusdt-trades.parquet", "--archive", *BRIEF, COLUMNS="120")
    assert result.exit_code == 0, result.output
    assert "The archive is killed while it records, starts again, and replays them" in _one_line(result.stdout)
    lines = rows(result.stdout)
    at = next(number for number, row in enumerate(lines) if "confirmed before the kill" in row)
    published, confirmed, replayed = (int(text.replace(",", "")) for text in lines[at + 2][:3])
    assert confirmed <= replayed <= published
    files = "0-0.rec, archive-mark.dat, archive.catalog, archive.lock, index-0-0.idx"
    assert f"Files of the archive: {files}" in _one_line(result.stdout)


def test_the_table_of_quotes_has_mid_prices_and_a_count() -> None:
    result = run("demo", "-i", DATA / "usdjpy-ticks.csv", "--symbol", "USDJPY", *BRIEF, "--rate", 10_000, COLUMNS="80")
    assert result.exit_code == 0, result.output
    [row] = [row for row in rows(result.stdout) if row[0] == "USDJPY"]
    assert row == ["USDJPY", "3,000", "86.8450", "86.8510", "86.6915", "3,000"]
    assert ["symbol", "quotes", "last", "high", "low", "count"] in rows(result.stdout)


def test_generated_trades_are_named_as_generated_and_depend_only_on_the_seed() -> None:
    options = ["--generate", "--trades", 5000, *BRIEF]
    texts = [run("demo", *options, "--seed", seed, COLUMNS="80").stdout for seed in (5, 5, 6)]
    assert all("generated (seed" in text for text in texts)
    tables = [[row[:6] for row in rows(text) if row[0] in ("ALPHA", "BRAVO", "CHARLIE", "DELTA")] for text in texts]
    assert len(tables[0]) == 4
    assert tables[0] == tables[1] != tables[2]


def test_options_name_the_columns_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("t,p,n,who\n1700000000,10.5,3,X\n1700000001,11.25,4,Y\n")
    columns = ["--time-column", "t", "--price-column", "p", "--quantity-column", "n", "--symbol-column", "who"]
    result = run("demo", "-i", file, *columns, *BRIEF, "--rate", 10, COLUMNS="80")
    assert result.exit_code == 0, result.output
    assert ["X", "2", "10.50", "10.50", "10.50", "6.000"] in rows(result.stdout)
    assert ["Y", "2", "11.25", "11.25", "11.25", "8.000"] in rows(result.stdout)


def test_directory_channel_and_stream_are_options(tmp_path: Path) -> None:
    directory = tmp_path / "mine"
    options = ["--dir", directory, "-c", "aeron:ipc?term-length=64k", "-s", 5]
    result = run("demo", "-i", DATA / "usdjpy-ticks.csv", *options, *BRIEF)
    assert result.exit_code == 0, result.output
    assert "aeron:ipc?term-length=64k" in _one_line(result.stdout)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("none.csv", None, "no such file"),
        ("a.csv", "time,size\n1,1\n", "no price column among time, size; name it with --price-column"),
        ("a.xlsx", "", "unknown kind of file '.xlsx', use one of .csv, .parquet"),
    ],
)
def test_a_missing_or_unusable_file_is_refused(tmp_path: Path, name: str, text: str | None, says: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    result = run("demo", "-i", tmp_path / name)
    assert result.exit_code == 1
    assert says in result.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["--seed", -1],
        ["--trades", 10**12],
        ["--rate", 10**18],
        ["--rate", 10**6, "--seconds", 10**4],
        ["--seconds", "nan"],
        ["--seconds", "inf"],
        ["--speed", "nan"],
        ["--speed", "inf"],
        ["--speed", 0],
        ["--bar", "nan"],
        ["--bar", 1e10],
        ["--spark", "--stream", 2**31 - 1],
        ["--spark", "--output", "/dev/null/bars"],
    ],
)
def test_invalid_options_are_refused_immediately(options: list[object]) -> None:
    result = run("demo", "-i", "none.csv", *options)
    assert result.exit_code == 1, result.output
    assert str(options[-2]) in result.stderr
    assert "no such file" not in result.stderr


def test_a_channel_is_printed_unchanged() -> None:
    result = run("demo", "-i", DATA / "usdjpy-ticks.csv", "-c", "aeron:ipc?alias=[/red]|term-length=64k", *BRIEF)
    assert result.exit_code == 0, result.output
    assert "aeron:ipc?alias=[/red]|term-length=64k" in result.stdout.replace("\n", "")


@pytest.mark.slow
def test_every_call_reports_the_end_of_the_publisher_with_the_same_error() -> None:
    plan = Plan("/nonexistent", "aeron:ipc", 1, Source(None, None, None, None, None, None, 1, 1), 1, 1, 1)
    with (
        pytest.raises(RuntimeError, match=r"the publisher ended with status 1 after 7 trades"),
        publishing(plan) as one,
    ):
        while True:
            one.tell()
            one.check(7, "trades")
            time.sleep(0.01)


def test_the_error_for_a_parquet_file_without_pyarrow_names_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run("demo", "-i", DATA / "btcusdt-trades.parquet")
    assert result.exit_code == 1
    assert "pip install 'aeron-py[arrow]'" in result.stderr


def test_a_channel_that_the_driver_refuses_is_named_in_the_error() -> None:
    with Command("demo", "-i", DATA / "usdjpy-ticks.csv", "-c", "aeron:ipc?mtu=100", *BRIEF) as demo:
        assert demo.end() == 1
        assert "publisher: (22) Invalid argument\nmtuLength must be a multiple" in demo.errors()
        assert "Traceback" not in demo.errors()


def test_only_a_standstill_of_minutes_ends_a_wait_of_the_demo() -> None:
    now, steps, said = 0.0, 0, list[str]()
    patience = Patience("Spark makes its batch 2", lambda: steps, say=said.append, clock=lambda: now)
    while now < 3600:
        now += 2
        steps += now % 200 == 0
        patience.look()
    assert said[0] == "waiting until Spark makes its batch 2, for 16 s so far"
    assert 200 < len(said) < 300
    with pytest.raises(RuntimeError, match="no progress for 300 s while waiting until Spark makes its batch 2"):
        for _ in range(200):
            now += 2
            patience.look()
    assert 3900 < now < 3910


def test_no_part_of_the_demo_has_a_short_limit_of_time() -> None:
    """The demo has one limit of time, and it is for a standstill."""
    for path in Path(aeron.demo.__path__[0]).glob("*.py"):
        for name, limit in re.findall(
            r"(timeout\w*|deadline|wait|awaitTermination)\b[=(]\s*(\d[\d.]*)\)", path.read_text()
        ):
            assert float(limit) < 1, f"{path}: {name} {limit}"


def test_the_demo_ends_if_its_publisher_is_killed() -> None:
    with Command("demo", "--generate", "--repeat", 100_000) as demo:
        [publisher] = _wait(lambda: _publishers(demo.pid))
        publisher.kill()
        assert demo.end() == 1
        assert re.search(r"Error: the publisher ended with status -9 after [\d,]+ trades", demo.errors())
        assert "Traceback" not in demo.errors()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_ends_cleanly_at_a_signal(number: signal.Signals) -> None:
    with Command("demo", "--generate", "--repeat", 100_000) as demo:
        [publisher] = _wait(lambda: _publishers(demo.pid))
        # A signal directly after the fork could interrupt `Popen` before it returns. Then the demo could not end the
        # publisher.
        _wait(lambda: _has_received(demo.pid))
        demo.send(number)
        assert demo.end() == 1
        assert demo.errors().strip() == "Aborted!"
        assert directories_of(demo.pid) == []
        # The publisher may be dead although its parent has not reaped it yet.
        _wait(lambda: _has_ended(publisher))


def _publishers(pid: int) -> list[psutil.Process]:
    children = psutil.Process(pid).children()
    return [child for child in children if "aeron.demo.publisher" in child.cmdline()]


def _has_received(pid: int) -> bool:
    """Returns whether the demo's subscriber has read at least one message."""
    [name] = directories_of(pid)
    with aeron.CncFile(Path(SHARED_MEMORY or tempfile.gettempdir()) / name / "aeron") as cnc:
        return any(counter.type_id == SUBSCRIBER_POSITION and counter.value > 0 for counter in cnc.counters())


def _has_ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # the process was reaped between the two calls
        return True


def _wait(look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 20
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())


# ---- the tables ----------------------------------------------------------------------------------------------------


def result_of(trades: Trades) -> Result:
    totals = Totals()
    trades.records["sequence"] = np.arange(len(trades.records))
    totals.add(trades.records)
    return Result(12_345_678.0, np.arange(1000), totals)


@pytest.mark.parametrize("width", [30, 50, 80, 200])
def test_tables_truncate_no_value(width: int) -> None:
    trades = generate_trades(1000)
    trades.records["price"] *= 12_345
    trades.records["symbol"][0] = "A_LONG_SYMBOL_16"
    console = Console(width=width, file=io.StringIO())
    for table in report(result_of(trades), trades):
        console.print(table)
    text = console.file.getvalue()
    assert "…" not in text
    assert all(len(line) <= width for line in text.splitlines())
    if width >= 100:
        assert "A_LONG_SYMBOL_16" in text
        assert f"{trades.records['price'][0]:,.2f}" in text


def test_prices_are_printed_with_as_many_decimals_as_needed() -> None:
    trades = generate_trades(10)
    trades.records["symbol"] = "X"
    for price, shown in ((1.5, "1.50"), (1.23456, "1.23456"), (0.00012345678, "0.000123"), (1e6, "1,000,000.00")):
        trades.records["price"] = price
        prices, _ = report(result_of(trades), trades)
        assert list(prices.columns[2].cells) == [shown]


def test_symbols_with_the_same_hash_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeron.demo.totals._MULTIPLIER", 0)
    trades = generate_trades(1000)
    names = ["SAME8LET-A", "SAME8LET-B", "SAME8LET-CDEFGHI", "SAME8LET"]
    trades.records["symbol"] = np.resize([name.encode() for name in names], 1000)
    totals = result_of(trades).totals
    assert {name: symbol.trades for name, symbol in totals.by_symbol.items()} == dict.fromkeys(names, 250)
    for name, symbol in totals.by_symbol.items():
        mine = trades.records[trades.records["symbol"] == name.encode()]
        assert (symbol.last, symbol.high) == (mine["price"][-1], mine["price"].max())
