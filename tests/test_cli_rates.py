"""Tests of the output, the measurements and the end of ``aeron ping``, ``aeron pong`` and ``aeron rate``."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import click
import pytest

import aeron
from aeron.cli.commands import aeron as commands
from aeron.cli.histogram import Histogram
from commands import Command, run

CHANNEL = "aeron:ipc?term-length=64k"
BOTH = ["--ping-channel", CHANNEL, "--pong-channel", CHANNEL]
RATE_LINE = re.compile(r"\d+ms, (\d[\d.e+]*) msgs/sec, (\d[\d.e+]*) bytes/sec, totals (\d+) messages (\d+) MB payloads")


@pytest.fixture(scope="module")
def driver() -> Iterator[aeron.MediaDriver]:
    with aeron.MediaDriver(timer_interval_ns=50_000_000, publication_linger_timeout_ns=10_000_000) as driver:
        yield driver


# ---- ping and pong -------------------------------------------------------------------------------------------------


def _rows(text: str) -> list[tuple[float, float, int]]:
    """Returns value, percentile and count of each line of a printed histogram."""
    rows = re.findall(r"^ *(\d+\.\d{3}) +([01]\.\d{6}) +(\d+) +(?:\d+\.\d\d|inf)$", text, re.MULTILINE)
    return [(float(value), float(percentile), int(count)) for value, percentile, count in rows]


def test_ping_waits_for_pong_and_measures_all_round_trips_after_the_warm_up(
    driver: aeron.MediaDriver,
) -> None:
    """06-18"""
    with Command("ping", "--dir", driver.dir, *BOTH, "-m", 300, "-w", 50, "-L", 100) as ping:
        ping.wait_for("Subscription channel status 1\n")
        with Command("pong", "--dir", driver.dir, *BOTH) as pong:
            assert ping.end(30) == 0
            pong.send(signal.SIGINT)
            assert pong.end() == 0
            assert pong.output().splitlines() == [
                f"Subscribing Ping at channel {CHANNEL} on Stream ID 1002",
                f"Publishing Pong at channel {CHANNEL} on Stream ID 1003",
                "Subscription channel status 1",
                "Publication channel status 1",
                "Shutting down...",
            ]
        text = ping.output()
    lines = text.splitlines()
    assert lines[:5] == [
        f"Publishing Ping at channel {CHANNEL} on Stream ID 1002",
        f"Subscribing Pong at channel {CHANNEL} on Stream ID 1003",
        "Publication channel status 1",
        "Subscription channel status 1",
        "Warming up the media driver with 50 messages of length 100 bytes",
    ]
    assert re.fullmatch(r"Warm up complete in \d+ns", lines[5])
    assert lines[6] == "Pinging 300 messages of length 100 bytes"
    assert lines[7:9] == ["       Value   Percentile   TotalCount 1/(1-Percentile)", ""]
    rows = _rows(text)
    assert rows == sorted(rows)
    assert rows[-1][1:] == (1.0, 300)
    assert re.search(r"^#\[Max     = +\d+\.\d{3}, Total count    = +300\]$", text, re.MULTILINE)
    assert lines[-1] == "Shutting down..."


@pytest.mark.parametrize("length", [8, 5000])
def test_pong_returns_pings_of_any_length(driver: aeron.MediaDriver, length: int) -> None:
    """06-18: including messages of several frames"""
    with Command("pong", "--dir", driver.dir, *BOTH, "--exclusive") as pong:
        pong.wait_for("Publication channel status")
        result = run("ping", "--dir", driver.dir, *BOTH, "-m", 20, "-w", 0, "-L", length, "--exclusive")
        assert result.exit_code == 0
        assert _rows(result.stdout)[-1][1:] == (1.0, 20)
        pong.send(signal.SIGTERM)
        assert pong.end() == 0


def test_ping_prints_its_measurements_after_a_signal(driver: aeron.MediaDriver) -> None:
    with Command("pong", "--dir", driver.dir, *BOTH) as pong, Command("ping", "--dir", driver.dir, *BOTH) as ping:
        ping.wait_for("Warming up")
        ping.send(signal.SIGINT)
        assert ping.end() == 0
        assert ping.output().endswith("Shutting down...\n")
        pong.send(signal.SIGINT)
        assert pong.end() == 0


def test_ping_reports_that_pong_has_ended(driver: aeron.MediaDriver) -> None:
    with Command("pong", "--dir", driver.dir, *BOTH) as pong, Command("ping", "--dir", driver.dir, *BOTH) as ping:
        ping.wait_for("Warming up")
        pong.send(signal.SIGINT)
        assert ping.end() == 1
        assert ping.errors() == "Error: the pong has gone away\n"


def test_a_ping_message_without_room_for_its_timestamp_is_refused(driver: aeron.MediaDriver) -> None:
    result = run("ping", "--dir", driver.dir, *BOTH, "-L", 7)
    assert result.exit_code == 1
    assert "a message of 7 bytes has no room for its time, which takes 8" in result.stderr


def test_a_histogram_keeps_three_digits_of_every_value_and_counts_every_value() -> None:
    """06-18"""
    histogram = Histogram()
    for value_ns in range(1, 250_001):
        histogram.record(value_ns)
    histogram.record(10_000_000_000)
    text = "\n".join(histogram.render())
    rows = _rows(text)
    assert rows == sorted(rows)
    assert rows[0][1:] == (0.0, 1)
    assert rows[-1][1:] == (1.0, 250_001)
    assert abs(rows[-1][0] / 10_000_000 - 1) < 1e-3
    median = next(value for value, percentile, _ in rows if percentile >= 0.5)
    assert abs(median / 125 - 1) < 1e-3
    assert "#[Buckets =           24, SubBuckets     =         2048]" in text
    assert "Total count    =       250001]" in text


def test_an_empty_histogram_has_no_rows() -> None:
    assert _rows("\n".join(Histogram().render())) == []


# ---- rate ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [[], ["--exclusive"]])
def test_streaming_publisher_and_rate_subscriber_agree_on_totals(driver: aeron.MediaDriver, kind: list[str]) -> None:
    """06-17"""
    count, length = 300_000, 100
    with Command("rate", "--dir", driver.dir, "-c", CHANNEL, "-m", count) as rate:
        rate.wait_for("Subscription channel status 1\n")
        result = run("rate", "--publish", "--dir", driver.dir, "-c", CHANNEL, "-m", count, "-L", length, *kind)
        assert result.exit_code == 0
        assert rate.end() == 0
        received = rate.output().splitlines()
    lines = result.stdout.splitlines()
    assert lines[:2] == [
        f"Streaming {count} messages of payload length {length} bytes to {CHANNEL} on stream id 1001",
        "Publication channel status 1",
    ]
    assert lines[-4:-2] == ["Done sending.", lines[-3]]
    assert float(lines[-3].removeprefix("Publisher back pressure ratio ")) > 0
    for line in (lines[-2], received[-2]):
        total = RATE_LINE.fullmatch(line.removeprefix("Total: "))
        assert (int(total[3]), int(total[4])) == (count, count * length >> 20)
    assert received[0] == f"Subscribing to channel {CHANNEL} on Stream ID 1001"
    assert lines[-1] == received[-1] == "Shutting down..."


def test_rate_prints_each_second_a_rate_of_at_most_four_significant_digits(driver: aeron.MediaDriver) -> None:
    """06-17"""
    with Command("rate", "--dir", driver.dir, "-c", CHANNEL) as rate, aeron.connect(driver) as client:
        rate.wait_for("Subscription channel status")
        with client.add_publication(CHANNEL, 1001) as publication:
            publication.wait_connected(5)
            for _ in range(1234):
                publication.publish(bytes(1000), 5)
            rate.wait_for("totals 1234 messages 1 MB payloads")
            rate.wait_for("0 msgs/sec, 0 bytes/sec, totals 1234 messages")
        rate.send(signal.SIGINT)
        assert rate.end() == 0
        first, *_ = [RATE_LINE.fullmatch(line) for line in rate.output().splitlines() if "totals 1234" in line]
        assert len(first[1].replace(".", "").lstrip("0")) <= 4


def test_both_ends_of_an_ipc_stream_show_rates_each_second_and_a_ratio_at_the_end(driver: aeron.MediaDriver) -> None:
    """06-19"""
    with Command("rate", "--dir", driver.dir, "-c", "aeron:ipc") as subscriber:
        subscriber.wait_for("Subscription channel status")
        with Command("rate", "--publish", "--dir", driver.dir, "-c", "aeron:ipc", "-m", 10**12) as publisher:
            for end in (publisher, subscriber):
                end.wait_for("msgs/sec")
                end.send(signal.SIGINT)
                assert end.end() == 0
            sent, received = publisher.output(), subscriber.output()
    for output in (sent, received):
        assert any(RATE_LINE.fullmatch(line) for line in output.splitlines())
    assert _ratio(r"^Publisher back pressure ratio (\S+)$", sent) >= 0
    assert 0 <= _ratio(r"^Subscriber poll failure ratio (\S+)$", received) < 1


def _ratio(pattern: str, output: str) -> float:
    match = re.search(pattern, output, re.MULTILINE)
    assert match, output
    return float(match[1])


def test_a_streaming_publisher_ends_cleanly_at_a_signal(driver: aeron.MediaDriver) -> None:
    with Command("rate", "--publish", "--dir", driver.dir, "-c", CHANNEL) as publisher:
        publisher.wait_for("Publication channel status")
        publisher.send(signal.SIGTERM)
        assert publisher.end() == 0
        assert publisher.output().endswith("Shutting down...\n")


# ---- defaults ------------------------------------------------------------------------------------------------------

DEFAULTS = {
    "ping": {
        "ping_channel": "aeron:udp?endpoint=localhost:20123",
        "ping_stream_id": 1002,
        "pong_channel": "aeron:udp?endpoint=localhost:20124",
        "pong_stream_id": 1003,
        "messages": 10_000_000,
        "warm_up": 100_000,
        "length": "32",
    },
    "pong": {
        "ping_channel": "aeron:udp?endpoint=localhost:20123",
        "ping_stream_id": 1002,
        "pong_channel": "aeron:udp?endpoint=localhost:20124",
        "pong_stream_id": 1003,
    },
    "rate": {"channel": "aeron:udp?endpoint=localhost:20121", "stream_id": 1001, "length": "32", "linger_s": 0.0},
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_defaults_are_the_same_as_in_aerons_samples(name: str) -> None:
    """06-13"""
    command = commands.get_command(click.Context(commands), name)
    defaults = {parameter.name: parameter.default for parameter in command.params}
    assert {key: defaults[key] for key in DEFAULTS[name]} == DEFAULTS[name]
