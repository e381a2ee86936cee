"""Test that Spark reads exported Parquet files with the same rows and types as the recording."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from pyspark.sql import functions as F
from tests.recorded import recorder

import aeron
import aeron.spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORD = struct.Struct("<bhiqBHIQfd?8s3sqqqq")
LAYOUT = (
    "a i8, b i16, c i32, d i64, e u8, f u16, g u32, h u64, i f32, j f64, k bool, l char[8], m bytes[3], "
    "n ts_ms, o ts_us, p ts_ns, q dec64:4"
)


def record(number: int) -> bytes:
    time = 1_700_000_000 + number
    small, text = number % 100, b"text %d" % (number % 10)
    unsigned = (small + 128, small + 2**15, small + 2**31, small + 2**63)
    times = (time * 10**3, time * 10**6, time * 10**9 + number)
    return RECORD.pack(-small, -small, -number, -number, *unsigned, 0.5, number / 8, True, text, b"\0\xff\0", *times, 7)


@pytest.mark.parametrize("layout", [None, LAYOUT])
def test_exported_files_have_the_rows_and_types_of_the_recording_in_spark(
    spark: SparkSession, media_driver: aeron.MediaDriver, tmp_path: Path, layout: str | None
) -> None:
    aeron.spark.register(spark)
    spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    directory, output = tmp_path / "archive", tmp_path / "exported"
    with recorder(media_driver, directory) as recordings:
        recording = recordings.record(7001, [record(number) * (1 + number % 2) for number in range(3000)])
    batches = aeron.read_recording(directory, recording.recording_id, layout=layout)
    batches.export(output, max_rows_per_file=1000)

    reader = spark.read.format("aeron").option("archiveDir", str(directory)).option("minPartitions", "1")
    if layout is not None:
        reader = reader.option("valueFormat", "struct").option("valueSchema", layout).option("includeHeaders", "true")
    # Spark reads nanoseconds of a file as integers. The source has microseconds.
    columns = [name for name in batches.schema.names if name != "p"]
    expected = reader.load().select(columns)
    exported = spark.read.parquet(str(output)).select(columns)
    assert exported.schema == expected.schema
    rows = exported.toArrow().sort_by("position")
    assert rows.equals(expected.toArrow().sort_by("position"))
    assert rows.num_rows == (3000 if layout is None else 4500)
    if layout is not None:
        exact = spark.read.parquet(str(output)).selectExpr("min(p)", "max(p - unix_micros(o) * 1000)").first()
        assert exact == (1_700_000_000 * 10**9, 2999)


def test_not_a_time_is_null_in_spark(spark: SparkSession, media_driver: aeron.MediaDriver, tmp_path: Path) -> None:
    """08-60"""
    aeron.spark.register(spark)
    dtype = np.dtype([("ms", "M8[ms]"), ("us", "M8[us]"), ("ns", "M8[ns]")])
    times = np.array([("2026-11-28",) * 3, ("NaT",) * 3], dtype)
    directory = tmp_path / "archive"
    with recorder(media_driver, directory) as recordings:
        recordings.record(7002, [row.tobytes() for row in times])
    layout = aeron.spark.layout(dtype)
    reader = spark.read.format("aeron").option("archiveDir", str(directory))
    frame = reader.option("valueFormat", "struct").option("valueSchema", layout).load()
    unknown = frame.where("ms IS NULL AND us IS NULL AND ns IS NULL")
    assert unknown.collect() == [(None, None, None)]
    assert frame.agg(F.min("ns").cast("string"), F.count("us")).first() == ("2026-11-28 00:00:00", 1)
    assert frame.sort("ms").toArrow().column("ns").null_count == 1
