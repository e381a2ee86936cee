"""``spark.read.format("aeron")``: reads the recordings of a directory or of a running archive in partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from aeron import _pipeline
from aeron.spark.clients import archive_connections, archive_settings, recording_selection
from aeron.spark.columns import has_arrival_time
from aeron.spark.options import ReadOptions, SharedReadOptions
from aeron.spark.rows import AeronPartition, read_partition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AeronReader"]


class AeronReader(DataSourceReader):
    """Plans partitions, and reads them. Keeps no state. One thread at a time may use the reader."""

    def __init__(self, options: ReadOptions | SharedReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Returns the partitions of the recordings. Each message is in one partition."""
        options = self._options
        if isinstance(options, SharedReadOptions):
            pieces = _of_archive(options, needs_timestamp=has_arrival_time(self._schema, options))
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


def _of_archive(options: SharedReadOptions, *, needs_timestamp: bool) -> list[str]:
    layout = None if options.value_schema is None else _pipeline.Layout(options.value_schema)
    return _pipeline.plan_archive(
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
    )
