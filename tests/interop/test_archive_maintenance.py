"""Tests of operations that extend, shorten and join recordings. The real archive and ours return the same results to
the real client.

Each test runs on the real archive, to check the test itself, and on ours.
"""

import re

import pytest

from interop.archive_peers import (
    ACTIVE_RECORDING,
    ACTIVE_SUBSCRIPTION,
    GENERIC,
    INVALID_POSITION,
    UNKNOWN_RECORDING,
)
from interop.kinds import each_archive
from interop.peers import PeerError

_TERM = 64 * 1024
_SEGMENT = 2 * _TERM
_MTU = 1408
_TERM_ID = 7
# Length of the frame of a message of 1000 bytes.
_FRAME = 1056
_UNKNOWN = (UNKNOWN_RECORDING, "unknown recording id: 77")


class Recorder:
    """Records messages of 1000 bytes through the real client."""

    def __init__(self, archive, client, stream):
        self.archive, self.client, self.stream = archive, client, stream

    def channel(self, position=0, *, term_id=_TERM_ID, term=_TERM, mtu=_MTU):
        """Returns the channel of a publication that begins at this position."""
        at = f"init-term-id={term_id}|term-id={term_id + position // term}|term-offset={position % term}"
        return f"aeron:ipc?term-length={term}|mtu={mtu}|{at}"

    def record(self, count, start=0, *, stream=None, **parameters):
        """Records messages, and stops the recording. Returns the recording id and the stop position."""
        recording, position, stop = self.begin(count, start, stream=stream, **parameters)
        stop()
        return recording, position

    def begin(self, count, start=0, *, stream=None, extended=None, **parameters):
        """Starts a recording of messages. Returns the recording id, the position after the messages, and a function
        that stops the recording."""
        client, stream = self.client, stream or self.stream
        channel = self.channel(start, **parameters)
        if extended is None:
            subscription = client.start_recording(channel, stream)
        else:
            subscription = client.extend_recording(extended, channel, stream)
        publication = client.peer.add_publication(channel, stream, exclusive=True)
        recording = client.await_signal("START" if extended is None else "EXTEND", position=start)["recording"]
        publication.await_connected()
        publication.start_publish(count, (1000,))
        assert client.peer.answer()["sent"] == count
        position = publication.state()["position"]
        client.await_recorded(recording, position)

        def stop():
            client.stop_recording(subscription)
            client.await_signal("STOP", recording=recording, position=position)
            publication.close()

        return recording, position, stop

    def positions(self, recording):
        return self.client.start_position(recording), self.client.stop_position(recording)

    def bases(self, recording):
        """Returns the start positions of the segment files of a recording."""
        return sorted(int(path.stem.split("-")[1]) for path in self.archive.directory.glob(f"{recording}-*.rec"))

    def file(self, recording, base):
        return self.archive.directory / f"{recording}-{base}.rec"

    def deleted(self, recording, count, files):
        """Waits for the signal DELETE. Then checks the count that an operation returned, and the start positions of the
        remaining files."""
        self.client.await_signal("DELETE", recording=recording)
        assert (count, self.bases(recording)) == files


@pytest.fixture
def recorder(drivers, start_archive, archive_client, stream):
    """`recorder(kinds)` returns a recorder for an archive on a driver of these kinds."""

    def start(kinds):
        archive_kind, driver_kind = kinds
        driver = drivers(driver_kind)
        archive = start_archive(archive_kind, driver)
        return Recorder(archive, archive_client(driver, archive), stream)

    return start


def _refusal(call, *arguments):
    """Makes a call that the archive must refuse. Returns code and text of the error, without paths."""
    with pytest.raises(PeerError) as refused:
        call(*arguments)
    text = refused.value.text.split("error: ", 1)[1]
    return refused.value.code, re.sub(r"\S*/", "", text)


def _refused_with_path(call, *arguments, text):
    """Makes a call that the archive must refuse. The error ends with the path of a file."""
    with pytest.raises(PeerError) as refused:
        call(*arguments)
    assert refused.value.code == GENERIC
    assert refused.value.text.endswith(text)


def _refused(call, *arguments, code=GENERIC, text):
    """Makes a call that the archive must refuse. Checks the code of the error and the start of the text."""
    found = _refusal(call, *arguments)
    assert found[0] == code
    assert found[1].startswith(text), found[1]


@each_archive
def test_a_recording_is_extended_by_a_stream_that_continues_it(recorder, kinds, stream):
    """07-41, 07-57, 07-58, 07-59"""
    it = recorder(kinds)
    client, channel = it.client, it.channel
    recording, stop = it.record(50)
    active, _, end_active = it.begin(50, stream=stream + 10_000)
    assert _refusal(client.extend_recording, 77, channel(stop), stream) == _UNKNOWN
    _refused(
        client.extend_recording,
        *(recording, channel(stop), stream + 1),
        code=UNKNOWN_RECORDING,
        text=f"cannot extend recording {recording} with streamId={stream + 1} for existing streamId={stream}",
    )
    _refused(
        client.extend_recording,
        *(active, channel(stop), stream + 10_000),
        code=ACTIVE_RECORDING,
        text=f"cannot extend active recording {active}",
    )
    subscription = client.extend_recording(recording, channel(stop), stream)
    _refused(
        client.extend_recording,
        *(recording, channel(stop), stream),
        code=ACTIVE_SUBSCRIPTION,
        text=f"recording exists for streamId={stream} channel=",
    )
    client.stop_recording(subscription)
    end_active()

    faults = {
        f"image.joinPosition={stop + 32} != rec.stopPosition={stop}": channel(stop + 32),
        f"image.initialTermId={_TERM_ID + 1} != rec.initialTermId={_TERM_ID}": channel(stop, term_id=_TERM_ID + 1),
        f"image.termBufferLength={2 * _TERM} != rec.termBufferLength={_TERM}": channel(stop, term=2 * _TERM),
        f"image.mtuLength=2048 != rec.mtuLength={_MTU}": channel(stop, mtu=2048),
    }
    for fault, other in faults.items():
        subscription = client.extend_recording(recording, other, stream)
        publication = client.peer.add_publication(other, stream, exclusive=True)
        publication.await_connected()
        text = None
        while text is None:
            text = client.poll_error()
        assert text == f"cannot extend recording {recording} {fault}"
        assert client.stop_position(recording) == stop
        client.stop_recording(subscription)
        publication.close()

    _, extended, end = it.begin(300, stop, extended=recording)
    end()
    assert it.positions(recording) == (0, extended)
    assert it.bases(recording) == [0, _SEGMENT, 2 * _SEGMENT]


@each_archive
def test_a_recording_is_truncated_within_a_segment_between_segments_and_at_its_ends(recorder, kinds):
    """07-108, 07-112"""
    it = recorder(kinds)
    client, start = it.client, 1024
    recording, stop = it.record(400, start)
    assert it.bases(recording) == [0, _SEGMENT, 2 * _SEGMENT, 3 * _SEGMENT]
    active, _, end_active = it.begin(10)
    assert _refusal(client.truncate, 77, 0) == _UNKNOWN
    assert _refusal(client.truncate, active, 0) == (ACTIVE_RECORDING, "cannot truncate active recording")
    end_active()
    for position in (start - 32, stop + 32, start + 1, -32, -1):
        assert _refusal(client.truncate, recording, position) == (
            INVALID_POSITION,
            f"invalid position {position}: start={start} stop={stop} alignment=32",
        )
    it.deleted(recording, client.truncate(recording, stop), (0, [0, _SEGMENT, 2 * _SEGMENT, 3 * _SEGMENT]))
    frame = _SEGMENT + 3 * _FRAME
    it.deleted(recording, client.truncate(recording, frame), (2, [0, _SEGMENT]))
    assert it.positions(recording) == (start, frame)
    kept = it.file(recording, _SEGMENT).read_bytes()
    assert (len(kept), any(kept[3 * _FRAME :])) == (_SEGMENT, False)
    it.deleted(recording, client.truncate(recording, _SEGMENT), (1, [0]))
    # The count includes the file that would begin at the stop position, although it does not exist.
    it.deleted(recording, client.truncate(recording, _SEGMENT), (1, [0]))
    it.deleted(recording, client.truncate(recording, start), (1, []))
    assert it.positions(recording) == (start, start)


@each_archive
def test_a_truncation_to_the_middle_of_a_frame_is_refused(recorder, kinds):
    """07-108: the real archive changes the catalog before it refuses. Our archive changes nothing."""
    it = recorder(kinds)
    recording, stop = it.record(10)
    assert _refusal(it.client.truncate, recording, 32) == (GENERIC, "32 position not aligned to a data header")
    assert it.client.stop_position(recording) == (32 if kinds[0] == "java" else stop)


@each_archive
def test_a_recording_is_purged_unless_it_is_active_or_replayed(recorder, kinds):
    """07-66, 07-109, 07-112"""
    it = recorder(kinds)
    client = it.client
    recording, _ = it.record(400)
    active, _, end_active = it.begin(10)
    assert _refusal(client.purge, 77) == _UNKNOWN
    assert _refusal(client.purge, active) == (ACTIVE_RECORDING, f"cannot purge active recording {active}")
    end_active()
    replay = client.replay(recording, "aeron:ipc", it.stream + 10_000)
    replay.receive(1, (1000,))
    assert _refusal(client.purge, recording) == (
        ACTIVE_RECORDING,
        f"cannot purge recording with active replay {recording}",
    )
    client.stop_all_replays(recording)
    replay.await_images(0)
    it.file(recording, 99 * _SEGMENT).touch()
    it.deleted(recording, client.purge(recording), (5, []))
    assert client.list_recording(recording) is None
    assert _refusal(client.purge, recording) == (UNKNOWN_RECORDING, f"unknown recording id: {recording}")


@each_archive
def test_segments_are_detached_deleted_purged_and_attached(recorder, kinds):
    """07-110, 07-112: the first segment begins with the term of the start position."""
    it = recorder(kinds)
    client = it.client
    recording, stop = it.record(600, _TERM + 1024)
    base = [_TERM + index * _SEGMENT for index in range(6)]
    assert it.bases(recording) == base[:5]
    assert _refusal(client.detach_segments, 77, base[1]) == _UNKNOWN
    for operation in (client.detach_segments, client.purge_segments):
        for position in (-1, 0, _TERM + 1024, base[1] + 32):
            text = f"invalid segment start: newStartPosition={position}"
            assert _refusal(operation, recording, position) == (GENERIC, text)
        text = f"invalid detach: newStartPosition={base[0]} lowerBound={base[1]}"
        assert _refusal(operation, recording, base[0]) == (GENERIC, text)
        text = f"invalid detach: in use, newStartPosition={base[5]} upperBound={base[4]}"
        assert _refusal(operation, recording, base[5]) == (GENERIC, text)

    assert client.attach_segments(recording) == 0
    client.detach_segments(recording, base[2])
    assert it.positions(recording) == (base[2], stop)
    assert it.bases(recording) == base[:5]
    assert client.attach_segments(recording) == 2
    assert it.positions(recording) == (_TERM + 1024, stop)

    client.detach_segments(recording, base[2])
    it.deleted(recording, client.delete_detached_segments(recording), (2, base[2:5]))
    it.deleted(recording, client.delete_detached_segments(recording), (0, base[2:5]))
    it.file(recording, base[3]).unlink()
    it.deleted(recording, client.purge_segments(recording, base[4]), (2, base[4:5]))
    assert it.positions(recording) == (base[4], stop)


@each_archive
def test_segments_are_not_detached_while_a_replay_reads_them(recorder, kinds):
    """07-110"""
    it = recorder(kinds)
    client = it.client
    recording, _ = it.record(400)
    replay = client.replay(recording, "aeron:ipc", it.stream + 10_000, position=_SEGMENT)
    replay.receive(1, (1000,))
    _refused(client.detach_segments, recording, 2 * _SEGMENT, text="invalid detach: replay in progress - ")
    _refused(client.purge_segments, recording, 2 * _SEGMENT, text="invalid detach: replay in progress - ")
    client.detach_segments(recording, _SEGMENT)
    assert client.start_position(recording) == _SEGMENT


@each_archive
def test_segments_are_purged_while_a_replay_reads_later_segments(recorder, kinds):
    """07-110, 07-112: a long replay does not prevent the deletion of files before its position."""
    it = recorder(kinds)
    client = it.client
    recording, _ = it.record(400)
    replay = client.replay(recording, "aeron:ipc", it.stream + 10_000, position=2 * _SEGMENT)
    replay.receive(1, (1000,))
    bases = [_SEGMENT, 2 * _SEGMENT, 3 * _SEGMENT]
    it.deleted(recording, client.purge_segments(recording, _SEGMENT), (1, bases))
    it.deleted(recording, client.purge_segments(recording, 2 * _SEGMENT), (1, bases[1:]))


@each_archive
def test_segments_of_an_active_recording_can_be_purged(recorder, kinds):
    """07-110"""
    it = recorder(kinds)
    client = it.client
    recording, _, end = it.begin(300)
    text = f"invalid detach: in use, newStartPosition={3 * _SEGMENT} upperBound={2 * _SEGMENT}"
    assert _refusal(client.detach_segments, recording, 3 * _SEGMENT) == (GENERIC, text)
    client.detach_segments(recording, _SEGMENT)
    it.deleted(recording, client.purge_segments(recording, 2 * _SEGMENT), (1, [0, 2 * _SEGMENT]))
    assert client.start_position(recording) == 2 * _SEGMENT
    end()


@each_archive
def test_a_segment_file_that_does_not_match_the_recording_is_not_attached(recorder, kinds):
    """07-110"""
    it = recorder(kinds)
    client = it.client
    recording, _ = it.record(300)
    client.detach_segments(recording, 2 * _SEGMENT)
    assert _refusal(client.attach_segments, 77) == _UNKNOWN
    file = it.file(recording, _SEGMENT)
    good = file.read_bytes()

    def with_field(offset, value):
        return good[:offset] + value.to_bytes(4, "little") + good[offset + 4 :]

    bad = {
        f"fileLength={_SEGMENT - 1} not equal to segmentLength={_SEGMENT}": good[:-1],
        f"stream id does not match: actual=99 expected={it.stream}": with_field(16, 99),
        f"term id does not match: actual=99 expected={_TERM_ID + 2}": with_field(20, 99),
        f"fragment not found in first term of segment {recording}-{_SEGMENT}.rec": bytes(_TERM) + good[_TERM:],
    }
    for text, content in bad.items():
        file.write_bytes(content)
        _refused(client.attach_segments, recording, text=text)
        assert client.start_position(recording) == 2 * _SEGMENT
    file.write_bytes(bytes(3 * _FRAME) + good[3 * _FRAME :])
    assert client.attach_segments(recording) == 1
    assert client.start_position(recording) == _SEGMENT + 3 * _FRAME


@pytest.fixture
def contiguous(recorder):
    """`contiguous(it, join, start, **parameters)` makes two recordings. The first ends at `join`. The second starts at
    `start`, by default at `join`."""

    def make(it, join=2 * _SEGMENT, start=None, **parameters):
        earlier, _ = it.record(300)
        it.client.truncate(earlier, join)
        it.client.await_signal("DELETE", recording=earlier)
        later, stop = it.record(100, join if start is None else start, **parameters)
        return earlier, later, stop

    return make


@each_archive
def test_segments_migrate_to_a_later_and_to_an_earlier_recording(recorder, contiguous, kinds):
    """07-111, 07-112"""
    it = recorder(kinds)
    client, join = it.client, 2 * _SEGMENT
    earlier, later, stop = contiguous(it)
    it.deleted(earlier, client.migrate_segments(earlier, later), (2, []))
    assert (it.positions(earlier), it.positions(later)) == ((0, 0), (0, stop))
    assert it.bases(later) == [0, _SEGMENT, join]

    earlier, later, stop = contiguous(it)
    it.deleted(later, client.migrate_segments(later, earlier), (1, []))
    assert (it.positions(earlier), it.positions(later)) == ((0, stop), (join, join))
    assert it.bases(earlier) == [0, _SEGMENT, join]

    earlier, later, _ = contiguous(it)
    it.file(earlier, join).write_bytes(bytes(_SEGMENT))
    it.deleted(earlier, client.migrate_segments(earlier, later), (2, []))


@each_archive
def test_segments_do_not_migrate_between_recordings_that_do_not_match(recorder, contiguous, kinds, stream):
    """07-111"""
    it = recorder(kinds)
    client = it.client
    others = {
        f"srcTermBufferLength={_TERM} dstTermBufferLength={2 * _TERM}": {"term": 2 * _TERM},
        f"srcSegmentFileLength={_SEGMENT} dstSegmentFileLength={2 * _SEGMENT}": {"term": 4 * _TERM},
        f"srcMtuLength={_MTU} dstMtuLength=2048": {"mtu": 2048},
        f"srcInitialTermId={_TERM_ID} dstInitialTermId={_TERM_ID + 1}": {"term_id": _TERM_ID + 1},
        f"srcStreamId={stream} dstStreamId={stream + 1}": {"stream": stream + 1},
        "src and dst are not contiguous srcStartPosition=0 srcStopPosition=262144 dstStartPosition=393216 ": {
            "start": 3 * _SEGMENT
        },
    }
    for text, parameters in others.items():
        earlier, later, _ = contiguous(it, **parameters)
        _refused(client.migrate_segments, earlier, later, text=f"invalid migrate: {text}")
        assert it.positions(earlier) == (0, 2 * _SEGMENT)
    assert _refusal(client.migrate_segments, 77, later) == _UNKNOWN
    assert _refusal(client.migrate_segments, later, 77) == _UNKNOWN

    earlier, later, _ = contiguous(it, _SEGMENT + _TERM)
    boundary = "invalid migrate: join position is not on segment boundary of"
    _refused(client.migrate_segments, earlier, later, text=f"{boundary} src recording seamPosition=196608 ")
    _refused(client.migrate_segments, later, earlier, text=f"{boundary} dst recording seamPosition=196608 ")


@each_archive
def test_a_migration_requires_all_source_files_no_destination_files_and_a_stopped_source(recorder, contiguous, kinds):
    """07-111"""
    it = recorder(kinds)
    client, join = it.client, 2 * _SEGMENT
    earlier, later, _ = contiguous(it)
    it.file(later, 0).touch()
    _refused_with_path(
        client.migrate_segments, earlier, later, text=f"preexisting dst segment file {it.file(later, 0)}"
    )
    it.file(later, 0).unlink()
    it.file(earlier, 0).unlink()
    _refused_with_path(client.migrate_segments, earlier, later, text=f"missing src segment file {it.file(earlier, 0)}")
    assert it.positions(earlier) == (0, join)

    earlier, later, _ = contiguous(it)
    it.file(earlier, join).write_bytes(bytes(_SEGMENT))
    _refused_with_path(
        client.migrate_segments, later, earlier, text=f"preexisting dst segment file {it.file(earlier, join)}"
    )

    active, _, end = it.begin(100, join)
    assert _refusal(client.migrate_segments, active, earlier) == (GENERIC, f"recording {active} is still active")
    it.deleted(earlier, client.migrate_segments(earlier, active), (2, []))
    assert client.start_position(active) == 0
    end()
