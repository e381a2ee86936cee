"""Tests of recordings that fail: the operator and the client learn it, and the setting decides about the publisher."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import run
from tests.conftest import eventually
from tests.small_disk import run_on_small_disk

import aeron
from aeron._pipeline import _read_archive_mark

_TERM_LENGTH = 64 * 1024
_CHANNEL = f"aeron:ipc?term-length={_TERM_LENGTH}"
_MESSAGE = bytes(1000)
_SETTINGS = {"segment_file_length": _TERM_LENGTH, "low_storage_space_threshold": 0}
_ERRORS, _BLOCKED, _DROPPED = 101, 20_111, 20_112

# A recording on a full disk. The client that asked for the recording has already ended.
_FULL_DISK = """
import os, sys, time
import aeron
from aeron._pipeline import _read_archive_mark

CHANNEL = "aeron:ipc?term-length=64k|alias=feed"
DIRECTORY, FILLER = sys.argv[1] + "/archive", sys.argv[1] + "/filler"
SETTINGS = dict(segment_file_length=1 << 20, low_storage_space_threshold=256 << 10, error_buffer_length=1 << 20)

def until(condition, timeout=20):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, condition
        time.sleep(0.01)

with (
    aeron.MediaDriver() as driver,
    aeron.Archive(DIRECTORY, driver=driver, **SETTINGS),
    aeron.connect(driver) as client,
):
    with aeron.connect_archive(client) as archive:
        archive.start_recording(CHANNEL, 1)
    publication = client.add_exclusive_publication(CHANNEL, 1)
    publication.publish(bytes(100), timeout=5)
    with open(FILLER, "wb") as filler:
        # The recording gets its first segment, and a part of the second one.
        filler.truncate(os.statvfs(DIRECTORY).f_bavail * 4096 - (3 << 19))
        os.posix_fallocate(filler.fileno(), 0, os.fstat(filler.fileno()).st_size)
    sent, blocked_s = [], 0
    while blocked_s < 1.5:
        message = len(sent).to_bytes(4, "little") * 250
        try:
            publication.publish(message, timeout=0.5)
            sent.append(message)
            blocked_s = 0
        except aeron.BackPressureTimeoutError:
            blocked_s += 0.5
    [error] = _read_archive_mark(DIRECTORY).errors
    assert error.observation_count == 1, error
    assert error.text.startswith("recording 0 of stream 1, aeron:ipc?term-length=64k|alias=feed, has failed: "), error
    assert "tries again each second" in error.text, error
    with aeron.connect_archive(client) as archive:
        stopped = archive.get_stop_position(0)
        assert stopped is not None and 0 < stopped < publication.position, stopped
        os.remove(FILLER)
        for number in range(len(sent), len(sent) + 100):
            sent.append(number.to_bytes(4, "little") * 250)
            publication.publish(sent[-1], timeout=10)
        until(lambda: archive.get_recording_position(0) == publication.position)
        assert len(archive.list_recordings()) == 1
        assert len(_read_archive_mark(DIRECTORY).errors) == 1
        archive.stop_recording(CHANNEL, 1)
        until(lambda: archive.get_stop_position(0) == publication.position)
    publication.close()
    with aeron.connect_archive(client) as archive:
        replay, payloads = archive.replay(0, stream_id=2), []
        until(lambda: payloads.extend(map(bytes, replay.poll_batch(64))) or len(payloads) > len(sent))
        assert payloads == [bytes(100), *sent], (len(payloads), len(sent))
print("continued")
"""


@pytest.fixture
def driver() -> Iterator[aeron.MediaDriver]:
    """A driver without other archives and their counters."""
    with aeron.MediaDriver() as driver:
        yield driver


@pytest.fixture
def client(driver: aeron.MediaDriver) -> Iterator[aeron.Aeron]:
    with aeron.connect(driver) as client:
        yield client


def test_a_recording_on_a_full_disk_is_reported_and_continues_without_a_gap_when_there_is_space(tmp_path: Path) -> None:
    """07-57; 12, sections 10.1 and 10.3"""
    assert run_on_small_disk(_FULL_DISK, tmp_path, size_mib=8, timeout_s=90) == "continued\n"


def test_the_space_of_the_error_log_is_reserved_when_the_mark_file_is_created(
    driver: aeron.MediaDriver, tmp_path: Path
) -> None:
    with aeron.Archive(tmp_path, driver=driver, **_SETTINGS, error_buffer_length=2 << 20):
        state = (tmp_path / "archive-mark.dat").stat()
        assert state.st_blocks * 512 >= state.st_size > 2 << 20


@pytest.mark.parametrize("request_of", ["setting", "request"])
def test_a_failed_recording_is_released_if_the_setting_or_the_request_says_so(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path, stream_id: int, request_of: str
) -> None:
    setting = "release" if request_of == "setting" else "block"
    with aeron.Archive(tmp_path, driver=driver, **_SETTINGS, recording_on_failure=setting):
        (tmp_path / f"0-{_TERM_LENGTH}.rec").write_bytes(b"data of somebody")
        with aeron.connect_archive(client) as archive:
            on_failure = None if request_of == "setting" else "release"
            archive.start_recording(_CHANNEL, stream_id, on_failure=on_failure)
        with client.add_exclusive_publication(_CHANNEL, stream_id) as publication:
            for _ in range(4 * _TERM_LENGTH // len(_MESSAGE)):
                publication.publish(_MESSAGE, timeout=5)
            end = publication.position
            # All bytes were read. The first segment was recorded.
            eventually(lambda: _counter(client, _DROPPED) == end - _TERM_LENGTH)
        assert _counter(client, _BLOCKED) == 0
        with aeron.connect_archive(client) as archive:
            assert archive.get_stop_position(0) == _TERM_LENGTH
        assert "is read and not recorded" in _only_error(tmp_path)
    assert (tmp_path / f"0-{_TERM_LENGTH}.rec").read_bytes() == b"data of somebody"


def test_a_failed_recording_blocks_its_publisher_until_it_is_stopped(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path, stream_id: int
) -> None:
    errors: list[BaseException] = []
    with aeron.Archive(tmp_path, driver=driver, **_SETTINGS):
        (tmp_path / f"0-{_TERM_LENGTH}.rec").write_bytes(b"data of somebody")
        with (
            aeron.connect_archive(client, error_handler=errors.append) as archive,
            client.add_exclusive_publication(_CHANNEL, stream_id) as publication,
        ):
            archive.start_recording(_CHANNEL, stream_id)
            with pytest.raises(aeron.BackPressureTimeoutError):
                for _ in range(8 * _TERM_LENGTH // len(_MESSAGE)):
                    publication.publish(_MESSAGE, timeout=0.5)
            eventually(lambda: len(errors) == 1)
            assert _counter(client, _BLOCKED) == 1
            assert _counter(client, _ERRORS) == 1
            text = _only_error(tmp_path)
            assert text.startswith(
                f"recording 0 of stream {stream_id}, {_CHANNEL}, has failed: segment file 0-65536.rec"
            )
            assert "blocked until the recording is stopped" in text
            assert text in run("archive", "describe", tmp_path, 0).output
            stat = run("archive", "stat", "--dir", driver.dir, "-u", 50, "--once")
            assert "1 errors: see aeron archive errors" in stat.output
            # The other recording keeps the subscription open.
            with client.add_exclusive_publication(_CHANNEL, stream_id) as other:
                archive.wait_recorded(other, other.publish(_MESSAGE, timeout=5), timeout=5)
                assert archive.try_stop_recording_by_identity(0)
                for _ in range(4 * _TERM_LENGTH // len(_MESSAGE)):
                    publication.publish(_MESSAGE, timeout=5)
            assert _counter(client, _BLOCKED) == _counter(client, _DROPPED) == 0


def test_a_refused_extension_is_one_entry_with_recording_channel_and_reason(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path, stream_id: int
) -> None:
    """12, sections 10.1 and 10.5: the session that asked is closed."""
    with aeron.Archive(tmp_path, driver=driver, **_SETTINGS):
        with aeron.connect_archive(client) as archive:
            with archive.add_recorded_publication(_CHANNEL, stream_id) as publication:
                archive.wait_recorded(publication, publication.publish(_MESSAGE, timeout=5), timeout=5)
                archive.stop_recording(publication)
            archive.extend_recording(0, f"{_CHANNEL}|alias=second", stream_id)
        with client.add_exclusive_publication(_CHANNEL, stream_id) as publication:
            for _ in range(4 * _TERM_LENGTH // len(_MESSAGE)):
                publication.publish(_MESSAGE, timeout=5)
            eventually(lambda: _counter(client, _DROPPED) > 0)
        text = _only_error(tmp_path)
        assert text.startswith(
            f"recording 0 is not extended by stream {stream_id}, {_CHANNEL}|alias=second: cannot extend"
        )
        assert text.endswith("; the rest of the stream is read and not recorded")
        assert _counter(client, _ERRORS) == 1
        assert text in run("archive", "errors", tmp_path).output
        assert text in run("archive", "describe", tmp_path, 0).output


def test_an_unknown_treatment_of_failures_is_refused(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path
) -> None:
    with pytest.raises(aeron.ConfigurationError, match="recording_on_failure='drop' is not one of block, release"):
        aeron.Archive(tmp_path, driver=driver, recording_on_failure="drop")
    with aeron.Archive(tmp_path, driver=driver, **_SETTINGS), aeron.connect_archive(client) as archive:
        with pytest.raises(aeron.ArgumentTypeError, match="on_failure='drop'"):
            archive.start_recording(_CHANNEL, 1, on_failure="drop")
        with pytest.raises(aeron.ArchiveRefusedError, match="on-failure=drop is not known: use block or release"):
            archive.start_recording(f"{_CHANNEL}|on-failure=drop", 1)


def _only_error(directory: Path) -> str:
    mark = _read_archive_mark(str(directory))
    assert mark is not None
    [error] = mark.errors
    assert error.observation_count == 1
    return error.text


def _counter(client: aeron.Aeron, type_id: int) -> int:
    [counter] = [counter for counter in client.counters_reader.snapshot() if counter.type_id == type_id]
    return counter.value
