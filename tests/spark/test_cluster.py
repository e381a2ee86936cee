"""Test of workers in separate executors on this machine. They read the files of the private archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.collecting import Batches, numbers, running, send, until

import aeron

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Publisher = Callable[..., aeron.ExclusivePublication]


@pytest.fixture(scope="module")
def spark_settings() -> dict[str, str]:
    return {"spark.master": "local-cluster[2,1,1024]", "spark.executor.pyspark.memory": "1g"}


def test_executors_read_the_recordings_of_the_source_process(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path
) -> None:
    """08-53, and 08-59: a process with an address space of 1 GiB can read segments of 1 GiB."""
    publication = publisher(5001, "aeron:ipc?term-length=1g")
    batches = Batches()
    frame = live(5001, "value BINARY", minPartitions=2)
    with running(frame, tmp_path / "checkpoint", batches) as query:
        send(publication, numbers(0, 1000))
        until(query, lambda: batches.rows == 1000)
    assert batches.column("value") == numbers(0, 1000)
