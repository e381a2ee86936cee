"""The formats of payloads: the columns of each ``valueFormat``, and the columns that a sink takes for it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import BinaryType, DataType, IntegerType, LongType, StringType

from aeron._pipeline import Layout, _SbeSchema
from aeron.exceptions import AeronError
from aeron.spark.errors import AeronOptionError
from aeron.spark.options import SinkOptions, SourceOptions

if TYPE_CHECKING:
    from aeron.spark.option_values import SbeSchemaText

__all__ = ["SINK_HEADERS", "PayloadFormat", "payload_of", "sql", "wrong_type"]

SINK_HEADERS: Mapping[str, DataType] = {"stream_id": IntegerType(), "reserved_value": LongType()}
"""Columns that a sink reads itself, for every format."""

_VALUE_HEADERS = ("stream_id", "session_id", "position", "reserved_value", "timestamp")
"""Header columns of the default schema without ``includeHeaders``, if the payload is one value."""

_COLUMNS = "select value [, stream_id] [, reserved_value], or set valueFormat=struct"


class PayloadFormat(ABC):
    """The columns of a payload."""

    columns: Mapping[str, DataType]
    """Columns of the payload, in the order of the default schema."""
    more_headers: Mapping[str, DataType] = {}
    """Header columns that only this format has."""
    native_schema: str | None = None
    """The text that describes the format to the native module, with the name of the format."""

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the columns, in lower case."""
        return frozenset(name.lower() for name in self.columns)

    @property
    def default_columns(self) -> Sequence[str]:
        """The names of the columns in the default schema of a source."""
        return list(self.columns)

    @abstractmethod
    def check_written(self, columns: Mapping[str, DataType]) -> None:
        """Refuses columns of a DataFrame that the sink cannot encode. Raises `AeronOptionError`."""


class _Value(PayloadFormat):
    """One column ``value`` of bytes or text."""

    def __init__(self, type_: DataType) -> None:
        self.columns = {"value": type_}

    @property
    def default_columns(self) -> Sequence[str]:
        return ["value", *_VALUE_HEADERS]

    def check_written(self, columns: Mapping[str, DataType]) -> None:
        for name in columns:
            if name != "value" and name not in SINK_HEADERS:
                raise AeronOptionError(f"column '{name}' is not written by format aeron; {_COLUMNS}")
        if "value" not in columns:
            raise AeronOptionError(f"column 'value' is missing; {_COLUMNS}")
        if not isinstance(columns["value"], BinaryType | StringType):
            raise wrong_type("value", columns["value"], "BINARY or STRING")


class _Records(PayloadFormat):
    """A column for each field of a record layout. ``record_index`` is the index of a record in its message, from 0."""

    more_headers: Mapping[str, DataType] = {"record_index": IntegerType()}

    def __init__(self, layout: str) -> None:
        self.columns = _spark_types(Layout(layout))
        self.native_schema = self._layout = layout

    def check_written(self, columns: Mapping[str, DataType]) -> None:
        for name, type_ in self.columns.items():
            if name in SINK_HEADERS:
                raise AeronOptionError(
                    f"option valueSchema: field '{name}' is a column that the sink reads itself; rename the field"
                )
            if name not in columns:
                raise AeronOptionError(f"column '{name}' is missing; valueSchema is '{self._layout}'")
            if columns[name] != type_:
                raise wrong_type(name, columns[name], sql(type_))
        for name in columns:
            if name not in self.columns and name not in SINK_HEADERS:
                raise AeronOptionError(
                    f"column '{name}' is not in valueSchema '{self._layout}'; drop it, or add it to the layout"
                )


class _Sbe(PayloadFormat):
    """A column for each field, group and data of an SBE message.

    With a group, ``record_index`` is the index of an entry in its message, from 0.
    """

    def __init__(self, options: SourceOptions | SinkOptions, schema: SbeSchemaText) -> None:
        columns: dict[str, Any] = {}
        if isinstance(options, SourceOptions):
            scale = options.sbe_decimal_scale
            columns = {
                "group": options.sbe_group,
                "decimal_scale": None if scale == -1 else scale,
                "sets": options.sbe_sets,
                "enums": options.sbe_enums,
                "refuse_unknown": options.sbe_unknown_enums == "malformed",
            }
        self._template = options.sbe_template or ""
        described = {"text": schema.text, "included": dict(schema.included), "template": self._template}
        meanings = {"timestamps": dict(options.sbe_timestamps or ()), "decimals": dict(options.sbe_decimals or ())}
        self.native_schema = json.dumps({**described, **meanings, "decimal_scale": 9, **columns})
        loader = dict(schema.included).__getitem__ if schema.included else None
        try:
            native = _SbeSchema(schema.text, loader=loader, **meanings)
        except AeronError as error:
            raise AeronOptionError(f"option sbe.{error}") from None
        try:
            table = native.columns(self._template, **columns, for_spark=True)
        except AeronError as error:
            raise AeronOptionError(f"option sbe.template: {error}") from None
        self.columns = _spark_types(table)
        elements = native.describe(self._template)
        self._required = [name for depth, name, _, _, presence, _ in elements if not depth and presence == "required"]
        headers: dict[str, DataType] = {name: LongType() for name in ("template_id", "schema_id", "version")}
        self.more_headers = {**headers, "record_index": IntegerType()} if columns.get("group") else headers

    def check_written(self, columns: Mapping[str, DataType]) -> None:
        for name, type_ in columns.items():
            if name in SINK_HEADERS and name not in self.columns:
                continue
            if name in SINK_HEADERS:
                raise AeronOptionError(f"option sbe.template: field '{name}' is a column that the sink reads itself")
            if name not in self.columns:
                raise AeronOptionError(f"column '{name}' is not in message {self._template}; drop it")
            # The texts do not say whether items of arrays may be null.
            if type_.simpleString() != self.columns[name].simpleString():
                raise wrong_type(name, type_, sql(self.columns[name]))
        missing = next((name for name in self._required if name not in columns), None)
        if missing is not None:
            raise AeronOptionError(f"column '{missing}' is missing, a required field of message {self._template}")


def _spark_types(schema: Any) -> dict[str, DataType]:
    """Returns names and Spark types of the columns of a native schema."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    return {field.name: field.dataType for field in from_arrow_schema(pa.schema(schema)).fields}


def payload_of(options: SourceOptions | SinkOptions) -> PayloadFormat:
    """Returns the format that the options name: ``valueFormat``, and the options of its schema."""
    if (schema := options.sbe_schema or options.sbe_schema_text) is not None:
        return _Sbe(options, schema)
    if options.value_schema is not None:
        return _Records(options.value_schema)
    return _Value(StringType() if options.value_format == "string" else BinaryType())


def wrong_type(name: str, type_: DataType, expected: str) -> AeronOptionError:
    """Returns the error for a column of another type than `expected`."""
    return AeronOptionError(f"column '{name}' cannot be {sql(type_)}; format aeron writes {expected}, cast it")


def sql(type_: DataType) -> str:
    """Returns the name of a type in SQL."""
    return type_.simpleString().upper()
