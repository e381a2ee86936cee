"""``spark.read.format("aeron")``: reads the recordings of a directory or of a running archive in partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from aeron import _pipeline
from aeron.spark.clients import archive_connections, archive_settings, recording_selection
from aeron.spark.columns import has_arrival_time, hidden_headers
from aeron.spark.logs import logger
from aeron.spark.options import ReadOptions, SharedReadOptions
from aeron.spark.pushed_filters import row_filter
from aeron.spark.rows import AeronPartition, read_partition

if TYPE_CHECKING:
    import pyarrow as pa

    from aeron._stubs.pipeline import _RowFilter

__all__ = ["AeronReader"]

_log = logger()


class _PushedFilters:
    """The method ``pushFilters`` of a reader.

    Unless ``spark.sql.python.filterPushdown.enabled`` is true, Spark refuses a reader that overrides ``pushFilters``.
    Spark finds an override by comparing the ``__func__`` of the method with the function of the base class. So this
    object has the function of the base class as its ``__func__``.
    """

    def __init__(self, hidden: frozenset[str]) -> None:
        self._hidden = hidden
        self.row_filter: _RowFilter | None = None

    @property
    def __func__(self) -> Callable[..., Iterable[Filter]]:
        """Returns the function of the base class."""
        return DataSourceReader.pushFilters

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        """Keeps the filters for the plan. Returns all of them, so that Spark evaluates them too."""
        self.row_filter = row_filter(filters, self._hidden)
        return filters


class AeronReader(DataSourceReader):
    """Plans partitions, and reads them. One thread at a time may use the reader."""

    def __init__(self, options: ReadOptions | SharedReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._pushed = _PushedFilters(hidden_headers(options))
        if isinstance(options, SharedReadOptions):
            self.pushFilters = self._pushed  # type: ignore[method-assign]

    def partitions(self) -> Sequence[InputPartition]:
        """Returns the partitions of the recordings. Each message is in one partition."""
        options = self._options
        if isinstance(options, SharedReadOptions):
            needs_timestamp = has_arrival_time(self._schema, options)
            pieces = _of_archive(options, needs_timestamp=needs_timestamp, filter=self._pushed.row_filter)
        else:
            pieces = _of_directory(options)
        return [AeronPartition(piece) for piece in pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a partition."""
        return read_partition(partition, self._options, self._schema)


def _of_directory(options: ReadOptions) -> list[str]:
    return _pipeline.plan_recordings(
        options.archive_dir,
        stream_ids=options.stream_id,
        recording_ids=options.recording_id,
        min_partitions=options.min_partitions,
        max_rows_per_partition=options.max_rows_per_partition,
        value_schema=options.value_schema,
    )


def _of_archive(options: SharedReadOptions, *, needs_timestamp: bool, filter: _RowFilter | None) -> list[str]:
    layout = None if options.value_schema is None else _pipeline.Layout(options.value_schema)
    pieces, lines = _pipeline.plan_archive(
        archive_connections(),
        archive_settings(options),
        recording_selection(options),
        starting_offsets=options.starting_offsets,
        ending_offsets=options.ending_offsets,
        directory=options.archive_dir,
        min_partitions=options.min_partitions,
        max_rows_per_partition=options.max_rows_per_partition,
        record_length=layout and layout.record_length,
        needs_timestamp=needs_timestamp,
        filter=filter,
    )
    for line in lines:
        _log.warning(line)
    return pieces
