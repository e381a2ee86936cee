"""Minimal tests for each supported PySpark: read a stream, read recordings, and write a frame.

`make test` also runs this file with the newest PySpark 4.2.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from tests.spark.collecting import PATIENCE_S, Batches, await_release, running, until

import aeron
import aeron.spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Publisher = Callable[..., aeron.ExclusivePublication]

MESSAGES = [b"message %d" % number for number in range(200)]


def test_a_stream_is_read_restarted_and_read_again_as_a_recording(
    spark: SparkSession, media_driver: aeron.MediaDriver, publisher: Publisher, shared_memory: Path, tmp_path: Path
) -> None:
    """08-12: this PySpark is supported."""
    assert spark.version == pyspark.__version__
    options = {
        "channel": "aeron:ipc",
        "streamId": "1001",
        "aeron.dir": str(media_driver.dir),
        "archiveDir": str(shared_memory / "archives"),
        "maxRowsPerTrigger": "70",
    }
    publication = publisher(1001)
    frame = spark.readStream.format("aeron").options(**options).load()
    batches = Batches()
    for begin, end in ((0, 100), (100, 200)):
        with running(frame, tmp_path / "checkpoint", batches) as query:
            publication.wait_connected(timeout=20)
            for message in MESSAGES[begin:end]:
                publication.publish(message, timeout=20)
            until(query, lambda rows=end: batches.rows == rows)
            until(query, lambda: bool(aeron.spark.progress(query)[0].recordings))
    assert batches.column("value") == MESSAGES
    assert max(table.num_rows for table in batches.tables.values()) <= 70
    await_release(shared_memory / "archives")
    recordings = spark.read.format("aeron").option("archiveDir", options["archiveDir"]).schema("value BINARY").load()
    assert set(recordings.toArrow()["value"].to_pylist()) <= set(MESSAGES)


def test_a_frame_is_written_to_a_stream(spark: SparkSession, media_driver: aeron.MediaDriver) -> None:
    received: list[bytes] = []
    with aeron.connect(media_driver) as client:
        subscription = client.add_subscription("aeron:ipc", 1002)

        def receive() -> None:
            deadline = time.monotonic() + PATIENCE_S
            while len(received) < len(MESSAGES) and time.monotonic() < deadline:
                received.extend(subscription.poll_batch(100).to_list())
                time.sleep(0.001)

        thread = threading.Thread(target=receive)
        thread.start()
        frame = spark.createDataFrame([(message,) for message in MESSAGES], "value BINARY").coalesce(1)
        writer = frame.write.format("aeron").option("channel", "aeron:ipc").option("streamId", "1002")
        writer.option("aeron.dir", str(media_driver.dir)).mode("append").save()
        thread.join()
    assert received == MESSAGES
