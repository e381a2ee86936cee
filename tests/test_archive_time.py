"""Tests of positions by time, of replays of a time range, and of replays with a rate or a speed."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import eventually

import aeron
from aeron._times import epoch_us
from ports import free_port

CHANNEL = "aeron:ipc?term-length=64k"
SEGMENT = 64 * 1024
SETTINGS: dict[str, Any] = {"segment_file_length": SEGMENT, "low_storage_space_threshold": 0}
MESSAGE = bytes(range(1, 225)) * 4 + bytes(96)
"""Message with a frame of 1024 bytes. A segment has 64 such frames."""
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def server(driver: aeron.MediaDriver, directory: Path) -> Iterator[aeron.Archive]:
    with aeron.Archive(directory, driver=driver, **SETTINGS) as server:
        yield server


@pytest.fixture
def archive(server: aeron.Archive, client: aeron.Aeron) -> Iterator[aeron.AeronArchive]:
    with aeron.connect_archive(client) as archive:
        yield archive


class Stream:
    """A publication that the archive records."""

    def __init__(self, archive: aeron.AeronArchive, stream_id: int) -> None:
        self.archive = archive
        self.publication = archive.add_recorded_exclusive_publication(CHANNEL, stream_id)
        self.recording_id = self.record(1).recording_id

    def record(self, count: int, pause_s: float = 0) -> aeron.Recording:
        for _ in range(count):
            time.sleep(pause_s)
            position = self.publication.publish(MESSAGE, timeout=5)
        return self.archive.wait_recorded(self.publication, position, timeout=5)

    def stop(self) -> int:
        self.archive.stop_recording(self.publication)
        self.publication.close()
        eventually(lambda: self.archive.get_stop_position(self.recording_id) is not None)
        return self.recording_id


class Past:
    """A stopped recording of 151 messages in three segments, with a pause after the first 81 messages."""

    def __init__(self, archive: aeron.AeronArchive, stream_id: int) -> None:
        stream = Stream(archive, stream_id)
        stream.record(80)
        time.sleep(0.01)
        self.pause = datetime.now(UTC)
        time.sleep(0.01)
        stream.record(70)
        self.recording_id = stream.stop()
        self.middle, self.end = 81 * 1024, 151 * 1024


@pytest.fixture
def past(archive: aeron.AeronArchive, stream_id: int) -> Past:
    return Past(archive, stream_id)


def positions(subscription: aeron.Subscription) -> list[int]:
    with subscription:
        return [position for batch in subscription.batches() for position in batch.positions]


# ---- positions by time -----------------------------------------------------------------------------------------------


def test_a_position_is_found_by_the_time_at_which_messages_arrived(archive: aeron.AeronArchive, past: Past) -> None:
    since = archive.find_position(past.recording_id, since=past.pause)
    until = archive.find_position(past.recording_id, until=past.pause)
    assert since.position == until.position == past.middle
    assert not since.is_approximate
    assert since.timestamp_us is not None
    assert 0 <= since.timestamp_us - epoch_us(past.pause, "pause") < 10_000_000
    assert archive.find_position(past.recording_id, since=LONG_AGO).position == 0
    assert archive.find_position(past.recording_id, until=LONG_AGO).position == 0
    later = datetime.now(UTC) + timedelta(hours=1)
    expected = aeron.FoundPosition(past.recording_id, past.end, None, False)
    assert archive.find_position(past.recording_id, since=later) == expected
    assert archive.find_position(past.recording_id, until=later) == expected


def test_find_position_has_an_asynchronous_form(archive: aeron.AeronArchive, past: Past) -> None:
    async def find() -> aeron.FoundPosition:
        return await archive.async_find_position(past.recording_id, since=past.pause)

    assert asyncio.run(find()).position == past.middle


def test_a_time_is_a_datetime_with_a_time_zone_or_a_numpy_datetime64() -> None:
    noon = datetime(2026, 11, 26, 12, tzinfo=UTC)
    expected = 1_795_694_400_000_000
    assert epoch_us(noon, "since") == expected
    assert epoch_us(datetime(2026, 11, 26, 14, tzinfo=timezone(timedelta(hours=2))), "since") == expected
    assert epoch_us(np.datetime64("2026-11-26T12:00:00"), "since") == expected
    # The time is rounded up, because messages of the same microsecond may have arrived before the given nanosecond.
    assert epoch_us(np.datetime64("2026-11-26T12:00:00.000000001"), "since") == expected + 1
    assert epoch_us(datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), "since") == -1_000_000


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (datetime(2026, 11, 26), aeron.InvalidArgumentError, "has no time zone"),
        (np.datetime64("NaT"), aeron.InvalidArgumentError, "is not a time"),
        (1_795_694_400, aeron.ArgumentTypeError, "since=1795694400 is not a time: pass a datetime with a time zone"),
        ("now", aeron.ArgumentTypeError, "since='now' is not a time"),
    ],
)
def test_values_that_are_no_time_are_refused(
    archive: aeron.AeronArchive, value: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        archive.find_position(0, since=value)


def test_find_position_requires_either_since_or_until(archive: aeron.AeronArchive) -> None:
    for times in ({}, {"since": LONG_AGO, "until": LONG_AGO}):
        with pytest.raises(aeron.InvalidArgumentError, match="either since or until"):
            archive.find_position(0, **times)
    with pytest.raises(aeron.UnknownRecordingError):
        archive.find_position(99, since=LONG_AGO)


def test_recordings_are_listed_by_the_time_in_which_they_were_active(
    archive: aeron.AeronArchive, past: Past, stream_id: int
) -> None:
    time.sleep(0.01)
    between = datetime.now(UTC)
    time.sleep(0.01)
    active = Stream(archive, stream_id + 1).recording_id

    def listed(**times: datetime) -> list[int]:
        return [recording.recording_id for recording in archive.list_recordings(**times)]

    assert listed() == [past.recording_id, active]
    assert listed(since=between) == [active]
    assert listed(until=between) == [past.recording_id]
    assert listed(since=past.pause) == [past.recording_id, active]
    assert listed(until=LONG_AGO) == []
    assert [each.recording_id for each in archive.list_recordings(since=LONG_AGO, limit=1)] == [past.recording_id]
    assert [each.recording_id for each in archive.list_recordings(since=between, limit=1)] == [active]


# ---- replays of a time range -----------------------------------------------------------------------------------------


def test_the_messages_before_and_after_a_time_are_replayed_without_an_overlap(
    archive: aeron.AeronArchive, past: Past
) -> None:
    whole = positions(archive.replay(past.recording_id))
    before = positions(archive.replay(past.recording_id, until=past.pause))
    after = positions(archive.replay(past.recording_id, since=past.pause))
    assert len(before) == 81
    assert len(after) == 70
    assert before + after == whole
    later = datetime.now(UTC) + timedelta(hours=1)
    both = positions(archive.replay(past.recording_id, since=past.pause, until=later))
    assert both == after
    assert positions(archive.replay(past.recording_id, position=80 * 1024, until=past.pause)) == [past.middle]


def test_a_replay_from_a_time_follows_an_active_recording(archive: aeron.AeronArchive, stream_id: int) -> None:
    stream = Stream(archive, stream_id)
    stream.record(10)
    time.sleep(0.01)
    since = datetime.now(UTC)
    time.sleep(0.01)
    with archive.replay(stream.recording_id, since=since) as subscription:
        stream.record(5)
        batches = subscription.batches(timeout=5)
        assert next(batches).positions[0] == 12 * 1024


def test_a_replay_of_an_empty_time_range_raises_empty_time_range_error(archive: aeron.AeronArchive, past: Past) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    for times in ({"since": later}, {"until": LONG_AGO}, {"since": past.pause, "until": past.pause}):
        with pytest.raises(aeron.EmptyTimeRangeError, match=f"recording {past.recording_id} has no message"):
            archive.replay(past.recording_id, **times)


def test_an_invalid_position_together_with_an_end_time_is_not_an_empty_range(
    archive: aeron.AeronArchive, past: Past
) -> None:
    with pytest.raises(aeron.ArchiveError, match="position=100") as refused:
        archive.replay(past.recording_id, position=100, until=past.pause)
    assert not isinstance(refused.value, aeron.EmptyTimeRangeError)


def test_a_time_range_together_with_positions_is_refused(archive: aeron.AeronArchive) -> None:
    contradictions: list[tuple[dict[str, Any], str]] = [
        ({"since": LONG_AGO, "position": 0}, "both since and a position"),
        ({"until": LONG_AGO, "length": 1024}, "both until and a length"),
        ({"since": LONG_AGO, "until": LONG_AGO - timedelta(1)}, "since is after until"),
    ]
    for arguments, text in contradictions:
        with pytest.raises(aeron.InvalidArgumentError, match=text):
            archive.replay(0, **arguments)


def test_without_an_index_a_time_range_is_rounded_to_segments_and_causes_a_warning(
    archive: aeron.AeronArchive, past: Past, directory: Path
) -> None:
    for path in directory.glob("*.idx"):
        path.unlink()
    found = archive.find_position(past.recording_id, since=past.pause)
    assert found == aeron.FoundPosition(past.recording_id, 0, None, True)
    with pytest.warns(UserWarning, match=f"recording {past.recording_id} has no index"):
        subscription = archive.replay(past.recording_id, since=past.pause)
    assert positions(subscription)[0] == 1024
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        positions(archive.replay(past.recording_id, since=LONG_AGO))


# ---- replays with a rate or speed ------------------------------------------------------------------------------------


@pytest.mark.parametrize("channel", ["aeron:ipc", "aeron:udp?endpoint=localhost:0"])
def test_a_replay_with_a_rate_does_not_exceed_the_rate(archive: aeron.AeronArchive, past: Past, channel: str) -> None:
    begin = time.monotonic()
    received = positions(archive.replay(past.recording_id, channel, rate=300 * 1024))
    assert received[-1] == past.end
    assert len(received) == 151
    assert 0.45 < time.monotonic() - begin < 5


def test_a_replay_over_a_response_channel_does_not_exceed_its_rate(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path
) -> None:
    control, response = (f"localhost:{free_port()}" for _ in range(2))
    request_channel = f"aeron:udp?endpoint={control}"
    response_channel = f"aeron:udp?control-mode=response|control={response}"
    with (
        aeron.Archive(directory, driver=driver, control_channel=request_channel, **SETTINGS),
        aeron.connect_archive(client, control_channel=request_channel, response_channel=response_channel) as archive,
    ):
        past = Past(archive, stream_id)
        channel = f"aeron:udp?control-mode=response|control=localhost:{free_port()}"
        begin = time.monotonic()
        received = positions(archive.replay(past.recording_id, channel, rate=300 * 1024))
        assert received[-1] == past.end
        assert time.monotonic() - begin > 0.45


def test_a_replay_at_a_speed_has_the_pauses_of_the_recording(archive: aeron.AeronArchive, stream_id: int) -> None:
    stream = Stream(archive, stream_id)
    begin = time.monotonic()
    stream.record(10, pause_s=0.05)
    recorded_s = time.monotonic() - begin
    stream.stop()
    for speed, factor in ((1.0, 1.0), (4.0, 0.25)):
        begin = time.monotonic()
        assert len(positions(archive.replay(stream.recording_id, speed=speed))) == 11
        took_s = time.monotonic() - begin
        assert recorded_s * factor * 0.8 < took_s < recorded_s * factor + 3


def test_a_replay_at_a_speed_is_refused_if_the_recording_has_no_index(
    archive: aeron.AeronArchive, past: Past, directory: Path
) -> None:
    for path in directory.glob("*.idx"):
        path.unlink()
    with pytest.raises(
        aeron.ArchiveError, match="the index has no arrival times at position=0: replay without a speed"
    ):
        archive.replay(past.recording_id, speed=1)


def test_rates_and_speeds_out_of_range_are_refused(archive: aeron.AeronArchive) -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"rate": 0}, "rate=0 is not positive"),
        ({"speed": 0.0}, "speed=0 is not from 0.000001"),
        ({"speed": float("nan")}, "speed=NaN"),
        ({"speed": 1.0, "bounding_limit_counter_id": 0}, "cannot be bounded by a counter"),
    ]
    for arguments, text in refused:
        with pytest.raises(aeron.InvalidArgumentError, match=text):
            archive.replay(0, **arguments)
        with pytest.raises(aeron.InvalidArgumentError, match=text):
            archive.start_replay(0, "aeron:ipc", 100, **arguments)


def test_start_replay_accepts_a_rate(archive: aeron.AeronArchive, past: Past, client: aeron.Aeron) -> None:
    with client.add_subscription("aeron:ipc", 4711) as subscription:
        id = archive.start_replay(past.recording_id, "aeron:ipc", 4711, rate=100 * 1024)
        received: list[bytes] = []
        eventually(lambda: subscription.poll(lambda payload, _: received.append(bytes(payload)), 10) > 0)
        archive.stop_replay(id)
        assert 0 < len(received) < 151
