"""Peers of our source and sink in Spark: sources of prepared rows, sinks that only count rows, and hand-written code.

Spark's workers import this module. A reader prepares its data once in each task.
"""

import itertools
import json
import time
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from aeron.spark.source import AeronDataSource
from bench.spark import content

KINDS = {kind.name: kind for kind in (*content.KINDS, content.PLAIN)}


# ---- prebuilt record batches ---------------------------------------------------------------------------------------


@dataclass
class Share(InputPartition):
    """A partition with the given number of rows."""

    rows: int


class Prebuilt(DataSource):
    """A source of prepared rows. Options: number of `rows`, `kind` of rows, number of equal `partitions`, and number of
    rows `perTrigger`."""

    @classmethod
    def name(cls):
        return "prebuilt"

    def schema(self):
        return KINDS[self.options["kind"]].schema

    def reader(self, schema):
        return PrebuiltReader(self.options, schema)

    def streamReader(self, schema):
        return PrebuiltStreamReader(self.options, schema)


class PrebuiltReader(DataSourceReader):
    def __init__(self, options, schema):
        self._kind, self._schema = KINDS[options["kind"]], schema
        self._rows, self._partitions = int(options["rows"]), int(options["partitions"])

    def partitions(self):
        return [Share(self._rows // self._partitions)] * self._partitions

    def read(self, partition):
        yield from repeated(ring_of(self._kind, self._schema), partition.rows)


class PrebuiltStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options, schema):
        self._kind, self._schema = KINDS[options["kind"]], schema
        self._rows, self._partitions = int(options["rows"]), int(options["partitions"])
        self._step = int(options.get("pertrigger", self._rows))

    def initialOffset(self):
        return {"rows": 0}

    def prepareForTriggerAvailableNow(self):
        pass

    def latestOffset(self, start, limit):
        return {"rows": min(start["rows"] + self._step, self._rows)}

    def partitions(self, start, end):
        rows = end["rows"] - start["rows"]
        return [Share(rows // self._partitions)] * self._partitions if rows else []

    def read(self, partition):
        yield from repeated(ring_of(self._kind, self._schema), partition.rows)


def ring_of(kind, schema):
    """Returns the ring as record batches. They have the same number of rows and the same column types as the record
    batches of our source."""
    arrow, messages = to_arrow_schema(schema, timezone="UTC"), kind.messages()
    ends = range(kind.batch_rows, content.RING + 1, kind.batch_rows)
    return [_batch_of(messages[end - kind.batch_rows : end], arrow) for end in ends]


def _batch_of(messages, schema):
    def column(field):
        if field.name in (messages.dtype.names or ()):
            values = messages[field.name]
            return pa.array(values // 1000 if pa.types.is_timestamp(field.type) else values).cast(field.type)
        if field.name == "value":
            return pa.array([message.tobytes() for message in messages], field.type)
        return pa.array(np.arange(len(messages))).cast(field.type)

    return pa.record_batch([column(field) for field in schema], schema=schema)


def repeated(ring, rows):
    """Yields the record batches again and again until they have `rows` rows."""
    for batch in itertools.cycle(ring):
        if rows <= len(batch):
            break
        yield batch
        rows -= len(batch)
    if rows:
        yield batch.slice(0, rows)


# ---- writers that count ----------------------------------------------------------------------------------------------


@dataclass
class Count(WriterCommitMessage):
    rows: int


class Counting(DataSource):
    """A sink that only counts the rows of record batches."""

    @classmethod
    def name(cls):
        return "counting"

    def writer(self, schema, overwrite):
        return CountingWriter()

    def streamWriter(self, schema, overwrite):
        return CountingStreamWriter()


class CountingWriter(DataSourceArrowWriter):
    def write(self, iterator):
        return Count(sum(batch.num_rows for batch in iterator))


class CountingStreamWriter(DataSourceStreamArrowWriter):
    def write(self, iterator):
        return Count(sum(batch.num_rows for batch in iterator))

    def commit(self, messages, batchId):
        pass

    def abort(self, messages, batchId):
        pass


# ---- by hand ---------------------------------------------------------------------------------------------------------


class ByHand(DataSource):
    """A source that yields one tuple for each `recv` of pyzmq. Options: `kind` of rows, number of `rows`, and `address`
    of the socket."""

    @classmethod
    def name(cls):
        return "by-hand"

    def schema(self):
        return KINDS[self.options["kind"]].schema

    def reader(self, schema):
        return ByHandReader(self.options)


class ByHandReader(DataSourceReader):
    def __init__(self, options):
        self._address, self._rows = options["address"], int(options["rows"])

    def partitions(self):
        return [InputPartition(0)]

    def read(self, partition):
        import datetime

        import zmq

        socket = zmq.Context.instance().socket(zmq.PULL)
        socket.setsockopt(zmq.RCVTIMEO, 60_000)
        socket.connect(self._address)
        for number in range(self._rows):
            message = socket.recv()
            yield message, 1001, 1, number, 0, datetime.datetime.now(datetime.UTC)
        socket.close()


def offer_rows(directory, channel, stream_id):
    """Returns a function for `foreachPartition` that calls `offer` once for the value of each row."""

    def send(rows):
        import os

        import aeron

        with aeron.connect(directory) as client, client.add_publication(channel, stream_id) as publication:
            publication.wait_connected(timeout=10)
            for row in rows:
                value = bytes(row.value)
                while not publication.offer(value):
                    os.sched_yield()

    return send


def send_rows(address):
    """Returns a function for `foreachPartition` that calls `send` of pyzmq once for the value of each row."""

    def send(rows):
        import zmq

        socket = zmq.Context.instance().socket(zmq.PUSH)
        socket.connect(address)
        for row in rows:
            socket.send(bytes(row.value))
        socket.close()

    return send


# ---- ours, with a clock ----------------------------------------------------------------------------------------------


class Timed(AeronDataSource):
    """Our source with a clock. For each call of `latestOffset` or `partitions`, the reader appends a line to `times`.

    `times` is a file. The line is JSON: the name of the hook, and the duration of the call in nanoseconds.
    """

    def __init__(self, options):
        self._times = options.pop("times")
        super().__init__(options)

    @classmethod
    def name(cls):
        return "timed-aeron"

    def streamReader(self, schema):
        return TimedReader(super().streamReader(schema), self._times)


class TimedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, reader, times):
        self._reader, self._times = reader, times

    def initialOffset(self):
        return self._reader.initialOffset()

    def getDefaultReadLimit(self):
        return self._reader.getDefaultReadLimit()

    def prepareForTriggerAvailableNow(self):
        self._reader.prepareForTriggerAvailableNow()

    def latestOffset(self, start, limit):
        with self._timed("latestOffset"):
            return self._reader.latestOffset(start, limit)

    def partitions(self, start, end):
        with self._timed("partitions"):
            return self._reader.partitions(start, end)

    def read(self, partition):
        return self._reader.read(partition)

    def commit(self, end):
        self._reader.commit(end)

    def reportLatestOffset(self):
        return self._reader.reportLatestOffset()

    def stop(self):
        self._reader.stop()

    @contextmanager
    def _timed(self, hook):
        start = time.perf_counter_ns()
        yield
        with open(self._times, "a") as file:
            file.write(json.dumps([hook, time.perf_counter_ns() - start]) + "\n")


FORMATS = (Prebuilt, Counting, ByHand, Timed)
