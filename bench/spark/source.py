"""Cases of the source: reading a backlog, a recording or a live stream, recording a stream, short triggers, and the
resources of long queries."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aeron
from bench.environments import PEERS
from bench.measure import VoidError, started
from bench.spark import content
from bench.spark.session import media_driver, place, session, source_process, used

CHANNEL = "aeron:ipc?term-length=16m"
WITHOUT_TIME = "value BINARY, stream_id INT, session_id INT, position BIGINT"
"""Columns that a query has if it reads files, and also if it reads replays. Replays have no arrival time."""
STREAM = 1001
WARM_UPS = 2
FULL_SECONDS = 1.0
"""Shortest duration of a run that needs a warm-up, in seconds. A shorter run only shows that all parts work."""
_TIMEOUT_S = 600
_SUBSCRIBER_POSITION = 4
_NEVER = "1 hour"


class Case:
    """Base of the cases. Warm-up runs, which do not count, precede the first full run of a case."""

    unit = "rows/s"
    _is_warm = False

    def measure(self, seconds):
        if not self._is_warm and seconds >= FULL_SECONDS:
            for _ in range(WARM_UPS):
                self.once(seconds)
            self._is_warm = True
        return self.once(seconds)


# ---- queries and backlogs --------------------------------------------------------------------------------------------


@dataclass
class Recorded:
    """Directories of a query and its driver, and the duration of its recording in seconds.

    `path` contains the query's checkpoint and archives. `directory` is the driver's directory, and `driver` is the
    driver's process. A query that records nothing, such as a query of prepared rows, needs only `path`."""

    path: object
    directory: str
    seconds: float
    driver: object = None


def stream(kind, recorded, source="aeron", schema=None, **options):
    """Returns a streaming frame of our source. Without `schema`, the frame has the default columns."""
    reader = session().readStream.format(source).option("channel", CHANNEL).option("streamId", str(STREAM))
    reader = reader.option("aeron.dir", recorded.directory).option("archiveDir", str(recorded.path / "archives"))
    reader = reader.options(maxRetainedBytes="4g", **dict(kind.options), **options)
    return (reader.schema(schema) if schema else reader).load()


def into_nothing(frame):
    """Returns a writer that drops all rows."""
    return frame.writeStream.format("noop")


def started_query(writer, recorded, **trigger):
    """Starts a query. Without `trigger`, the query reads the available rows and ends."""
    checkpoint = str(recorded.path / "checkpoint")
    return writer.option("checkpointLocation", checkpoint).trigger(**(trigger or {"availableNow": True})).start()


@contextmanager
def recorded_backlog(kind, rows, parent="/dev/shm"):
    """Records `rows` messages for a query that is then stopped."""
    with place(parent) as path, media_driver() as (directory, driver), aeron.connect(directory) as client:
        recorded = Recorded(path, directory, 0.0, driver)
        query = started_query(into_nothing(stream(kind, recorded)), recorded, processingTime=_NEVER)
        publication = client.add_exclusive_publication(CHANNEL, STREAM)
        publication.wait_connected(timeout=_TIMEOUT_S)
        recorded.seconds = publish(client, publication, kind, rows)
        query.stop()
        yield recorded


def publish(client, publication, kind, rows):
    """Publishes `rows` messages of the ring, and waits until they are recorded. Returns the seconds for both."""
    messages, start, sent = kind.messages(), time.perf_counter(), 0
    while sent < rows:
        first = sent % len(messages)
        accepted = publication.offer_batch(messages[first : first + rows - sent])
        sent += accepted
        if not accepted:
            os.sched_yield()
    end, deadline = publication.position, time.monotonic() + _TIMEOUT_S
    while _least_position(client) < end:
        if time.monotonic() > deadline:
            raise VoidError(f"not recorded within {_TIMEOUT_S} s")
        time.sleep(0.0005)
    return time.perf_counter() - start


def _least_position(client):
    """Returns the lowest subscriber position of the stream. The recorder moves its position only after it has
    written."""
    positions = (each for each in client.counters_reader if each.type_id == _SUBSCRIBER_POSITION)
    return min((each.value for each in positions if each.stream_id == STREAM), default=0)


def batches(query):
    """Waits for the end of a query. Returns the progress entries of its batches that have rows."""
    if not query.awaitTermination(_TIMEOUT_S):
        query.stop()
        raise VoidError(f"the query did not end within {_TIMEOUT_S} s")
    return [batch for batch in query.recentProgress if batch["numInputRows"]]


def rate_of(rows, progress):
    """Returns the rows per second of the given batches. Together they must have exactly `rows` rows."""
    if (counted := sum(batch["numInputRows"] for batch in progress)) != rows:
        raise VoidError(f"{rows} rows were published, {counted} were read")
    return rows / sum(batch["durationMs"]["triggerExecution"] for batch in progress) * 1e3


def costs(before, rows, **others):
    """Returns the CPU seconds per million rows since `before`, by process. `others` are further process ids."""
    return {name: (now - before[name]) / rows * 1e6 for name, now in used(**others).items()}


def hashed(frame, kind):
    """Returns the count and the checksum of the rows' content, as one row."""
    from pyspark.sql import functions as F

    return frame.agg(F.count("*"), F.sum(F.xxhash64(*kind.columns) % (1 << 31))).first()


def prebuilt(kind, rows, partitions, **options):
    """Returns the options of the reader of prepared rows."""
    return {"kind": kind.name, "rows": str(rows), "partitions": str(partitions), **options}


# ---- drained ---------------------------------------------------------------------------------------------------------


@dataclass
class Drain(Case):
    """Reads a backlog from the private archive, applies `change` to the frame, and drops the rows."""

    name: str
    kind: content.Kind
    partitions: int = 1
    change: Callable = lambda frame: frame
    schema: str | None = None
    _checked: bool = False

    def once(self, seconds):
        rows = self.kind.rows(seconds)
        with recorded_backlog(self.kind, rows) as recorded:
            frame = stream(self.kind, recorded, schema=self.schema, minPartitions=str(self.partitions))
            if not self._checked:
                self._check(recorded, rows)
            before = used(driver=recorded.driver.pid)
            rate = rate_of(rows, batches(started_query(into_nothing(self.change(frame)), recorded)))
            return {"rate": rate, **costs(before, rows, driver=recorded.driver.pid)}

    def _check(self, recorded, rows):
        """Reads the recorded messages with a batch query. Checks that their count and checksum are those of the
        published ones."""
        if self.kind.name in {kind.name for kind in content.KINDS}:
            expected = session().read.format("prebuilt").options(**prebuilt(self.kind, rows, 2)).load()
            found = archived(self.kind, recorded, 2)
            assert found.schema == expected.schema, f"{found.schema} is not {expected.schema}"
            if (ours := hashed(found, self.kind)) != (theirs := hashed(expected, self.kind)):
                raise VoidError(f"{self.name}: read {ours}, published {theirs}")
        self._checked = True


@dataclass
class SharedDrain(Case):
    """Reads a backlog from a running archive, through its files or by replays, and drops the rows."""

    name: str
    kind: content.Kind
    by_replay: bool = False
    schema: str | None = WITHOUT_TIME

    def once(self, seconds):
        rows = self.kind.rows(seconds)
        with (
            place() as path,
            media_driver() as (directory, driver),
            aeron.Archive(path / "archive", directory, threading_mode="DEDICATED"),
            aeron.connect(directory) as client,
            aeron.connect_archive(client) as archive,
        ):
            publication = archive.add_recorded_exclusive_publication(CHANNEL, STREAM)
            publish(client, publication, self.kind, rows)
            archive.wait_recorded(publication, publication.position, timeout=_TIMEOUT_S)
            archive.stop_recording(publication)
            reader = session().readStream.format("aeron").option("archive.controlChannel", "aeron:ipc")
            reader = reader.option("aeron.dir", directory).option("startingOffsets", "earliest")
            if not self.by_replay:
                reader = reader.option("archive.dir", str(path / "archive"))
            reader = reader.options(**dict(self.kind.options))
            frame = (reader.schema(self.schema) if self.schema else reader).load()
            # The archive's threads are those of this process.
            serving = {"driver": driver.pid, "archive": os.getpid()}
            before = used(**serving)
            rate = rate_of(rows, batches(started_query(into_nothing(frame), Recorded(path, directory, 0.0))))
            return {"rate": rate, **costs(before, rows, **serving)}


@dataclass
class PrebuiltDrain(Case):
    """Reads a stream of as many prepared rows as `Drain` reads, and drops them."""

    name: str
    kind: content.Kind
    partitions: int = 1

    def once(self, seconds):
        rows = self.kind.rows(seconds)
        with place() as path:
            reader = session().readStream.format("prebuilt").options(**prebuilt(self.kind, rows, self.partitions))
            before = used()
            rate = rate_of(rows, batches(started_query(into_nothing(reader.load()), Recorded(path, "", 0.0))))
            return {"rate": rate, **costs(before, rows)}


@dataclass
class Recording(Case):
    """Rate at which the stream recorder writes an image to segment files and indexes."""

    name: str
    kind: content.Kind
    parent: str = "/dev/shm"

    def once(self, seconds):
        rows = self.kind.rows(seconds)
        with recorded_backlog(self.kind, rows, self.parent) as recorded:
            return {"rate": rows / recorded.seconds}


# ---- read again ------------------------------------------------------------------------------------------------------


def archived(kind, recorded, partitions):
    """Returns a batch frame of the recordings of the stopped query."""
    reader = session().read.format("aeron").option("archiveDir", str(recorded.path / "archives"))
    return reader.options(minPartitions=str(partitions), **dict(kind.options)).load()


@dataclass
class BatchRead(Case):
    """Reads a recording as a batch with the option `archiveDir`. The recording is made once."""

    name: str
    kind: content.Kind
    partitions: int
    _kept: ExitStack = field(default_factory=ExitStack)
    _recorded: Recorded | None = None

    def once(self, seconds):
        rows = self.kind.rows(seconds)
        self._recorded = self._recorded or self._kept.enter_context(recorded_backlog(self.kind, rows))
        return timed_read(archived(self.kind, self._recorded, self.partitions), rows)


@dataclass
class PrebuiltRead(Case):
    """Reads as many prepared rows as `BatchRead` reads, in a batch query."""

    name: str
    kind: content.Kind
    partitions: int

    def once(self, seconds):
        rows = self.kind.rows(seconds)
        options = prebuilt(self.kind, rows, self.partitions)
        return timed_read(session().read.format("prebuilt").options(**options).load(), rows)


@dataclass
class ByHand(Case):
    """Reads with hand-written code: one `recv` of pyzmq and one tuple for each row."""

    name: str
    kind: content.Kind
    share: float = 0.1
    """Share of the rows that this case reads. With all rows of the other cases, a run would take too long."""

    def once(self, seconds):
        rows = self.kind.rows(seconds * self.share)
        with place() as path:
            address = f"ipc://{path}/socket"
            command = [sys.executable, "-m", "bench.spark.zmq_end", "push", address, str(rows), str(self.kind.length)]
            with subprocess.Popen(command, stdin=subprocess.PIPE) as sender:
                options = {"kind": self.kind.name, "rows": str(rows), "address": address}
                measured = timed_read(session().read.format("by-hand").options(**options).load(), rows)
                sender.kill()
        return measured


def timed_read(frame, rows):
    """Reads a frame and drops the rows. Returns rows per second of wall time, and CPU costs.

    An observation in the same query checks the number of rows.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    counted = Observation()
    before, start = used(), time.perf_counter()
    frame.observe(counted, F.count("*").alias("rows")).write.format("noop").mode("overwrite").save()
    seconds = time.perf_counter() - start
    if counted.get["rows"] != rows:
        raise VoidError(f"{rows} rows were expected, {counted.get['rows']} were read")
    return {"rate": rows / seconds, **costs(before, rows)}


# ---- triggers --------------------------------------------------------------------------------------------------------

TRIGGER_ROWS = 100


@dataclass
class Trigger(Case):
    """Batches of 100 rows from a backlog. Measures the time of the whole trigger, and the time of our hooks within
    it."""

    name: str
    unit: str = "ms"

    def once(self, seconds):
        count = triggers(seconds)
        kind, options = content.SMALL, {"maxRowsPerTrigger": str(TRIGGER_ROWS)}
        with recorded_backlog(kind, count * TRIGGER_ROWS) as recorded:
            times = recorded.path / "times"
            frame = stream(kind, recorded, source="timed-aeron", times=str(times), **options)
            progress = batches(started_query(into_nothing(frame), recorded))
            hooks = [json.loads(line) for line in times.read_text().splitlines()]
        assert len(progress) == count, f"{len(progress)} batches, not {count}"
        return {"p50": trigger_p50(progress), "hooks": hooks_p50(hooks)}


@dataclass
class PrebuiltTrigger(Case):
    """Batches of 100 prepared rows. Measures the time of the whole trigger."""

    name: str
    unit: str = "ms"

    def once(self, seconds):
        count = triggers(seconds)
        options = prebuilt(content.SMALL, count * TRIGGER_ROWS, 1, perTrigger=str(TRIGGER_ROWS))
        with place() as path:
            frame = session().readStream.format("prebuilt").options(**options).load()
            query = started_query(into_nothing(frame), Recorded(path, "", 0.0), processingTime="0 seconds")
            query.processAllAvailable()
            query.stop()
            progress = batches(query)
        return {"p50": trigger_p50(progress)}


def triggers(seconds):
    """Returns the number of batches of a run."""
    return max(5, round(50 * seconds))


def trigger_p50(progress):
    """Returns the median milliseconds of a batch. The first batch, which takes longer to plan, does not count."""
    return statistics.median(batch["durationMs"]["triggerExecution"] for batch in progress[1:])


def hooks_p50(hooks):
    """Returns the sum of the medians of `latestOffset` and `partitions`, in milliseconds.

    The first call of each hook does not count, because it opens the archive. The last call does not count either.
    """
    medians = [
        statistics.median([ns for name, ns in hooks if name == hook][1:-1]) for hook in ("latestOffset", "partitions")
    ]
    return sum(medians) / 1e6


# ---- over time -------------------------------------------------------------------------------------------------------


@dataclass
class Live(Case):
    """Reads a live stream that another process publishes at full rate on the same cores."""

    _is_warm = True

    name: str
    kind: content.Kind
    times: float = 30.0
    """Factor by which a run is longer than a run of other cases."""

    def once(self, seconds):
        publisher = (sys.executable, "-u", PEERS / "ours_peer.py")
        words = ["pub", f"seconds={seconds * self.times}", f"length={self.kind.length}", f"channel={CHANNEL}"]
        with place() as path, media_driver() as (directory, driver):
            recorded = Recorded(path, directory, 0.0)
            query = started_query(into_nothing(stream(self.kind, recorded)), recorded, processingTime="0 seconds")
            before = used(driver=driver.pid)
            with started(publisher, directory, words) as process:
                sent = json.loads(process.read(seconds * self.times + _TIMEOUT_S))["sent"] + 1
                query.processAllAvailable()
                progress = [batch for batch in query.recentProgress if batch["numInputRows"]]
                cost = costs(before, sent, driver=driver.pid)
                query.stop()
        retained = [json.loads(batch["sources"][0]["latestOffset"])["retainedBytes"] / 2**20 for batch in progress]
        return {"rate": rate_of(sent, progress), **cost, "retained": max(retained)}


@dataclass
class IdleQuery(Case):
    """CPU shares of the processes of a query without a publisher."""

    name: str
    unit: str = "% of a core"

    def once(self, seconds):
        with place() as path, media_driver() as (directory, _):
            recorded = Recorded(path, directory, 0.0)
            query = started_query(into_nothing(stream(content.SMALL, recorded)), recorded, processingTime="0 seconds")
            time.sleep(3)
            before, start = used(), time.monotonic()
            time.sleep(max(1.0, 10 * seconds))
            taken = {name: 100 * (now - before[name]) / (time.monotonic() - start) for name, now in used().items()}
            query.stop()
        return {"cpu": taken["Python"], "all": taken["Python"] + taken["JVM"]}


@dataclass
class Memory(Case):
    """Memory growth of the source process while it reads 10^8 messages. Pages of files do not count.

    A run of less than one second has fewer messages.
    """

    _is_warm = True

    name: str
    unit: str = "MiB"

    def once(self, seconds):
        rows = content.TYPED.rows(25 * seconds)
        with place() as path, media_driver() as (directory, _), aeron.connect(directory) as client:
            recorded = Recorded(path, directory, 0.0)
            frame = stream(content.TYPED, recorded)
            query = started_query(into_nothing(frame), recorded, processingTime="0 seconds")
            publication = client.add_exclusive_publication(CHANNEL, STREAM)
            publication.wait_connected(timeout=_TIMEOUT_S)
            publish(client, publication, content.TYPED, 2 * content.RING)
            query.processAllAvailable()
            start = _private_mib(source_process().pid)
            publish(client, publication, content.TYPED, rows)
            query.processAllAvailable()
            growth = _private_mib(source_process().pid) - start
            query.stop()
        return {"growth": growth}


def _private_mib(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise LookupError("RssAnon")
