"""Tests of restarts on the same checkpoint in the same process: retained messages, gaps and losses."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron
from aeron.spark.errors import AeronDataLossError, AeronSparkError
from live.conftest import Start
from live.streams import begin, fill, missing_bytes, number, payloads, publish

CHANNEL = "aeron:ipc"


def archive_of(home: Path) -> Path:
    (archive,) = (home / "archives").iterdir()
    return archive


@pytest.fixture
def publication(client: aeron.Aeron, stream_id: int) -> aeron.ExclusivePublication:
    return client.add_exclusive_publication(CHANNEL, stream_id)


def test_an_unfinished_batch_has_the_same_rows_after_a_restart(
    start: Start, publication: aeron.ExclusivePublication
) -> None:
    """08-45, 08-46: although further messages were published and the query has other limits."""
    query = start()
    query.run_batch()
    sent = publish(publication, 100)
    rows = query.run_until(100)
    (query.checkpoint / "commits" / str(query.done - 1)).unlink()
    publish(publication, 50, first=100)
    query = start(max_rows_per_trigger=3, min_partitions=4)
    again = query.run_batch()
    assert again == rows[-len(again or ()) :]
    assert payloads(query.rows()) == sent
    assert missing_bytes(query.run_until(150)) == 0


def test_a_restart_during_batch_0_opens_the_logged_archive(
    start: Start, publication: aeron.ExclusivePublication, home: Path
) -> None:
    """08-45: before and after the query has planned the partitions of batch 0."""
    query = start()
    first = query.source.initial_offset()
    (query.checkpoint / "offsets" / "0").write_text(first)
    query = start()
    assert query.source.initial_offset() != first
    query.run_batch()
    assert archive_of(home).name == json.loads(first)["archive"].removeprefix("private:")
    publish(publication, 10)
    (query.checkpoint / "commits" / "0").unlink()
    query = start()
    query.source.initial_offset()
    query.run_batch()
    assert len(query.run_until(10)) == 10
    assert len(list((home / "archives").iterdir())) == 1


def test_no_message_of_a_session_is_missed_over_restarts_of_the_query(
    start: Start, publication: aeron.ExclusivePublication
) -> None:
    """08-20, 08-49: over IPC the publisher waits. The messages have one frame or several, and fill several terms."""
    query = start()
    query.run_batch()
    count = 0
    for size in (8, 3000, 5000, 8):
        count += len(publish(publication, 40, first=count, size=size))
        query = start()
        query.run_until(count)
    assert missing_bytes(query.rows()) == 0
    assert [number(row) for row in query.rows()] == list(range(count))
    assert query.report()["gapBytes"] == 0


@pytest.fixture
def slow(client: aeron.Aeron, publication: aeron.ExclusivePublication, stream_id: int) -> aeron.Subscription:
    """Returns a second subscriber of the stream, which reads only when the test polls it."""
    subscription = client.add_subscription(CHANNEL, stream_id)
    subscription.wait_connected(timeout=5)
    return subscription


def test_a_slower_subscriber_makes_a_query_join_below_the_recorded_position(
    start: Start, publication: aeron.ExclusivePublication, slow: aeron.Subscription
) -> None:
    """08-20: the join position is below the head and within a message."""
    query = start()
    query.run_batch()
    count = len(publish(publication, 10, size=3000))
    query.run_until(count)
    slow.poll(lambda message, header: None, 4)
    query = start()
    count += len(publish(publication, 2, first=count))
    query.run_until(count)
    assert [number(row) for row in query.rows()] == list(range(count))
    recordings = {row.recording_id for row in query.rows()}
    assert len(recordings) == 2, "the restart did not make one new recording"
    assert query.report()["gapBytes"] == 0


def test_a_query_may_join_more_than_a_term_below_the_recorded_position(
    start: Start, publication: aeron.ExclusivePublication, slow: aeron.Subscription
) -> None:
    """08-20: a term between the join position and the recorded position ends with padding."""
    query = start()
    query.run_batch()
    count = 0
    for messages in (7, 7, 10):
        read_all(slow)
        count += len(publish(publication, messages, first=count, size=3000))
    assert publication.position % 3104, "no term ended with padding"
    query.run_until(count)
    query = start()
    query.run_batch()
    eventually(lambda: query.report()["joined"] == 2)
    read_all(slow)
    count += len(publish(publication, 5, first=count, size=3000))
    query.run_until(count)
    assert [number(row) for row in query.rows()] == list(range(count))
    assert query.report()["gapBytes"] == 0


def read_all(subscription: aeron.Subscription) -> None:
    while subscription.poll(lambda message, header: None, 100):
        pass


def test_data_sent_between_two_runs_is_reported_as_a_gap(
    start: Start, client: aeron.Aeron, publication: aeron.ExclusivePublication, stream_id: int
) -> None:
    """08-20, 08-49: the join position is above the recorded position, which is no error."""
    other = client.add_subscription(CHANNEL, stream_id)
    query = start()
    query.run_batch()
    other.wait_connected(timeout=5)
    publish(publication, 10, size=2000)
    query.run_until(10)
    query.source.close()
    read_all(other)
    publish(publication, 7, first=10, size=2000)
    read_all(other)
    eventually(lambda: joins_at_the_end(client, publication, stream_id))
    query = start()
    query.run_batch()
    eventually(lambda: query.report()["joined"] == 2)
    publish(publication, 5, first=17, size=2000)
    rows = query.run_until(15)
    assert [number(row) for row in rows] == [*range(10), *range(17, 22)]
    report = query.report()
    assert report["gapBytes"] == missing_bytes(rows) > 0
    assert report["lostBytes"] == report["unknownGaps"] == 0
    gap = {
        "stream": stream_id,
        "session": publication.session_id,
        "from": rows[9].position,
        "to": begin(rows[10]),
        "bytes": report["gapBytes"],
        "reason": "sent while no query ran",
    }
    assert report["gaps"] == [gap]
    told: list[str] = []

    def is_told() -> bool:
        """Returns whether the log has the line, which appears a short time after the rows."""
        told.extend(line for line in query.source.take_lines() if "were not recorded" in line)
        return bool(told)

    eventually(is_told)
    where = f"of stream {stream_id} session {publication.session_id} from {gap['from']} to {gap['to']}"
    assert told == [f"{gap['bytes']} bytes {where} were not recorded: sent while no query ran"]


def test_gaps_of_earlier_runs_are_included_in_the_counts_of_later_runs(
    start: Start, client: aeron.Aeron, publication: aeron.ExclusivePublication, stream_id: int
) -> None:
    """The private archive stores the totals."""
    other = client.add_subscription(CHANNEL, stream_id)
    other.wait_connected(timeout=10)
    count, query = 0, start()
    for turn in range(3):
        query = start()
        query.run_batch()
        eventually(lambda query=query, turn=turn: query.report()["joined"] == turn + 1)
        count += len(publish(publication, 3, first=count))
        query.run_until(3 * (turn + 1))
        before = query.report()
        assert before["gapBytes"] == missing_bytes(query.rows()), turn
        assert len(before["gaps"]) == turn
        assert before["ended"] == turn
        query.source.close()
        read_all(other)
        count += len(publish(publication, 4, first=count))
        read_all(other)
        eventually(lambda: joins_at_the_end(client, publication, stream_id))
    query = start()
    query.run_batch()
    assert query.report()["gapBytes"] >= before["gapBytes"] > 0
    assert any(line.startswith("totals go on: gapBytes ") for line in query.source.take_lines())


def test_a_session_that_began_between_two_runs_has_a_gap_of_unknown_length(
    start: Start, client: aeron.Aeron, publication: aeron.ExclusivePublication, stream_id: int
) -> None:
    """The start of a session that began while no query ran is unknown. So the number of lost bytes is unknown, not
    0."""
    query = start()
    query.run_batch()
    publish(publication, 3)
    query.run_until(3)
    query.source.close()
    publication.close()
    with client.add_exclusive_publication(CHANNEL, stream_id) as late:
        other = client.add_subscription(CHANNEL, stream_id)
        late.wait_connected(timeout=5)
        publish(late, 4, first=3)
        eventually(lambda: other.poll(lambda message, header: None, 100) == 0 and other.images)
        read_all(other)
        eventually(lambda: joins_at_the_end(client, late, stream_id))
        query = start()
        query.run_batch()
        eventually(lambda: query.report()["images"] == 1)
        report = query.report()
        (gap,) = report["gaps"]
        assert (gap["session"], gap["from"], gap["to"], gap["bytes"]) == (late.session_id, None, late.position, None)
        assert "is not known (sent while no query ran)" in gap["reason"]
        assert report["unknownGaps"] == 1
        assert report["gapBytes"] is None, "an unknown number of bytes was reported as a number"
        (line,) = [line for line in query.source.take_lines() if "were not recorded" in line]
        assert line.startswith(f"an unknown number of bytes of stream {stream_id} session {late.session_id} to ")


def test_a_session_that_starts_while_the_query_runs_has_no_gap(
    start: Start, client: aeron.Aeron, publication: aeron.ExclusivePublication, stream_id: int
) -> None:
    query = start()
    query.run_batch()
    publish(publication, 3)
    query.run_until(3)
    query = start()
    query.run_batch()
    with client.add_exclusive_publication(CHANNEL, stream_id) as second:
        publish(second, 3, first=3)
        query.run_until(6)
    assert query.report()["gapBytes"] == query.report()["unknownGaps"] == 0
    assert query.report()["gaps"] == []


def joins_at_the_end(client: aeron.Aeron, publication: aeron.ExclusivePublication, stream_id: int) -> bool:
    """Returns whether a new subscriber joins at the end of the stream.

    Then the driver has noticed that the query has ended and that the other subscribers have read all messages.
    """
    with client.add_subscription(CHANNEL, stream_id) as probe:
        probe.wait_connected(timeout=5)
        joined = [image.join_position for image in probe.images if image.session_id == publication.session_id]
        return joined == [publication.position]


def test_late_commits_lose_no_messages(start: Start, publication: aeron.ExclusivePublication) -> None:
    """08-47: with asynchronous progress tracking, Spark commits only logged offsets."""
    query = start()
    query.commits_behind = 2
    query.run_batch()
    for turn in range(20):
        publish(publication, 500, first=turn * 500, size=992)
        query.run_until((turn + 1) * 500)
        if turn % 5 == 4:
            # This simulates a process that died before the last offsets were logged.
            for batch in range(query.logged - 1, query.logged - 3, -1):
                for kind in ("offsets", "rows", "commits"):
                    (query.checkpoint / kind / str(batch)).unlink()
            query = start()
            query.commits_behind = 2
            query.run_batch()
    rows = query.run_until(10_000)
    assert [number(row) for row in rows] == list(range(10_000))


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_a_deleted_archive_is_data_loss_for_an_unfinished_batch(
    start: Start, publication: aeron.ExclusivePublication, home: Path, fail_on_data_loss: bool
) -> None:
    """08-48"""
    query = start()
    query.run_batch()
    publish(publication, 100)
    # All messages are in one batch, which is lost.
    eventually(lambda: query.report()["retainedBytes"] == 6400)
    query.run_until(100)
    batch = query.done - 1
    (query.checkpoint / "commits" / str(batch)).unlink()
    lost = _end(query.offset(batch)) - _end(query.offset(batch - 1))
    query.source.close()
    shutil.rmtree(archive_of(home))
    query = start(fail_on_data_loss=fail_on_data_loss)
    if fail_on_data_loss:
        with pytest.raises(AeronDataLossError, match=r"recording 0 from \d+ to 6400; failOnDataLoss=false"):
            query.run_batch()
        return
    assert query.run_batch() == []
    assert query.report()["lostBytes"] == lost
    assert any("is gone" in line for line in query.source.take_lines())
    assert query.run_batch() == [], "the new archive has rows"
    # The source has subscribed to the stream when it planned the empty batch, so it records these messages.
    publish(publication, 10, first=100)
    assert [number(row) for row in query.run_until(10)] == list(range(100, 110))
    report = query.report()
    assert (report["lostBytes"], report["unknownGaps"]) == (lost, 1), "the new archive has other counts"
    (gap,) = report["gaps"]
    # The number of further bytes in the old archive is unknown.
    assert gap["bytes"] is None
    assert "is gone" in gap["reason"]
    assert not any("is gone" in line for line in query.source.take_lines()), "the loss was logged again"


def _end(offset: str) -> int:
    return sum(json.loads(offset)["recordings"].values())


def test_the_bytes_of_an_abandoned_recording_count_as_lost(
    start: Start, publication: aeron.ExclusivePublication, home: Path
) -> None:
    """08-27, 08-48: a tool moved the stop position into an unfinished batch. The first part of the batch is still
    readable."""
    query = start()
    query.run_batch()
    publish(publication, 100)
    eventually(lambda: query.report()["retainedBytes"] == 6400)
    assert len(query.run_batch() or ()) == 100
    (query.checkpoint / "commits" / "1").unlink()
    query.source.close()
    _move_stop_position(archive_of(home) / "archive.catalog", 6400, 3200)
    with pytest.raises(AeronDataLossError, match=r"recording 0 from 3200 to 6400 .* its segment files end at 3200"):
        start().run_batch()
    query = start(fail_on_data_loss=False)
    assert query.run_batch() == []
    assert query.report()["lostBytes"] == 6400
    assert any("abandoned with the 3200 bytes before that" in line for line in query.source.take_lines())


def _move_stop_position(catalog: Path, old: int, new: int) -> None:
    """Changes the stop position of the catalog's only entry."""
    data, at = bytearray(catalog.read_bytes()), 32 + 32 + 48
    assert int.from_bytes(data[at : at + 8], "little") == old
    data[at : at + 8] = new.to_bytes(8, "little")
    catalog.write_bytes(data)


def test_the_lost_bytes_of_a_missing_archive_count_at_most_up_to_the_largest_64_bit_number(start: Start) -> None:
    """08-48"""
    source = start(fail_on_data_loss=False).source
    most = 2**63 - 32
    recordings = ", ".join(f'"1/1/{number}": {most}' for number in range(3))
    offset = f'{{"aeron": 1, "archive": "private:{0:032x}", "recordings": {{{recordings}}}}}'
    assert source.partitions(source.initial_offset(), offset) == []
    assert json.loads(source.report())["lostBytes"] == 2**63 - 1


def test_an_archive_that_was_deleted_after_a_finished_batch_is_created_again_if_data_loss_is_allowed(
    start: Start, publication: aeron.ExclusivePublication, home: Path
) -> None:
    """08-48"""
    query = start()
    query.run_batch()
    publish(publication, 100)
    query.run_until(100)
    query.source.close()
    shutil.rmtree(archive_of(home))
    with pytest.raises(AeronDataLossError, match="is gone, with recording 0 after 6400;"):
        start().run_batch()
    query = start(fail_on_data_loss=False)
    assert query.run_batch() == []
    publish(publication, 10, first=100)
    assert [number(row) for row in query.run_until(110)] == list(range(110))


def test_a_deleted_segment_is_data_loss_and_the_error_names_the_file(
    start: Start, publication: aeron.ExclusivePublication, home: Path
) -> None:
    """08-27, 08-48"""
    query = start()
    query.run_batch()
    publish(publication, 100)
    # All messages must be in one batch. Otherwise a later batch would commit the first one, and its segment would be
    # purged.
    eventually(lambda: query.report()["retainedBytes"] == 100 * 64)
    query.run_until(100)
    publish(publication, 50, first=100)
    eventually(lambda: query.report()["retainedBytes"] == 150 * 64)
    query.source.close()
    (archive_of(home) / "0-0.rec").unlink()
    with pytest.raises(AeronDataLossError, match=r"recording 0 from 6400 to 9600 .*0-0\.rec is missing"):
        start().run_batch()
    query = start(fail_on_data_loss=False)
    query.run_batch()
    publish(publication, 10, first=150)
    rows = query.run_until(110)
    assert [number(row) for row in rows] == [*range(100), *range(150, 160)]
    assert query.report()["lostBytes"] == 50 * 64


@pytest.mark.slow
def test_a_second_query_on_a_copy_of_the_checkpoint_is_refused(
    start: Start, publication: aeron.ExclusivePublication
) -> None:
    """08-28"""
    query = start()
    query.run_batch()
    shutil.copytree(query.checkpoint, query.checkpoint.with_name("copy"))
    with pytest.raises(AeronSparkError, match=r"in use by process \d+: another query runs on a copy"):
        start("copy", beside=True).run_batch()
    publish(publication, 1)
    assert len(query.run_until(1)) == 1


def test_data_retained_at_the_limit_survives_a_restart(start: Start, publication: aeron.ExclusivePublication) -> None:
    """08-29"""
    query = start(max_retained_bytes=1 << 20)
    query.run_batch()
    publication.wait_connected(timeout=5)
    count = fill(publication)
    query = start(max_retained_bytes=1 << 20)
    thread = threading.Thread(target=publish, args=(publication, 100), kwargs={"first": count, "size": 1024})
    thread.start()
    assert [number(row) for row in query.run_until(count + 100)] == list(range(count + 100))
    thread.join()
