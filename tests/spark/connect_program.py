"""A user's program with a session of Spark Connect. Usage: ``python connect_program.py DRIVER_DIRECTORY PLACE``.

The server runs on the same machine. This is a separate program because a process cannot use a classic session after it
has used Connect.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import aeron
import aeron.spark
from aeron import _aeron

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}
MESSAGES = [b"message %d" % number for number in range(100)]


def main(directory: str, place: Path) -> None:
    """Runs all checks. Fails if Connect behaves differently from a classic session."""
    builder = SparkSession.builder.remote("local[2]")
    for name, value in {**SETTINGS, "spark.local.dir": str(place)}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    assert type(spark).__module__.startswith("pyspark.sql.connect")
    options = {"channel": "aeron:ipc", "streamId": "1001", "aeron.dir": directory}
    with aeron.connect(directory) as client:
        for step in (discovered, refused, streamed, recorded, written, copied):
            step(spark, client, options, place)
            print(step.__name__, flush=True)
        aeron.spark.register(spark)
        discovered(spark, client, options, place)
    spark.stop()


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


Options = dict[str, str]


def discovered(spark: SparkSession, client: aeron.Aeron, options: Options, place: Path) -> None:
    frame = spark.readStream.format("aeron").options(**options).load()
    assert frame.columns == ["value", "stream_id", "session_id", "position", "reserved_value", "timestamp"]


def refused(spark: SparkSession, client: aeron.Aeron, options: Options, place: Path) -> None:
    with pytest.raises(Exception, match="AeronOptionError: option channel: unknown parameter 'endpiont' at 10, got "):
        _ = spark.readStream.format("aeron").options(**{**options, "channel": "aeron:udp?endpiont=x:1"}).load().schema
    with pytest.raises(Exception, match="AeronOptionError: column 'id' is not written by format aeron; select value"):
        spark.range(1).write.format("aeron").options(**options).mode("append").save()


def streamed(spark: SparkSession, client: aeron.Aeron, options: Options, place: Path) -> None:
    """Reads a live stream into a table of the server. The progress is the same as in a classic session."""
    frame = spark.readStream.format("aeron").options(**options, archiveDir=str(place / "archives")).load()
    writer = frame.selectExpr("cast(value as string) as text").writeStream.format("memory").queryName("messages")
    query = writer.option("checkpointLocation", str(place / "checkpoint")).start()
    with client.add_exclusive_publication("aeron:ipc", 1001) as publication:
        publication.wait_connected(timeout=180)
        for message in MESSAGES:
            publication.publish(message, timeout=20)
        eventually(lambda: spark.table("messages").count() == len(MESSAGES), "the messages did not arrive")
        eventually(lambda: any(source.recordings for source in aeron.spark.progress(query)), "no recording")
        [source] = aeron.spark.progress(query)
        assert (source.images, source.joined) == (1, 1)
    query.stop()
    assert sorted(row.text.encode() for row in spark.table("messages").collect()) == sorted(MESSAGES)


def recorded(spark: SparkSession, client: aeron.Aeron, options: Options, place: Path) -> None:
    """Reads the recordings of the previous query."""
    # The server stops a query without waiting for its source process.
    eventually(lambda: is_free(place / "archives"), "the archive is still in use")
    frame = spark.read.format("aeron").option("archiveDir", str(place / "archives")).load()
    assert set(frame.select("value").toArrow()["value"].to_pylist()) == set(MESSAGES)


def is_free(directory: Path) -> bool:
    try:
        _aeron.plan_recordings(directory)
    except aeron.AeronError as error:
        if "is in use by process" not in str(error):
            raise
        return False
    return True


def written(spark: SparkSession, client: aeron.Aeron, options: Options, place: Path) -> None:
    with client.add_subscription("aeron:ipc", 1002) as subscription:
        frame = spark.range(1000).selectExpr("cast(id as string) as value")
        frame.write.format("aeron").options(**{**options, "streamId": "1002"}).mode("append").save()
        received: list[bytes] = []
        eventually(lambda: received.extend(subscription.poll_batch().to_list()) or len(received) >= 1000, "incomplete")
        assert sorted(map(int, received)) == list(range(1000))


def copied(spark: SparkSession, client: aeron.Aeron, options: Options, place: Path) -> None:
    """Reads a live stream and writes its batches to another stream."""
    with client.add_subscription("aeron:ipc", 1003) as subscription:
        frame = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load()
        writer = frame.selectExpr("cast(value as string) as value").writeStream.format("aeron")
        writer = writer.options(**{**options, "streamId": "1003"}).option("checkpointLocation", str(place / "copied"))
        query = writer.start()
        received: list[bytes] = []

        def is_whole() -> bool:
            assert query.exception() is None
            received.extend(subscription.poll_batch().to_list())
            return len(received) >= 200

        eventually(is_whole, "two batches did not arrive")
        query.stop()
        assert {int(message) for message in received} >= set(range(200))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
