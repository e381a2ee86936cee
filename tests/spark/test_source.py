"""Tests of live streams in Spark: each message arrives once and complete, in batches according to the options."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import eventually
from tests.spark.collecting import Batches, numbers, running, send, until
from tests.spark.publishing import ONE_BATCH

import aeron
import aeron.spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Publisher = Callable[..., aeron.ExclusivePublication]


def test_published_messages_arrive_in_order_with_their_headers(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path
) -> None:
    """08-38"""
    publication = publisher(2001)
    batches = Batches()
    begin = time.time() - 1
    with running(live(2001, includeHeaders=True), tmp_path / "checkpoint", batches) as query:
        send(publication, numbers(0, 1000))
        until(query, lambda: batches.rows == 1000)
        send(publication, numbers(1000, 1500))
        until(query, lambda: batches.rows == 1500)
    assert batches.column("value") == numbers(0, 1500)
    assert set(batches.column("stream_id")) == {2001}
    assert set(batches.column("session_id")) == {publication.session_id}
    assert set(batches.column("channel")) == {"aeron:ipc"}
    positions = batches.column("position")
    assert positions == sorted(set(positions))
    assert positions[-1] == publication.position
    timestamps = [value.timestamp() for value in batches.column("timestamp")]
    assert timestamps == sorted(timestamps)
    assert begin < timestamps[0] <= timestamps[-1] < time.time() + 1


@pytest.mark.parametrize("length", [0, 1, 1376, 1377, 100_000])
def test_messages_of_any_length_arrive_complete(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path, length: int
) -> None:
    """08-38"""
    publication = publisher(2010)
    batches = Batches()
    messages = [bytes([number]) * length for number in range(20)]
    with running(live(2010, "value BINARY"), tmp_path / "checkpoint", batches) as query:
        send(publication, messages)
        until(query, lambda: batches.rows == len(messages))
    assert batches.column("value") == messages


def test_a_query_without_a_publisher_runs_one_empty_batch_and_continues(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path
) -> None:
    """08-37, 08-38: the publisher may start later."""
    batches = Batches()
    with running(live(2020, "value BINARY"), tmp_path / "checkpoint", batches) as query:
        time.sleep(1)
        assert list(batches.tables) == [0]
        assert batches.rows == 0
        assert query.exception() is None
        assert aeron.spark.progress(query)[0].images == 0
        send(publisher(2020), numbers(0, 10))
        until(query, lambda: batches.rows == 10)


def test_the_messages_of_each_of_several_publishers_arrive_in_order(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path
) -> None:
    """08-38"""
    publications = [publisher(2030) for _ in range(3)] + [publisher(2031)]
    batches = Batches()
    with running(live("2030-2031"), tmp_path / "checkpoint", batches) as query:
        for first in range(0, 300, 100):
            for publication in publications:
                send(publication, numbers(first, first + 100))
        until(query, lambda: batches.rows == 1200)
        until(query, lambda: aeron.spark.progress(query)[0].joined == 4)
    rows = list(zip(batches.column("session_id"), batches.column("value"), strict=True))
    for publication in publications:
        assert [value for session, value in rows if session == publication.session_id] == numbers(0, 300)


def test_all_messages_of_an_ended_publisher_arrive(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path
) -> None:
    batches = Batches()
    with running(live(2040, "value BINARY"), tmp_path / "checkpoint", batches) as query:
        for round_ in range(2):
            publication = publisher(2040)
            send(publication, numbers(0, 50))
            publication.close()
            until(query, lambda rows=50 * (round_ + 1): batches.rows == rows)
        until(query, lambda: aeron.spark.progress(query)[0].ended == 2)
    assert batches.column("value") == numbers(0, 50) * 2


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({"maxRowsPerTrigger": 100}, 100),
        ({"maxBytesPerTrigger": 1000}, 100),
        ({"maxRowsPerTrigger": 100, "maxBytesPerTrigger": 500}, 50),
        ({"maxRowsPerTrigger": 70, "maxBytesPerTrigger": "1m"}, 70),
        ({"maxBytesPerTrigger": 3}, 1),
    ],
)
def test_each_batch_is_within_the_limits_and_no_limit_stops_a_query(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path, options: dict[str, int], most: int
) -> None:
    """08-39: a message above the limit forms its own batch."""
    publication = publisher(2050)
    batches = Batches()
    total = 6 * most
    messages = [b"%010d" % number for number in range(total)]
    with running(live(2050, "value BINARY", **options), tmp_path / "checkpoint", batches) as query:
        send(publication, messages)
        until(query, lambda: batches.rows == total)
    assert batches.column("value") == messages
    assert max(table.num_rows for table in batches.tables.values()) <= most


def test_a_restart_continues_where_the_query_stopped_with_any_limits(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path
) -> None:
    """08-46"""
    publication = publisher(2060)
    checkpoint = tmp_path / "checkpoint"
    batches = Batches()
    with running(live(2060, maxRowsPerTrigger=30), checkpoint, batches) as query:
        send(publication, numbers(0, 100))
        until(query, lambda: batches.rows >= 60)
    with running(live(2060, maxRowsPerTrigger=1000, minPartitions=3), checkpoint, batches) as query:
        send(publication, numbers(100, 200))
        until(query, lambda: batches.rows == 200)
    assert batches.column("value") == numbers(0, 200)


def test_available_now_delivers_the_recorded_messages_of_an_earlier_run_and_ends(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path, media_driver: aeron.MediaDriver
) -> None:
    """08-40"""
    checkpoint = tmp_path / "checkpoint"
    batches = Batches()
    frame = live(2070, "value BINARY", maxRowsPerTrigger=40)
    leave(numbers(0, 100), publisher(2070), frame, checkpoint, batches, media_driver)
    assert batches.rows == 0
    with running(frame, checkpoint, batches, availableNow=True) as query:
        assert query.awaitTermination(120)
    assert batches.column("value") == numbers(0, 100)
    assert max(table.num_rows for table in batches.tables.values()) <= 40


def test_trigger_once_reads_all_messages_regardless_of_limits(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path, media_driver: aeron.MediaDriver
) -> None:
    """08-40"""
    checkpoint = tmp_path / "checkpoint"
    batches = Batches()
    frame = live(2075, "value BINARY", maxRowsPerTrigger=10)
    leave(numbers(0, 100), publisher(2075), frame, checkpoint, batches, media_driver)
    with running(frame, checkpoint, batches, once=True) as query:
        assert query.awaitTermination(120)
    assert batches.column("value") == numbers(0, 100)
    assert [table.num_rows for _, table in sorted(batches.tables.items())] == [0, 100]


def leave(
    messages: list[bytes],
    publication: aeron.ExclusivePublication,
    frame: DataFrame,
    checkpoint: Path,
    batches: Batches | None,
    driver: aeron.MediaDriver,
) -> None:
    """Runs a query that records the messages and ends before a batch reads them."""
    with running(frame, checkpoint, batches, processingTime=ONE_BATCH):
        send(publication, messages)
        eventually(lambda: recorded_position(driver, publication) == publication.position, 60)


def recorded_position(driver: aeron.MediaDriver, publication: aeron.ExclusivePublication) -> int:
    """Returns the recorded position of a session from the source's counter; -1 without a counter."""
    with aeron.CncFile(driver.dir) as cnc:
        values = [
            counter.value
            for counter in cnc.counters()
            if counter.label.startswith("spark-source recordedPosition")
            and f"session={publication.session_id}" in counter.label
        ]
    return max(values, default=-1)


def test_a_batch_has_the_requested_number_of_partitions_cut_between_messages(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path, media_driver: aeron.MediaDriver
) -> None:
    """08-43"""
    publication = publisher(2080)
    partitions: list[int] = []
    rows: list[bytes] = []

    def take(frame: DataFrame, batch_id: int) -> None:
        if (table := frame.toArrow()).num_rows:
            partitions.append(frame.rdd.getNumPartitions())
            rows.extend(table["value"].to_pylist())

    frame = live(2080, "value BINARY", minPartitions=3, maxRowsPerPartition=50)
    checkpoint = tmp_path / "checkpoint"
    leave(numbers(0, 1000), publication, frame, checkpoint, None, media_driver)
    query = (
        frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    )
    assert query.start().awaitTermination(120)
    assert rows == numbers(0, 1000)
    assert partitions == [20]


def test_progress_has_images_backlog_and_retained_bytes(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path, media_driver: aeron.MediaDriver
) -> None:
    """08-56"""
    publication = publisher(2090)
    batches = Batches()
    with running(live(2090, "value BINARY"), tmp_path / "checkpoint", batches) as query:
        send(publication, numbers(0, 100))
        until(query, lambda: batches.rows == 100)
        # The first report may be about a batch with only some of the messages.
        until(query, lambda: publication.position in aeron.spark.progress(query)[0].recordings.values())
        (progress,) = aeron.spark.progress(query)
        assert progress.images == 1
        (name,) = progress.recordings
        assert name.startswith(f"2090/{publication.session_id}/")
        assert progress.recordings[name] == publication.position
        assert (progress.gap_bytes, progress.lost_bytes, progress.joined, progress.ended) == (0, 0, 1, 0)
        with aeron.CncFile(media_driver.dir) as cnc:
            ours = [counter for counter in cnc.counters() if counter.label.startswith("spark-source")]
        assert ours
        assert all(counter.type_id != 100 for counter in ours)


def test_progress_accepts_the_event_of_a_query_listener(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path, spark: SparkSession
) -> None:
    from pyspark.sql.streaming import StreamingQueryListener

    seen: list[aeron.spark.Progress] = []
    again: list[aeron.spark.Progress] = []

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: object) -> None:
            pass

        def onQueryProgress(self, event: Any) -> None:
            seen.extend(aeron.spark.progress(event))
            again.extend(aeron.spark.progress(event.progress))

        def onQueryTerminated(self, event: object) -> None:
            pass

    publication = publisher(2092)
    batches = Batches()
    listener = Listener()
    spark.streams.addListener(listener)
    try:
        with running(live(2092, "value BINARY"), tmp_path / "checkpoint", batches) as query:
            send(publication, numbers(0, 100))
            until(query, lambda: publication.position in (seen[-1].recordings.values() if seen else ()))
    finally:
        spark.streams.removeListener(listener)
    assert again == seen
    last = seen[-1]
    assert (last.images, last.gap_bytes, last.malformed) == (1, 0, 0)
    assert last.retained_bytes > 0
    assert last.rows_per_second > 0
    assert last.lag_s is not None


def test_totals_continue_after_a_restart_and_are_unknown_without_a_report(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path
) -> None:
    """For a repeated batch, Spark does not ask the source for a report, so the progress has none."""
    publication = publisher(2094)
    checkpoint = tmp_path / "checkpoint"
    batches = Batches()
    with running(live(2094, "value BINARY"), checkpoint, batches) as query:
        send(publication, numbers(0, 100))
        until(query, lambda: batches.rows == 100)
        until(query, lambda: aeron.spark.progress(query)[0].joined == 1)
        until(query, lambda: sum(each["numInputRows"] for each in query.recentProgress) == 100)
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    with running(live(2094, "value BINARY"), checkpoint, batches) as query:
        send(publication, numbers(100, 200))
        until(query, lambda: batches.rows == 200)
        until(query, lambda: aeron.spark.progress(query)[0].joined == 2)
        first = query.recentProgress[0]
        assert json.loads(first["sources"][0]["latestOffset"]) is None
        (again,) = aeron.spark.progress(first)
        assert list(again.recordings) == [f"2094/{publication.session_id}/0"]
        assert (again.gap_bytes, again.lost_bytes, again.images, again.lag_s) == (None, None, None, None)
        (now,) = aeron.spark.progress(query)
        assert (now.gap_bytes, now.unknown_gaps, now.gaps, now.ended) == (0, 0, (), 1)
        assert now.archive is not None
        assert Path(now.archive).is_dir()


def test_progress_of_another_object_is_an_error_with_the_valid_types() -> None:
    with pytest.raises(TypeError, match="progress of a int: give a StreamingQuery, the event of onQueryProgress"):
        aeron.spark.progress(5)  # type: ignore[arg-type]


def test_progress_has_the_number_of_malformed_messages(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path
) -> None:
    """08-56, 08-63: only the messages of finished batches are counted."""
    publication = publisher(2095)
    batches = Batches()
    records = [number.to_bytes(8, "little") for number in range(20)]
    options = {"valueFormat": "struct", "valueSchema": "id i64", "mode": "DROPMALFORMED"}
    with running(live(2095, **options), tmp_path / "checkpoint", batches) as query:
        send(publication, [*records[:5], b"no record", b"", *records[5:15]])
        until(query, lambda: batches.rows == 15)
        send(publication, records[15:])
        until(query, lambda: batches.rows == 20)
        until(query, lambda: aeron.spark.progress(query)[0].malformed == 2)
    assert batches.column("id") == list(range(20))


def test_a_query_may_have_two_sources_and_a_stream_two_queries(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path
) -> None:
    """08-8, 08-55"""
    first, second = publisher(2100), publisher(2101)
    both, single = Batches(), Batches()
    union = live(2100, "value BINARY").union(live(2101, "value BINARY"))
    with (
        running(union, tmp_path / "union", both) as query,
        running(live(2100, "value BINARY"), tmp_path / "single", single) as other,
    ):
        send(first, numbers(0, 100))
        send(second, numbers(100, 200))
        until(query, lambda: both.rows == 200)
        until(other, lambda: single.rows == 100)
        assert len(aeron.spark.progress(query)) == 2
    assert sorted(both.column("value")) == sorted(numbers(0, 200))
    assert single.column("value") == numbers(0, 100)


def test_a_missing_private_archive_is_data_loss(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path, shared_memory: Path
) -> None:
    """08-48"""
    publication = publisher(2110)
    checkpoint = tmp_path / "checkpoint"
    batches = Batches()
    with running(live(2110, "value BINARY"), checkpoint, batches) as query:
        send(publication, numbers(0, 100))
        # The batch must also be committed. Otherwise, it would run again after the archive is deleted.
        until(query, lambda: sum(progress["numInputRows"] for progress in query.recentProgress) == 100)
    for path in (shared_memory / "archives").iterdir():
        path.rename(shared_memory / "elsewhere")
    query = live(2110, "value BINARY").writeStream.option("checkpointLocation", str(checkpoint)).format("noop").start()
    with pytest.raises(Exception, match=r"AeronDataLossError: .*failOnDataLoss") as failed:
        query.awaitTermination(120)
    assert str(shared_memory / "archives") in str(failed.value)
    with running(live(2110, "value BINARY", failOnDataLoss=False), checkpoint, batches) as query:
        send(publication, numbers(100, 200))
        until(query, lambda: batches.rows == 200)
    assert batches.column("value") == numbers(0, 200)


def test_without_a_driver_the_error_of_the_query_says_how_to_start_one(
    spark: SparkSession, shared_memory: Path, tmp_path: Path
) -> None:
    options = {
        "channel": "aeron:ipc",
        "streamId": "1",
        "aeron.dir": str(shared_memory / "no driver"),
        "aeron.driver.timeout": "1000",
        "archiveDir": str(shared_memory / "archives"),
    }
    frame = spark.readStream.format("aeron").options(**options).load()
    query = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).format("noop").start()
    with pytest.raises(
        Exception, match=r'AeronDriverTimeout: no media driver in .*no driver; start one with "aeron driver'
    ):
        query.awaitTermination(120)


def test_a_stopped_query_releases_its_publisher_at_once(
    live: Callable[..., DataFrame], publisher: Publisher, tmp_path: Path
) -> None:
    """08-34: Spark only sends SIGTERM. If the client were not closed, it would hold back the publisher for 10 s."""
    publication = publisher(2120)
    with running(live(2120, "value BINARY"), tmp_path / "checkpoint"):
        send(publication, numbers(0, 10))
    eventually(lambda: not publication.is_connected, 5)
