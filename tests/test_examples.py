"""Tests that each program in the folder ``examples`` runs to its end and prints the expected text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from examples import EXAMPLES, run_example
from ports import free_port

PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py"))

# Regular expression for the output of each example.
PRINTED = {
    "agents.py": r"example: errors = 0\n.* received = 1000\n.* sent = 1000\n",
    "arrow_batches.py": r"1,000 messages; the last position is 64000\n",
    "asyncio_service.py": r"b'REQUEST 0'\nb'REQUEST 1'\nb'REQUEST 2'\nthe service ends after 3 requests\n",
    "back_pressure.py": r"NOT_CONNECTED\n.*BACK_PRESSURED after 32 .*\n.*\n1000 messages dropped\n1032 messages",
    "driver_and_processes.py": r"\[10000, 10000\]\n",
    "export_recording.py": r"5,000 trades, .* 320000\n.* 5,000 trades, .* 640000\n10,000 trades from .*09:00:09.999",
    "fan_out.py": r"\[b'to the first', b'to both'\]\n.*\[b'to both'\], it joined at 64\n",
    "ipc_hello.py": r"received b'hello' up to position 64 of stream 1001\n",
    "lossless_publisher.py": r"True\n.*False - kept: 10\n.* at position 640\n.*True\n21 messages: .* b'trade 20'",
    "loss.py": r"all 2,000 messages .*\nnot reliable: some .*\n.*reliable=true: lost \d.*\n.*reliable=false: lost \d",
    "manual_destinations.py": r"first: \[b'to both'\], second: \[b'to both'\]\n.* only'\]\n\[b'from A', b'from B'\]",
    "multicast_records.py": r"subscriber 0: 1,000 quotes, .*\nsubscriber 1: 1,000 quotes, the last: 109.99 / 110.01\n",
    "persistent_subscription.py": r"REPLAY: \[b'published before'\] .*\nLIVE: \[b'published after'\] .* 128\n",
    "record_and_replay.py": r"\[b'trade 7', b'trade 8', b'trade 9'\]\nfollowed: \[b'trade 9', b'trade 10'\]\n.* 704\n",
    "sbe_trades.py": r"price: decimal128\(19, 4\)\n(?s:.*)'Sell', 'quantity_sum': 1500(?s:.*)37 bytes: Trade\(time=",
    "spy.py": r"receiver: (\[.*\])\nspy: \1\nspy: \[b'to the spy only'\]\n",
    "unicast_records.py": r"10,000 trades over .*: volume 492,999, VWAP 99.5500\n",
    "zero_copy_claim.py": r"not sent: the order is refused\n1,000 orders of 49,950,000 in total\n",
}

ARGUMENTS: dict[str, Callable[[], object]] = {"fan_out.py": free_port, "multicast_records.py": free_port}

# These examples need Java or Spark. The named test files run them.
ELSEWHERE = {
    "java_subscriber.py": "interop/test_java_example.py",
    "spark_archive.py": "spark/test_archive_example.py",
    "spark_bars.py": "spark/test_bars_example.py",
    "spark_sbe.py": "spark/test_bars_example.py",
}


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_an_example_prints_the_expected_text(name: str) -> None:
    printed = run_example(name, *(argument() for argument in [ARGUMENTS.get(name)] if argument))
    assert re.search(PRINTED[name], printed), printed


def test_no_clock_ends_an_example_while_it_makes_progress() -> None:
    """On a busy machine, a step may take long. Only the intended time-outs, which are below a second, are short."""
    for path in EXAMPLES.rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"awaitTermination\(\d{2,}\)", text), path
        limits = [float(limit) for limit in re.findall(r"timeout=([\d.]+)", text)]
        assert not [limit for limit in limits if 1 <= limit < 120], path


def test_each_example_has_a_test_that_runs_it() -> None:
    assert sorted({*PRINTED, *ELSEWHERE}) == PROGRAMS
    for name, test in ELSEWHERE.items():
        assert name in (Path(__file__).parent / test).read_text()


def test_the_index_names_each_example_once() -> None:
    named = re.findall(r"^\| \[(\w+\.py)\]\(\1\) \|", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    assert sorted(named) == PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_is_short(name: str) -> None:
    assert 20 <= len((EXAMPLES / name).read_text().splitlines()) <= 80
