"""Tests that a refused or ended request has its true reason, once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron

_CHANNEL = "aeron:ipc?term-length=64k"
_SETTINGS = {"segment_file_length": 64 * 1024, "low_storage_space_threshold": 0}
_MESSAGE = bytes(1000)
_FRAME = 1056


@pytest.fixture
def server(driver: aeron.MediaDriver, tmp_path: Path) -> Iterator[aeron.Archive]:
    with aeron.Archive(tmp_path, driver=driver, **_SETTINGS) as server:
        yield server


def test_the_replay_of_an_emptied_recording_is_refused_at_once(
    server: aeron.Archive, client: aeron.Aeron, stream_id: int
) -> None:
    """07-100"""
    with aeron.connect_archive(client) as archive:
        with archive.add_recorded_publication(_CHANNEL, stream_id) as publication:
            recording = archive.wait_recorded(publication, publication.publish(_MESSAGE, timeout=5), timeout=5)
            archive.stop_recording(publication)
        id_ = recording.recording_id
        eventually(lambda: archive.get_stop_position(id_) is not None)
        archive.truncate_recording(id_, 0)
        begin = time.monotonic()
        for length in (aeron.REPLAY_ALL_AND_FOLLOW, 0):
            with pytest.raises(aeron.EmptyRecordingError, match=r"start replay: .*the recording is empty"):
                archive.replay(id_, stream_id=stream_id + 1, length=length)
        assert time.monotonic() - begin < 2


def test_the_replay_of_a_damaged_recording_ends_with_the_reason_of_the_archive(
    server: aeron.Archive, client: aeron.Aeron, stream_id: int, tmp_path: Path
) -> None:
    errors: list[BaseException] = []
    with (
        aeron.connect_archive(client, error_handler=errors.append) as archive,
        archive.add_recorded_publication(_CHANNEL, stream_id) as publication,
    ):
        for _ in range(10):
            position = publication.publish(_MESSAGE, timeout=5)
        recording = archive.wait_recorded(publication, position, timeout=5)
        with (tmp_path / f"{recording.recording_id}-0.rec").open("r+b") as segment:
            # The version of the sixth frame.
            segment.seek(5 * _FRAME + 4)
            segment.write(b"\x09")
        with archive.replay(recording.recording_id, stream_id=stream_id + 1) as replay:
            # On a busy machine, the error may come before the image.
            eventually(lambda: replay.image_count)
            count = 0
            with pytest.raises(aeron.ArchiveError) as raised:
                while True:
                    count += len(replay.poll_batch(64))
        assert count == 5
        text = str(raised.value)
        assert f"ended at position {5 * _FRAME}, before the end of its stream: start replay: " in text
        assert f"unexpected frame at position={5 * _FRAME}, version 9, expected 0" in text
        assert "start another one" not in text
        # A thread of the client calls the handler.
        eventually(lambda: errors)
        assert [str(error) for error in errors] == [text[text.index("start replay: ") :]]
