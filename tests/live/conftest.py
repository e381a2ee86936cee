"""Fixtures for tests of the live source: a directory in memory, and queries on its checkpoints."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

import aeron
from aeron import _aeron
from live.query import Query

Start = Callable[..., Query]


@pytest.fixture
def home() -> Iterator[Path]:
    """Returns a directory in memory for archives and checkpoints."""
    directory = Path(mkdtemp(prefix="aeron-live-", dir="/dev/shm"))
    directory.chmod(0o700)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def start(home: Path, driver: aeron.MediaDriver, stream_id: int) -> Iterator[Start]:
    """Returns a function that starts a query on a checkpoint of this test. It first closes running queries, unless
    `beside` is true."""
    sources: list[_aeron.LiveSource] = []

    def start(checkpoint: str = "checkpoint", *, beside: bool = False, **options: object) -> Query:
        for source in () if beside else sources:
            source.close()
        settings: dict[str, object] = {
            "channel": "aeron:ipc",
            "stream_ids": [stream_id],
            "client": {"aeron_dir": driver.dir},
            "archive_dir": str(home / "archives"),
        }
        source = _aeron.LiveSource(**(settings | options))  # type: ignore[arg-type]
        sources.append(source)
        return Query(home / checkpoint, source)

    yield start
    for source in sources:
        source.close()
