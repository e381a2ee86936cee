"""Schemas of Simple Binary Encoding, on which `aeron.sbe` is built."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, final

from typing_extensions import Buffer

from aeron._stubs.pipeline import ColumnBatch
from aeron.types import ArrowArray, ArrowStream, MalformedTreatment

@final
class _SbeSchema:
    def __new__(
        cls,
        text: str,
        *,
        loader: Callable[[str], str] | None = None,
        timestamps: Mapping[str, str] | None = None,
        decimals: Mapping[str, str] | None = None,
    ) -> Self: ...
    @property
    def package(self) -> str: ...
    @property
    def id(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def semantic_version(self) -> str | None: ...
    @property
    def description(self) -> str | None: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def templates(self) -> list[tuple[str, int, int, int, str | None]]: ...
    def describe(self, name: str) -> list[tuple[int, str, str, int | None, str, int]]: ...
    def template_of(self, message: Buffer, skip: int) -> str | None: ...
    @property
    def blocks(self) -> list[_SbeBlock]: ...
    def decode(self, message: Buffer, skip: int, classes: tuple[type[_SbeRecord], ...]) -> Any: ...
    def encode_arrow(self, name: str, rows: object) -> list[ColumnBatch] | None: ...
    def encode(self, name: str, messages: list[Any]) -> ColumnBatch: ...
    def encode_one(self, name: str, message: object) -> bytes: ...
    def encoded_length(self, name: str, sizes: Mapping[str, int]) -> int: ...
    def formats(self, name: str) -> list[tuple[str, int, Any]]: ...
    @property
    def header_formats(self) -> tuple[list[tuple[str, int, str]], int]: ...
    def fixed_blocks(
        self, name: str, messages: ArrowArray | ArrowStream | Buffer | list[Any], skip: int, drop: bool
    ) -> tuple[ColumnBatch, int]: ...
    def columns(
        self,
        name: str,
        *,
        group: str | None = None,
        decimal_scale: int | None = 9,
        sets: Literal["names", "booleans", "integer"] = "names",
        refuse_unknown: bool = False,
        for_spark: bool = False,
    ) -> _SbeColumns: ...
    def split(
        self, messages: ArrowArray | ArrowStream | Buffer | list[Any], skip: int
    ) -> tuple[list[tuple[str, list[list[int]]]], int, list[int]]: ...

@final
class _SbeBlock:
    @property
    def name(self) -> str: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def groups(self) -> list[_SbeBlock]: ...
    def value(self, index: int) -> _SbeAttribute: ...
    def group(self, index: int, sequence: type[_SbeEntries], entry: type[_SbeRecord]) -> _SbeAttribute: ...

@final
class _SbeAttribute:
    def __get__(self, object: _SbeRecord | None, class_: type[_SbeRecord] | None = None) -> Any: ...

class _SbeRecord:
    def __new__(cls, block: _SbeBlock, source: Buffer | _SbeEntries, position: int) -> Self: ...
    def as_dict(self) -> dict[str, Any]: ...
    def _message(self) -> bytes:
        """Returns the bytes of the message, from its header to the end of the buffer."""
    @property
    def _group(self) -> _SbeEntries | None:
        """The group of the entry; `None` for a message."""
    @property
    def _index(self) -> int:
        """Index of the entry in its group; 0 for a message."""

class _SbeEntries:
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
    @property
    def names(self) -> list[str]: ...
    def decode(
        self,
        messages: ArrowArray | ArrowStream | Buffer | list[Any],
        *,
        columns: Sequence[str] | None = None,
        skip: int = 0,
        malformed: MalformedTreatment = "fail",
        index: str | None = None,
        of: Sequence[Sequence[int]] | None = None,
    ) -> tuple[list[ColumnBatch], int, int, int]: ...
    def __arrow_c_schema__(self) -> object:
        """Returns the schema of the columns that are decoded by default."""
