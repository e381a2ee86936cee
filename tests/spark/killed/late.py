"""The Spark application of the test of asynchronous progress tracking. Batches run before Spark logs their offsets. The
test kills the application between a batch and the log of its offsets.

usage: late.py PLACE STREAM_ID DIRECTORY_OF_DRIVER ROWS

The files in PLACE are `checkpoint` and `archives`. Each message becomes a line of the file ROWS.
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import aeron.spark


def main(place, stream_id, directory, rows):
    place = Path(place)
    (place / "archives").mkdir(mode=0o700, exist_ok=True)
    builder = SparkSession.builder.master("local[2]").appName("late")
    for name, value in json.loads(os.environ["SPARK_SETTINGS"]).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    aeron.spark.register(spark)
    stream = spark.readStream.format("aeron").option("channel", "aeron:ipc").option("streamId", stream_id)
    stream = stream.option("aeron.dir", directory).option("archiveDir", str(place / "archives"))
    with open(rows, "a") as file:

        def keep(batch, _batch_id):
            file.writelines(f"{value.decode()}\n" for value in batch.toArrow()["value"].to_pylist())
            file.flush()

        writer = stream.load().writeStream.foreachBatch(keep)
        writer = writer.option("checkpointLocation", str(place / "checkpoint"))
        writer = writer.option("asyncProgressTrackingEnabled", True)
        writer = writer.option("asyncProgressTrackingCheckpointIntervalMs", 3000)
        # Spark allows asynchronous progress tracking only for a few sinks.
        writer.option("_asyncProgressTrackingOverrideSinkSupportCheck", True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
