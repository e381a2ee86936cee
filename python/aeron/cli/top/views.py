"""The views of `aeron top`: columns, their widths on a screen, sorting and filtering of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.cells import cell_len, set_cell_size

from aeron.cli.top.cells import age, amount, count, sparkline
from aeron.cli.top.rows import Row, Value

SPARKLINE_WIDTH = 8
_SHORTEST_TEXT, _SHORTEST_CHANNEL = 12, 24
"""Cells that a text needs at least. If there are fewer, columns are left out."""


def _text(value: Any) -> str:
    return "" if value is None else str(value)


@dataclass(frozen=True)
class Column:
    """A column of a view. Immutable.

    Args:
        name: Name, which is its title too.
        rank: Columns with higher ranks are left out first if the screen is too narrow.
        show: Returns the text of a value.
        width: Width in cells; `None`: as wide as its texts, if there is room.
        is_text: Whether the column is aligned to the left, and may be shortened.
        is_searched: Whether filters look into this column.
        shortest: Cells to which a text may be shortened.
    """

    name: str
    rank: int
    show: Callable[[Any], str] = _text
    width: int | None = None
    is_text: bool = False
    is_searched: bool = False
    shortest: int = _SHORTEST_TEXT


def _id(name: str, rank: int) -> Column:
    return Column(name, rank, is_searched=True)


def _words(name: str, rank: int) -> Column:
    return Column(name, rank, is_text=True, is_searched=True)


def _bytes(name: str, rank: int) -> Column:
    return Column(name, rank, amount, width=8)


def _history(rank: int) -> Column:
    return Column("history", rank, lambda rates: sparkline(rates, SPARKLINE_WIDTH), width=SPARKLINE_WIDTH)


_CHANNEL = Column("channel", 5, is_text=True, is_searched=True, shortest=_SHORTEST_CHANNEL)


@dataclass(frozen=True)
class View:
    """A view: a table of rows. Immutable.

    Args:
        name: Name of its rows.
        columns: Columns from left to right.
        order: The order of a new screen.
    """

    name: str
    columns: tuple[Column, ...]
    order: Order


@dataclass(frozen=True)
class Order:
    """An order of rows by one column. Immutable. Rows without a value are the last ones in both directions.

    Args:
        column: Name of the column.
        is_descending: Whether the largest value is the first one.
    """

    column: str
    is_descending: bool = False

    def sorted(self, rows: Iterable[Row]) -> list[Row]:
        """Returns the rows in this order. Rows with equal values keep their order."""
        column, rows = self.column, list(rows)
        found = [row for row in rows if row.cells[column] is not None]
        found.sort(key=lambda row: _comparable(row.cells[column]), reverse=self.is_descending)
        return found + [row for row in rows if row.cells[column] is None]

    def reversed(self) -> Order:
        """Returns the order by the same column in the other direction."""
        return replace(self, is_descending=not self.is_descending)

    def next(self, columns: Sequence[Column]) -> Order:
        """Returns the order by the next column, in the same direction."""
        names = [column.name for column in columns]
        last = names.index(self.column) if self.column in names else -1
        return replace(self, column=names[(last + 1) % len(names)])


def _comparable(value: Value) -> Any:
    # The history of a stream is sorted by its mean.
    if isinstance(value, tuple):
        return sum(value) / len(value) if value else 0.0
    return value.casefold() if isinstance(value, str) else value


VIEWS = (
    View(
        "streams",
        (
            _id("stream", 1),
            _id("session", 9),
            _words("kind", 7),
            _bytes("bytes/s", 2),
            _history(6),
            _bytes("lag", 3),
            _bytes("room", 8),
            _words("held back by", 4),
            _words("client", 10),
            _CHANNEL,
        ),
        Order("bytes/s", is_descending=True),
    ),
    View(
        "readers",
        (
            _id("stream", 1),
            _id("session", 8),
            _words("of", 9),
            _words("client", 2),
            _bytes("bytes/s", 4),
            _history(6),
            _bytes("lag", 3),
            Column("holds", 7, width=10, is_text=True, is_searched=True),
            _CHANNEL,
        ),
        Order("lag", is_descending=True),
    ),
    View(
        "clients",
        (
            _id("id", 1),
            _words("name", 2),
            Column("heartbeat", 3, age, width=10),
            _bytes("sends/s", 4),
            Column("publications", 5, count),
            Column("images", 6, count),
            Column("counters", 7, count),
            _words("version", 8),
        ),
        Order("name"),
    ),
    View(
        "recordings",
        (
            _id("id", 1),
            _id("archive", 8),
            _id("stream", 2),
            _id("session", 9),
            _bytes("bytes/s", 3),
            _history(6),
            _bytes("lag", 4),
            Column("position", 7, count),
            _CHANNEL,
        ),
        Order("bytes/s", is_descending=True),
    ),
    View(
        "errors",
        (
            Column("kind", 4, width=5, is_text=True, is_searched=True),
            Column("count", 1, count),
            Column("last", 3, width=19, is_text=True),
            _words("text", 2),
        ),
        Order("last", is_descending=True),
    ),
)


def matching(rows: Iterable[Row], words: str, view: View) -> list[Row]:
    """Returns the rows whose ids and texts contain all words, in any case."""
    wanted = words.casefold().split()
    names = [column.name for column in view.columns if column.is_searched]
    if not wanted:
        return list(rows)
    return [
        row
        for row in rows
        if all(word in " ".join(_text(row.cells[name]) for name in names).casefold() for word in wanted)
    ]


@dataclass(frozen=True)
class Layout:
    """Columns with their widths in cells. Immutable."""

    columns: tuple[tuple[Column, int], ...]

    def titles(self, order: Order) -> str:
        """Returns the line with the titles. An arrow marks the column of the order."""
        arrow = "↓" if order.is_descending else "↑"
        return self._line(column.name + arrow * (column.name == order.column) for column, _ in self.columns)

    def line(self, row: Row) -> str:
        """Returns the line of a row."""
        return self._line(column.show(row.cells[column.name]) for column, _ in self.columns)

    def _line(self, texts: Iterable[str]) -> str:
        return " ".join(
            _fit(text, width, column.is_text) for text, (column, width) in zip(texts, self.columns, strict=True)
        )


def _fit(text: str, width: int, is_left: bool) -> str:
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, max(width - 1, 0)) + "…" * (width > 0)
    return text + " " * (width - length) if is_left else " " * (width - length) + text


def layout(view: View, rows: Sequence[Row], width: int) -> Layout:
    """Returns the columns for a screen of `width` cells.

    Numbers are never shortened: columns with the highest ranks are left out until the others fit. Texts share the rest.
    """
    needs = {column.name: column.width or _need(column, rows) for column in view.columns}
    least = {
        column.name: min(needs[column.name], column.shortest) if column.is_text else needs[column.name]
        for column in view.columns
    }
    shown = sorted(view.columns, key=lambda column: column.rank)
    while len(shown) > 1 and sum(least[column.name] + 1 for column in shown) - 1 > width:
        shown.pop()
    spare = width - sum(least[column.name] + 1 for column in shown) + 1
    widths = _shared({column.name: needs[column.name] - least[column.name] for column in shown}, max(spare, 0))
    return Layout(
        tuple(
            (column, min(least[column.name] + widths[column.name], width)) for column in view.columns if column in shown
        )
    )


def _need(column: Column, rows: Sequence[Row]) -> int:
    title = len(column.name) + 1
    values = [value for row in rows if (value := row.cells[column.name]) is not None]
    if column.is_text:
        return max(title, max((cell_len(str(value)) for value in values), default=0))
    # The longest number is the smallest or the largest one.
    return max(title, *(len(column.show(value)) for value in (min(values), max(values)))) if values else title


def _shared(wishes: Mapping[str, int], spare: int) -> dict[str, int]:
    """Shares `spare` cells: each column gets what it wishes, or an equal part of what is left."""
    shares = {}
    for index, (name, wish) in enumerate(sorted(wishes.items(), key=lambda item: item[1])):
        shares[name] = min(wish, spare // (len(wishes) - index))
        spare -= shares[name]
    return shares
