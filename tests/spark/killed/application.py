"""The Spark application that the tests kill. It reads a live stream, and writes each batch to a file named by the batch
id.

usage: application.py PLACE CHANNEL STREAM_ID DIRECTORY_OF_DRIVER

The files in PLACE are `checkpoint`, `archives`, `batches/<id>.parquet` and `progress.jsonl`. The application ends
cleanly when a file `stop` exists. It fails if a repeated batch has other rows.
"""

import json
import os
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import aeron.spark

COLUMNS = "value BINARY, session_id INT, position BIGINT, recording_id BIGINT, timestamp TIMESTAMP"


def keep(batches):
    """Returns a sink that is idempotent by batch id and checks that a repeated batch has the same rows."""

    def write(rows, batch_id):
        table = rows.toArrow().sort_by([("recording_id", "ascending"), ("position", "ascending")])
        path = batches / f"{batch_id}.parquet"
        if path.exists():
            assert pq.read_table(path).equals(table), f"batch {batch_id} came again with other rows"
        unfinished = path.with_suffix(".unfinished")
        pq.write_table(table, unfinished)
        os.replace(unfinished, path)

    return write


def main(place, channel, stream_id, directory):
    place = Path(place)
    (place / "batches").mkdir(exist_ok=True)
    (place / "archives").mkdir(mode=0o700, exist_ok=True)
    settings = json.loads(os.environ["SPARK_SETTINGS"])
    builder = SparkSession.builder.master("local[2]").appName("killed")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    aeron.spark.register(spark)
    stream = spark.readStream.format("aeron").schema(COLUMNS).option("channel", channel).option("streamId", stream_id)
    stream = stream.option("aeron.dir", directory).option("archiveDir", str(place / "archives"))
    query = (
        stream.load()
        .writeStream.foreachBatch(keep(place / "batches"))
        .option("checkpointLocation", str(place / "checkpoint"))
        .start()
    )
    with open(place / "progress.jsonl", "a") as told:
        last = None
        while query.isActive and not (place / "stop").exists():
            time.sleep(0.05)
            for progress in aeron.spark.progress(query):
                line = {"run": os.getpid(), "gap": progress.gap_bytes, "lost": progress.lost_bytes}
                line |= {"backlog": progress.backlog_messages, "recordings": dict(progress.recordings)}
                line |= {"retained": progress.retained_bytes, "images": progress.images}
                if line != last:
                    print(json.dumps(line), file=told, flush=True)
                    last = line
    if query.isActive:
        query.stop()
    else:
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
