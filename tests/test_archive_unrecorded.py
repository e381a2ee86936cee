"""Tests of streams that the archive subscribes to and does not record: their publishers never wait for the archive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import eventually
from tests.ports import free_port

import aeron

_TERM_LENGTH = 64 * 1024
_IPC = f"aeron:ipc?term-length={_TERM_LENGTH}"
_MESSAGE = bytes(1000)
# Number of messages that together are longer than the window of a publication that nobody reads.
_COUNT = 4 * _TERM_LENGTH // len(_MESSAGE)


@pytest.fixture
def server(driver: aeron.MediaDriver, tmp_path: Path) -> Iterator[aeron.Archive]:
    settings = {"segment_file_length": 128 * 1024, "low_storage_space_threshold": 0}
    with aeron.Archive(tmp_path / "archive", driver=driver, **settings) as server:
        yield server


@pytest.mark.parametrize("source", ["ipc", "spy", "remote"])
def test_a_stream_that_cannot_extend_a_recording_blocks_neither_its_publisher_nor_other_subscribers(
    server: aeron.Archive, client: aeron.Aeron, stream_id: int, source: str
) -> None:
    """07-58"""
    errors: list[BaseException] = []
    channel = _IPC if source == "ipc" else f"aeron:udp?endpoint=localhost:{free_port()}|term-length={_TERM_LENGTH}"
    with aeron.connect_archive(client, error_handler=errors.append) as archive:
        recording = _record(archive, stream_id)
        archive.extend_recording(recording, channel, stream_id, source="REMOTE" if source == "remote" else "LOCAL")
        with (
            client.add_subscription(channel, stream_id) as subscription,
            client.add_exclusive_publication(channel, stream_id) as publication,
        ):
            # The publication begins at position 0, which is not the end of the recording.
            _transfer(publication, subscription)
        assert [type(error) for error in errors] == [aeron.InvalidExtensionError]
        assert archive.get_stop_position(recording) > 0
        assert len(archive.list_recording_subscriptions()) == 1


def test_a_second_stream_that_would_extend_the_same_recording_does_not_block_its_publisher(
    server: aeron.Archive, client: aeron.Aeron, stream_id: int
) -> None:
    with aeron.connect_archive(client) as archive:
        recording = archive.list_recording(_record(archive, stream_id))
        assert recording is not None
        assert recording.stop_position is not None
        archive.extend_recording(recording.recording_id, _IPC, stream_id)
        channel = aeron.ChannelUriBuilder("ipc")
        channel.initial_position(recording.stop_position, recording.initial_term_id, _TERM_LENGTH)
        with client.add_exclusive_publication(channel, stream_id) as first:
            archive.wait_recorded(first, _publish(first), timeout=5)
            with client.add_exclusive_publication(channel, stream_id) as second:
                _publish(second)
                archive.wait_recorded(first, _publish(first), timeout=5)


def test_a_recording_that_is_stopped_alone_does_not_block_its_publisher(
    server: aeron.Archive, client: aeron.Aeron, stream_id: int
) -> None:
    """07-54: the other recording keeps the subscription open."""
    with aeron.connect_archive(client) as archive:
        archive.start_recording(_IPC, stream_id)
        with (
            client.add_exclusive_publication(_IPC, stream_id) as first,
            client.add_exclusive_publication(_IPC, stream_id) as second,
        ):
            stopped = archive.wait_recorded(first, _publish(first), timeout=5)
            archive.wait_recorded(second, _publish(second), timeout=5)
            assert archive.try_stop_recording_by_identity(stopped.recording_id)
            eventually(lambda: archive.get_stop_position(stopped.recording_id) is not None)
            end = archive.get_stop_position(stopped.recording_id)
            _publish(first)
            archive.wait_recorded(second, _publish(second), timeout=5)
            assert archive.get_stop_position(stopped.recording_id) == end


def _record(archive: aeron.AeronArchive, stream_id: int) -> int:
    """Records a message, and stops the recording. Returns the recording id."""
    with archive.add_recorded_exclusive_publication(_IPC, stream_id) as publication:
        recording = archive.wait_recorded(publication, publication.publish(_MESSAGE, timeout=5), timeout=5)
        archive.stop_recording(publication)
    return recording.recording_id


def _publish(publication: aeron.ExclusivePublication) -> int:
    """Publishes more messages than fit into the window. Returns the position of the publication."""
    for _ in range(_COUNT):
        publication.publish(_MESSAGE, timeout=5)
    return publication.position


def _transfer(publication: aeron.ExclusivePublication, subscription: aeron.Subscription) -> None:
    """Publishes more messages than fit into the window. Fails if the subscription does not receive all of them within
    10 s."""
    received = sent = 0

    def transfer() -> bool:
        nonlocal received, sent
        if sent < _COUNT and not isinstance(publication.offer(_MESSAGE), aeron.NotSent):
            sent += 1
        received += len(subscription.poll_batch(64))
        return received == _COUNT

    eventually(transfer, timeout=10)
