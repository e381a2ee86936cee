"""Functions that publish with Spark, and a subscriber that collects messages on a separate thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import eventually

import aeron

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

ONE_BATCH = "36500 days"
"""Interval between triggers. It is so long that a query has only its first trigger: later triggers are at multiples of
the interval since 1970."""


class Reader:
    """Collects messages of one stream on a separate thread."""

    def __init__(self, client: aeron.Aeron, stream_id: int, pause_s: float = 0.001) -> None:
        self.messages: list[bytes] = []
        self.reserved_values: list[int] = []
        self.sessions: set[int] = set()
        self._subscription = client.add_subscription("aeron:ipc", stream_id)
        self._pause_s, self._is_ended = pause_s, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_ended.wait(self._pause_s):
            while batch := self._subscription.poll_batch():
                # The messages are added last, because a test waits for the messages and then reads the other lists at
                # once.
                self.reserved_values += batch.reserved_values.tolist()
                self.sessions.update(batch.session_ids.tolist())
                self.messages += batch.to_list()

    def take(self, count: int) -> list[bytes]:
        eventually(lambda: len(self.messages) >= count, timeout=120)
        return self.messages

    def end(self) -> None:
        self._is_ended.set()
        self._thread.join()
        self._subscription.close()


def write(frame: DataFrame, options: dict[str, str], **more: object) -> None:
    """Writes a frame with ``df.write`` in mode append."""
    frame.write.format("aeron").options(**options).options(**more).mode("append").save()


@contextmanager
def running(
    frame: DataFrame,
    options: dict[str, str],
    checkpoint: Path,
    outputMode: str = "append",
    interval: str = "0 seconds",
    **more: object,
) -> Iterator[StreamingQuery]:
    """Runs a streaming query during the block. The query must not fail."""
    writer = frame.writeStream.format("aeron").options(**options).options(**more).outputMode(outputMode)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime=interval).start()
    try:
        yield query
    finally:
        query.stop()
        if error := query.exception():
            raise error


def rate_stream(spark: SparkSession) -> DataFrame:
    """Returns a stream of numbered rows. Each Spark batch has 10,000 rows."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10_000).option("numPartitions", 2)
    return source.load()
