"""Tests of the archive's catalog: the entries of deleted recordings are removed while the archive runs."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import eventually

import aeron
from aeron._pipeline import _ArchiveFiles

DELETED = 256
"""Number of entries that the smallest compaction removes."""


def test_a_running_archive_removes_the_entries_of_deleted_recordings(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path
) -> None:
    with (
        aeron.Archive(tmp_path / "archive", driver=driver, low_storage_space_threshold=0) as server,
        aeron.connect_archive(client) as archive,
    ):
        kept = recorded(archive)
        for _ in range(DELETED):
            archive.purge_recording(recorded(archive))
        eventually(lambda: entry_ids(server.directory) == [kept])
        assert [recording.recording_id for recording in archive.list_recordings()] == [kept]
        assert archive.list_recording(kept + 1) is None
        assert recorded(archive) == kept + DELETED + 1


def recorded(archive: aeron.AeronArchive, messages: int = 0) -> int:
    """Records a publication with this number of messages. Returns the id of the stopped recording."""
    with archive.add_recorded_exclusive_publication("aeron:ipc?term-length=64k|sparse=true", 1) as publication:
        for number in range(messages):
            publication.publish(bytes([number]) * 1000, timeout=5)
        recording_id = archive.wait_recorded(publication, publication.position, timeout=5).recording_id
        archive.stop_recording(publication)
    eventually(lambda: archive.get_stop_position(recording_id) is not None)
    return recording_id


def entry_ids(directory: Path) -> list[int]:
    return [entry.recording.recording_id for entry in _ArchiveFiles(directory, write=False).entries()]
