"""``spark.read.format("aeron")``: reads the recordings of a directory in partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from aeron import _pipeline
from aeron.spark.options import ReadOptions
from aeron.spark.rows import AeronPartition, read_partition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AeronReader"]


class AeronReader(DataSourceReader):
    """Plans partitions from the catalog, and reads segment files. Keeps no state. One thread at a time may use it."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Returns the partitions of the recordings. Each message is in one partition."""
        options = self._options
        pieces = _pipeline.plan_recordings(
            options.archive_dir,
            stream_ids=options.stream_id,
            recording_ids=options.recording_id,
            min_partitions=options.min_partitions,
            max_rows_per_partition=options.max_rows_per_partition,
            value_schema=options.value_schema,
        )
        return [AeronPartition(piece) for piece in pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a partition."""
        return read_partition(partition, self._options, self._schema)
