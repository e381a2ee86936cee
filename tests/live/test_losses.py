"""Tests of live sources with dead media drivers, lost images and full disks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest
from tests.conftest import eventually

import aeron
from aeron.spark.errors import AeronDataLossError, AeronDriverTimeout
from live.conftest import Start
from live.streams import missing_bytes, number, publish

CHANNEL = "aeron:ipc"


@pytest.fixture
def aeron_dir() -> Iterator[Path]:
    directory = Path(mkdtemp(prefix="aeron-live-driver-", dir="/dev/shm"))
    yield directory
    subprocess.run(["rm", "-rf", str(directory)], check=True)


def launch(directory: Path, **settings: object) -> aeron.MediaDriver:
    options: dict[str, object] = {
        "dir": str(directory),
        "dir_delete_on_start": True,
        "dir_delete_on_shutdown": False,
        "ipc_term_buffer_length": 64 * 1024,
        "term_buffer_length": 64 * 1024,
        "timer_interval_ns": 100_000_000,
    }
    return aeron.MediaDriver(**(options | settings))  # type: ignore[arg-type]


def test_recorded_data_is_delivered_before_the_end_of_the_driver_is_reported(
    start: Start, aeron_dir: Path, stream_id: int
) -> None:
    """08-51"""
    driver = launch(aeron_dir)
    query = start(client={"aeron_dir": str(aeron_dir), "driver_timeout_ms": 5000})
    query.run_batch()
    with aeron.connect(driver) as client:
        publish(client.add_exclusive_publication(CHANNEL, stream_id), 100)
        eventually(lambda: query.report()["retainedBytes"] == 6400)
    driver.close()
    time.sleep(1.5)
    assert len(query.run_batch() or ()) == 100
    with pytest.raises(AeronDriverTimeout, match=r"media driver in .* stopped \(no heartbeat for \d+ ms"):
        query.run_until(101)


def test_a_query_connects_to_a_new_driver_if_data_loss_is_allowed(
    start: Start, aeron_dir: Path, stream_id: int
) -> None:
    """08-51"""
    driver = launch(aeron_dir)
    client_settings = {"aeron_dir": str(aeron_dir), "driver_timeout_ms": 5000}
    query = start(client=client_settings, fail_on_data_loss=False)
    query.run_batch()
    with aeron.connect(driver) as client:
        publish(client.add_exclusive_publication(CHANNEL, stream_id), 100)
        eventually(lambda: query.report()["retainedBytes"] == 6400)
    driver.close()
    query.run_until(100)
    eventually(lambda: query.run_batch() is None and query.report()["images"] == 0)
    with launch(aeron_dir) as driver, aeron.connect(driver) as client:
        publication = client.add_exclusive_publication(CHANNEL, stream_id)
        publication.wait_connected(timeout=20)
        publish(publication, 50, first=100)
        rows = query.run_until(150)
        assert [number(row) for row in rows] == list(range(150))
        query.source.close()


@pytest.fixture
def driver_process(aeron_dir: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a media driver in a separate process. A test can stop and resume the process."""
    command = [sys.executable, "-m", "aeron", "driver", "--dir", str(aeron_dir), "-Daeron.dir.delete.on.start=true"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    eventually(lambda: aeron.is_driver_active(aeron_dir), 20)
    yield process
    process.kill()
    process.wait(20)


def test_a_query_connects_again_to_a_driver_that_was_stopped_beyond_the_driver_timeout(
    start: Start, aeron_dir: Path, driver_process: subprocess.Popen[bytes], stream_id: int
) -> None:
    """An overloaded machine may stop a driver for some time. No loss is known, so ``failOnDataLoss`` has no effect."""
    query = start(client={"aeron_dir": str(aeron_dir), "driver_timeout_ms": 1000})
    query.run_batch()
    with aeron.connect(aeron_dir, driver_timeout_ms=30_000) as client:
        publication = client.add_exclusive_publication(CHANNEL, stream_id)
        publication.wait_connected(timeout=10)
        publish(publication, 10)
        query.run_until(10)
        driver_process.send_signal(signal.SIGSTOP)
        lines: list[str] = []

        def is_told(text: str) -> bool:
            query.run_batch()
            lines.extend(query.source.take_lines())
            return any(text in line for line in lines)

        eventually(lambda: is_told("stopped (no heartbeat for"), 20)
        assert any(line.endswith("; connecting again") for line in lines), lines
        driver_process.send_signal(signal.SIGCONT)
        eventually(lambda: is_told("connected to a media driver again"), 20)
        publication.wait_connected(timeout=20)
        publish(publication, 10, first=10)
        rows = query.run_until(20)
        assert [number(row) for row in rows] == list(range(20))
        assert query.report()["images"] == 1


def test_a_query_fails_if_its_stopped_driver_does_not_continue(
    start: Start, aeron_dir: Path, driver_process: subprocess.Popen[bytes]
) -> None:
    query = start(client={"aeron_dir": str(aeron_dir), "driver_timeout_ms": 1000})
    query.run_batch()
    driver_process.send_signal(signal.SIGSTOP)
    with pytest.raises(AeronDriverTimeout, match=r"media driver in .* stopped \(no heartbeat for \d+ ms"):
        query.run_until(1)


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_the_loss_of_an_image_during_a_query_is_data_loss(
    start: Start, aeron_dir: Path, stream_id: int, fail_on_data_loss: bool
) -> None:
    """08-50: the untethered subscription loses its image at the limit, and another subscriber continues."""
    channel = f"{CHANNEL}?tether=false"
    timeouts = {
        "untethered_window_limit_timeout_ns": 1_000_000_000,
        "untethered_resting_timeout_ns": 200_000_000,
    }
    with launch(aeron_dir, **timeouts) as driver, aeron.connect(driver) as client:
        query = start(
            channel=channel,
            client={"aeron_dir": str(aeron_dir)},
            max_retained_bytes=64 * 1024,
            fail_on_data_loss=fail_on_data_loss,
        )
        query.run_batch()
        subscription = client.add_subscription(CHANNEL, stream_id)
        publication = client.add_exclusive_publication(CHANNEL, stream_id)
        subscription.wait_connected(timeout=5)
        # The source must record one message before the following messages exceed its limit.
        publication.publish(number_message(0), timeout=5)
        eventually(lambda: query.report()["retainedBytes"] > 0)
        count = 1
        deadline = time.monotonic() + 20
        while query.report()["ended"] == 0:
            assert time.monotonic() < deadline
            count += publication.offer(number_message(count)) > 0
            subscription.poll(lambda message, header: None, 100)
        first = query.run_until(1)
        assert first
        while query.report()["joined"] < 2:
            assert time.monotonic() < deadline
            subscription.poll(lambda message, header: None, 100)
            time.sleep(0.001)
        if fail_on_data_loss:
            with pytest.raises(AeronDataLossError, match=r"bytes of stream .* are lost: its image went away"):
                while time.monotonic() < deadline:
                    count += publication.offer(number_message(count)) > 0
                    subscription.poll(lambda message, header: None, 100)
                    query.run_batch()
            return
        while not query.rows() or number(query.rows()[-1]) < count - 1 or query.report()["lostBytes"] == 0:
            assert time.monotonic() < deadline
            if count < 20_000 and query.report()["lostBytes"] == 0:
                count += publication.offer(number_message(count)) > 0
            subscription.poll(lambda message, header: None, 100)
            query.run_batch()
        assert query.report()["lostBytes"] == query.report()["gapBytes"] == missing_bytes(query.rows()) > 0
        query.source.close()


def number_message(number: int) -> bytes:
    return number.to_bytes(8, "little").ljust(992, b"\xaa")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_is_an_error_with_sizes_and_no_recorded_message_is_lost(
    start: Start, client: aeron.Aeron, stream_id: int, home: Path
) -> None:
    """08-33"""
    small = home / "small"
    small.mkdir(mode=0o700)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", str(small)], check=False)
    if mounted.returncode:
        pytest.skip("this system mounts no file system")
    try:
        query = start(archive_dir=str(small))
        query.run_batch()
        publication = client.add_exclusive_publication(CHANNEL, stream_id)
        publication.wait_connected(timeout=5)
        count = 0
        while query.source.report().find('"ended": 1') < 0:
            count += publication.offer(number_message(count)) > 0
        rows = query.run_until(1)
        with pytest.raises(
            aeron.exceptions.AeronError, match=rf"private archive {small}.*no space for \d+ bytes.*free"
        ):
            while True:
                query.run_batch()
        rows = query.rows()
        assert [number(row) for row in rows] == list(range(len(rows)))
        query.source.close()
        subprocess.run(["mount", "-o", "remount,size=64m", str(small)], check=True)
        query = start(archive_dir=str(small))
        rows = query.run_until(count)
        assert [number(row) for row in rows] == list(range(count))
        query.source.close()
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
