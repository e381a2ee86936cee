"""Test of a query that is killed, and is down for longer than every timeout of driver and archive."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from tests.conftest import eventually

import aeron
import aeron.spark
from spark.collecting import PATIENCE_S, Batches, numbers, until
from spark.killed.runs import PROCESSES, command
from test_long_pauses import ARCHIVE, CHANNEL, DRIVER, LONGEST_S, STREAM_ID, peers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def kill_python_of(query: StreamingQuery) -> None:
    """Kills the source process and all workers, and waits until the query has failed."""
    for process in psutil.Process().children(recursive=True):
        if any(PROCESSES[name] in " ".join(command(process)) for name in ("source", "worker")):
            process.kill()
    eventually(lambda: not query.isActive, PATIENCE_S)


def test_a_query_that_was_down_for_longer_than_every_timeout_continues_at_its_checkpoint(
    spark: SparkSession, shared_memory: Path
) -> None:
    aeron.spark.register(spark)
    published = numbers(0, 2500)
    batches = Batches()
    with (
        aeron.MediaDriver(dir=shared_memory / "driver", ipc_term_buffer_length=64 * 1024, **DRIVER) as driver,
        aeron.Archive(shared_memory / "archive", driver=driver, **ARCHIVE),
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        alone = peers(client)
        publication = archive.add_recorded_publication(CHANNEL, STREAM_ID)

        def publish(messages: list[bytes]) -> None:
            for message in messages:
                position = publication.publish(message, timeout=20)
            archive.wait_recorded(publication, position, timeout=20)

        def start() -> StreamingQuery:
            options = {
                "archive.controlChannel": "aeron:ipc",
                "archive.reader": "bars",
                "aeron.dir": str(driver.dir),
                "streamId": str(STREAM_ID),
                "startingOffsets": "earliest",
                "maxRowsPerTrigger": "300",
            }
            frame = spark.readStream.format("aeron").schema("value BINARY, position BIGINT").options(**options).load()
            writer = frame.writeStream.option("checkpointLocation", str(shared_memory / "checkpoint"))
            return writer.foreachBatch(batches.take).start()

        publish(published[:2000])
        query = start()
        until(query, lambda: batches.rows >= 600)
        kill_python_of(query)
        down = time.monotonic()
        assert batches.rows < 2000
        eventually(lambda: peers(client) == alone)
        time.sleep(max(0.0, down + LONGEST_S - time.monotonic()))
        publish(published[2000:])
        queries = [start()]

        def has_all() -> bool:
            # Spark may first use a connection to a killed worker, and then the query fails.
            if not queries[-1].isActive:
                queries.append(start())
            return batches.rows == len(published)

        eventually(has_all, PATIENCE_S)
        queries[-1].stop()
    assert batches.column("value") == published
    for runs in batches.runs.values():
        assert all(run.equals(runs[0]) for run in runs)
