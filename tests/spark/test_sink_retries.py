"""Tests of the sink with repeated tasks and batches: messages may occur twice, no message is lost, and keys identify
duplicates.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from tests.conftest import eventually
from tests.spark.publishing import ONE_BATCH, Reader, rate_stream, running, write

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

ROWS = 4000


@pytest.fixture(scope="module")
def spark_settings() -> dict[str, str]:
    return {"spark.master": "local[2,3]", "spark.sql.execution.arrow.maxRecordsPerBatch": "500"}


class FailingReader(DataSourceReader):
    """Reads numbers of 1000 digits in record batches of 500 rows. The first attempt of a task reads two record batches,
    waits for the file `received`, and fails. The buffers before the sink are smaller than these record batches, so the
    sink publishes rows before the failure."""

    def __init__(self, received: str) -> None:
        self._received = Path(received)

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(2)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        begin = partition.value * (ROWS // 2)
        for number in range(ROWS // 2 // 500):
            if number == 2 and context.attemptNumber() == 0:
                deadline = time.monotonic() + 60
                while not self._received.exists() and time.monotonic() < deadline:
                    time.sleep(0.01)
                raise RuntimeError("the first attempt ends here")
            first = begin + number * 500
            yield pa.record_batch({"value": [f"{row:01000}" for row in range(first, first + 500)]})


class Failing(DataSource):
    """A data source with a `FailingReader`."""

    @classmethod
    def name(cls) -> str:
        return "failing"

    def schema(self) -> str:
        return "value string"

    def reader(self, schema: StructType) -> DataSourceReader:
        return FailingReader(self.options["received"])


def without_duplicates(messages: list[bytes], keys: list[int]) -> list[bytes]:
    """Returns the messages without duplicates. In each partition, only a message with a higher key than all earlier
    messages is kept."""
    last: dict[int, tuple[int, int]] = {}
    kept = []
    for message, key in zip(messages, keys, strict=True):
        partition, place = key >> 28 & 0xFFF, (key >> 40, key & 0xFFF_FFFF)
        if place > last.get(partition, (-1, -1)):
            last[partition] = place
            kept.append(message)
    return kept


def test_a_task_that_runs_again_repeats_rows_with_their_keys_and_loses_none(
    spark: SparkSession, sink_options: dict[str, str], reader: Callable[..., Reader], tmp_path: Path
) -> None:
    """08-76"""
    subscriber = reader(1)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    spark.dataSource.register(Failing)
    received = tmp_path / "received"
    told = threading.Thread(target=lambda: subscriber.take(500) and received.touch())
    told.start()
    failing = spark.read.format("failing").option("received", str(received)).load()
    write(failing, sink_options, streamId=1, reservedValue="dedup")
    told.join()
    # All tasks share one session, so this last message arrives after the messages of all tasks.
    write(spark.range(1).selectExpr("'end' as value"), sink_options, streamId=1)
    eventually(lambda: subscriber.messages[-1] == b"end", 60)
    messages, keys = subscriber.messages[:-1], subscriber.reserved_values[:-1]
    assert len(messages) > ROWS
    assert {int(message) for message in messages} == set(range(ROWS))
    key_of: dict[bytes, set[int]] = {}
    for message, key in zip(messages, keys, strict=True):
        key_of.setdefault(message, set()).add(key)
    assert all(len(same) == 1 for same in key_of.values())
    assert len(set(keys)) == ROWS
    assert sorted(map(int, without_duplicates(messages, keys))) == list(range(ROWS))


def test_a_batch_without_a_commit_runs_again_with_the_same_id_and_keys(
    spark: SparkSession, sink_options: dict[str, str], reader: Callable[..., Reader], tmp_path: Path
) -> None:
    """08-77"""
    subscriber = reader(2)
    frame = rate_stream(spark).selectExpr("cast(value as string) as value")
    for batch in range(2):
        commit = tmp_path / "commits" / str(batch)
        with running(frame, sink_options, tmp_path, streamId=2, reservedValue="dedup", interval=ONE_BATCH):
            eventually(commit.exists, 60)
    published = len(subscriber.take(20_000))
    assert published == 20_000
    # This is the state after a kill of the application during the commit.
    commit.unlink()
    commit.with_name(".1.crc").unlink(missing_ok=True)
    with running(frame, sink_options, tmp_path, streamId=2, reservedValue="dedup"):
        subscriber.take(published + 20_000)
    subscriber.end()
    pairs = list(zip(subscriber.messages, subscriber.reserved_values, strict=True))
    first, again = pairs[:published], pairs[published:]
    repeated = [pair for pair in again if pair[1] >> 40 == 1]
    assert sorted(repeated) == sorted(pair for pair in first if pair[1] >> 40 == 1)
    assert len(repeated) == 10_000
    # The batches after batch 2 are left out, because the query may have stopped during the last one.
    whole = [pair for pair in pairs if pair[1] >> 40 <= 2]
    kept = without_duplicates([message for message, _ in whole], [key for _, key in whole])
    assert sorted(map(int, kept)) == list(range(30_000))
