"""Writes to Aeron streams: ``df.write.format("aeron")`` and ``df.writeStream.format("aeron")``.

Spark pickles a writer for each worker. In the worker, native code writes Spark's record batches directly into the term
buffers, without an object for each row. The tasks of a worker process share publications. A task returns an
:class:`AeronCommitMessage`. Rows are delivered at least once: if a task fails and runs again, messages that it has
already offered cannot be withdrawn. With a running archive,
:mod:`aeron.spark.recorded_sink` records each row exactly once.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from aeron._pipeline import SharedPublications
from aeron.spark.clients import client_settings
from aeron.spark.errors import AeronOptionError, AeronSparkError
from aeron.spark.logs import logger
from aeron.spark.options import SinkOptions, WriteOptions, write_options
from aeron.spark.payloads import SINK_HEADERS, payload_of, sql, wrong_type

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "PUBLICATION_IDLE_MS",
    "AeronCommitMessage",
    "AeronStreamWriter",
    "AeronWriter",
    "PublishedStream",
    "check_schema",
    "reserved_value_of",
]

PUBLICATION_IDLE_MS = 30_000
"""Time for which a worker process keeps unused publications and clients, in milliseconds."""

_log = logger()


@dataclass(frozen=True)
class PublishedStream:
    """Range of the messages that a task published on one stream.

    The messages are between these positions of the session. The range may also contain messages of other tasks.
    """

    stream_id: int
    session_id: int
    first_position: int
    last_position: int
    rows: int


@dataclass(frozen=True)
class AeronCommitMessage(WriterCommitMessage):
    """Numbers of rows and messages that one task published, with the details of each stream."""

    partition: int
    attempt: int
    rows: int
    messages: int
    bytes: int
    streams: tuple[PublishedStream, ...]


# ---- planning -------------------------------------------------------------------------------------------------------


def check_schema(schema: StructType, options: SinkOptions) -> None:
    """Refuses columns that cannot be written, before any row is written.

    Raises :class:`~aeron.spark.errors.AeronOptionError`.
    """
    columns = {field.name: field.dataType for field in schema.fields}
    if len(columns) < len(schema.fields):
        names = schema.fieldNames()
        name = next(name for name in names if names.count(name) > 1)
        raise AeronOptionError(f"column '{name}' is twice in the DataFrame; name each column once")
    payload_of(options).check_written(columns)
    for name, type_ in SINK_HEADERS.items():
        if name in columns and columns[name] != type_:
            raise wrong_type(name, columns[name], sql(type_))
    _check_reserved_value("reserved_value" in columns, options)
    if "stream_id" not in columns and options.stream_id is None:
        raise AeronOptionError("option streamId: missing; give a stream id like 1001, or a column stream_id (INT)")


def _check_reserved_value(has_column: bool, options: SinkOptions) -> None:
    kind = options.reserved_value
    if has_column and kind not in {None, "column"}:
        raise AeronOptionError(
            f"option reservedValue: excluded by the column reserved_value, got '{kind}'; use column, or drop the column"
        )
    if kind == "column" and not has_column:
        raise AeronOptionError("option reservedValue: needs a column reserved_value (BIGINT), got 'column'; add it")


def reserved_value_of(schema: StructType, options: SinkOptions) -> str:
    """Returns the kind of the reserved values of messages."""
    return options.reserved_value or ("column" if "reserved_value" in schema.fieldNames() else "zero")


def _new_second() -> int:
    """Returns a second since the epoch that identifies a write: no other write of this user on this machine has it.

    The result is the current second, or a later one if another write has already used the current second.
    """
    path = os.path.join(tempfile.gettempdir(), f"aeron-spark-{os.getuid()}.second")
    try:
        with open(path, "r+b", opener=_open_own) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            last = file.read(20)
            second = max(int(time.time()), int(last) + 1 if last.isdigit() else 0)
            os.ftruncate(file.fileno(), 0)
            os.pwrite(file.fileno(), b"%d" % second, 0)
            return second
    except OSError as error:
        raise AeronSparkError(f"cannot note the time of this write in {path}: {error.strerror}; remove it") from None


def _open_own(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW, 0o600)


# ---- tasks ----------------------------------------------------------------------------------------------------------

_publications: SharedPublications | None = None


def _shared_publications() -> SharedPublications:
    """Returns the publications of this process. A forked child has its own publications."""
    global _publications  # noqa: PLW0603 - tasks share only the process, and publications must stay open between tasks
    if _publications is None or not _publications.is_usable:
        _publications = SharedPublications(PUBLICATION_IDLE_MS)
    return _publications


def _write(
    batches: Iterator[pa.RecordBatch], options: WriteOptions, reserved_value: str, query: str, batch_id: int
) -> AeronCommitMessage:
    context = TaskContext.get()
    partition = context.partitionId() if context else 0
    attempt = context.attemptNumber() if context else 0
    task = _shared_publications().task(
        options.channel,
        options.stream_id,
        query=query,
        partition=partition,
        attempt=attempt,
        connect_timeout_ms=options.connect_timeout_ms,
        offer_timeout_ms=options.offer_timeout_ms,
        reserved_value=reserved_value,
        batch_id=batch_id,
        value_format=options.value_format,
        value_schema=payload_of(options).native_schema,
        records_per_message=options.records_per_message or 1,
        client=client_settings(options),
    )
    for batch in batches:
        task.write(batch)
    published = task.finish(drain=options.drain)
    return AeronCommitMessage(
        partition,
        attempt,
        rows=published["rows"],
        messages=published["messages"],
        bytes=published["bytes"],
        streams=tuple(PublishedStream(*stream) for stream in published["streams"]),
    )


# ---- the writers ----------------------------------------------------------------------------------------------------


class _Writer:
    """Base class of both writers. Keeps the checked options, which Spark pickles for the workers. Opens nothing before
    a task runs."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, streaming: bool) -> None:
        self._options = write_options(options, streaming=streaming)
        check_schema(schema, self._options)
        self._reserved_value = reserved_value_of(schema, self._options)


class AeronWriter(_Writer, DataSourceArrowWriter):
    """Writes a DataFrame to Aeron streams.

    Raises :class:`~aeron.spark.errors.AeronOptionError` for an option or a column that is wrong.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        super().__init__(options, schema, streaming=False)
        if overwrite:
            raise AeronOptionError(
                "mode overwrite: what subscribers have read cannot be taken back; use .mode('append')"
            )
        self._second = _new_second() if self._reserved_value == "dedup" else 0
        self._query = uuid.uuid4().hex[:8]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> AeronCommitMessage:
        """Publishes the rows of one partition, in a worker."""
        return _write(iterator, self._options, self._reserved_value, self._query, self._second)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Checks that each task has reported the messages that it published."""
        _committed(messages, f"write {self._query} on {self._options.channel}")

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Logs the numbers of rows and messages that were published before the write failed. These rows stay
        published.
        """
        _aborted(messages, f"write {self._query} on {self._options.channel}")


class AeronStreamWriter(_Writer, DataSourceStreamArrowWriter):
    """Writes the batches of a streaming query to Aeron streams. In each output mode, it writes all rows that Spark
    passes.

    Raises :class:`~aeron.spark.errors.AeronOptionError` for an option or a column that is wrong.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(options, schema, streaming=True)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> AeronCommitMessage:
        """Publishes the rows of one partition of a batch, in a worker."""
        context = TaskContext.get()
        query = (context and context.getLocalProperty("sql.streaming.queryId")) or ""
        batch_id = (context and context.getLocalProperty("streaming.sql.batchId")) or "0"
        return _write(iterator, self._options, self._reserved_value, query[:8], int(batch_id))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Checks that each task of a batch has reported the messages that it published."""
        _committed(messages, f"batch {batchId} on {self._options.channel}")

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Logs the numbers of rows and messages that were published before the batch failed. These rows stay
        published.
        """
        _aborted(messages, f"batch {batchId} on {self._options.channel}")


def _committed(messages: Sequence[WriterCommitMessage | None], what: str) -> None:
    known = _known(messages)
    if len(known) != len(messages):
        raise AeronSparkError(
            f"{what}: {len(messages) - len(known)} of {len(messages)} tasks did not say what they sent"
        )
    for message in known:
        sent = sum(stream.rows for stream in message.streams)
        if sent != message.rows:
            raise AeronSparkError(
                f"{what}: partition {message.partition} counts {message.rows} rows, its streams {sent}"
            )
    _log.debug("%s: %s published", what, _sum_of(known))


def _aborted(messages: Sequence[WriterCommitMessage | None], what: str) -> None:
    known = _known(messages)
    _log.warning(
        "%s: aborted; %s published by %d of %d tasks cannot be withdrawn; a failed task may have published more",
        what,
        _sum_of(known),
        len(known),
        len(messages),
    )


def _known(messages: Sequence[WriterCommitMessage | None]) -> list[AeronCommitMessage]:
    return [message for message in messages if isinstance(message, AeronCommitMessage)]


def _sum_of(messages: Sequence[AeronCommitMessage]) -> str:
    rows, sent = sum(message.rows for message in messages), sum(message.messages for message in messages)
    return f"{rows} rows in {sent} messages"
