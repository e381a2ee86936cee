"""Tests of `RecordedPublisher` in one process: forms of sending, losses, refusals and closing.

Tests with killed processes are in `interop/test_recorded_publishers.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import eventually
from tests.ports import free_port

import aeron

CHANNEL = "aeron:ipc?term-length=64k|mtu=1408"
SETTINGS: dict[str, Any] = {"segment_file_length": 128 * 1024, "low_storage_space_threshold": 0}
MESSAGES = [b"%d " % number * number for number in range(1, 100)]


class Server:
    """An archive that a test stops and starts again in the same directory."""

    def __init__(self, driver: aeron.MediaDriver, directory: Path) -> None:
        self.driver = driver
        self.directory = directory
        self.archive: aeron.Archive | None = None
        self.start()

    def start(self, **settings: Any) -> None:
        self.archive = aeron.Archive(self.directory, driver=self.driver, **SETTINGS | settings)

    def stop(self) -> None:
        if self.archive is not None:
            self.archive.close()
        self.archive = None


@pytest.fixture
def server(driver: aeron.MediaDriver, tmp_path: Path) -> Iterator[Server]:
    server = Server(driver, tmp_path / "archive")
    yield server
    server.stop()


@pytest.fixture
def errors() -> list[aeron.RecordedPublisherError]:
    return []


@pytest.fixture
def publisher(
    server: Server, stream_id: int, errors: list[aeron.RecordedPublisherError]
) -> Iterator[aeron.RecordedPublisher]:
    publisher = aeron.RecordedPublisher(CHANNEL, stream_id, driver=server.driver, on_error=errors.append)
    publisher.wait_connected(timeout=10)
    yield publisher
    with_rest(publisher)


def with_rest(publisher: aeron.RecordedPublisher) -> None:
    """Closes a publisher that may have unrecorded messages."""
    with contextlib.suppress(aeron.UnrecordedMessagesError):
        publisher.close(timeout=0)


def recorded(server: Server, recording_id: int) -> list[bytes]:
    """Returns all messages of a recording."""
    with aeron.connect(server.driver) as client, aeron.connect_archive(client) as archive:
        start = archive.get_start_position(recording_id)
        end = archive.get_max_recorded_position(recording_id)
        if start == end:
            return []
        with archive.replay(recording_id, position=start, length=end - start) as replay:
            return [message for batch in replay.batches(timeout=10) for message in batch.to_list()]


def poll_until(publisher: aeron.RecordedPublisher, condition: Callable[[], object]) -> None:
    """Polls until `condition` returns true."""

    def holds() -> bool:
        publisher.poll()
        return bool(condition())

    eventually(holds)


def the_id(publisher: aeron.RecordedPublisher) -> int:
    assert publisher.recording_id is not None
    return publisher.recording_id


def test_the_example_of_the_documentation_works(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "archive.md").read_text()
    section = page.partition("## A publisher that loses no message")[2]
    program = section.partition("```python\n")[2].partition("```")[0]
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "recorded up to" in done.stdout


def test_all_forms_of_sending_record_each_message_once_and_in_order(
    server: Server, publisher: aeron.RecordedPublisher
) -> None:
    rows = np.arange(1000, dtype="<u8")
    assert publisher.publish(b"published", timeout=5) == 64
    assert publisher.offer(b"offered") == 128
    assert publisher.offer_batch(MESSAGES) == len(MESSAGES)
    assert publisher.offer_batch(MESSAGES, start=98) == 1
    assert publisher.offer_batch(b"one two", offsets=[0, 3, 7]) == 2
    assert publisher.offer_batch(rows.reshape(1000, 1)) == 1000
    assert publisher.offer_batch([]) == 0
    assert publisher.flush(timeout=5)
    assert publisher.position == publisher.recorded_position
    assert (publisher.unrecorded_messages, publisher.unrecorded_bytes, publisher.unrecorded()) == (0, 0, [])
    expected = [b"published", b"offered", *MESSAGES, MESSAGES[-1], b"one", b" two", *(row.tobytes() for row in rows)]
    assert recorded(server, the_id(publisher)) == expected


def test_coroutines_offer_and_wait(server: Server, stream_id: int) -> None:
    async def run() -> int:
        async with aeron.RecordedPublisher(CHANNEL, stream_id, driver=server.driver) as publisher:
            assert await asyncio.wait_for(publisher.offer_async(b"first"), 10) == 64
            assert await asyncio.wait_for(publisher.offer_batch_async(MESSAGES), 10) == len(MESSAGES)
            assert await publisher.flush_async(timeout=10)
            return the_id(publisher)

    assert recorded(server, asyncio.run(run())) == [b"first", *MESSAGES]


def test_the_error_of_a_cancelled_or_failed_coroutine_has_the_number_of_accepted_messages(
    server: Server, stream_id: int
) -> None:
    async def run() -> None:
        publisher = aeron.RecordedPublisher(CHANNEL, stream_id, driver=server.driver, buffer_length=64 * 1024)
        await asyncio.wait_for(publisher.offer_async(b"first"), 10)
        server.stop()
        with pytest.raises(TimeoutError) as caught:
            await asyncio.wait_for(publisher.offer_batch_async([bytes(5000)] * 20), 0.3)
        cancelled = caught.value.__cause__
        assert 10 <= cancelled.sent < 20  # type: ignore[union-attr]
        assert not await publisher.flush_async(timeout=0.05)
        with_rest(publisher)
        with pytest.raises(aeron.PublicationClosedError):
            await publisher.offer_async(b"late")
        with pytest.raises(aeron.PublicationClosedError):
            await publisher.flush_async()

    asyncio.run(run())


def test_messages_that_are_accepted_while_the_archive_is_down_are_recorded_after_its_restart(
    server: Server, stream_id: int
) -> None:
    positions: list[int] = []
    with aeron.RecordedPublisher(CHANNEL, stream_id, driver=server.driver, on_reconnect=positions.append) as publisher:
        expected = []
        for number in range(3):
            for message in MESSAGES:
                publisher.publish(message, timeout=10)
            expected += MESSAGES
            server.stop()
            poll_until(publisher, lambda: not publisher.is_connected)
            ends = [publisher.offer(message) for message in MESSAGES]
            expected += MESSAGES
            assert publisher.unrecorded_messages >= len(MESSAGES)
            assert publisher.unrecorded()[-1] == MESSAGES[-1]
            assert not publisher.flush(timeout=0)
            server.start()
            assert publisher.flush(timeout=20)
            assert publisher.recorded_position == ends[-1]
            assert publisher.reconnects == number + 1 == len(positions)
        recording_id = the_id(publisher)
    assert positions == sorted(positions)
    assert recorded(server, recording_id) == expected


def test_the_publisher_extends_a_recording_that_was_stopped(
    server: Server, publisher: aeron.RecordedPublisher, client: aeron.Aeron
) -> None:
    publisher.publish(b"before", timeout=5)
    assert publisher.flush(timeout=5)
    with aeron.connect_archive(client) as archive:
        assert archive.try_stop_recording_by_identity(the_id(publisher))
        publisher.publish(b"after", timeout=5)
        assert publisher.flush(timeout=10)
        assert archive.get_recording_position(the_id(publisher)) == publisher.position
    assert publisher.reconnects == 1
    assert recorded(server, the_id(publisher)) == [b"before", b"after"]


def test_the_publisher_connects_to_a_new_driver_in_the_same_directory(tmp_path: Path) -> None:
    directory = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    settings: dict[str, Any] = {"ipc_term_buffer_length": 64 * 1024, "dir_delete_on_shutdown": True}
    errors: list[aeron.RecordedPublisherError] = []
    driver = aeron.MediaDriver(dir=directory / "driver", **settings)
    server = Server(driver, tmp_path / "archive")
    publisher = aeron.RecordedPublisher(
        CHANNEL, 1001, driver=directory / "driver", driver_timeout_ms=500, on_error=errors.append
    )
    publisher.publish(b"before", timeout=10)
    assert publisher.flush(timeout=5)
    server.stop()
    driver.close()
    assert publisher.offer(b"between")
    poll_until(publisher, lambda: errors)
    assert publisher.offer(b"still between")
    with aeron.MediaDriver(dir=directory / "driver", **settings) as server.driver:
        server.start()
        publisher.publish(b"after", timeout=20)
        publisher.close(timeout=20)
        assert recorded(server, the_id(publisher)) == [b"before", b"between", b"still between", b"after"]
        server.stop()
    assert any(isinstance(error.__cause__, aeron.ClientClosedError | aeron.DriverTimeoutError) for error in errors)


def test_an_archive_on_another_driver_records_over_the_network(driver: aeron.MediaDriver, tmp_path: Path) -> None:
    control = f"aeron:udp?endpoint=localhost:{free_port()}"
    with (
        aeron.MediaDriver(timer_interval_ns=100_000_000) as other,
        aeron.Archive(tmp_path / "archive", driver=other, control_channel=control, **SETTINGS) as archive,
        aeron.RecordedPublisher(
            f"aeron:udp?endpoint=localhost:{free_port()}|term-length=64k",
            1001,
            driver=driver,
            source="REMOTE",
            control_channel=control,
        ) as publisher,
    ):
        for message in MESSAGES:
            publisher.publish(message, timeout=10)
        assert publisher.flush(timeout=10)
        server = Server.__new__(Server)
        server.driver, server.archive = other, archive
        assert recorded(server, the_id(publisher)) == MESSAGES


def test_a_local_stream_over_udp_is_recorded_without_another_subscriber(server: Server, stream_id: int) -> None:
    channel = f"aeron:udp?endpoint=localhost:{free_port()}|term-length=64k"
    with aeron.RecordedPublisher(channel, stream_id, driver=server.driver) as publisher:
        publisher.publish(b"spied", timeout=10)
    assert recorded(server, the_id(publisher)) == [b"spied"]


@pytest.mark.parametrize("name", ["alias", "recording_id"])
def test_a_later_publisher_continues_at_the_end_of_the_recording(server: Server, stream_id: int, name: str) -> None:
    settings: dict[str, Any] = {"alias": "trades"} if name == "alias" else {}
    with aeron.RecordedPublisher(CHANNEL, stream_id, driver=server.driver, **settings) as first:
        end = first.publish(b"first", timeout=10)
    if name == "recording_id":
        settings = {"recording_id": first.recording_id}
    with aeron.RecordedPublisher(CHANNEL, stream_id, driver=server.driver, **settings) as second:
        second.wait_connected(timeout=20)
        assert (second.recording_id, second.position) == (first.recording_id, end)
        assert second.publish(b"second", timeout=5) == end + 64
        assert (second.reconnects, second.offered_again) == (0, 0)
    assert recorded(server, the_id(second)) == [b"first", b"second"]


def test_an_alias_must_match_completely(server: Server, stream_id: int) -> None:
    ids = []
    for alias in ("trades-eu", "trades", "trades-us", "trades"):
        with aeron.RecordedPublisher(CHANNEL, stream_id, driver=server.driver, alias=alias) as publisher:
            publisher.publish(alias.encode(), timeout=20)
        ids.append(the_id(publisher))
    assert ids[1] == ids[3]
    assert len(set(ids)) == 3


def test_a_publisher_of_an_archive_client_has_the_settings_of_the_client(
    server: Server, client: aeron.Aeron, stream_id: int
) -> None:
    with aeron.connect_archive(client, client_name="settings") as archive:
        with archive.recorded_publisher(CHANNEL, stream_id, alias="from-client") as publisher:
            position = publisher.publish(b"hello", timeout=10)
            publisher.wait_recorded(position, timeout=5)
        [recording] = archive.list_recordings(stream_id=stream_id)
        assert "alias=from-client" in recording.original_channel
        with pytest.raises(TypeError, match="recorded_publisher has no setting client_name"):
            archive.recorded_publisher(CHANNEL, stream_id, client_name="x")  # type: ignore[call-arg]


def test_the_publisher_accepts_no_message_before_an_archive_records_the_stream(
    driver: aeron.MediaDriver, stream_id: int, tmp_path: Path
) -> None:
    publisher = aeron.RecordedPublisher(CHANNEL, stream_id, driver=driver)
    assert publisher.offer(b"early") is aeron.NOT_CONNECTED
    assert publisher.offer_batch([b"early"]) == 0
    with pytest.raises(aeron.NotConnectedError, match="no archive has recorded the stream"):
        publisher.publish(b"early", timeout=0.05)
    with pytest.raises(aeron.NotConnectedError):
        publisher.wait_connected(timeout=0.05)
    assert (publisher.recording_id, publisher.position, publisher.recorded_position) == (None, None, None)
    assert not publisher.is_connected
    assert publisher.flush(timeout=0)
    server = Server(driver, tmp_path / "archive")
    with publisher:
        assert publisher.publish(b"late", timeout=20) == 64
    assert recorded(server, the_id(publisher)) == [b"late"]
    server.stop()


def test_a_full_buffer_causes_back_pressure(server: Server, stream_id: int) -> None:
    with aeron.RecordedPublisher(CHANNEL, stream_id, driver=server.driver, buffer_length=64 * 1024) as publisher:
        publisher.wait_connected(timeout=10)
        server.stop()
        message = bytes(4000)
        eventually(lambda: publisher.offer(message) is aeron.BACK_PRESSURED)
        assert publisher.unrecorded_bytes + 32 * publisher.unrecorded_messages > 64 * 1024 - 4032
        assert publisher.offer_batch([message]) == 0
        with pytest.raises(aeron.BackPressureTimeoutError, match="the buffer is full"):
            publisher.publish(message, timeout=0.05)
        poll_until(publisher, lambda: not publisher.is_connected)
        with pytest.raises(aeron.NotConnectedError, match="no archive has recorded the stream"):
            publisher.wait_connected(timeout=0.05)
        count = publisher.unrecorded_messages
        server.start()
        publisher.publish(message, timeout=20)
    assert recorded(server, the_id(publisher)) == [message] * (count + 1)


def test_a_message_that_is_too_long_is_refused(server: Server, publisher: aeron.RecordedPublisher) -> None:
    with pytest.raises(aeron.MessageTooLongError, match="length 8193 exceeds the maximum of 8192 bytes"):
        publisher.offer(bytes(8193))
    with pytest.raises(aeron.MessageTooLongError):
        publisher.offer_batch([bytes(8193)])
    assert publisher.offer_batch([b"short", bytes(8193)]) == 1
    with pytest.raises(aeron.MessageTooLongError):
        publisher.publish(bytes(8193))
    assert publisher.offer(bytes(8192))
    assert publisher.flush(timeout=5)
    assert recorded(server, the_id(publisher)) == [b"short", bytes(8192)]


def test_closing_the_publisher_reports_unrecorded_messages(server: Server, stream_id: int) -> None:
    publisher = aeron.RecordedPublisher(CHANNEL, stream_id, driver=server.driver)
    first = publisher.publish(b"first", timeout=10)
    assert publisher.flush(timeout=5)
    server.stop()
    last = publisher.publish(b"lost", timeout=1)
    with pytest.raises(aeron.UnrecordedMessagesError, match=r"1 messages \(4 bytes\) of stream") as caught:
        publisher.close(timeout=0.1)
    assert (caught.value.messages, caught.value.bytes) == (1, 4)
    assert (caught.value.recorded_position, caught.value.position) == (first, last)
    assert publisher.is_closed
    assert publisher.unrecorded() == [b"lost"]
    publisher.close()
    with pytest.raises(aeron.PublicationClosedError):
        publisher.offer(b"late")
    with pytest.raises(aeron.PublicationClosedError):
        publisher.poll()


def test_an_exception_in_the_block_has_a_note_about_unrecorded_messages(server: Server, stream_id: int) -> None:
    with (
        pytest.raises(IndexError) as caught,
        aeron.RecordedPublisher(CHANNEL, stream_id, driver=server.driver) as publisher,
    ):
        publisher.publish(b"recorded", timeout=10)
        raise IndexError
    assert not hasattr(caught.value, "__notes__")
    assert publisher.is_closed

    async def run() -> None:
        async with aeron.RecordedPublisher(CHANNEL, stream_id + 1, driver=server.driver) as publisher:
            await publisher.offer_async(b"recorded")
            server.stop()
            await publisher.offer_async(b"lost")
            raise KeyError

    with pytest.raises(KeyError) as raised:
        asyncio.run(run())
    assert "messages" in raised.value.__notes__[0]


def test_a_deleted_recording_fails_the_publisher_and_the_publisher_keeps_its_messages(
    server: Server, publisher: aeron.RecordedPublisher, client: aeron.Aeron, errors: list[Any]
) -> None:
    publisher.publish(b"deleted", timeout=5)
    assert publisher.flush(timeout=5)
    server.stop()
    poll_until(publisher, lambda: not publisher.is_connected)
    publisher.offer(b"kept")
    publisher_id = the_id(publisher)
    server.start()
    with aeron.connect_archive(client) as archive:
        archive.purge_recording(publisher_id)
    with pytest.raises(aeron.RecordedPublisherError, match=f"unknown recording id: {publisher_id}") as caught:
        publisher.flush(timeout=20)
    assert caught.value.reason == "RECORDING_NOT_FOUND"
    assert publisher.has_failed
    assert str(publisher.failure_reason) == str(caught.value) == str(errors[-1])
    for call in (lambda: publisher.offer(b"more"), publisher.poll, lambda: publisher.publish(b"more")):
        with pytest.raises(aeron.RecordedPublisherError):
            call()
    assert publisher.unrecorded() == [b"kept"]
    with pytest.raises(aeron.UnrecordedMessagesError) as unrecorded:
        publisher.close()
    assert isinstance(unrecorded.value.__cause__, aeron.RecordedPublisherError)


def test_the_publisher_waits_for_the_end_of_another_publisher_for_a_limited_time(
    server: Server, publisher: aeron.RecordedPublisher, stream_id: int
) -> None:
    publisher.publish(b"first", timeout=5)
    settings: dict[str, Any] = {"driver": server.driver, "recording_id": the_id(publisher)}
    with aeron.RecordedPublisher(CHANNEL, stream_id, **settings, takeover_timeout=0.2) as other:
        with pytest.raises(aeron.RecordedPublisherError, match="another publisher extends it") as caught:
            other.wait_connected(timeout=10)
        assert caught.value.reason == "IN_USE"
    errors: list[aeron.RecordedPublisherError] = []
    with aeron.RecordedPublisher(CHANNEL, stream_id, **settings, on_error=errors.append) as other:
        poll_until(other, lambda: errors)
        publisher.close()
        other.publish(b"second", timeout=20)
        assert [error.reason for error in errors] == ["IN_USE"]
    assert recorded(server, the_id(other)) == [b"first", b"second"]


def test_a_publisher_fails_if_another_publisher_has_extended_its_recording(
    server: Server, publisher: aeron.RecordedPublisher, stream_id: int, client: aeron.Aeron
) -> None:
    publisher.publish(b"first", timeout=5)
    assert publisher.flush(timeout=5)
    with aeron.connect_archive(client) as archive:
        archive.try_stop_recording_by_identity(the_id(publisher))
    # The first publisher makes no call meanwhile, so it does not detect the end of its recording.
    with aeron.RecordedPublisher(
        CHANNEL, stream_id, driver=server.driver, recording_id=publisher.recording_id
    ) as other:
        other.publish(b"other", timeout=20)
    with pytest.raises(aeron.RecordedPublisherError, match="extended by another publisher") as caught:
        publisher.publish(b"late", timeout=5)
        publisher.flush(timeout=10)
    assert caught.value.reason == "EXTENDED_BY_OTHER"
    assert publisher.unrecorded() == [b"late"]
    assert recorded(server, the_id(other)) == [b"first", b"other"]


def test_a_recording_of_another_stream_is_refused(
    server: Server, publisher: aeron.RecordedPublisher, stream_id: int
) -> None:
    with (
        aeron.RecordedPublisher(
            CHANNEL, stream_id + 1, driver=server.driver, recording_id=publisher.recording_id
        ) as other,
        pytest.raises(aeron.RecordedPublisherError, match=f"has stream id {stream_id}, not") as caught,
    ):
        other.wait_connected(timeout=10)
    assert caught.value.reason == "STREAM_ID_MISMATCH"


def test_a_publisher_fails_if_its_recording_was_truncated(
    server: Server, publisher: aeron.RecordedPublisher, client: aeron.Aeron
) -> None:
    for message in MESSAGES:
        publisher.publish(message, timeout=5)
    assert publisher.flush(timeout=5)
    with aeron.connect_archive(client) as archive:
        archive.try_stop_recording_by_identity(the_id(publisher))
        archive.truncate_recording(the_id(publisher), 64)
    with pytest.raises(aeron.RecordedPublisherError, match="ends at position 64, although it was recorded") as caught:
        publisher.publish(b"late", timeout=5)
        publisher.flush(timeout=10)
    assert caught.value.reason == "RECORDED_POSITION_LOST"


def test_a_full_disk_is_reported_and_the_publisher_tries_again(server: Server, stream_id: int) -> None:
    errors: list[aeron.RecordedPublisherError] = []
    with aeron.RecordedPublisher(CHANNEL, stream_id, driver=server.driver, on_error=errors.append) as publisher:
        publisher.publish(b"before", timeout=10)
        assert publisher.flush(timeout=5)
        server.stop()
        server.start(low_storage_space_threshold=1 << 62)
        publisher.publish(b"after", timeout=10)

        def refusals() -> int:
            return sum(isinstance(error.__cause__, aeron.ArchiveStorageSpaceError) for error in errors)

        poll_until(publisher, lambda: refusals() > 2)
        assert not publisher.has_failed
        server.stop()
        server.start()
        assert publisher.flush(timeout=20)
    assert recorded(server, the_id(publisher)) == [b"before", b"after"]


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """Returns a users file with one user for each role. The password of a user is the name of the role."""
    text = ""
    for role in ("read", "record"):
        salt = b"0123456789abcdef"
        secret = hashlib.scrypt(role.encode(), salt=salt, n=1 << 14, r=8, p=1)
        encoded = [b64encode(part).rstrip(b"=").decode() for part in (salt, secret)]
        secret_text = f"$scrypt$ln=14,r=8,p=1${encoded[0]}${encoded[1]}"
        text += f'[[user]]\nname = "{role}"\nrole = "{role}"\nsecret = "{secret_text}"\n'
    users = tmp_path / "users.toml"
    users.write_text(text)
    users.chmod(0o600)
    return users


def test_a_publisher_needs_a_user_with_the_role_record(server: Server, stream_id: int, users: Path) -> None:
    server.stop()
    server.start(users_file=users)
    settings: dict[str, Any] = {"driver": server.driver, "message_timeout": 5}
    with aeron.RecordedPublisher(CHANNEL, stream_id, **settings, credentials=b"read:read") as publisher:
        with pytest.raises(aeron.RecordedPublisherError, match="unauthorised action") as caught:
            publisher.wait_connected(timeout=10)
        assert isinstance(caught.value.__cause__, aeron.UnauthorisedActionError)
        assert caught.value.code == aeron.UnauthorisedActionError.code
    with aeron.RecordedPublisher(CHANNEL, stream_id, **settings, credentials=b"read:wrong") as publisher:
        with pytest.raises(aeron.RecordedPublisherError) as caught:
            publisher.wait_connected(timeout=10)
        assert isinstance(caught.value.__cause__, aeron.AuthenticationRejectedError)
    with aeron.RecordedPublisher(CHANNEL, stream_id, **settings, credentials=lambda _: b"record:record") as publisher:
        publisher.publish(b"before", timeout=10)
        server.stop()
        publisher.publish(b"after", timeout=10)
        server.start(users_file=users)
        assert publisher.flush(timeout=20)
    server.stop()
    server.start()
    assert recorded(server, the_id(publisher)) == [b"before", b"after"]


def test_connections_of_a_closed_client_use_its_credentials_function(
    server: Server, client: aeron.Aeron, stream_id: int, users: Path
) -> None:
    server.stop()
    server.start(users_file=users)
    asked: list[bytes | None] = []

    def credentials(challenge: bytes | None) -> bytes:
        asked.append(challenge)
        return b"record:record"

    archive = aeron.connect_archive(client, credentials=credentials)
    archive.close()
    with archive.reconnect() as again:
        assert again.list_recordings() == ()
    with archive.recorded_publisher(CHANNEL, stream_id) as publisher:
        publisher.publish(b"message", timeout=10)
        assert publisher.flush(timeout=10)
    follower = again.reconnect().follow(the_id(publisher), position="earliest")
    again.close()
    with follower:
        assert next(follower.batches(timeout=10)).to_list() == [b"message"]
    assert len(asked) >= 4


def test_a_handler_may_call_the_publisher_and_its_exception_is_raised_by_the_outer_call(
    server: Server, publisher: aeron.RecordedPublisher, stream_id: int
) -> None:
    accepted: list[object] = []

    def on_reconnect(position: int) -> None:
        accepted.append(other.offer(b"in the handler"))
        raise KeyError(position)

    with aeron.RecordedPublisher(
        CHANNEL, stream_id + 1_000_000, driver=server.driver, on_reconnect=on_reconnect
    ) as other:
        end = other.publish(b"before", timeout=10)
        assert other.flush(timeout=5)
        server.stop()
        server.start()
        with pytest.raises(KeyError, match=str(end)):
            poll_until(other, lambda: accepted)
        assert other.publish(b"after", timeout=5)
    assert recorded(server, the_id(other)) == [b"before", b"in the handler", b"after"]


def test_a_handler_may_close_the_publisher(server: Server, stream_id: int) -> None:
    publisher = aeron.RecordedPublisher(
        CHANNEL, stream_id, driver=server.driver, recording_id=7_000, on_error=lambda _: publisher.close()
    )
    with pytest.raises(aeron.RecordedPublisherError, match="unknown recording id: 7000"):
        publisher.publish(b"never", timeout=10)
    assert publisher.is_closed


def test_calls_of_a_second_thread_are_refused_while_a_call_runs(server: Server, stream_id: int) -> None:
    """A waiting call releases the GIL between its steps, so other threads run and may call the publisher."""
    with aeron.RecordedPublisher(CHANNEL, stream_id, driver=server.driver) as publisher:
        publisher.wait_connected(timeout=10)
        count = 2_000
        refused = []

        def offer() -> None:
            sent = 0
            while sent < count:
                try:
                    sent += bool(publisher.offer(b"x"))
                except aeron.ReentrantCallError as error:
                    refused.append(error)

        threads = [threading.Thread(target=offer) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert recorded(server, the_id(publisher)) == [b"x"] * (2 * count)


def test_dropping_a_publisher_closes_it_and_releases_its_handlers(
    server: Server, stream_id: int, client: aeron.Aeron
) -> None:
    class Handler:
        def __call__(self, _error: object) -> None:
            """Does nothing."""

    handler = Handler()
    publisher = aeron.RecordedPublisher(CHANNEL, stream_id, driver=server.driver, on_error=handler)
    publisher.wait_connected(timeout=10)
    handler.publisher = publisher  # type: ignore[attr-defined]
    recording_id = the_id(publisher)
    gone = weakref.ref(publisher), weakref.ref(handler)
    del handler, publisher
    gc.collect()
    assert [reference() for reference in gone] == [None, None]
    with aeron.connect_archive(client) as archive:
        eventually(lambda: archive.get_stop_position(recording_id) is not None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_cannot_use_the_publisher(server: Server, publisher: aeron.RecordedPublisher) -> None:
    publisher.publish(b"parent", timeout=5)
    child = os.fork()
    if child == 0:
        try:
            publisher.offer(b"child")
        except aeron.ForkedError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert publisher.flush(timeout=5)
    assert recorded(server, the_id(publisher)) == [b"parent"]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"colour": "red"}, TypeError, "RecordedPublisher has no setting colour"),
        ({"on_signal": print}, TypeError, "on_signal and error_handler are settings of connect_archive alone"),
        ({"recording_id": -1}, aeron.ConfigurationError, "invalid recording_id -1"),
        ({"recording_id": 1, "alias": "a"}, aeron.ConfigurationError, "both name a recording"),
        ({"alias": "a|b"}, aeron.ConfigurationError, "alias"),
        ({"buffer_length": 100}, aeron.ConfigurationError, "buffer_length=100 is less than 65536"),
        ({"buffer_length": -1}, (TypeError, OverflowError, ValueError), "buffer_length"),
        ({"takeover_timeout": -1}, ValueError, "takeover_timeout|timeout=-1"),
        ({"source": "NEAR"}, TypeError, "LOCAL"),
        ({"on_reconnect": 7}, TypeError, "on_reconnect"),
        ({"message_timeout": 0}, aeron.ConfigurationError, "message_timeout_ns"),
    ],
)
def test_invalid_settings_are_refused(change: dict[str, Any], error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        aeron.RecordedPublisher(CHANNEL, 1001, driver="/nowhere", **change)


def test_the_repr_of_a_publisher_shows_its_stream_and_state(server: Server, stream_id: int) -> None:
    publisher = aeron.RecordedPublisher(CHANNEL, stream_id, driver=server.driver)
    assert (publisher.channel, publisher.stream_id) == (CHANNEL, stream_id)
    assert repr(publisher) == f"<RecordedPublisher {CHANNEL} stream {stream_id}, recording -1, not recorded>"
    publisher.wait_connected(timeout=10)
    assert repr(publisher).endswith(f"recording {publisher.recording_id}, recorded>")
    publisher.close()
    assert repr(publisher).endswith(", closed>")


def test_waiting_for_a_position_that_is_not_recorded_raises_an_error_after_the_timeout(
    publisher: aeron.RecordedPublisher,
) -> None:
    position = publisher.publish(b"hello", timeout=5)
    publisher.wait_recorded(position, timeout=5)
    begin = time.monotonic()
    problem = f"position {position + 64} was not recorded within the timeout: the stream is recorded up to {position}$"
    with pytest.raises(aeron.ArchiveTimeoutError, match=problem):
        publisher.wait_recorded(position + 64, timeout=0.1)
    assert time.monotonic() - begin < 3
