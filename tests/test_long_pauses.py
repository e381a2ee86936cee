"""Tests of a reader that is killed, and is down for longer than every timeout of driver and archive."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron

STREAM_ID = 1001
CHANNEL = "aeron:ipc?term-length=64k"
SEGMENT_LENGTH = 64 * 1024
# Clients send a keepalive each 500 ms.
LIVENESS_S = 2.0
DRIVER = {
    "client_liveness_timeout_ns": int(LIVENESS_S * 1e9),
    "image_liveness_timeout_ns": int(LIVENESS_S * 1e9),
    "publication_unblock_timeout_ns": int(1.1 * LIVENESS_S * 1e9),
    "publication_linger_timeout_ns": 200_000_000,
    "timer_interval_ns": 50_000_000,
}
ARCHIVE = {
    "connect_timeout_ns": int(LIVENESS_S * 1e9),
    "session_liveness_check_interval_ns": 100_000_000,
    "replay_linger_timeout_ns": 200_000_000,
    "segment_file_length": SEGMENT_LENGTH,
    "low_storage_space_threshold": 0,
}
LONGEST_S = 1.1 * LIVENESS_S
HEARTBEATS, SESSIONS = 11, 102
"""Counter types: the heartbeat of each client, and the archive's number of control sessions."""

FOLLOWER = """
import json, sys, aeron

with aeron.connect(sys.argv[1]) as client, aeron.connect_archive(client) as archive:
    follower = archive.follow(channel="aeron:ipc", stream_id=int(sys.argv[2]), reader="bars", commit="explicit")
    for batch in follower.batches(limit=50):
        print(json.dumps([int(message) for message in batch.to_list()]), flush=True)
        sys.stdin.readline()
        follower.commit()
"""


class FollowerProcess:
    """A follower in a process of its own. The process is killed at the end of the block."""

    def __init__(self, driver: aeron.MediaDriver) -> None:
        command = [sys.executable, "-c", FOLLOWER, str(driver.dir), str(STREAM_ID)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin
        assert self._process.stdout
        self._stdin, self._stdout = self._process.stdin, self._process.stdout

    def batch(self) -> list[int]:
        """Waits for the next batch, and returns its numbers."""
        numbers: list[int] = json.loads(self._stdout.readline())
        return numbers

    def commit(self) -> None:
        """Commits the last batch."""
        print(file=self._stdin, flush=True)

    def __enter__(self) -> FollowerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(10)
        self._stdin.close()
        self._stdout.close()


@pytest.fixture
def driver() -> Iterator[aeron.MediaDriver]:
    with aeron.MediaDriver(ipc_term_buffer_length=64 * 1024, **DRIVER) as driver:
        yield driver


def publish(archive: aeron.AeronArchive, publication: aeron.Publication, first: int, last: int) -> aeron.Recording:
    """Publishes the numbers from `first` up to `last`, and waits until they are recorded."""
    for number in range(first, last):
        position = publication.publish(b"%0500d" % number, timeout=10)
    return archive.wait_recorded(publication, position, timeout=10)


def peers(client: aeron.Aeron) -> tuple[int, int]:
    """Returns the number of clients of the driver, and the number of sessions of the archive."""
    counters = client.counters_reader.snapshot()
    [sessions] = [counter.value for counter in counters if counter.type_id == SESSIONS]
    return sum(counter.type_id == HEARTBEATS for counter in counters), sessions


def test_a_follower_that_was_down_for_longer_than_every_timeout_reads_each_message_once(
    driver: aeron.MediaDriver, tmp_path: Path
) -> None:
    with (
        aeron.Archive(tmp_path / "archive", driver=driver, **ARCHIVE),
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        alone = peers(client)
        publication = archive.add_recorded_publication(CHANNEL, STREAM_ID)
        recording = publish(archive, publication, 0, 1000).recording_id
        rows: list[int] = []
        with FollowerProcess(driver) as follower:
            while len(rows) < 400:
                rows += follower.batch()
                follower.commit()
            uncommitted = follower.batch()
            assert peers(client) > alone
        [reader] = archive.list_readers(name="bars")
        down = time.monotonic()
        eventually(lambda: peers(client) == alone)
        time.sleep(max(0.0, down + LONGEST_S - time.monotonic()))
        publish(archive, publication, 1000, 1500)
        archive.set_retention(recording_id=recording, max_bytes=SEGMENT_LENGTH)
        archive.apply_retention(recording_id=recording)
        assert 0 < archive.get_start_position(recording) <= reader.position
        with FollowerProcess(driver) as follower:
            again = follower.batch()
            assert again == uncommitted[: len(again)]
            follower.commit()
            rows += again
            while len(rows) < 1500:
                rows += follower.batch()
                follower.commit()
        assert rows == list(range(1500))
