"""A Spark application that reads a running archive until it is killed. Usage: ``shared_application.py PLACE OPTIONS``.

The files in PLACE are `checkpoint` and `batches/<id>.parquet`. OPTIONS are the options of the source, as JSON.
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import aeron.spark
from spark.killed.application import keep

COLUMNS = "value BINARY, position BIGINT, recording_id BIGINT, timestamp TIMESTAMP"


def start(spark, place, options):
    """Starts the query with the checkpoint in `place`."""
    aeron.spark.register(spark)
    (place / "batches").mkdir(exist_ok=True)
    frame = spark.readStream.format("aeron").schema(COLUMNS).options(**options).load()
    writer = frame.writeStream.foreachBatch(keep(place / "batches"))
    return writer.option("checkpointLocation", str(place / "checkpoint")).start()


def main(place, options):
    builder = SparkSession.builder.master("local[2]").appName("killed")
    for name, value in json.loads(os.environ["SPARK_SETTINGS"]).items():
        builder = builder.config(name, value)
    start(builder.getOrCreate(), Path(place), json.loads(options)).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
