"""Cells and goals of the benchmarks with Spark."""

import tempfile

from bench.goals import Goal, Group
from bench.spark import content
from bench.spark.content import JSON, JSON_SCHEMA, KINDS, LARGE, PLAIN, SBE, SMALL, TYPED
from bench.spark.kafka import AeronDrain, AeronLatency, KafkaDrain, KafkaLatency, SharedArchiveDrain
from bench.spark.session import DEFAULT_BYTES_PER_BATCH, NO_LIMIT
from bench.spark.sink import CountingSink, EachRow, PrebuiltRound, Round, Sink, by_offer, by_zmq
from bench.spark.source import (
    WITHOUT_TIME,
    BatchRead,
    ByHand,
    Drain,
    IdleQuery,
    Live,
    Memory,
    PrebuiltDrain,
    PrebuiltRead,
    PrebuiltTrigger,
    Recording,
    SharedDrain,
    Trigger,
)

_ROWS = "rows/s"
_CORE = "% of a core"


def _goal(text, ours, peer, at_least):
    return Goal(text, ours.name, (peer.name,), at_least=at_least, unit=_ROWS)


def _source(kind):
    """Returns a group for one kind of messages. Its goals compare `readStream` and `read` of our source with readers of
    prepared rows, and the rate of recording with the rate of `readStream`."""
    cells, goals = [], []
    for partitions in (1, 2):
        what = f"{kind.name}, {partitions} partition{'s' * (partitions > 1)}"
        ours, again = Drain(f"readStream, {what}", kind, partitions), BatchRead(f"read, {what}", kind, partitions)
        peer = PrebuiltDrain(f"prebuilt, {what}", kind, partitions)
        made = PrebuiltRead(f"prebuilt read, {what}", kind, partitions)
        cells += [ours, peer, again, made]
        goals += [_goal(f"source, {what}", ours, peer, 0.8), _goal(f"batch read, {what}", again, made, 0.8)]
    recording = Recording(f"recording, {kind.name}", kind)
    cells += [recording, Recording(f"recording on disk, {kind.name}", kind, tempfile.gettempdir())]
    drained = tuple(cell.name for cell in cells if isinstance(cell, Drain))
    bound = 1.5 if kind is LARGE else 2
    text = f"recording, compared with readStream, {kind.name}"
    goals.append(Goal(text, recording.name, drained, at_least=bound, unit=_ROWS))
    return Group(cells, goals)


def _shared():
    ours = Drain("private archive, 64 B", SMALL, schema=WITHOUT_TIME)
    files = SharedDrain("shared archive, files, 64 B", SMALL)
    replay = SharedDrain("shared archive, replays, 64 B", SMALL, by_replay=True)
    goals = [
        _goal("shared archive, files, compared with the private one", files, ours, 0.95),
        _goal("shared archive, replays, compared with the private one", replay, ours, 0.5),
    ]
    return Group([ours, files, replay], goals)


def _by_hand():
    ours, peer = Drain("readStream beside tuples", SMALL), ByHand("tuples from pyzmq, 64 B", SMALL)
    goal = _goal("source, compared with tuples by hand, 64 B", ours, peer, 4)
    return Group([ours, peer], [goal])


def _from_json(frame):
    from pyspark.sql import functions as F

    return frame.select(F.from_json(F.col("value").cast("string"), JSON_SCHEMA).alias("record")).select("record.*")


def _typed():
    """Returns a group of cells that read typed columns and SBE messages, decode JSON text, and decode binary values in
    a UDF."""

    def by_udf(frame):
        import pyarrow as pa
        from pyspark.sql.functions import arrow_udf

        def decode(values: pa.Array) -> pa.Array:
            return content.decoded(values)

        return frame.select(arrow_udf(decode, JSON_SCHEMA)("value").alias("record")).select("record.*")

    ours = Drain("typed columns", TYPED)
    sbe = Drain("SBE columns", SBE)
    json, udf = Drain("from_json", JSON, change=_from_json), Drain("arrow_udf", PLAIN, change=by_udf)
    goals = [
        _goal("typed decode, compared with from_json", ours, json, 5),
        _goal("typed decode, compared with arrow_udf", ours, udf, 1.3),
        _goal("SBE decode, compared with typed columns", sbe, ours, 0.7),
    ]
    return Group([ours, json, udf, sbe], goals)


def _sink():
    cells, goals = [], []
    for kind in KINDS:
        for limit, setting in ((NO_LIMIT, "no limit"), (DEFAULT_BYTES_PER_BATCH, "default")):
            what = f"{kind.name}, maxBytesPerBatch {setting}"
            ours, peer = Sink(f"write, {what}", kind, 1, limit), CountingSink(f"counting, {what}", kind, 1, limit)
            cells += [ours, peer]
            goals.append(_goal(f"sink, {what}", ours, peer, 0.7))
    two = "48 B typed, 2 partitions"
    offers = EachRow("foreachPartition with offer, 64 B", by_offer, SMALL)
    zmq = EachRow("foreachPartition with pyzmq, 64 B", by_zmq, SMALL)
    cells += [Sink(f"write, {two}", TYPED, 2), CountingSink(f"counting, {two}", TYPED, 2), offers, zmq]
    free, default = (f"write, 64 B, maxBytesPerBatch {setting}" for setting in ("no limit", "default"))
    for text, ours, peer, bound in (
        ("sink, compared with an offer for each row", default, offers, 5),
        ("sink without limit, compared with an offer for each row", free, offers, 15),
        ("sink, compared with pyzmq for each row", default, zmq, 5),
    ):
        goals.append(Goal(text, ours, (peer.name,), at_least=bound, unit=_ROWS))
    return Group(cells, goals)


def _round():
    ours, peer = Round("readStream to writeStream", TYPED), PrebuiltRound("prebuilt to counting", TYPED)
    return Group([ours, peer], [_goal("round, 48 B typed", ours, peer, 0.6)])


def _triggers():
    ours, peer = Trigger("trigger of 100 rows"), PrebuiltTrigger("prebuilt trigger of 100 rows")
    goals = [
        Goal("latestOffset and partitions, p50", ours.name, None, "hooks", at_most=5, unit="ms"),
        Goal("trigger of 100 rows, p50", ours.name, (peer.name,), "p50", at_most=1.1, unit="ms"),
    ]
    return Group([ours, peer], goals)


def _over_time():
    live = [Live(f"live, {kind.name}", kind) for kind in (SMALL, LARGE)]
    idle, memory = IdleQuery("idle query"), Memory("source process")
    goals = [
        Goal("idle query: CPU of Python", idle.name, None, "cpu", at_most=1, unit=_CORE),
        Goal("idle query: CPU of all", idle.name, None, "all", at_most=3, unit=_CORE),
        Goal("source process: growth in 10^8 messages", memory.name, None, "growth", at_most=64, unit="MiB"),
    ]
    return Group([*live, idle, memory], goals)


def _kafka_drain():
    cells, goals = [], []
    for what, ours, peer in (
        ("binary", AeronDrain("Aeron, binary", PLAIN), KafkaDrain("Kafka, binary", PLAIN)),
        ("typed", AeronDrain("Aeron, typed", TYPED), KafkaDrain("Kafka, JSON text and from_json", JSON, _from_json)),
    ):
        cells += [ours, peer]
        goals += _kafka_goals(what, ours, peer)
    return Group(cells, goals)


def _kafka_shared():
    # The default columns of both sources, with arrival times.
    ours = SharedArchiveDrain("shared archive, binary", PLAIN, schema=None)
    peer = KafkaDrain("Kafka, binary, beside the shared archive", PLAIN)
    return Group([ours, peer], _kafka_goals("shared archive, binary", ours, peer))


def _kafka_goals(what, ours, peer):
    text = f"drain, {what}: CPU of all, compared with Kafka"
    return [
        _goal(f"drain, {what}, compared with Kafka", ours, peer, 4),
        Goal(text, ours.name, (peer.name,), "cost", at_most=1 / 3, unit="CPU s/M"),
    ]


def _kafka_latency():
    ours, peer = AeronLatency("Aeron, 1,000 messages/s"), KafkaLatency("Kafka, 1,000 messages/s")
    text = "message to foreachBatch, compared with Kafka"
    goals = [
        Goal(f"{text}, {metric}", ours.name, (peer.name,), metric, at_most=1, unit="ms") for metric in ("p50", "p99")
    ]
    return Group([ours, peer], goals)


KAFKA_GROUPS = {"kafka-drain": _kafka_drain, "kafka-shared": _kafka_shared, "kafka-latency": _kafka_latency}

SPARK_GROUPS = {
    "spark-64": lambda: _source(SMALL),
    "spark-1k": lambda: _source(LARGE),
    "spark-records": lambda: _source(TYPED),
    "spark-shared": _shared,
    "spark-tuples": _by_hand,
    "spark-typed": _typed,
    "spark-sink": _sink,
    "spark-round": _round,
    "spark-triggers": _triggers,
    "spark-time": _over_time,
}
