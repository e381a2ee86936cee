"""Computes bars of one second from a live stream of trades with Spark. Needs `aeron-py[spark]` and a JDK (17 or 21).

A thread publishes numpy records. Spark reads them as typed columns and computes the bars. The program prints
the first three bars.
"""

from __future__ import annotations

import threading
import time

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import aeron
import aeron.spark

TRADE = np.dtype([("ts", "<i8"), ("price", "<f8"), ("size", "<f8"), ("seq", "<i8")])
LAYOUT = "ts ts_us, price f64, size f64, seq i64"
STREAM_ID = 1001


def publish(driver: aeron.MediaDriver, stop: threading.Event) -> None:
    """Publishes a trade every 10 ms."""
    random = np.random.default_rng(seed=1)
    price, number = 100.0, 0
    with aeron.connect(driver) as client:
        publication = client.add_exclusive_publication("aeron:ipc", STREAM_ID)
        while not stop.wait(0.01):
            price += random.normal(0, 0.01)
            trade = np.array([(time.time_ns() // 1_000, price, random.integers(1, 100), number)], TRADE)
            number += publication.offer_batch(trade)  # adds 0 until Spark subscribes


def main() -> None:
    spark = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    aeron.spark.register(spark)
    stop = threading.Event()
    with aeron.MediaDriver() as driver:
        publisher = threading.Thread(target=publish, args=(driver, stop))
        publisher.start()
        options = {"channel": "aeron:ipc", "streamId": str(STREAM_ID), "aeron.dir": driver.dir}
        options |= {"valueFormat": "struct", "valueSchema": LAYOUT}
        trades = spark.readStream.format("aeron").options(**options).load()
        bars = (
            trades.withWatermark("ts", "1 second")
            .groupBy(F.window("ts", "1 second"))
            .agg(
                F.min_by("price", "seq").alias("open"),
                F.max("price").alias("high"),
                F.min("price").alias("low"),
                F.max_by("price", "seq").alias("close"),
                F.sum("size").alias("volume"),
            )
            .select("window.start", "open", "high", "low", "close", "volume")
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
