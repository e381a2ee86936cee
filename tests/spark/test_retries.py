"""Tests of failing tasks, dying workers and speculation in a session that retries tasks: each row occurs once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.collecting import Batches, numbers, running, send, until

import aeron
from aeron.spark.options import read_stream_options

pytest.importorskip("pyspark")
from aeron.spark.source import AeronDataSource
from aeron.spark.stream_reader import AeronStreamReader

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

Publisher = Callable[..., aeron.ExclusivePublication]


@pytest.fixture(scope="module")
def spark_settings() -> dict[str, str]:
    return {"spark.master": "local[2,3]", "spark.speculation": "true", "spark.speculation.interval": "100ms"}


def troubled(spark: SparkSession, kind: str) -> str:
    """Registers a variant of our format. In the variant, the first attempt of each task fails after all rows are read,
    or its worker dies.

    Spark pickles the class `Reader` by value, so the methods of the class contain their imports.
    """

    class Reader(AeronStreamReader):
        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            import os
            import signal

            from pyspark import TaskContext

            yield from super().read(partition)
            context = TaskContext.get()
            if context is not None and context.attemptNumber() == 0:
                if kind == "dies":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise RuntimeError("the first attempt fails after its rows")

    class Source(AeronDataSource):
        @classmethod
        def name(cls) -> str:
            return f"aeron_that_{kind}"

        def streamReader(self, schema: StructType) -> AeronStreamReader:
            return Reader(read_stream_options(self.options), schema)

    spark.dataSource.register(Source)
    return Source.name()


@pytest.mark.parametrize("trouble", ["fails", "dies"])
def test_rows_of_a_retried_task_occur_once(
    spark: SparkSession, live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path, trouble: str
) -> None:
    """08-52"""
    publication = publisher(4001)
    batches = Batches()
    frame = live(4001, "value BINARY, position BIGINT", format=troubled(spark, trouble), minPartitions=2)
    with running(frame, tmp_path / "checkpoint", batches) as query:
        send(publication, numbers(0, 300))
        until(query, lambda: batches.rows == 300)
    assert batches.column("value") == numbers(0, 300)
    assert batches.column("position") == sorted(set(batches.column("position")))


def test_a_repeated_batch_has_identical_rows(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path
) -> None:
    """08-44, 08-45: the sink fails once, after it has received the rows."""
    publication = publisher(4002)
    batches = Batches()
    failures = iter([True])
    is_sent = threading.Event()

    class FailingOnce(Batches):
        def take(self, frame: DataFrame, batch_id: int) -> None:
            super().take(frame, batch_id)
            batches.take(frame, batch_id)
            if batches.tables[batch_id].num_rows and next(failures, False):
                # The query fails only after all messages are sent. After the failure, no subscriber would read further
                # messages.
                is_sent.wait(60)
                raise RuntimeError("the sink fails")

    frame = live(4002)
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(Exception, match="the sink fails"), running(frame, checkpoint, FailingOnce()) as query:
        send(publication, numbers(0, 300))
        is_sent.set()
        until(query, lambda: False)
    with running(frame, checkpoint, batches) as query:
        until(query, lambda: batches.rows == 300)
    assert batches.column("value") == numbers(0, 300)
    repeated = [runs for runs in batches.runs.values() if len(runs) > 1 and runs[0].num_rows]
    assert repeated
    assert all(run.equals(runs[0]) for runs in repeated for run in runs)
