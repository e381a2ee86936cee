"""The columns of a source: which there are, of which types, and whether a schema of the user's names them rightly."""

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

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["HEADERS", "arrow_schema", "available_columns", "check_schema", "default_schema", "record_fields"]

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
"""What the source knows of each message beside its payload, in the order of the default schema."""

_ALWAYS = ("stream_id", "session_id", "position", "reserved_value", "timestamp")
"""Header columns that come without ``includeHeaders``, unless the payload is a record."""

_RECORD_HEADERS: Mapping[str, DataType] = {**HEADERS, "record_index": IntegerType()}
"""With records, also the number of the record within its message, from 0."""


def record_fields(layout: pa.Schema) -> dict[str, DataType]:
    """Names and Spark types of a record's fields; `layout` is the Arrow schema of what it decodes to."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return {field.name: field.dataType for field in from_arrow_schema(layout).fields}


def available_columns(value_format: str, fields: Mapping[str, DataType] | None = None) -> dict[str, DataType]:
    """Every column of a source with this ``valueFormat``; `fields` are those of a record, and win over headers."""
    if value_format == "struct":
        assert fields is not None
        return {**fields, **{name: type_ for name, type_ in _RECORD_HEADERS.items() if name not in fields}}
    return {"value": StringType() if value_format == "string" else BinaryType(), **HEADERS}


def default_schema(
    value_format: str, fields: Mapping[str, DataType] | None = None, *, include_headers: bool = False
) -> StructType:
    """The schema of a source to which the user gives none. Every column may be null."""
    available = available_columns(value_format, fields)
    if include_headers:
        names = list(available)
    elif value_format == "struct":
        names = list(fields or ())
    else:
        names = ["value", *_ALWAYS]
    return StructType([StructField(name, available[name], True) for name in names])


def check_schema(schema: StructType, available: Mapping[str, DataType]) -> None:
    """Refuses a schema that names a column which is not there, names one twice, or with another type.

    Raises :class:`~aeron.spark.errors.AeronOptionError`.
    """
    seen = set()
    for field in schema.fields:
        if field.name not in available:
            raise AeronOptionError(f"column '{field.name}' is not read by format aeron; it has {', '.join(available)}")
        if field.name in seen:
            raise AeronOptionError(f"column '{field.name}' is twice in the schema; name each column once")
        seen.add(field.name)
        right = available[field.name]
        if field.dataType != right:
            raise AeronOptionError(
                f"column '{field.name}' cannot be {_sql(field.dataType)}; format aeron reads it as {_sql(right)}"
            )


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark expects of what is read with `schema`, to the letter."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def _sql(type_: DataType) -> str:
    return type_.simpleString().upper()
