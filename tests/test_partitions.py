"""Tests of partitions of recordings: messages in segment files are read as rows of record batches."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.segments import BEGIN, BOOT_ID, END, MIB, Segment

from aeron import _aeron
from aeron.spark import AeronDataLossError, AeronOptionError, AeronRecordError, AeronSparkError

pytestmark = pytest.mark.skipif(not BOOT_ID.exists(), reason="only Linux has the file with the boot id")

VALUE = pa.schema({"value": pa.binary()})


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    return Segment(tmp_path)


def batches(partition: str, schema: pa.Schema, **options: Any) -> list[pa.RecordBatch]:
    return [pa.record_batch(batch) for batch in _aeron.PartitionReader(partition, schema, **options)]


def test_batches_have_the_rows_of_the_requested_schema(segment: Segment) -> None:
    """08-10"""
    first = segment.frame(b"one", reserved_value=-1)
    segment.frame(b"t", BEGIN, 2)
    second = segment.frame(b"wo", END, 3)
    schema = pa.schema(
        [
            pa.field("position", pa.int64(), nullable=False),
            pa.field("timestamp", pa.timestamp("us", "UTC")),
            pa.field("value", pa.string(), nullable=False),
            pa.field("reserved_value", pa.int64()),
            pa.field("channel", pa.string()),
        ]
    )
    (batch,) = batches(segment.partition(), schema, value_format="string")
    assert batch.schema.equals(schema)
    assert [list(row.values()) for row in batch.to_pylist()] == [
        [first, None, "one", -1, "aeron:ipc"],
        [second, None, "two", 2, "aeron:ipc"],
    ]
    assert batches(segment.partition(second), schema, value_format="string") == []


def test_records_become_columns_of_their_fields(segment: Segment) -> None:
    """08-64"""
    segment.frame(struct.pack("<iBiB", 1, 1, 2, 0))
    segment.frame(struct.pack("<iB", 3, 7))
    options = {"value_format": "struct", "value_schema": "id i32, up bool"}
    schema = pa.schema({"record_index": pa.int32(), "up": pa.bool_(), "id": pa.int32()})
    reader = _aeron.PartitionReader(segment.partition(), schema, malformed="drop", **options)
    rows = [row for batch in reader for row in pa.record_batch(batch).to_pylist()]
    assert [list(row.values()) for row in rows] == [[0, True, 1], [1, False, 2]]
    assert reader.malformed == 1
    with pytest.raises(AeronRecordError, match=r"stream 1001, session -5, position 128 .*'up' at offset 4 is 7"):
        batches(segment.partition(), schema, **options)


def test_contradictory_options_are_refused(segment: Segment) -> None:
    partition = segment.partition()
    for options in (
        {"value_format": "struct"},
        {"value_schema": "a i8"},
        {"value_format": "arrow"},
    ):
        with pytest.raises(ValueError, match=f"'{next(iter(options.values()))}'|'binary'"):
            batches(partition, VALUE, **options)
    with pytest.raises(AeronOptionError, match="'price' does not exist"):
        batches(partition, pa.schema({"price": pa.float64()}))
    with pytest.raises(AeronOptionError, match="'value' is of type Binary"):
        batches(partition, pa.schema({"value": pa.large_binary()}))
    with pytest.raises(ValueError, match="not a partition of format aeron"):
        batches("{}", VALUE)


def test_the_error_for_a_damaged_or_missing_segment_names_the_file(segment: Segment) -> None:
    segment.frame(b"whole")
    begin = segment.position
    segment.frame(b"damaged")
    partition = segment.partition()
    segment.write(begin + 16, b"\xff")
    with pytest.raises(AeronSparkError, match=rf"0-0.rec, position {begin}: stream id") as raised:
        batches(partition, VALUE)
    assert raised.value.code == "RECORDING"
    segment.path.unlink()
    with pytest.raises(AeronDataLossError, match=r"0-0.rec"):
        batches(partition, VALUE)


def test_an_archive_on_another_machine_is_refused(segment: Segment) -> None:
    with pytest.raises(AeronSparkError, match=f"{segment.directory} on host there"):
        batches(segment.partition(boot_id="another", host="there"), VALUE)


LIMITED = """
import resource, sys
import pyarrow as pa
from aeron import _aeron

schema = pa.schema({"value": pa.binary()})
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = in_use + 64 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
reader = _aeron.PartitionReader(sys.argv[1], schema)
print([value for batch in reader for value in pa.record_batch(batch)["value"].to_pylist()])
"""


def test_a_segment_of_a_gibibyte_is_read_with_little_address_space(tmp_path: Path) -> None:
    """08-59"""
    segment = Segment(tmp_path, 1024 * MIB)
    segment.frame(b"first")
    segment.padding(1000 * MIB)
    segment.frame(b"last")
    command = [sys.executable, "-c", LIMITED, segment.partition()]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.stdout == "[b'first', b'last']\n", answer.stderr
