"""``spark.read.format("aeron")``: the recordings of a directory, in pieces that the workers read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from aeron import _aeron
from aeron.spark.options import ReadOptions
from aeron.spark.rows import AeronPartition, read_partition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AeronReader"]


class AeronReader(DataSourceReader):
    """Plans by the catalog and reads by the segments; nothing is kept between. Serves one thread at a time."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Pieces of the recordings, each message in one of them."""
        options = self._options
        pieces = _aeron.plan_recordings(
            options.archive_dir,
            stream_ids=options.stream_id,
            recording_ids=options.recording_id,
            min_partitions=options.min_partitions,
            max_rows_per_partition=options.max_rows_per_partition,
            value_schema=options.value_schema,
        )
        return [AeronPartition(piece) for piece in pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a piece."""
        return read_partition(partition, self._options, self._schema)
