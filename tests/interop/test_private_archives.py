"""Tests of private archives of live sources with the real `ArchiveTool` and the real archive."""

import json
import os
import shutil
import sys
import threading
import time
import uuid

import pytest

import aeron
from aeron import _aeron
from interop import toolchain
from interop.archive_tool import ArchiveTool
from interop.conftest import _started
from interop.peers import Peer, PeerError
from interop.processes import Process
from live.query import Query

_TERM_LENGTH = 64 * 1024
_CHANNEL = f"aeron:ipc?term-length={_TERM_LENGTH}"
_SEGMENT_LENGTH = 1024 * 1024
_TIMEOUT_S = 60


@pytest.fixture
def home(run_directory):
    """Returns a directory in memory for archives and checkpoints."""
    _started(toolchain.jar)
    directory = run_directory / f"home-{uuid.uuid4().hex[:8]}"
    directory.mkdir(mode=0o700)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def options(drivers, home, stream):
    """Returns the arguments of a live source for the stream of the test."""
    names = ("driver_timeout_ms", "client_name", "resource_linger_duration_ns", "idle_sleep_duration_ns")
    client = dict.fromkeys((*names, "pre_touch_mapped_memory")) | {
        "aeron_dir": drivers("ours").directory,
        "driver_timeout_ms": 10_000,
    }
    return {
        "channel": "aeron:ipc",
        "stream_ids": [stream],
        "client": client,
        "archive_dir": str(home / "archives"),
    }


@pytest.fixture
def query(home, options):
    """`query()` starts a query in this process, on the checkpoint of the test."""
    sources = []

    def start():
        sources.append(_aeron.LiveSource(**options))
        return Query(home / "checkpoint", sources[-1])

    yield start
    for source in sources:
        source.close()


@pytest.fixture
def query_process(home, options, tmp_path):
    """Starts a query in a separate process, and waits until the query has opened its archive."""
    program = toolchain.HERE.parent / "live" / "query.py"
    command = (sys.executable, program, home / "checkpoint", json.dumps(options))
    environment = {**os.environ, "PYTHONPATH": str(toolchain.HERE.parent)}
    process = Process(command, log=tmp_path / "query.txt", environment=environment)
    _await((home / "checkpoint" / "commits" / "0").exists, process.output)
    yield process
    process.kill()


@pytest.fixture
def publication(drivers, stream):
    with aeron.connect(drivers("ours").directory) as client:
        yield client.add_exclusive_publication(_CHANNEL, stream)


def _await(condition, explain):
    deadline = time.monotonic() + _TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, explain()
        time.sleep(0.01)


def _archive(home):
    [directory] = (home / "archives").iterdir()
    return directory


def _begins(segment):
    """Returns whether the segment file begins with a recorded frame."""
    if not segment.exists():
        return False
    with segment.open("rb") as file:
        return any(file.read(4))


def _publish(publication, count, length):
    for number in range(count):
        publication.publish(number.to_bytes(4, "little") + b"x" * (length - 4), timeout=_TIMEOUT_S)


def test_the_tool_reads_a_live_private_archive(query_process, publication, home):
    """08-14"""
    _publish(publication, 1000, 100)
    directory = _archive(home)
    _await(lambda: ArchiveTool(directory).positions() == {0: (0, -1)}, query_process.output)
    ArchiveTool(directory).show()


@pytest.mark.parametrize("length", [32, 1000, 3000])
def test_the_tool_and_our_recovery_find_the_same_end_of_a_killed_private_archive(
    query_process, query, publication, home, length
):
    """08-14, 08-22: the tool verifies a copy from before our recovery, and the archive after the recovery."""
    publication.wait_connected(timeout=_TIMEOUT_S)
    publication.publish(b"x" * length, timeout=_TIMEOUT_S)
    _await(lambda: _begins(_archive(home) / "0-0.rec"), query_process.output)
    killer = threading.Timer(1.0, query_process.kill)
    killer.start()
    while killer.is_alive():
        publication.offer(b"x" * length)
    left = home / "left"
    shutil.copytree(_archive(home), left)
    tool = ArchiveTool(left)
    tool.show()
    # The tool may ask about a last frame only if the kill tore it: no message contains a page of zeros, and padding is
    # short.
    tool.verify(answer="y")
    recovered = query()
    recovered.run_batch()
    recovered.source.close()
    ours = ArchiveTool(_archive(home))
    before = ours.positions()
    (start, stop), (left_start, left_stop) = before[0], tool.positions()[0]
    assert stop == left_stop > 0
    # If the kill happened between a commit and its purge, the recovery has purged segments.
    assert start >= left_start
    ours.show()
    assert not ours.verify()
    assert ours.positions() == before


def test_the_tool_accepts_a_private_archive_whose_segments_were_purged(query, publication, home):
    """08-14, 08-30"""
    live = query()
    live.run_batch()
    for count in (4000, 8000):
        _publish(publication, 4000, 1000)
        live.run_until(count)
    directory = _archive(home)
    _publish(publication, 1, 1000)
    live.run_until(8001)
    _publish(publication, 1, 1000)
    live.run_until(8002)
    _await(lambda: not (directory / "0-0.rec").exists(), live.source.report)
    live.source.close()
    tool = ArchiveTool(directory)
    before = tool.positions()
    assert before[0][0] >= _SEGMENT_LENGTH
    tool.show()
    assert not tool.verify()
    assert tool.positions() == before


def test_a_real_archive_refuses_the_directory_of_a_live_query(query_process, publication, home, drivers, tmp_path):
    """08-28"""
    archive = _started(lambda: Peer("java-archive", tmp_path / "archive-errors.txt"))
    try:
        with pytest.raises(PeerError, match="active mark file detected"):
            archive.call(
                "open", dir=drivers("ours").directory, archive_dir=_archive(home), segment_length=_SEGMENT_LENGTH
            )
    finally:
        archive.kill()
    _publish(publication, 10, 100)
    assert query_process.exit_code is None
