"""Tests of reading in a worker, without a session: which archives are accepted, and the schema of the batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import BinaryType, DataType, StructField, StructType
from tests.conftest import eventually
from tests.segments import BOOT_ID

import aeron
from aeron import _aeron
from aeron.spark.columns import HEADERS, arrow_schema, check_schema, source_schema
from aeron.spark.options import read_options
from aeron.spark.rows import AeronPartition, read_partition

OPTIONS = {"archiveDir": "/nowhere"}


@pytest.mark.skipif(not BOOT_ID.exists(), reason="only Linux has the file with the boot id")
@pytest.mark.parametrize("other", ["boot id", "nonce", "path"])
def test_a_worker_that_cannot_see_the_archive_fails_with_both_host_names(tmp_path: Path, other: str) -> None:
    """08-54"""
    partition = {
        "archive": {
            "path": "/nowhere" if other == "path" else str(tmp_path),
            "nonce": "0" * 32,
            "boot_id": "another" if other == "boot id" else BOOT_ID.read_text().strip(),
            "host": "elsewhere",
        },
        "recording": {
            "id": 0,
            "stream_id": 1,
            "session_id": 1,
            "initial_term_id": 0,
            "term_length": 65536,
            "segment_length": 1 << 20,
            "start_position": 0,
        },
        "from": 0,
        "to": 64,
        "end": 64,
        "index_hint": None,
    }
    schema = StructType().add("value", BinaryType())
    text = r"this executor \(host .*\) cannot see the private archive .* on host elsewhere: run executors on the Spark"
    with pytest.raises(aeron.AeronError, match=text):
        list(read_partition(AeronPartition(json.dumps(partition)), read_options(OPTIONS), schema))


def test_an_empty_plan_has_no_rows() -> None:
    assert list(read_partition(None, read_options(OPTIONS), StructType())) == []


LAYOUT = "ts ts_us, px f64, id u64, small i8, flag bool, fee dec64:2, name char[4], raw bytes[3] =48"
RECORD = (1_700_000_000_000_000).to_bytes(8, "little") + bytes(24) + (125).to_bytes(8, "little", signed=True) + bytes(8)
FORMATS: list[dict[str, str]] = [
    {},
    {"valueFormat": "string"},
    {"valueFormat": "struct", "valueSchema": LAYOUT},
]


@pytest.fixture(scope="module")
def pieces(media_driver: aeron.MediaDriver, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Returns the partitions of a recording of ten messages with one record each."""
    directory = tmp_path_factory.mktemp("archives")
    directory.chmod(0o700)
    source = _aeron.LiveSource("aeron:ipc", [6001], client={"aeron_dir": media_driver.dir}, archive_dir=directory)
    offset = source.initial_offset()
    source.partitions(offset, offset)
    with aeron.connect(media_driver) as client:
        publication = client.add_exclusive_publication("aeron:ipc", 6001)
        publication.wait_connected(timeout=20)
        for _ in range(10):
            publication.publish(RECORD, timeout=20)
        eventually(lambda: list(json.loads(source.report())["recordings"].values()) == [publication.position], 20)
    source.close()
    return _aeron.plan_recordings(directory, max_rows_per_partition=4)


def schemas(columns: dict[str, DataType]) -> st.SearchStrategy[StructType]:
    """Generates schemas with any columns in any order, nullable or not."""
    names = st.lists(st.sampled_from(sorted(columns)), unique=True)
    fields = names.flatmap(lambda names: st.tuples(*(st.tuples(st.just(name), st.booleans()) for name in names)))
    return fields.map(lambda chosen: StructType([StructField(name, columns[name], null) for name, null in chosen]))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_each_batch_has_the_requested_schema(pieces: list[str], data: st.DataObject) -> None:
    """08-10, 08-9"""
    given_options = data.draw(st.sampled_from(FORMATS))
    options = read_options({**OPTIONS, **given_options, "includeHeaders": "true"})
    columns: dict[str, Any] = {field.name: field.dataType for field in source_schema(options).fields}
    assert set(HEADERS) <= set(columns)
    schema = data.draw(schemas(columns))
    check_schema(schema, options)
    batches = [batch for piece in pieces for batch in read_partition(AeronPartition(piece), options, schema)]
    assert sum(batch.num_rows for batch in batches) == 10
    assert all(batch.schema.equals(arrow_schema(schema), check_metadata=False) for batch in batches)
