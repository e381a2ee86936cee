"""Sealed segments in object storage: copies, deletion of local files, and replays that fetch the copies."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.conftest import eventually

import aeron
from commands import run
from hooks import has_hooks, pause_at

CHANNEL = "aeron:ipc?term-length=64k"
SEGMENT = 64 * 1024
SETTINGS: dict[str, Any] = {"segment_file_length": SEGMENT, "low_storage_space_threshold": 0}
COUNT = 300
"""Number of messages in a recording. They fill four segments and a part of the fifth."""

COPIED, FREED, FETCHED, FAILURES = 20_106, 20_107, 20_108, 20_109


def message(number: int) -> bytes:
    """Returns a message with a frame of 1024 bytes. A segment has 64 such frames."""
    return number.to_bytes(8, "little") * 124


def counter(client: aeron.Aeron, type_id: int) -> int:
    """Returns the value of the newest counter of a type. Counters of an earlier archive may still exist."""
    found = [each for each in client.counters_reader if each.type_id == type_id]
    return max(found, key=lambda each: each.registration_id).value


def record(client: aeron.Aeron, stream_id: int, count: int = COUNT) -> int:
    """Records messages with their numbers, and stops the recording. Returns the recording id."""
    with aeron.connect_archive(client) as archive:
        publication = archive.add_recorded_exclusive_publication(CHANNEL, stream_id)
        for number in range(count):
            position = publication.publish(message(number), timeout=5)
        id = archive.wait_recorded(publication, position, timeout=5).recording_id
        archive.stop_recording(publication)
        publication.close()
        eventually(lambda: archive.get_stop_position(id) is not None)
    return id


def publish(publication: aeron.ExclusivePublication, numbers: range) -> int:
    """Publishes messages. Returns the position after them."""
    return [publication.publish(message(number), timeout=5) for number in numbers][-1]


def read_numbers(subscription: aeron.Subscription, count: int) -> list[int]:
    """Returns the numbers of the next `count` messages."""
    numbers: list[int] = []
    deadline = time.monotonic() + 20
    while len(numbers) < count:
        assert time.monotonic() < deadline, len(numbers)
        batch = subscription.poll_batch().to_list()
        if not batch:
            time.sleep(0.001)  # a server of object storage in this process needs the GIL
        numbers.extend(int.from_bytes(payload[:8], "little") for payload in batch)
    return numbers


def replayed(client: aeron.Aeron, recording_id: int, position: int, stream_id: int) -> list[int]:
    """Replays a recording from a position to its end, and returns the numbers of the messages."""
    with (
        aeron.connect_archive(client) as archive,
        archive.replay(recording_id, CHANNEL, stream_id, position=position) as subscription,
    ):
        return read_numbers(subscription, COUNT - position // 1024)


def segments(directory: Path, recording_id: int) -> list[int]:
    """Returns the start positions of the local segments of a recording."""
    names = [path.stem.split("-") for path in directory.glob("*.rec")]
    return sorted(int(base) for id, base in names if int(id) == recording_id)


def hide_manifest(directory: Path, bucket: Path, recording_id: int) -> Path:
    """Replaces the manifest of a recording by a pipe, and returns the pipe. An archive that starts does not know the
    copies of the recording before the other end of the pipe was opened."""
    (directory / f"archive-objects-{recording_id}.manifest").unlink()
    [remote] = bucket.rglob(f"{recording_id}-*/manifest.json")
    remote.rename(remote.with_name("manifest"))
    pipe = remote.with_name("pipe")
    os.mkfifo(pipe)
    remote.hardlink_to(pipe)
    return pipe


@contextmanager
def opened_at_end(pipe: Path) -> Iterator[None]:
    """Opens the pipe at the end of the block, so that the archive can end."""
    try:
        yield
    finally:
        os.close(os.open(pipe, os.O_RDWR))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    return tmp_path / "bucket"


def settings(url: str, **others: Any) -> dict[str, Any]:
    """Returns the settings of an archive that deletes each local segment file after it is copied."""
    return {**SETTINGS, "objects_url": url, "objects_delete_local": True} | others


def has_only_last_segment(directory: Path) -> bool:
    return segments(directory, 0) == [4 * SEGMENT]


def test_copied_segments_are_deleted_and_a_replay_fetches_them_back(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())):
        id = record(client, stream_id)
        eventually(lambda: segments(directory, id) == [4 * SEGMENT])
        assert counter(client, COPIED) == 4
        assert counter(client, FREED) == 4 * SEGMENT
        [stat] = json.loads(run("archive", "stat", "--dir", driver.dir, "--json", "-u", "10").stdout)["recordings"]
        assert stat["copies"] == {
            "start_position": 0,
            "local_start_position": 4 * SEGMENT,
            "copied_position": 4 * SEGMENT,
        }
        shown = run("archive", "stat", "--dir", driver.dir, "--once", "-u", "10").stdout.splitlines()
        assert "copied from  copied to" in shown[2]
        assert f"            0    {4 * SEGMENT:,}  " in shown[3]
        with aeron.connect_archive(client) as archive:
            assert archive.get_start_position(id) == 4 * SEGMENT
            copied = aeron.CopiedRange(id, 0, 4 * SEGMENT, 4 * SEGMENT)
            assert archive.list_copied_ranges() == [copied]
            assert archive.list_copied_ranges(recording_id=id) == [copied]
            assert archive.list_copied_ranges(recording_id=id + 1) == []
        assert replayed(client, id, 0, stream_id + 1) == list(range(COUNT))
        assert replayed(client, id, SEGMENT + 1024, stream_id + 2) == list(range(65, COUNT))
        assert counter(client, FETCHED) == 4 * SEGMENT
        assert counter(client, FAILURES) == 0
    # The next archive finds the copies again. At its start it deletes the segments that the first archive had fetched.
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())):
        assert not list(directory.glob("*.fetched"))
        assert replayed(client, id, 0, stream_id + 3) == list(range(COUNT))
        # Only segment files are deleted. The arrival times are in the index files, which stay on the disk.
        table = pa.table(aeron.read_recording(directory, id))
        assert table["timestamp"].null_count == 0
        with aeron.connect_archive(client) as archive:
            archive.purge_recording(id)
            eventually(lambda: not list(directory.glob("*.idx")) and not list(directory.glob("*.rec")))
            assert archive.list_copied_ranges() == []
    assert len(list(bucket.rglob("*.rec"))) == 4
    assert len(list(bucket.rglob("manifest.json"))) == 1


def test_by_default_no_local_file_is_deleted(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    with aeron.Archive(directory, driver=driver, objects_url=bucket.as_uri(), **SETTINGS):
        id = record(client, stream_id)
        eventually(lambda: counter(client, COPIED) == 4)
        with aeron.connect_archive(client) as archive:
            eventually(lambda: archive.list_copied_ranges() == [aeron.CopiedRange(id, 0, 0, 4 * SEGMENT)])
        time.sleep(0.1)
        assert segments(directory, id) == [number * SEGMENT for number in range(5)]
        before = {path.name: path.stat().st_mtime_ns for path in bucket.rglob("*.rec")}
    # The manifest has the modification time of each copied file. The times are still the same, so a restarted archive
    # copies nothing again.
    with aeron.Archive(directory, driver=driver, objects_url=bucket.as_uri(), **SETTINGS):
        with aeron.connect_archive(client) as archive:
            eventually(lambda: archive.list_copied_ranges() == [aeron.CopiedRange(id, 0, 0, 4 * SEGMENT)])
        time.sleep(0.2)
        assert counter(client, COPIED) == 0
    assert {path.name: path.stat().st_mtime_ns for path in bucket.rglob("*.rec")} == before


def test_the_newest_bytes_stay_on_the_disk(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    kept = settings(bucket.as_uri(), objects_local_bytes=2 * SEGMENT)
    with aeron.Archive(directory, driver=driver, **kept):
        id = record(client, stream_id)
        eventually(lambda: segments(directory, id) == [2 * SEGMENT, 3 * SEGMENT, 4 * SEGMENT])
        assert replayed(client, id, 0, stream_id + 1) == list(range(COUNT))


@pytest.mark.parametrize("deletes", ["objects_delete_local", "retention"])
def test_copied_segments_that_a_named_reader_needs_are_deleted_and_the_reader_continues_in_the_copies(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path, deletes: str
) -> None:
    position = 2 * SEGMENT + 1024
    with (
        aeron.Archive(directory, driver=driver, objects_url=bucket.as_uri(), **SETTINGS),
        aeron.connect_archive(client) as archive,
    ):
        id = record(client, stream_id)
        eventually(lambda: counter(client, COPIED) == 4)
        archive.commit_reader(id, "bars", position)
    is_local_deleted = deletes == "objects_delete_local"
    kept = settings(bucket.as_uri(), objects_delete_local=is_local_deleted)
    with aeron.Archive(directory, driver=driver, **kept), aeron.connect_archive(client) as archive:
        if not is_local_deleted:
            archive.set_retention(recording_id=id, max_bytes=SEGMENT)
        eventually(lambda: segments(directory, id) == [4 * SEGMENT])
        with archive.follow(id, reader="bars") as follower:
            batch = next(follower.batches(timeout=10)).to_list()
        assert batch[0] == message(position // 1024)


def test_a_replay_of_copies_holds_no_local_segment_and_continues_with_their_copies(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    with (
        aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())),
        aeron.connect_archive(client) as archive,
    ):
        publication = archive.add_recorded_exclusive_publication(CHANNEL, stream_id)
        publish(publication, range(COUNT))
        eventually(lambda: segments(directory, 0) == [4 * SEGMENT])
        # Until it is polled, the replay does not go beyond the first segments: its window is half a term.
        with archive.replay(0, CHANNEL, stream_id + 1, position=0) as replay:
            replay.wait_connected(timeout=5)
            publish(publication, range(COUNT, 2 * COUNT))
            eventually(lambda: segments(directory, 0) == [9 * SEGMENT])
            assert read_numbers(replay, 2 * COUNT) == list(range(2 * COUNT))


def test_a_replay_of_a_local_segment_holds_it(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    kept = settings(bucket.as_uri(), objects_local_bytes=2 * SEGMENT)
    with aeron.Archive(directory, driver=driver, **kept), aeron.connect_archive(client) as archive:
        publication = archive.add_recorded_exclusive_publication(CHANNEL, stream_id)
        publish(publication, range(COUNT))
        eventually(lambda: segments(directory, 0) == [2 * SEGMENT, 3 * SEGMENT, 4 * SEGMENT])
        with archive.replay(0, CHANNEL, stream_id + 1, position=2 * SEGMENT) as replay:
            replay.wait_connected(timeout=5)
            publish(publication, range(COUNT, 2 * COUNT))
            eventually(lambda: counter(client, COPIED) == 9)
            time.sleep(0.2)
            # The replay has sent one segment: a block may end beyond the window.
            assert segments(directory, 0)[0] == 3 * SEGMENT
            assert read_numbers(replay, 2 * COUNT - 128) == list(range(128, 2 * COUNT))
        eventually(lambda: segments(directory, 0)[0] == 7 * SEGMENT)


def test_migrated_segments_are_copied_for_their_new_recording(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    with (
        aeron.Archive(directory, driver=driver, objects_url=bucket.as_uri(), **SETTINGS),
        aeron.connect_archive(client) as archive,
    ):
        first = record(client, stream_id, count=4 * 64)
        recording = archive.list_recording(first)
        assert recording is not None
        assert recording.stop_position == 4 * SEGMENT
        channel = aeron.ChannelUriBuilder.parse(CHANNEL)
        channel.initial_position(4 * SEGMENT, recording.initial_term_id, recording.term_buffer_length)
        publication = archive.add_recorded_exclusive_publication(channel, stream_id)
        position = publish(publication, range(256, 256 + COUNT))
        second = archive.wait_recorded(publication, position, timeout=5).recording_id
        archive.stop_recording(publication)
        eventually(lambda: archive.get_stop_position(second) == position)
        copies = [aeron.CopiedRange(first, 0, 0, 4 * SEGMENT)]
        copies += [aeron.CopiedRange(second, 4 * SEGMENT, 4 * SEGMENT, 8 * SEGMENT)]
        eventually(lambda: archive.list_copied_ranges() == copies)

        # The recorder has created the next segment at the end of the last one. Nothing was recorded into it.
        (directory / f"{first}-{4 * SEGMENT}.rec").unlink()
        assert archive.migrate_segments(second, first) == 5

        eventually(lambda: archive.list_copied_ranges() == [aeron.CopiedRange(first, 0, 0, 8 * SEGMENT)])
        archive.purge_recording(second)
    # Every message is read from the copies, after the local files are deleted.
    with (
        aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())),
        aeron.connect_archive(client) as archive,
    ):
        eventually(lambda: segments(directory, first) == [8 * SEGMENT])
        with archive.replay(first, CHANNEL, stream_id + 1, position=0) as replay:
            numbers = read_numbers(replay, 256 + COUNT)
        assert numbers == list(range(256 + COUNT))


def test_readers_of_the_directory_fetch_copies_too(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())):
        id = record(client, stream_id)
        eventually(lambda: segments(directory, id) == [4 * SEGMENT])
    rows = aeron.read_recording(directory, id)
    assert rows.from_position == 0
    table = pa.table(rows)
    assert [int.from_bytes(value[:8], "little") for value in table["value"].to_pylist()] == list(range(COUNT))
    # Only segment files are deleted. The arrival times are in the index files, which stay on the disk.
    assert table["timestamp"].null_count == 0
    listed = run("archive", "list", directory)
    header, line = listed.stdout.splitlines()[0], listed.stdout.splitlines()[-1]
    assert header.split()[-4:] == ["copied", "from", "copied", "to"]
    assert line.split()[-2:] == ["0", f"{4 * SEGMENT:,}"]
    [entry] = json.loads(run("archive", "list", directory, "--json").stdout)
    positions = {"start_position": 0, "local_start_position": 4 * SEGMENT, "copied_position": 4 * SEGMENT}
    assert entry["copies"] == positions
    described = run("archive", "describe", directory).stdout
    assert f"[CopiedRange]:recordingId={id}|startPosition=0|localStartPosition={4 * SEGMENT}" in described
    # After the copies are deleted, a read raises an error that names the missing copy.
    for path in bucket.rglob("*.rec"):
        path.unlink()
    with pytest.raises(aeron.ArchiveError, match=r"object storage: .* not found"):
        list(aeron.read_recording(directory, id))


def test_a_time_is_found_in_copied_segments(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())):
        began = datetime.now(UTC)
        id = record(client, stream_id)
        eventually(lambda: segments(directory, id) == [4 * SEGMENT])
        with aeron.connect_archive(client) as archive:
            found = archive.find_position(id, since=began)
        assert (found.position, found.is_approximate) == (0, False)


def test_a_store_that_cannot_be_reached_deletes_nothing_and_is_reported(
    driver: aeron.MediaDriver,
    client: aeron.Aeron,
    stream_id: int,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-for-logs")
    away = settings("s3://bucket/prefix", objects_endpoint="http://127.0.0.1:9", objects_timeout_ns=300_000_000)
    with aeron.Archive(directory, driver=driver, **away):
        id = record(client, stream_id)
        eventually(lambda: counter(client, FAILURES) >= 2, timeout=20)
        assert segments(directory, id) == [number * SEGMENT for number in range(5)]
        text = run("archive", "errors", directory).stdout
        assert f"object storage: copy of {id}-0.rec: " in text
        assert "the file stays, and the next attempt is in" in text
        assert "not-for-logs" not in text
        with aeron.connect_archive(client) as archive:
            assert archive.list_copied_ranges() == []


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("bucket", "objects_url=bucket is not a URL"),
        ("s3://key:secret@[", "objects_url=... is not a URL"),
        ("ftp://host/directory", "has the scheme ftp: use s3://bucket/prefix or file:///directory"),
        ("s3://key:secret@bucket", "contains credentials: set AWS_ACCESS_KEY_ID"),
        ("s3://bucket?x=1", "has a query or a fragment"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused(
    driver: aeron.MediaDriver, directory: Path, url: str, reason: str
) -> None:
    with pytest.raises(aeron.ConfigurationError) as refused:
        aeron.Archive(directory, driver=driver, **settings(url))
    assert reason in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_damaged_copy_fails_the_replay_and_not_the_archive(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())):
        id = record(client, stream_id)
        eventually(lambda: segments(directory, id) == [4 * SEGMENT])
        first = min(bucket.rglob("*.rec"))
        sound = first.read_bytes()
        first.write_bytes(sound[:100] + b"x" + sound[101:])
        with (
            aeron.connect_archive(client) as archive,
            pytest.raises(aeron.ArchiveError, match=r"object storage: .* is damaged"),
        ):
            archive.replay(id, CHANNEL, stream_id + 1, position=0)
        assert replayed(client, id, SEGMENT, stream_id + 2) == list(range(64, COUNT))
        assert counter(client, FAILURES) >= 1
        first.write_bytes(sound)
        assert replayed(client, id, 0, stream_id + 3) == list(range(COUNT))


def test_lost_manifests_are_rebuilt_from_the_names_of_the_copies(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())):
        id = record(client, stream_id)
        eventually(lambda: segments(directory, id) == [4 * SEGMENT])
    for lost in (directory.glob("*.manifest"), bucket.rglob("manifest.json")):
        for path in lost:
            path.unlink()
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())):
        with aeron.connect_archive(client) as archive:
            copied = [aeron.CopiedRange(id, 0, 4 * SEGMENT, 4 * SEGMENT)]
            eventually(lambda: archive.list_copied_ranges() == copied)
        assert replayed(client, id, 0, stream_id + 1) == list(range(COUNT))
        eventually(lambda: len(list(bucket.rglob("manifest.json"))) == 1)


def test_requests_right_after_the_start_wait_until_the_copies_are_known(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    began = datetime.now(UTC)
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())):
        id = record(client, stream_id)
        eventually(lambda: segments(directory, id) == [4 * SEGMENT])
    [local], [remote] = directory.glob("*.manifest"), bucket.rglob("manifest.json")
    local.unlink()
    # The archive cannot open the manifest before the other end of this pipe was opened.
    manifest, pipe = remote.with_name("manifest"), remote.with_name("pipe")
    remote.rename(manifest)
    os.mkfifo(pipe)
    remote.hardlink_to(pipe)
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())), aeron.connect_archive(client) as archive:
        ranges = archive.async_list_copied_ranges()
        found = archive.async_find_position(id, since=began)
        replay = archive.async_replay(id, CHANNEL, stream_id + 1, position=0)
        time.sleep(0.2)
        assert not any(pending.done() for pending in (ranges, found, replay))
        # The pipe has no bytes, so the first attempt fails.
        manifest.replace(remote)
        os.close(os.open(pipe, os.O_WRONLY))
        assert ranges.result(5) == [aeron.CopiedRange(id, 0, 4 * SEGMENT, 4 * SEGMENT)]
        assert found.result(5).position == 0
        with replay.result(5) as subscription:
            assert next(subscription.batches(timeout=5)).to_list()[0] == message(0)


def test_a_list_of_all_copies_is_refused_while_those_of_one_recording_are_unknown(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())):
        known, unknown = (record(client, stream_id + number) for number in range(2))
        eventually(lambda: segments(directory, known) == segments(directory, unknown) == [4 * SEGMENT])
    pipe = hide_manifest(directory, bucket, unknown)
    with (
        aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())),
        aeron.connect_archive(client) as archive,
        opened_at_end(pipe),
    ):
        text = f"the copies of recording {unknown} in object storage are not known yet: "
        with pytest.raises(aeron.ArchiveRefusedError, match=f"{text}list the copies of a single recording"):
            archive.list_copied_ranges()
        with pytest.raises(aeron.ArchiveRefusedError, match=f"{text}try again later"):
            archive.list_copied_ranges(recording_id=unknown)
        copied = aeron.CopiedRange(known, 0, 4 * SEGMENT, 4 * SEGMENT)
        assert archive.list_copied_ranges(recording_id=known) == [copied]
        stat = "archive", "stat", "--dir", driver.dir, "-u", "10"
        shown = json.loads(run(*stat, "--json").stdout)["recordings"]
        copies = {each["recording_id"]: each["copies"] for each in shown}
        ends = {"start_position": 0, "local_start_position": 4 * SEGMENT, "copied_position": 4 * SEGMENT}
        assert copies == {known: ends, unknown: None}
        assert " unknown " in run(*stat, "--once").stdout


def test_a_replay_from_the_earliest_position_begins_with_the_copies(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())), aeron.connect_archive(client) as archive:
        id = record(client, stream_id)
        eventually(lambda: segments(directory, id) == [4 * SEGMENT])
        arguments: dict[str, Any] = {"length": aeron.REPLAY_ALL_AND_STOP}
        firsts = []
        for number, position in enumerate(("earliest", None)):
            with archive.replay(id, CHANNEL, stream_id + 1 + number, position=position, **arguments) as replay:
                firsts.append(next(replay.batches(timeout=10)).to_list()[0][:8])
        assert firsts == [message(0)[:8], message(4 * 64)[:8]]
        with pytest.raises(aeron.InvalidArgumentError, match="position='latest' is not a number of bytes or 'ear"):
            archive.replay(id, position="latest")  # type: ignore[arg-type]
        with pytest.raises(aeron.InvalidArgumentError, match="choose one begin"):
            archive.replay(id, position="earliest", since=datetime.now(UTC))
    with aeron.Archive(directory.with_name("other"), driver=driver, **SETTINGS):
        id = record(client, stream_id + 4, 1)
        with (
            aeron.connect_archive(client) as archive,
            archive.replay(id, CHANNEL, stream_id + 3, position="earliest") as replay,
        ):
            assert next(replay.batches(timeout=10)).to_list() == [message(0)]


@pytest.mark.parametrize("change", [(b'"version":1', b'"version":2'), (b'"stream_id"', b'"stream_iD"')])
def test_manifests_that_cannot_be_used_are_reported_and_kept(
    driver: aeron.MediaDriver,
    client: aeron.Aeron,
    stream_id: int,
    directory: Path,
    bucket: Path,
    change: tuple[bytes, bytes],
) -> None:
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())):
        id = record(client, stream_id)
        eventually(lambda: segments(directory, id) == [4 * SEGMENT])
    [local], [remote] = directory.glob("*.manifest"), bucket.rglob("manifest.json")
    changed = local.read_bytes().replace(*change)
    for manifest in (local, remote):
        assert manifest.read_bytes() != changed
        manifest.write_bytes(changed)
    with pytest.raises(aeron.ArchiveError, match=f"{local.name} has .*: start the archive, which makes it again"):
        aeron.read_recording(directory, id)
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())):
        assert replayed(client, id, 0, stream_id + 1) == list(range(COUNT))
        eventually(lambda: local.read_bytes() != changed and remote.read_bytes() != changed)
        for manifest in (local, remote):
            [kept] = manifest.parent.glob(f"{manifest.name}.*.unreadable")
            assert kept.read_bytes() == changed
            assert f"{manifest.name} has " in run("archive", "errors", directory).stdout
            assert kept.name in run("archive", "errors", directory).stdout


def test_objects_without_frames_of_the_recording_are_not_used(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())):
        id = record(client, stream_id)
        eventually(lambda: segments(directory, id) == [4 * SEGMENT])
    for lost in (directory.glob("*.manifest"), bucket.rglob("manifest.json")):
        for path in lost:
            path.unlink()
    second = sorted(bucket.rglob("*.rec"))[1]
    wrong = second.with_name(f"{5:020}-5-00000000.rec")
    for path in (second, wrong):
        path.write_bytes(bytes(SEGMENT))
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())), aeron.connect_archive(client) as archive:
        assert archive.list_copied_ranges() == [aeron.CopiedRange(id, 2 * SEGMENT, 4 * SEGMENT, 4 * SEGMENT)]
        assert replayed(client, id, 2 * SEGMENT, stream_id + 1) == list(range(128, COUNT))
        errors = run("archive", "errors", directory).stdout
        assert f"{second.name} is not a segment of recording {id}: " in errors
        assert f"{wrong.name} is not a segment of recording {id}: its name has no positions of a segment" in errors
    assert second.exists()
    assert wrong.exists()


def test_a_bucket_of_an_earlier_archive_does_not_mix_with_a_new_one(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, tmp_path: Path, bucket: Path
) -> None:
    for number in range(2):
        directory = tmp_path / f"archive-{number}"
        with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())):
            assert record(client, stream_id + number) == 0
            eventually(partial(has_only_last_segment, directory))
            assert replayed(client, 0, 0, stream_id + 2 + number) == list(range(COUNT))
        assert len(list(bucket.iterdir())) == number + 1


def test_retention_waits_for_the_copies_and_leaves_them(
    driver: aeron.MediaDriver,
    client: aeron.Aeron,
    stream_id: int,
    directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away = {**SETTINGS, "objects_url": "s3://bucket", "objects_endpoint": "http://127.0.0.1:9"}
    with aeron.Archive(directory, driver=driver, objects_timeout_ns=300_000_000, **away):
        id = record(client, stream_id)
        with aeron.connect_archive(client) as archive:
            archive.set_retention(recording_id=id, max_bytes=SEGMENT)
            [outcome] = archive.apply_retention(dry_run=True)
            assert (outcome.held_by, outcome.new_start_position) == ("COPY", 0)
            assert archive.apply_retention() == [outcome]
        assert len(segments(directory, id)) == 5
    bucket = tmp_path / "bucket"
    with aeron.Archive(directory, driver=driver, objects_url=bucket.as_uri(), **SETTINGS):
        eventually(lambda: segments(directory, id) == [4 * SEGMENT])
        assert len(list(bucket.rglob("*.rec"))) == 4
        assert replayed(client, id, 0, stream_id + 1) == list(range(COUNT))


def test_retention_deletes_no_segment_that_has_changed_since_its_copy(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    with (
        aeron.Archive(directory, driver=driver, objects_url=bucket.as_uri(), **SETTINGS),
        aeron.connect_archive(client) as archive,
    ):
        id = record(client, stream_id)
        eventually(lambda: counter(client, COPIED) == 4)
        first = directory / f"{id}-0.rec"
        changed = bytearray(first.read_bytes())
        changed[100] ^= 1
        first.write_bytes(changed)
        archive.set_retention(recording_id=id, max_bytes=SEGMENT)
        eventually(lambda: segments(directory, id) == [4 * SEGMENT])
        assert bytes(changed) in [path.read_bytes() for path in bucket.rglob("*.rec")]


def test_a_recording_that_is_truncated_and_extended_is_copied_again(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    with (
        aeron.Archive(directory, driver=driver, objects_url=bucket.as_uri(), **SETTINGS),
        aeron.connect_archive(client) as archive,
    ):
        id = record(client, stream_id)
        eventually(lambda: counter(client, COPIED) == 4)
        archive.truncate_recording(id, 2 * SEGMENT + 1024)
        eventually(lambda: archive.list_copied_ranges() == [aeron.CopiedRange(id, 0, 0, 2 * SEGMENT)])
        extend(archive, client, id)
        eventually(lambda: archive.list_copied_ranges() == [aeron.CopiedRange(id, 0, 0, 4 * SEGMENT)])


def extend(archive: aeron.AeronArchive, client: aeron.Aeron, recording_id: int) -> None:
    """Extends a stopped recording with messages up to the number of :func:`record`."""
    recording = archive.list_recording(recording_id)
    assert recording is not None
    assert recording.stop_position is not None
    uri = aeron.ChannelUriBuilder("ipc", term_length=recording.term_buffer_length)
    uri.initial_position(recording.stop_position, recording.initial_term_id, recording.term_buffer_length)
    with client.add_exclusive_publication(str(uri), recording.stream_id) as publication:
        archive.extend_recording(recording_id, f"{CHANNEL}?session-id={publication.session_id}", recording.stream_id)
        for number in range(recording.stop_position // 1024, COUNT):
            position = publication.publish(message(number), timeout=5)
        archive.wait_recorded(publication, position, timeout=5)


def test_a_refused_truncation_keeps_the_copies(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, directory: Path, bucket: Path
) -> None:
    with (
        aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())),
        aeron.connect_archive(client) as archive,
    ):
        id = record(client, stream_id)
        eventually(lambda: segments(directory, id) == [4 * SEGMENT])
        with pytest.raises(aeron.ArchiveError):
            archive.truncate_recording(id, SEGMENT)
        assert archive.list_copied_ranges() == [aeron.CopiedRange(id, 0, 4 * SEGMENT, 4 * SEGMENT)]
        assert replayed(client, id, 0, stream_id + 1) == list(range(COUNT))


# ---- kills -----------------------------------------------------------------------------------------------------------

ARCHIVE = """
import sys, threading, aeron
directory, driver, url = sys.argv[1:]
with aeron.Archive(directory, driver=driver, segment_file_length=65536, low_storage_space_threshold=0,
                   objects_url=url, objects_delete_local=True):
    print("ready", flush=True)
    threading.Event().wait()
"""


@pytest.fixture
def launch(driver: aeron.MediaDriver, directory: Path, bucket: Path, tmp_path: Path) -> Iterator[Any]:
    """Yields a function that starts an archive in a process with additional environment variables."""
    processes: list[subprocess.Popen[str]] = []

    def start(**environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", ARCHIVE, str(directory), str(driver.dir), bucket.as_uri()],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_a_disk_without_room_for_a_fetched_segment_fails_the_replay(
    client: aeron.Aeron, driver: aeron.MediaDriver, stream_id: int, directory: Path, bucket: Path, launch: Any
) -> None:
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())):
        id = record(client, stream_id)
        eventually(lambda: segments(directory, id) == [4 * SEGMENT])
    process = launch()
    # The limit for the length of files simulates the full disk: the archive cannot write more than half of a fetched
    # segment.
    no_limit = resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (SEGMENT // 2, resource.RLIM_INFINITY))
    with aeron.connect_archive(client) as archive:
        with pytest.raises(aeron.ArchiveError, match=rf"object storage: {id}-0.fetching: File too large"):
            archive.replay(id, CHANNEL, stream_id + 1, position=0)
        assert not [path for path in directory.iterdir() if "fetch" in path.suffix]
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, no_limit)
    assert replayed(client, id, 0, stream_id + 2) == list(range(COUNT))


@pytest.mark.skipif(not has_hooks(), reason="the module has no test hooks")
@pytest.mark.parametrize(
    "point",
    [
        "objects-put:1",
        "objects-put:3",
        "objects-read-back:1",
        "objects-manifest:1",
        "objects-start-moved:1",
        "objects-file-deleted:1",
    ],
)
def test_a_kill_at_each_point_loses_no_message(
    client: aeron.Aeron,
    driver: aeron.MediaDriver,
    stream_id: int,
    directory: Path,
    bucket: Path,
    tmp_path: Path,
    launch: Any,
    point: str,
) -> None:
    with aeron.Archive(directory, driver=driver, **SETTINGS):
        id = record(client, stream_id)
    reached = tmp_path / "reached"
    process = launch(**pause_at(f"{point}:{reached}"))
    eventually(reached.exists)
    process.send_signal(signal.SIGKILL)
    process.wait()
    left = len(segments(directory, id))
    objects = len(list(bucket.rglob("*.rec")))
    print(f"killed at {point}: {left} local segments, {objects} copies")
    assert left + objects >= 5
    # At the point `objects-put:3`, the local file of the first copy may already be deleted. At all other points, the
    # number of local files is known.
    if point.endswith(":1"):
        assert (left == 5) == ("deleted" not in point)
    with aeron.Archive(directory, driver=driver, **settings(bucket.as_uri())):
        eventually(lambda: segments(directory, id) == [4 * SEGMENT])
        assert replayed(client, id, 0, stream_id + 1) == list(range(COUNT))
        assert counter(client, FAILURES) == 0
