"""Reads the reports of a query's Aeron sources from Spark's progress."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import QueryProgressEvent, StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Gap", "Progress", "progress"]


@dataclass(frozen=True)
class Gap:
    """A range of a session that was sent and not recorded. Immutable. ``None`` stands for an unknown value.

    Attributes:
        stream_id: Stream id of the session.
        session_id: Session id.
        from_position: Position at which the gap begins.
        to_position: Position at which the recording continues.
        bytes: Length of the gap in bytes, with headers.
        reason: Reason why nothing was recorded.
    """

    stream_id: int | None
    session_id: int | None
    from_position: int | None
    to_position: int | None
    bytes: int | None
    reason: str


@dataclass(frozen=True)
class Progress:
    """State of one Aeron source of a query after the last batch of the query. Immutable.

    For a running archive, only ``recordings``, ``backlog_bytes``, ``lag_bytes``, ``lost_bytes``, ``archive`` and
    ``rows_per_second`` are known. There, ``lost_bytes`` counts from the last start of the query.

    Sums (``retention_full_ms``, ``gap_bytes``, ``unknown_gaps``, ``lost_bytes``, ``joined``, ``ended``, ``malformed``,
    ``skipped``, ``unknown_enums``) count from the first start of the query, because the private archive stores them.

    After a restart, Spark may run a batch again. Spark then requests no report from the source. In the progress of such
    a batch, all numbers except ``rows_per_second`` and ``recordings`` are ``None``, which means *not known*. The
    progress of the next batch has the numbers.

    Attributes:
        recordings: Position after the last complete message, by ``streamId/sessionId/recordingId``.
        images: Number of connected publishers.
        backlog_bytes: Bytes, with headers, that are recorded and not yet in a batch.
        backlog_messages: Messages that are recorded and not yet in a batch.
        retained_bytes: Bytes that are recorded and not yet committed. Their limit is ``maxRetainedBytes``.
        retention_full_ms: Milliseconds for which the source did not poll, because ``maxRetainedBytes`` was reached.
        gap_bytes: Bytes in gaps of known length: they were sent and not recorded. ``None`` if there are only gaps of
            unknown length.
        unknown_gaps: Number of gaps of unknown length. ``gap_bytes`` does not count them.
        gaps: The latest gaps, oldest first, at most 32.
        lost_bytes: Bytes that were lost with ``failOnDataLoss=false``.
        joined: Number of images that began.
        ended: Number of images that ended.
        malformed: Malformed messages and records in finished batches, which ``mode`` dropped or kept.
        skipped: Messages in finished batches that have another template or schema than ``sbe.template``.
        unknown_enums: Values of enums in finished batches that the SBE schema does not know. They are null.
        archive: Directory of the private archive on the Spark driver's machine; ``None`` before it exists. For a
            running archive, its control channel.
        rows_per_second: Rows of the last batch divided by its duration; 0 if the batch had no rows.
        lag_bytes: Bytes, with headers, that are recorded and not yet in a batch, by ``streamId/sessionId/recordingId``.
            Empty for a live stream.
        lag_s: Seconds that are needed to read the backlog at ``rows_per_second``; ``None`` if that rate is 0.
    """

    recordings: Mapping[str, int]
    images: int | None
    backlog_bytes: int | None
    backlog_messages: int | None
    retained_bytes: int | None
    retention_full_ms: int | None
    gap_bytes: int | None
    unknown_gaps: int | None
    gaps: tuple[Gap, ...]
    lost_bytes: int | None
    joined: int | None
    ended: int | None
    malformed: int | None
    skipped: int | None
    unknown_enums: int | None
    archive: str | None
    rows_per_second: float
    lag_bytes: Mapping[str, int]
    lag_s: float | None


def progress(
    query: StreamingQuery | QueryProgressEvent | StreamingQueryProgress | Mapping[str, Any],
) -> list[Progress]:
    """Returns the Aeron sources of a query, in the order of its plan. The list is empty before the first batch.

    Args:
        query: A running query, the event that a ``StreamingQueryListener`` gets in ``onQueryProgress``, or the progress
            of one of them (``query.lastProgress``, ``event.progress``).

    Raises:
        TypeError: `query` has another type.

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
    """Returns the progress as a mapping, from any form in which Spark provides it."""
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
    report = _report(source["latestOffset"]) or _taken(source["endOffset"])
    if report is None:
        return None
    rate = float(source["processedRowsPerSecond"] or 0)
    backlog = report.get("backlogMessages")
    return Progress(
        recordings=report["recordings"],
        images=report.get("images"),
        backlog_bytes=report.get("backlogBytes"),
        backlog_messages=backlog,
        retained_bytes=report.get("retainedBytes"),
        retention_full_ms=report.get("retentionFullMs"),
        gap_bytes=report.get("gapBytes"),
        unknown_gaps=report.get("unknownGaps"),
        gaps=tuple(_gap(gap) for gap in report.get("gaps", ())),
        lost_bytes=report.get("lostBytes"),
        joined=report.get("joined"),
        ended=report.get("ended"),
        malformed=report.get("malformed"),
        skipped=report.get("skipped"),
        unknown_enums=report.get("unknownEnums"),
        archive=report.get("archive"),
        rows_per_second=rate,
        lag_bytes=report.get("lagBytes", {}),
        lag_s=backlog / rate if backlog is not None and rate > 0 else None,
    )


def _gap(gap: Mapping[str, Any]) -> Gap:
    return Gap(
        stream_id=gap["stream"],
        session_id=gap["session"],
        from_position=gap["from"],
        to_position=gap["to"],
        bytes=gap["bytes"],
        reason=gap["reason"],
    )


def _report(text: object) -> dict[str, Any] | None:
    """Returns the report of an Aeron source; ``None`` for the offset of another source."""
    return _fields(text, "recordings", "backlogBytes")


def _taken(text: object) -> dict[str, Any] | None:
    """Returns the positions in the offset of an Aeron source. Used for a batch without a report."""
    offset = _fields(text, "aeron", "recordings")
    return None if offset is None else {"recordings": offset["recordings"]}


def _fields(text: object, *names: str) -> dict[str, Any] | None:
    """Returns the JSON object in `text` if it has these fields, else ``None``."""
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return None
    return value if isinstance(value, dict) and set(names) <= value.keys() else None
