"""What a running query's Aeron sources report of themselves, out of Spark's own progress."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import QueryProgressEvent, StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Progress", "progress"]


@dataclass(frozen=True)
class Progress:
    """One Aeron source of a query, as of its last batch. Immutable.

    Attributes:
        recordings: position of the last complete message by ``streamId/sessionId/recordingId``.
        images: publishers connected now.
        backlog_bytes: bytes recorded, headers included, and not yet in a batch.
        backlog_messages: messages recorded and not yet in a batch.
        retained_bytes: bytes recorded and not yet committed; ``maxRetainedBytes`` is their bound.
        retention_full_ms: how long the source did not poll because of that bound, in all.
        gap_bytes: bytes that publishers sent while no query ran.
        lost_bytes: bytes lost with ``failOnDataLoss=false``.
        joined: publishers that came, in all.
        ended: publishers that went, in all.
        malformed: messages and records dropped by ``mode=DROPMALFORMED`` in batches that are finished.
        rows_per_second: rows of the last batch by its duration; 0 without a batch with rows.
        lag_s: how long the backlog takes at that rate; ``None`` without a rate.
    """

    recordings: Mapping[str, int]
    images: int
    backlog_bytes: int
    backlog_messages: int
    retained_bytes: int
    retention_full_ms: int
    gap_bytes: int
    lost_bytes: int
    joined: int
    ended: int
    malformed: int
    rows_per_second: float
    lag_s: float | None


def progress(
    query: StreamingQuery | QueryProgressEvent | StreamingQueryProgress | Mapping[str, Any],
) -> list[Progress]:
    """Returns the Aeron sources of a query, in the order of its plan; none before its first batch.

    Args:
        query: a running query, the event that a ``StreamingQueryListener`` gets in ``onQueryProgress``, or the progress
            in either (``query.lastProgress``, ``event.progress``).

    Raises:
        TypeError: `query` is none of these.

    Example:
        >>> class Lag(StreamingQueryListener):                                                    # doctest: +SKIP
        ...     def onQueryProgress(self, event):
        ...         for source in aeron.spark.progress(event):
        ...             print(source.lag_s, source.gap_bytes, source.retained_bytes, source.malformed)
    """
    last = _last_progress(query)
    found = [_of_source(source) for source in last["sources"]] if last else []
    return [source for source in found if source is not None]


def _last_progress(query: Any) -> Mapping[str, Any] | None:
    """Spark's progress, as the mapping that it is in every form of it."""
    for name in ("lastProgress", "progress"):
        if hasattr(query, name):
            query = getattr(query, name)
            break
    if query is None or (isinstance(query, Mapping) and "sources" in query):
        return query
    raise TypeError(
        f"progress of a {type(query).__name__}: give a StreamingQuery, the event of onQueryProgress, or a progress"
    )


def _of_source(source: Mapping[str, Any]) -> Progress | None:
    report = _report(source["latestOffset"])
    if report is None:
        return None
    rate = float(source["processedRowsPerSecond"] or 0)
    backlog = report["backlogMessages"]
    return Progress(
        recordings=report["recordings"],
        images=report["images"],
        backlog_bytes=report["backlogBytes"],
        backlog_messages=backlog,
        retained_bytes=report["retainedBytes"],
        retention_full_ms=report["retentionFullMs"],
        gap_bytes=report["gapBytes"],
        lost_bytes=report["lostBytes"],
        joined=report["joined"],
        ended=report["ended"],
        malformed=report["malformed"],
        rows_per_second=rate,
        lag_s=backlog / rate if rate > 0 else None,
    )


def _report(text: object) -> dict[str, Any] | None:
    """The report of an Aeron source; ``None`` for the offset of any other."""
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return None
    return value if isinstance(value, dict) and {"recordings", "retainedBytes"} <= value.keys() else None
