"""A view that is refreshed. A terminal shows each text in place of the last one. Other outputs get all texts in
sequence."""

from __future__ import annotations

from collections.abc import Callable

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text


def watch(render: Callable[[], list[str]], pause: Callable[[], bool], *, advice: str) -> None:
    """Shows the lines of ``render`` until ``pause`` returns true. ``pause`` is called after each text, and waits.

    If a text has more lines than the terminal, the last line shows the number of hidden lines, and ``advice``.
    """
    console = Console(highlight=False)
    if not console.is_terminal:
        while True:
            click.echo("\n".join(render()))
            if pause():
                return
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            lines = fit(render(), console.height, advice)
            live.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True)
            if pause():
                return


def fit(lines: list[str], height: int, advice: str) -> list[str]:
    """Returns the lines that fit a screen of ``height`` lines. If some do not fit, the last line gives their number."""
    if len(lines) <= height:
        return lines
    shown = lines[: max(height - 1, 0)]
    return [*shown, f"... {len(lines) - len(shown)} more: {advice}"]
