"""HTML tables of batches, recordings and counters, for notebooks. All of them are short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aeron._aeron import Batch, CountersReader, Recording
    from aeron.sbe import Schema, Template

__all__ = ["of_batch", "of_counters", "of_recordings", "of_sbe_schema", "of_sbe_template"]

_MAX_ROWS = 20
_MAX_BYTES = 32


def of_batch(batch: Batch) -> str:
    """Returns the first messages of a batch."""
    rows = zip(batch.positions, batch.session_ids, batch.reserved_values, batch, strict=True)
    return _table(
        repr(batch),
        ("position", "session_id", "reserved_value", "length", "payload"),
        ((position, session, reserved, len(payload), _shown(payload)) for position, session, reserved, payload in rows),
        len(batch),
    )


def of_recordings(recordings: Sequence[Recording]) -> str:
    """Returns the first recordings of a list."""
    return _table(
        f"{len(recordings)} recordings",
        ("recording_id", "stream_id", "session_id", "channel", "start_position", "stop_position", "start", "stop"),
        (
            (
                each.recording_id,
                each.stream_id,
                each.session_id,
                each.original_channel,
                each.start_position,
                "active" if each.stop_position is None else each.stop_position,
                _time(each.start_timestamp_ms),
                "" if each.stop_timestamp_ms is None else _time(each.stop_timestamp_ms),
            )
            for each in recordings
        ),
        len(recordings),
    )


def of_counters(counters: CountersReader) -> str:
    """Returns the first counters."""
    found = counters.snapshot()
    rows = ((each.id, each.type_id, f"{each.value:,}", each.label) for each in found)
    return _table(f"{len(found)} counters", ("id", "type_id", "value", "label"), rows, len(found))


def of_sbe_schema(schema: Schema) -> str:
    """Returns the first messages of an SBE schema."""
    rows = (
        (each.name, each.id, each.since_version, ", ".join(each.names), each.description or "")
        for each in schema.values()
    )
    return _table(repr(schema), ("message", "id", "since", "elements", "description"), rows, len(schema))


def of_sbe_template(template: Template) -> str:
    """Returns the first elements of an SBE message. The elements of groups are indented."""
    elements = template._elements
    rows = (
        ("\u2003" * depth + name, kind, "" if offset is None else offset, presence, since or "")
        for depth, name, kind, offset, presence, since in elements
    )
    return _table(repr(template), ("name", "type", "offset", "presence", "since"), rows, len(elements))


def _table(title: str, names: Sequence[str], rows: Iterable[Sequence[object]], count: int) -> str:
    """Returns a table with at most `_MAX_ROWS` rows. The texts are escaped, because they may come from a peer."""
    lines = [f"<div><p>{escape(title)}</p><table><thead>{_row('th', names)}</thead><tbody>"]
    lines += [_row("td", row) for row in islice(rows, _MAX_ROWS)]
    lines.append("</tbody></table>")
    if count > _MAX_ROWS:
        lines.append(f"<p>and {count - _MAX_ROWS:,} more</p>")
    return "\n".join([*lines, "</div>"])


def _row(tag: str, values: Sequence[object]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(str(value))}</{tag}>" for value in values) + "</tr>"


def _shown(payload: memoryview) -> str:
    shown = repr(bytes(payload[:_MAX_BYTES]))
    return shown if len(payload) <= _MAX_BYTES else f"{shown}..."


def _time(timestamp_ms: int) -> str:
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms"
