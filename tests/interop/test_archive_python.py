"""Tests of `AeronArchive`, our client in Python, with the real archive and ours."""

import asyncio

import pytest

import aeron
from interop.archives import Archive
from interop.conftest import _started
from interop.kinds import ARCHIVES

_CHANNEL = "aeron:ipc?term-length=64k"
_ANY_PORT = "aeron:udp?endpoint=localhost:0"
_STREAM = 10
# The driver may still hold the counters of the archive of the other kind, which was killed: each kind has its own id.
_ARCHIVE_IDS = {"java": 300, "ours": 304}
_MESSAGES = [number.to_bytes(8, "little") * 100 for number in range(400)]


@pytest.fixture(scope="module", params=sorted({archive for archive, _ in ARCHIVES}))
def server(request, drivers, tmp_path_factory):
    directory = tmp_path_factory.mktemp("archive")
    settings = {"aeron.archive.id": _ARCHIVE_IDS[request.param]}
    driver = drivers("ours")
    archive = _started(
        lambda: Archive(request.param, driver, directory / "files", directory / "errors", _STREAM, settings)
    )
    archive.driver = driver
    yield archive
    archive.remove()


@pytest.fixture(params=["ipc", "udp"])
def archive(request, server):
    control, _, _ = server.control("udp")
    settings = {} if request.param == "ipc" else {"control_channel": control}
    with aeron.connect(server.driver.directory) as client, connected(client, settings) as archive:
        yield archive


def connected(client, settings):
    """Connects to the archive. The archive may still be starting."""
    for _ in range(30):
        try:
            return aeron.connect_archive(client, message_timeout=2, **settings)
        except aeron.ArchiveTimeoutError as error:
            failure = error
    raise failure


def test_a_stream_is_recorded_listed_replayed_truncated_and_purged(archive, server):
    """07-129"""
    assert archive.archive_id == server.archive_id()
    stream_id = 2000 + len(archive.list_recordings())
    publication = archive.add_recorded_publication(_CHANNEL, stream_id)
    for message in _MESSAGES:
        position = publication.publish(message, timeout=5)
    recording = archive.wait_recorded(publication, position, timeout=10)
    assert (recording.start_position, recording.stream_id) == (0, stream_id)
    archive.stop_recording(publication)
    assert archive.get_stop_position(recording.recording_id) == position
    table = archive.list_recordings(channel="aeron:ipc", stream_id=stream_id).to_arrow()
    assert table.column("recording_id").to_pylist() == [recording.recording_id]
    assert table.column("stop_position").to_pylist() == [position]
    for channel in ("aeron:ipc", _ANY_PORT):
        with archive.replay(recording.recording_id, channel, length=aeron.REPLAY_ALL_AND_STOP) as replay:
            got = [message for batch in replay.batches(timeout=10) for message in batch.to_list()]
        assert got == _MESSAGES
    assert [signal.signal for signal in archive.signals(timeout=0.5)] == ["START", "STOP"]
    archive.truncate_recording(recording.recording_id, 64 * 1024)
    assert archive.get_stop_position(recording.recording_id) == 64 * 1024
    archive.purge_recording(recording.recording_id)
    assert archive.list_recording(recording.recording_id) is None


def test_an_error_of_the_archive_raises_the_exception_class_of_its_code(archive):
    with pytest.raises(aeron.UnknownRecordingError) as caught:
        archive.get_start_position(99_999)
    assert caught.value.code == 5
    with pytest.raises(aeron.UnknownReplicationError):
        archive.stop_replication(5)
    assert archive.try_stop_replication(5) is False
    assert archive.try_stop_recording("aeron:ipc", 9999) is False


def test_a_coroutine_records_and_replays(archive):
    async def run():
        publication = await archive.async_add_recorded_exclusive_publication(_CHANNEL, 2100)
        await publication.offer_batch_async(_MESSAGES)
        recording = await archive.async_wait_recorded(publication, publication.position)
        await archive.async_stop_recording(publication)
        replay = await archive.async_replay(recording.recording_id, length=aeron.REPLAY_ALL_AND_STOP)
        got = [message async for batch in replay for message in batch.to_list()]
        replay.close()
        publication.close()
        return got

    assert asyncio.run(run()) == _MESSAGES
