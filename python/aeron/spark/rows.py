"""Reads a partition of a recording in a worker, as record batches with Spark's schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from aeron.spark.logs import logger
from aeron.spark.option_table import MALFORMED
from aeron.spark.options import ReadStreamOptions, SharedOptions, SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from aeron import _pipeline

__all__ = ["AeronPartition", "read_partition"]

_log = logger()


@dataclass(frozen=True)
class AeronPartition(InputPartition):
    """The text of a partition. It names the recording and a range of positions, and contains no data. Immutable."""

    text: str


def read_partition(
    partition: InputPartition | None, options: SourceOptions, schema: StructType
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a partition as record batches with exactly this `schema`.

    If a plan has no partitions, Spark passes ``None``, and there are no rows.
    """
    if not isinstance(partition, AeronPartition):
        return
    import pyarrow as pa

    from aeron import _pipeline
    from aeron.spark.columns import arrow_schema
    from aeron.spark.payloads import payload_of

    expected = arrow_schema(schema)
    if isinstance(options, SharedOptions):
        reader: _pipeline.SharedPartitionReader | _pipeline.PartitionReader = _shared(partition, options, expected)
    else:
        reader = _pipeline.PartitionReader(
            partition.text,
            expected,
            value_format=options.value_format,
            value_schema=payload_of(options).native_schema,
            malformed=MALFORMED[options.mode],
            verify_checksums=options.verify_checksums,
            channel=options.channel if isinstance(options, ReadStreamOptions) else None,
        )
    for batch in reader:
        yield pa.record_batch(batch)
    if isinstance(reader, _pipeline.PartitionReader) and isinstance(options, ReadStreamOptions):
        _report_counts(reader)
    if reader.malformed:
        piece = json.loads(partition.text)
        _log.warning(
            "mode=%s: %d malformed messages or records of stream %d, session %d, positions %d to %d",
            options.mode,
            reader.malformed,
            piece["recording"]["stream_id"],
            piece["recording"]["session_id"],
            piece["from"],
            piece["to"],
        )


def _shared(partition: AeronPartition, options: SharedOptions, schema: pa.Schema) -> _pipeline.SharedPartitionReader:
    """Returns the reader of a partition of a running archive."""
    from aeron import _pipeline
    from aeron.spark.clients import archive_connections, archive_settings
    from aeron.spark.payloads import payload_of

    return _pipeline.SharedPartitionReader(
        archive_connections(),
        archive_settings(options),
        partition.text,
        schema,
        directory=options.archive_dir,
        value_format=options.value_format,
        value_schema=payload_of(options).native_schema,
        malformed=MALFORMED[options.mode],
        verify_checksums=options.verify_checksums,
    )


def _report_counts(reader: _pipeline.PartitionReader) -> None:
    """Reports the numbers of malformed and skipped messages to the source. A failure is only logged, because the task
    has already read its rows.
    """
    try:
        reader.report_counts()
    except OSError as error:
        _log.warning("malformed and skipped messages of this task are missing in the query's progress: %s", error)
