"""Streaming queries that record each row exactly once: tasks and batches that run again, and kills."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from tests.conftest import eventually
from tests.spark.publishing import ONE_BATCH, rate_stream, running

import aeron
import aeron.spark
from aeron.spark.recorded_sink import AeronRecordedStreamWriter, StagedPartition
from aeron.spark.source import AeronDataSource
from spark.collecting import PATIENCE_S
from spark.conftest import SETTINGS
from spark.killed import recording
from spark.killed.servers import Servers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

KILLED_STREAM_ID = 7101


@pytest.fixture(scope="module")
def spark_settings() -> dict[str, str]:
    return {"spark.master": "local[2,3]", "spark.sql.execution.arrow.maxRecordsPerBatch": "500"}


@pytest.fixture(scope="module")
def archive_options(
    spark: SparkSession, media_driver: aeron.MediaDriver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    aeron.spark.register(spark)
    with aeron.Archive(tmp_path_factory.mktemp("archive"), driver=media_driver, low_storage_space_threshold=0):
        yield {"archive.controlChannel": "aeron:ipc", "channel": "aeron:ipc", "aeron.dir": str(media_driver.dir)}


@pytest.fixture
def archive(media_driver: aeron.MediaDriver) -> Iterator[aeron.AeronArchive]:
    with aeron.connect(media_driver) as client, aeron.connect_archive(client) as archive:
        yield archive


def numbers_recorded(archive: aeron.AeronArchive, stream_id: int) -> list[int]:
    """Returns the numbers in the only recording of a stream."""
    [found] = archive.list_recordings(stream_id=stream_id)
    end = archive.get_max_recorded_position(found.recording_id)
    with archive.replay(found.recording_id, stream_id=9100, position=0, length=end) as replay:
        return [int(message) for batch in replay.batches() for message in batch.to_list()]


def check_once(numbers: list[int], rows_per_batch: int) -> None:
    """Checks that each number occurs once, and that the batches are in order."""
    assert sorted(numbers) == list(range(len(numbers)))
    assert [number // rows_per_batch for number in numbers] == [at // rows_per_batch for at in range(len(numbers))]


class FailingWriter(AeronRecordedStreamWriter):
    """A writer that fails in the first attempt of each task. The task of partition 0 fails in the middle of its rows.
    The other tasks fail after all their rows are staged."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedPartition:
        """Stages the rows, and fails on the first attempt."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        is_first = context.attemptNumber() == 0
        staged = super().write(failing(iterator) if is_first and context.partitionId() == 0 else iterator)
        if is_first:
            raise RuntimeError("the first attempt ends after it staged its rows")
        return staged


def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from itertools.islice(batches, 3)
    raise RuntimeError("the first attempt ends here")


class FailingDataSource(AeronDataSource):
    """The format ``aeron`` with a `FailingWriter`."""

    @classmethod
    def name(cls) -> str:
        return "failing"

    def streamWriter(self, schema: StructType, overwrite: bool) -> AeronRecordedStreamWriter:
        return FailingWriter(self.options, schema)


def test_tasks_that_fail_after_they_wrote_rows_record_them_once(
    spark: SparkSession, archive_options: dict[str, str], archive: aeron.AeronArchive, tmp_path: Path
) -> None:
    """08-86"""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    spark.dataSource.register(FailingDataSource)
    frame = rate_stream(spark).selectExpr("cast(value as string) as value")
    writer = frame.writeStream.format("failing").options(**archive_options).option("streamId", "7001")
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(processingTime=ONE_BATCH).start()
    eventually((tmp_path / "commits" / "0").exists, 60)
    query.stop()
    numbers = numbers_recorded(archive, 7001)
    assert len(numbers) == 10_000
    check_once(numbers, 10_000)
    assert not archive.list_recordings(stream_id=30)


def test_a_batch_of_which_the_commit_was_lost_is_recorded_once(
    spark: SparkSession, archive_options: dict[str, str], archive: aeron.AeronArchive, tmp_path: Path
) -> None:
    """08-86"""
    frame = rate_stream(spark).selectExpr("cast(value as string) as value")
    for batch in (0, 1, 1):
        commit = tmp_path / "commits" / str(batch)
        # The last round removes Spark's commit of batch 1. This is the state if the application was killed after the
        # sink's commit, and before Spark's commit.
        commit.unlink(missing_ok=True)
        commit.with_name(f".{batch}.crc").unlink(missing_ok=True)
        with running(frame, archive_options, tmp_path, streamId=7002, interval=ONE_BATCH):
            eventually(commit.exists, 60)
    numbers = numbers_recorded(archive, 7002)
    assert len(numbers) == 20_000
    check_once(numbers, 10_000)


def test_spark_reads_what_it_has_recorded(spark: SparkSession, archive_options: dict[str, str], tmp_path: Path) -> None:
    frame = rate_stream(spark).selectExpr("cast(value as string) as value")
    with running(frame, archive_options, tmp_path, streamId=7003, interval=ONE_BATCH):
        eventually((tmp_path / "commits" / "0").exists, 60)
    options = {**archive_options, "streamId": "7003", "valueFormat": "string"}
    del options["channel"]
    read = spark.read.format("aeron").options(**options).load()
    assert sorted(int(row.value) for row in read.select("value").collect()) == list(range(10_000))


@pytest.mark.timeout(600)  # starts a second application, which takes a minute on a busy machine
def test_each_row_is_recorded_once_after_kills_of_the_query_the_archive_and_the_driver(
    spark: SparkSession, shared_memory: Path
) -> None:
    """08-86"""
    aeron.spark.register(spark)
    servers = Servers(shared_memory)
    options = {
        "archive.controlChannel": "aeron:ipc",
        "channel": "aeron:ipc?term-length=64k",
        "streamId": str(KILLED_STREAM_ID),
        "aeron.dir": str(servers.dir),
        "aeron.driver.timeout": "2000",
    }
    program = Path(recording.__file__)
    environment = os.environ | {
        "SPARK_SETTINGS": json.dumps(SETTINGS),
        "PYTHONPATH": f"{program.parents[2]}{os.pathsep}{program.parents[3]}",
        "KILLED_AT": "appending",
    }
    try:
        killed = subprocess.run(
            [sys.executable, program, shared_memory, json.dumps(options)], env=environment, check=False, timeout=240
        )
        assert killed.returncode == -9
        queries: list[Any] = []

        def commits() -> int:
            # A kill of the servers may end the query.
            if not queries or not queries[-1].isActive:
                queries.append(recording.start(spark, shared_memory, options))
            return len(list((shared_memory / "checkpoint" / "commits").glob("[0-9]*")))

        for victims in ([], ["archive"], ["driver", "archive"]):
            for victim in victims:
                servers.kill(victim)
            for victim in victims:
                servers.start(victim)
            target = commits() + 2
            eventually(lambda target=target: commits() >= target, 2 * PATIENCE_S)
        queries[-1].stop()
        with servers.connected() as archive:
            numbers = numbers_recorded(archive, KILLED_STREAM_ID)
        assert len(numbers) >= 6 * recording.ROWS_PER_BATCH
        check_once(numbers, recording.ROWS_PER_BATCH)
    finally:
        servers.close()
