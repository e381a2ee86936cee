"""Bars of trades in an exchange's encoding (SBE) with Spark. Needs `aeron-py[spark]` and a JDK (17 or 21).

A thread publishes SBE messages. Spark reads them as typed columns by the schema, and computes bars of one second. The
program prints the first three bars.
"""

from __future__ import annotations

import threading
import time
from decimal import Decimal
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import aeron
import aeron.sbe
import aeron.spark

SCHEMA = Path(__file__).parent / "data" / "trades.xml"
STREAM_ID = 1002


def publish(driver: aeron.MediaDriver, stop: threading.Event) -> None:
    """Publishes a trade every 10 ms."""
    random, price = Random(1), Decimal(100)
    template = aeron.sbe.Schema(SCHEMA)["Trade"]
    with aeron.connect(driver) as client:
        publication = client.add_exclusive_publication("aeron:ipc", STREAM_ID)
        while not stop.wait(0.01):
            price += Decimal(random.randint(-10, 10)) / 1_000
            trade = {"time": time.time_ns(), "price": price, "quantity": random.randint(1, 100), "symbol": "ESZ6"}
            publication.offer(template.encode_one({**trade, "side": random.choice(["Buy", "Sell"])}))


def main() -> None:
    spark = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    aeron.spark.register(spark)
    stop = threading.Event()
    with aeron.MediaDriver() as driver:
        publisher = threading.Thread(target=publish, args=(driver, stop))
        publisher.start()
        options = {"channel": "aeron:ipc", "streamId": str(STREAM_ID), "aeron.dir": driver.dir}
        options |= {"valueFormat": "sbe", "sbe.schema": str(SCHEMA), "sbe.template": "Trade"}
        trades = spark.readStream.format("aeron").options(**options).load()
        bars = (
            trades.withWatermark("time", "1 second")
            .groupBy("symbol", F.window("time", "1 second"))
            .agg(
                F.max("price").alias("high"),
                F.min("price").alias("low"),
                F.sum("quantity").alias("volume"),
                F.sum(F.when(F.col("side") == "Buy", F.col("quantity")).otherwise(0)).alias("bought"),
            )
            .select("symbol", "window.start", "high", "low", "volume", "bought")
        )
        query = bars.writeStream.format("memory").queryName("bars").outputMode("append").start()
        try:
            while spark.table("bars").count() < 3 and query.exception() is None:
                query.awaitTermination(1)
        finally:
            query.stop()
            stop.set()
            publisher.join()
        spark.table("bars").orderBy("start").show(3, truncate=False)
    spark.stop()


if __name__ == "__main__":
    main()
