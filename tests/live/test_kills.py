"""Ends source processes by SIGKILL and SIGTERM and starts them again. No recorded message is lost or returned twice."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest
from tests.conftest import eventually

import aeron
from aeron import _aeron
from live.kills import Publisher, SourceProcess
from live.query import Query
from live.streams import missing_bytes, number

pytestmark = pytest.mark.slow

CHANNEL = "aeron:ipc"
LIVENESS_S = 2
"""Client liveness timeout of the driver in these tests, in seconds."""
PATIENT_LIVENESS_S = 8
"""Client liveness timeout for tests that act before it ends, in seconds. It exceeds the delays of a busy machine."""


@pytest.fixture(scope="module")
def driver(request: pytest.FixtureRequest) -> Iterator[aeron.MediaDriver]:
    """Returns a driver. The parameter is the client liveness timeout in seconds."""
    directory = mkdtemp(prefix="aeron-live-driver-", dir="/dev/shm")
    with aeron.MediaDriver(
        dir=directory,
        dir_delete_on_start=True,
        ipc_term_buffer_length=64 * 1024,
        term_buffer_length=64 * 1024,
        timer_interval_ns=100_000_000,
        client_liveness_timeout_ns=getattr(request, "param", LIVENESS_S) * 10**9,
    ) as driver:
        yield driver


def options(home: Path, driver: aeron.MediaDriver, stream_id: int, channel: str = CHANNEL) -> dict[str, object]:
    return {
        "channel": channel,
        "stream_ids": [stream_id],
        "client": {"aeron_dir": driver.dir},
        "archive_dir": str(home / "archives"),
    }


def restart(home: Path, settings: dict[str, object]) -> Query:
    return Query(home / "checkpoint", _aeron.LiveSource(**settings))  # type: ignore[arg-type]


def finish(query: Query, publisher: Publisher) -> int:
    """Runs batches, stops the publisher, and runs batches until the last message is a row. Returns the number of
    published messages."""
    seen = len(query.rows())
    query.run_until(seen + 50)
    count = publisher.stop()
    deadline = time.monotonic() + 20
    while not (rows := query.rows()) or number(rows[-1]) < count - 1:
        assert time.monotonic() < deadline, f"{len(rows)} rows of {count}: {query.source.report()}"
        query.run_batch()
    return count


POINTS = ["batch-zero:1", "planned:1", "planned:4", "appended:5", "indexed:5", "purged:1", "taken-over:1"]


@pytest.mark.parametrize("pause", [1.0, LIVENESS_S + 1.5])
@pytest.mark.parametrize("point", POINTS)
def test_a_source_that_is_killed_at_a_test_hook_returns_every_message_once_after_the_restart(
    home: Path, driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, point: str, pause: float
) -> None:
    """08-20, 08-30, 08-42, 08-45"""
    settings = options(home, driver, stream_id)
    publication = client.add_exclusive_publication(CHANNEL, stream_id)
    publisher = Publisher(publication, size=992)
    if point.startswith("taken-over"):
        first = SourceProcess(home / "checkpoint", settings)
        eventually(lambda: list((home / "checkpoint").glob("commits/3")), timeout=20)
        first.kill()
    process = SourceProcess(home / "checkpoint", settings, point)
    process.wait_until_reached()
    process.kill()
    print(f"killed at {point}")
    time.sleep(pause)
    query = restart(home, settings)
    count = finish(query, publisher)
    # Over IPC, the publisher waits for the source.
    assert [number(row) for row in query.rows()] == list(range(count))
    assert query.report()["gapBytes"] == 0
    query.source.close()


@pytest.mark.parametrize("point", ["appended:20", "indexed:20", "planned:3"])
@pytest.mark.parametrize(("driver", "is_dead"), [(PATIENT_LIVENESS_S, False), (LIVENESS_S, True)], indirect=["driver"])
def test_messages_from_the_network_that_a_killed_source_missed_are_reported_as_a_gap(
    home: Path, driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, point: str, is_dead: bool
) -> None:
    """08-20, 08-49: a restart within the client liveness timeout loses nothing. A later restart loses the messages that
    were sent meanwhile."""
    channel = f"aeron:udp?endpoint=localhost:{24700 + stream_id % 100}"
    settings = options(home, driver, stream_id, channel)
    other = client.add_subscription(channel, stream_id)
    publication = client.add_exclusive_publication(channel, stream_id)
    publication.wait_connected(timeout=5)
    reader = _Reader(other)
    publisher = Publisher(publication, size=2000, per_second=2000)
    process = SourceProcess(home / "checkpoint", settings, point)
    process.wait_until_reached()
    process.kill()
    print(f"killed at {point}")
    published = publisher.count
    if is_dead:
        # 200 messages are longer than the window. The publisher can send them only after the driver has removed the
        # killed subscriber.
        eventually(lambda: publisher.count > published + 200, timeout=LIVENESS_S + 20)
    else:
        time.sleep(1.0)
    query = restart(home, settings)
    finish(query, publisher)
    reader.stop()
    assert query.report()["gapBytes"] == missing_bytes(query.rows())
    assert (query.report()["gapBytes"] > 0) == is_dead
    query.source.close()


def test_a_source_continues_with_a_reported_gap_after_a_pause_beyond_the_client_liveness_timeout(
    home: Path, driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int
) -> None:
    """The driver regards the client as dead, as may happen on an overloaded machine. The query continues with a new
    client."""
    other = client.add_subscription(CHANNEL, stream_id)
    publication = client.add_exclusive_publication(CHANNEL, stream_id)
    reader = _Reader(other)
    publisher = Publisher(publication, size=992, per_second=2000)
    process = SourceProcess(home / "checkpoint", options(home, driver, stream_id))
    query = Query(home / "checkpoint", None)  # type: ignore[arg-type]
    eventually(lambda: len(query.rows()) > 100, timeout=20)
    process.process.send_signal(signal.SIGSTOP)
    published = publisher.count
    # 500 messages are longer than the window. The publisher can send them only after the driver has removed the stopped
    # subscriber.
    eventually(lambda: publisher.count > published + 500, timeout=LIVENESS_S + 20)
    process.process.send_signal(signal.SIGCONT)
    late = publisher.count
    eventually(lambda: number(query.rows()[-1]) > late, timeout=30)
    assert process.process.poll() is None, "the process ended"
    process.end(signal.SIGTERM)
    query = restart(home, options(home, driver, stream_id))
    finish(query, publisher)
    reader.stop()
    report = query.report()
    assert report["gapBytes"] == missing_bytes(query.rows())
    assert report["lostBytes"] == 0
    first = report["gaps"][0]
    assert first["reason"].startswith("sent while the query had no connection to its media driver: the client of the")
    assert first["bytes"] > 500 * 992
    query.source.close()


class _Reader:
    """A second subscriber, which continues to read while the source does not."""

    def __init__(self, subscription: aeron.Subscription) -> None:
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, args=(subscription,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_stopped = True
        self._thread.join()

    def _run(self, subscription: aeron.Subscription) -> None:
        while not self._is_stopped:
            if not subscription.poll(lambda message, header: None, 100):
                time.sleep(0.001)


def test_kills_at_random_times_lose_no_recorded_messages(
    home: Path, driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int
) -> None:
    """08-22, 08-45: the publisher sends at full rate, and all kills happen on one checkpoint."""
    settings = options(home, driver, stream_id)
    publication = client.add_exclusive_publication(CHANNEL, stream_id)
    publisher = Publisher(publication, size=992, per_second=50_000)
    generator = random.Random(8022)
    for _ in range(5):
        process = SourceProcess(home / "checkpoint", settings)
        time.sleep(0.5 + generator.random())
        process.kill()
    query = restart(home, settings)
    count = finish(query, publisher)
    assert [number(row) for row in query.rows()] == list(range(count))
    query.source.close()


@pytest.mark.parametrize("driver", [PATIENT_LIVENESS_S], indirect=True)
def test_a_terminated_source_stops_its_recordings_and_frees_the_publisher(
    home: Path, driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int
) -> None:
    """08-34"""
    settings = options(home, driver, stream_id)
    publication = client.add_exclusive_publication(CHANNEL, stream_id)
    publisher = Publisher(publication)
    took = []
    for _ in range(3):
        first = batches_done(home)
        process = SourceProcess(home / "checkpoint", settings)
        eventually(lambda first=first: batches_done(home) > first + 3, timeout=20)
        took.append(process.end(signal.SIGTERM))
        assert process.process.returncode == -signal.SIGTERM
        eventually(lambda: not publication.is_connected, timeout=PATIENT_LIVENESS_S / 2)
    # Closing the source takes less than 100 ms. The rest of the time is for the end of the interpreter.
    assert min(took) < 1.0, took
    publisher.stop()
    assert stop_positions(home)[-1] >= 0
    query = restart(home, settings)
    query.run_batch()
    eventually(lambda: publication.is_connected)
    lines = query.source.take_lines()
    assert not any("was not stopped by its writer" in line for line in lines), lines
    query.source.close()


def test_a_source_closes_within_100_ms(
    home: Path, driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int
) -> None:
    """08-34"""
    took = []
    for _ in range(3):
        query = restart(home, options(home, driver, stream_id))
        query.run_batch()
        with client.add_exclusive_publication(CHANNEL, stream_id) as publication:
            publisher = Publisher(publication)
            query.run_until(len(query.rows()) + 10)
            began = time.monotonic()
            query.source.close()
            took.append(time.monotonic() - began)
            publisher.stop()
    assert min(took) < 0.1, took


@pytest.mark.parametrize("driver", [LIVENESS_S + 3], indirect=True)
def test_a_killed_source_keeps_the_publisher_connected_until_the_client_liveness_timeout(
    home: Path, driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int
) -> None:
    """08-34"""
    publication = client.add_exclusive_publication(CHANNEL, stream_id)
    publisher = Publisher(publication, size=992)
    process = SourceProcess(home / "checkpoint", options(home, driver, stream_id))
    eventually(lambda: list((home / "checkpoint").glob("commits/2")), timeout=20)
    process.kill()
    assert publication.is_connected
    eventually(lambda: not publication.is_connected, timeout=LIVENESS_S + 8)
    publisher.stop()


def batches_done(home: Path) -> int:
    return len(list((home / "checkpoint").glob("commits/[0-9]*")))


def stop_positions(home: Path) -> list[int]:
    """Returns the stop positions in the catalog of the only archive. Uses no code of the product."""
    (archive,) = (home / "archives").iterdir()
    catalog = (archive / "archive.catalog").read_bytes()
    positions, at = [], int.from_bytes(catalog[4:8], "little")
    while length := int.from_bytes(catalog[at : at + 4], "little"):
        positions.append(int.from_bytes(catalog[at + 32 + 48 : at + 32 + 56], "little", signed=True))
        at += 32 + length
    return positions
