"""A Spark application that records a stream, and is killed with all its processes in the middle of a commit."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from aeron.spark.source import AeronDataSource
from spark.killed import committing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

ROWS_PER_BATCH = 2000


class KillingDataSource(AeronDataSource):
    """The format ``aeron`` with a commit that kills the application at a step, after two batches have finished."""

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        """Returns the writer. Its commit kills the process in the variable `APPLICATION`, and all its children."""
        step, application = os.environ["KILLED_AT"], psutil.Process(int(os.environ["APPLICATION"]))

        def kill() -> None:
            if len(list(Path(os.environ["PLACE"], "checkpoint", "commits").glob("[0-9]*"))) < 2:
                return
            for process in [application, *application.children(recursive=True)]:
                process.kill()

        committing.stop_at(step, kill, setattr)
        return super().streamWriter(schema, overwrite)


def start(spark: SparkSession, place: Path, options: dict[str, str]) -> Any:
    """Starts or continues the query, which records numbers from 0 on as texts."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS_PER_BATCH)
    texts = rows.option("numPartitions", 2).load().selectExpr("cast(value as string) as value")
    writer = texts.writeStream.format("aeron").options(**options)
    return writer.option("checkpointLocation", str(place / "checkpoint")).start()


def main() -> None:
    """Runs until the kill."""
    from pyspark.sql import SparkSession

    place, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    os.environ |= {"APPLICATION": str(os.getpid()), "PLACE": str(place), "PYSPARK_PYTHON": sys.executable}
    builder = SparkSession.builder.master("local[2]").appName("killed while it records")
    for name, value in json.loads(os.environ["SPARK_SETTINGS"]).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.dataSource.register(KillingDataSource)
    start(spark, place, options).awaitTermination()


if __name__ == "__main__":
    # Workers import the data source by the name of its module.
    from spark.killed import recording

    recording.main()
