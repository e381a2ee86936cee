"""Simple Binary Encoding: from the schema of an exchange to typed columns, and back.

>>> import aeron.sbe
>>> schema = aeron.sbe.Schema("market.xml")                   # doctest: +SKIP
>>> for batch in subscription.batches():                      # doctest: +SKIP
...     trades = schema["Trade"].to_arrow(batch)

A `Schema` has a `Template` for each message of the schema. Both are immutable and thread-safe.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from aeron._pipeline import _SbeBlock, _SbeColumns, _SbeSchema
from aeron._sbe_arguments import EnumColumn, SetColumn, column_options, not_negative, parts, writable
from aeron._sbe_files import FolderLoader, xml_text
from aeron._sbe_records import DecodedEntry, DecodedGroup, DecodedMessage, message_class
from aeron.exceptions import ArgumentTypeError, InvalidArgumentError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from aeron.types import MalformedTreatment

__all__ = ["DecodedEntry", "DecodedGroup", "DecodedMessage", "DecodedTables", "Schema", "Template"]

_INDEX = "message_index"
_AFTER = ("group", "data")


class Schema(Mapping[str, "Template"]):
    """A checked SBE schema: a mapping of names to templates. Immutable, so thread-safe; picklable.

    Args:
        path: Path of the schema's XML file. Files that the schema includes must be below its folder.
        text: The XML text, instead of a path. Bytes have the encoding that their XML declaration names.
        loader: Returns the text of an included file for its name relative to the schema. `None` reads files below the
            schema's folder.
        timestamps: Units of integers that are timestamps, if the schema does not state them: ``{"ts": "us"}``. A key is
            the name of a field or of a type, or a path such as ``"Trade.legs.ts"``.
        decimals: Fields with the exponents of mantissas: ``{"price": "priceExponent"}``.

    Raises:
        InvalidArgumentError: If the schema breaks a rule. The text has line, element and rule.
        OSError: If a file cannot be read.
    """

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        *,
        text: str | bytes | None = None,
        loader: Callable[[str], str] | None = None,
        timestamps: Mapping[str, str] | None = None,
        decimals: Mapping[str, str] | None = None,
    ) -> None:
        if (path is None) == (text is None):
            raise InvalidArgumentError("a schema is a path or a text: pass one of them")
        if text is None:
            file = Path(path or "")
            text = file.read_bytes()
            loader = loader or FolderLoader(file.parent)
        self._included: dict[str, str] = {}
        self._text = text if isinstance(text, str) else xml_text(text, str(path or "the schema"))
        self._options = {"timestamps": dict(timestamps or {}), "decimals": dict(decimals or {})}
        self._native = _SbeSchema(self._text, loader=loader and self._remembering(loader), **self._options)
        rows = zip(self._native.templates, self._native.blocks, strict=True)
        self._templates = {row[0]: Template(self, row, block) for row, block in rows}
        self._classes = tuple(template._class for template in self._templates.values())

    def _remembering(self, loader: Callable[[str], str]) -> Callable[[str], str]:
        def load(name: str) -> str:
            return self._included.setdefault(name, loader(name))

        return load

    def __reduce__(self) -> tuple[Callable[..., Schema], tuple[str, dict[str, str], dict[str, Any]]]:
        """Pickles the texts of the schema and of its included files."""
        return _restored, (self._text, self._included, self._options)

    def __eq__(self, other: object) -> bool:
        """Compares the texts of the schemas and of their included files, and the options."""
        if not isinstance(other, Schema):
            return NotImplemented
        return (self._text, self._included, self._options) == (other._text, other._included, other._options)

    def __hash__(self) -> int:
        """Returns a hash of the schema's text."""
        return hash(self._text)

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
        self,
        messages: Any,
        *,
        skip: int = 0,
        malformed: MalformedTreatment = "fail",
        decimal_scale: int | None = 9,
        sets: SetColumn = "names",
        enums: EnumColumn = "names",
        refuse_unknown: bool = False,
    ) -> DecodedTables:
        """Decodes messages of all templates in one pass.

        Args:
            messages: As for `Template.to_arrow`.
            skip: Number of bytes before the header of each message.
            malformed: As for `Template.to_arrow`. A message without a whole header is in no table.
            decimal_scale: As for `Template.to_arrow`.
            sets: As for `Template.to_arrow`.
            enums: As for `Template.to_arrow`.
            refuse_unknown: As for `Template.to_arrow`.

        Returns:
            A table for each template that occurs. Its first column ``message_index`` has the index of the message, so
            that the order of all messages is known. The name gets a ``_`` if a field has it.

        Raises:
            InvalidArgumentError: If a message is malformed.
        """
        taken = parts(messages)
        found, others, short = self._native.split(taken, not_negative("skip", skip))
        if short and malformed == "fail":
            raise InvalidArgumentError(f"message {short[0]}: it is shorter than its header")
        options = column_options(decimal_scale, sets, enums, refuse_unknown)
        tables = DecodedTables(others, len(short))
        for name, of in found:
            template = self[name]
            index = _INDEX
            while index in template.names:
                index += "_"
            columns = template._columns(None, options)
            tables[name] = table = template._table(columns, taken, None, skip, malformed, index=index, of=of)
            tables.malformed += int((table.schema.metadata or {})[b"sbe.malformed"])
        return tables

    def stub(self, path: str | PathLike[str] | None = None) -> str:
        """Returns the types of all messages as the text of a ``.pyi`` file, for editors and type checkers.

        Args:
            path: Path of a file to which the text is written too.

        Returns:
            The text. It has a class for each message, which is a `DecodedMessage`: ``cast("market.Trade", decoded)``.

        Raises:
            OSError: If the file cannot be written.
        """
        from aeron._sbe_stub import stub_of

        text = stub_of(self)
        if path is not None:
            Path(path).write_text(text, "utf-8")
        return text

    def decode(self, message: Any, *, skip: int = 0) -> DecodedMessage:
        """Decodes one message of any template.

        Args:
            message: The bytes of the message: any object with the buffer protocol.
            skip: Number of bytes before the header.

        Returns:
            The message, which reads its values from `message` when they are used.

        Raises:
            InvalidArgumentError: If the message is malformed, or the schema does not have its template. A value that is
                malformed, such as a text with foreign bytes, raises when it is used.
        """
        decoded: DecodedMessage = self._native.decode(message, skip and not_negative("skip", skip), self._classes)
        return decoded

    def template_of(self, message: Any, *, skip: int = 0) -> Template | None:
        """Returns the template of a message; `None` if the schema does not have it."""
        name = self._native.template_of(message, not_negative("skip", skip))
        return None if name is None else self[name]


class DecodedTables(dict[str, "pa.Table"]):
    """Tables by the names of their templates, and the numbers of messages without a row."""

    skipped: int
    """Number of messages of templates that the schema does not have."""
    malformed: int
    """Number of malformed messages: left out, or kept as rows without values."""

    def __init__(self, skipped: int, malformed: int) -> None:
        super().__init__()
        self.skipped = skipped
        self.malformed = malformed


class Template:
    """A message of a schema. Get it from a `Schema`: ``schema["Trade"]``. Immutable, so thread-safe."""

    def __init__(self, schema: Schema, row: tuple[str, int, int, int, str | None], block: _SbeBlock) -> None:
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
        self._block = block
        self._class = message_class(block, self)
        self._dtype: np.dtype[Any] | None = None

    def __reduce__(self) -> tuple[Callable[..., Template], tuple[Schema, str]]:
        """Pickles the schema and the name of the message."""
        return _template_of, (self.schema, self.name)

    def __eq__(self, other: object) -> bool:
        """Compares the schemas and the names of the messages."""
        if not isinstance(other, Template):
            return NotImplemented
        return self.name == other.name and self.schema == other.schema

    def __hash__(self) -> int:
        """Returns a hash of the name and the schema."""
        return hash((self.name, self.schema))

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
        malformed: MalformedTreatment = "fail",
        decimal_scale: int | None = 9,
        sets: SetColumn = "names",
        enums: EnumColumn = "names",
        refuse_unknown: bool = False,
    ) -> pa.Table:
        """Decodes the messages of this template to typed columns. Messages of other templates are skipped.

        The metadata of the table's schema has the numbers of messages that became no rows: ``sbe.skipped`` and
        ``sbe.malformed``, and ``sbe.unknown``, the number of values of enums that the schema does not know, and of sets
        with bits that it does not know.

        Args:
            messages: A batch of a subscription, the batches of a recording, any Arrow data with a column ``payload`` or
                ``value``, an Arrow array of bytes, the bytes of one message, or a list or an iterator of such objects.
            columns: Names of the columns; ``template_id``, ``schema_id`` and ``version`` are columns of the header.
                `None` selects all columns without those of the header.
            group: A group of which each entry becomes a row, with the fields of its message. A path such as
                ``legs.fills`` names a group in a group: a row has the fields of all entries around it. By default, a
                group is a column of lists.
            skip: Number of bytes before the header of each message.
            malformed: Treatment of malformed messages: ``"fail"`` raises `InvalidArgumentError`, and ``"drop"`` leaves
                them out. ``"keep"`` gives a row without values for each of them, with its bytes in the column
                ``_corrupt_record``.
            decimal_scale: Decimal places of decimals with their exponents in the messages, 0 to 38. `None` gives
                floats.
            sets: Whether a set is a list of names, a structure of booleans, or an integer.
            enums: Whether a value of an enum is its name or its integer.
            refuse_unknown: Whether a value of an enum, or a bit of a set, that the schema does not know is malformed.
                By default, the value is null, and the bit is left out. Integers keep both.

        Returns:
            A table with a row for each message, or for each entry of `group`.

        Raises:
            InvalidArgumentError: If a message is malformed, or a column or group does not exist.
        """
        native = self._columns(group, column_options(decimal_scale, sets, enums, refuse_unknown))
        return self._table(native, parts(messages), columns, not_negative("skip", skip), malformed)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the rows of `to_numpy`: the fields with their offsets, byte order and encoding.

        Enums and sets are integers. A ``char[n]`` is ``S``, without the zeros at its end, and UTF-16 is ``V``. A
        decimal is its mantissa if the exponent is not in the field. A timestamp or date in an ``int64`` is
        ``datetime64``, other times are integers. Other composites are nested types. Constants take no bytes and are
        left out.

        Raises:
            InvalidArgumentError: If the template has groups or data.
        """
        if self._dtype is None:
            from aeron._sbe_numpy import dtype_of

            after = [name for depth, name, kind, *_ in self._elements if depth == 0 and kind.split()[0] in _AFTER]
            if after:
                reason = f"{self.name} has groups or data without a fixed place ({', '.join(after)}): use to_arrow"
                raise InvalidArgumentError(reason)
            self._dtype = dtype_of(self._native.formats(self.name), self.block_length)
        return self._dtype

    def to_numpy(
        self, messages: Any, *, skip: int = 0, malformed: Literal["fail", "drop"] = "fail"
    ) -> np.ndarray[Any, Any]:
        """Returns the fields of the messages of this template as they are encoded: a structured array of `dtype`.

        Messages of other templates are skipped. Nulls are the null values of the schema. A field that a message does
        not have, because an older version wrote it, has its null value too; a text and a set have zeros.

        Args:
            messages: As for `to_arrow`.
            skip: Number of bytes before the header of each message.
            malformed: Treatment of malformed messages: ``"fail"`` raises `InvalidArgumentError`, and ``"drop"`` leaves
                them out.

        Returns:
            A read-only array with a row for each message. It is a view of the messages, without a copy, if they are one
            Arrow array of consecutive messages of the same length, and all have this template, its block length and all
            its fields.

        Raises:
            InvalidArgumentError: If a message is malformed, or the template has groups or data.
        """
        _ = self.dtype
        from aeron._sbe_numpy import rows_of

        if malformed not in ("fail", "drop"):
            raise InvalidArgumentError(
                f"malformed={malformed!r}: a row has no place for the message: pass fail or drop"
            )
        return rows_of(self, messages, not_negative("skip", skip), malformed == "drop")

    def arrow_schema(
        self,
        *,
        group: str | None = None,
        decimal_scale: int | None = 9,
        sets: SetColumn = "names",
        enums: EnumColumn = "names",
        refuse_unknown: bool = False,
    ) -> pa.Schema:
        """Returns the schema of the tables that `to_arrow` returns with these options."""
        import pyarrow as pa

        return pa.schema(self._columns(group, column_options(decimal_scale, sets, enums, refuse_unknown)))

    def _format_text(self) -> str:
        """Returns the text by which the native module reads a recording with this template."""
        schema = self.schema
        texts = {"text": schema._text, "included": schema._included, **schema._options}
        return json.dumps({**texts, "template": self.name, "decimal_scale": 9, "for_spark": False})

    def _columns(self, group: str | None, options: Mapping[str, Any]) -> _SbeColumns:
        return self._native.columns(self.name, group=group, **options)

    def _table(
        self,
        native: _SbeColumns,
        messages: Any,
        columns: Sequence[str] | None,
        skip: int,
        malformed: MalformedTreatment,
        **more: Any,
    ) -> pa.Table:
        import pyarrow as pa

        names = None if columns is None else list(columns)
        batches, *counts = native.decode(messages, columns=names, skip=skip, malformed=malformed, **more)
        found = [pa.record_batch(batch) for batch in batches]
        keys = ("sbe.skipped", "sbe.malformed", "sbe.unknown")
        metadata = {key: str(count) for key, count in zip(keys, counts, strict=True)}
        # With no columns, `Table.replace_schema_metadata` would forget the number of rows.
        return pa.Table.from_batches(found, found[0].schema.with_metadata(metadata))

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
            messages: A list of dicts, other mappings, decoded messages, named tuples or objects of data classes; an
                Arrow table or record batch; or a DataFrame of pandas or Polars.

        Returns:
            An Arrow array with the bytes of each message, for `Publication.offer_arrow`.

        Raises:
            InvalidArgumentError: If a value does not fit its field, or a required field is missing.
        """
        import pyarrow as pa

        if isinstance(messages, list | tuple):
            return pa.record_batch(self._native.encode(self.name, list(messages)))["value"]
        batches = self._native.encode_arrow(self.name, messages)
        if batches is None:
            kind = type(messages).__name__
            raise ArgumentTypeError(f"messages are a {kind}: pass a list of dicts, an Arrow table or a DataFrame")
        values = [pa.record_batch(batch)["value"] for batch in batches]
        return pa.concat_arrays(values) if values else pa.array([], pa.binary())

    def encode_one(self, message: Any) -> bytes:
        """Encodes one message, given as a dict, or as another item of the list of `encode`. Returns its bytes.

        Raises:
            InvalidArgumentError: If a value does not fit its field, or a required field is missing.
        """
        return self._native.encode_one(self.name, message)

    def encoded_length(self, /, **sizes: int) -> int:
        """Returns the length of a message in bytes, with its header.

        Args:
            **sizes: The number of entries of each group, and the number of bytes of each data: ``legs=2, note=10``.

        Raises:
            InvalidArgumentError: If a number is negative, or there is no such group or data.
        """
        named = {self._class._attributes.get(name, name): size for name, size in sizes.items()}
        checked = {name: not_negative(name, size) for name, size in named.items()}
        return self._native.encoded_length(self.name, checked)

    def write_to(self, claim: Any, /, **values: Any) -> int:
        """Encodes a message into a claimed or other buffer.

        Args:
            claim: A `BufferClaim`, or a writable object with the buffer protocol.
            **values: The values by name, or by the names of the attributes of a `DecodedMessage`.

        Returns:
            The length of the message in bytes.

        Raises:
            InvalidArgumentError: If the message does not fit the buffer, or a value does not fit its field.
        """
        message = self.encode_one({self._class._attributes.get(name, name): value for name, value in values.items()})
        buffer = writable(claim)
        if len(message) > len(buffer):
            raise InvalidArgumentError(f"the message of {len(message)} bytes does not fit {len(buffer)} bytes")
        buffer[: len(message)] = message
        return len(message)


def _dict_of(message: Any) -> dict[str, Any] | None:
    """Returns the values of a message or an entry that is no dict; `None` if it has no names.

    The native module calls this function.
    """
    if isinstance(message, Mapping):
        return dict(message)
    if isinstance(message, tuple) and hasattr(message, "_asdict"):
        return dict(message._asdict())
    if dataclasses.is_dataclass(message) and not isinstance(message, type):
        return {field.name: getattr(message, field.name) for field in dataclasses.fields(message)}
    return None


def _template_of(schema: Schema, name: str) -> Template:
    return schema[name]


def _restored(text: str, included: dict[str, str], options: dict[str, Any]) -> Schema:
    return Schema(text=text, loader=included.__getitem__ if included else None, **options)
