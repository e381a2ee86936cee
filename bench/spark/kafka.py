"""Cases that read the same rows with `format("aeron")` and with `format("kafka")`."""

import statistics
import struct
import sys
import time
import uuid
import zlib
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench import PROJECT
from bench.measure import SPARE_TIME_S, VoidError, expect_ready, started
from bench.spark import content
from bench.spark.kafka_broker import broker, client
from bench.spark.session import media_driver, place, session, used
from bench.spark.source import (
    Case,
    Drain,
    Recorded,
    SharedDrain,
    batches,
    costs,
    into_nothing,
    rate_of,
    started_query,
    stream,
)

ROWS = 1_000_000
"""Number of rows that each source reads in a run with `seconds` = 1. Kafka's source needs several seconds for them."""
SETTLE_S = 3
"""Seconds until a query has settled. The latency of messages that were sent earlier does not count."""
STEADY_SECONDS = 8
"""Seconds of sending after the query has settled, in a run with `seconds` = 1. The latency of these messages counts."""
_TIMEOUT_S = 120
_STAMP = struct.Struct("<q")


def summed(by_process):
    """Returns the CPU time of each process, and their sum as `cost`."""
    return {"cost": sum(by_process.values()), **by_process}


def subscribed(topic, reader):
    """Returns a frame with all rows of a topic. `reader` is `readStream` or `read` of the Spark session."""
    options = {"kafka.bootstrap.servers": broker().address, "subscribe": topic, "startingOffsets": "earliest"}
    return reader.format("kafka").options(**options).load()


def _sender(python, role, address, *words):
    command, environment = (python, "-m", "bench.spark.sender"), {"PYTHONPATH": str(PROJECT)}
    return started(command, address, [role, *map(str, words)], environment=environment)


# ---- drained ---------------------------------------------------------------------------------------------------------


class AeronDrain(Drain):
    """Reads with our source as many rows as `KafkaDrain` reads. Measures the CPU time of all processes."""

    def once(self, seconds):
        measured = super().once(seconds * ROWS / self.kind.rate)
        rate = measured.pop("rate")
        return {"rate": rate, **summed(measured)}


class SharedArchiveDrain(SharedDrain):
    """Reads from a running archive as many rows as `KafkaDrain` reads. Measures the CPU time of all processes."""

    def once(self, seconds):
        measured = super().once(seconds * ROWS / self.kind.rate)
        rate = measured.pop("rate")
        return {"rate": rate, **summed(measured)}


@dataclass
class KafkaDrain(Case):
    """Reads a topic of one partition and drops the rows. The topic is filled once and read in each run."""

    name: str
    kind: content.Kind
    change: Callable = lambda frame: frame
    _topics: dict = field(default_factory=dict)

    def once(self, seconds):
        rows = self.kind.rows(seconds * ROWS / self.kind.rate)
        if rows not in self._topics:
            self._topics[rows] = self._filled(rows)
        with place() as path:
            frame = self.change(subscribed(self._topics[rows], session().readStream))
            before = used(broker=broker().pid)
            rate = rate_of(rows, batches(started_query(into_nothing(frame), Recorded(path, "", 0.0))))
            return {"rate": rate, **summed(costs(before, rows, broker=broker().pid))}

    def _filled(self, rows):
        """Fills a topic, checks the count and the checksum of its messages, and returns the name of the topic."""
        from pyspark.sql import functions as F

        topic = f"drained-{uuid.uuid4().hex[:12]}"
        with _sender(client(), "fill", broker().address, topic, self.kind.name, rows) as sender:
            sender.read(_TIMEOUT_S)
        found = subscribed(topic, session().read).agg(F.count("*"), F.sum(F.crc32("value"))).first()
        sums = (zlib.crc32(bytes(message)) for message in content.as_bytes(self.kind))
        if tuple(found) != (rows, sent := sum(sums) * rows // content.RING):
            raise VoidError(f"{self.name}: read {tuple(found)}, published {(rows, sent)}")
        return topic


# ---- live ------------------------------------------------------------------------------------------------------------


class Arrivals:
    """Send time of each message, and latency until `foreachBatch` received the message."""

    def __init__(self):
        self._stamps_and_delays = []

    def __len__(self):
        return len(self._stamps_and_delays)

    def take(self, frame, _):
        stamps = [_STAMP.unpack_from(row.value)[0] for row in frame.collect()]
        now = time.time_ns()
        self._stamps_and_delays += [(stamp, now - stamp) for stamp in stamps]

    def percentiles(self):
        """Returns percentiles of the latency in milliseconds. Messages that were sent before the query had settled do
        not count."""
        settled = min(stamp for stamp, _ in self._stamps_and_delays) + SETTLE_S * 1_000_000_000
        delays = [delay / 1e6 for stamp, delay in self._stamps_and_delays if stamp >= settled]
        return {"p50": statistics.median(delays), "p99": statistics.quantiles(delays, n=100)[98]}


@dataclass
class _Latency(Case):
    """Latency of messages that another process sends at a steady rate. The query runs its batches without pause."""

    _is_warm = True

    name: str
    unit: str = "ms"

    def once(self, seconds):
        lasts, arrivals = SETTLE_S + STEADY_SECONDS * seconds, Arrivals()
        with place() as path, self._source(path, lasts) as (sender, recorded, frame):
            writer = frame.select("value").writeStream.foreachBatch(arrivals.take)
            query = started_query(writer, recorded, processingTime="0 seconds")
            try:
                sender.write("go")
                sent = int(sender.read(lasts + SPARE_TIME_S))
                self._await_all(query, arrivals, sent)
            finally:
                query.stop()
        return arrivals.percentiles()

    def _await_all(self, query, arrivals, sent):
        deadline = time.monotonic() + _TIMEOUT_S
        while len(arrivals) < sent and query.isActive and time.monotonic() < deadline:
            time.sleep(0.05)
        if len(arrivals) != sent:
            raise VoidError(f"{self.name}: sent {sent}, received {len(arrivals)}: {query.exception()}")


class AeronLatency(_Latency):
    @contextmanager
    def _source(self, path, seconds):
        with media_driver() as (directory, _), _sender(sys.executable, "aeron", directory, seconds) as sender:
            expect_ready(sender)
            recorded = Recorded(path, directory, 0.0)
            yield sender, recorded, stream(content.PLAIN, recorded)


class KafkaLatency(_Latency):
    @contextmanager
    def _source(self, path, seconds):
        topic = f"steady-{uuid.uuid4().hex[:12]}"
        with _sender(client(), "kafka", broker().address, topic, seconds) as sender:
            expect_ready(sender)
            yield sender, Recorded(path, "", 0.0), subscribed(topic, session().readStream)
