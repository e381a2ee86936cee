"""Tests of the content of an archive's mark file, and of its effect on other archives.

In most tests of two archives in one directory, one of the archives is the real one.
"""

import struct
import time
from pathlib import Path

import pytest

from interop.archives import SETTINGS
from interop.kinds import each_archive_on_ours
from interop.waiting import eventually

_REAL, _OURS = ("java", "ours"), ("ours", "ours")
_HEADER_LENGTH, _ERROR_BUFFER_LENGTH = 8192, 1024 * 1024
_ACTIVITY = 16


@pytest.fixture
def start(drivers, start_archive):
    """`start(kinds, settings)` starts an archive on a driver of these kinds."""
    return lambda kinds, settings=None: start_archive(kinds[0], drivers(kinds[1]), settings)


def _bytes(archive):
    return (archive.directory / "archive-mark.dat").read_bytes()


def _activity(archive):
    return struct.unpack_from("<q", _bytes(archive), _ACTIVITY)[0]


@each_archive_on_ours
def test_the_mark_file_has_the_settings_and_the_process_id_of_the_archive(start, kinds, stream):
    """07-71"""
    archive = start(kinds, {"aeron.archive.id": str(stream)})
    data = _bytes(archive)
    assert len(data) == _HEADER_LENGTH + _ERROR_BUFFER_LENGTH
    assert struct.unpack_from("<4H", data) == (128, 200, 100, 2)
    version, zero, activity, begin, pid = struct.unpack_from("<iiqqq", data, 8)
    assert (version, zero, pid) == (0x00030100, 0, archive.process.pid)
    assert abs(activity / 1000 - time.time()) < 60
    assert 0 <= activity - begin < 60_000
    control = int(archive.settings["aeron.archive.control.stream.id"])
    numbers = struct.unpack_from("<6iq", data, 40)
    assert numbers == (control, control, 30, _HEADER_LENGTH, _ERROR_BUFFER_LENGTH, 0, stream)
    assert data[72:136] == bytes(64)
    texts, at = [], 136
    for _ in range(4):
        (length,) = struct.unpack_from("<I", data, at)
        texts.append(data[at + 4 : at + 4 + length].decode())
        at += 4 + length
    local = SETTINGS["aeron.archive.local.control.channel"]
    assert texts == [archive.settings["aeron.archive.control.channel"], local, "", archive.settings["aeron.dir"]]
    assert not any(data[at:])


@each_archive_on_ours
def test_an_error_log_may_be_longer_than_1_mib_but_not_shorter(start, kinds):
    """07-71, 07-76"""
    archive = start(kinds, {"aeron.archive.error.buffer.length": "2m"})
    assert len(_bytes(archive)) == _HEADER_LENGTH + 2 * _ERROR_BUFFER_LENGTH
    assert struct.unpack_from("<i", _bytes(archive), 56) == (2 * _ERROR_BUFFER_LENGTH,)
    with pytest.raises(AssertionError, match="1048575"):
        start(kinds, {"aeron.archive.error.buffer.length": "1048575"})


@each_archive_on_ours
def test_an_archive_writes_the_time_each_second_and_minus_1_at_its_end(start, kinds):
    """07-72"""
    archive = start(kinds)
    seen = [_activity(archive)]

    def has_beaten_twice():
        if (activity := _activity(archive)) != seen[-1]:
            seen.append(activity)
        return len(seen) == 4

    eventually(has_beaten_twice)
    assert 900 <= seen[-1] - seen[-2] <= 2000
    archive.stop()
    assert _activity(archive) == -1


@pytest.mark.parametrize(("first", "second"), [(_REAL, _OURS), (_OURS, _REAL), (_OURS, _OURS)], ids=str)
def test_an_archive_refuses_a_directory_that_another_archive_uses(start, first, second):
    """07-73"""
    archive = start(first)
    before = sorted(path.name for path in archive.directory.iterdir())
    with pytest.raises(AssertionError, match="active mark file detected"):
        start(second, {"aeron.archive.dir": str(archive.directory)})
    assert sorted(path.name for path in archive.directory.iterdir()) == before
    assert archive.process.exit_code is None
    archive.stop()
    other = start(
        second, {"aeron.archive.dir": str(archive.directory), "aeron.archive.mark.file.dir": str(archive.directory)}
    )
    assert other.mark_file()[2] == other.process.pid


@pytest.mark.parametrize(("first", "second"), [(_REAL, _OURS), (_OURS, _REAL)], ids=str)
def test_the_directory_of_a_killed_archive_is_refused_for_ten_seconds(start, first, second):
    """07-73"""
    archive = start(first)
    archive.kill()
    killed = _activity(archive)
    settings = {"aeron.archive.dir": str(archive.directory), "aeron.archive.mark.file.dir": str(archive.directory)}
    with pytest.raises(AssertionError, match="active mark file detected"):
        start(second, settings)
    # The test moves the timestamp back instead of waiting for ten seconds.
    with open(Path(archive.directory) / "archive-mark.dat", "r+b") as file:
        file.seek(_ACTIVITY)
        file.write(struct.pack("<q", killed - 10_000))
    start(second, settings)


def test_our_archive_takes_over_the_directory_of_our_killed_archive_immediately(start, stream):
    """07-73: the lock file shows that the owner is dead."""
    archive = start(_OURS)
    archive.kill()
    # The archive id is different, because the driver still has the counters of the killed archive's id.
    archive.settings["aeron.archive.id"] = str(stream)
    archive.start()
