"""Tests of the live source without Spark: recorded streams, offsets, batches and limits."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron
from aeron import _aeron
from aeron.spark.errors import AeronOptionError, AeronSparkError
from live.conftest import Start
from live.streams import fill, missing_bytes, number, numbered, payloads, publish

CHANNEL = "aeron:ipc"


def archives(home: Path) -> list[Path]:
    directory = home / "archives"
    return sorted(directory.iterdir()) if directory.exists() else []


def source_threads() -> list[str]:
    """Returns the names of the source's threads. The system still lists a joined thread for a short time."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            names.append(Path(task, "comm").read_text().strip())
    return [name for name in names if name.startswith("aeron-spark-sou")]


def test_a_source_opens_no_archive_and_starts_no_thread_before_batch_0_is_planned(start: Start, home: Path) -> None:
    """08-13, 08-37"""
    eventually(lambda: source_threads() == [])
    source = start().source
    initial = source.initial_offset()
    assert source.initial_offset() == initial
    assert source.latest_offset(initial) == initial
    assert json.loads(source.report())["images"] == 0
    assert archives(home) == []
    assert source_threads() == []
    assert source.partitions(initial, initial) == []
    assert len(archives(home)) == 1
    assert len(source_threads()) == 1
    source.partitions(initial, initial)
    assert len(source_threads()) == 1, "the query started a second thread"
    assert archives(home)[0].stat().st_mode & 0o777 == 0o700


def test_a_query_without_a_publisher_runs_one_empty_batch(start: Start, home: Path) -> None:
    """08-37"""
    query = start()
    assert query.run_batch() == []
    assert query.run_batch() is None
    assert query.report() == {
        "recordings": {},
        "images": 0,
        "backlogBytes": 0,
        "backlogMessages": 0,
        "retainedBytes": 0,
        "retentionFullMs": 0,
        "gapBytes": 0,
        "lostBytes": 0,
        "joined": 0,
        "ended": 0,
        "malformed": 0,
        "unknownGaps": 0,
        "skipped": 0,
        "unknownEnums": 0,
        "gaps": [],
        "archive": str(archives(home)[0]),
    }


def test_a_request_for_the_latest_offset_waits_for_new_data(start: Start, client: aeron.Aeron, stream_id: int) -> None:
    query = start()
    query.run_batch()
    publication = client.add_exclusive_publication(CHANNEL, stream_id)
    publication.wait_connected(timeout=5)
    began = time.monotonic()
    assert query.run_batch() is None
    assert time.monotonic() - began > 0.09
    thread = threading.Timer(0.02, publish, (publication, 1))
    thread.start()
    while query.run_batch() is None:
        pass
    thread.join()
    assert len(query.rows()) == 1


def test_all_messages_arrive_in_order_if_the_publication_or_the_query_starts_first(
    start: Start, client: aeron.Aeron, stream_id: int
) -> None:
    """08-38: over IPC, a publication waits for its first subscriber."""
    first = client.add_exclusive_publication(CHANNEL, stream_id)
    query = start()
    query.run_batch()
    publish(first, 300)
    second = client.add_exclusive_publication(CHANNEL, stream_id)
    for turn in range(10):
        publish(first, 30, first=300 + turn * 30)
        publish(second, 30, first=turn * 30)
    rows = query.run_until(900)
    assert len(rows) == 900
    assert missing_bytes(rows) == 0
    by_session = {
        session: [number(row) for row in rows if row.session_id == session]
        for session in (first.session_id, second.session_id)
    }
    assert by_session == {first.session_id: list(range(600)), second.session_id: list(range(300))}


def test_each_image_has_its_own_recording(start: Start, client: aeron.Aeron, stream_id: int) -> None:
    """08-19: two streams, two sessions of one stream, and a session that returns."""
    other = stream_id + 100_000
    query = start(stream_ids=[stream_id, other])
    query.run_batch()
    publications = [client.add_exclusive_publication(CHANNEL, number) for number in (stream_id, stream_id, other)]
    for publication in publications:
        publish(publication, 10)
    rows = query.run_until(30)
    recordings = {(row.recording_id, row.stream_id, row.session_id) for row in rows}
    assert {fields[1:] for fields in recordings} == {(p.stream_id, p.session_id) for p in publications}
    assert len(recordings) == 3
    query = start(stream_ids=[stream_id, other])
    query.run_batch()
    publish(publications[2], 10, first=10)
    rows = query.run_until(40)
    came_back = [row.recording_id for row in rows if row.session_id == publications[2].session_id]
    assert len(set(came_back)) == 2
    assert missing_bytes(rows) == 0


def test_a_fragmented_message_becomes_one_row(start: Start, client: aeron.Aeron, stream_id: int) -> None:
    """08-21"""
    query = start()
    query.run_batch()
    with client.add_exclusive_publication(CHANNEL, stream_id) as publication:
        sent = [bytes([number % 256]) * (number * 37 % 8000) for number in range(400)]
        thread = threading.Thread(target=lambda: [publication.publish(message, timeout=10) for message in sent])
        thread.start()
        rows = query.run_until(len(sent))
        thread.join()
    assert payloads(rows) == sent


def test_no_batch_exceeds_the_limits_of_rows_and_bytes(start: Start, client: aeron.Aeron, stream_id: int) -> None:
    """08-39"""
    query = start(max_rows_per_trigger=100, max_bytes_per_trigger=80 * 64)
    query.run_batch()
    publication = client.add_exclusive_publication(CHANNEL, stream_id)
    publish(publication, 500, size=64)
    eventually(lambda: query.report()["retainedBytes"] == 500 * 96)
    batches = [len(query.run_batch() or ()) for _ in range(7)]
    assert batches == [80, 80, 80, 80, 80, 80, 20]


def test_a_batch_without_limits_has_all_recorded_messages(start: Start, client: aeron.Aeron, stream_id: int) -> None:
    """08-40: trigger `once`."""
    query = start(max_rows_per_trigger=10)
    query.run_batch()
    publication = client.add_exclusive_publication(CHANNEL, stream_id)
    publish(publication, 500)
    eventually(lambda: query.report()["retainedBytes"] == 500 * 64)
    assert len(query.run_batch(limited=False) or ()) == 500


def test_available_now_ends_at_the_heads_of_its_first_request(
    start: Start, client: aeron.Aeron, stream_id: int
) -> None:
    """08-40"""
    query = start()
    query.run_batch()
    publication = client.add_exclusive_publication(CHANNEL, stream_id)
    publish(publication, 100)
    eventually(lambda: query.report()["retainedBytes"] == 100 * 64)
    query = start(max_rows_per_trigger=30)
    query.source.prepare_for_available_now()
    batches = []
    while (rows := query.run_batch()) is not None:
        batches.append(len(rows))
        publish(publication, 10, first=100 + 10 * len(batches))
    assert batches == [30, 30, 30, 10]
    assert payloads(start().run_until(140)) == payloads(query.rows())


def test_available_now_on_a_new_checkpoint_logs_a_warning(start: Start) -> None:
    """08-40"""
    query = start()
    query.source.prepare_for_available_now()
    assert query.run_batch() == []
    assert query.run_batch() is None
    assert any("a live stream has no past" in line for line in query.source.take_lines())


def test_the_first_batch_of_a_live_stream_has_no_rows_and_logs_a_warning(start: Start) -> None:
    """08-40"""
    for has_warning in (True, False):
        query = start()
        assert not query.run_batch()
        lines = [line for line in query.source.take_lines() if "batch 0 of a new checkpoint has no rows" in line]
        assert len(lines) == has_warning


def test_all_partitions_of_a_batch_together_have_its_rows(start: Start, client: aeron.Aeron, stream_id: int) -> None:
    """08-43, 08-46: even after a restart with other limits and another number of partitions."""
    query = start()
    query.run_batch()
    publication = client.add_exclusive_publication(CHANNEL, stream_id)
    sent = publish(publication, 1000)
    eventually(lambda: query.report()["retainedBytes"] == 1000 * 64)
    query.run_until(1000)
    assert query.logged == 2
    query = start(min_partitions=7, max_rows_per_partition=90, max_rows_per_trigger=5)
    pieces = query.source.partitions(query.offset(0), query.offset(1))
    assert len(pieces) == 12
    assert all(len(piece) < 1024 for piece in pieces)
    assert [row for piece in pieces for row in query.read(piece)] == query.rows()
    assert payloads(query.rows()) == sent


def test_a_commit_purges_the_segments_before_the_committed_position(
    start: Start, client: aeron.Aeron, stream_id: int, home: Path
) -> None:
    """08-30: the index of a segment is purged too, and the whole recording after its stream has ended."""
    query = start()
    query.run_batch()
    publication = client.add_exclusive_publication(CHANNEL, stream_id)
    mebibyte = 1 << 20
    most = 0
    for turn in range(8):
        publish(publication, 1000, first=turn * 1000, size=992)
        query.run_until((turn + 1) * 1000)
        names = [path.name for path in archives(home)[0].iterdir()]
        bases = {name.split(".")[0] for name in names if name.endswith(".rec")}
        assert bases <= {name.removeprefix("index-").split(".")[0] for name in names if name.endswith(".idx")}
        most = max(most, len(bases))
    assert publication.position > 7 * mebibyte
    # The segments of a batch, one segment before them and one after them.
    assert most <= 4
    publication.close()
    eventually(lambda: query.report()["ended"] == 1)
    with client.add_exclusive_publication(CHANNEL, stream_id) as other:
        for turn in range(3):
            publish(other, 1, first=turn)
            query.run_until(8001 + turn)
        eventually(lambda: not list(archives(home)[0].glob("0-*")))
        # The files are deleted a short time before the report shows this.
        eventually(lambda: len(query.report()["recordings"]) == 1)
        publish(other, 1, first=3)
        query.run_until(8004)
    ended, running = 0, 1
    recordings = json.loads(query.offset(query.logged - 1))["recordings"]
    assert [int(key.split("/")[2]) for key in recordings] == [running]
    assert ended not in recordings


@pytest.mark.slow
def test_the_bound_of_retained_bytes_causes_back_pressure_for_the_publisher(
    start: Start, client: aeron.Aeron, stream_id: int
) -> None:
    """08-29: no message is lost, and the query continues after a batch that contains all retained bytes."""
    bound = 2 << 20
    query = start(max_retained_bytes=bound)
    query.run_batch()
    publication = client.add_exclusive_publication(CHANNEL, stream_id)
    publication.wait_connected(timeout=5)
    count = fill(publication)
    while query.report()["retentionFullMs"] <= 100:
        count += fill(publication, first=count)

    def is_pressed() -> bool:
        nonlocal count
        result = publication.offer(numbered(count, 1024))
        count += result > 0
        return result == aeron.BACK_PRESSURED

    eventually(is_pressed)
    assert bound <= query.report()["retainedBytes"] <= bound + 256 * 1024
    for _ in range(3):
        taken = len(query.rows())
        query.run_until(taken + 1)
        count += fill(publication, first=count)
        assert query.report()["retainedBytes"] <= bound + 256 * 1024
    rows = query.run_until(count)
    assert [number(row) for row in rows] == list(range(count))


def test_messages_larger_than_the_bound_of_retained_bytes_are_recorded(
    start: Start, client: aeron.Aeron, stream_id: int
) -> None:
    """08-29"""
    query = start(max_retained_bytes=64 * 1024)
    query.run_batch()
    channel = f"{CHANNEL}?term-length=4m"
    with client.add_exclusive_publication(channel, stream_id) as publication:
        sent = [bytes([number]) * 400_000 for number in range(5)]
        thread = threading.Thread(target=lambda: [publication.publish(message, timeout=20) for message in sent])
        thread.start()
        rows = query.run_until(5)
        thread.join()
    assert payloads(rows) == sent


def test_several_queries_read_the_same_stream(start: Start, client: aeron.Aeron, stream_id: int) -> None:
    """08-55"""
    queries = [start("one"), start("two", beside=True)]
    for query in queries:
        query.run_batch()
    publication = client.add_exclusive_publication(CHANNEL, stream_id)
    sent = publish(publication, 200)
    assert [payloads(query.run_until(200)) for query in queries] == [sent, sent]


def counters(driver: aeron.MediaDriver, text: str) -> list[_aeron.CounterSnapshot]:
    with aeron.CncFile(driver.dir) as cnc:
        return [counter for counter in cnc.counters() if text in counter.label]


def test_counters_show_the_values_of_the_progress_report(
    start: Start, client: aeron.Aeron, driver: aeron.MediaDriver, stream_id: int
) -> None:
    """08-56: no counter has the type 100 of Aeron's recorded positions."""
    query = start()
    query.run_batch()
    publication = client.add_exclusive_publication(CHANNEL, stream_id)
    publish(publication, 10)
    query.run_until(10)
    archive = json.loads(query.offset(0))["archive"].removeprefix("private:")[:8]

    def shown() -> dict[str, int]:
        mine = counters(driver, f"archive={archive}")
        assert all(counter.type_id != 100 for counter in mine)
        return {counter.label.split()[1]: counter.value for counter in mine}

    eventually(lambda: shown().get("retainedBytes") == 640 and shown().get("recordedPosition") == 640)
    assert set(query.report()) - {"recordings", "gaps", "archive"} | {"recordedPosition"} == set(shown())


def test_fifty_restarts_leave_no_threads_descriptors_or_counters(
    start: Start, client: aeron.Aeron, driver: aeron.MediaDriver, stream_id: int
) -> None:
    """08-57"""
    query = start()
    query.run_batch()
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    with client.add_exclusive_publication(CHANNEL, stream_id) as publication:
        for turn in range(50):
            publish(publication, 1, first=turn)
            query = start()
            query.run_until(turn + 1)
    query.source.close()
    eventually(lambda: source_threads() == [])
    eventually(lambda: len(list(Path("/proc/self/fd").iterdir())) <= descriptors)
    eventually(lambda: not counters(driver, "spark-source"))
    assert missing_bytes(query.rows()) == 0


def test_errors_for_invalid_offsets_and_options_have_one_line(start: Start, home: Path) -> None:
    source = start().source
    for offset, reason in [
        ('{"aeron": 2, "archive": "shared:1", "recordings": {}}', "version 2"),
        (
            '{"aeron": 1, "archive": "shared:1", "recordings": {}}',
            "shared:1: give archive.controlChannel",
        ),
        ("{", "EOF"),
    ]:
        with pytest.raises(AeronSparkError, match=reason) as error:
            source.latest_offset(offset)
        assert "\n" not in str(error.value)
    with pytest.raises(AeronSparkError, match="not an absolute path"):
        start(archive_dir="relative")
    query = start("refused", channel="aeron:udp?endpoint=localhost")
    with pytest.raises(AeronOptionError, match="refuses"):
        query.run_batch()
    source = start("closed").source
    source.close()
    source.close()
    with pytest.raises(AeronSparkError, match="closed"):
        source.initial_offset()


def test_the_error_without_a_driver_names_the_command_that_starts_one(start: Start, home: Path) -> None:
    query = start(client={"aeron_dir": str(home / "nowhere"), "driver_timeout_ms": 200})
    with pytest.raises(aeron.exceptions.DriverTimeoutError, match='start one with "aeron driver --dir'):
        query.run_batch()


def test_a_query_with_an_embedded_driver_reads_a_stream_from_the_network(
    start: Start, client: aeron.Aeron, stream_id: int
) -> None:
    channel = "aeron:udp?endpoint=localhost:24617"
    query = start(channel=channel, client=None, embedded_driver=True)
    query.run_batch()
    with client.add_exclusive_publication(channel, stream_id) as publication:
        sent = publish(publication, 100)
        assert payloads(query.run_until(100)) == sent


def test_the_offset_of_another_archive_is_refused(start: Start) -> None:
    query = start()
    query.run_batch()
    other = start("other", beside=True)
    other.run_batch()
    with pytest.raises(AeronSparkError, match="belongs to private archive"):
        query.source.latest_offset(other.offset(0))
