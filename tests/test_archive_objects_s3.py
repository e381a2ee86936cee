"""Sealed segments in S3-compatible storage: moto as the server."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from moto.server import ThreadedMotoServer
from tests.conftest import eventually
from tests.test_archive_objects import CHANNEL, COUNT, FAILURES, SEGMENT, SETTINGS, counter, record, replayed, segments

import aeron
from commands import run

SECRET = "a-secret-that-no-text-contains"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an S3 server."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(server: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Settings of an archive with an empty bucket."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    urllib.request.urlopen(urllib.request.Request(f"{server}/moto-api/reset", method="POST"))
    urllib.request.urlopen(urllib.request.Request(f"{server}/trades", method="PUT"))
    return {
        **SETTINGS,
        "objects_url": "s3://trades/archives/one",
        "objects_endpoint": server,
        "objects_delete_local": True,
    }


def test_segments_go_to_a_bucket_and_come_back(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, tmp_path: Path, s3: dict[str, Any]
) -> None:
    directory = tmp_path / "archive"
    with aeron.Archive(directory, driver=driver, **s3):
        id = record(client, stream_id)
        eventually(lambda: segments(directory, id) == [4 * SEGMENT], timeout=30)
        assert replayed(client, id, 0, stream_id + 1) == list(range(COUNT))
        assert counter(client, FAILURES) == 0
        with aeron.connect_archive(client) as archive:
            assert archive.list_copied_ranges() == [aeron.CopiedRange(id, 0, 4 * SEGMENT, 4 * SEGMENT)]
    # The archive has ended. The reader itself fetches the copies, with the credentials in the environment of its own
    # process.
    rows = aeron.read_recording(directory, id)
    assert sum(batch.num_rows for batch in rows) == COUNT
    for path in directory.iterdir():
        assert SECRET.encode() not in path.read_bytes(), path


def test_a_segment_of_several_parts_is_copied_and_read_back(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, tmp_path: Path, s3: dict[str, Any]
) -> None:
    directory = tmp_path / "archive"
    long = 16 << 20
    message = bytes(range(256)) * 200
    count = long // len(message) + 100
    with (
        aeron.Archive(directory, driver=driver, **(s3 | {"segment_file_length": long})),
        aeron.connect_archive(client) as archive,
    ):
        publication = archive.add_recorded_exclusive_publication("aeron:ipc?term-length=1m", stream_id)
        for _ in range(count):
            position = publication.publish(message, timeout=5)
        id = archive.wait_recorded(publication, position, timeout=10).recording_id
        archive.stop_recording(publication)
        publication.close()
        eventually(lambda: segments(directory, id) == [long], timeout=30)
        rows = aeron.read_recording(directory, id, columns=["value"])
        values = {bytes(value.as_py()) for batch in rows for value in batch["value"]}
    assert values == {message}


def is_copied(archive: aeron.AeronArchive, id: int) -> bool:
    """Returns whether the archive knows the copies of the recording, and its last segment alone is local."""
    try:
        return archive.list_copied_ranges(recording_id=id) == [aeron.CopiedRange(id, 0, 4 * SEGMENT, 4 * SEGMENT)]
    except aeron.ArchiveError as error:
        if "are not known yet" not in str(error):
            raise
        return False


def test_requests_report_storage_that_is_away_for_long_and_succeed_when_it_is_back(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, tmp_path: Path, s3: dict[str, Any]
) -> None:
    directory = tmp_path / "archive"
    # All servers of a process have the same buckets.
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    away = s3 | {"objects_endpoint": f"http://{host}:{port}", "objects_timeout_ns": 3_000_000_000}
    began = datetime.now(UTC)
    with aeron.Archive(directory, driver=driver, **away), aeron.connect_archive(client) as archive:
        id = record(client, stream_id)
        eventually(lambda: segments(directory, id) == [4 * SEGMENT], timeout=30)
        server.stop()
        with pytest.raises(aeron.ArchiveError, match="object storage: "):
            archive.replay(id, CHANNEL, stream_id + 1, position=0)
    for manifest in directory.glob("*.manifest"):
        manifest.unlink()
    with aeron.Archive(directory, driver=driver, **away), aeron.connect_archive(client) as archive:
        requests = [
            archive.async_list_copied_ranges(recording_id=id),
            archive.async_replay(id, CHANNEL, stream_id + 2, position=0),
            archive.async_find_position(id, since=began),
        ]
        unknown = f"the copies of recording {id} in object storage are not known yet: try again later"
        for request in requests:
            with pytest.raises(aeron.ArchiveError, match=unknown):
                request.result(10)
        # A time after the last message is found without the copies.
        assert archive.find_position(id, since=datetime.now(UTC)).position == archive.get_stop_position(id)
        # Recordings go on, and nothing is deleted.
        later = record(client, stream_id + 3)
        assert len(segments(directory, later)) == 5
        assert f"list of the copies of recording {id}: " in run("archive", "errors", directory).stdout

        server = ThreadedMotoServer(ip_address=host, port=port, verbose=False)
        server.start()
        for each in (id, later):
            eventually(lambda each=each: is_copied(archive, each), timeout=30)
        ranges = [aeron.CopiedRange(each, 0, 4 * SEGMENT, 4 * SEGMENT) for each in (id, later)]
        assert archive.list_copied_ranges() == ranges
        assert archive.find_position(id, since=began).position == 0
        for number, each in enumerate((id, later)):
            assert replayed(client, each, 0, stream_id + 4 + number) == list(range(COUNT))
        server.stop()


def test_a_missing_bucket_deletes_nothing_until_it_exists(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, tmp_path: Path, server: str, s3: dict[str, Any]
) -> None:
    directory = tmp_path / "archive"
    with aeron.Archive(directory, driver=driver, **(s3 | {"objects_url": "s3://later"})):
        id = record(client, stream_id)
        eventually(lambda: counter(client, FAILURES) >= 1, timeout=20)
        assert len(segments(directory, id)) == 5
        text = run("archive", "errors", directory).stdout
        assert f"object storage: copy of {id}-" in text
        assert SECRET not in text
        urllib.request.urlopen(urllib.request.Request(f"{server}/later", method="PUT"))
        eventually(lambda: segments(directory, id) == [4 * SEGMENT], timeout=30)
        assert replayed(client, id, 0, stream_id + 1) == list(range(COUNT))
