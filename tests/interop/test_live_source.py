"""Test of a live source that is killed within a block, on real drivers. The real tool reads the remaining archive."""

import shutil
import time
from pathlib import Path
from tempfile import mkdtemp

import pytest

import aeron
from aeron import _aeron
from interop.archive_tool import ArchiveTool
from interop.kinds import REAL
from live.kills import Publisher, SourceProcess
from live.query import Query
from live.streams import missing_bytes, number

LIVENESS_S = 2
SETTINGS = {"AERON_CLIENT_LIVENESS_TIMEOUT": f"{LIVENESS_S}s", "AERON_IMAGE_LIVENESS_TIMEOUT": "1s"}


@pytest.fixture
def home():
    directory = Path(mkdtemp(prefix="aeron-live-", dir="/dev/shm"))
    directory.chmod(0o700)
    yield directory
    shutil.rmtree(directory)


@pytest.mark.parametrize("pause", [1.0, LIVENESS_S + 2.0])
@pytest.mark.parametrize("point", ["appended:5", "indexed:5", "purged:1"])
@pytest.mark.parametrize("kind", REAL)
def test_a_killed_and_restarted_source_on_a_real_driver_returns_every_message_once(
    drivers, home, stream, kind, point, pause
):
    """08-14, 08-20: `ArchiveTool` verifies a copy of the archive after the kill. The stream is over IPC, because over
    UDP the query would miss the messages of the pause."""
    directory = drivers(kind, SETTINGS).directory
    settings = {
        "channel": "aeron:ipc?term-length=64k",
        "stream_ids": [stream],
        "client": {"aeron_dir": directory},
        "archive_dir": str(home / "archives"),
    }
    with aeron.connect(directory) as client:
        publisher = Publisher(client.add_exclusive_publication("aeron:ipc?term-length=64k", stream), size=992)
        process = SourceProcess(home / "checkpoint", settings, point)
        process.wait_until_reached()
        process.kill()
        print(f"killed at {point}")
        _verify_copy(home)
        time.sleep(pause)
        query = Query(home / "checkpoint", _aeron.LiveSource(**settings))
        query.run_until(len(query.rows()) + 100)
        count = publisher.stop()
        rows = query.run_until(count)
        assert [number(row) for row in rows] == list(range(count))
        assert query.report()["gapBytes"] == missing_bytes(rows) == 0
        query.source.close()
        _verify_copy(home)


def _verify_copy(home):
    (archive,) = (home / "archives").iterdir()
    copy = home / "copy"
    shutil.copytree(archive, copy)
    (copy / "malformed-0-0-64-1").touch()  # workers may write such a file, which the tool does not know
    # The tool regards the owner of the directory as alive for some time after the kill.
    ArchiveTool(copy).verify(answer="y")
    shutil.rmtree(copy)
