"""Tests of the real `ArchiveTool` and archive on directories of our store, and of our store on directories of the real
archive."""

import shutil
import struct
import time
import zlib

import pytest
from tests.conftest import eventually
from tests.test_catalog_compaction import DELETED, entry_ids, recorded

import aeron
from interop.archive_tool import ArchiveTool
from interop.conftest import _started
from interop.peer.pattern import message
from interop.peers import Peer, PeerError

_CHANNEL = "aeron:ipc?term-length=64k"
_LENGTHS = (10, 3000, 0, 1400, 7)
_COUNT = 400
_SEGMENT_LENGTH = 128 * 1024


def _recovered(bricks, directory, *known):
    """Recovers a copy of the directory. Returns the copy, and the start and stop positions of the recovered
    recordings."""
    copy = directory.with_name("recovered")
    shutil.copytree(directory, copy)
    found = [tuple(map(int, line.split())) for line in bricks("recover", copy, *known)]
    return copy, {id: (start, stop) for id, start, stop in found}


def _segments(directory):
    return {path.name: path.read_bytes() for path in directory.glob("*.rec")}


@pytest.mark.parametrize("state", ["stopped", "compacted", "undone"])
def test_the_tool_accepts_the_files_of_a_stopped_recorder(written, state):
    """08-14, 08-24"""
    directory = written(state)
    tool = ArchiveTool(directory)
    before, segments = tool.positions(), _segments(directory)
    tool.show()
    assert not tool.verify()
    assert tool.positions() == before
    assert _segments(directory) == segments


def test_the_tool_accepts_an_archive_with_purged_segments_and_recordings(written):
    """08-14, 08-30"""
    tool = ArchiveTool(written("purged"))
    assert tool.positions()[0][0] == _SEGMENT_LENGTH
    assert "recordingId=1|" not in tool.succeed("describe")
    assert "DELETED" in tool.succeed("describe-all")
    assert "(recordingId=1) skipping: DELETED" in tool.succeed("verify", "-a")


def test_our_store_reads_a_catalog_that_the_tool_compacted(bricks, written):
    """08-17: the compacted catalog has no deleted entry, and the file ends after the last entry."""
    directory = written("purged")
    before = _messages(bricks("read", directory))
    assert "deleted 1 records" in ArchiveTool(directory).succeed("compact", answer="y")
    assert (directory / "archive.catalog").stat().st_size < 1024
    assert _messages(bricks("read", directory)) == before
    assert bricks("recover", directory) == []


def test_the_tool_reads_a_catalog_that_our_running_archive_has_compacted(driver, client, tmp_path):
    """08-17: recordings before and after the compaction have all their frames, and the deleted entries are gone."""
    with (
        aeron.Archive(tmp_path / "archive", driver=driver, low_storage_space_threshold=0) as server,
        aeron.connect_archive(client) as archive,
    ):
        before = recorded(archive, messages=100)
        for _ in range(DELETED):
            archive.purge_recording(recorded(archive))
        eventually(lambda: entry_ids(server.directory) == [before])
        after = recorded(archive, messages=50)
        positions = {id: (0, archive.get_stop_position(id)) for id in (before, after)}
    tool = ArchiveTool(server.directory)
    tool.show()
    assert not tool.verify()
    assert tool.positions() == positions
    assert tool.succeed("count-entries").split() == ["2"]


@pytest.mark.parametrize(
    ("state", "answer", "known"),
    [
        ("killed", None, ()),
        ("torn", "y", ()),
        ("zero-page", "n", (19_648,)),
        ("padding", "n", ()),
    ],
)
def test_the_tool_and_our_recovery_find_the_same_end_of_a_killed_recording(bricks, written, state, answer, known):
    """08-14, 08-23: the test confirms the tool's question for a torn frame, and declines it for any other frame."""
    directory = written(state)
    recovered, ends = _recovered(bricks, directory, *known)
    tool = ArchiveTool(directory)
    tool.show()
    asked = tool.verify(answer=answer or "n")
    assert asked == (answer is not None)
    assert ends
    assert {id: tool.positions()[id] for id in ends} == ends
    assert _segments(directory) == _segments(recovered)


@pytest.mark.parametrize(
    ("state", "known"),
    [
        ("killed", ()),
        ("torn", ()),
        ("zero-page", (19_648,)),
        ("padding", ()),
        ("segment-end", ()),
        ("created", ()),
        ("undoing", ()),
    ],
)
def test_the_tool_accepts_the_files_after_our_recovery(bricks, written, state, known):
    """08-14, 08-24: if a kill interrupted the creation or truncation of a file, the tool accepts the directory only
    after our recovery."""
    recovered, ends = _recovered(bricks, written(state), *known)
    tool = ArchiveTool(recovered)
    before, segments = tool.positions(), _segments(recovered)
    assert ends.items() <= before.items()
    tool.show()
    tool.verify()
    assert tool.positions() == before
    assert _segments(recovered) == segments


_MAINTAINED = ("extended", "other-channels", "truncated", "detached", "given-up", "migrated")


@pytest.mark.parametrize("checksum", [None, "CRC-32C"])
@pytest.mark.parametrize("state", _MAINTAINED)
def test_the_tool_accepts_the_files_after_operations_of_our_store(written, state, checksum):
    """07-51, 07-59, 07-63, 07-69, 07-108 to 07-111: if there are checksums, the tool checks the checksum of each frame
    and entry."""
    tool = ArchiveTool(written(state + ("-with-checksums" if checksum else "")))
    before, segments = tool.positions(), _segments(tool.directory)
    tool.show()
    assert not tool.verify(checksum=checksum)
    assert tool.positions() == before
    assert _segments(tool.directory) == segments


@pytest.mark.parametrize("checksum", [None, "CRC-32C"])
def test_the_tool_and_our_recovery_find_the_same_end_of_extended_recordings(bricks, written, checksum):
    """07-59, 07-77, 07-80: the recordings have frames of two sessions."""
    tool = ArchiveTool(written("extending" + ("-with-checksums" if checksum else "")))
    expected = {id: messages[:2] for id, messages in _messages(bricks("read", tool.directory, "--any-session")).items()}
    assert not tool.verify(checksum=checksum)
    assert tool.positions() == expected


def test_the_tool_reports_an_error_if_another_checksum_algorithm_is_given(written):
    """07-51: this error shows that the tool compares checksums. So the other tests check our checksums."""
    tool = ArchiveTool(written("extended-with-checksums"))
    result = tool.run("verify", "-a", "-checksum", "CRC-32")
    assert result.returncode == 255
    assert "ERR" in result.stdout


@pytest.fixture
def real_archive(drivers, tmp_path):
    """`real_archive(directory, **settings)` starts the real archive on our driver. Returns the process and the
    directory."""
    started = []

    def start(directory=tmp_path / "real", **settings):
        archive = _started(lambda: Peer("java-archive", tmp_path / "archive-errors.txt"))
        started.append(archive)
        archive.call(
            "open",
            dir=drivers("ours").directory,
            archive_dir=directory,
            segment_length=_SEGMENT_LENGTH,
            **settings,
        )
        return archive, directory

    yield start
    for archive in started:
        archive.kill()


_ACTIVITY_TIMESTAMP_OFFSET = 16


def _set_activity(directory, timestamp_ms):
    with open(directory / "archive-mark.dat", "r+b") as mark_file:
        mark_file.seek(_ACTIVITY_TIMESTAMP_OFFSET)
        mark_file.write(struct.pack("<q", timestamp_ms))


def test_the_real_archive_continues_after_a_killed_recorder(bricks, written, real_archive):
    """08-14: the real archive finds the same ends, and replays the messages that our reader reads."""
    directory = written("killed")
    recovered, _ = _recovered(bricks, directory)
    _set_activity(directory, int(time.time() * 1000) - 11_000)
    archive, _ = real_archive(directory)
    for id, (start, stop, messages) in _messages(bricks("read", recovered)).items():
        replayed = archive.call("replay", recording=id)
        assert (replayed["start"], replayed["stop"]) == (start, stop)
        assert replayed["count"] == len(messages)
        assert replayed["checksum"] == zlib.crc32(b"".join(messages))


@pytest.mark.parametrize("state", [*_MAINTAINED, "truncated-to-a-segment"])
def test_the_real_archive_continues_after_operations_of_our_store(bricks, written, real_archive, state):
    """07-70: the real archive replays the messages that our reader reads."""
    directory = written(state)
    recordings = _messages(bricks("read", directory, "--any-session"))
    archive, _ = real_archive(directory)
    for id, (start, stop, messages) in recordings.items():
        if start == stop:
            continue
        replayed = archive.call("replay", recording=id)
        assert (replayed["start"], replayed["stop"]) == (start, stop)
        assert replayed["count"] == len(messages)
        assert replayed["checksum"] == zlib.crc32(b"".join(messages))


def test_the_real_archive_refuses_a_directory_with_a_live_owner(written, real_archive):
    """08-28"""
    directory = written("killed")
    # The activity time lies in the future, so that it is still recent when the Java virtual machine has started.
    _set_activity(directory, int(time.time() * 1000) + 30_000)
    with pytest.raises(PeerError, match="active mark file detected"):
        real_archive(directory)


def _record(archive, stream, *, stop):
    recorded = archive.call(
        "record", channel=_CHANNEL, stream=stream, count=_COUNT, lengths=_LENGTHS, timeout_ms=20_000, stop=stop
    )
    assert recorded["sent"] == _COUNT
    return recorded


def _messages(lines):
    """Returns start position, end position and complete messages of each recording that our reader printed."""
    recordings, parts = {}, b""
    for line in lines:
        if line.startswith("recording "):
            _, id, start, end = line.split()
            messages = []
            recordings[int(id)] = (int(start), int(end), messages)
            continue
        _, flags, *payload = line.split(" ")
        is_begin, is_end = int(flags, 16) & 0x80, int(flags, 16) & 0x40
        parts = (b"" if is_begin else parts) + bytes.fromhex(payload[0])
        if is_end:
            messages.append(parts)
    return recordings


def _pattern():
    return [message(number, _LENGTHS[number % len(_LENGTHS)]) for number in range(_COUNT)]


def test_our_reader_reads_the_recordings_of_the_real_archive(bricks, real_archive, stream):
    """08-58"""
    archive, directory = real_archive()
    recorded = [_record(archive, stream, stop=True), _record(archive, stream, stop=False)]
    archive.call("close")
    seen = _messages(bricks("read", directory))
    assert seen == {it["recording"]: (it["start"], it["position"], _pattern()) for it in recorded}
    assert seen[0][1] > 2 * _SEGMENT_LENGTH


def test_our_reader_reads_the_recordings_of_a_killed_real_archive(bricks, real_archive, stream):
    """08-58: our reader finds the same end of a recording as the tool, and changes no file."""
    archive, directory = real_archive()
    recorded = _record(archive, stream, stop=False)
    archive.kill()
    assert ArchiveTool(directory).positions() == {0: (0, -1)}
    before = _segments(directory)
    assert _messages(bricks("read", directory)) == {0: (0, recorded["position"], _pattern())}
    assert _segments(directory) == before
    ArchiveTool(directory).verify()
    assert ArchiveTool(directory).positions() == {0: (0, recorded["position"])}


def test_our_reader_reads_frames_whose_session_id_is_a_checksum(bricks, real_archive, stream):
    """08-58"""
    archive, directory = real_archive(checksum="CRC-32C")
    _record(archive, stream, stop=True)
    archive.call("close")
    [(_, _, messages)] = _messages(bricks("read", directory, "--any-session")).values()
    assert messages == _pattern()


def test_the_tool_refuses_a_recording_that_was_truncated_to_the_start_of_a_segment(
    drivers, start_archive, archive_client, written, stream
):
    """07-108: the archive deletes the segment file that would begin at the stop position.

    The tool also refuses a recording that our archive truncated in this way.
    """
    driver = drivers("ours")
    archive = start_archive("java", driver)
    client = archive_client(driver, archive)
    publication = client.add_recorded_publication(_CHANNEL, stream, exclusive=True)
    recording = client.await_signal("START")["recording"]
    publication.start_publish(_COUNT, _LENGTHS)
    assert client.peer.answer()["sent"] == _COUNT
    client.await_recorded(recording, publication.state()["position"])
    client.stop_recording_publication(publication)
    client.await_signal("STOP")
    assert client.truncate(recording, _SEGMENT_LENGTH) > 0
    client.await_signal("DELETE")
    client.close()
    archive.stop()
    for directory in (archive.directory, written("truncated-to-a-segment")):
        assert list(_segments(directory)) == ["0-0.rec"]
        result = ArchiveTool(directory).run("verify", "-a")
        assert result.returncode == 255
        assert f"stopPosition={_SEGMENT_LENGTH} exceed max segment file position" in result.stdout


def test_our_store_continues_after_operations_of_the_real_archive(
    bricks, drivers, start_archive, archive_client, stream
):
    """07-59, 07-69, 07-70, 07-108, 07-110, 07-111"""
    driver = drivers("ours")
    archive = start_archive("java", driver)
    client = archive_client(driver, archive)

    def record(start=0, extended=None):
        at = f"init-term-id=7|term-id={7 + start // 65536}|term-offset={start % 65536}"
        channel = f"{_CHANNEL}|mtu=1408|{at}"
        subscription = (
            client.start_recording(channel, stream)
            if extended is None
            else client.extend_recording(extended, channel, stream)
        )
        publication = client.peer.add_publication(channel, stream, exclusive=True)
        recording = client.await_signal("START" if extended is None else "EXTEND")["recording"]
        publication.await_connected()
        publication.start_publish(_COUNT, _LENGTHS)
        assert client.peer.answer()["sent"] == _COUNT
        client.await_recorded(recording, publication.state()["position"])
        client.stop_recording(subscription)
        client.await_signal("STOP")
        publication.close()
        return recording

    extended, shortened, truncated, earlier = [record() for _ in range(4)]
    record(client.stop_position(extended), extended)
    client.purge_segments(shortened, _SEGMENT_LENGTH)
    client.truncate(truncated, _SEGMENT_LENGTH)
    client.truncate(earlier, 2 * _SEGMENT_LENGTH)
    later = record(2 * _SEGMENT_LENGTH)
    client.migrate_segments(earlier, later)
    client.update_channel(shortened, f"aeron:ipc?alias={'x' * 500}")
    client.update_channel(later, "aeron:ipc")
    expected = {it["recording"]: (it["start"], it["stop"], it["original"]) for it in client.list_recordings()}
    client.close()
    archive.stop()
    shown = [line.split() for line in bricks("open", archive.directory)]
    assert {int(id): (int(start), int(stop), channel) for id, start, stop, channel in shown} == expected
    messages = {id: it[2] for id, it in _messages(bricks("read", archive.directory, "--any-session")).items()}
    assert messages[extended] == 2 * _pattern()
    assert messages[later][-_COUNT:] == _pattern()
    assert len(messages[shortened]) > 0
    ArchiveTool(archive.directory).succeed("describe")


def test_the_tool_cannot_dump_recordings_that_the_real_archive_purged(real_archive, stream):
    """The tool also fails for a purged recording of the real archive, so its failure is no defect of ours."""
    archive, directory = real_archive()
    first = _record(archive, stream, stop=True)
    _record(archive, stream, stop=True)
    assert archive.call("purge", recording=first["recording"])["files"] > 0
    archive.call("close")
    tool = ArchiveTool(directory)
    tool.verify()
    assert "invalid term buffer length" in tool.run("dump").stderr
