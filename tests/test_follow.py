"""Tests of `Follower`: it reads the history and then the live stream, and continues after restarts of publishers and of
the follower.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import eventually
from tests.ports import free_port

import aeron

IPC = "aeron:ipc"


@pytest.fixture
def archive(driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path) -> Iterator[aeron.AeronArchive]:
    settings: dict[str, Any] = {"segment_file_length": 128 * 1024, "low_storage_space_threshold": 0}
    with (
        aeron.Archive(tmp_path / "archive", driver=driver, **settings),
        aeron.connect_archive(client) as archive,
    ):
        yield archive


def publish(archive: aeron.AeronArchive, stream_id: int, first: int, count: int) -> aeron.Publication:
    """Records a new session of the stream, and publishes `count` numbers from `first`."""
    publication = archive.add_recorded_publication(IPC, stream_id)
    for number in range(first, first + count):
        position = publication.publish(b"%d" % number, timeout=5)
    archive.wait_recorded(publication, position, timeout=5)
    return publication


def read(follower: aeron.Follower, count: int, then: Callable[[int], object] = lambda count: None) -> list[int]:
    """Reads at least `count` numbers. After each batch, calls `then` with the number of numbers read so far."""
    numbers: list[int] = []
    for batch in follower.batches(timeout=10):
        numbers += [int(message) for message in batch.to_list()]
        then(len(numbers))
        if len(numbers) >= count:
            break
    return numbers


def test_a_follower_reads_the_history_and_then_each_new_message(archive: aeron.AeronArchive, stream_id: int) -> None:
    publication = publish(archive, stream_id, 0, 10)
    joined = threading.Event()
    with archive.follow(channel=IPC, stream_id=stream_id, on_live_joined=joined.set) as follower:

        def offer_when_live(count: int) -> None:
            if count == 10:
                eventually(lambda: follower.poll_batch() is None and joined.is_set())
                publication.publish(b"10", timeout=5)

        assert read(follower, 11, offer_when_live) == list(range(11))
        assert follower.is_live
        assert follower.position == publication.position
    assert follower.is_closed


class EndedConnection:
    """A connection that an archive has accepted and ended, because the archive was just stopping."""

    def done(self) -> bool:
        return True

    def result(self, timeout: float) -> None:
        raise aeron.ArchiveDisconnectedError("not connected to the archive: its response stream has ended")


def test_a_follower_connects_again_if_the_archive_ends_the_new_connection(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    publish(archive, stream_id, 0, 3)
    with archive.follow(channel=IPC, stream_id=stream_id) as follower:
        connecting: Any = EndedConnection()
        follower._connecting = connecting
        assert read(follower, 3) == [0, 1, 2]
        assert follower._connecting is not connecting


def test_latest_starts_at_the_live_stream_and_a_number_starts_at_that_position(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    publication = publish(archive, stream_id, 0, 4)
    recording = archive.list_recordings(channel=IPC, stream_id=stream_id)[-1]
    with archive.follow(recording, position="latest") as follower:
        eventually(lambda: follower.poll_batch() is None and follower.is_live)
        publication.publish(b"4", timeout=5)
        assert read(follower, 1) == [4]
    with archive.follow(recording.recording_id, position=2 * 64) as follower:
        assert read(follower, 3) == [2, 3, 4]


def test_a_follower_continues_in_the_recording_of_a_restarted_publisher(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    publish(archive, stream_id, 0, 5).close()
    publish(archive, stream_id, 5, 5).close()
    changes: list[aeron.RecordingChange] = []
    with archive.follow(channel=IPC, stream_id=stream_id, on_change=changes.append) as follower:

        def restart(count: int) -> None:
            if count == 10:
                publish(archive, stream_id, 10, 1)

        assert read(follower, 11, restart) == list(range(11))
    ids = [recording.recording_id for recording in archive.list_recordings(channel=IPC, stream_id=stream_id)]
    assert changes == [
        aeron.RecordingChange(ids[0], 5 * 64, ids[1], 0, None),
        aeron.RecordingChange(ids[1], 5 * 64, ids[2], 0, None),
    ]


def test_a_live_follower_goes_on_with_the_recording_after_a_gap_and_reads_nothing_twice(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    changes: list[aeron.RecordingChange] = []
    with archive.follow(channel=IPC, stream_id=stream_id, reader="bars", on_change=changes.append) as follower:
        publication = publish(archive, stream_id, 0, 4)
        assert read(follower, 4) == [0, 1, 2, 3]
        eventually(lambda: follower.poll_batch() is None and follower.is_live)
        archive.stop_recording(publication)
        publication.publish(b"4", timeout=5)
        assert read(follower, 1) == [4]
        channel = f"{IPC}?session-id={publication.session_id}"
        archive.start_recording(channel, stream_id)
        eventually(lambda: len(recordings_of(archive, stream_id)) == 2)
        first, second = recordings_of(archive, stream_id)

        def publish_more(count: int) -> None:
            if count < 50:
                publication.publish(b"%d" % (count + 5), timeout=5)

        publication.publish(b"5", timeout=5)
        assert read(follower, 50, publish_more) == list(range(5, 55))
        eventually(lambda: follower.poll_batch() is None and follower.recording_id == second)
        position = publication.position
        eventually(lambda: follower.poll_batch() is None and reader_positions(archive) == {second: position})
    # The second recording begins after message 4. If the driver has not noticed yet that this message was read, the
    # recording begins before it.
    start = archive.get_start_position(second)
    assert start in {4 * 64, 5 * 64}
    assert changes == [aeron.RecordingChange(first, 4 * 64, second, start, start - 4 * 64)]


def test_a_follower_that_starts_again_leaves_no_reader_in_former_recordings(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    publish(archive, stream_id, 0, 4).close()
    publish(archive, stream_id, 4, 4).close()
    first, second = recordings_of(archive, stream_id)
    archive.commit_reader(first, "bars", 4 * 64)
    archive.commit_reader(second, "bars", 2 * 64)
    with archive.follow(channel=IPC, stream_id=stream_id, reader="bars") as follower:
        assert read(follower, 2) == [6, 7]
        assert set(reader_positions(archive)) == {second}


def test_a_follower_goes_on_if_retention_has_deleted_the_recording_that_is_read(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    publish(archive, stream_id, 0, 4).close()
    with archive.follow(channel=IPC, stream_id=stream_id, reader="bars") as follower:
        assert read(follower, 4) == [0, 1, 2, 3]
        [first] = recordings_of(archive, stream_id)
        eventually(lambda: follower.poll_batch() is None and reader_positions(archive) == {first: 4 * 64})
        # The follower notices the end of the live stream, and waits for the next one.
        eventually(lambda: follower.poll_batch() is None and not follower.is_live)
        for _ in range(50):
            assert follower.poll_batch() is None
            time.sleep(0.01)
        archive.purge_recording(first)
        publish(archive, stream_id, 4, 4)
        assert read(follower, 4) == [4, 5, 6, 7]


def recordings_of(archive: aeron.AeronArchive, stream_id: int) -> list[int]:
    return [recording.recording_id for recording in archive.list_recordings(channel=IPC, stream_id=stream_id)]


def reader_positions(archive: aeron.AeronArchive) -> dict[int, int]:
    return {reader.recording_id: reader.position for reader in archive.list_readers(name="bars")}


def test_a_follower_may_start_before_the_stream_exists(archive: aeron.AeronArchive, stream_id: int) -> None:
    with archive.follow(channel=IPC, stream_id=stream_id) as follower:
        assert follower.recording_id is None
        assert list(follower.batches(timeout=0)) == []
        publish(archive, stream_id, 0, 3)
        assert read(follower, 3) == [0, 1, 2]


def test_a_follower_continues_if_another_session_extends_the_recording(
    archive: aeron.AeronArchive, client: aeron.Aeron, stream_id: int
) -> None:
    publish(archive, stream_id, 0, 5).close()
    recording = archive.list_recordings(channel=IPC, stream_id=stream_id)[0]
    eventually(lambda: archive.get_stop_position(recording.recording_id) is not None)
    with archive.follow(recording) as follower:
        assert read(follower, 5) == list(range(5))
        stop = follower.position
        length = recording.term_buffer_length
        channel = (
            f"{IPC}?init-term-id={recording.initial_term_id}|term-id={recording.initial_term_id + stop // length}"
            f"|term-offset={stop % length}|term-length={length}"
        )
        with client.add_exclusive_publication(channel, stream_id) as publication:
            session = f"{IPC}?session-id={publication.session_id}"
            archive.extend_recording(recording.recording_id, session, stream_id)
            publication.publish(b"5", timeout=5)
            assert read(follower, 1) == [5]
            publication.publish(b"6", timeout=5)
            assert read(follower, 1) == [6]


@pytest.mark.parametrize("medium", ["ipc", "udp", "multicast"])
def test_fragmented_messages_are_complete_at_each_join_of_the_live_stream(
    archive: aeron.AeronArchive, stream_id: int, medium: str
) -> None:
    channel = {
        "ipc": "aeron:ipc?term-length=64k",
        "udp": f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=64k|ssc=true",
        "multicast": f"aeron:udp?endpoint=239.255.7.9:{free_port()}|interface=127.0.0.1|term-length=64k|ssc=true",
    }[medium]
    random_lengths = random.Random(7)
    messages = [b"%06d" % number * random_lengths.choice([1, 100, 600]) for number in range(1500)]
    publication = archive.add_recorded_publication(channel, stream_id)

    def send() -> None:
        for message in messages:
            publication.publish(message, timeout=20)
            time.sleep(0.0005)

    sender = threading.Thread(target=send)
    sender.start()
    eventually(lambda: archive.list_recordings(channel="aeron:", stream_id=stream_id))
    recording = archive.list_recordings(channel="aeron:", stream_id=stream_id)[0]
    for _ in range(3):
        joined = threading.Event()
        got: list[bytes] = []
        with archive.follow(recording, on_live_joined=joined.set) as follower:
            for batch in follower.batches(timeout=20):
                got += batch.to_list()
                if joined.is_set() and len(got) >= 200:
                    break
        assert got == messages[: len(got)]
    sender.join()


def test_a_coroutine_can_read_a_follower(archive: aeron.AeronArchive, stream_id: int) -> None:
    publish(archive, stream_id, 0, 5).close()

    async def run() -> list[int]:
        numbers: list[int] = []
        with archive.follow(channel=IPC, stream_id=stream_id) as follower:
            async for batch in follower:
                numbers += [int(message) for message in batch.to_list()]
                if len(numbers) == 5:
                    await asyncio.to_thread(publish, archive, stream_id, 5, 1)
                if len(numbers) == 6:
                    return numbers
        return numbers

    assert asyncio.run(asyncio.wait_for(run(), 30)) == list(range(6))


def test_the_position_advances_after_the_handler_has_returned(archive: aeron.AeronArchive, stream_id: int) -> None:
    publish(archive, stream_id, 0, 3)
    seen: list[tuple[bytes, int]] = []
    with archive.follow(channel=IPC, stream_id=stream_id) as follower:
        eventually(
            lambda: (
                follower.poll(lambda payload, header: seen.append((payload, follower.position))) < 0 or len(seen) == 3
            )
        )
        assert seen == [(b"0", 0), (b"1", 64), (b"2", 128)]
        assert follower.position == 192


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "needs a recording, or a channel and a stream_id"),
        ({"recording": 0, "channel": IPC, "stream_id": 1}, "and not both"),
        ({"channel": IPC}, "needs both channel and stream_id"),
        ({"recording": 0, "position": 0, "since": datetime.now(UTC)}, "position and since contradict each other"),
        ({"recording": 0, "position": "newest"}, "'newest' is not 'earliest', 'latest' or a number"),
        ({"channel": IPC, "stream_id": 1, "position": 64}, "position 64 needs a recording"),
        ({"recording": 0, "commit": "never"}, "commit 'never' is not 'batch' or 'explicit'"),
    ],
)
def test_contradicting_arguments_are_refused(archive: aeron.AeronArchive, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(aeron.InvalidArgumentError, match=text):
        archive.follow(**arguments)


def test_a_commit_before_the_first_recording_is_refused_with_the_reason(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    with archive.follow(channel=IPC, stream_id=stream_id, reader="bars", commit="explicit") as follower:
        reason = f"the archive has no recording of channel 'aeron:ipc' and stream {stream_id} yet"
        with pytest.raises(aeron.InvalidArgumentError, match=reason):
            follower.commit()
    with (
        archive.follow(channel=IPC, stream_id=stream_id) as follower,
        pytest.raises(aeron.InvalidArgumentError, match="the follower has no reader to commit"),
    ):
        follower.commit()


def test_an_unknown_recording_is_refused(archive: aeron.AeronArchive) -> None:
    with pytest.raises(aeron.UnknownRecordingError, match="unknown recording id: 77"):
        archive.follow(77)


def test_a_named_reader_continues_at_the_end_of_the_last_processed_batch(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    publication = publish(archive, stream_id, 0, 10)
    with archive.follow(channel=IPC, stream_id=stream_id, reader="bars") as follower:
        first, second = islice(follower.batches(limit=4, timeout=10), 2)
        assert first.to_list() + second.to_list() == [b"%d" % number for number in range(8)]
    # The first follower was closed without an exception, so its last batch counts as processed.
    assert [reader.position for reader in archive.list_readers(name="bars")] == [8 * 64]
    with pytest.raises(ZeroDivisionError), archive.follow(channel=IPC, stream_id=stream_id, reader="bars") as follower:
        for batch in follower.batches(limit=1, timeout=10):
            assert batch.to_list() == [b"8"]
            raise ZeroDivisionError
    with archive.follow(channel=IPC, stream_id=stream_id, reader="bars") as follower:
        assert read(follower, 2) == [8, 9]
    publication.publish(b"10", timeout=5)
    with archive.follow(channel=IPC, stream_id=stream_id, reader="other") as follower:
        assert read(follower, 11) == list(range(11))


def test_in_explicit_mode_only_a_commit_stores_a_position(archive: aeron.AeronArchive, stream_id: int) -> None:
    publish(archive, stream_id, 0, 5)
    with archive.follow(channel=IPC, stream_id=stream_id, reader="bars", commit="explicit") as follower:
        assert read(follower, 5) == list(range(5))
        follower.commit(2 * 64)
    with archive.follow(channel=IPC, stream_id=stream_id, reader="bars", commit="explicit") as follower:
        assert read(follower, 3) == [2, 3, 4]
        follower.commit()
    assert [reader.position for reader in archive.list_readers(name="bars")] == [5 * 64]


def test_a_named_reader_keeps_its_limits_in_the_next_recording(archive: aeron.AeronArchive, stream_id: int) -> None:
    publish(archive, stream_id, 0, 5).close()
    publish(archive, stream_id, 5, 5).close()
    last = archive.list_recordings(channel=IPC, stream_id=stream_id)[-1]
    with archive.follow(
        channel=IPC, stream_id=stream_id, reader="bars", max_age_ms=60_000, max_lag_bytes=1 << 20
    ) as follower:
        assert read(follower, 10) == list(range(10))
    [reader] = archive.list_readers(name="bars")
    assert (reader.recording_id, reader.position) == (last.recording_id, 5 * 64)
    assert (reader.max_age_ms, reader.max_lag_bytes) == (60_000, 1 << 20)


def test_since_starts_at_the_first_message_that_was_recorded_after_that_time(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    publication = publish(archive, stream_id, 0, 5)
    time.sleep(0.05)
    begin = datetime.now(UTC)
    time.sleep(0.05)
    for number in range(5, 8):
        position = publication.publish(b"%d" % number, timeout=5)
    archive.wait_recorded(publication, position, timeout=5)
    publication.close()
    with archive.follow(channel=IPC, stream_id=stream_id, since=begin) as follower:
        assert read(follower, 3) == [5, 6, 7]


def test_a_commit_without_a_named_reader_is_refused(archive: aeron.AeronArchive, stream_id: int) -> None:
    publish(archive, stream_id, 0, 1)
    with (
        archive.follow(channel=IPC, stream_id=stream_id) as follower,
        pytest.raises(aeron.InvalidArgumentError, match="no reader to commit"),
    ):
        follower.commit()


# ---- extensions, failures and explicit commits -----------------------------------------------------------------------


def extend(archive: aeron.AeronArchive, client: aeron.Aeron, recording_id: int, first: int, count: int) -> None:
    """Extends a stopped recording by `count` numbers from `first`, which a new session publishes. Stops it again."""
    recording = archive.list_recording(recording_id)
    assert recording is not None
    assert recording.stop_position is not None
    term, offset = divmod(recording.stop_position, recording.term_buffer_length)
    initial = recording.initial_term_id
    channel = (
        f"{IPC}?term-length={recording.term_buffer_length}|init-term-id={initial}|term-id={initial + term}"
        f"|term-offset={offset}"
    )
    with client.add_exclusive_publication(channel, recording.stream_id) as publication:
        extended = f"{IPC}?session-id={publication.session_id}"
        archive.extend_recording(recording_id, extended, recording.stream_id)
        for number in range(first, first + count):
            position = publication.publish(b"%d" % number, timeout=5)
        eventually(lambda: archive.get_max_recorded_position(recording_id) == position)
        archive.stop_recording(extended, recording.stream_id)
    eventually(lambda: archive.get_stop_position(recording_id) == position)


def test_a_follower_that_waits_reads_an_extension_that_has_stopped_again(
    archive: aeron.AeronArchive, client: aeron.Aeron, stream_id: int
) -> None:
    publish(archive, stream_id, 0, 3).close()
    [recording_id] = recordings_of(archive, stream_id)
    eventually(lambda: archive.get_stop_position(recording_id) is not None)
    with archive.follow(recording_id) as follower:
        assert read(follower, 3) == [0, 1, 2]
        eventually(lambda: follower.poll_batch() is None and follower._subscription.state == "AWAIT_LIVE")
        # The follower sees neither the beginning nor the end of the extension.
        extend(archive, client, recording_id, 3, 4)
        assert read(follower, 4) == [3, 4, 5, 6]
        extend(archive, client, recording_id, 7, 1)
        assert read(follower, 1) == [7]


def test_a_position_that_retention_has_deleted_fails_the_follower_of_an_active_recording(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    publication = archive.add_recorded_exclusive_publication(f"{IPC}?term-length=64k", stream_id)
    for _ in range(3 * 128):
        position = publication.publish(bytes(992), timeout=5)
    archive.wait_recorded(publication, position, timeout=5)
    [recording_id] = recordings_of(archive, stream_id)
    archive.purge_segments(recording_id, 128 * 1024)
    with archive.follow(recording_id, position=0) as follower, pytest.raises(aeron.PersistentSubscriptionError):
        read(follower, 1)


def test_explicit_commits_keep_the_reader_in_the_former_recording_until_a_commit_in_the_later_one(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    publish(archive, stream_id, 0, 4).close()
    publish(archive, stream_id, 4, 4).close()
    first, second = recordings_of(archive, stream_id)
    with archive.follow(channel=IPC, stream_id=stream_id, reader="bars", commit="explicit") as follower:
        assert read(follower, 8) == list(range(8))
        assert reader_positions(archive) == {first: 0, second: 0}
    with archive.follow(channel=IPC, stream_id=stream_id, reader="bars", commit="explicit") as follower:
        assert read(follower, 8) == list(range(8))
        follower.commit()
        assert reader_positions(archive) == {second: 4 * 64}


def test_a_commit_after_the_last_delivered_message_is_refused(archive: aeron.AeronArchive, stream_id: int) -> None:
    publish(archive, stream_id, 0, 4)
    options: dict[str, Any] = {"channel": IPC, "stream_id": stream_id, "reader": "bars", "commit": "explicit"}
    with archive.follow(**options) as follower:
        assert read(follower, 4) == [0, 1, 2, 3]
        with pytest.raises(aeron.InvalidArgumentError, match=r"position 320 .*: commit at most 256"):
            follower.commit(5 * 64)
        follower.commit(2 * 64)
    [recording_id] = recordings_of(archive, stream_id)
    assert reader_positions(archive) == {recording_id: 128}
