"""Followers of recordings with segments that are only in object storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.conftest import eventually
from tests.test_archive_objects import CHANNEL, COUNT, SEGMENT, message, record, segments, settings

import aeron


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def start(driver: aeron.MediaDriver, directory: Path, tmp_path: Path) -> Callable[[], aeron.Archive]:
    """Returns a function that starts the archive. The archive deletes each local segment file after it is copied."""
    return lambda: aeron.Archive(directory, driver=driver, **settings((tmp_path / "bucket").as_uri()))


@pytest.fixture
def archive(client: aeron.Aeron, start: Callable[[], aeron.Archive]) -> Iterator[aeron.AeronArchive]:
    with start(), aeron.connect_archive(client) as archive:
        yield archive


def copied(client: aeron.Aeron, stream_id: int, directory: Path) -> int:
    """Makes a recording of which only the last segment is on the disk. Returns its id."""
    id = record(client, stream_id)
    eventually(lambda: segments(directory, id) == [4 * SEGMENT])
    return id


def read(follower: aeron.Follower, count: int) -> list[int]:
    numbers: list[int] = []
    for batch in follower.batches(timeout=10):
        numbers += [int.from_bytes(payload[:8], "little") for payload in batch.to_list()]
        if len(numbers) >= count:
            break
    return numbers


def test_earliest_is_the_start_of_the_copies(
    client: aeron.Aeron, archive: aeron.AeronArchive, stream_id: int, directory: Path
) -> None:
    id = copied(client, stream_id, directory)
    with archive.follow(id, position="earliest") as follower:
        assert read(follower, COUNT) == list(range(COUNT))
    with archive.follow(channel="aeron:ipc", stream_id=stream_id) as follower:
        assert read(follower, COUNT) == list(range(COUNT))
    with archive.follow(id, position=SEGMENT + 1024) as follower:
        assert read(follower, COUNT - 65) == list(range(65, COUNT))


def test_a_follower_reads_copies_and_then_joins_the_live_stream(
    archive: aeron.AeronArchive, stream_id: int, directory: Path
) -> None:
    publication = archive.add_recorded_exclusive_publication(CHANNEL, stream_id)
    for number in range(COUNT):
        position = publication.publish(message(number), timeout=5)
    id = archive.wait_recorded(publication, position, timeout=5).recording_id
    eventually(lambda: segments(directory, id) == [4 * SEGMENT])
    with archive.follow(id) as follower:
        assert read(follower, COUNT) == list(range(COUNT))
        eventually(lambda: follower.poll_batch() is None and follower.is_live)
        publication.publish(message(COUNT), timeout=5)
        assert read(follower, 1) == [COUNT]
    archive.stop_recording(publication)


def test_a_follower_begins_at_a_time_in_the_copies(
    client: aeron.Aeron, start: Callable[[], aeron.Archive], stream_id: int, directory: Path
) -> None:
    began = datetime.now(UTC)
    with start(), aeron.connect_archive(client) as archive:
        id = copied(client, stream_id, directory)
        with archive.follow(id, since=began) as follower:
            assert read(follower, COUNT) == list(range(COUNT))
    for manifest in directory.glob("*.manifest"):
        manifest.unlink()
    # A search waits until the copies are known.
    with start(), aeron.connect_archive(client) as archive, archive.follow(id, since=began) as follower:
        assert read(follower, COUNT) == list(range(COUNT))


def test_a_named_reader_continues_in_the_copies_after_a_restart_of_the_archive(
    client: aeron.Aeron, start: Callable[[], aeron.Archive], stream_id: int, directory: Path
) -> None:
    with start(), aeron.connect_archive(client) as archive:
        id = copied(client, stream_id, directory)
        with archive.follow(id, reader="bars", commit="explicit") as follower:
            batch = next(follower.batches(10, timeout=10))
            assert int.from_bytes(batch.to_list()[-1][:8], "little") == 9
            follower.commit()
        assert [reader.position for reader in archive.list_readers()] == [10 * 1024]
        with pytest.raises(aeron.ArchiveError, match="position 325000 of a reader is not from 0 to"):
            archive.commit_reader(id, "bars", 325_000)
    # The follower asks at once, and the archive waits until it knows the copies.
    for manifest in directory.glob("*.manifest"):
        manifest.unlink()
    with start(), aeron.connect_archive(client) as archive, archive.follow(id, reader="bars") as follower:
        assert read(follower, COUNT - 10) == list(range(10, COUNT))


def test_the_change_to_a_recording_with_copies_reports_no_lost_bytes(
    client: aeron.Aeron, archive: aeron.AeronArchive, stream_id: int, directory: Path
) -> None:
    first, second = copied(client, stream_id, directory), copied(client, stream_id, directory)
    changes: list[aeron.RecordingChange] = []
    with archive.follow(channel="aeron:ipc", stream_id=stream_id, on_change=changes.append) as follower:
        assert read(follower, 2 * COUNT) == 2 * list(range(COUNT))
    assert changes == [aeron.RecordingChange(first, COUNT * 1024, second, 0, None)]


def test_a_lost_copy_fails_the_follower_with_the_reason(
    client: aeron.Aeron, archive: aeron.AeronArchive, stream_id: int, directory: Path, tmp_path: Path
) -> None:
    id = copied(client, stream_id, directory)
    [first] = (tmp_path / "bucket").rglob("00000000000000000000-*")
    first.unlink()
    with (
        pytest.raises(aeron.PersistentSubscriptionError, match=r"object storage: .* not found"),
        archive.follow(id) as follower,
    ):
        read(follower, 1)
