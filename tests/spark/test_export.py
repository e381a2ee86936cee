"""Test that Spark reads exported Parquet files with the same rows and types as the recording."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
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
    directory, output = tmp_path / "archive", tmp_path / "exported"
    with recorder(media_driver, directory) as recordings:
        recording = recordings.record(7001, [record(number) * (1 + number % 2) for number in range(3000)])
    batches = aeron.read_recording(directory, recording.recording_id, layout=layout)
    batches.export(output, max_rows_per_file=1000)

    reader = spark.read.format("aeron").option("archiveDir", str(directory)).option("minPartitions", "1")
    if layout is not None:
        reader = reader.option("valueFormat", "struct").option("valueSchema", layout).option("includeHeaders", "true")
    columns = batches.schema.names
    expected = reader.load().select(columns)
    exported = spark.read.parquet(str(output)).select(columns)
    assert exported.schema == expected.schema
    rows = exported.toArrow().sort_by("position")
    assert rows.equals(expected.toArrow().sort_by("position"))
    assert rows.num_rows == (3000 if layout is None else 4500)
