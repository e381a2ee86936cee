"""Simple Binary Encoding: from the schema of an exchange to typed columns, and back.

>>> import aeron.sbe
>>> schema = aeron.sbe.Schema("market.xml")                   # doctest: +SKIP
>>> for batch in subscription.batches():                      # doctest: +SKIP
...     trades = schema["Trade"].to_arrow(batch)

A `Schema` has a `Template` for each message of the schema. Both are immutable and thread-safe.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from aeron._pipeline import _SbeColumns, _SbeSchema
from aeron.exceptions import ArgumentTypeError, InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

    from aeron._aeron import BufferClaim

__all__ = ["DecodedMessage", "Schema", "Template"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_INDEX = "message_index"


class Schema(Mapping[str, "Template"]):
    """A checked SBE schema: a mapping of names to templates. Immutable, so thread-safe; picklable.

    Args:
        path: Path of the schema's XML file. Files that the schema includes must be below its folder.
        text: The XML text, instead of a path.
        loader: Returns the text of an included file for its ``href``. `None` reads files below the schema's folder.
        timestamps: Units of integers that are timestamps, although the schema does not say so: ``{"ts": "us"}``. A key
            is the name of a field, or a path such as ``"Trade.legs.ts"``.
        decimals: Fields with the exponents of mantissas: ``{"price": "priceExponent"}``.

    Raises:
        InvalidArgumentError: If the schema breaks a rule. The text has line, element and rule.
        OSError: If a file cannot be read.
    """

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        *,
        text: str | None = None,
        loader: Callable[[str], str] | None = None,
        timestamps: Mapping[str, str] | None = None,
        decimals: Mapping[str, str] | None = None,
    ) -> None:
        if (path is None) == (text is None):
            raise InvalidArgumentError("a schema is a path or a text: pass one of them")
        if text is None:
            file = Path(path or "")
            text = file.read_text("utf-8-sig")
            loader = loader or _FolderLoader(file.parent)
        self._included: dict[str, str] = {}
        self._text = text
        self._options = {"timestamps": dict(timestamps or {}), "decimals": dict(decimals or {})}
        self._native = _SbeSchema(text, loader=loader and self._remembering(loader), **self._options)
        self._templates = {row[0]: Template(self, row) for row in self._native.templates}

    def _remembering(self, loader: Callable[[str], str]) -> Callable[[str], str]:
        def load(name: str) -> str:
            return self._included.setdefault(name, loader(name))

        return load

    def __reduce__(self) -> tuple[Callable[..., Schema], tuple[str, dict[str, str], dict[str, Any]]]:
        """Pickles the texts of the schema and of its included files."""
        return _restored, (self._text, self._included, self._options)

    @property
    def package(self) -> str:
        """Package of the schema; empty if it has none."""
        return self._native.package

    @property
    def id(self) -> int:
        """Id of the schema."""
        return self._native.id

    @property
    def version(self) -> int:
        """Version of the schema."""
        return self._native.version

    @property
    def semantic_version(self) -> str | None:
        """Version of the schema for people."""
        return self._native.semantic_version

    @property
    def description(self) -> str | None:
        """Description of the schema."""
        return self._native.description

    @property
    def warnings(self) -> Sequence[str]:
        """Parts of the schema without the effect that their author may expect."""
        return self._native.warnings

    def __getitem__(self, name: str) -> Template:
        """Returns the template of the message with this name."""
        try:
            return self._templates[name]
        except KeyError:
            raise KeyError(f"the schema has no message '{name}': it has {', '.join(self._templates)}") from None

    def __iter__(self) -> Iterator[str]:
        """Iterates over the names of the messages, in the order of the schema."""
        return iter(self._templates)

    def __len__(self) -> int:
        """Returns the number of messages."""
        return len(self._templates)

    def __repr__(self) -> str:
        """Returns package, id, version and number of messages."""
        return f"Schema('{self.package}', id={self.id}, version={self.version}, {len(self)} messages)"

    def _repr_html_(self) -> str:
        from aeron._html import of_sbe_schema

        return of_sbe_schema(self)

    def to_arrow(
        self, messages: Any, *, skip: int = 0, drop_malformed: bool = False, **columns: Any
    ) -> dict[str, pa.Table]:
        """Decodes messages of all templates in one pass.

        Args:
            messages: As for `Template.to_arrow`.
            skip: Number of bytes before the header of each message.
            drop_malformed: Whether malformed messages are dropped.
            **columns: ``decimal_scale``, ``sets`` and ``refuse_unknown``, as for `Template.to_arrow`.

        Returns:
            A table for each template that occurs. Its first column ``message_index`` has the index of the message, so
            that the order of all messages is known.

        Raises:
            InvalidArgumentError: If a message is malformed.
        """
        import pyarrow as pa

        if not hasattr(messages, "__arrow_c_array__") and hasattr(messages, "__arrow_c_stream__"):
            # A stream can be read only once, but there is one reading for each template.
            messages = pa.table(messages)
        found, _ = self._native.split(messages, skip)
        return {
            name: self[name]._table(
                self[name]._columns(None, columns), messages, None, skip, drop_malformed, index=_INDEX, of=of
            )
            for name, of in found
        }

    def decode(self, message: Any, *, skip: int = 0) -> DecodedMessage:
        """Decodes one message of any template.

        Args:
            message: The bytes of the message: any object with the buffer protocol.
            skip: Number of bytes before the header.

        Returns:
            The values of the message.

        Raises:
            InvalidArgumentError: If the message is malformed, or the schema does not have its template.
        """
        name, values = self._native.decode(message, skip)
        return self[name]._class(values)

    def template_of(self, message: Any, *, skip: int = 0) -> Template | None:
        """Returns the template of a message; `None` if the schema does not have it."""
        name = self._native.template_of(message, skip)
        return None if name is None else self[name]


class Template:
    """A message of a schema. Get it from a `Schema`: ``schema["Trade"]``. Immutable, so thread-safe."""

    def __init__(self, schema: Schema, row: tuple[str, int, int, int, str | None]) -> None:
        name, id, since_version, block_length, description = row
        self.schema = schema
        """The schema."""
        self.name = name
        """Name of the message."""
        self.id = id
        """Template id."""
        self.since_version = since_version
        """Version of the schema that added the message."""
        self.block_length = block_length
        """Length of the fixed fields in bytes."""
        self.description = description
        """Description in the schema."""
        self._native = schema._native
        self._elements = self._native.describe(name)
        self._class = _message_class(self)

    def __repr__(self) -> str:
        """Returns name, id and elements."""
        names = ", ".join(name for depth, name, *_ in self._elements if depth == 0)
        return f"Template('{self.name}', id={self.id}: {names})"

    def _repr_html_(self) -> str:
        from aeron._html import of_sbe_template

        return of_sbe_template(self)

    @property
    def names(self) -> Sequence[str]:
        """Names of the fields, groups and data, in their order."""
        return [name for depth, name, *_ in self._elements if depth == 0]

    # ---- to columns -------------------------------------------------------------------------------------------------

    def to_arrow(
        self,
        messages: Any,
        *,
        columns: Sequence[str] | None = None,
        group: str | None = None,
        skip: int = 0,
        drop_malformed: bool = False,
        decimal_scale: int | None = 9,
        sets: Literal["names", "booleans", "integer"] = "names",
        refuse_unknown: bool = False,
    ) -> pa.Table:
        """Decodes the messages of this template to typed columns. Messages of other templates are skipped.

        The metadata of the table's schema has the numbers of messages that became no rows: ``sbe.skipped`` and
        ``sbe.malformed``, and ``sbe.unknown``, the number of values of enums that the schema does not know.

        Args:
            messages: A batch of a subscription, the batches of a recording, any Arrow data with a column ``payload`` or
                ``value``, an Arrow array of bytes, or the bytes of one message.
            columns: Names of the columns; ``template_id``, ``schema_id`` and ``version`` are columns of the header.
                `None` selects all columns without those of the header.
            group: A group of which each entry becomes a row, with the fields of its message. By default, a group is a
                column of lists.
            skip: Number of bytes before the header of each message.
            drop_malformed: Whether malformed messages are dropped and counted.
            decimal_scale: Decimal places of decimals with their exponents in the messages, 0 to 38. `None` gives
                floats.
            sets: Whether a set is a list of names, a structure of booleans, or an integer.
            refuse_unknown: Whether a value of an enum that the schema does not know is malformed. By default, it is
                null.

        Returns:
            A table with a row for each message, or for each entry of `group`.

        Raises:
            InvalidArgumentError: If a message is malformed, or a column or group does not exist.
        """
        options = {"decimal_scale": decimal_scale, "sets": sets, "refuse_unknown": refuse_unknown}
        return self._table(self._columns(group, options), messages, columns, skip, drop_malformed)

    def arrow_schema(self, **options: Any) -> pa.Schema:
        """Returns the schema of the tables that `to_arrow` returns with these options."""
        import pyarrow as pa

        return pa.schema(self._columns(options.pop("group", None), options))

    def _columns(self, group: str | None, options: Mapping[str, Any]) -> _SbeColumns:
        return self._native.columns(self.name, group=group, **options)

    def _table(
        self,
        native: _SbeColumns,
        messages: Any,
        columns: Sequence[str] | None,
        skip: int,
        drop: bool,
        **more: Any,
    ) -> pa.Table:
        import pyarrow as pa

        names = None if columns is None else list(columns)
        batches, *counts = native.decode(messages, columns=names, skip=skip, drop=drop, **more)
        table = pa.Table.from_batches([pa.record_batch(batch) for batch in batches])
        keys = ("sbe.skipped", "sbe.malformed", "sbe.unknown")
        return table.replace_schema_metadata({key: str(count) for key, count in zip(keys, counts, strict=True)})

    def decode(self, message: Any, *, skip: int = 0) -> DecodedMessage:
        """Decodes one message of this template.

        Raises:
            InvalidArgumentError: If the message is malformed, or has another template.
        """
        decoded = self.schema.decode(message, skip=skip)
        if decoded.template is not self:
            raise InvalidArgumentError(f"the message is a {decoded.template.name}, not a {self.name}")
        return decoded

    # ---- to bytes ---------------------------------------------------------------------------------------------------

    def encode(self, messages: Any) -> pa.BinaryArray:
        """Encodes many messages.

        A missing required field is an error, and a missing optional field is null. Enums and sets are given by names,
        groups by lists of dicts.

        Args:
            messages: A list of dicts, an Arrow table or record batch, or a DataFrame of pandas or Polars.

        Returns:
            An Arrow array with the bytes of each message, for `Publication.offer_arrow`.

        Raises:
            InvalidArgumentError: If a value does not fit its field, or a required field is missing.
        """
        import pyarrow as pa

        if isinstance(messages, list | tuple):
            rows = [dict(message) for message in messages]
            return pa.record_batch(self._native.encode(self.name, rows))["value"]
        batches = self._native.encode_arrow(self.name, messages)
        if batches is None:
            kind = type(messages).__name__
            raise ArgumentTypeError(f"messages are a {kind}: pass a list of dicts, an Arrow table or a DataFrame")
        values = [pa.record_batch(batch)["value"] for batch in batches]
        return pa.concat_arrays(values) if values else pa.array([], pa.binary())

    def encode_one(self, message: Mapping[str, Any]) -> bytes:
        """Encodes one message, given as a dict. Returns its bytes.

        Raises:
            InvalidArgumentError: If a value does not fit its field, or a required field is missing.
        """
        return self._native.encode_one(self.name, dict(message))

    def encoded_length(self, **sizes: int) -> int:
        """Returns the length of a message in bytes, with its header.

        Args:
            **sizes: The number of entries of each group, and the number of bytes of each data: ``legs=2, note=10``.
        """
        return self._native.encoded_length(self.name, sizes)

    def write_to(self, claim: BufferClaim | memoryview | bytearray, **values: Any) -> int:
        """Encodes a message into a claimed or other buffer.

        Returns:
            The length of the message in bytes.

        Raises:
            InvalidArgumentError: If the message does not fit the buffer, or a value does not fit its field.
        """
        message = self.encode_one(values)
        buffer = memoryview(claim if isinstance(claim, memoryview | bytearray) else claim.view)
        if len(message) > len(buffer):
            raise InvalidArgumentError(f"the message of {len(message)} bytes does not fit {len(buffer)} bytes")
        buffer[: len(message)] = message
        return len(message)


class DecodedMessage:
    """The values of one message.

    Each field, group and data is an attribute. A name that is a keyword of Python ends with ``_``. An enum is its name,
    or its number if the schema does not know it; a set is a list of names; a time is an integer in the unit of its
    field; a group is a list of dicts. A null is `None`.
    """

    __slots__ = ("_values",)
    template: Template
    """The template of the message."""

    if TYPE_CHECKING:
        # The attributes are those of the template. Type checkers cannot know them.
        def __getattr__(self, name: str) -> Any:
            """Returns the value with this name."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def as_dict(self) -> dict[str, Any]:
        """Returns all values by name."""
        return dict(self._values)

    def __repr__(self) -> str:
        """Returns the values as a text."""
        values = ", ".join(f"{name}={value!r}" for name, value in self._values.items())
        return f"{self.template.name}({values})"

    def __eq__(self, other: object) -> bool:
        """Compares templates by name, and all values."""
        if not isinstance(other, DecodedMessage):
            return NotImplemented
        return self.template.name == other.template.name and self._values == other._values

    __hash__ = None  # type: ignore[assignment]


def _message_class(template: Template) -> type[DecodedMessage]:
    def attribute(name: str) -> property:
        return property(lambda message: message._values[name], doc=f"The value of ``{name}``.")

    reserved = {"as_dict", "template"}
    names = {f"{name}_" if keyword.iskeyword(name) or name in reserved else name: name for name in template.names}
    members = {attribute_name: attribute(name) for attribute_name, name in names.items()}
    return type(template.name, (DecodedMessage,), {"__slots__": (), "template": template, **members})


class _FolderLoader:
    """Reads included files below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def __call__(self, name: str) -> str:
        file = (self._folder / name).resolve()
        if not file.is_relative_to(self._folder):
            raise InvalidArgumentError(f"included file '{name}' is not below the schema's folder: pass a loader")
        return file.read_text("utf-8-sig")


def _restored(text: str, included: dict[str, str], options: dict[str, Any]) -> Schema:
    return Schema(text=text, loader=included.__getitem__ if included else None, **options)


# ---- called by the native module, which encodes times ---------------------------------------------------------------


def _epoch_ns(value: Any) -> int:
    """Returns the nanoseconds from 1970 to a time. A time without a zone is in UTC."""
    if hasattr(value, "dtype"):
        return int(value.astype("datetime64[ns]").astype("int64"))
    if not isinstance(value, datetime):
        raise InvalidArgumentError(f"{value!r} is no time: pass an integer or a datetime")
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND * 1000 + getattr(value, "nanosecond", 0)


def _midnight_ns(value: Any) -> int:
    """Returns the nanoseconds from midnight to a time of day."""
    if not isinstance(value, time):
        raise InvalidArgumentError(f"{value!r} is no time of day: pass an integer or a time")
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000_000 + value.microsecond * 1000


def _epoch_days(value: Any) -> int:
    """Returns the days from 1970 to a date."""
    if not isinstance(value, date):
        raise InvalidArgumentError(f"{value!r} is no date: pass an integer or a date")
    return (date(value.year, value.month, value.day) - _EPOCH.date()).days
