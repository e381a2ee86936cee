"""Test of malformed messages in a worker, without a Spark session."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")
from pyspark.sql.types import LongType, StructField, StructType
from tests.segments import BOOT_ID, Segment

from aeron.spark.columns import source_schema
from aeron.spark.options import read_options
from aeron.spark.rows import AeronPartition, read_partition

pytestmark = pytest.mark.skipif(not BOOT_ID.exists(), reason="only Linux has the file with the boot id")

SCHEMA = StructType([StructField("id", LongType(), False)])


def options(directory: Path, mode: str) -> dict[str, str]:
    return {"archiveDir": str(directory), "valueFormat": "struct", "valueSchema": "id i64", "mode": mode}


def test_dropped_malformed_messages_are_reported_in_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """08-63"""
    segment = Segment(tmp_path)
    segment.frame((5).to_bytes(8, "little"))
    segment.frame(b"short")
    segment.frame(b"")
    partition = AeronPartition(segment.partition())
    dropping = read_options(options(tmp_path, "DROPMALFORMED"))
    (batch,) = read_partition(partition, dropping, SCHEMA)
    assert batch.to_pylist() == [{"id": 5}]
    assert caplog.messages == [
        "mode=DROPMALFORMED: 2 malformed messages or records of stream 1001, session -5, positions 0 to 160"
    ]


def test_permissive_keeps_malformed_messages_with_their_bytes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """08-63"""
    segment = Segment(tmp_path)
    for payload in ((5).to_bytes(8, "little"), b"short", (6).to_bytes(8, "little")):
        segment.frame(payload)
    permissive = read_options({**options(tmp_path, "PERMISSIVE"), "includeHeaders": "true"})
    schema = source_schema(permissive)
    assert schema.names[-1] == "_corrupt_record"
    (batch,) = read_partition(AeronPartition(segment.partition()), permissive, schema)
    assert batch.select(["id", "_corrupt_record"]).to_pylist() == [
        {"id": 5, "_corrupt_record": None},
        {"id": None, "_corrupt_record": b"short"},
        {"id": 6, "_corrupt_record": None},
    ]
    assert batch["position"].to_pylist() == [64, 128, 192]
    assert caplog.messages == [
        "mode=PERMISSIVE: 1 malformed messages or records of stream 1001, session -5, positions 0 to 192"
    ]
    without = source_schema(read_options(options(tmp_path, "FAILFAST")))
    assert "_corrupt_record" not in without.names
