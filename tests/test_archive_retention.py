"""Tests of retention, named readers, names and metadata of recordings. The archive runs in this process."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import eventually

import aeron
from commands import run

CHANNEL = "aeron:ipc?term-length=64k"
SEGMENT = 64 * 1024
SETTINGS = {"segment_file_length": SEGMENT, "low_storage_space_threshold": 0}
MESSAGE = bytes(992)
"""A message with a frame of 1024 bytes. A segment contains 64 such frames."""

FREED_BYTES, FREED_SEGMENTS, EXPIRED_READERS = 20_101, 20_102, 20_103


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def server(driver: aeron.MediaDriver, directory: Path) -> Iterator[aeron.Archive]:
    with aeron.Archive(directory, driver=driver, **SETTINGS) as server:
        yield server


@pytest.fixture
def archive(server: aeron.Archive, client: aeron.Aeron) -> Iterator[aeron.AeronArchive]:
    with aeron.connect_archive(client) as archive:
        yield archive


class Stream:
    """A recorded publication."""

    def __init__(self, archive: aeron.AeronArchive, stream_id: int) -> None:
        self.archive = archive
        self.publication = archive.add_recorded_exclusive_publication(CHANNEL, stream_id)
        self.recording_id = self.record(1).recording_id

    def record(self, count: int) -> aeron.Recording:
        for _ in range(count):
            position = self.publication.publish(MESSAGE, timeout=5)
        return self.archive.wait_recorded(self.publication, position, timeout=5)

    def stop(self) -> int:
        self.archive.stop_recording(self.publication)
        self.publication.close()
        eventually(lambda: self.archive.get_stop_position(self.recording_id) is not None)
        return self.recording_id

    @property
    def start(self) -> int:
        return self.archive.get_start_position(self.recording_id)


def segments(directory: Path, recording_id: int) -> list[int]:
    names = [path.stem for path in directory.glob(f"{recording_id}-*.rec")]
    return sorted(int(name.partition("-")[2]) for name in names)


def move_times_to_a_month_ago(directory: Path, *, only_stops: bool = False) -> None:
    """Changes the start and stop times in the catalog of an archive."""
    catalog = bytearray((directory / "archive.catalog").read_bytes())
    entry, month_ago = 32, int((time.time() - 30 * 86_400) * 1_000)
    while length := int.from_bytes(catalog[entry : entry + 4], "little"):
        for offset in (64,) if only_stops else (56, 64):
            catalog[entry + offset : entry + offset + 8] = month_ago.to_bytes(8, "little")
        entry += 32 + length
    (directory / "archive.catalog").write_bytes(catalog)


def counter(archive: aeron.AeronArchive, client: aeron.Aeron, type_id: int) -> int:
    """Returns the value of the archive's counter. Counters of archives that have just closed may still exist."""
    of_archive = archive.archive_id.to_bytes(8, "little", signed=True)
    [found] = [each for each in client.counters_reader if each.type_id == type_id and each.key.startswith(of_archive)]
    return found.value


# ---- retention -------------------------------------------------------------------------------------------------------


def test_without_a_policy_nothing_is_deleted(
    archive: aeron.AeronArchive, client: aeron.Aeron, directory: Path, stream_id: int
) -> None:
    stream = Stream(archive, stream_id)
    stream.record(5 * 64)
    assert archive.apply_retention() == []
    assert stream.start == 0
    assert segments(directory, stream.recording_id) == [number * SEGMENT for number in range(6)]
    assert not (directory / "archive-retention.log").exists()
    assert counter(archive, client, FREED_BYTES) == 0


def test_each_new_segment_starts_the_deletion_of_the_oldest_ones_which_is_counted_and_logged(
    archive: aeron.AeronArchive, client: aeron.Aeron, directory: Path, stream_id: int
) -> None:
    assert archive.set_retention(stream_id=stream_id, max_bytes=3 * SEGMENT) is False
    stream = Stream(archive, stream_id)
    stream.record(6 * 64)
    eventually(lambda: segments(directory, stream.recording_id) == [4 * SEGMENT, 5 * SEGMENT, 6 * SEGMENT])
    assert stream.start == 4 * SEGMENT
    assert counter(archive, client, FREED_BYTES) == 4 * SEGMENT
    assert counter(archive, client, FREED_SEGMENTS) == 4
    log = (directory / "archive-retention.log").read_text()
    assert f"recording {stream.recording_id}: freed " in log
    assert not [path for path in directory.glob("*.idx") if int(path.stem.rpartition("-")[2]) < stream.start]


def test_a_policy_limits_all_recordings_of_its_stream_and_channel_together_and_deletes_the_oldest(
    archive: aeron.AeronArchive, directory: Path, stream_id: int
) -> None:
    first = Stream(archive, stream_id)
    first.record(2 * 64)
    old = first.stop()
    other = Stream(archive, stream_id + 1)
    other.record(64)
    second = Stream(archive, stream_id)
    second.record(2 * 64)
    archive.set_retention(stream_id=stream_id, channel="ipc", max_bytes=3 * SEGMENT)
    eventually(lambda: archive.list_recording(old) is None or archive.get_start_position(old) > 0)
    eventually(lambda: len(segments(directory, old) + segments(directory, second.recording_id)) <= 4)
    assert second.start == 0
    assert other.start == 0
    # The oldest recording is deleted as a whole if its last segment is the oldest of all segments.
    second.record(2 * 64)
    eventually(lambda: archive.list_recording(old) is None)
    eventually(lambda: segments(directory, old) == [])
    eventually(lambda: archive.get_max_recorded_position(second.recording_id) - second.start <= 3 * SEGMENT)


def test_a_dry_run_reports_the_deletions_and_deletes_nothing(
    archive: aeron.AeronArchive, directory: Path, stream_id: int
) -> None:
    stream = Stream(archive, stream_id)
    stream.record(3 * 64)
    id = stream.recording_id
    archive.commit_reader(id, "bars", SEGMENT + 1024)
    archive.set_retention(recording_id=id, max_age_ms=300)
    assert archive.apply_retention(dry_run=True) == []
    time.sleep(0.4)
    expected = [aeron.RetentionOutcome(id, 0, SEGMENT, 3 * SEGMENT, False, "READER", "bars")]
    assert archive.apply_retention(dry_run=True) == expected
    assert segments(directory, id) == [number * SEGMENT for number in range(4)]
    assert archive.apply_retention(recording_id=id) == expected
    assert stream.start == SEGMENT


def test_retention_never_deletes_the_segments_that_a_replay_reads(
    archive: aeron.AeronArchive, directory: Path, stream_id: int
) -> None:
    stream = Stream(archive, stream_id)
    stream.record(3 * 64)
    id = stream.recording_id
    with archive.replay(id, length=aeron.REPLAY_ALL_AND_FOLLOW) as replay:
        # The subscriber has not polled yet, so the replay stays in one of the first segments.
        eventually(lambda: replay.is_connected)
        archive.set_retention(recording_id=id, max_bytes=0)
        [outcome] = archive.apply_retention()
        assert (outcome.held_by, outcome.allowed_position) == ("REPLAY", 3 * SEGMENT)
        assert stream.start < 3 * SEGMENT
        batches = replay.batches(timeout=5)
        count = 0
        while count < 3 * 64 + 1:
            count += len(next(batches))
    eventually(lambda: archive.apply_retention() == [] and stream.start == 3 * SEGMENT)


def test_retention_never_deletes_data_that_a_named_reader_has_not_committed(
    archive: aeron.AeronArchive, directory: Path, stream_id: int
) -> None:
    stream = Stream(archive, stream_id)
    archive.commit_reader(stream.recording_id, "bars", 1024)
    archive.set_retention(stream_id=stream_id, max_bytes=0)
    stream.record(4 * 64)
    [outcome] = archive.apply_retention()
    assert (outcome.held_by, outcome.reader, outcome.new_start_position) == ("READER", "bars", 0)
    assert stream.start == 0
    archive.commit_reader(stream.recording_id, "bars", 2 * SEGMENT + 1024)
    archive.apply_retention()
    assert stream.start == 2 * SEGMENT
    assert archive.remove_reader(stream.recording_id, "bars") is True
    archive.apply_retention()
    assert stream.start == 4 * SEGMENT
    eventually(lambda: segments(directory, stream.recording_id) == [4 * SEGMENT])


def test_a_named_reader_expires_only_by_its_own_limits_and_this_is_counted_and_logged(
    archive: aeron.AeronArchive, client: aeron.Aeron, directory: Path, stream_id: int
) -> None:
    stream = Stream(archive, stream_id)
    archive.commit_reader(stream.recording_id, "slow", 0, max_lag_bytes=SEGMENT)
    archive.commit_reader(stream.recording_id, "absent", 0, max_age_ms=100)
    archive.commit_reader(stream.recording_id, "patient", 0)
    time.sleep(0.15)
    stream.record(2 * 64)
    archive.apply_retention()
    assert [reader.name for reader in archive.list_readers()] == ["patient"]
    assert counter(archive, client, EXPIRED_READERS) == 2
    log = (directory / "archive-retention.log").read_text()
    assert 'reader "slow" at position 0 expired: lag ' in log
    assert 'reader "absent" at position 0 expired: no commit for ' in log


def test_data_above_the_maximum_age_is_deleted_and_old_stopped_recordings_are_deleted_as_a_whole(
    archive: aeron.AeronArchive, directory: Path, stream_id: int
) -> None:
    stopped = Stream(archive, stream_id)
    stopped.record(64)
    old = stopped.stop()
    stream = Stream(archive, stream_id)
    stream.record(2 * 64)
    archive.set_retention(stream_id=stream_id, max_age_ms=60_000)
    assert archive.apply_retention() == []
    archive.set_retention(stream_id=stream_id, max_age_ms=10)
    time.sleep(0.05)
    archive.apply_retention()
    eventually(lambda: archive.list_recording(old) is None)
    eventually(lambda: stream.start == 2 * SEGMENT)
    eventually(lambda: segments(directory, old) == [] and segments(directory, stream.recording_id) == [2 * SEGMENT])


def test_after_a_start_with_a_doubtful_clock_deletion_by_age_waits_until_a_user_trusts_the_clock(
    driver: aeron.MediaDriver, client: aeron.Aeron, directory: Path, stream_id: int
) -> None:
    """12, sections 9.4, 9.6 and 9.8"""
    with (
        aeron.Archive(directory, driver=driver, **SETTINGS),
        aeron.connect_archive(client) as archive,
    ):
        stopped = [Stream(archive, stream_id + number).stop() for number in range(2)]
    move_times_to_a_month_ago(directory)
    with (
        aeron.Archive(directory, driver=driver, **SETTINGS) as server,
        aeron.connect_archive(client) as archive,
    ):
        archive.set_retention(max_age_ms=7 * 86_400_000)
        outcomes = archive.apply_retention(dry_run=True)
        assert [(each.recording_id, each.held_by, each.is_purge) for each in outcomes] == [
            (recording_id, "CLOCK", False) for recording_id in stopped
        ]
        assert [each.new_start_position for each in archive.apply_retention()] == [0, 0]
        assert len(archive.list_recordings()) == 2
        errors = run("archive", "errors", directory).stdout
        assert "retention waits, because the archive started 30 days after the last known time" in errors
        assert "2048 bytes of 2 recordings are too old" in errors
        log = (directory / "archive-retention.log").read_text()
        for recording_id in stopped:
            assert f"recording {recording_id}: the clock is not trusted" in log
        with pytest.raises(aeron.InvalidArgumentError, match="a dry run changes nothing"):
            archive.apply_retention(dry_run=True, trust_clock=True)

        arguments = ("archive", "retention", "--trust-clock", "--dir", driver.dir)
        refused = run(*arguments, input="n\n")
        assert refused.stderr.splitlines()[1].split() == [str(stopped[0]), "0", "1,024", "1,024"]
        assert "delete 2,048 bytes of 2 recordings" in refused.stderr
        assert len(archive.list_recordings()) == 2
        deleted = json.loads(run(*arguments, "--yes", "--json").stdout)
        assert [(each["recording_id"], each["is_purge"]) for each in deleted] == [(each, True) for each in stopped]
        assert len(archive.list_recordings()) == 0
        assert "the clock is trusted" in (directory / "archive-retention.log").read_text()
        server.close()


def test_a_wait_of_0_trusts_every_clock(
    driver: aeron.MediaDriver, client: aeron.Aeron, directory: Path, stream_id: int
) -> None:
    """12, section 9.6"""
    with (
        aeron.Archive(directory, driver=driver, **SETTINGS),
        aeron.connect_archive(client) as archive,
    ):
        recording_id = Stream(archive, stream_id).stop()
    move_times_to_a_month_ago(directory)
    with (
        aeron.Archive(directory, driver=driver, retention_clock_wait_ns=0, **SETTINGS),
        aeron.connect_archive(client) as archive,
    ):
        archive.set_retention(stream_id=stream_id, max_age_ms=7 * 86_400_000)
        eventually(lambda: not archive.list_recordings())
        log = (directory / "archive-retention.log").read_text()
        assert f"recording {recording_id}: freed 1024 bytes, positions 0 to 1024, the whole recording" in log


def test_a_recording_with_a_stop_time_before_its_start_is_listed_since_its_start(
    driver: aeron.MediaDriver, client: aeron.Aeron, directory: Path, stream_id: int
) -> None:
    """12, section 9.2"""
    with (
        aeron.Archive(directory, driver=driver, **SETTINGS),
        aeron.connect_archive(client) as archive,
    ):
        recording_id = Stream(archive, stream_id).stop()
    move_times_to_a_month_ago(directory, only_stops=True)
    listed = json.loads(run("archive", "list", directory, "--since", "1h", "--json").stdout)
    assert [each["recording_id"] for each in listed] == [recording_id]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--yes",), "give --trust-clock, or one of the commands set, list, apply"),
        (("--dir", "x", "list"), "options of list come after it"),
        (("--trust-clock", "apply"), "options of apply come after it"),
    ],
)
def test_options_of_the_group_of_retention_commands_are_checked(arguments: tuple[str, ...], text: str) -> None:
    result = run("archive", "retention", *arguments)
    assert (result.exit_code, text in result.stderr) == (1, True), result.stderr


def test_policies_are_listed_replaced_and_removed(archive: aeron.AeronArchive, stream_id: int) -> None:
    recording_id = Stream(archive, stream_id).stop()
    assert archive.set_retention(recording_id=recording_id, max_age_ms=5_000_000) is False
    assert archive.set_retention(stream_id=7, channel="aeron:udp", max_bytes=1) is False
    assert archive.set_retention(stream_id=7, channel="aeron:udp", max_bytes=2) is True
    assert archive.set_retention(max_bytes=2**60) is False
    policies = archive.list_retention()
    assert policies[0] == aeron.RetentionPolicy(recording_id, None, None, None, 5_000_000)
    assert set(policies[1:]) == {
        aeron.RetentionPolicy(None, 7, "aeron:udp", 2, None),
        aeron.RetentionPolicy(None, None, None, 2**60, None),
    }
    assert archive.set_retention(stream_id=7, channel="aeron:udp") is True
    assert archive.set_retention(stream_id=7, channel="aeron:udp") is False
    assert len(archive.list_retention()) == 2


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda it: it.set_retention(recording_id=99, max_bytes=1), aeron.UnknownRecordingError, "99"),
        (lambda it: it.set_retention(max_bytes=-2), aeron.ArchiveError, "maxBytes=-2 is negative"),
        (lambda it: it.set_retention(channel="x" * 2000, max_bytes=1), aeron.ArchiveError, "longer than 1024 bytes"),
        (lambda it: it.set_retention(recording_id=1, stream_id=2), aeron.InvalidArgumentError, "together"),
        (lambda it: it.apply_retention(recording_id=99), aeron.UnknownRecordingError, "99"),
        (lambda it: it.commit_reader(99, "a", 0), aeron.UnknownRecordingError, "99"),
        (lambda it: it.set_recording_name(99, "a"), aeron.UnknownRecordingError, "99"),
        (lambda it: it.set_recording_metadata(99, "text"), aeron.ArgumentTypeError, "metadata='text' is not bytes"),
    ],
)
def test_a_wrong_request_is_refused(
    archive: aeron.AeronArchive, call: Callable[[Any], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call(archive)


def test_retention_runs_before_a_recording_is_refused_because_of_low_space(
    driver: aeron.MediaDriver, client: aeron.Aeron, directory: Path, stream_id: int
) -> None:
    with aeron.Archive(directory, driver=driver, **SETTINGS), aeron.connect_archive(client) as archive:
        stream = Stream(archive, stream_id)
        stream.record(3 * 64)
        id = stream.stop()
        archive.commit_reader(id, "bars", 0, max_age_ms=1)
        archive.set_retention(recording_id=id, max_bytes=SEGMENT)
    full = SETTINGS | {"low_storage_space_threshold": 2**62}
    with aeron.Archive(directory, driver=driver, **full), aeron.connect_archive(client) as archive:
        # After a start, each reader has its whole maximum age of 1 ms again.
        time.sleep(0.05)
        with pytest.raises(aeron.ArchiveStorageSpaceError):
            archive.start_recording(CHANNEL, stream_id)
        # Before the refusal, a round of retention has removed the expired reader and then the segments.
        assert archive.list_readers() == []
        assert archive.get_start_position(id) == 3 * SEGMENT
        assert segments(directory, id) == [3 * SEGMENT]
        with pytest.raises(aeron.ArchiveStorageSpaceError):
            archive.extend_recording(id, CHANNEL, stream_id)


# ---- readers, names, metadata ----------------------------------------------------------------------------------------


def test_readers_names_and_metadata_exist_after_a_restart_of_the_archive(
    driver: aeron.MediaDriver, client: aeron.Aeron, directory: Path, stream_id: int
) -> None:
    with aeron.Archive(directory, driver=driver, **SETTINGS), aeron.connect_archive(client) as archive:
        id = Stream(archive, stream_id).stop()
        before = time.time_ns() // 1_000_000
        assert archive.commit_reader(id, "bars", 1024, max_age_ms=60_000, max_lag_bytes=2**40) == 1024
        archive.set_recording_name(id, "trades")
        archive.set_recording_metadata(id, b"\x00binary")
        archive.set_retention(max_bytes=2**40)
        with pytest.raises(aeron.InvalidPositionError, match="is not from 0 to 1024"):
            archive.commit_reader(id, "bars", 4096)
    with aeron.Archive(directory, driver=driver, **SETTINGS), aeron.connect_archive(client) as archive:
        [reader] = archive.list_readers(recording_id=id, name="bars")
        assert reader == aeron.NamedReader(id, "bars", 1024, reader.committed_timestamp_ms, 60_000, 2**40)
        # The archive's clock may differ by a duty cycle from the clock of this process.
        assert reader.committed_timestamp_ms >= before - 1_000
        assert archive.list_readers(name="other") == []
        info = aeron.RecordingInfo(id, "trades", b"\x00binary", None, None, None)
        assert archive.list_recording_info() == [info]
        assert archive.list_recording_info(name="trades") == [info]
        assert len(archive.list_retention()) == 1
        archive.purge_recording(id)
        assert archive.list_readers() == []
        assert archive.list_recording_info() == []


def test_each_call_has_an_asynchronous_form(archive: aeron.AeronArchive, stream_id: int) -> None:
    id = Stream(archive, stream_id).stop()

    async def run() -> None:
        assert await archive.async_commit_reader(id, "bars", 1024) == 1024
        assert [reader.name for reader in await archive.async_list_readers()] == ["bars"]
        assert await archive.async_remove_reader(id, "bars") is True
        assert await archive.async_remove_reader(id, "bars") is False
        await archive.async_set_recording_name(id, "trades")
        await archive.async_set_recording_metadata(id, b"x")
        assert len(await archive.async_list_recording_info(recording_id=id)) == 1
        assert await archive.async_set_retention(max_bytes=2**40) is False
        assert len(await archive.async_list_retention()) == 1
        assert await archive.async_apply_retention(dry_run=True) == []

    asyncio.run(run())


def test_a_user_with_the_role_read_may_commit_readers_but_not_set_retention(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path, directory: Path, stream_id: int
) -> None:
    users = tmp_path / "users.toml"
    users.touch(mode=0o600)
    entries = [("reader", "read"), ("writer", "record"), ("root", "admin")]
    users.write_text("".join(user(name, role) for name, role in entries))
    with aeron.Archive(directory, driver=driver, users_file=users, **SETTINGS):
        as_user = lambda name: aeron.connect_archive(client, credentials=f"{name}:secret".encode())  # noqa: E731
        with as_user("root") as archive:
            id = Stream(archive, stream_id).stop()
            archive.set_retention(max_bytes=2**40)
        with as_user("reader") as archive:
            assert archive.commit_reader(id, "bars", 1024) == 1024
            assert len(archive.list_readers()) == 1
            assert len(archive.list_retention()) == 1
        for name in ("reader", "writer"):
            with as_user(name) as archive:
                for call in (
                    lambda it: it.set_retention(max_bytes=0),
                    lambda it: it.set_retention(recording_id=id, max_bytes=0),
                    lambda it: it.apply_retention(),
                ):
                    with pytest.raises(aeron.UnauthorisedActionError):
                        call(archive)


def test_a_user_with_the_role_read_may_not_touch_readers_and_replays_of_others(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path, directory: Path, stream_id: int
) -> None:
    """07-29: also after a restart of the archive."""
    users = tmp_path / "users.toml"
    users.touch(mode=0o600)
    users.write_text(user("ann", "read") + user("bob", "read") + user("writer", "record"))
    as_user = lambda name: aeron.connect_archive(client, credentials=f"{name}:secret".encode())  # noqa: E731
    with aeron.Archive(directory, driver=driver, users_file=users, **SETTINGS), as_user("writer") as writer:
        stream = Stream(writer, stream_id)
        stream.record(3)
        id = stream.stop()
        with as_user("ann") as owner:
            owner.commit_reader(id, "bars", 1024)
    with aeron.Archive(directory, driver=driver, users_file=users, **SETTINGS), as_user("ann") as owner:
        replay = owner.start_replay(id, "aeron:ipc", stream_id + 1)
        with as_user("bob") as archive:
            for call in (
                lambda: archive.commit_reader(id, "bars", 2048),
                lambda: archive.remove_reader(id, "bars"),
                lambda: archive.stop_replay(replay),
            ):
                with pytest.raises(aeron.UnauthorisedActionError, match="another user"):
                    call()
            archive.stop_replay(12345)
        owner.commit_reader(id, "bars", 2048)
        with as_user("writer") as archive:
            archive.stop_replay(replay)
            assert archive.commit_reader(id, "bars", 3072) == 3072
        assert owner.remove_reader(id, "bars")


def user(name: str, role: str) -> str:
    """Returns the entry of a user in a users file. The user's secret is `secret`."""
    salt = bytes(16)
    key = hashlib.scrypt(b"secret", salt=salt, n=2**12, r=8, p=1, dklen=32)
    encoded = "$".join(base64.b64encode(part).decode().rstrip("=") for part in (salt, key))
    return f'[[user]]\nname = "{name}"\nrole = "{role}"\nsecret = {json.dumps(f"$scrypt$ln=12,r=8,p=1${encoded}")}\n'
