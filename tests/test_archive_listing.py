"""Tests of the filters of `list_recordings`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import aeron

IPC = "aeron:ipc?term-length=64k"


@pytest.fixture
def archive(driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path) -> Iterator[aeron.AeronArchive]:
    settings: dict[str, Any] = {"segment_file_length": 64 * 1024, "low_storage_space_threshold": 0}
    with aeron.Archive(tmp_path, driver=driver, **settings), aeron.connect_archive(client) as archive:
        yield archive


def test_recordings_are_listed_by_a_part_of_their_original_channel(archive: aeron.AeronArchive, stream_id: int) -> None:
    """All filters compare the original channel, also if the archive does not filter by the channel itself."""
    for name in ("first", "second", "first"):
        channel = f"aeron:ipc?linger=0|alias={name}"
        archive.start_recording(channel, stream_id)
        with archive.client.add_exclusive_publication(IPC, stream_id) as publication:
            publication.wait_connected(timeout=5)
            position = publication.publish(b"x", timeout=5)
            archive.wait_recorded(publication, position, timeout=5)
        archive.stop_recording(channel, stream_id)
    since = datetime(2020, 1, 1, tzinfo=UTC)

    def listed(channel: str, **selection: Any) -> list[int]:
        return [one.recording_id for one in archive.list_recordings(channel=channel, **selection)]

    for selection in ({}, {"stream_id": stream_id}, {"since": since}, {"stream_id": stream_id, "since": since}):
        assert listed("linger=0|alias=first", **selection) == [0, 2]
        assert listed("linger=0", limit=2, **selection) == [0, 1]
        assert listed("alias=first", limit=1, from_recording_id=1, **selection) == [2]
        # Only the stripped channel contains this text.
        assert listed("aeron:ipc?alias=first", **selection) == []
