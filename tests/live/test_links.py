"""Tests of queries on two linked recordings of one stream.

The archive missed messages while it was down, so it could not continue the first recording. It recorded the rest of the
stream in a second recording, with a link to the first one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron
from live.shared_query import SharedArchive, SharedQuery
from live.streams import numbered

CHANNEL = "aeron:ipc?term-length=64k"


class Interrupted:
    """A stream that an archive records. The archive misses the messages that are sent while it is down."""

    def __init__(self, driver: aeron.MediaDriver, directory: Path, stream_id: int) -> None:
        self.shared = SharedArchive(str(driver.dir))
        self.stream_id = stream_id
        self.sent = 0
        self._place = driver, directory
        self._client = aeron.connect(driver)
        # A second subscriber keeps the publication connected while the archive is down.
        self._other = self._client.add_subscription(CHANNEL, stream_id)
        self.publication = self._client.add_exclusive_publication(CHANNEL, stream_id)
        self._server = self._start()
        with aeron.connect_archive(self._client) as archive:
            archive.start_recording(CHANNEL, stream_id)
        self.send(100)
        self.recorded(0)

    def _start(self) -> aeron.Archive:
        driver, directory = self._place
        settings = {"segment_file_length": 64 * 1024, "low_storage_space_threshold": 0}
        return aeron.Archive(directory, driver=driver, resume=True, **settings)

    def send(self, count: int) -> None:
        for number in range(self.sent, self.sent + count):
            self.publication.publish(numbered(number), timeout=5)
            self._other.poll_batch()
        self.sent += count

    def recorded(self, recording_id: int) -> None:
        """Waits until a recording exists, and is recorded up to the position of the publication."""

        def is_recorded() -> bool:
            with aeron.connect_archive(self._client) as archive:
                if archive.list_recording(recording_id) is None:
                    return False
                return archive.get_max_recorded_position(recording_id) == self.publication.position

        eventually(is_recorded)

    def interrupt(self) -> tuple[int, int]:
        """Sends messages that the archive misses, and then one that it records. Returns start and end of the gap."""
        begin = self.publication.position
        self._server.close()
        self.send(100)
        end = self.publication.position
        # Waits until the driver has read the other subscriber's last position. The archive's next image begins there.
        eventually(lambda: not self._other.poll_batch() and self.publication.available_window == 32 * 1024)
        self._server = self._start()
        eventually(lambda: self._is_recorded(1))
        self.send(1)
        self.recorded(1)
        with aeron.connect_archive(self._client) as archive:
            [info] = archive.list_recording_info(recording_id=1)
        assert (info.predecessor_id, info.gap_from, info.gap_to) == (0, begin, end)
        return begin, end

    def _is_recorded(self, recording_id: int) -> bool:
        with aeron.connect_archive(self._client) as archive:
            return archive.list_recording(recording_id) is not None

    def close(self) -> None:
        self._server.close()
        self._client.close()


@pytest.fixture
def interrupted(driver: aeron.MediaDriver, home: Path, stream_id: int) -> Iterator[Interrupted]:
    interrupted = Interrupted(driver, home / "archive", stream_id)
    yield interrupted
    interrupted.close()


def test_a_gap_is_a_loss_of_the_query_that_reads_across_it(interrupted: Interrupted) -> None:
    """08-89"""
    strict = SharedQuery(interrupted.shared, interrupted.stream_id, starting_offsets="earliest")
    lenient = SharedQuery(
        interrupted.shared, interrupted.stream_id, starting_offsets="earliest", fail_on_data_loss=False
    )
    for query in (strict, lenient):
        query.run_batch()
        query.run_batch()
        assert query.finished[-1].num_rows == 100
    begin, end = interrupted.interrupt()
    with pytest.raises(aeron.AeronError, match=rf"from {begin} to {end} .* recording 1 continues the stream"):
        strict.run_batch()
    strict.restart()
    with pytest.raises(aeron.AeronError, match="failOnDataLoss=false counts the loss"):
        strict.run_batch()
    while lenient.run_batch() is not None:
        pass
    lost = json.loads(lenient.source.report())["lostBytes"]
    assert lost == end - begin
    lines = [line for line in lenient.source.take_lines() if "not recorded" in line]
    assert len(lines) == 1
    positions = [position for table in lenient.finished for position in table["position"].to_pylist()]
    assert positions == sorted(positions)
    assert positions[-1] == interrupted.publication.position


@pytest.mark.parametrize("ids", [None, [(0, 0)]], ids=["of the stream", "by recording id"])
def test_reads_that_begin_before_a_gap_read_across_it_and_report_it(
    interrupted: Interrupted, ids: list[tuple[int, int]] | None
) -> None:
    """08-89"""
    begin, end = interrupted.interrupt()
    shared = interrupted.shared
    stream_id = None if ids else interrupted.stream_id
    tables = [shared.read(piece) for piece in shared.plan(stream_id, recording_ids=ids)]
    values = [value for table in tables for value in table["value"].to_pylist()]
    assert values[:100] == [numbered(number) for number in range(100)]
    assert values[-1] == numbered(interrupted.sent - 1)
    expected = (
        f"recording 1 continues recording 0 of stream {interrupted.stream_id} session "
        f"{interrupted.publication.session_id}, and positions {begin} to {end} were not recorded"
    )
    assert shared.lines == [expected]
    query = SharedQuery(shared, stream_id, starting_offsets="earliest", recording_ids=ids)
    while query.run_batch() is not None:
        pass
    assert [value for table in query.finished for value in table["value"].to_pylist()] == values
    assert query.source.take_lines() == [expected]
    shared.plan(stream_id, recording_ids=ids, starting_offsets="latest")
    assert shared.lines == []
