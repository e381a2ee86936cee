"""The views of one snapshot as lines of text."""

from __future__ import annotations

import time

from aeron.cli.table import aligned
from aeron.cli.top.views import VIEWS
from aeron.cli.top.watch import Watch
from aeron.metrics import DriverMetrics


def page(found: DriverMetrics) -> str:
    """Returns the views with all rows. Without a second snapshot there are no rates."""
    frame = Watch(found.aeron_dir).add(found, time.monotonic_ns())
    lines = [frame.driver, frame.totals, *filter(None, [frame.trouble])]
    for view in VIEWS:
        rows = view.order.sorted(frame.rows[view.name])
        columns = [column for column in view.columns if column.name not in {"bytes/s", "sends/s", "history"}]
        texts = [[column.show(row.cells[column.name]) for column in columns] for row in rows]
        names = {column.name for column in columns if column.is_text}
        lines += ["", f"{view.name}: {len(rows)}"]
        if rows:
            lines += aligned([column.name for column in columns], texts, texts=names)
    return "\n".join(lines)
