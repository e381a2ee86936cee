"""Cases that write rows: our sink with a subscriber that checks them, writers that only count, and hand-written
code."""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass

from bench.measure import VoidError
from bench.spark import content
from bench.spark.session import BYTES_PER_BATCH, NO_LIMIT, media_driver, place, session, used
from bench.spark.source import (
    CHANNEL,
    Case,
    Recorded,
    batches,
    costs,
    prebuilt,
    rate_of,
    recorded_backlog,
    started_query,
    stream,
)

SINK_STREAM = 1002


def numbered(kind, rows, partitions):
    """Returns a frame of rows with consecutive numbers. The JVM makes the rows."""
    from pyspark.sql import functions as F

    ids = session().range(0, rows, 1, partitions)
    if kind is content.TYPED:
        number = F.col("id")
        return ids.select(
            F.timestamp_micros(number).alias("ts"),
            (number / 64).alias("px"),
            number.alias("qty"),
            (number % 100).cast("int").alias("sym"),
            (number % 2).cast("int").alias("side"),
            number.alias("seq"),
            number.alias("flags"),
        )
    digits = F.lpad(F.col("id").cast("string"), 16, "0").cast("binary")
    return ids.select(F.concat(digits, F.lit(bytes(kind.length - 16))).alias("value"))


@contextmanager
def subscriber(directory, kind, rows, partitions=1, modulus=None):
    """Runs the process that checks the written rows. The end of the block waits until the process has received all
    rows."""
    typed = "typed" if kind is content.TYPED else "text"
    command = [sys.executable, "-m", "bench.spark.consumer", directory, CHANNEL, SINK_STREAM]
    command += [rows, partitions, typed, modulus or rows]
    with checked(command, f"{rows} 0"):
        yield


@contextmanager
def checked(command, expected):
    """Runs a process that prints `ready`. At the end of the block, the process must print the expected line."""
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline().strip() == "ready"
            yield
            if (found := process.stdout.readline().strip()) != expected:
                raise VoidError(f"expected {expected!r}, received {found!r}")
        finally:
            process.kill()


@contextmanager
def bytes_per_batch(limit):
    """Sets `maxBytesPerBatch` of the session for the duration of a block."""
    session().conf.set(BYTES_PER_BATCH, limit)
    try:
        yield
    finally:
        session().conf.unset(BYTES_PER_BATCH)


def timed_write(action, rows):
    """Runs an action that writes `rows` rows. Returns the rows per second of wall time, and the CPU costs of the
    action."""
    before, start = used(), time.perf_counter()
    action()
    return {"rate": rows / (time.perf_counter() - start), **costs(before, rows)}


def to_aeron(writer, kind, directory):
    """Returns a writer of our sink with the options for messages of this kind."""
    options = {"channel": CHANNEL, "streamId": str(SINK_STREAM), "aeron.dir": directory, **dict(kind.options)}
    return writer.format("aeron").options(**options)


@dataclass
class Sink(Case):
    """Our sink in `df.write`, with a subscriber that checks the rows."""

    name: str
    kind: content.Kind
    partitions: int = 1
    limit: int = NO_LIMIT

    def once(self, seconds):
        rows = self.kind.rows(seconds)
        frame = numbered(self.kind, rows, self.partitions)
        with (
            media_driver() as (directory, _),
            subscriber(directory, self.kind, rows, self.partitions),
            bytes_per_batch(self.limit),
        ):
            return timed_write(to_aeron(frame.write, self.kind, directory).mode("append").save, rows)


@dataclass
class CountingSink(Case):
    """An Arrow writer that only counts the rows of `Sink`."""

    name: str
    kind: content.Kind
    partitions: int = 1
    limit: int = NO_LIMIT

    def once(self, seconds):
        rows = self.kind.rows(seconds)
        with bytes_per_batch(self.limit):
            return timed_write(
                numbered(self.kind, rows, self.partitions).write.format("counting").mode("append").save, rows
            )


@contextmanager
def by_offer(kind, rows):
    """Yields a function that calls `offer` once for each row. Our subscriber checks the rows."""
    from bench.spark import peers

    with media_driver() as (directory, _), subscriber(directory, kind, rows):
        yield peers.offer_rows(directory, CHANNEL, SINK_STREAM)


@contextmanager
def by_zmq(kind, rows):
    """Yields a function that calls `send` of pyzmq once for each row. The receiver checks the order of the rows."""
    from bench.spark import peers

    with place() as path:
        address = f"ipc://{path}/socket"
        receiver = [sys.executable, "-m", "bench.spark.zmq_end", "pull", address, rows, kind.length]
        with checked(receiver, "0"):
            yield peers.send_rows(address)


@dataclass
class EachRow(Case):
    """`foreachPartition` with one call for each row. `way` is `by_offer` or `by_zmq`: it yields the function that makes
    the calls."""

    name: str
    way: Callable
    kind: content.Kind
    share: float = 0.05

    def once(self, seconds):
        rows = self.kind.rows(seconds * self.share)
        frame = numbered(self.kind, rows, 1)
        with self.way(self.kind, rows) as send:
            return timed_write(lambda: frame.foreachPartition(send), rows)


@dataclass
class Round(Case):
    """A query from one stream to another. Our source reads a backlog, and our sink writes the rows to a subscriber."""

    name: str
    kind: content.Kind

    def once(self, seconds):
        rows = self.kind.rows(seconds)
        with (
            recorded_backlog(self.kind, rows) as recorded,
            subscriber(recorded.directory, self.kind, rows, modulus=content.RING),
            bytes_per_batch(NO_LIMIT),
        ):
            writer = to_aeron(stream(self.kind, recorded).writeStream, self.kind, recorded.directory)
            before = used()
            rate = rate_of(rows, batches(started_query(writer, recorded)))
            return {"rate": rate, **costs(before, rows)}


@dataclass
class PrebuiltRound(Case):
    """A query that reads prepared rows and writes them to a writer that only counts."""

    name: str
    kind: content.Kind

    def once(self, seconds):
        rows = self.kind.rows(seconds)
        with place() as path, bytes_per_batch(NO_LIMIT):
            frame = session().readStream.format("prebuilt").options(**prebuilt(self.kind, rows, 1)).load()
            before = used()
            query = started_query(frame.writeStream.format("counting"), Recorded(path, "", 0.0))
            return {"rate": rate_of(rows, batches(query)), **costs(before, rows)}
