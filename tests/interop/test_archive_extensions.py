"""Tests of requests that this project adds to Aeron's protocol, with the real archive and the real tool."""

import time

import pytest

import aeron
from aeron.spark.errors import AeronOptionError
from aeron.spark.options import recorded_write_options
from aeron.spark.recorded_sink import BatchCommit, StagedPartition, TaskName
from interop.archive_tool import ArchiveTool
from interop.archives import Archive
from interop.conftest import _started
from live.shared_query import SharedArchive, SharedQuery

_CHANNEL = "aeron:ipc?term-length=64k"
_STREAM, _OTHER_STREAM = 10, 11
_SEGMENT = 64 * 1024

_CALLS = {
    "commit_reader": lambda archive: archive.commit_reader(0, "bars", 0),
    "list_readers": lambda archive: archive.list_readers(),
    "set_recording_name": lambda archive: archive.set_recording_name(0, "trades"),
    "list_recording_info": lambda archive: archive.list_recording_info(),
    "list_copied_ranges": lambda archive: archive.list_copied_ranges(),
    "set_retention": lambda archive: archive.set_retention(max_bytes=0),
    "list_retention": lambda archive: archive.list_retention(),
    "apply_retention": lambda archive: archive.apply_retention(),
}


@pytest.fixture(scope="module")
def real_archive(drivers, tmp_path_factory):
    """Returns a client of the real archive."""
    directory = tmp_path_factory.mktemp("archive")
    driver = drivers("ours")
    settings = {"aeron.archive.id": 301}
    archive = _started(lambda: Archive("java", driver, directory / "files", directory / "errors", _STREAM, settings))
    with aeron.connect(driver.directory) as client, connected(client) as connection:
        yield connection
    archive.remove()


def connected(client, stream=_STREAM):
    """Connects to the archive. The archive may still be starting."""
    for _ in range(30):
        try:
            return aeron.connect_archive(client, control_stream_id=stream, message_timeout=5)
        except aeron.ArchiveTimeoutError as error:
            failure = error
    raise failure


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS)
def test_the_real_archive_does_not_support_our_requests_and_the_session_stays_connected(real_archive, call):
    begin = time.monotonic()
    with pytest.raises(aeron.NotSupportedByArchiveError, match="not supported by the archive"):
        call(real_archive)
    assert 0.8 < time.monotonic() - begin < 2.5
    assert real_archive.state == "CONNECTED"
    assert real_archive.list_recording(0) is None


def test_spark_refuses_options_that_the_real_archive_does_not_support(real_archive, drivers):
    stream_id = 71
    shared = SharedArchive(str(drivers("ours").directory))
    publication = real_archive.add_recorded_exclusive_publication(_CHANNEL, stream_id)
    real_archive.wait_recorded(publication, publication.publish(b"one", timeout=5), timeout=5)
    query = SharedQuery(shared, stream_id, starting_offsets="earliest", reader="bars")
    with pytest.raises(
        AeronOptionError, match=r"option archive\.reader: .*commit reader: not supported by the archive"
    ):
        query.run_batch()
    with pytest.raises(AeronOptionError, match=r"not supported by the archive: .*use positions instead of a time"):
        shared.plan(stream_id, starting_offsets="@1")
    assert len(shared.plan(stream_id, recording_ids=None)) == 1
    texts = {"channel": _CHANNEL, "streamId": "72", "archive.controlChannel": "aeron:ipc"}
    options = recorded_write_options({**texts, "aeron.dir": shared.aeron_dir})
    staged = StagedPartition(TaskName("query", 0, 0, 0), None, 0, 0, 0)
    with pytest.raises(AeronOptionError, match=r"option archive\.controlChannel: .*not supported by the archive"):
        BatchCommit(options, 0, [staged]).run()
    assert not real_archive.list_recordings(stream_id=72)


def test_the_real_tool_and_archive_accept_a_directory_with_our_additional_files(drivers, tmp_path):
    directory = tmp_path / "archive"
    settings = {"segment_file_length": _SEGMENT, "low_storage_space_threshold": 0, "archive_id": 302}
    with (
        aeron.MediaDriver() as own,
        aeron.connect(own) as client,
        aeron.Archive(directory, driver=own, **settings),
        aeron.connect_archive(client) as archive,
    ):
        archive.set_retention(stream_id=7, max_bytes=2 * _SEGMENT)
        publication = archive.add_recorded_exclusive_publication(_CHANNEL, 7)
        for number in range(5 * 64):
            position = publication.publish(bytes([number % 256]) * 992, timeout=5)
        recording = archive.wait_recorded(publication, position, timeout=5)
        archive.commit_reader(recording.recording_id, "bars", position)
        archive.set_recording_metadata(recording.recording_id, b"metadata")
        archive.stop_recording(publication)
        while archive.get_start_position(recording.recording_id) < 3 * _SEGMENT:
            archive.apply_retention()
        start = archive.get_start_position(recording.recording_id)
    assert {"archive-extensions.dat", "archive-retention.log"} <= {path.name for path in directory.iterdir()}
    tool = ArchiveTool(directory)
    tool.show()
    assert not tool.verify()
    assert tool.positions() == {recording.recording_id: (start, position)}
    before = (directory / "archive-extensions.dat").read_bytes()

    driver = drivers("ours")
    archive = _started(
        lambda: Archive("java", driver, directory, tmp_path / "errors", _OTHER_STREAM, {"aeron.archive.id": 303})
    )
    with aeron.connect(driver.directory) as client, connected(client, _OTHER_STREAM) as connection:
        with connection.replay(recording.recording_id, length=aeron.REPLAY_ALL_AND_STOP) as replay:
            count = sum(len(batch) for batch in replay.batches(timeout=10))
        assert count == (position - start) // 1024
    archive.stop()
    assert (directory / "archive-extensions.dat").read_bytes() == before
