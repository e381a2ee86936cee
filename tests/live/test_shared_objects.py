"""Tests of queries on recordings with segments that are only in object storage. Rows come from files or replays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.conftest import eventually

import aeron
from live.shared_query import SharedArchive, SharedQuery
from live.test_shared import TERM, Recorded


@pytest.fixture
def archive(driver: aeron.MediaDriver, home: Path) -> Iterator[aeron.AeronArchive]:
    with (
        aeron.Archive(
            home / "archive",
            driver=driver,
            segment_file_length=2 * TERM,
            low_storage_space_threshold=0,
            objects_url=(home / "bucket").as_uri(),
            objects_delete_local=True,
        ),
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
