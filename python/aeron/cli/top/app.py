"""The live view of `aeron top`, as an application of the library textual."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, Static

from aeron.cli.text import printable
from aeron.cli.top.cells import amount, sparkline
from aeron.cli.top.rows import Row
from aeron.cli.top.table import Table
from aeron.cli.top.views import VIEWS, View, matching
from aeron.cli.top.watch import Frame, Watch

_KEYS = "q quit  1-5 view  s/S sort  / filter  enter follow  esc back  p pause"
_READERS = next(view for view in VIEWS if view.name == "readers")
_LONGEST_END_S = 2.0
"""Time after a signal within which the terminal must take the last output."""


class Top(App[None]):
    """The live view of the driver in a directory.

    Args:
        directory: Directory of the driver.
        period_s: Seconds between two snapshots.
    """

    CSS = """
    Static { width: 100%; height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    Table { height: 1fr; }
    #followed { height: auto; max-height: 50%; text-wrap: wrap; display: none; }
    #selected { height: 2; text-wrap: wrap; }
    Input { height: 1; border: none; padding: 0; display: none; }
    Input:focus { border: none; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit"),
        Binding("ctrl+c", "quit", priority=True),
        Binding("ctrl+z", "suspend_process", priority=True),
        *(Binding(str(number + 1), f"view({number})") for number in range(len(VIEWS))),
        Binding("tab", "next_view(1)", priority=True),
        Binding("shift+tab", "next_view(-1)", priority=True),
        Binding("s", "sort"),
        Binding("S", "reverse"),
        Binding("slash", "filter"),
        Binding("enter", "follow"),
        Binding("escape", "unfollow", priority=True),
        Binding("p", "pause"),
    ]

    def __init__(self, directory: str, period_s: float = 1.0) -> None:
        super().__init__()
        # The colours of the terminal. The second name is that of older versions of textual.
        self.theme = next(name for name in ("ansi-dark", "textual-ansi") if name in self.available_themes)
        self.animation_level = "none"
        self._watch = Watch(directory)
        self._period_s = period_s
        self._frame = self._shown = Frame(printable(directory), "reading")
        self._view = VIEWS[0]
        self._orders = {view.name: view.order for view in VIEWS}
        self._followed: Row | None = None
        self._is_followed_there = True
        self._is_paused = False
        # Kept here: a snapshot may arrive when textual has already removed them from the screen.
        self._lines = {
            name: Static(id=name, markup=False)
            for name in ("driver", "totals", "views", "followed", "selected", "keys")
        }
        self._table = Table(self._view)
        self._words = Input(placeholder="words that ids, names and channels contain", select_on_focus=False)

    def compose(self) -> ComposeResult:
        """Yields the lines of the screen from top to bottom."""
        for name in ("driver", "totals", "views", "followed"):
            yield self._lines[name]
        yield self._table
        yield self._lines["selected"]
        yield self._words
        yield self._lines["keys"]

    def on_mount(self) -> None:
        """Starts to read the driver."""
        self._table.focus()
        self._draw()
        self.run_worker(self._read())

    async def _read(self) -> None:
        """Reads in another thread, so that keys are handled meanwhile.

        A terminal can go away without SIGHUP. Then textual would poll its input for ever.
        """
        while self.is_headless or os.isatty(sys.stdin.fileno()):
            self._frame = await asyncio.to_thread(self._watch.read)
            if not self._is_paused:
                self._shown = self._frame
            self._draw()
            await asyncio.sleep(self._period_s)
        _end(self)

    # ---- keys -------------------------------------------------------------------------------------------------------

    def action_view(self, number: int) -> None:
        """Shows another view."""
        self._view, self._followed = VIEWS[number], None
        self._draw()

    def action_next_view(self, step: int) -> None:
        """Shows the next view."""
        self.action_view((VIEWS.index(self._view) + step) % len(VIEWS))

    def action_sort(self) -> None:
        """Sorts by the next column."""
        columns = [column for column, _ in self._table.layout_of_rows.columns]
        self._orders[self._listed.name] = self._orders[self._listed.name].next(columns)
        self._draw()

    def action_reverse(self) -> None:
        """Sorts in the other direction."""
        self._orders[self._listed.name] = self._orders[self._listed.name].reversed()
        self._draw()

    def action_filter(self) -> None:
        """Opens the line for the words of the filter, which is for views and not for a followed row."""
        self._followed = None
        self._words.display = True
        self._words.focus()
        self._draw()

    def on_input_changed(self) -> None:
        """Filters while the words are written."""
        self._draw()

    def on_input_submitted(self) -> None:
        """Closes the line, and keeps the words."""
        self._words.display = False
        self._table.focus()

    def action_follow(self) -> None:
        """Shows the selected row with all its values, and the readers of its stream or client."""
        self._followed = self._table.selected or self._followed
        self._draw()

    def action_unfollow(self) -> None:
        """Ends the view of one row, or else the filter."""
        if self._followed is not None:
            self._followed = None
        else:
            self._words.value = ""
            self.on_input_submitted()
        self._draw()

    def action_pause(self) -> None:
        """Stops or continues to show new values. The state of the driver is always shown."""
        self._is_paused = not self._is_paused
        self._shown = self._frame
        self._draw()

    # ---- screen -----------------------------------------------------------------------------------------------------

    @property
    def _listed(self) -> View:
        """The view whose rows the table has."""
        return self._view if self._followed is None else _READERS

    @property
    def _filter(self) -> str:
        """The words that rows must contain. A followed row has all its readers."""
        return self._words.value if self._followed is None else ""

    def _draw(self) -> None:
        self._find_followed()
        rows = self._shown.rows.get(self._listed.name, ())
        if self._followed is not None:
            rows = tuple(row for row in rows if _belongs(row, self._followed))
        order = self._orders[self._listed.name]
        rows_in_order = order.sorted(matching(rows, self._filter, self._listed))
        self._table.show_rows(self._listed, order, rows_in_order, is_stale=bool(self._frame.trouble))
        trouble = Text(self._frame.trouble, "bold red")
        self._put("driver", Text(f"aeron top  {self._frame.driver}", "bold"))
        self._put("totals", trouble if self._frame.trouble else Text(self._shown.totals))
        self._put("views", self._about_views())
        self._put("followed", self._about_followed())
        self._lines["followed"].display = self._followed is not None

    def on_table_moved(self) -> None:
        """Shows the row at the cursor completely, its place, and the filter."""
        selected = self._table.selected
        self._put("selected", Text("" if selected is None else _about(selected)))
        filtered = f"filter: {printable(self._filter)}" if self._filter else ""
        self._put("keys", Text("  ".join(filter(None, [f"row {self._table.place}", filtered, _KEYS]))))

    def _put(self, name: str, text: Text) -> None:
        self._lines[name].update(text)

    def _about_views(self) -> Text:
        text = Text().append("PAUSED  " if self._is_paused else "", "bold yellow")
        for number, view in enumerate(VIEWS, start=1):
            style = "reverse" if view is self._view else ""
            text.append(f" {number} {view.name} {len(self._shown.rows.get(view.name, ()))} ", style)
        return text

    def _about_followed(self) -> Text:
        row = self._followed
        if row is None:
            return Text()
        text = Text().append("" if self._is_followed_there else "ENDED  ", "bold yellow")
        text.append(f"{row.title}\n", "bold red" if row.is_marked else "bold")
        if row.history:
            width = max(min(self.size.width - 24, 60), 1)
            text.append(f"{amount(row.history[-1])}/s ".rjust(12), "bold")
            text.append(f"{sparkline(row.history, width)} {amount(max(row.history))}/s\n", "green")
        return text.append("  ".join(f"{name} {value}" for name, value in row.facts), "not bold")

    def _find_followed(self) -> None:
        """Finds the present state of the followed row: the same object, or one with its name after a restart."""
        followed = self._followed
        if followed is None:
            return
        rows = [row for each in self._shown.rows.values() for row in each if row.name == followed.name]
        self._is_followed_there = bool(rows)
        self._followed = next((row for row in rows if row.key == followed.key), rows[0] if rows else followed)


def _about(row: Row) -> str:
    return "  ".join([row.title, *(f"{name} {value}" for name, value in row.facts[:1])])


def _belongs(reader: Row, followed: Row) -> bool:
    if followed.subject is None:
        return followed.client_id is not None and reader.client_id == followed.client_id
    return reader.subject == followed.subject


def show(directory: str, period_s: float) -> None:
    """Shows the driver of a directory until a key or a signal ends the view."""
    # Programs with readline export the size of their terminal. Textual would take it for the size for ever.
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
    app = Top(directory, period_s)
    asyncio.run(_run(app))
    raise SystemExit(app.return_code)


async def _run(app: Top) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, _end, app)
    # The mouse is left to the terminal, which selects text with it.
    await app.run_async(mouse=False)


def _end(app: Top) -> None:
    """Ends the view. A terminal that is gone takes no output, and textual would wait for it for ever."""
    last = threading.Timer(_LONGEST_END_S, os._exit, (0,))
    last.daemon = True
    last.start()
    app.exit()
