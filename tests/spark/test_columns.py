"""Tests of the source's columns: the default schema, all headers, and schemas of users. No Spark session is needed."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")
from pyspark.sql.types import IntegerType, LongType, ShortType, StructType

from aeron.spark.columns import check_schema, has_arrival_time, source_schema
from aeron.spark.errors import AeronOptionError
from aeron.spark.options import SourceOptions, read_stream_options

LAYOUT = "ts ts_ns, px f64, id u64, sym char[8], fee dec64:4"


def options(value_format: str = "binary", *, layout: str | None = None, headers: bool = False) -> SourceOptions:
    given = {"channel": "aeron:ipc", "streamId": "1001", "valueFormat": value_format, "includeHeaders": str(headers)}
    if layout is not None:
        given["valueSchema"] = layout
    return read_stream_options(given)


def names_and_types(schema: StructType) -> list[str]:
    assert all(field.nullable for field in schema.fields)
    return [f"{field.name} {field.dataType.simpleString()}" for field in schema.fields]


def test_the_default_schema_has_its_columns_in_order() -> None:
    """08-9"""
    assert names_and_types(source_schema(options())) == [
        "value binary",
        "stream_id int",
        "session_id int",
        "position bigint",
        "reserved_value bigint",
        "timestamp timestamp",
    ]
    assert names_and_types(source_schema(options("string")))[0] == "value string"


def test_include_headers_adds_all_other_columns_at_the_end() -> None:
    """08-9"""
    columns = names_and_types(source_schema(options(headers=True)))
    assert columns[:6] == names_and_types(source_schema(options()))
    assert columns[6:] == [
        "channel string",
        "recording_id bigint",
        "term_id int",
        "term_offset int",
        "flags smallint",
    ]


def test_records_have_no_headers_by_default() -> None:
    """08-9"""
    fields = ["ts timestamp", "px double", "id decimal(20,0)", "sym string", "fee decimal(18,4)"]
    assert names_and_types(source_schema(options("struct", layout=LAYOUT))) == fields
    asked = names_and_types(source_schema(options("struct", layout=LAYOUT, headers=True)))
    assert asked[:5] == fields
    assert asked[5] == "stream_id int"
    assert asked[-1] == "record_index int"


def test_a_field_of_a_record_replaces_a_header_with_the_same_name() -> None:
    columns = names_and_types(source_schema(options("struct", layout="Position i32, px f64", headers=True)))
    assert columns[0] == "Position int"
    assert "position bigint" not in columns


def test_arrival_times_are_needed_only_for_the_header_column() -> None:
    """08-26: a query needs arrival times only if its schema has the header column `timestamp`."""
    for given, shown in [
        (options(), True),
        (options("struct", layout="px f64"), False),
        (options("struct", layout="px f64", headers=True), True),
        (options("struct", layout="px f64, Timestamp i64", headers=True), False),
    ]:
        assert has_arrival_time(source_schema(given), given) is shown


def test_a_schema_may_name_any_subset_in_any_order() -> None:
    """08-9"""
    schema = StructType().add("position", LongType(), False).add("stream_id", IntegerType())
    check_schema(schema, options())
    check_schema(StructType().add("Flags", ShortType()), options())


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (StructType().add("px", LongType()), "column 'px' is not read by format aeron; it has value, stream_id, "),
        (StructType().add("value", LongType()), "column 'value' cannot be BIGINT; format aeron reads it as BINARY"),
        (StructType().add("flags", LongType()).add("flags", LongType()), "column 'flags' cannot be BIGINT"),
        (StructType().add("position", LongType()).add("position", LongType()), "column 'position' is twice"),
        (StructType().add("position", LongType()).add("Position", LongType()), "column 'Position' is twice"),
    ],
)
def test_a_schema_with_another_column_or_type_is_refused(schema: StructType, problem: str) -> None:
    """08-9"""
    with pytest.raises(AeronOptionError) as refused:
        check_schema(schema, options())
    assert str(refused.value).startswith(problem)
