"""Kills archives at random times. After the restart, an archive resumes its recordings without a gap or with a known
gap.

`make soak` sets the variable `SOAK`, which raises the number of kills to 200 of each kind.
"""

import itertools
import os
import random
import struct
import threading
import time
from contextlib import contextmanager

import pytest

import aeron
from interop.archive_tool import ArchiveTool
from interop.waiting import eventually
from ports import free_port

_KILLS = 200 if os.environ.get("SOAK") else 20
_TIME_LIMIT_S = 300 if _KILLS == 20 else 3600
_RESUME = {"aeron.archive.resume": "true"}
# After this time, the driver of these tests has detected that the archive was killed.
_LONG_PAUSE_S = 2.5
_DRIVER_SETTINGS = {"AERON_CLIENT_LIVENESS_TIMEOUT": "1s", "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "1500ms"}
_PARAMETERS = "term-length=64k|mtu=1408"


class Offered:
    """The messages of a publication, with their positions. A message begins with its number. Most have several
    fragments."""

    def __init__(self, publication):
        self._publication = publication
        self._random = random.Random(17)
        self.messages = []
        self._ends = []

    def offer_for(self, duration_s):
        """Offers messages as fast as the publication accepts them."""
        end = time.monotonic() + duration_s
        message = self._next()
        while time.monotonic() < end:
            if position := self._publication.offer(message):
                self.messages.append(message)
                self._ends.append(position)
                message = self._next()

    def between(self, start, stop):
        """Returns the messages that are completely between two positions."""
        return [
            message
            for message, end in zip(self.messages, self._ends, strict=True)
            if start <= end - self._framed_length(message) and end <= stop
        ]

    def _next(self):
        length = self._random.choice([0, 100, 1376, 3000, self._random.randrange(8000)])
        return struct.pack("<Q", len(self.messages)) + self._random.randbytes(length)

    def _framed_length(self, message):
        whole, rest = divmod(len(message), self._publication.max_payload_length)
        return whole * 1408 + (-(-(rest + 32) // 32) * 32 if rest else 0)


@contextmanager
def _connected(driver, archive):
    control, control_stream, response = archive.control("ipc")
    with (
        aeron.connect(driver.directory, error_handler=lambda _: None) as client,
        aeron.connect_archive(
            client, control_channel=control, control_stream_id=control_stream, response_channel=response
        ) as connected,
    ):
        yield connected


def _offer_over_kills(driver, archive, publication, stream, channel, *, pause_s=0):
    """Offers messages while the archive is killed and started again. After a quarter of the kills, the archive stays
    down for `pause_s`.

    Returns the offered messages.
    """
    generator = random.Random(1)
    offered = Offered(publication)
    with _connected(driver, archive) as client:
        client.start_recording(channel, int(stream))
    for number in range(_KILLS):
        publication.wait_connected(timeout=10)
        offered.offer_for(generator.uniform(0, 0.15))
        archive.kill()
        offered.offer_for(pause_s if number % 4 == 0 else generator.uniform(0, 0.1))
        archive.start()
    publication.wait_connected(timeout=10)
    offered.offer_for(0.05)
    return offered


def _stopped(client, channel, stream, publication):
    """Stops the recording when it has all messages. Returns the recordings of the stream, and the links by recording
    id."""

    def is_recorded():
        last = client.list_recordings(stream_id=int(stream))[-1].recording_id
        return client.get_max_recorded_position(last) == publication.position

    eventually(is_recorded, timeout_s=20)
    client.stop_recording(channel, int(stream))
    eventually(lambda: all(not one.is_active for one in client.list_recordings(stream_id=int(stream))))
    links = {one.recording_id: one for one in client.list_recording_info()}
    return client.list_recordings(stream_id=int(stream)), links


def _replayed(client, recording):
    if recording.start_position == recording.stop_position:
        return []
    with client.replay(recording.recording_id, length=aeron.REPLAY_ALL_AND_STOP) as replay:
        return [message for batch in replay.batches(timeout=20) for message in batch.to_list()]


@pytest.mark.timeout(_TIME_LIMIT_S)
@pytest.mark.parametrize("settings", [{}, {"aeron.archive.record.checksum": "org.agrona.checksum.Crc32"}])
def test_a_stream_that_only_the_archive_reads_has_one_recording_with_all_messages(
    start_driver, start_archive, stream, settings
):
    driver = start_driver("ours")
    archive = start_archive("ours", driver, {**_RESUME, **settings})
    with aeron.connect(driver.directory) as publisher:
        publication = publisher.add_exclusive_publication(f"aeron:ipc?{_PARAMETERS}", int(stream))
        offered = _offer_over_kills(driver, archive, publication, stream, "aeron:ipc")
        with _connected(driver, archive) as client:
            [recording], links = _stopped(client, "aeron:ipc", stream, publication)
            assert links == {}
            assert _replayed(client, recording) == offered.messages
    assert len(offered.messages) > _KILLS
    assert archive.stop() == 15
    ArchiveTool(archive.directory).verify()


@pytest.mark.timeout(_TIME_LIMIT_S)
@pytest.mark.parametrize("medium", ["ipc", "udp"])
def test_a_stream_with_another_reader_has_linked_recordings_with_all_messages_outside_the_gaps(
    start_driver, start_archive, stream, medium
):
    driver = start_driver("ours", _DRIVER_SETTINGS)
    archive = start_archive("ours", driver, {**_RESUME, "aeron.driver.timeout": 1000})
    channel = {"ipc": "aeron:ipc", "udp": f"aeron:udp?endpoint=localhost:{free_port()}"}[medium]
    separator = "?" if medium == "ipc" else "|"
    with aeron.connect(driver.directory) as publisher:
        publication = publisher.add_exclusive_publication(f"{channel}{separator}{_PARAMETERS}", int(stream))
        with _reading(driver, channel, int(stream)):
            offered = _offer_over_kills(driver, archive, publication, stream, channel, pause_s=_LONG_PAUSE_S)
        with _connected(driver, archive) as client:
            recordings, links = _stopped(client, channel, stream, publication)
            for former, recording in itertools.pairwise(recordings):
                link = links[recording.recording_id]
                assert link.predecessor_id == former.recording_id
                assert link.gap_from == former.stop_position
                assert link.gap_to == recording.start_position
                assert link.gap_from < link.gap_to
            for recording in recordings:
                expected = offered.between(recording.start_position, recording.stop_position)
                assert _replayed(client, recording) == expected
    assert len(recordings) > _KILLS // 5
    assert recordings[0].start_position == 0
    assert archive.stop() == 15
    ArchiveTool(archive.directory).verify()


@contextmanager
def _reading(driver, channel, stream):
    """Reads a stream with another client, so that the stream continues while the archive is down."""
    is_over = threading.Event()

    def read():
        with aeron.connect(driver.directory) as client, client.add_subscription(channel, stream) as subscription:
            while not is_over.is_set():
                if not len(subscription.poll_batch(100)):
                    time.sleep(0.0005)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        is_over.set()
        reader.join()
