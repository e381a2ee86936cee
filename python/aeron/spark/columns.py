"""The columns of a source and their types, and the check of a user's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from aeron.spark.errors import AeronOptionError
from aeron.spark.payloads import payload_of, sql

if TYPE_CHECKING:
    import pyarrow as pa

    from aeron.spark.options import SourceOptions

__all__ = ["HEADERS", "arrow_schema", "available_columns", "check_schema", "has_arrival_time", "source_schema"]

HEADERS: Mapping[str, DataType] = {
    "stream_id": IntegerType(),
    "session_id": IntegerType(),
    "position": LongType(),
    "reserved_value": LongType(),
    "timestamp": TimestampType(),
    "channel": StringType(),
    "recording_id": LongType(),
    "term_id": IntegerType(),
    "term_offset": IntegerType(),
    "flags": ShortType(),
}
"""All columns of a message except its payload, in the order of the default schema."""

CORRUPT_RECORD = "_corrupt_record"
"""Column with the bytes of a malformed message or record, with ``mode=PERMISSIVE``. The name is Spark's."""


def source_schema(options: SourceOptions) -> StructType:
    """Returns the default schema of a source. All columns are nullable."""
    payload = payload_of(options)
    available = available_columns(options)
    kept = [CORRUPT_RECORD] if CORRUPT_RECORD in available else []
    names = available if options.include_headers else dict.fromkeys([*payload.default_columns, *kept])
    return StructType([StructField(name, available[name], True) for name in names])


def check_schema(schema: StructType, options: SourceOptions) -> None:
    """Refuses a user's schema with an unknown column, a column that occurs twice, or a column of another type.

    Raises :class:`~aeron.spark.errors.AeronOptionError`.
    """
    available = available_columns(options)
    types = {name.lower(): type_ for name, type_ in available.items()}
    seen = set()
    for field in schema.fields:
        name = field.name.lower()
        if name not in types:
            raise AeronOptionError(f"column '{field.name}' is not read by format aeron; it has {', '.join(available)}")
        if name in seen:
            raise AeronOptionError(f"column '{field.name}' is twice in the schema; name each column once")
        seen.add(name)
        if field.dataType != types[name]:
            found, right = sql(field.dataType), sql(types[name])
            raise AeronOptionError(f"column '{field.name}' cannot be {found}; format aeron reads it as {right}")


def available_columns(options: SourceOptions) -> dict[str, DataType]:
    """Returns all columns of a source. A column of the payload hides a header column of the same name."""
    payload = payload_of(options)
    headers = {**HEADERS, **payload.more_headers}
    if options.mode == "PERMISSIVE":
        if CORRUPT_RECORD in payload.names:
            raise AeronOptionError(f"option mode: PERMISSIVE needs the name {CORRUPT_RECORD}, which a field has")
        headers[CORRUPT_RECORD] = BinaryType()
    return {**payload.columns, **{name: type_ for name, type_ in headers.items() if name not in payload.names}}


def has_arrival_time(schema: StructType, options: SourceOptions) -> bool:
    """Returns whether the schema has the arrival time. A column of the payload named ``timestamp`` hides it."""
    return "timestamp" in {name.lower() for name in schema.names} - payload_of(options).names


def hidden_headers(options: SourceOptions) -> frozenset[str]:
    """Returns the names of the payload's columns, in lower case. Such a column hides a header column of the same
    name."""
    return payload_of(options).names


def arrow_schema(schema: StructType) -> pa.Schema:
    """Returns the exact Arrow schema that Spark expects for rows with `schema`."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")
