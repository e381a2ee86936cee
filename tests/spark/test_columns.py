"""Columns of the source: the default schema, all headers, and schemas of the user's. No session is needed."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")
import pyarrow as pa
from pyspark.sql.types import IntegerType, LongType, StructType

from aeron.spark.columns import available_columns, check_schema, default_schema, record_fields
from aeron.spark.errors import AeronOptionError

FIELDS = record_fields(
    pa.schema(
        [
            ("ts", pa.timestamp("us", "UTC")),
            ("px", pa.float64()),
            ("id", pa.decimal128(20, 0)),
            ("sym", pa.string()),
            ("fee", pa.decimal128(18, 4)),
        ]
    )
)


def names_and_types(schema: StructType) -> list[str]:
    assert all(field.nullable for field in schema.fields)
    return [f"{field.name} {field.dataType.simpleString()}" for field in schema.fields]


def test_the_default_schema_and_its_order() -> None:
    """08-9"""
    assert names_and_types(default_schema("binary")) == [
        "value binary",
        "stream_id int",
        "session_id int",
        "position bigint",
        "reserved_value bigint",
        "timestamp timestamp",
    ]
    assert names_and_types(default_schema("string"))[0] == "value string"


def test_include_headers_adds_all_others_behind() -> None:
    """08-9"""
    columns = names_and_types(default_schema("binary", include_headers=True))
    assert columns[:6] == names_and_types(default_schema("binary"))
    assert columns[6:] == [
        "channel string",
        "recording_id bigint",
        "term_id int",
        "term_offset int",
        "flags smallint",
    ]


def test_records_come_without_headers_unless_asked_for() -> None:
    """08-9"""
    fields = ["ts timestamp", "px double", "id decimal(20,0)", "sym string", "fee decimal(18,4)"]
    assert names_and_types(default_schema("struct", FIELDS)) == fields
    asked = names_and_types(default_schema("struct", FIELDS, include_headers=True))
    assert asked[:5] == fields
    assert asked[5] == "stream_id int"
    assert asked[-1] == "record_index int"


def test_a_field_of_a_record_wins_over_a_header_of_its_name() -> None:
    fields = record_fields(pa.schema([("position", pa.int32()), ("px", pa.float64())]))
    columns = names_and_types(default_schema("struct", fields, include_headers=True))
    assert columns[0] == "position int"
    assert "position bigint" not in columns


def test_a_schema_may_name_any_subset_in_any_order() -> None:
    """08-9"""
    schema = StructType().add("position", LongType(), False).add("stream_id", IntegerType())
    check_schema(schema, available_columns("binary"))
    check_schema(StructType(), available_columns("binary"))


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (StructType().add("px", LongType()), "column 'px' is not read by format aeron; it has value, stream_id, "),
        (StructType().add("value", LongType()), "column 'value' cannot be BIGINT; format aeron reads it as BINARY"),
        (StructType().add("flags", LongType()).add("flags", LongType()), "column 'flags' cannot be BIGINT"),
        (StructType().add("position", LongType()).add("position", LongType()), "column 'position' is twice"),
        (StructType().add("Position", LongType()), "column 'Position' is not read"),
    ],
)
def test_a_schema_with_another_column_or_type_is_refused(schema: StructType, problem: str) -> None:
    """08-9"""
    with pytest.raises(AeronOptionError) as refused:
        check_schema(schema, available_columns("binary"))
    assert str(refused.value).startswith(problem)
