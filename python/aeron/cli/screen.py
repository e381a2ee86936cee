"""A view that is written again and again: on a terminal in place, else one text after the other."""

from __future__ import annotations

from collections.abc import Callable

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text


def watch(render: Callable[[], list[str]], pause: Callable[[], bool], *, advice: str) -> None:
    """Shows the lines of ``render`` until ``pause`` returns true. ``pause`` is called after each text, and waits.

    If a terminal has fewer lines, its last line shows the number of the others, and ``advice``.
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
    """Returns the lines that fit a screen of ``height`` lines. The last line gives the number of hidden lines."""
    if len(lines) <= height:
        return lines
    shown = lines[: max(height - 1, 0)]
    return [*shown, f"... {len(lines) - len(shown)} more: {advice}"]
