"""Formats tables as lines of text with aligned columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]], *, texts: Collection[str]) -> Iterator[str]:
    """Yields the names of the columns and the rows as lines.

    The columns in ``texts`` are aligned to the left, all others to the right. A table of the library rich would take a
    millisecond for each line.
    """
    lines = [columns, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [
            cell.ljust(width) if name in texts else cell.rjust(width)
            for cell, width, name in zip(line, widths, columns, strict=True)
        ]
        yield "  ".join(cells).rstrip()
