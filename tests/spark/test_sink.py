"""Tests of ``df.write`` and ``df.writeStream`` with a real Spark: each row arrives, and errors are raised at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.conftest import eventually
from tests.spark.publishing import Reader, rate_stream, running, write

import aeron

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IPC = "aeron:ipc"


def refusal(frame: DataFrame, options: dict[str, str], **more: object) -> str:
    with pytest.raises(Exception) as error:  # noqa: PT011 - Spark chooses the class
        write(frame, options, **more)
    return str(error.value)


def test_all_rows_of_a_frame_arrive_on_one_session_in_the_order_of_each_task(
    spark: SparkSession, sink_options: dict[str, str], reader: Callable[..., Reader]
) -> None:
    """08-66, 08-67, 08-69, 08-71, 08-72"""
    subscriber = reader(1)
    count = 100_000
    frame = spark.range(0, count, 1, 3).selectExpr("cast(id as string) as value")
    write(frame, sink_options, streamId=1, drain="true")
    write(frame.selectExpr("cast(value as binary) as value").coalesce(1), sink_options, streamId=1)
    write(frame.limit(0), sink_options, streamId=1)
    received = [int(message) for message in subscriber.take(2 * count)]
    first, second = received[:count], received[count:]
    for partition in range(3):
        rows = range(partition * count // 3, (partition + 1) * count // 3)
        assert [row for row in first if row in rows] == list(rows)
    assert second == list(range(count))
    assert len(subscriber.sessions) == 1


def test_large_arrow_types_stream_ids_and_reserved_values_are_written(
    spark: SparkSession, sink_options: dict[str, str], reader: Callable[..., Reader]
) -> None:
    """08-67, 08-70"""
    readers = [reader(10), reader(11)]
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        frame = spark.range(1000).selectExpr(
            "cast(id as string) as value", "cast(10 + id % 2 as int) as stream_id", "id * -3 as reserved_value"
        )
        write(frame.coalesce(1), sink_options)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    for odd, subscriber in enumerate(readers):
        rows = range(odd, 1000, 2)
        assert subscriber.take(500) == [b"%d" % row for row in rows]
        assert subscriber.reserved_values == [row * -3 for row in rows]


def test_records_are_written_in_their_layout(
    spark: SparkSession, sink_options: dict[str, str], reader: Callable[..., Reader]
) -> None:
    """08-64"""
    import numpy as np

    subscriber = reader(20)
    layout = "ts ts_us, @16, px f64, sym char[4], qty >i32"
    frame = spark.range(10).selectExpr(
        "timestamp_micros(id) as ts", "id / 4 as px", "concat('s', id) as sym", "cast(id as int) as qty"
    )
    write(frame.coalesce(1), sink_options, streamId=20, valueFormat="struct", valueSchema=layout, recordsPerMessage=4)
    assert [len(message) for message in subscriber.take(3)] == [128, 128, 64]
    kind = np.dtype([("ts", "<i8"), ("gap", "<i8"), ("px", "<f8"), ("sym", "S4"), ("qty", ">i4")])
    records = np.frombuffer(b"".join(subscriber.messages), kind)
    assert [record.tolist() for record in records] == [(n, 0, n / 4, b"s%d" % n, n) for n in range(10)]


def test_written_times_do_not_depend_on_the_time_zone_of_the_session(
    spark: SparkSession, sink_options: dict[str, str], reader: Callable[..., Reader]
) -> None:
    """08-60"""
    subscriber = reader(21)
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = spark.range(3).selectExpr("timestamp_micros(id) as ts")
        write(frame.coalesce(1), sink_options, streamId=21, valueFormat="struct", valueSchema="ts ts_us")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert subscriber.take(3) == [number.to_bytes(8, "little") for number in range(3)]


def test_a_schema_that_cannot_be_written_is_refused_when_the_write_is_planned(
    spark: SparkSession, sink_options: dict[str, str]
) -> None:
    """08-68, 08-69"""
    frame = spark.range(1).selectExpr("cast('a' as binary) as value", "1.5D as px")
    text = refusal(frame, sink_options, streamId=1)
    assert "AeronOptionError: column 'px' is not written by format aeron; select value [, stream_id]" in text
    with pytest.raises(Exception, match=r"what subscribers have read cannot be taken back; use \.mode\('append'\)"):
        frame.select("value").write.format("aeron").options(**sink_options, streamId=1).mode("overwrite").save()


def test_an_error_of_a_task_is_one_line_for_the_user(
    spark: SparkSession, sink_options: dict[str, str], media_driver: aeron.MediaDriver
) -> None:
    """08-66, 08-67, 08-73, 08-74"""
    frame = spark.range(2000).selectExpr("repeat('x', 1000) as value").coalesce(1)
    text = refusal(frame, sink_options, streamId=30, connectTimeoutMs=200)
    assert (
        "AeronNoSubscriberError: no subscriber on channel=aeron:ipc streamId=30 for 200 ms (connectTimeoutMs); "
        "2000 rows of partition 0 not sent" in text
    )
    with aeron.connect(media_driver) as client:
        subscription = client.add_subscription(IPC, 30)
        text = refusal(frame, sink_options, streamId=30, offerTimeoutMs=200)
        eventually(lambda: subscription.images)
        received = sum(len(subscription.poll_batch()) for _ in range(10))
        sent = f"rows 0..{received - 1} of partition 0 (attempt 0) were published, {received}..1999 were not"
        assert f"publisher limit {1 << 19}; {sent}" in text
        frame = spark.range(3).selectExpr("repeat('x', if(id = 1, 131073, 1)) as value").coalesce(1)
        text = refusal(frame, sink_options, streamId=30)
        assert "row 1 of partition 0: " in text
        assert "length 131073 exceeds the maximum of 131072 bytes" in text
        text = refusal(
            spark.range(3).selectExpr("if(id = 2, null, 'a') as value").coalesce(1), sink_options, streamId=30
        )
        assert "row 2 of partition 0: column 'value' is null" in text
    nowhere = {**sink_options, "aeron.dir": str(Path(media_driver.dir) / "nowhere"), "aeron.driver.timeout": "300"}
    text = refusal(spark.range(1).selectExpr("'a' as value"), nowhere, streamId=30)
    assert "AeronDriverTimeout: channel=aeron:ipc streamId=30: CnC file not created: " in text


def test_two_writes_never_have_the_same_keys(
    spark: SparkSession, sink_options: dict[str, str], reader: Callable[..., Reader]
) -> None:
    """08-76"""
    subscriber = reader(40)
    frame = spark.range(0, 10, 1, 2).selectExpr("cast(id as string) as value")
    write(frame, sink_options, streamId=40, reservedValue="dedup")
    write(frame, sink_options, streamId=40, reservedValue="dedup")
    subscriber.take(20)
    keys = subscriber.reserved_values
    assert len(set(keys)) == 20
    assert len({key >> 40 for key in keys}) == 2
    assert {(key >> 28 & 0xFFF, key & 0xFFFFFFF) for key in keys} == {(p, row) for p in range(2) for row in range(5)}


def test_batches_of_a_stream_arrive_in_order_on_one_session(
    spark: SparkSession, sink_options: dict[str, str], reader: Callable[..., Reader], tmp_path: Path
) -> None:
    """08-66, 08-69, 08-71, 08-72, 08-76"""
    subscriber = reader(50)
    frame = rate_stream(spark).selectExpr("cast(value as string) as value")
    with running(frame, sink_options, tmp_path, streamId=50, reservedValue="dedup"):
        received = [int(message) for message in subscriber.take(30_000)[:30_000]]
    batches = [received[start : start + 10_000] for start in range(0, 30_000, 10_000)]
    for number, batch in enumerate(batches):
        assert sorted(batch) == list(range(number * 10_000, (number + 1) * 10_000))
    assert len(subscriber.sessions) == 1
    keys = subscriber.reserved_values[:30_000]
    assert {key >> 40 for key in keys} == {0, 1, 2}
    assert len(set(keys)) == 30_000


def test_complete_mode_publishes_all_rows_of_each_batch(
    spark: SparkSession, sink_options: dict[str, str], reader: Callable[..., Reader], tmp_path: Path
) -> None:
    """08-69"""
    subscriber = reader(60)
    counts = rate_stream(spark).groupBy().count().selectExpr("cast(count as string) as value")
    with running(counts, sink_options, tmp_path, outputMode="complete", streamId=60):
        assert subscriber.take(2)[:2] == [b"10000", b"20000"]
    refused = pytest.raises(Exception, match="aeron does not support Update mode")  # no format in Python supports this
    with refused, running(counts, sink_options, tmp_path / "update", outputMode="update", streamId=60) as query:
        query.awaitTermination(120)


def test_a_query_stopped_under_back_pressure_ends_at_once_and_its_task_ends_within_the_timeout(
    spark: SparkSession, sink_options: dict[str, str], media_driver: aeron.MediaDriver, tmp_path: Path
) -> None:
    """08-78"""
    with aeron.connect(media_driver) as client:
        subscription = client.add_subscription(IPC, 70)
        frame = rate_stream(spark).selectExpr("repeat('x', 500) as value")
        # If stopping waited for the task, the task would reach this timeout and the query would fail.
        with running(frame, sink_options, tmp_path, streamId=70, offerTimeoutMs=15_000):
            eventually(lambda: subscription.images, timeout=30)
            time.sleep(1)
            began = time.monotonic()
        assert time.monotonic() - began < 10
        subscription.close()
        # The worker must be able to run the next task.
        subscription = client.add_subscription(IPC, 71)
        write(spark.range(0, 2, 1, 2).selectExpr("'a' as value"), sink_options, streamId=71)
        eventually(lambda: len(subscription.poll_batch()) > 0)
