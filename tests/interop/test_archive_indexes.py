"""Tests of the index files beside segments. The real archive and the real tool ignore index files.

After the real archive has used a directory, our archive continues there.
"""

import time
from datetime import UTC, datetime, timedelta

import pytest

import aeron
from interop.archive_tool import ArchiveTool

_STREAM = 4301
_CHANNEL = "aeron:ipc?term-length=64k|mtu=8k"
_SEGMENT = 128 * 1024


def test_the_real_archive_ignores_indexes_and_our_archive_continues_them_afterwards(drivers, start_archive):
    driver = drivers("ours")
    archive = start_archive("ours", driver)
    messages = [bytes([number]) * 4000 for number in range(100)]
    with aeron.connect(driver.directory) as client:
        with _connected(client, archive) as connected:
            stop = _record(client, connected, messages)
        assert archive.stop() == 15
        segments = _bases(archive, "rec")
        assert len(segments) > 3
        assert _bases(archive, "idx") == segments

        archive.kind = "java"
        archive.start()
        with _connected(client, archive) as connected:
            (recording,) = connected.list_recordings()
            assert recording.stop_position == stop
            assert _replayed(connected) == messages
            assert connected.purge_segments(0, _SEGMENT) == 1
            more = [bytes(6000), b"more"]
            stop = _extend(client, connected, recording, more)
        archive.stop()
        ArchiveTool(archive.directory).show()
        ArchiveTool(archive.directory).verify()
        assert _bases(archive, "idx") == segments, "the real archive deleted or added an index"

        archive.kind = "ours"
        archive.start()
        assert _bases(archive, "idx") == segments[1:], (
            "our archive kept the index of a segment that the real archive has deleted, or deleted another index"
        )
        with _connected(client, archive) as connected:
            (recording,) = connected.list_recordings()
            assert (recording.start_position, recording.stop_position) == (_SEGMENT, stop)
            _extend(client, connected, recording, [b"last"])
            after = _replayed(connected)
            assert after[-3:] == [*more, b"last"]
            assert after[:-3] == messages[-len(after) + 3 :]
        assert archive.stop() == 15
    assert _bases(archive, "idx") == _bases(archive, "rec")
    ArchiveTool(archive.directory).verify()


def test_an_index_that_ends_before_a_torn_last_frame_does_not_decide_about_that_frame(drivers, start_archive):
    """The last frame has an empty page. The real archive recorded it and wrote no index for it."""
    driver = drivers("ours")
    archive = start_archive("ours", driver)
    with aeron.connect(driver.directory) as client:
        with _connected(client, archive) as connected:
            stop = _record(client, connected, [b"first"])
        assert archive.stop() == 15
        archive.kind = "java"
        archive.start()
        with _connected(client, archive) as connected:
            (recording,) = connected.list_recordings()
            publication = _begin_extension(client, connected, recording)
            position = publication.publish(bytes(8000), timeout=10)
            connected.wait_recorded(publication, position, timeout=10)
            archive.kill()
            publication.close()
        # The mark file of a killed process counts as active for ten seconds, so the test deletes the file.
        (archive.directory / "archive-mark.dat").unlink()
        archive.kind = "ours"
        with pytest.raises(AssertionError, match="straddling page boundary"):
            archive.start()
        archive.settings["aeron.archive.on.torn.fragment"] = "truncate"
        archive.start()
        with _connected(client, archive) as connected:
            (recording,) = connected.list_recordings()
            assert recording.stop_position == stop


def test_a_position_in_a_recording_of_the_real_archive_is_found_by_the_times_of_segment_files(drivers, start_archive):
    driver = drivers("ours")
    archive = start_archive("java", driver)
    with aeron.connect(driver.directory) as client:
        with _connected(client, archive) as connected:
            first = [bytes([number]) * 4000 for number in range(100)]
            second = [bytes([100 + number]) * 4000 for number in range(100)]
            connected.start_recording(_CHANNEL, _STREAM)
            with client.add_exclusive_publication(_CHANNEL, _STREAM) as publication:
                publication.wait_connected(timeout=10)
                middle = _sent(connected, publication, first)
                # Times of files may be coarse, so the archive treats times up to two seconds apart as the same time.
                time.sleep(3)
                since = datetime.now(UTC)
                time.sleep(3)
                end = _sent(connected, publication, second)
                connected.stop_recording(_CHANNEL, _STREAM)
        archive.stop()

        archive.kind = "ours"
        archive.start()
        with _connected(client, archive) as connected:
            found = connected.find_position(0, since=since)
            # The second part begins in this segment, so the segment was last written after `since`.
            assert found == aeron.FoundPosition(0, middle // _SEGMENT * _SEGMENT, None, True)
            with pytest.warns(UserWarning, match="recording 0 has no index"):
                replay = connected.replay(0, since=since)
            with replay:
                received = [message for batch in replay.batches(timeout=10) for message in batch.to_list()]
            assert received[-100:] == second
            assert received[0] in first
            before = connected.find_position(0, until=since)
            assert middle <= before.position <= middle // _SEGMENT * _SEGMENT + _SEGMENT
            later = datetime.now(UTC) + timedelta(hours=1)
            assert connected.find_position(0, since=later) == aeron.FoundPosition(0, end, None, False)
            with pytest.raises(aeron.ArchiveError, match="the index has no arrival times at position=0"):
                connected.replay(0, speed=1)
        archive.stop()


def _sent(connected, publication, messages):
    for message in messages:
        position = publication.publish(message, timeout=10)
    connected.wait_recorded(publication, position, timeout=10)
    return position


def _connected(client, archive):
    control, control_stream, _ = archive.control("udp")
    return aeron.connect_archive(client, control_channel=control, control_stream_id=control_stream)


def _record(client, connected, messages):
    """Records messages and stops. Returns the stop position."""
    connected.start_recording(_CHANNEL, _STREAM)
    with client.add_exclusive_publication(_CHANNEL, _STREAM) as publication:
        return _publish(connected, publication, messages)


def _extend(client, connected, recording, messages):
    with _begin_extension(client, connected, recording) as publication:
        return _publish(connected, publication, messages)


def _begin_extension(client, connected, recording):
    position = recording.stop_position
    uri = aeron.ChannelUriBuilder("ipc")
    uri.initial_position(position, recording.initial_term_id, recording.term_buffer_length)
    publication = client.add_exclusive_publication(f"{uri}|mtu=8k", _STREAM)
    connected.extend_recording(recording.recording_id, _CHANNEL, _STREAM)
    return publication


def _publish(connected, publication, messages):
    publication.wait_connected(timeout=10)
    for message in messages:
        position = publication.publish(message, timeout=10)
    connected.wait_recorded(publication, position, timeout=10)
    connected.stop_recording(_CHANNEL, _STREAM)
    return position


def _replayed(connected):
    with connected.replay(0, length=aeron.REPLAY_ALL_AND_STOP) as replay:
        return [message for batch in replay.batches(timeout=10) for message in batch.to_list()]


def _bases(archive, ending):
    """Returns the base positions of the segments that have a file with this ending."""
    names = archive.directory.glob(f"{'index-' if ending == 'idx' else ''}0-*.{ending}")
    return sorted(int(path.stem.rpartition("-")[2]) for path in names)
