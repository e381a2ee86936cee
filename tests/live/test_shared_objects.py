"""Tests of queries on recordings with segments that are only in object storage. Rows come from files or replays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.conftest import eventually
from tests.test_archive_objects import hide_manifest, opened_at_end

import aeron
from live.shared_query import SharedArchive, SharedQuery
from live.test_shared import TERM, Recorded


def server_settings(home: Path) -> dict[str, Any]:
    return {
        "segment_file_length": 2 * TERM,
        "low_storage_space_threshold": 0,
        "objects_url": (home / "bucket").as_uri(),
        "objects_delete_local": True,
    }


@pytest.fixture
def archive(driver: aeron.MediaDriver, home: Path) -> Iterator[aeron.AeronArchive]:
    with (
        aeron.Archive(home / "archive", driver=driver, **server_settings(home)),
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        yield archive


def has_moved(archive: aeron.AeronArchive, recorded: Recorded) -> bool:
    """Returns whether only the last segment is on the disk."""
    id = recorded.recording.recording_id
    last = archive.get_max_recorded_position(id) // (2 * TERM) * (2 * TERM)
    return archive.get_start_position(id) == last


@pytest.mark.parametrize("way", ["files", "replays"])
def test_a_query_reads_copies_from_the_start_and_from_its_own_offset(
    driver: aeron.MediaDriver, archive: aeron.AeronArchive, home: Path, stream_id: int, way: str
) -> None:
    directory = str(home / "archive") if way == "files" else None
    shared = SharedArchive(str(driver.dir), directory)
    recorded = Recorded(archive, stream_id)
    early = SharedQuery(shared, stream_id, starting_offsets="earliest")
    recorded.send(300)
    early.drain()
    # The query is down while its next rows move to object storage.
    early.source.close()
    recorded.send(3000)
    eventually(lambda: has_moved(archive, recorded))
    early.restart()
    assert early.drain() == recorded.sent
    late = SharedQuery(shared, stream_id, starting_offsets="earliest")
    assert late.drain() == recorded.sent
    assert pa.concat_tables(late.finished).equals(pa.concat_tables(early.finished))
    partitions = shared.plan(stream_id)
    rows = pa.concat_tables([shared.read(partition) for partition in partitions])
    assert rows["value"].to_pylist() == recorded.sent


def test_a_query_needs_only_the_copies_of_its_own_recordings(
    driver: aeron.MediaDriver, home: Path, stream_id: int
) -> None:
    settings = server_settings(home)
    with (
        aeron.Archive(home / "archive", driver=driver, **settings),
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        both = [Recorded(archive, stream_id + number) for number in range(2)]
        for recorded in both:
            recorded.send(3000)
            archive.stop_recording(recorded.publication)
            recorded.publication.close()
        known, unknown = (recorded.recording.recording_id for recorded in both)
        eventually(lambda: all(archive.get_start_position(id) > 0 for id in (known, unknown)))
        eventually(lambda: [copied.recording_id for copied in archive.list_copied_ranges()] == [known, unknown])
    pipe = hide_manifest(home / "archive", home / "bucket", unknown)
    shared = SharedArchive(str(driver.dir), timeout_ms=10_000)
    with aeron.Archive(home / "archive", driver=driver, **settings), opened_at_end(pipe):
        partitions = shared.plan(stream_id)
        rows = pa.concat_tables([shared.read(partition) for partition in partitions])
        assert rows["value"].to_pylist() == both[0].sent
        with pytest.raises(Exception, match=f"the copies of recording {unknown} in object storage are not known yet"):
            shared.plan(stream_id + 1)
