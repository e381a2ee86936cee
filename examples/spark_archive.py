"""Reads the recordings of a running archive with Spark. Needs `aeron-py[spark]` and a JDK (17 or 21).

The program records messages and reads them in a query that ends at the last message. The program records more
messages while no query runs, and starts the query again with the same checkpoint. At the end it counts all
messages in a batch read.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import aeron
import aeron.spark

STREAM_ID = 1001


def record(client: aeron.Aeron, messages: list[bytes]) -> None:
    """Publishes messages, and waits until the archive has recorded them."""
    with (
        aeron.connect_archive(client) as archive,
        archive.add_recorded_publication("aeron:ipc", STREAM_ID) as publication,
    ):
        position = publication.position
        for message in messages:
            position = publication.publish(message, timeout=120)
        archive.wait_recorded(publication, position, timeout=120)


def show(rows: DataFrame, batch_id: int) -> None:
    """Prints the messages of a batch."""
    texts = [row.text for row in rows.selectExpr("cast(value as string) as text").collect()]
    print(f"batch {batch_id}: {', '.join(texts) or 'no rows'}")


def main() -> None:
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    aeron.spark.register(spark)
    with (
        tempfile.TemporaryDirectory() as place,
        aeron.MediaDriver() as driver,
        aeron.Archive(Path(place) / "archive", driver) as server,
        aeron.connect(driver) as client,
    ):
        options = {
            "archive.controlChannel": "aeron:ipc",
            "archive.dir": str(server.directory),
            "aeron.dir": str(driver.dir),
            "streamId": str(STREAM_ID),
        }
        stream = spark.readStream.format("aeron").options(**options, startingOffsets="earliest").load()
        writer = stream.writeStream.foreachBatch(show).option("checkpointLocation", f"{place}/checkpoint")
        for texts in ([b"one", b"two"], [b"three"]):
            record(client, texts)
            writer.trigger(availableNow=True).start().awaitTermination()
        count = spark.read.format("aeron").options(**options).load().count()
        print(f"the archive has {count} messages")
    spark.stop()


if __name__ == "__main__":
    main()
