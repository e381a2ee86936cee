"""`resume`: an archive that starts again takes up the recordings that were active when it ended.

Tests with killed archives are in `interop/test_archive_resume.py`.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
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
    """A directory of an archive on the driver of a client."""

    def __init__(self, driver: aeron.MediaDriver, client: aeron.Aeron, directory: Path) -> None:
        self.driver = driver
        self.client = client
        self.directory = directory

    @contextmanager
    def archive(self, *, resume: bool = True, **settings: Any) -> Iterator[aeron.AeronArchive]:
        """Runs the archive until the end of the block."""
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
    """Reads a recording that has stopped."""
    with archive.replay(recording_id, length=aeron.REPLAY_ALL_AND_STOP) as replay:
        return [int(message) for batch in replay.batches(timeout=5) for message in batch.to_list()]


def active(archive: aeron.AeronArchive, stream_id: int) -> list[int]:
    """Ids of the recordings of a stream that are active."""
    return [one.recording_id for one in archive.list_recordings(stream_id=stream_id) if one.is_active]


def extension_of(recording: aeron.Recording | None) -> str:
    """Channel of a publication that begins where a recording has stopped."""
    assert recording is not None
    assert recording.stop_position is not None
    term, offset = divmod(recording.stop_position, recording.term_buffer_length)
    initial = recording.initial_term_id
    return f"{CHANNEL}|init-term-id={initial}|term-id={initial + term}|term-offset={offset}"


def links(archive: aeron.AeronArchive) -> list[tuple[int, int | None, int | None, int | None]]:
    return [(one.recording_id, one.predecessor_id, one.gap_from, one.gap_to) for one in archive.list_recording_info()]


@pytest.mark.parametrize("channel", ["aeron:ipc", "aeron:ipc?alias=trades"])
def test_a_stream_that_waits_for_the_archive_goes_on_in_the_same_recording(
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


def test_a_stream_that_went_on_without_the_archive_becomes_a_recording_with_a_link(
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
            # The driver has noticed the position of the subscriber.
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


def test_a_publisher_with_a_new_session_becomes_a_recording_without_a_link(
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


def test_an_extension_goes_on(place: Place, client: aeron.Aeron, stream_id: int) -> None:
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
    # The extension itself may be extended by another session, as before the restart.
    with place.archive() as archive:
        channel = extension_of(archive.list_recording(0))
        with client.add_exclusive_publication(channel, stream_id) as publication:
            publish(publication, 20, 10)
            wait_recorded(archive, 0, publication)
            archive.stop_recording("aeron:ipc?alias=extension", stream_id)
            eventually(lambda: not active(archive, stream_id))
        assert numbers(archive, 0) == list(range(30))
        assert links(archive) == []


def test_a_stopped_subscription_is_not_taken_up(place: Place, client: aeron.Aeron, stream_id: int) -> None:
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


def test_a_recorded_publication_that_was_closed_is_not_taken_up(
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


def test_a_subscription_with_auto_stop_is_not_taken_up(place: Place, client: aeron.Aeron, stream_id: int) -> None:
    with client.add_exclusive_publication(CHANNEL, stream_id) as publication:
        with place.archive() as archive:
            archive.start_recording("aeron:ipc", stream_id, auto_stop=True)
            publish(publication, 0, 10)
            eventually(lambda: active(archive, stream_id))
        with place.archive() as archive:
            assert archive.list_recording_subscriptions() == []


def test_without_resume_nothing_is_remembered(place: Place, client: aeron.Aeron, stream_id: int) -> None:
    assert aeron.Archive.settings()["resume"] is False
    with client.add_exclusive_publication(CHANNEL, stream_id) as publication:
        with place.archive(resume=False) as archive:
            archive.start_recording("aeron:ipc", stream_id)
            publish(publication, 0, 10)
            eventually(lambda: active(archive, stream_id))
        assert not (place.directory / "archive-extensions.dat").exists()
        with place.archive() as archive:
            assert archive.list_recording_subscriptions() == []


def test_a_start_without_resume_forgets(place: Place, stream_id: int) -> None:
    with place.archive() as archive:
        archive.start_recording("aeron:ipc", stream_id)
    with place.archive(resume=False) as archive:
        assert archive.list_recording_subscriptions() == []
    with place.archive() as archive:
        assert archive.list_recording_subscriptions() == []


def test_a_program_that_asks_again_is_told_that_the_archive_records_already(place: Place, stream_id: int) -> None:
    with place.archive() as archive:
        archive.start_recording("aeron:ipc", stream_id)
    with place.archive() as archive, pytest.raises(aeron.ActiveSubscriptionError):
        archive.start_recording("aeron:ipc", stream_id)


def test_a_channel_that_the_driver_refuses_is_noted_and_tried_again_at_the_next_start(
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
    """Binds a socket to the port of a channel, if the driver does not use it any more."""
    try:
        socket.bind(("127.0.0.1", int(channel.rsplit(":", 1)[1])))
    except OSError:
        return False
    return True


def test_a_recorded_publisher_is_not_disturbed(place: Place, driver: aeron.MediaDriver, stream_id: int) -> None:
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
