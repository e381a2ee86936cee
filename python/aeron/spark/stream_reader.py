"""``spark.readStream.format("aeron")``: plans offsets and partitions, and reads the partitions in workers.

Spark creates one reader in the source process for offsets, and another reader that it pickles for the workers. Only the
first reader opens resources. This module keeps the resources in a dictionary by reader id, because a reader must be
picklable.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import uuid
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from aeron import _pipeline
from aeron.spark.clients import archive_connections, archive_settings, client_settings, recording_selection
from aeron.spark.columns import has_arrival_time
from aeron.spark.errors import AeronSparkError
from aeron.spark.logs import logger
from aeron.spark.options import ReadStreamOptions, SharedReadStreamOptions
from aeron.spark.rows import AeronPartition, read_partition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AeronStreamReader", "RefusingStreamReader"]

_log = logger()

_Source = _pipeline.LiveSource | _pipeline.SharedSource

_live: dict[str, _Source] = {}
"""Open sources of this process, by reader id."""


class AeronStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Passes the calls of Spark's hooks to the native source. One thread at a time may use it."""

    def __init__(self, options: ReadStreamOptions | SharedReadStreamOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._id = uuid.uuid4().hex

    def getDefaultReadLimit(self) -> ReadLimit:
        """Returns the limit of a batch, in rows or in bytes. Spark supports only one limit.

        If the options set both limits, Spark gets the limit of rows, and the native source applies the limit of bytes.
        """
        if self._options.max_rows_per_trigger is not None:
            return ReadMaxRows(self._options.max_rows_per_trigger)
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Prepares for ``Trigger.AvailableNow``.

        No batch goes beyond the data that exists when Spark requests the end of the first batch.
        """
        self._source().prepare_for_available_now()

    def initialOffset(self) -> dict[str, Any]:
        """Returns the offset of a private archive that does not exist yet. If the query reads from an archive server,
        returns an offset that means "start not known yet"."""
        return _offset(self._source().initial_offset())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Returns the end offset of the next batch. Waits up to 100 ms for data."""
        is_limited = not isinstance(limit, ReadAllAvailable)
        return _offset(self._source().latest_offset(_text(start), limited=is_limited))

    def reportLatestOffset(self) -> dict[str, Any]:
        """Returns the report for :func:`aeron.spark.progress`. Also logs the pending warnings of the source, because
        Spark calls this hook after every batch."""
        source = self._source()
        _log_lines(source)
        return _offset(source.report())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns the partitions of a batch. After a restart, Spark may call this hook before it requests an offset."""
        source = self._source()
        pieces = source.partitions(_text(start), _text(end))
        _log_lines(source)
        return [AeronPartition(text) for text in pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a partition. Each read yields the same rows."""
        return read_partition(partition, self._options, self._schema)

    def commit(self, end: dict[str, Any]) -> None:
        """Permits a private archive to delete the data before `end`. If the query reads from an archive server, stores
        `end` in the named reader, if the query has one."""
        self._source().commit(_text(end))

    def stop(self) -> None:
        """Closes the source. A private archive ends its recordings and keeps the recorded data for a restart."""
        source = _live.get(self._id)
        if source is not None:
            _log_lines(source)
            source.close()
            # This is the last step, because the handler of SIGTERM may run before it. The handler closes only the
            # sources in `_live`.
            _live.pop(self._id, None)

    def _source(self) -> _Source:
        source = _live.get(self._id)
        if source is None:
            _close_at_termination()
            source = _live[self._id] = _open(self._options, self._schema)
        return source


class RefusingStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Replacement for a reader that cannot be created. Each hook raises the error with the reason.

    If ``streamReader`` raised the error, Spark's source process would report its own ``UnboundLocalError`` instead.
    """

    def __init__(self, reason: AeronSparkError) -> None:
        self._reason = reason

    def _refuse(self) -> NoReturn:
        raise self._reason

    def getDefaultReadLimit(self) -> ReadLimit:
        """Raises the error with the reason. Spark calls this hook first."""
        self._refuse()

    def prepareForTriggerAvailableNow(self) -> None:
        """Raises the error with the reason."""
        self._refuse()

    def initialOffset(self) -> dict[str, Any]:
        """Raises the error with the reason."""
        self._refuse()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Raises the error with the reason."""
        self._refuse()

    def reportLatestOffset(self) -> dict[str, Any]:
        """Raises the error with the reason."""
        self._refuse()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Raises the error with the reason."""
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises the error with the reason."""
        self._refuse()


def _open(options: ReadStreamOptions | SharedReadStreamOptions, schema: StructType) -> _Source:
    """Returns a new native source for these options. Creating the source opens no archive, driver or client."""
    layout = None if options.value_schema is None else _pipeline.Layout(options.value_schema)
    if isinstance(options, SharedReadStreamOptions):
        return _pipeline.SharedSource(
            archive_connections(),
            archive_settings(options),
            recording_selection(options),
            starting_offsets=options.starting_offsets,
            directory=options.archive_dir,
            max_rows_per_trigger=options.max_rows_per_trigger,
            max_bytes_per_trigger=options.max_bytes_per_trigger,
            min_partitions=options.min_partitions,
            max_rows_per_partition=options.max_rows_per_partition,
            record_length=layout and layout.record_length,
            fail_on_data_loss=options.fail_on_data_loss,
            needs_timestamp=has_arrival_time(schema, options),
            reader=options.archive_reader,
            reader_max_age_ms=options.archive_reader_max_age_ms,
        )
    return _pipeline.LiveSource(
        options.channel,
        options.stream_id,
        client=client_settings(options),
        embedded_driver=options.embedded_driver,
        archive_dir=options.archive_dir,
        max_retained_bytes=options.max_retained_bytes,
        max_rows_per_trigger=options.max_rows_per_trigger,
        max_bytes_per_trigger=options.max_bytes_per_trigger,
        min_partitions=options.min_partitions or 1,
        max_rows_per_partition=options.max_rows_per_partition,
        record_length=layout and layout.record_length,
        fail_on_data_loss=options.fail_on_data_loss,
        needs_timestamp=has_arrival_time(schema, options),
    )


def _log_lines(source: _Source) -> None:
    for line in source.take_lines():
        _log.warning(line)


def _offset(text: str) -> dict[str, Any]:
    offset: dict[str, Any] = json.loads(text)
    return offset


def _text(offset: dict[str, Any]) -> str:
    """Returns the canonical text of an offset. The keys are in the right order, because Python keeps the order of
    parsed keys.
    """
    return json.dumps(offset, separators=(",", ":"))


def _close_at_termination() -> None:
    """Installs a handler of SIGTERM that closes the sources. Spark ends a source process with SIGTERM. Without the
    handler, publishers would wait for a dead subscriber."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: FrameType | None) -> None:
    for source in list(_live.values()):
        source.close()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
