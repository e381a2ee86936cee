"""Tests of the setting `resume`: a restarted archive continues the recordings that were active at its end.

Tests with killed archives are in `interop/test_archive_resume.py`.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import eventually
from tests.ports import free_port

import aeron
from commands import run

CHANNEL = "aeron:ipc?term-length=64k"
SETTINGS: dict[str, Any] = {"segment_file_length": 64 * 1024, "low_storage_space_threshold": 0}


class Place:
    """An archive's directory, and the driver and client that the archive and the tests use."""

    def __init__(self, driver: aeron.MediaDriver, client: aeron.Aeron, directory: Path) -> None:
        self.driver = driver
        self.client = client
        self.directory = directory

    @contextmanager
    def archive(self, *, resume: bool = True, **settings: Any) -> Iterator[aeron.AeronArchive]:
        """Runs the archive during the block, and yields a client of the archive."""
        with (
            aeron.Archive(self.directory, driver=self.driver, resume=resume, **SETTINGS, **settings),
            aeron.connect_archive(self.client) as archive,
        ):
            yield archive

    def errors(self) -> str:
        return run("archive", "errors", self.directory).stdout


@pytest.fixture
def place(driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path) -> Place:
    return Place(driver, client, tmp_path / "archive")


def publish(publication: aeron.Publication | aeron.ExclusivePublication, first: int, count: int) -> None:
    for number in range(first, first + count):
        publication.publish(b"%d" % number, timeout=5)


def wait_recorded(archive: aeron.AeronArchive, recording_id: int, publication: aeron.ExclusivePublication) -> None:
    eventually(lambda: archive.get_max_recorded_position(recording_id) == publication.position)


def numbers(archive: aeron.AeronArchive, recording_id: int) -> list[int]:
    """Returns the numbers in the messages of a stopped recording."""
    with archive.replay(recording_id, length=aeron.REPLAY_ALL_AND_STOP) as replay:
        return [int(message) for batch in replay.batches(timeout=5) for message in batch.to_list()]


def active(archive: aeron.AeronArchive, stream_id: int) -> list[int]:
    """Returns the ids of the active recordings of a stream."""
    return [one.recording_id for one in archive.list_recordings(stream_id=stream_id) if one.is_active]


def extension_of(recording: aeron.Recording | None) -> str:
    """Returns the channel of a publication that begins at the stop position of a recording."""
    assert recording is not None
    assert recording.stop_position is not None
    term, offset = divmod(recording.stop_position, recording.term_buffer_length)
    initial = recording.initial_term_id
    return f"{CHANNEL}|init-term-id={initial}|term-id={initial + term}|term-offset={offset}"


def links(archive: aeron.AeronArchive) -> list[tuple[int, int | None, int | None, int | None]]:
    return [(one.recording_id, one.predecessor_id, one.gap_from, one.gap_to) for one in archive.list_recording_info()]


@pytest.mark.parametrize("channel", ["aeron:ipc", "aeron:ipc?alias=trades"])
def test_a_stream_that_waits_for_the_archive_continues_in_the_same_recording(
    place: Place, client: aeron.Aeron, stream_id: int, channel: str
) -> None:
    with client.add_exclusive_publication(CHANNEL, stream_id) as publication:
        with place.archive() as archive:
            archive.start_recording(channel, stream_id)
            publish(publication, 0, 100)
            eventually(lambda: active(archive, stream_id))
            wait_recorded(archive, 0, publication)
        with place.archive() as archive:
            eventually(lambda: active(archive, stream_id) == [0])
            publish(publication, 100, 100)
            wait_recorded(archive, 0, publication)
        with place.archive() as archive:
            eventually(lambda: active(archive, stream_id) == [0])
            publish(publication, 200, 100)
            wait_recorded(archive, 0, publication)
            assert len(archive.list_recording_subscriptions()) == 1
            archive.stop_recording(channel, stream_id)
            eventually(lambda: not active(archive, stream_id))
            assert numbers(archive, 0) == list(range(300))
            assert links(archive) == []
    assert "not recorded" not in place.errors()


def test_a_stream_that_advanced_without_the_archive_gets_a_new_recording_with_a_link(
    place: Place, client: aeron.Aeron, stream_id: int
) -> None:
    with client.add_exclusive_publication(CHANNEL, stream_id) as publication:
        with place.archive() as archive:
            archive.start_recording("aeron:ipc", stream_id)
            publish(publication, 0, 100)
            eventually(lambda: active(archive, stream_id))
            wait_recorded(archive, 0, publication)
        stop = publication.position
        with client.add_subscription(CHANNEL, stream_id) as subscription:
            subscription.wait_connected(timeout=5)
            publish(publication, 100, 100)
            received: list[bytes] = []
            eventually(lambda: received.extend(subscription.poll_batch(100).to_list()) or len(received) == 100)
            begin = publication.position
            # Waits until the driver has read the subscriber's last position, at which the archive's next image begins.
            eventually(lambda: publication.available_window == 32 * 1024)
            with place.archive() as archive:
                eventually(lambda: active(archive, stream_id) == [1])
                publish(publication, 200, 100)
                wait_recorded(archive, 1, publication)
                assert links(archive) == [(1, 0, stop, begin)]
                archive.stop_recording("aeron:ipc", stream_id)
                eventually(lambda: not active(archive, stream_id))
                assert (numbers(archive, 0), numbers(archive, 1)) == (list(range(100)), list(range(200, 300)))
    assert f"recording 1 continues recording 0: positions {stop} to {begin} were not recorded" in place.errors()


@pytest.fixture
def linked(place: Place, client: aeron.Aeron, stream_id: int) -> Iterator[tuple[aeron.AeronArchive, int]]:
    """Yields an archive with two linked recordings. Recording 0 has the numbers 0 to 99, recording 1 has 200 to 299.

    The second value is the number of bytes between the recordings. These bytes were published while no archive ran.
    The stripped channel is not a part of the original channel.
    """
    with (
        client.add_exclusive_publication(CHANNEL, stream_id) as publication,
        client.add_subscription(CHANNEL, stream_id) as subscription,
    ):
        with place.archive() as archive:
            archive.start_recording("aeron:ipc?linger=0|alias=linked", stream_id)
            publish(publication, 0, 100)
            eventually(lambda: active(archive, stream_id))
            wait_recorded(archive, 0, publication)
            stop = publication.position
        publish(publication, 100, 100)
        received: list[bytes] = []
        eventually(lambda: received.extend(subscription.poll_batch(100).to_list()) or len(received) == 200)
        begin = publication.position
        # Waits until the driver has read the subscriber's last position, at which the archive's next image begins.
        eventually(lambda: publication.available_window == 32 * 1024)
        with place.archive() as archive:
            eventually(lambda: active(archive, stream_id) == [1])
            publish(publication, 200, 100)
            wait_recorded(archive, 1, publication)
            archive.stop_recording("aeron:ipc", stream_id)
            eventually(lambda: not active(archive, stream_id))
            yield archive, begin - stop


@pytest.mark.parametrize("by", ["recording", "stream"])
def test_a_follower_continues_in_the_linked_recording_and_reports_the_lost_bytes(
    linked: tuple[aeron.AeronArchive, int], stream_id: int, by: str
) -> None:
    archive, lost_bytes = linked
    selection: dict[str, Any] = (
        {"recording": 0} if by == "recording" else {"channel": "aeron:ipc", "stream_id": stream_id}
    )
    changes: list[aeron.RecordingChange] = []
    with archive.follow(**selection, on_change=changes.append) as follower:
        read: list[int] = []
        for batch in follower.batches(timeout=5):
            read += [int(message) for message in batch.to_list()]
            if len(read) >= 200:
                break
    assert read == [*range(100), *range(200, 300)]
    [change] = changes
    assert (change.previous_recording_id, change.recording_id, change.lost_bytes) == (0, 1, lost_bytes)
    assert change.start_position - change.stop_position == lost_bytes


def test_latest_and_a_time_are_also_searched_in_the_linked_recordings(
    linked: tuple[aeron.AeronArchive, int],
) -> None:
    archive, _ = linked
    recording = archive.list_recording(1)
    assert recording is not None
    with archive.follow(0, position="latest") as follower:
        assert (follower.recording_id, follower.position) == (1, recording.stop_position)
    with archive.follow(0, since=datetime.fromtimestamp(recording.start_timestamp_ms / 1_000, UTC)) as follower:
        assert follower.recording_id == 1


def test_a_named_reader_of_a_recording_continues_in_the_linked_recording(
    linked: tuple[aeron.AeronArchive, int],
) -> None:
    archive, _ = linked
    with archive.follow(0, reader="bars") as follower:
        read = 0
        for batch in follower.batches(16, timeout=5):
            read += len(batch)
            if read > 150:
                break
        position = follower.position
    with archive.follow(0, reader="bars") as follower:
        assert (follower.recording_id, follower.position) == (1, position)


@pytest.mark.parametrize("ends_with", ["a commit", "max_lag"])
def test_retention_keeps_linked_recordings_until_a_named_reader_has_a_position_in_them(
    linked: tuple[aeron.AeronArchive, int], stream_id: int, ends_with: str
) -> None:
    archive, _ = linked
    ends = [recording.stop_position or 0 for recording in archive.list_recordings(stream_id=stream_id)]

    def applied() -> list[tuple[int, bool, str]]:
        steps = archive.apply_retention()
        return [(step.recording_id, step.is_purge, step.reader or "") for step in steps]

    archive.commit_reader(0, "bars", ends[0])
    archive.set_retention(stream_id=stream_id, max_age_ms=1)
    eventually(lambda: applied() == [(0, False, "bars"), (1, False, "bars")])
    if ends_with == "a commit":
        archive.commit_reader(1, "bars", ends[1] - 32)
        eventually(lambda: applied() == [(1, False, "bars")])
        archive.commit_reader(1, "bars", ends[1])
    else:
        archive.commit_reader(0, "bars", ends[0], max_lag_bytes=1)
    eventually(lambda: not applied())
    assert list(archive.list_recordings()) == []


def follow_on(follower: aeron.Follower, read: list[int], count: int) -> None:
    """Polls until `read` has `count` numbers."""

    def has_all() -> bool:
        if (batch := follower.poll_batch()) is not None:
            read.extend(int(message) for message in batch.to_list())
        return len(read) >= count

    eventually(has_all)


def test_a_follower_with_a_named_reader_continues_after_a_restart_of_the_archive(
    place: Place, client: aeron.Aeron, stream_id: int
) -> None:
    read: list[int] = []
    with client.add_exclusive_publication(CHANNEL, stream_id) as publication:
        with place.archive() as archive:
            archive.start_recording("aeron:ipc", stream_id)
            publish(publication, 0, 100)
            wait_recorded(archive, 0, publication)
            follower = archive.follow(0, reader="bars")
            follow_on(follower, read, 100)
            eventually(lambda: follower.poll_batch() is None and follower.is_live)
        eventually(lambda: follower.poll_batch() is None)
        with place.archive() as archive:
            eventually(lambda: active(archive, stream_id) == [0])
            publish(publication, 100, 100)
            follow_on(follower, read, 200)
            wait_recorded(archive, 0, publication)

            def committed() -> list[int]:
                assert follower.poll_batch() is None
                return [reader.position for reader in archive.list_readers(name="bars")]

            eventually(lambda: committed() == [publication.position])
            follower.close()
    assert read == list(range(200))


def test_a_follower_that_read_the_live_stream_without_the_archive_reads_no_message_twice(
    tmp_path: Path, stream_id: int
) -> None:
    """The follower loses the live stream after the archive is back. It continues in the linked recording."""
    settings: dict[str, Any] = {
        "timer_interval_ns": 20_000_000,
        "untethered_window_limit_timeout_ns": 50_000_000,
        "untethered_linger_timeout_ns": 50_000_000,
        "untethered_resting_timeout_ns": 200_000_000,
    }
    with (
        aeron.MediaDriver(dir=tmp_path / "driver", **settings) as driver,
        aeron.connect(driver) as client,
        client.add_exclusive_publication(CHANNEL, stream_id) as publication,
    ):
        place = Place(driver, client, tmp_path / "archive")
        read: list[int] = []
        changes: list[aeron.RecordingChange] = []
        with place.archive() as archive:
            archive.start_recording("aeron:ipc", stream_id)
            publish(publication, 0, 100)
            wait_recorded(archive, 0, publication)
            follower = archive.follow(0, live_channel="aeron:ipc?tether=false", on_change=changes.append)
            follow_on(follower, read, 100)
            eventually(lambda: follower.poll_batch() is None and follower.is_live)
        publish(publication, 100, 100)
        follow_on(follower, read, 200)
        # Waits until the driver has read the follower's last position, at which the archive's next image begins.
        eventually(lambda: publication.available_window == 32 * 1024)
        with place.archive() as archive:
            eventually(lambda: active(archive, stream_id) == [1])
            # The follower does not read, so the driver removes its image. The follower must then continue in the
            # recording.
            publish(publication, 200, 2000)
            wait_recorded(archive, 1, publication)
            follow_on(follower, read, 2200)
            archive.stop_recording("aeron:ipc", stream_id)
            follower.close()
    assert read == list(range(2200))
    assert [(change.recording_id, change.lost_bytes) for change in changes] == [(1, 100 * 64)]


def test_a_follower_fails_if_the_recording_has_stopped_and_no_recording_continues_the_stream(
    place: Place, client: aeron.Aeron, stream_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeron.follow._SUCCESSOR_TIMEOUT", 0.5)
    with client.add_exclusive_publication(CHANNEL, stream_id) as publication, place.archive() as archive:
        archive.start_recording("aeron:ipc", stream_id)
        publish(publication, 0, 100)
        wait_recorded(archive, 0, publication)
        archive.stop_recording("aeron:ipc", stream_id)
        eventually(lambda: not active(archive, stream_id))
        with client.add_subscription(CHANNEL, stream_id) as subscription:
            subscription.wait_connected(timeout=5)
            publish(publication, 100, 1)
            eventually(lambda: len(subscription.poll_batch()) == 1)
            with archive.follow(0) as follower:
                read: list[int] = []
                with pytest.raises(aeron.PersistentSubscriptionError, match="stopped at position=6400"):
                    follow_on(follower, read, 101)
                assert read == list(range(100))


def test_a_publisher_with_a_new_session_gets_a_recording_without_a_link(
    place: Place, client: aeron.Aeron, stream_id: int
) -> None:
    with client.add_exclusive_publication(CHANNEL, stream_id) as publication, place.archive() as archive:
        archive.start_recording("aeron:ipc", stream_id)
        publish(publication, 0, 10)
        eventually(lambda: active(archive, stream_id) == [0])
    with client.add_exclusive_publication(CHANNEL, stream_id) as publication, place.archive() as archive:
        publish(publication, 10, 10)
        eventually(lambda: active(archive, stream_id) == [1])
        wait_recorded(archive, 1, publication)
        assert links(archive) == []
    assert "not recorded" not in place.errors()


def test_a_restarted_archive_continues_the_extension_of_a_recording(
    place: Place, client: aeron.Aeron, stream_id: int
) -> None:
    with place.archive() as archive:
        with archive.add_recorded_exclusive_publication(CHANNEL, stream_id) as publication:
            publish(publication, 0, 10)
            wait_recorded(archive, 0, publication)
            archive.stop_recording(publication)
        eventually(lambda: not active(archive, stream_id))
        channel = extension_of(archive.list_recording(0))
        with client.add_exclusive_publication(channel, stream_id) as publication:
            archive.extend_recording(0, "aeron:ipc?alias=extension", stream_id)
            publish(publication, 10, 10)
            wait_recorded(archive, 0, publication)
    # After the restart, another session still extends recording 0: the archive has resumed the extension.
    with place.archive() as archive:
        channel = extension_of(archive.list_recording(0))
        with client.add_exclusive_publication(channel, stream_id) as publication:
            publish(publication, 20, 10)
            wait_recorded(archive, 0, publication)
            archive.stop_recording("aeron:ipc?alias=extension", stream_id)
            eventually(lambda: not active(archive, stream_id))
        assert numbers(archive, 0) == list(range(30))
        assert links(archive) == []


def test_a_stopped_recording_subscription_is_not_resumed(place: Place, client: aeron.Aeron, stream_id: int) -> None:
    with client.add_exclusive_publication(CHANNEL, stream_id) as publication:
        with place.archive() as archive:
            by_channel = f"aeron:ipc?session-id={publication.session_id}"
            archive.start_recording("aeron:ipc", stream_id)
            publish(publication, 0, 10)
            archive.stop_recording("aeron:ipc", stream_id)
            by_id = archive.start_recording("aeron:ipc", stream_id)
            archive.stop_recording(by_id)
            archive.start_recording(by_channel, stream_id)
            eventually(lambda: active(archive, stream_id))
            assert archive.try_stop_recording_by_identity(active(archive, stream_id)[0])
        with place.archive() as archive:
            assert archive.list_recording_subscriptions() == []


def test_the_recording_of_a_closed_publication_is_not_resumed(
    place: Place, client: aeron.Aeron, stream_id: int
) -> None:
    with place.archive() as archive:
        closed = archive.add_recorded_exclusive_publication(CHANNEL, stream_id)
        publish(closed, 0, 10)
        open_one = archive.add_recorded_exclusive_publication(CHANNEL, stream_id)
        publish(open_one, 0, 10)
        eventually(lambda: active(archive, stream_id) == [0, 1])
        wait_recorded(archive, 1, open_one)
        closed.close()
        eventually(lambda: active(archive, stream_id) == [1])
    with place.archive() as archive:
        eventually(lambda: active(archive, stream_id) == [1])
        [subscription] = archive.list_recording_subscriptions()
        assert f"session-id={open_one.session_id}" in subscription.stripped_channel
        publish(open_one, 10, 10)
        wait_recorded(archive, 1, open_one)
    open_one.close()


def test_a_recording_subscription_with_auto_stop_is_not_resumed(
    place: Place, client: aeron.Aeron, stream_id: int
) -> None:
    with client.add_exclusive_publication(CHANNEL, stream_id) as publication:
        with place.archive() as archive:
            archive.start_recording("aeron:ipc", stream_id, auto_stop=True)
            publish(publication, 0, 10)
            eventually(lambda: active(archive, stream_id))
        with place.archive() as archive:
            assert archive.list_recording_subscriptions() == []


def test_an_archive_without_resume_stores_no_recording_subscription(
    place: Place, client: aeron.Aeron, stream_id: int
) -> None:
    assert aeron.Archive.settings()["resume"] is False
    with client.add_exclusive_publication(CHANNEL, stream_id) as publication:
        with place.archive(resume=False) as archive:
            archive.start_recording("aeron:ipc", stream_id)
            publish(publication, 0, 10)
            eventually(lambda: active(archive, stream_id))
        assert not (place.directory / "archive-extensions.dat").exists()
        with place.archive() as archive:
            assert archive.list_recording_subscriptions() == []


def test_a_start_without_resume_removes_the_stored_recording_subscriptions(place: Place, stream_id: int) -> None:
    with place.archive() as archive:
        archive.start_recording("aeron:ipc", stream_id)
    with place.archive(resume=False) as archive:
        assert archive.list_recording_subscriptions() == []
    with place.archive() as archive:
        assert archive.list_recording_subscriptions() == []


def test_a_repeated_start_of_a_resumed_recording_is_refused_as_active(place: Place, stream_id: int) -> None:
    with place.archive() as archive:
        archive.start_recording("aeron:ipc", stream_id)
    with place.archive() as archive, pytest.raises(aeron.ActiveSubscriptionError):
        archive.start_recording("aeron:ipc", stream_id)


def test_a_channel_that_the_driver_refuses_is_logged_and_tried_again_at_the_next_start(
    place: Place, stream_id: int
) -> None:
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    with place.archive() as archive:
        archive.start_recording("aeron:ipc", stream_id)
        archive.start_recording(channel, stream_id, source="REMOTE")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        eventually(lambda: bound(other, channel))
        with place.archive() as archive:
            eventually(lambda: len(archive.list_recording_subscriptions()) == 1)
        errors = place.errors()
        assert f"stream {stream_id} of {channel} is not recorded again" in errors
        assert "Address already in use" in errors
    with place.archive() as archive:
        assert len(archive.list_recording_subscriptions()) == 2


def bound(socket: socket.socket, channel: str) -> bool:
    """Tries to bind a socket to the port of a channel. Returns whether the port was free."""
    try:
        socket.bind(("127.0.0.1", int(channel.rsplit(":", 1)[1])))
    except OSError:
        return False
    return True


def test_a_recorded_publisher_continues_after_a_restart_of_the_archive(
    place: Place, driver: aeron.MediaDriver, stream_id: int
) -> None:
    with aeron.RecordedPublisher(CHANNEL, stream_id, driver=driver, message_timeout=2) as publisher:
        with place.archive():
            publisher.wait_connected(timeout=5)
            publisher.publish(b"0", timeout=5)
            assert publisher.flush(timeout=5)
        with place.archive():
            for number in range(1, 20):
                publisher.publish(b"%d" % number, timeout=5)
            assert publisher.flush(timeout=20)
            assert publisher.reconnects == 1
    with place.archive() as archive:
        assert numbers(archive, 0) == list(range(20))
