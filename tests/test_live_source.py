"""The live source without Spark: recorded streams, offsets, batches, restarts and losses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

import aeron
from aeron import _aeron
from live.query import Query
from live.segments import Message


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory in memory for archives and checkpoints."""
    directory = Path(mkdtemp(prefix="aeron-live-", dir="/dev/shm"))
    directory.chmod(0o700)
    yield directory
    shutil.rmtree(directory)


Start = Callable[..., Query]


@pytest.fixture
def start(home: Path, driver: aeron.MediaDriver, stream_id: int) -> Iterator[Start]:
    """Starts a query on the checkpoint of this test; the one before is closed."""
    sources: list[_aeron.LiveSource] = []

    def start(checkpoint: str = "checkpoint", **options: object) -> Query:
        for source in sources:
            source.close()
        settings: dict[str, object] = {
            "channel": "aeron:ipc",
            "stream_ids": [stream_id],
            "client": client_settings(driver.dir),
            "archive_dir": str(home / "archives"),
        }
        source = _aeron.LiveSource(**(settings | options))  # type: ignore[arg-type]
        sources.append(source)
        return Query(home / checkpoint, source)

    yield start
    for source in sources:
        source.close()


def client_settings(aeron_dir: str) -> dict[str, object]:
    return {
        "aeron_dir": aeron_dir,
        "driver_timeout_ms": 10_000,
        "client_name": None,
        "resource_linger_duration_ns": None,
        "idle_sleep_duration_ns": None,
        "pre_touch_mapped_memory": None,
    }


def payloads(rows: list[Message]) -> list[bytes]:
    return [row.payload for row in rows]


def publish(publication: aeron.ExclusivePublication, count: int, first: int = 0, size: int = 8) -> list[bytes]:
    sent = [number.to_bytes(8, "little") * (size // 8) for number in range(first, first + count)]
    for message in sent:
        publication.publish(message, timeout=5)
    return sent


def test_a_published_message_becomes_a_row(start: Start, client: aeron.Aeron, stream_id: int) -> None:
    query = start()
    assert query.run_batch() == []
    with client.add_exclusive_publication("aeron:ipc", stream_id) as publication:
        sent = publish(publication, 100)
        assert payloads(query.run_until(100)) == sent
    assert json.loads(query.source.report())["gapBytes"] == 0
