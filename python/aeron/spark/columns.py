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

from aeron import _pipeline
from aeron.spark.errors import AeronOptionError

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

_ALWAYS = ("stream_id", "session_id", "position", "reserved_value", "timestamp")
"""Header columns of the default schema without ``includeHeaders``, if the payload is not a record."""

_RECORD_HEADERS: Mapping[str, DataType] = {**HEADERS, "record_index": IntegerType()}
"""Header columns of a payload of records. ``record_index`` is the index of a record in its message, from 0.
"""


def source_schema(options: SourceOptions) -> StructType:
    """Returns the default schema of a source. All columns are nullable."""
    fields = _fields(options)
    available = available_columns(options.value_format, fields)
    if options.include_headers:
        names = list(available)
    elif options.value_format == "struct":
        names = list(fields)
    else:
        names = ["value", *_ALWAYS]
    return StructType([StructField(name, available[name], True) for name in names])


def check_schema(schema: StructType, options: SourceOptions) -> None:
    """Refuses a user's schema with an unknown column, a column that occurs twice, or a column of another type.

    Raises :class:`~aeron.spark.errors.AeronOptionError`.
    """
    available = available_columns(options.value_format, _fields(options))
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
            found, right = _sql(field.dataType), _sql(types[name])
            raise AeronOptionError(f"column '{field.name}' cannot be {found}; format aeron reads it as {right}")


def available_columns(value_format: str, fields: Mapping[str, DataType]) -> dict[str, DataType]:
    """Returns all columns of a source with this ``valueFormat``. A record field hides a header column of the same
    name."""
    if value_format == "struct":
        taken = {name.lower() for name in fields}
        return {**fields, **{name: type_ for name, type_ in _RECORD_HEADERS.items() if name not in taken}}
    return {"value": StringType() if value_format == "string" else BinaryType(), **HEADERS}


def has_arrival_time(schema: StructType, options: SourceOptions) -> bool:
    """Returns whether the schema has the arrival time. A record field named ``timestamp`` hides it."""
    names = {name.lower() for name in schema.names}
    return "timestamp" in names and "timestamp" not in {name.lower() for name in _fields(options)}


def hidden_headers(options: SourceOptions) -> frozenset[str]:
    """Returns the names of the record fields, in lower case. A record field hides a header column of the same name."""
    is_record = options.value_format == "struct"
    return frozenset(name.lower() for name in _fields(options)) if is_record else frozenset()


def arrow_schema(schema: StructType) -> pa.Schema:
    """Returns the exact Arrow schema that Spark expects for rows with `schema`."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def _fields(options: SourceOptions) -> dict[str, DataType]:
    """Returns the names and Spark types of a record's fields; empty if the payload has no records."""
    if options.value_schema is None:
        return {}
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    layout = pa.schema(_pipeline.Layout(options.value_schema))
    return {field.name: field.dataType for field in from_arrow_schema(layout).fields}


def _sql(type_: DataType) -> str:
    return type_.simpleString().upper()
