"""Tests of archives whose catalog has an odd entry, or is lost."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from tests.commands import run
from tests.conftest import eventually

import aeron
from aeron._pipeline import _read_archive_mark

_CHANNEL = "aeron:ipc?term-length=64k"
_SETTINGS = {"segment_file_length": 64 * 1024, "low_storage_space_threshold": 0}
_MESSAGE = bytes(1000)


def record(driver: aeron.MediaDriver, client: aeron.Aeron, directory: Path, counts: list[int]) -> list[aeron.Recording]:
    """Records a stream of each number of messages. Returns the recordings after the archive has ended."""
    with aeron.Archive(directory, driver=driver, **_SETTINGS), aeron.connect_archive(client) as archive:
        for stream_id, count in enumerate(counts, 1):
            with archive.add_recorded_publication(_CHANNEL, stream_id) as publication:
                for _ in range(count):
                    position = publication.publish(_MESSAGE, timeout=5)
                recording = archive.wait_recorded(publication, position, timeout=5)
                archive.stop_recording(publication)
            id_ = recording.recording_id
            eventually(lambda id_=id_: archive.get_stop_position(id_) is not None)
        return archive.list_recordings()


def messages(archive: aeron.AeronArchive, recording_id: int) -> int:
    with archive.replay(recording_id, stream_id=99, length=aeron.REPLAY_ALL_AND_STOP) as replay:
        return sum(len(batch) for batch in replay.batches(timeout=5))


def test_an_odd_entry_is_listed_and_reported_once_and_all_others_are_served(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path
) -> None:
    """12, section 10.1"""
    record(driver, client, tmp_path, [5, 7])
    catalog = bytearray((tmp_path / "archive.catalog").read_bytes())
    at = catalog.index(struct.pack("<qq", 0, 5 * 1056))
    struct.pack_into("<q", catalog, at, 3)
    (tmp_path / "archive.catalog").write_bytes(catalog)
    with aeron.Archive(tmp_path, driver=driver, **_SETTINGS), aeron.connect_archive(client) as archive:
        assert [recording.start_position for recording in archive.list_recordings()] == [3, 0]
        assert messages(archive, 1) == 7
        with pytest.raises(aeron.ArchiveRefusedError, match="recording 0 cannot be served: startPosition"):
            archive.replay(0, stream_id=99)
        mark = _read_archive_mark(tmp_path)
        assert mark is not None
        # A late request of the former archive's client adds "control request for unknown session".
        [error] = [error for error in mark.errors if error.text.startswith("recording 0 ")]
        assert error.text.startswith("recording 0 cannot be served: startPosition")
        assert error.observation_count == 1
        assert error.text in run("archive", "describe", tmp_path, 0).output
    assert (tmp_path / "0-0.rec").exists()


def test_an_archive_without_its_catalog_does_not_start_until_the_catalog_is_rebuilt(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path
) -> None:
    """12, sections 10.2 to 10.4"""
    former = record(driver, client, tmp_path, [5, 200])
    (tmp_path / "archive.catalog").unlink()
    with pytest.raises(aeron.AeronError, match="aeron archive rebuild-catalog"):
        aeron.Archive(tmp_path, driver=driver, **_SETTINGS)
    assert not (tmp_path / "archive.catalog").exists()
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.rec")}
    result = run("archive", "rebuild-catalog", tmp_path, "--channel", _CHANNEL)
    assert result.exit_code == 0, result.output
    assert "the term length is assumed to be 65536" in result.output
    assert before == {path.name: path.read_bytes() for path in tmp_path.glob("*.rec")}
    again = run("archive", "rebuild-catalog", tmp_path)
    assert again.exit_code == 1
    assert "archive.catalog exists" in again.output
    with aeron.Archive(tmp_path, driver=driver, **_SETTINGS), aeron.connect_archive(client) as archive:
        found = archive.list_recordings()
        for new, old in zip(found, former, strict=True):
            assert (new.start_position, new.stop_position) == (old.start_position, old.stop_position)
            assert (new.session_id, new.stream_id) == (old.session_id, old.stream_id)
            assert (new.initial_term_id, new.term_buffer_length) == (old.initial_term_id, old.term_buffer_length)
            assert new.original_channel == _CHANNEL
            assert abs(new.start_timestamp_ms - old.start_timestamp_ms) < 10_000
        assert [messages(archive, recording.recording_id) for recording in found] == [5, 200]


def test_a_recording_without_frames_is_left_out_and_its_id_is_not_used_again(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path
) -> None:
    """12, section 10.6"""
    (tmp_path / "3-0.rec").write_bytes(bytes(64 * 1024))
    result = run("archive", "rebuild-catalog", tmp_path, "--json")
    assert result.exit_code == 255
    left_out = {"recording_id": 3, "reason": "its segment files have no frames"}
    assert json.loads(result.output) == {"recordings": [], "left_out": [left_out]}
    with (
        aeron.Archive(tmp_path, driver=driver, **_SETTINGS),
        aeron.connect_archive(client) as archive,
        archive.add_recorded_publication(_CHANNEL, 1) as publication,
    ):
        recording = archive.wait_recorded(publication, publication.publish(_MESSAGE, timeout=5), timeout=5)
        assert recording.recording_id == 4
