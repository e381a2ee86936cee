"""Tests of the archive server `Archive` in this process, with the client `AeronArchive`.

A number such as 07-26 is line 26 of the checklist in document 07 of the specification (`docs/spec`).
"""

from __future__ import annotations

import ast
import asyncio
import gc
import hashlib
import hmac
import pickle
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.conftest import eventually

import aeron
from ports import free_port

IPC = "aeron:ipc"
SMALL = {"segment_file_length": 128 * 1024, "low_storage_space_threshold": 0}


@pytest.fixture
def server(driver: aeron.MediaDriver, tmp_path: Path) -> Iterator[aeron.Archive]:
    with aeron.Archive(tmp_path / "archive", driver=driver, **SMALL) as server:
        yield server


@pytest.fixture
def archive(server: aeron.Archive, client: aeron.Aeron) -> Iterator[aeron.AeronArchive]:
    with aeron.connect_archive(client) as archive:
        yield archive


def record(archive: aeron.AeronArchive, stream_id: int, messages: list[bytes]) -> aeron.Recording:
    """Records the messages on a new publication, and stops the recording."""
    with archive.add_recorded_exclusive_publication(IPC, stream_id) as publication:
        for message in messages:
            position = publication.publish(message, timeout=5)
        recording = archive.wait_recorded(publication, position, timeout=5)
        archive.stop_recording(publication)
    return recording


def replayed(archive: aeron.AeronArchive, recording_id: int, **options: Any) -> list[bytes]:
    """Returns all messages of a stopped recording, or of a part of it."""
    with archive.replay(recording_id, length=options.pop("length", aeron.REPLAY_ALL_AND_STOP), **options) as replay:
        return [message for batch in replay.batches(timeout=10) for message in batch.to_list()]


# ---- record, list, replay --------------------------------------------------------------------------------------------


def test_a_publication_is_recorded_listed_and_replayed(tmp_path: Path) -> None:
    with (
        aeron.MediaDriver() as driver,
        aeron.Archive(tmp_path / "trades", driver=driver) as server,
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        assert archive.archive_id == server.archive_id
        assert archive.client is client
        publication = archive.add_recorded_publication("aeron:ipc", stream_id=1001)
        position = publication.publish(b"hello", timeout=1)
        recording = archive.wait_recorded(publication, position, timeout=5)
        assert (recording.recording_id, recording.start_position, recording.is_active) == (0, 0, True)
        table = archive.list_recordings(channel="aeron:ipc", stream_id=1001).to_arrow()
        assert table.column("recording_id").to_pylist() == [0]
        with archive.replay(recording.recording_id, position=0, length=aeron.REPLAY_ALL_AND_STOP) as replay:
            assert sum(len(batch) for batch in replay.batches(limit=4096)) == 1
        archive.async_stop_recording(publication).result(timeout=5)
        assert archive.get_stop_position(0) == position
        with pytest.raises(aeron.UnknownRecordingSubscriptionError):
            archive.stop_recording(publication)
        assert archive.try_stop_recording(publication) is False


def test_the_example_of_the_documentation_works(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "archive.md").read_text()
    program = page.partition("```python\n")[2].partition("```")[0]
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "[b'trade 0'" in done.stdout


def test_a_coroutine_records_and_replays(server: aeron.Archive, client: aeron.Aeron, stream_id: int) -> None:
    async def run() -> list[bytes]:
        async with aeron.async_connect_archive(client) as archive:
            publication = await archive.async_add_recorded_publication(IPC, stream_id)
            position = await publication.offer_async(b"one")
            recording = await archive.async_wait_recorded(publication, position)
            await archive.async_stop_recording(publication)
            listed = await archive.async_list_recordings(stream_id=stream_id)
            assert [each.recording_id for each in listed] == [recording.recording_id]
            replay = await archive.async_replay(recording.recording_id, length=aeron.REPLAY_ALL_AND_STOP)
            got = [message async for batch in replay for message in batch.to_list()]
            replay.close()
            publication.close()
            return got

    assert asyncio.run(run()) == [b"one"]


def test_messages_longer_than_a_frame_are_replayed_completely_or_from_a_part_of_the_recording(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    messages = [bytes([number]) * 3000 for number in range(50)]
    publication = archive.add_recorded_publication(IPC, stream_id)
    ends = [publication.publish(message, timeout=5) for message in messages]
    number = archive.wait_recorded(publication, ends[-1], timeout=5).recording_id
    archive.stop_recording(publication)
    publication.close()
    assert archive.get_stop_position(number) == ends[-1]
    assert replayed(archive, number) == messages
    assert replayed(archive, number, position=ends[39], length=ends[44] - ends[39]) == messages[40:45]
    assert replayed(archive, number, channel="aeron:udp?endpoint=localhost:0") == messages


def test_a_replay_follows_an_active_recording_until_it_stops(archive: aeron.AeronArchive, stream_id: int) -> None:
    publication = archive.add_recorded_publication(IPC, stream_id)
    position = publication.publish(b"old", timeout=5)
    recording = archive.wait_recorded(publication, position, timeout=5)
    with archive.replay(recording.recording_id) as replay:
        batches = replay.batches(timeout=10)
        assert next(batches).to_list() == [b"old"]
        publication.publish(b"new", timeout=5)
        assert next(batches).to_list() == [b"new"]
        archive.stop_recording(publication)
        assert list(batches) == []
    publication.close()


def test_closing_a_replay_stops_it(archive: aeron.AeronArchive, stream_id: int) -> None:
    publication = archive.add_recorded_publication(IPC, stream_id)
    position = publication.publish(b"x", timeout=5)
    recording = archive.wait_recorded(publication, position, timeout=5)
    replay = archive.replay(recording.recording_id)
    replay.wait_connected(timeout=5)
    archive.stop_recording(publication)
    publication.close()
    replay.close()
    assert list(replay.batches(timeout=5)) == []
    eventually(lambda: purged(archive, recording.recording_id))


def test_batches_of_an_ended_replay_are_empty_if_it_was_complete_and_raise_if_it_was_stopped(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    recording = record(archive, stream_id, [b"x"])
    got: list[bytes] = []
    with archive.replay(recording.recording_id, length=aeron.REPLAY_ALL_AND_STOP) as replay:
        eventually(lambda: replay.poll(lambda payload, _: got.append(payload)) or got)
        eventually(lambda: replay.has_no_images)
        assert list(replay.batches()) == []
    assert got == [b"x"]
    publication = archive.add_recorded_publication(IPC, stream_id)
    active = archive.wait_recorded(publication, publication.publish(b"y", timeout=5), timeout=5).recording_id
    with archive.replay(active) as replay:
        replay.wait_connected(timeout=5)
        archive.stop_all_replays(active)
        eventually(lambda: replay.has_no_images)
        with pytest.raises(aeron.ArchiveError, match="ended at position 0, before the end of its stream"):
            list(replay.batches())


@pytest.mark.parametrize("channel", [IPC, "aeron:udp?endpoint=localhost:0"])
def test_a_replay_that_is_stopped_after_the_last_received_message_raises(
    archive: aeron.AeronArchive, stream_id: int, channel: str
) -> None:
    publication = archive.add_recorded_publication(IPC, stream_id)
    active = archive.wait_recorded(publication, publication.publish(b"x", timeout=5), timeout=5).recording_id
    with archive.replay(active, channel) as replay:
        batches = replay.batches(timeout=10)
        assert next(batches).to_list() == [b"x"]
        archive.stop_all_replays(active)
        with pytest.raises(aeron.ArchiveError, match="before the end of its stream"):
            list(batches)
    publication.close()


def test_a_replay_of_a_recording_with_a_missing_segment_raises(
    server: aeron.Archive, archive: aeron.AeronArchive, stream_id: int, tmp_path: Path
) -> None:
    recording = record(archive, stream_id, [bytes(1000)] * 400)
    segments = sorted((tmp_path / "archive").glob("*.rec"), key=lambda path: int(path.stem.partition("-")[2]))
    assert len(segments) > 3
    segments[2].unlink()
    got: list[bytes] = []
    with (
        archive.replay(recording.recording_id, length=aeron.REPLAY_ALL_AND_STOP) as replay,
        pytest.raises(aeron.ArchiveError, match="before the end of its stream"),
    ):
        for batch in replay.batches(timeout=10):
            got += batch.to_list()
    assert 0 < len(got) < 400


def purged(archive: aeron.AeronArchive, recording_id: int) -> bool:
    """Purges a recording. Returns `False` if the archive refuses, as it does while a replay of the recording runs."""
    try:
        archive.purge_recording(recording_id)
    except aeron.ActiveRecordingError:
        return False
    return True


def test_recordings_are_listed_to_arrow_with_types_and_nulls(archive: aeron.AeronArchive, stream_id: int) -> None:
    before = int(time.time() * 1000)
    ended = record(archive, stream_id, [b"x"])
    publication = archive.add_recorded_publication("aeron:ipc?alias=live", stream_id + 500_000)
    publication.publish(b"x", timeout=5)
    recordings = archive.list_recordings()
    assert [each.recording_id for each in recordings] == [0, 1]
    assert recordings[0] == archive.list_recording(ended.recording_id)
    assert pickle.loads(pickle.dumps(recordings)) == recordings
    assert repr(recordings).startswith("Recordings([Recording(recording_id=0,")
    table = recordings.to_arrow()
    assert table.schema.field("start_timestamp").type == pa.timestamp("ms", tz="UTC")
    assert table.schema.field("stop_position").type == pa.int64()
    assert table.schema.field("stream_id").type == pa.int32()
    assert table.column("stop_position").to_pylist()[1] is None
    assert table.column("stop_timestamp").to_pylist()[1] is None
    assert table.column("start_timestamp").cast(pa.int64()).to_pylist()[0] >= before
    assert table.column("original_channel").to_pylist()[1].startswith("aeron:ipc?alias=live")
    assert [each.recording_id for each in archive.list_recordings(stream_id=stream_id)] == [0]
    assert [each.recording_id for each in archive.list_recordings(channel="ipc", limit=1)] == [0]
    assert [each.recording_id for each in archive.list_recordings(from_recording_id=1)] == [1]
    assert archive.list_recordings(channel="udp") == ()
    assert archive.list_recordings().to_arrow().slice(0, 0).num_rows == 0
    publication.close()


def test_a_thousand_recordings_are_listed_to_arrow(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path
) -> None:
    with (
        aeron.Archive(tmp_path, driver=driver, **SMALL, catalog_capacity=65_536) as _,
        aeron.connect_archive(client) as archive,
    ):
        subscription_id = archive.start_recording(IPC, 77)
        for number in range(1000):
            client.add_exclusive_publication(f"aeron:ipc?term-length=64k|session-id={number}", 77).close()
            if number % 10 == 9:
                eventually(lambda wanted=number + 1: len(archive.list_recordings(from_recording_id=wanted - 1)) == 1)
        archive.stop_recording(subscription_id)
        table = archive.list_recordings(channel="aeron:ipc", stream_id=77).to_arrow()
        assert table.num_rows == 1000
        assert sorted(table.column("session_id").to_pylist()) == list(range(1000))


def test_a_long_listing_to_a_slow_client_does_not_end_the_session(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path, stream_id: int
) -> None:
    """07-34: while a slow client has not read a listing, the log of responses may have no room for a ping. This does
    not end the control session."""
    timeout_s, count = 0.5, 50
    settings = {"connect_timeout_ns": int(timeout_s * 1e9), "session_liveness_check_interval_ns": 1_000_000}
    settings["max_concurrent_recordings"] = count
    with (
        aeron.Archive(tmp_path / "slow", driver=driver, **SMALL, **settings),
        aeron.connect_archive(client, control_term_buffer_length=64 * 1024) as archive,
    ):
        for number in range(count):
            channel = f"{IPC}?alias={number}{'x' * 3000}"
            archive.add_recorded_publication(channel, stream_id).close()
        eventually(lambda: len(archive.list_recordings(limit=count)) == count)
        listing, begin = archive.async_list_recordings(), time.monotonic()
        while time.monotonic() < begin + 2 * timeout_s and not listing.done():
            time.sleep(0.1)
        assert len(listing.result(timeout=10)) == count


def test_recordings_and_subscriptions_can_be_pickled_compared_and_hashed(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    recording = record(archive, stream_id, [b"x"])
    assert pickle.loads(pickle.dumps(recording)) == recording
    assert hash(recording) == hash(pickle.loads(pickle.dumps(recording)))
    assert "Recording(recording_id=0, start_position=0," in repr(recording)
    archive.start_recording(IPC, stream_id)
    (subscription,) = archive.list_recording_subscriptions(channel="ipc", stream_id=stream_id)
    assert pickle.loads(pickle.dumps(subscription)) == subscription
    archive.stop_recording(subscription.subscription_id)
    assert archive.list_recording_subscriptions() == []


def test_positions_are_returned_and_segments_and_recordings_are_maintained(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    recording = record(archive, stream_id, [bytes(1000)] * 400)
    number = recording.recording_id
    end = archive.get_stop_position(number)
    assert end is not None
    assert archive.get_max_recorded_position(number) == end
    assert archive.get_recording_position(number) is None
    base = archive.segment_file_base_position(0, end, recording.term_buffer_length, recording.segment_file_length)
    archive.detach_segments(number, 128 * 1024)
    assert archive.get_start_position(number) == 128 * 1024
    assert archive.attach_segments(number) == 1
    assert archive.purge_segments(number, base) == base // (128 * 1024)
    archive.update_channel(number, "aeron:ipc?alias=renamed")
    found = archive.list_recording(number)
    assert found is not None
    assert found.original_channel == "aeron:ipc?alias=renamed"
    assert archive.find_last_matching_recording("aeron:ipc", stream_id, recording.session_id) == number
    assert archive.find_last_matching_recording("aeron:ipc", stream_id + 1, recording.session_id) is None
    archive.truncate_recording(number, base)
    assert archive.get_stop_position(number) == base
    archive.purge_recording(number)
    assert archive.list_recording(number) is None


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_an_error_of_the_archive_has_its_code_its_correlation_id_and_the_class_of_the_code(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    with pytest.raises(aeron.UnknownRecordingError, match="unknown recording id: 99") as caught:
        archive.get_start_position(99)
    assert isinstance(caught.value, LookupError)
    assert isinstance(caught.value, aeron.ArchiveError)
    assert caught.value.code == 5
    assert caught.value.correlation_id > 0
    archive.start_recording(IPC, stream_id)
    with pytest.raises(aeron.ActiveSubscriptionError):
        archive.start_recording(IPC, stream_id)
    recording = record(archive, stream_id + 500_000, [b"x"])
    with pytest.raises(aeron.InvalidPositionError):
        archive.replay(recording.recording_id, position=1 << 40)


def test_the_error_for_an_invalid_argument_names_the_argument(
    archive: aeron.AeronArchive, client: aeron.Aeron, stream_id: int
) -> None:
    with pytest.raises(TypeError, match="source='NEAR' is not"):
        archive.start_recording(IPC, stream_id, source="NEAR")
    with pytest.raises(TypeError, match="recorded=None is not a recorded publication"):
        archive.stop_recording(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="stream_id is not given"):
        archive.stop_recording(IPC)
    with pytest.raises(TypeError, match="publication=5 is not a publication"):
        archive.wait_recorded(5, 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no setting colour"):
        aeron.connect_archive(client, colour=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="credentials=5 is not bytes"):
        aeron.connect_archive(client, credentials=5)  # type: ignore[arg-type]
    with pytest.raises(aeron.ConfigurationError, match="response_channel is not set"):
        aeron.connect_archive(client, control_channel="aeron:udp?endpoint=192.0.2.1:8010")


def test_the_error_for_an_invalid_setting_of_the_archive_names_the_valid_values(
    driver: aeron.MediaDriver, tmp_path: Path
) -> None:
    with pytest.raises(TypeError, match="Archive has no setting colour"):
        aeron.Archive(tmp_path, driver, colour=5)  # type: ignore[call-arg]
    with pytest.raises(aeron.ConfigurationError, match="threading_mode='shard' is not one of DEDICATED, SHARED, INV"):
        aeron.Archive(tmp_path, driver, threading_mode="shard")
    with pytest.raises(aeron.ConfigurationError, match="on_torn_fragment='cut' is not one of refuse, truncate"):
        aeron.Archive(tmp_path, driver, on_torn_fragment="cut")
    text = (
        r"^segment_file_length=100000 is not a power of two: use 65536 or 131072 "
        r"\(property aeron\.archive\.segment\.file\.length\)$"
    )
    with pytest.raises(aeron.ConfigurationError, match=text):
        aeron.Archive(tmp_path, driver, segment_file_length=100_000)
    with pytest.raises(aeron.ConfigurationError, match=r"^catalog_file_sync_level=0 is below file_sync_level=1: "):
        aeron.Archive(tmp_path, driver, file_sync_level=1, catalog_file_sync_level=0)
    with pytest.raises(aeron.DriverTimeoutError):
        aeron.Archive(tmp_path, tmp_path / "no-driver", driver_timeout_ms=100)
    assert {"segment_file_length", "archive_id", "max_idle_park_ns"} <= set(aeron.Archive.settings())


def test_the_stub_has_a_keyword_for_every_setting() -> None:
    stub = ast.parse((Path(aeron.__file__).parent / "_stubs" / "archive_server.pyi").read_text())
    server = next(node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == "Archive")
    new = next(node for node in server.body if isinstance(node, ast.FunctionDef) and node.name == "__new__")
    # A function is no setting.
    assert {argument.arg for argument in new.args.kwonlyargs} - {"authenticator"} == set(aeron.Archive.settings())


def test_a_second_archive_refuses_a_directory_that_is_in_use(server: aeron.Archive, driver: aeron.MediaDriver) -> None:
    with pytest.raises(aeron.ArchiveActiveError, match="active mark file detected"):
        aeron.Archive(server.directory, driver=driver)


def test_connecting_without_an_archive_raises_a_timeout_error(client: aeron.Aeron) -> None:
    with pytest.raises(aeron.ArchiveTimeoutError, match="no connection to the archive") as caught:
        aeron.connect_archive(client, control_stream_id=999, message_timeout=0.2)
    assert isinstance(caught.value, TimeoutError)


def test_waiting_for_a_position_that_is_not_recorded_ends_after_the_timeout(
    archive: aeron.AeronArchive, stream_id: int
) -> None:
    publication = archive.add_recorded_publication(IPC, stream_id)
    position = publication.publish(b"x", timeout=5)
    operation = archive.async_wait_recorded(publication, position + 1024)
    with pytest.raises(aeron.OperationTimeoutError):
        operation.result(timeout=0.1)
    with pytest.raises(aeron.ArchiveTimeoutError, match="the stream is not recorded up to"):
        archive.wait_recorded(publication, position + 1024, timeout=0.1)
    assert operation.cancel()
    with pytest.raises(aeron.OperationCancelledError):
        operation.result(timeout=1)
    publication.close()


# ---- settings --------------------------------------------------------------------------------------------------------


def test_an_archive_with_a_control_channel_accepts_requests_over_the_network(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path, stream_id: int
) -> None:
    control = f"aeron:udp?endpoint=localhost:{free_port()}"
    with aeron.Archive(tmp_path, driver=driver, control_channel=control, **SMALL) as server:
        assert server.configuration["control_channel_enabled"] is True
        with aeron.connect_archive(client, control_channel=control, client_name="far") as archive:
            recording = record(archive, stream_id, [b"a", b"b"])
            channel = "aeron:udp?endpoint=localhost:0"
            assert replayed(archive, recording.recording_id, channel=channel) == [b"a", b"b"]


def test_requests_over_the_network_are_enabled_by_default_only_with_a_control_channel(
    driver: aeron.MediaDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "control_channel_enabled"
    assert aeron.Archive.settings()[name] is False
    with aeron.Archive(tmp_path / "without", driver=driver, **SMALL) as server:
        assert server.configuration[name] is False
    monkeypatch.setenv("AERON_ARCHIVE_CONTROL_CHANNEL", "aeron:udp?endpoint=localhost:0")
    assert aeron.Archive.settings()[name] is True
    monkeypatch.setenv("AERON_ARCHIVE_CONTROL_CHANNEL_ENABLED", "false")
    assert aeron.Archive.settings()[name] is False
    monkeypatch.delenv("AERON_ARCHIVE_CONTROL_CHANNEL")
    monkeypatch.setenv("AERON_ARCHIVE_CONTROL_CHANNEL_ENABLED", "true")
    assert aeron.Archive.settings()[name] is True
    with pytest.raises(aeron.ConfigurationError, match=r"aeron\.archive\.control\.channel"):
        aeron.Archive(tmp_path / "enabled", driver=driver, **SMALL)


def test_a_recording_is_replicated_to_another_archive(
    driver: aeron.MediaDriver, client: aeron.Aeron, archive: aeron.AeronArchive, tmp_path: Path, stream_id: int
) -> None:
    control = f"aeron:udp?endpoint=localhost:{free_port()}"
    with (
        aeron.Archive(
            tmp_path / "source", driver=driver, control_channel=control, local_control_stream_id=11, **SMALL
        ) as _,
        aeron.connect_archive(client, control_stream_id=11) as source,
    ):
        original = record(source, stream_id, [b"a", b"b"])
        replication_id = archive.replicate(original.recording_id, control)
        seen: list[str] = []
        while seen[-1:] != ["STOP"]:
            signal = next(archive.signals(timeout=10))
            assert (signal.correlation_id, signal.recording_id) == (replication_id, 0)
            seen.append(signal.signal)
        assert "REPLICATE_END" in seen
        (copy,) = archive.list_recordings()
        assert replayed(archive, copy.recording_id) == [b"a", b"b"]
    assert archive.try_stop_replication(replication_id) is False
    with pytest.raises(aeron.UnknownReplicationError):
        archive.stop_replication(replication_id)


def test_the_program_can_run_an_archive_and_a_driver_that_have_no_threads(tmp_path: Path) -> None:
    with (
        aeron.MediaDriver(threading_mode="INVOKER") as driver,
        aeron.Archive(tmp_path, driver=driver, threading_mode="INVOKER", **SMALL) as server,
        aeron.connect(driver) as client,
    ):
        connecting = aeron.async_connect_archive(client)

        def run(operation: aeron.PendingOperation[Any]) -> Any:
            eventually(lambda: [driver.do_work(), server.do_work(), operation.done()][-1])
            return operation.result(timeout=0)

        with run(connecting) as archive:
            publication = run(archive.async_add_recorded_publication(IPC, 1001))
            eventually(lambda: [driver.do_work(), server.do_work(), publication.is_connected][-1])
            position = publication.publish(b"x", timeout=5)
            assert run(archive.async_wait_recorded(publication, position)).recording_id == 0
            archive.poll()


def test_the_thread_of_an_archive_runs_a_driver_without_threads(tmp_path: Path, stream_id: int) -> None:
    with (
        aeron.MediaDriver(threading_mode="INVOKER") as driver,
        aeron.Archive(tmp_path, driver=driver, **SMALL),
        aeron.connect(driver.dir) as client,
        aeron.connect_archive(client) as archive,
    ):
        recording = record(archive, stream_id, [b"one", b"two"])
        assert replayed(archive, recording.recording_id) == [b"one", b"two"]


def test_an_archive_with_several_threads_refuses_a_driver_without_threads(tmp_path: Path) -> None:
    problem = "DEDICATED cannot run a driver with aeron.threading.mode=INVOKER: use SHARED or INVOKER"
    with (
        aeron.MediaDriver(threading_mode="INVOKER") as driver,
        pytest.raises(aeron.ConfigurationError, match=problem),
    ):
        aeron.Archive(tmp_path, driver=driver, threading_mode="DEDICATED")


def test_correct_passwords_and_challenge_responses_are_accepted_and_others_are_refused(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path, stream_id: int
) -> None:
    """07-26, 07-27, 07-29"""
    key, salt = bytes(range(32)), b"a salt for tests"
    hashed = hashlib.scrypt(b"secret", salt=salt, n=2**12, r=8, p=1, dklen=32)
    secret = "$".join(
        ["", "scrypt", "ln=12,r=8,p=1", *(b64encode(part).decode().rstrip("=") for part in (salt, hashed))]
    )
    users = tmp_path / "users.toml"
    users.touch(mode=0o600)
    users.write_text(
        f"""
        [[user]]
        name = "ann"
        role = "read"
        secret = "{secret}"

        [[user]]
        name = "adam"
        role = "admin"
        key = "{key.hex()}"
        """
    )
    challenges: list[bytes | None] = []

    def credentials(challenge: bytes | None) -> bytes:
        challenges.append(challenge)
        return b"adam" if challenge is None else hmac.digest(key, challenge, "sha256")

    def faulty(challenge: bytes | None) -> bytes:
        return b"adam" if challenge is None else bytes(1 // 0)

    with aeron.Archive(tmp_path / "archive", driver=driver, users_file=users, **SMALL) as _:
        with aeron.connect_archive(client, credentials=b"ann:secret") as archive:
            assert archive.list_recordings() == ()
            with pytest.raises(aeron.UnauthorisedActionError) as refused:
                archive.start_recording(IPC, stream_id)
            assert isinstance(refused.value, PermissionError)
        with aeron.connect_archive(client, credentials=credentials) as archive:
            archive.start_recording(IPC, stream_id)
            assert [challenge is None for challenge in challenges] == [True, False]
            publication = client.add_publication(IPC, stream_id)
            archive.wait_recorded(publication, publication.publish(b"hello", timeout=5), timeout=5)
            source = {"recording_id": 0, "live_channel": IPC, "live_stream_id": stream_id}
            with archive.persistent_subscription(**source, start_position=aeron.FROM_START) as subscription:
                assert next(iter(subscription.batches(timeout=5))).to_list() == [b"hello"]
        assert [challenge is None for challenge in challenges] == [True, False] * 2
        with pytest.raises(aeron.AuthenticationRejectedError, match="authentication rejected"):
            aeron.connect_archive(client, credentials=b"ann:wrong")
        with pytest.raises(ZeroDivisionError):
            aeron.connect_archive(client, credentials=faulty)
        with pytest.raises(TypeError, match="bytes, which the function must return"):
            aeron.connect_archive(client, credentials=lambda _: 5)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("channel", [IPC, "aeron:udp?endpoint=localhost:{port}"])
@pytest.mark.parametrize("location", ["LOCAL", "REMOTE"])
def test_a_recording_of_the_archives_own_replays_is_refused(
    archive: aeron.AeronArchive, client: aeron.Aeron, stream_id: int, channel: str, location: aeron.SourceLocation
) -> None:
    """07-40"""
    channel = channel.format(port=free_port())
    first = record(archive, stream_id, [b"x"]).recording_id
    errors: list[aeron.AeronError] = []

    def refused() -> bool:
        errors.extend(filter(None, [archive.poll_for_error()]))
        return bool(errors)

    archive.start_recording(channel, stream_id + 1, source=location)
    # A subscriber on another stream of the channel keeps the socket, so that a UDP replay has a receiver.
    with client.add_subscription(channel, stream_id + 1) as subscription:
        archive.start_replay(first, channel, stream_id + 1)
        eventually(refused)
        assert "is a replay of this archive" in str(errors[0])
        assert next(iter(subscription.batches(timeout=5))).to_list() == [b"x"]
        assert len(archive.list_recordings()) == 1
        live = client.add_exclusive_publication(channel, stream_id + 1)
        recording = archive.wait_recorded(live, live.publish(b"live", timeout=5), timeout=5)
    assert replayed(archive, recording.recording_id) == [b"live"]


def test_a_copy_of_a_recording_may_be_recorded_by_its_session(archive: aeron.AeronArchive, stream_id: int) -> None:
    """07-40"""
    first = record(archive, stream_id, [b"x"]).recording_id
    archive.start_recording(f"{IPC}?session-id=77", stream_id + 1)
    archive.start_replay(first, f"{IPC}?session-id=77", stream_id + 1)
    # The copy ends with the replay.
    eventually(lambda: [each.stop_position for each in archive.list_recordings()] == [64, 64])
    assert replayed(archive, archive.list_recordings()[1].recording_id) == [b"x"]


# ---- signals and the session -----------------------------------------------------------------------------------------


def test_signals_are_returned_by_an_iterator(archive: aeron.AeronArchive, stream_id: int) -> None:
    recording = record(archive, stream_id, [b"x"])
    archive.purge_recording(recording.recording_id)
    seen = [(signal.signal, signal.recording_id) for signal in archive.signals(timeout=0.5)]
    assert seen == [("START", 0), ("STOP", 0), ("DELETE", 0)]


def test_handlers_of_signals_and_errors_may_call_the_archive(
    server: aeron.Archive, client: aeron.Aeron, stream_id: int
) -> None:
    seen: list[tuple[str, bool]] = []
    errors: list[BaseException] = []

    def on_signal(signal: aeron.RecordingSignal) -> None:
        seen.append((signal.signal, archive.list_recording(signal.recording_id) is not None))
        if signal.signal == "STOP":
            raise KeyError("a fault of the handler")

    with aeron.connect_archive(client, on_signal=on_signal, error_handler=errors.append) as archive:
        record(archive, stream_id, [b"x"])
        eventually(lambda: len(seen) == 2 and errors)
        assert seen == [("START", True), ("STOP", True)]
        assert isinstance(errors[0], KeyError)
        with pytest.raises(ValueError, match="on_signal takes the signals"):
            archive.signals()


def test_an_error_that_waits_for_the_gil_while_the_program_closes_the_session_is_not_shown(
    driver: aeron.MediaDriver, server: aeron.Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[BaseException | None] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: shown.append(unraisable.exc_value))
    interval_s = sys.getswitchinterval()
    for _ in range(10):
        client = aeron.connect(driver)
        archive = aeron.connect_archive(client, error_handler=lambda error: None)
        sys.setswitchinterval(10)
        try:
            client.close()
            # The thread of the archive's client finds the error, and waits for the GIL.
            busy_until = time.monotonic() + 0.02
            while time.monotonic() < busy_until:
                pass
            archive.close()
        finally:
            sys.setswitchinterval(interval_s)
    time.sleep(0.1)
    assert shown == []


def test_an_iterator_of_signals_raises_after_the_archive_has_ended_the_session(
    server: aeron.Archive, client: aeron.Aeron, stream_id: int
) -> None:
    archive = aeron.connect_archive(client)
    record(archive, stream_id, [b"x"])
    signals = archive.signals()
    assert [next(signals).signal for _ in range(2)] == ["START", "STOP"]
    server.close()
    # The thread of the client notices the end first.
    eventually(lambda: archive.is_closed)
    for iterator in (signals, archive.signals(), archive.signals(timeout=0)):
        with pytest.raises(aeron.ArchiveDisconnectedError):
            next(iterator)
    archive.close()
    assert list(signals) == []


def test_an_iterator_of_signals_ends_when_the_program_closes_the_aeron_client(
    driver: aeron.MediaDriver, server: aeron.Archive
) -> None:
    with aeron.connect(driver) as client:
        archives = [aeron.connect_archive(client) for _ in range(2)]
    # The thread of the client notices the end first, or the iterator does.
    assert list(archives[0].signals()) == []
    eventually(lambda: archives[1].is_closed)
    assert list(archives[1].signals()) == []


@pytest.mark.parametrize("handler", ["on_signal", "error_handler"])
def test_a_client_without_threads_refuses_handlers_that_no_thread_would_call(
    driver: aeron.MediaDriver, server: aeron.Archive, handler: str
) -> None:
    with aeron.connect(driver, use_conductor_agent_invoker=True) as client:
        with pytest.raises(aeron.ConfigurationError, match=r"this client has none .*: iterate over signals\(\)"):
            aeron.connect_archive(client, **{handler: print})  # type: ignore[arg-type]
        with aeron.connect_archive(client) as archive:
            assert archive.signals() is not None


def test_a_session_stays_alive_while_the_program_makes_no_calls(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path
) -> None:
    """The archive pings every millisecond. If the client read no pings, they would fill the log of responses in a
    second."""
    pings = {"session_liveness_check_interval_ns": 1_000_000, "connect_timeout_ns": 200_000_000}
    with (
        aeron.Archive(tmp_path, driver=driver, **SMALL, **pings) as _,
        aeron.connect_archive(client) as archive,
        aeron.connect(driver, use_conductor_agent_invoker=True) as invoked,
        aeron.connect_archive(invoked) as unpolled,
    ):
        time.sleep(2)
        assert archive.state == "CONNECTED"
        assert archive.list_recordings() == ()
        # For comparison, a client without threads loses its session, because the program does not poll it.
        eventually(lambda: [invoked.do_work(), unpolled.state][1] == "DISCONNECTED", timeout=30)


def test_several_threads_may_share_a_client_of_an_archive(archive: aeron.AeronArchive, stream_id: int) -> None:
    recording = record(archive, stream_id, [b"x"])
    failures: list[BaseException] = []

    def run() -> None:
        try:
            for _ in range(20):
                assert archive.get_start_position(recording.recording_id) == 0
                assert replayed(archive, recording.recording_id) == [b"x"]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# ---- ends ------------------------------------------------------------------------------------------------------------


def test_a_closed_client_refuses_requests_and_ends_its_operations(
    server: aeron.Archive, client: aeron.Aeron, stream_id: int
) -> None:
    archive = aeron.connect_archive(client)
    operation = archive.async_wait_recorded(client.add_publication(IPC, stream_id), 1)
    archive.close()
    archive.close()
    assert archive.is_closed
    assert archive.state == "CLOSED"
    with pytest.raises(aeron.ArchiveClosedError):
        archive.list_recordings()
    with pytest.raises(aeron.ArchiveClosedError):
        operation.result(timeout=5)
    assert list(archive.signals(timeout=5)) == []


def test_closing_an_archive_ends_its_sessions_and_replays(
    server: aeron.Archive, client: aeron.Aeron, stream_id: int
) -> None:
    archive = aeron.connect_archive(client)
    publication = archive.add_recorded_publication(IPC, stream_id)
    position = publication.publish(b"x", timeout=5)
    recording = archive.wait_recorded(publication, position, timeout=5)
    replay = archive.replay(recording.recording_id)
    replay.wait_connected(timeout=5)
    server.close()
    assert server.is_closed
    with pytest.raises((aeron.ArchiveDisconnectedError, aeron.ArchiveClosedError)):
        eventually(archive.list_recordings)
    with pytest.raises(aeron.ArchiveError, match=r"the replay .* ended"):
        list(replay.batches(timeout=10))
    archive.close()


@pytest.mark.parametrize("order", ["dcsa", "dsca", "cdsa", "scda", "sdca", "acds", "casd", "asdc"])
def test_driver_archive_and_clients_may_be_closed_in_any_order(tmp_path: Path, order: str) -> None:
    driver = aeron.MediaDriver()
    server = aeron.Archive(tmp_path, driver=driver, **SMALL)
    client = aeron.connect(driver, error_handler=lambda error: None)  # ignores the error that the driver is lost
    archive = aeron.connect_archive(client)
    publication = archive.add_recorded_publication(IPC, 1001)
    position = publication.publish(b"x", timeout=5)
    replay = archive.replay(archive.wait_recorded(publication, position, timeout=5).recording_id)
    things = {"d": driver, "s": server, "c": client, "a": archive}
    for name in order:
        things[name].close()
    replay.close()
    for call in (archive.list_recordings, lambda: archive.replay(0), lambda: archive.async_stop_recording(5)):
        with pytest.raises(aeron.AeronError):
            call()
    with (
        aeron.MediaDriver() as driver,
        aeron.Archive(tmp_path, driver=driver, **SMALL),
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        assert replayed(archive, 0) == [b"x"]


def test_an_archive_and_its_client_end_when_the_last_reference_to_them_is_dropped(
    driver: aeron.MediaDriver, tmp_path: Path
) -> None:
    def use() -> None:
        server = aeron.Archive(tmp_path, driver=driver, **SMALL)
        client = aeron.connect(driver)
        archive = aeron.connect_archive(client, on_signal=lambda signal: seen.append((archive, signal)))
        record(archive, 1001, [b"x"])
        archive.replay(0)
        del server

    seen: list[object] = []
    use()
    seen.clear()
    gc.collect()
    aeron.Archive(tmp_path, driver=driver, **SMALL).close()


_PROGRAMS = {
    "nothing is closed": "archive.replay(0)",
    "the program exits during a wait": """
import contextlib, threading
def wait():
    with contextlib.suppress(aeron.AeronError):
        archive.wait_recorded(publication, 1 << 30)
threading.Thread(target=lambda: list(archive.signals()), daemon=True).start()
threading.Thread(target=wait, daemon=True).start()
time.sleep(0.2)
""",
    "a handler runs at exit": """
aeron.connect_archive(client, on_signal=lambda signal: time.sleep(0.3))
archive.stop_recording(publication)
""",
    "a forked child uses the client": """
import os
pid = os.fork()
if pid == 0:
    for call in (archive.list_recordings, lambda: server.is_closed, archive.close, server.close):
        try:
            call()
        except aeron.ForkedError:
            continue
        os._exit(1)
    del archive, server
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert len(archive.list_recordings()) == 1
""",
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_a_program_ends_cleanly(tmp_path: Path, name: str) -> None:
    program = f"""
import sys, time, aeron
driver = aeron.MediaDriver()
server = aeron.Archive({str(tmp_path)!r}, driver=driver, segment_file_length=131072, low_storage_space_threshold=0)
client = aeron.connect(driver)
archive = aeron.connect_archive(client)
publication = archive.add_recorded_publication("aeron:ipc", 1001)
archive.wait_recorded(publication, publication.publish(b"x", timeout=5), timeout=5)
{_PROGRAMS[name]}
print("end")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_a_recording_beyond_the_limit_of_file_lengths_is_a_storage_space_error(
    driver: aeron.MediaDriver, tmp_path: Path
) -> None:
    """07-60"""
    program = f"""
import resource, sys, aeron
with aeron.Archive({str(tmp_path)!r}, {driver.dir!r}, segment_file_length=131072, low_storage_space_threshold=0):
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    print(flush=True)
    sys.stdin.read()
"""
    command = [sys.executable, "-c", program]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
        aeron.connect(driver) as client,
    ):
        assert process.stdout is not None
        process.stdout.readline()
        with aeron.connect_archive(client) as archive:
            archive.start_recording(IPC, 1001)
            client.add_exclusive_publication(IPC, 1001)
            errors: list[Exception | None] = []
            eventually(lambda: errors.append(archive.poll_for_error()) or errors[-1])
        process.kill()
    assert isinstance(errors[-1], aeron.ArchiveStorageSpaceError)
    assert "File too large" in str(errors[-1])


def test_acknowledged_data_survives_a_kill(tmp_path: Path) -> None:
    """After a kill of the process, the recording has all messages for which `wait_recorded` had returned."""
    program = f"""
import itertools, aeron
driver = aeron.MediaDriver(dir={str(tmp_path / "driver")!r})
server = aeron.Archive({str(tmp_path / "archive")!r}, driver, segment_file_length=131072, low_storage_space_threshold=0)
client = aeron.connect(driver)
archive = aeron.connect_archive(client)
publication = archive.add_recorded_publication("aeron:ipc?term-length=64k", 1001)
for number in itertools.count():
    position = publication.publish(number.to_bytes(8, "little") * 20, timeout=5)
    archive.wait_recorded(publication, position, timeout=5)
    print(position, flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(1000)]
        process.kill()
        lines += process.stdout.readlines()
    acknowledged = int([line for line in lines if line.endswith("\n")][-1])
    with (
        aeron.MediaDriver() as driver,
        aeron.Archive(tmp_path / "archive", driver=driver, **SMALL) as _,
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        stop = archive.get_stop_position(0)
        assert stop is not None
        assert stop >= acknowledged
        messages = replayed(archive, 0)
        assert messages[:1000] == [number.to_bytes(8, "little") * 20 for number in range(1000)]
