"""Tests of files of a newer version: they are refused with their version, and never changed.

A test raises the version in a file that this version wrote. `interop/upgrades.py` tests an older version.
"""

from __future__ import annotations

import re
import struct
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.conftest import eventually

import aeron
from aeron import metrics
from commands import run

CHANNEL = "aeron:ipc?term-length=64k"
SETTINGS: dict[str, Any] = {"segment_file_length": 64 * 1024, "low_storage_space_threshold": 0}
# The version 4.0.0 of the files of an archive, and 1.0.0 of the CnC file.
NEWER, NEWER_CNC = 4 << 16, 1 << 16


def raise_version(path: Path, offset: int, version: int, *, checksum_at: int | None = None) -> None:
    """Writes a version into a file, and the CRC-32 of the bytes before `checksum_at`."""
    content = bytearray(path.read_bytes())
    struct.pack_into("<i", content, offset, version)
    if checksum_at is not None:
        struct.pack_into("<I", content, checksum_at, zlib.crc32(content[:checksum_at]))
    path.write_bytes(content)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def changed(directory: Path, before: dict[str, bytes]) -> set[str]:
    """Returns the names of the files that were changed or removed. A new file may have the errors of an archive."""
    after = contents(directory)
    return {name for name, content in before.items() if after.get(name) != content}


@pytest.fixture
def driver_directory(tmp_path: Path) -> Path:
    """Returns the directory of a driver that has ended, with a CnC file of a newer version."""
    with aeron.MediaDriver(dir=tmp_path / "driver", dir_delete_on_shutdown=False) as driver:
        directory = Path(driver.dir)
    raise_version(directory / "cnc.dat", 0, NEWER_CNC)
    return directory


@pytest.fixture
def archive_directory(driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, tmp_path: Path) -> Path:
    """Returns the directory of an archive that has ended, with one recording that has a reader."""
    with (
        aeron.Archive(tmp_path / "archive", driver=driver, **SETTINGS),
        aeron.connect_archive(client) as archive,
        archive.add_recorded_publication(CHANNEL, stream_id) as publication,
    ):
        position = publication.publish(b"message", timeout=5)
        archive.wait_recorded(publication, position, timeout=5)
        archive.commit_reader(0, "bars", 0)
    return tmp_path / "archive"


REFUSED_CNC = r"CnC version not compatible: app=0\.2\.0 file=1\.0\.0"


def test_a_client_refuses_the_cnc_file_of_a_newer_driver_at_once(driver_directory: Path) -> None:
    before = contents(driver_directory)
    expected = r"CnC version not compatible: driverVersion=1\.0\.0 insufficient for clientVersion=0\.2\.0: .*cnc\.dat"
    for reconnect in (False, True):
        with pytest.raises(aeron.AeronError, match=expected):
            aeron.connect(driver_directory, driver_timeout_ms=600_000, reconnect=reconnect)
    assert not changed(driver_directory, before)


def test_a_driver_refuses_the_directory_of_a_newer_driver(driver_directory: Path) -> None:
    before = contents(driver_directory)
    with pytest.raises(aeron.AeronError, match=REFUSED_CNC):
        aeron.MediaDriver(dir=driver_directory)
    assert not changed(driver_directory, before)


def test_tools_refuse_the_cnc_file_of_a_newer_driver(driver_directory: Path) -> None:
    before = contents(driver_directory)
    with pytest.raises(aeron.AeronError, match=REFUSED_CNC):
        aeron.CncFile(driver_directory)
    with pytest.raises(aeron.AeronError, match=REFUSED_CNC):
        metrics.snapshot(driver_directory)
    for command in ("stat", "errors", "clients", "streams"):
        result = run(command, "--dir", driver_directory)
        assert result.exit_code != 0
        assert "file=1.0.0" in result.stderr
    assert not changed(driver_directory, before)


class NewerFile(NamedTuple):
    """A file with its newer version, and the text of the refusal."""

    name: str
    offset: int
    version: int
    checksum_at: int | None
    refusal: str


MARK_FILE = NewerFile(
    "archive-mark.dat", 8, NEWER, None, "mark file version 4.0.0 is not compatible with software: 3.1.0"
)
CATALOG = NewerFile(
    "archive.catalog", 0, NEWER, None, "incompatible catalog file version 4.0.0, archive software is 3.1.0"
)
EXTENSIONS = NewerFile(
    "archive-extensions.dat",
    4,
    2,
    12,
    "archive-extensions.dat: cannot read it: the file has version 2, and this software reads versions up to 1: use the "
    "software that wrote it",
)
LOCK = NewerFile("archive.lock", 4, 2, 188, "archive.lock is damaged: it has version 2, this aeron reads version 1")
INDEX = NewerFile(
    "index-0-0.idx",
    4,
    3,
    60,
    "the file has version 3, and this software reads versions up to 2: use the software that wrote it",
)
# An archive that was refused has locked the directory, and is the last owner in these files.
OWNER_FILES = {"archive-mark.dat", "archive.lock"}


def with_newer(directory: Path, newer: NewerFile) -> dict[str, bytes]:
    """Raises the version of the file. Returns the contents of the directory."""
    raise_version(directory / newer.name, newer.offset, newer.version, checksum_at=newer.checksum_at)
    return contents(directory)


@pytest.mark.parametrize("newer", [MARK_FILE, CATALOG, EXTENSIONS, LOCK], ids=lambda newer: newer.name)
def test_an_archive_refuses_a_directory_with_a_newer_file(
    newer: NewerFile, driver: aeron.MediaDriver, archive_directory: Path
) -> None:
    before = with_newer(archive_directory, newer)
    with pytest.raises(aeron.AeronError, match=re.escape(newer.refusal)):
        aeron.Archive(archive_directory, driver=driver, **SETTINGS)
    assert changed(archive_directory, before) <= OWNER_FILES - {newer.name}


@pytest.mark.parametrize("newer", [MARK_FILE, CATALOG, LOCK], ids=lambda newer: newer.name)
@pytest.mark.parametrize("command", ["compact", "delete-orphans", "mark-invalid"])
def test_a_command_changes_no_directory_with_a_newer_file(
    command: str, newer: NewerFile, archive_directory: Path
) -> None:
    before = with_newer(archive_directory, newer)
    result = run("archive", command, archive_directory, *["0"][: command == "mark-invalid"], input="y\n")
    assert result.exit_code == 1
    assert newer.refusal in result.stderr
    assert not changed(archive_directory, before)


def test_a_reader_of_files_refuses_a_newer_catalog(archive_directory: Path) -> None:
    before = with_newer(archive_directory, CATALOG)
    with pytest.raises(aeron.AeronError, match=CATALOG.refusal):
        aeron.read_recording(archive_directory, 0)
    assert not changed(archive_directory, before)


def test_a_recording_with_a_newer_index_is_replayed_and_not_extended(
    driver: aeron.MediaDriver, client: aeron.Aeron, archive_directory: Path, stream_id: int
) -> None:
    before = with_newer(archive_directory, INDEX)
    with aeron.Archive(archive_directory, driver=driver, **SETTINGS), aeron.connect_archive(client) as archive:
        with archive.replay(0, length=aeron.REPLAY_ALL_AND_STOP) as replay:
            assert [message for batch in replay.batches(timeout=5) for message in batch.to_list()] == [b"message"]
        with pytest.raises(aeron.ArchiveError, match=INDEX.refusal):
            archive.find_position(0, since=datetime.now(UTC))
        recording = archive.list_recording(0)
        assert recording is not None
        initial = recording.initial_term_id
        channel = f"{CHANNEL}|init-term-id={initial}|term-id={initial}|term-offset={recording.stop_position}"
        with client.add_exclusive_publication(channel, stream_id):
            archive.extend_recording(0, CHANNEL, stream_id)
            refusal = f"index-0-0.idx: cannot read it: {INDEX.refusal}"
            eventually(lambda: refusal in run("archive", "errors", archive_directory).stdout)
        assert archive.list_recording(0) == recording
    assert {INDEX.name, "0-0.rec", "archive.catalog"}.isdisjoint(changed(archive_directory, before))
