"""Cases that read: a backlog drained, recordings read again, what the receiver takes, and what a trigger costs."""

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
from aeron.cli.counter_keys import stream_key
from bench.environments import PEERS
from bench.measure import VoidError, started
from bench.spark import content
from bench.spark.session import media_driver, place, session, source_process, used

CHANNEL = "aeron:ipc?term-length=16m"
STREAM = 1001
WARM_UPS = 2
FULL_SECONDS = 1.0
"""A run of less is only to see that everything works, and needs no warm-up."""
_TIMEOUT_S = 600
_SUBSCRIBER_POSITION = 4
_NEVER = "1 hour"


class Case:
    """A case is checked in its first run and warmed up by it and one more, which are thrown away."""

    unit = "rows/s"
    _is_warm = False

    def measure(self, seconds):
        if not self._is_warm and seconds >= FULL_SECONDS:
            for _ in range(WARM_UPS):
                self.once(seconds)
            self._is_warm = True
        return self.once(seconds)


# ---- a query on its way ----------------------------------------------------------------------------------------------


@dataclass
class Recorded:
    """A place with a driver, a query of ours that has recorded messages, and how long that took."""

    path: object
    directory: str
    seconds: float
    driver: object = None


def stream(kind, recorded, source="aeron", **options):
    """Our source as a query reads it."""
    reader = session().readStream.format(source).option("channel", CHANNEL).option("streamId", str(STREAM))
    reader = reader.option("aeron.dir", recorded.directory).option("archiveDir", str(recorded.path / "archives"))
    return reader.options(maxRetainedBytes="4g", **dict(kind.options), **options).load()


def into_nothing(frame):
    """A writer that drops all rows."""
    return frame.writeStream.format("noop")


def started_query(writer, recorded, **trigger):
    """A query that ends with what is there or, with another trigger, goes on."""
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
    """Offers the ring until `rows` are out, and waits until they are recorded; answers the seconds of both."""
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
    """The receiver moves its position behind what it has written."""
    positions = (each for each in client.counters_reader if each.type_id == _SUBSCRIBER_POSITION)
    return min((each.value for each in positions if stream_key(each).stream_id == STREAM), default=0)


def batches(query):
    """The progress of the batches with rows of a query that has ended."""
    if not query.awaitTermination(_TIMEOUT_S):
        query.stop()
        raise VoidError(f"the query did not end within {_TIMEOUT_S} s")
    return [batch for batch in query.recentProgress if batch["numInputRows"]]


def rate_of(rows, progress):
    """Rows a second over the batches with rows, which must have exactly these rows."""
    if (counted := sum(batch["numInputRows"] for batch in progress)) != rows:
        raise VoidError(f"{rows} rows were published, {counted} were read")
    return rows / sum(batch["durationMs"]["triggerExecution"] for batch in progress) * 1e3


def costs(before, rows, **others):
    """CPU seconds by process for a million rows; `others` are those of `used`."""
    return {name: (now - before[name]) / rows * 1e6 for name, now in used(**others).items()}


def hashed(frame, kind):
    """Count and checksum of what messages hold, as one row."""
    from pyspark.sql import functions as F

    return frame.agg(F.count("*"), F.sum(F.xxhash64(*kind.columns) % (1 << 31))).first()


def prebuilt(kind, rows, partitions, **options):
    """Options of the reader that yields what was made before."""
    return {"kind": kind.name, "rows": str(rows), "partitions": str(partitions), **options}


# ---- drained ---------------------------------------------------------------------------------------------------------


@dataclass
class Drain(Case):
    """A backlog from the private archive into nothing, or through what `change` adds."""

    name: str
    kind: content.Kind
    partitions: int = 1
    change: Callable = lambda frame: frame
    _checked: bool = False

    def once(self, seconds):
        rows = self.kind.rows(seconds)
        with recorded_backlog(self.kind, rows) as recorded:
            frame = stream(self.kind, recorded, minPartitions=str(self.partitions))
            if not self._checked:
                self._check(recorded, rows)
            before = used(driver=recorded.driver.pid)
            rate = rate_of(rows, batches(started_query(into_nothing(self.change(frame)), recorded)))
            return {"rate": rate, **costs(before, rows, driver=recorded.driver.pid)}

    def _check(self, recorded, rows):
        """What was recorded is what was published, by count and checksum; the archive is read in a batch for that."""
        if self.kind.name in {kind.name for kind in content.KINDS}:
            expected = session().read.format("prebuilt").options(**prebuilt(self.kind, rows, 2)).load()
            found = archived(self.kind, recorded, 2)
            assert found.schema == expected.schema, f"{found.schema} is not {expected.schema}"
            if (ours := hashed(found, self.kind)) != (theirs := hashed(expected, self.kind)):
                raise VoidError(f"{self.name}: read {ours}, published {theirs}")
        self._checked = True


@dataclass
class PrebuiltDrain(Case):
    """The same rows, made before."""

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
    """What the receiver takes from an image into segment files, index included."""

    name: str
    kind: content.Kind
    parent: str = "/dev/shm"

    def once(self, seconds):
        rows = self.kind.rows(seconds)
        with recorded_backlog(self.kind, rows, self.parent) as recorded:
            return {"rate": rows / recorded.seconds}


# ---- read again ------------------------------------------------------------------------------------------------------


def archived(kind, recorded, partitions):
    """The recordings of the query that was stopped."""
    reader = session().read.format("aeron").option("archiveDir", str(recorded.path / "archives"))
    return reader.options(minPartitions=str(partitions), **dict(kind.options)).load()


@dataclass
class BatchRead(Case):
    """A recording by `archiveDir`; it is made once, and read in each run."""

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
    """The same rows, made before."""

    name: str
    kind: content.Kind
    partitions: int

    def once(self, seconds):
        rows = self.kind.rows(seconds)
        options = prebuilt(self.kind, rows, self.partitions)
        return timed_read(session().read.format("prebuilt").options(**options).load(), rows)


@dataclass
class ByHand(Case):
    """One `recv` of pyzmq and one tuple for each row."""

    name: str
    kind: content.Kind
    share: float = 0.1
    """Of the rows of the others: it would take too long."""

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
    """Wall time of reading into nothing; that all rows come is asserted by an observation in the same read."""
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
    """Batches of 100 rows with a backlog: the whole trigger, and our hooks in it."""

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
    """The same with rows made before."""

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
    """How many batches make a run."""
    return max(5, round(50 * seconds))


def trigger_p50(progress):
    """Milliseconds; the first batch of a query plans more than the others."""
    return statistics.median(batch["durationMs"]["triggerExecution"] for batch in progress[1:])


def hooks_p50(hooks):
    """Milliseconds that `latestOffset` and `partitions` take together, but for the first, which open the archive."""
    medians = [
        statistics.median([ns for name, ns in hooks if name == hook][1:-1]) for hook in ("latestOffset", "partitions")
    ]
    return sum(medians) / 1e6


# ---- over time -------------------------------------------------------------------------------------------------------


@dataclass
class Live(Case):
    """A publisher at full rate in another process; all on the same cores."""

    _is_warm = True

    name: str
    kind: content.Kind
    times: float = 30.0
    """As long as other cases."""

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
    """A query without a publisher."""

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
    """What the source process has grown by, pages of files not counted, after 10^8 messages."""

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
