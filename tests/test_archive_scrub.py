"""Tests of scrubbing: an archive reads its sealed segments at a limited rate, and reports damage."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import eventually

import aeron
from commands import run

CHANNEL = "aeron:ipc?term-length=64k"
SEGMENT = 64 * 1024
SETTINGS: dict[str, Any] = {"segment_file_length": SEGMENT, "low_storage_space_threshold": 0}
OFTEN: dict[str, Any] = {**SETTINGS, "scrub_rate": 100_000_000, "scrub_interval_ns": 20_000_000}
MESSAGE = bytes(992)
"""Message with a frame of 1024 bytes. A segment has 64 such frames."""

CHECKED_BYTES, FINDINGS = 20_104, 20_105


def counter(client: aeron.Aeron, type_id: int) -> int:
    """Returns the value of the newest counter of a type. Counters of an earlier archive may still exist."""
    found = [each for each in client.counters_reader if each.type_id == type_id]
    return max(found, key=lambda each: each.registration_id).value


def begin_recording(client: aeron.Aeron, stream_id: int, count: int) -> tuple[int, aeron.ExclusivePublication]:
    """Records messages. Returns the recording id and the publication."""
    with aeron.connect_archive(client) as archive:
        publication = archive.add_recorded_exclusive_publication(CHANNEL, stream_id)
        for _ in range(count):
            position = publication.publish(MESSAGE, timeout=5)
        return archive.wait_recorded(publication, position, timeout=5).recording_id, publication


def record(client: aeron.Aeron, stream_id: int, count: int) -> int:
    """Records messages and stops the recording. Returns the recording id."""
    id, publication = begin_recording(client, stream_id, count)
    with aeron.connect_archive(client) as archive:
        archive.stop_recording(publication)
        publication.close()
        eventually(lambda: archive.get_stop_position(id) is not None)
    return id


def damage(path: Path, position: int) -> None:
    """Damages a segment file: changes the type of the frame at `position`."""
    with path.open("r+b") as file:
        file.seek(position + 6)
        file.write(b"\xff")


def errors(directory: Path) -> str:
    return run("archive", "errors", directory).stdout


def test_damage_in_a_sealed_segment_is_reported_once_and_no_file_changes(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, tmp_path: Path
) -> None:
    directory = tmp_path / "archive"
    with aeron.Archive(directory, driver=driver, **OFTEN):
        stopped = record(client, stream_id, 150)
        active, publication = begin_recording(client, stream_id + 1, 150)
        eventually(lambda: counter(client, CHECKED_BYTES) > 4 * 150 * 1024)
        assert counter(client, FINDINGS) == 0
        damage(directory / f"{stopped}-{SEGMENT}.rec", 10 * 1024)
        # The last segment of an active recording is not sealed.
        damage(directory / f"{active}-{2 * SEGMENT}.rec", 0)
        before = {path.name: path.read_bytes() for path in directory.glob("*.rec")}
        eventually(lambda: counter(client, FINDINGS) == 1)
        checked = counter(client, CHECKED_BYTES)
        eventually(lambda: counter(client, CHECKED_BYTES) > checked + 4 * 150 * 1024)
        assert counter(client, FINDINGS) == 1
        assert {path.name: path.read_bytes() for path in directory.glob("*.rec")} == before
        text = errors(directory)
        assert f"scrub: recording {stopped} is damaged: {stopped}-{SEGMENT}.rec, position {SEGMENT + 10 * 1024}" in text
        assert f"recording {active}" not in text
        publication.close()


def test_wrong_checksums_and_missing_segments_are_reported_as_damage(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, tmp_path: Path
) -> None:
    directory = tmp_path / "archive"
    checksums = {"record_checksum": "CRC-32C", "replay_checksum": "CRC-32C"}
    with aeron.Archive(directory, driver=driver, **OFTEN, **checksums):
        first = record(client, stream_id, 150)
        second = record(client, stream_id + 1, 150)
        with (directory / f"{first}-0.rec").open("r+b") as file:
            file.seek(5 * 1024 + 100)
            file.write(b"x")
        (directory / f"{second}-{SEGMENT}.rec").unlink()
        eventually(lambda: counter(client, FINDINGS) == 2)
        text = errors(directory)
        assert f"recording {first} is damaged: {first}-0.rec" in text
        assert f"recording {second} is damaged: {second}-{SEGMENT}.rec" in text


def test_segments_that_are_deleted_during_a_pass_are_not_reported_as_damage(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, tmp_path: Path
) -> None:
    with aeron.Archive(tmp_path / "archive", driver=driver, **OFTEN), aeron.connect_archive(client) as archive:
        for round in range(5):
            id = record(client, stream_id + round, 150)
            archive.purge_segments(id, SEGMENT)
            archive.purge_recording(id)
        assert counter(client, FINDINGS) == 0


@pytest.mark.parametrize("rate", [0, 200_000])
def test_scrubbing_does_not_exceed_its_rate_and_is_off_by_default(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, tmp_path: Path, rate: int
) -> None:
    assert aeron.Archive.settings()["scrub_rate"] == 0
    settings: dict[str, Any] = {"scrub_rate": rate} if rate else {}
    begin = time.monotonic()
    with aeron.Archive(tmp_path / "archive", driver=driver, **SETTINGS, **settings):
        record(client, stream_id, 600)
        time.sleep(0.5)
        # One step may exceed the rate, because it may read a whole segment.
        most = rate * (time.monotonic() - begin) + SEGMENT if rate else 0
        assert counter(client, CHECKED_BYTES) <= most
