"""Collects the batches of a query for a test. The sink is idempotent by batch id. Each wait has a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conftest import eventually

import aeron
from aeron import _aeron

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

PATIENCE_S = 120


class Batches:
    """Tables of a query's batches, by batch id. A batch that runs again replaces its table."""

    def __init__(self) -> None:
        self.tables: dict[int, pa.Table] = {}
        self.runs: dict[int, list[pa.Table]] = {}

    def take(self, frame: DataFrame, batch_id: int) -> None:
        """Stores the rows of a batch. Pass this method to ``foreachBatch``."""
        table = frame.toArrow()
        self.tables[batch_id] = table
        self.runs.setdefault(batch_id, []).append(table)

    def column(self, name: str) -> list[Any]:
        """Returns the values of a column of all batches, in the order of the batches."""
        return [value for _, table in sorted(self.tables.items()) for value in table[name].to_pylist()]

    @property
    def rows(self) -> int:
        """Returns the number of rows of all batches."""
        return sum(table.num_rows for table in list(self.tables.values()))


@contextmanager
def running(
    frame: DataFrame, checkpoint: object, batches: Batches | None = None, **trigger: Any
) -> Iterator[StreamingQuery]:
    """Runs a query on `frame` during the block. The query has subscribed when the block begins, because this function
    waits for the first batch.
    """
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint))
    writer = writer.format("noop") if batches is None else writer.foreachBatch(batches.take)
    query = (writer.trigger(**trigger) if trigger else writer).start()
    try:
        until(query, lambda: query.lastProgress is not None)
        yield query
    finally:
        query.stop()


def until(query: StreamingQuery, condition: Callable[[], bool], timeout: float = PATIENCE_S) -> None:
    """Waits until the condition is true. If the query fails, raises the error of the query at once."""
    deadline = time.monotonic() + timeout
    while not condition():
        if not query.isActive:
            query.awaitTermination()  # raises the error that ended the query
            assert condition(), "the query ended"
        assert time.monotonic() < deadline, f"not within {timeout} s; last progress: {query.lastProgress}"
        time.sleep(0.02)


def send(publication: aeron.ExclusivePublication, messages: list[bytes]) -> None:
    """Publishes the messages after a subscriber has connected."""
    publication.wait_connected(timeout=PATIENCE_S)
    for message in messages:
        publication.publish(message, timeout=PATIENCE_S)


def await_release(directory: Path) -> None:
    """Waits until no process uses the archive in a directory. This is necessary because Spark does not wait for the
    source process of a stopped query."""

    def is_free() -> bool:
        try:
            _aeron.plan_recordings(directory)
        except aeron.AeronError as error:
            if "is in use by process" not in str(error):
                raise
            return False
        return True

    eventually(is_free, PATIENCE_S)


def numbers(first: int, last: int) -> list[bytes]:
    """Returns the messages from number `first` to `last - 1`. Each message contains its number."""
    return [b"message %d" % number for number in range(first, last)]
