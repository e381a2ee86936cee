"""Tests of Spark on the recordings of a running archive: batch reads, streaming queries, and credentials that must not
be shown.
"""

from __future__ import annotations

import io
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.collecting import Batches, numbers, until

import aeron
import aeron.spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


CHANNEL = "aeron:ipc?term-length=64k"

_stream_ids = itertools.count(600_000)


class Recorded:
    """A recorded publication."""

    def __init__(self, archive: aeron.AeronArchive) -> None:
        self.stream_id = next(_stream_ids)
        self._archive = archive
        self.publication = archive.add_recorded_exclusive_publication(CHANNEL, self.stream_id)
        self.sent: list[bytes] = []

    def send(self, messages: list[bytes]) -> None:
        """Publishes the messages, and waits until they are recorded."""
        for message in messages:
            position = self.publication.publish(message, timeout=20)
        self.sent += messages
        self.recording = self._archive.wait_recorded(self.publication, position, timeout=20)


@pytest.fixture(scope="module")
def server(media_driver: aeron.MediaDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[aeron.Archive]:
    directory = tmp_path_factory.mktemp("archive")
    with aeron.Archive(
        directory, driver=media_driver, segment_file_length=128 * 1024, low_storage_space_threshold=0
    ) as server:
        yield server


@pytest.fixture
def recorded(server: aeron.Archive, media_driver: aeron.MediaDriver) -> Iterator[Recorded]:
    with aeron.connect(media_driver) as client, aeron.connect_archive(client) as archive:
        yield Recorded(archive)


@pytest.fixture
def load(spark: SparkSession, media_driver: aeron.MediaDriver, server: aeron.Archive) -> Callable[..., DataFrame]:
    """Returns `load(stream_id, schema=None, streaming=False, **options)`, which loads the recordings of a stream."""
    aeron.spark.register(spark)

    def load(stream_id: int, schema: str | None = None, streaming: bool = False, **options: Any) -> DataFrame:
        defaults = {
            "archive.controlChannel": "aeron:ipc",
            "streamId": str(stream_id),
            "aeron.dir": str(media_driver.dir),
        }
        texts = {name.replace("archive_", "archive."): str(value) for name, value in options.items()}
        reader = (spark.readStream if streaming else spark.read).format("aeron").options(**{**defaults, **texts})
        return (reader.schema(schema) if schema else reader).load()

    return load


def test_a_batch_read_of_files_has_the_same_rows_as_a_batch_read_of_replays(
    load: Callable[..., DataFrame], recorded: Recorded, server: aeron.Archive
) -> None:
    recorded.send([*numbers(0, 2000), *[bytes(5000)] * 3])
    columns = "value BINARY, stream_id INT, session_id INT, position BIGINT, recording_id BIGINT, flags SMALLINT"
    replayed = load(recorded.stream_id, columns)
    assert replayed.rdd.getNumPartitions() == -(-recorded.publication.position // (128 * 1024))
    table = replayed.toArrow()
    assert table["value"].to_pylist() == recorded.sent
    assert load(recorded.stream_id, columns, archive_dir=server.directory).toArrow().equals(table)
    with_times = load(recorded.stream_id, archive_dir=server.directory).toArrow()
    assert with_times["timestamp"].null_count == 0
    later = {"startingOffsets": f'{{"{recorded.recording.recording_id}": {table["position"][99].as_py()}}}'}
    assert load(recorded.stream_id, columns, **later).count() == len(recorded.sent) - 100


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[Callable[[bool], None]]:
    """Yields `pushdown(is_enabled)`, which sets whether Spark pushes filters down to sources in Python."""
    name = "spark.sql.python.filterPushdown.enabled"
    yield lambda is_enabled: spark.conf.set(name, str(is_enabled).lower())
    spark.conf.unset(name)


def test_filters_make_the_plan_smaller_and_leave_the_rows_the_same(
    load: Callable[..., DataFrame],
    recorded: Recorded,
    server: aeron.Archive,
    pushdown: Callable[[bool], None],
) -> None:
    """08-88"""
    for _ in range(3):
        recorded.send([bytes([1]) * 1000] * 150)
        time.sleep(0.01)
    schema = "value BINARY, stream_id INT, position BIGINT, timestamp TIMESTAMP"
    frame = load(recorded.stream_id, schema, archive_dir=server.directory)
    pushdown(False)
    rows = frame.toArrow()
    middle, last = rows["timestamp"][200].as_py(), rows["timestamp"][-1].as_py()
    assert frame.rdd.getNumPartitions() == 4
    # Spark plans one partition without rows if the source plans none.
    for condition, count in (
        (f"position BETWEEN 1000 AND {2 * 65536}", 1),
        (f"stream_id = {recorded.stream_id + 1}", 1),
        (f"timestamp > TIMESTAMP_MICROS({int(last.timestamp() * 1_000_000)} + 1)", 1),
        (f"timestamp <= TIMESTAMP_MICROS({round(middle.timestamp() * 1_000_000)})", 2),
        ("NOT (position = 7) AND position IS NOT NULL", 4),
    ):
        filtered = frame.where(condition)
        pushdown(False)
        assert filtered.rdd.getNumPartitions() == 4
        expected = filtered.toArrow()
        pushdown(True)
        filtered = load(recorded.stream_id, schema, archive_dir=server.directory).where(condition)
        assert filtered.rdd.getNumPartitions() <= count, condition
        assert filtered.toArrow().equals(expected), condition


def test_a_restarted_query_continues_at_its_checkpoint_without_a_gap(
    load: Callable[..., DataFrame], recorded: Recorded, tmp_path: Path
) -> None:
    frame = load(recorded.stream_id, "value BINARY, position BIGINT", streaming=True, startingOffsets="earliest")
    other = load(recorded.stream_id, "value BINARY", streaming=True, startingOffsets="earliest", maxRowsPerTrigger=99)
    batches, others = Batches(), Batches()
    recorded.send(numbers(0, 300))
    for _ in range(2):
        query = start(frame, tmp_path / "first", batches)
        until(query, lambda: batches.rows == len(recorded.sent))
        query.stop()
        recorded.send(numbers(300, 700))
    query = start(frame, tmp_path / "first", batches, availableNow=True)
    second = start(other, tmp_path / "second", others, availableNow=True)
    for ending in (query, second):
        assert ending.awaitTermination(60)
    assert batches.column("value") == recorded.sent
    assert others.column("value") == recorded.sent
    assert max(table.num_rows for table in others.tables.values()) == 99


def test_trigger_once_with_a_new_checkpoint_reads_all_recordings(
    load: Callable[..., DataFrame], recorded: Recorded, tmp_path: Path
) -> None:
    """08-91"""
    frame = load(recorded.stream_id, "value BINARY", streaming=True, startingOffsets="earliest", maxRowsPerTrigger=9)
    batches = Batches()
    for _ in range(2):
        recorded.send(numbers(0, 100))
        assert start(frame, tmp_path / "checkpoint", batches, once=True).awaitTermination(120)
    assert [table.num_rows for _, table in sorted(batches.tables.items())] == [100, 100]


def test_a_query_continues_from_its_checkpoint_with_headers_and_with_another_layout(
    load: Callable[..., DataFrame], recorded: Recorded, tmp_path: Path
) -> None:
    """08-93"""
    struct = {"valueFormat": "struct", "startingOffsets": "earliest"}
    last: Batches
    for number, options in enumerate(
        [
            {"startingOffsets": "earliest"},
            {"startingOffsets": "earliest", "includeHeaders": True},
            {**struct, "valueSchema": "a i32, b i32"},
            {**struct, "valueSchema": "c i64"},
        ]
    ):
        message = number.to_bytes(4, "little") + bytes(4)
        recorded.send([message] * 5)
        last = Batches()
        query = start(
            load(recorded.stream_id, streaming=True, **options), tmp_path / "checkpoint", last, availableNow=True
        )
        assert query.awaitTermination(120)
        assert last.rows == 5
        if number == 1:
            assert min(last.column("term_offset")) > 0
        if number == 2:
            assert (last.column("a"), last.column("b")) == ([2] * 5, [0] * 5)
    assert last.column("c") == [3] * 5


def test_the_progress_of_a_query_has_the_lag_of_each_recording(
    load: Callable[..., DataFrame], recorded: Recorded, tmp_path: Path
) -> None:
    recorded.send(numbers(0, 10))
    frame = load(recorded.stream_id, "value BINARY", streaming=True, startingOffsets="earliest")
    batches = Batches()
    query = start(frame, tmp_path / "checkpoint", batches)
    try:
        until(query, lambda: batches.rows == 10)
        key = f"{recorded.stream_id}/{recorded.publication.session_id}/{recorded.recording.recording_id}"
        until(query, lambda: [each.lag_bytes for each in aeron.spark.progress(query)] == [{key: 0}])
        (source,) = aeron.spark.progress(query)
        assert source.recordings == {key: recorded.publication.position}
        assert (source.backlog_bytes, source.lost_bytes) == (0, 0)
        assert (source.archive, source.retained_bytes, source.lag_s) == ("aeron:ipc", None, None)
    finally:
        query.stop()


def test_credentials_are_in_no_plan_and_in_no_error(
    load: Callable[..., DataFrame], recorded: Recorded, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recorded.send(numbers(0, 2))
    secret = {"archive_credentials": "ann:pass-word"}
    shown = io.StringIO()
    with redirect_stdout(shown):
        for streaming in (False, True):
            load(recorded.stream_id, streaming=streaming, **secret).explain(True)
    query = start(load(recorded.stream_id, streaming=True, **secret), tmp_path / "checkpoint", Batches())
    until(query, lambda: query.lastProgress is not None)
    shown.write(str(query.lastProgress))
    query.stop()
    with pytest.raises(Exception, match="no connection to the archive") as refused:
        load(
            recorded.stream_id,
            **{"archive.controlStreamId": "77", "archive.messageTimeoutMs": "100"},
            **secret,
        ).count()
    out, err = capfd.readouterr()
    assert "pass-word" not in shown.getvalue() + str(refused.value) + out + err
    files = [path.read_bytes() for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    assert b"pass-word" not in b"".join(files)


def start(frame: DataFrame, checkpoint: Path, batches: Batches, **trigger: Any) -> Any:
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(batches.take)
    return (writer.trigger(**trigger) if trigger else writer).start()
