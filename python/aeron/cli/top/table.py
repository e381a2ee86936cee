"""A table of rows on the screen, of which only the visible lines are made."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from aeron.cli.top.rows import Row
from aeron.cli.top.views import Layout, Order, View, layout

_TITLE = Style(bold=True, underline=True)
_CURSOR = Style(reverse=True)
_MARKED = Style(color="red", bold=True)
_STALE = Style(dim=True)
_MARK = "!"
"""Shown before a row that needs attention, also for terminals without colours."""


class Table(Widget, can_focus=True):
    """A table with a cursor. The cursor follows its row when the order changes.

    The widget makes only the lines that the screen shows: a table of 10,000 rows is as fast as a short one.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown,space", "page(1)", show=False),
        Binding("home,g", "move(-1000000000)", show=False),
        Binding("end,G", "move(1000000000)", show=False),
    ]

    class Moved(Message):
        """The cursor is on another row."""

    def __init__(self, view: View) -> None:
        super().__init__()
        self._view, self._order = view, view.order
        self._rows: Sequence[Row] = ()
        self._layout: Layout | None = None
        self._key: Hashable = None
        self._cursor = self._top = 0
        self._is_stale = False

    def show_rows(self, view: View, order: Order, rows: Sequence[Row], *, is_stale: bool) -> None:
        """Shows rows that are sorted and filtered. Rows of a driver that is gone are dimmed."""
        if view is not self._view:
            self._key, self._cursor = None, 0
        self._view, self._order, self._rows, self._is_stale = view, order, rows, is_stale
        found = next((index for index, row in enumerate(rows) if row.key == self._key), self._cursor)
        self._layout = None
        self._put_cursor(found)

    @property
    def layout_of_rows(self) -> Layout:
        """The columns that are shown, and their widths."""
        if self._layout is None:
            self._layout = layout(self._view, self._rows, max(self.size.width - 1, 0))
        return self._layout

    @property
    def selected(self) -> Row | None:
        """The row at the cursor; `None` if there are no rows."""
        return self._rows[self._cursor] if self._rows else None

    @property
    def place(self) -> str:
        """The number of the row at the cursor, and the number of rows."""
        return f"{min(self._cursor + 1, len(self._rows))}/{len(self._rows)}"

    def on_resize(self) -> None:
        """Computes the columns for the new size."""
        self._layout = None
        self._put_cursor(self._cursor)

    def action_move(self, rows: int) -> None:
        """Moves the cursor down by a number of rows."""
        self._put_cursor(self._cursor + rows)

    def action_page(self, pages: int) -> None:
        """Moves the cursor down by a number of screens."""
        self._put_cursor(self._cursor + pages * self._height)

    @property
    def _height(self) -> int:
        return max(self.size.height - 1, 1)

    def _put_cursor(self, cursor: int) -> None:
        last = max(len(self._rows) - 1, 0)
        self._cursor = min(max(cursor, 0), last)
        self._key = self._rows[self._cursor].key if self._rows else self._key
        lowest = self._cursor - self._height + 1
        self._top = min(max(self._top, lowest, 0), self._cursor, max(last - self._height + 1, 0))
        self.refresh()
        self.post_message(self.Moved())

    def render_line(self, y: int) -> Strip:
        """Returns the titles, or the row at this line."""
        width = self.size.width
        if y == 0:
            return Strip([Segment(" " + self.layout_of_rows.titles(self._order), _TITLE)]).adjust_cell_length(width)
        index = self._top + y - 1
        if index >= len(self._rows):
            return Strip.blank(width)
        row = self._rows[index]
        style = _MARKED if row.is_marked else Style()
        if self._is_stale:
            style += _STALE
        if index == self._cursor:
            style += _CURSOR
        text = (_MARK if row.is_marked else " ") + self.layout_of_rows.line(row)
        return Strip([Segment(text, style)]).adjust_cell_length(width, style)
