"""Schemas of Simple Binary Encoding, on which `aeron.sbe` is built."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, final

from typing_extensions import Buffer

from aeron._stubs.pipeline import ColumnBatch
from aeron.types import ArrowArray, ArrowStream, MalformedTreatment

@final
class _SbeSchema:
    """A checked SBE schema. Immutable, so thread-safe."""
    def __new__(
        cls,
        text: str,
        *,
        loader: Callable[[str], str] | None = None,
        timestamps: Mapping[str, str] | None = None,
        decimals: Mapping[str, str] | None = None,
    ) -> Self: ...
    @property
    def package(self) -> str:
        """Package of the schema; empty if it has none."""
    @property
    def id(self) -> int:
        """Id of the schema."""
    @property
    def version(self) -> int:
        """Version of the schema."""
    @property
    def semantic_version(self) -> str | None:
        """Version of the schema for people; `None` if it has none."""
    @property
    def description(self) -> str | None:
        """Description of the schema; `None` if it has none."""
    @property
    def warnings(self) -> list[str]:
        """Parts of the schema without the effect that their author may expect."""
    @property
    def templates(self) -> list[tuple[str, int, int, int, str | None]]:
        """Name, id, first version, length of the block and description of each template."""
    def describe(self, name: str) -> list[tuple[int, str, str, int | None, str, int]]:
        """Returns the elements of a template: depth, name, type, offset, presence and first version of each."""
    def template_of(self, message: Buffer, skip: int) -> str | None:
        """Returns the name of the template of a message; `None` if the schema does not have it."""
    @property
    def blocks(self) -> list[_SbeBlock]:
        """Returns the blocks of the messages, in the order of the templates."""
    def decode(self, message: Buffer, skip: int, classes: tuple[type[_SbeRecord], ...]) -> Any:
        """Decodes a message. Returns an object of the class of its template in `classes`, which are in the order of the
        templates.
        """
    def encode_arrow(self, name: str, rows: object) -> list[ColumnBatch] | None:
        """Encodes the rows of Arrow data. Returns the messages as a record batch with a column `value`, for each batch of
        the data; `None` if the object is no Arrow data.
        """
    def encode(self, name: str, messages: list[Any]) -> ColumnBatch:
        """Encodes a dictionary for each message. Returns the messages as a record batch with a column `value`."""
    def encode_one(self, name: str, message: object) -> bytes:
        """Encodes a dictionary as one message."""
    def encoded_length(self, name: str, sizes: Mapping[str, int]) -> int:
        """Returns the length of a message. `sizes` has the number of entries of groups and the length of data, by name."""
    def formats(self, name: str) -> list[tuple[str, int, Any]]:
        """Name, offset and format of each field of a template that takes bytes, as numpy writes formats. The format of a
        composite is a list of this kind and its length.
        """
    @property
    def header_formats(self) -> tuple[list[tuple[str, int, str]], int]:
        """Names, offsets and formats of the numbers in the header, and the length of the header."""
    def fixed_blocks(
        self, name: str, messages: ArrowArray | ArrowStream | Buffer | list[Any], skip: int, drop: bool
    ) -> tuple[ColumnBatch, int]:
        """Returns the blocks of the messages of a template, one after the other, and their number."""
    def columns(
        self,
        name: str,
        *,
        group: str | None = None,
        decimal_scale: int | None = 9,
        sets: Literal["names", "booleans", "integer"] = "names",
        refuse_unknown: bool = False,
        for_spark: bool = False,
    ) -> _SbeColumns:
        """Returns the columns of a template."""
    def split(
        self, messages: ArrowArray | ArrowStream | Buffer | list[Any], skip: int
    ) -> tuple[list[tuple[str, list[list[int]]]], int, list[int]]:
        """Returns the indexes of the messages of each template that occurs, the number of messages of other templates, and
        the indexes of the messages without a whole header.
        """

@final
class _SbeBlock:
    """A block of a template: that of its messages, or that of the entries of a group. Immutable, so thread-safe."""
    @property
    def name(self) -> str:
        """Name of the message or group."""
    @property
    def names(self) -> list[str]:
        """Names of the fields, groups and data, in their order."""
    @property
    def groups(self) -> list[_SbeBlock]:
        """Blocks of the entries of the groups, in their order."""
    def value(self, index: int) -> _SbeAttribute:
        """Returns the descriptor of the field or data with this index in `names`."""
    def group(self, index: int, sequence: type[_SbeEntries], entry: type[_SbeRecord]) -> _SbeAttribute:
        """Returns the descriptor of the group with this index in `groups`. `sequence` is the class of the group, and
        `entry` that of its entries.
        """

@final
class _SbeAttribute:
    """Reads an element of decoded messages or entries. Immutable, so thread-safe."""
    def __get__(self, object: _SbeRecord | None, class_: type[_SbeRecord] | None = None) -> Any: ...

class _SbeRecord:
    """A decoded message or group entry. It reads its elements from the bytes of the message. Immutable, so thread-safe."""
    def __new__(cls, block: _SbeBlock, source: Buffer | _SbeEntries, position: int) -> Self: ...
    def as_dict(self) -> dict[str, Any]:
        """Returns all values by name, with lists of dicts for groups. They are copies, which outlive the buffer."""
    def _message(self) -> bytes:
        """Returns the bytes of the message, from its header to the end of the buffer."""
    @property
    def _group(self) -> _SbeEntries | None:
        """The group of the entry; `None` for a message."""
    @property
    def _index(self) -> int:
        """Index of the entry in its group; 0 for a message."""

class _SbeEntries:
    """The entries of a group of a decoded message or entry. Immutable, so thread-safe."""
    def __new__(cls, record: _SbeRecord, index: int, block: _SbeBlock, entry: type[_SbeRecord]) -> Self: ...
    @property
    def _name(self) -> str:
        """Name of the group."""
    @property
    def _record(self) -> _SbeRecord:
        """The message or entry with this group."""
    def __len__(self) -> int: ...
    def __getitem__(self, key: Any) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...

@final
class _SbeColumns:
    """The columns of a template. Immutable, so thread-safe."""
    @property
    def names(self) -> list[str]:
        """Names of all columns, with those of the header."""
    def decode(
        self,
        messages: ArrowArray | ArrowStream | Buffer | list[Any],
        *,
        columns: Sequence[str] | None = None,
        skip: int = 0,
        malformed: MalformedTreatment = "fail",
        index: str | None = None,
        of: Sequence[Sequence[int]] | None = None,
    ) -> tuple[list[ColumnBatch], int, int, int]:
        """Decodes the messages of the template among `messages`: one message as bytes, or any Arrow data with a column of
        messages.
        """
    def __arrow_c_schema__(self) -> object:
        """Returns the schema of the columns that are decoded by default."""
