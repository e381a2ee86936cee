"""Tests of connections to an archive that end at each step, because the driver or the archive does not respond.

The tests know the steps from the texts of the error. A test checks that the steps are complete.
"""

from __future__ import annotations

import re
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import eventually
from tests.scripted_archive import Request, ScriptedArchive

import aeron

MESSAGE_TIMEOUT_S = 0.15
# The message timeout, and the time that a busy machine may need in addition.
SLOW_S = 5.0
RUST = Path(__file__).parent.parent / "rust" / "archive" / "src" / "client"
CHALLENGE, CONNECT, CHALLENGE_RESPONSE, ARCHIVE_ID = 59, 58, 60, 68
SESSION, ARCHIVE, HEARTBEAT_TYPE = 77, 4242, 11
# The first version of the protocol in which clients request the id of the archive: 1.11.0.
WITH_ARCHIVE_ID = 1 << 16 | 11 << 8

# Each step of the handshake with the archive, and the request after which the archive is silent.
HANDSHAKE = {
    "connect": "the archive's publication on the response channel",
    "response": "the response to the connect request",
    "challenge": "the response to the connect request",
    "archive id": "the id of the archive",
}
NO_ARCHIVE = "an archive that subscribes to the request channel"
DRIVER_STEPS = {
    "a session id of the driver",
    "the subscription to the response channel",
    "the publication to the request channel",
}
UNTESTED = {
    "nothing": "the connection has ended",
    "room for the connect request": "the new request stream is empty",
    "room for the challenge response": "the request stream has room for more messages than a handshake has",
    "room for the archive id request": "the request stream has room for more messages than a handshake has",
    "room for the first keep-alive": "the request stream has room for more messages than a handshake has",
}


class SilentArchive(ScriptedArchive):
    """A simulated archive that becomes silent at a step of the handshake. With `None`, the archive accepts clients."""

    silent_at: str | None = None

    def _on_request(self, payload: bytes) -> None:
        block_length, template, _, _ = struct.unpack_from("<4H", payload)
        if template == CONNECT:
            correlation_id, stream_id, _ = struct.unpack_from("<qii", payload, 8)
            (length,) = struct.unpack_from("<I", payload, 8 + block_length)
            channel = payload[12 + block_length : 12 + block_length + length].decode()
            self._on_client(correlation_id, channel, stream_id)
        elif template in (CHALLENGE_RESPONSE, ARCHIVE_ID):
            _, correlation_id = struct.unpack_from("<qq", payload, 8)
            if template == CHALLENGE_RESPONSE and self.silent_at != "challenge":
                self.accept(correlation_id)
            if template == ARCHIVE_ID and self.silent_at != "archive id":
                self.respond(Request("archive id", (SESSION, correlation_id), ""), ARCHIVE)

    def _on_client(self, correlation_id: int, channel: str, stream_id: int) -> None:
        if self.silent_at == "connect":
            return
        if self._responses is not None:
            self._responses.close()
        self._responses = self.client.add_exclusive_publication(channel, stream_id)
        if self.silent_at == "response":
            return
        self._responses.wait_connected(timeout=5)
        if self.silent_at == "challenge":
            self._send(CHALLENGE, struct.pack("<qqi", SESSION, correlation_id, 0), b"riddle")
        else:
            self.accept(correlation_id)

    def accept(self, correlation_id: int) -> None:
        block = struct.pack("<qqqii", SESSION, correlation_id, SESSION, 0, WITH_ARCHIVE_ID)
        self._send(1, block, b"")

    def forget_client(self) -> None:
        """Closes the publication of the responses."""
        if self._responses is not None:
            self._responses.close()
            self._responses = None


@pytest.fixture(scope="module")
def driver() -> Iterator[aeron.MediaDriver]:
    """A driver without resources of other tests, that soon frees the resources of this one."""
    settings = {"timer_interval_ns": 20_000_000, "publication_linger_timeout_ns": 50_000_000}
    with aeron.MediaDriver(ipc_term_buffer_length=64 * 1024, **settings) as driver:
        yield driver


@pytest.fixture
def archive_client(driver: aeron.MediaDriver) -> Iterator[aeron.Aeron]:
    with aeron.connect(driver) as client:
        yield client


@pytest.fixture
def archive(archive_client: aeron.Aeron, stream_id: int) -> SilentArchive:
    return SilentArchive(archive_client, stream_id)


def resources(client: aeron.Aeron) -> Counter[tuple[int, str]]:
    """Returns type and label of all counters of the driver except heartbeats of clients.

    Each publication and subscription has a counter.
    """
    found = client.counters_reader.snapshot()
    return Counter((counter.type_id, counter.label) for counter in found if counter.type_id != HEARTBEAT_TYPE)


def until_freed(
    client: aeron.Aeron, before: Counter[tuple[int, str]], work: Callable[[], object] = lambda: None
) -> None:
    """Waits until the driver has freed all resources that it did not have before.

    The archive must poll meanwhile: the driver keeps a closed publication until its subscribers have read all of it.
    """
    try:
        eventually(lambda: (work(), resources(client) == before)[1], timeout=SLOW_S)
    finally:
        after = resources(client)
        assert (after - before, before - after) == (Counter(), Counter())


class Connect:
    """A connection to an archive, made with `async_connect_archive` or, in another thread, with `connect_archive`."""

    def __init__(self, client: aeron.Aeron, control_stream_id: int, threads: ThreadPoolExecutor | None = None) -> None:
        settings: dict[str, Any] = {
            "control_stream_id": control_stream_id,
            "response_stream_id": control_stream_id + 100_000,
            "control_term_buffer_length": 64 * 1024,
            "message_timeout": MESSAGE_TIMEOUT_S,
            "credentials": lambda challenge: b"name" if challenge is None else b"answer to the riddle",
        }
        self._begin = time.monotonic()
        if threads is None:
            self.attempt: Any = aeron.async_connect_archive(client, **settings)
        else:
            self.attempt = threads.submit(aeron.connect_archive, client, **settings)

    def end(self, meanwhile: Callable[[], object] = lambda: None) -> aeron.AeronArchive:
        """Waits for the end, and calls `meanwhile` again and again."""
        eventually(lambda: (meanwhile(), self.attempt.done())[1], timeout=SLOW_S)
        return self.attempt.result(timeout=0)

    def awaited(self, meanwhile: Callable[[], object] = lambda: None) -> str:
        """Waits for the failure, and returns the step that the client was waiting for."""
        with pytest.raises(aeron.ArchiveTimeoutError) as caught:
            self.end(meanwhile)
        found = re.fullmatch(
            r"no connection to the archive on aeron:ipc.* within 150ms: awaiting (.*)", str(caught.value)
        )
        assert found, caught.value
        assert MESSAGE_TIMEOUT_S <= time.monotonic() - self._begin < SLOW_S
        return found[1]


@pytest.fixture(params=["connect_archive", "async_connect_archive"])
def threads(request: pytest.FixtureRequest) -> Iterator[ThreadPoolExecutor | None]:
    """Returns the threads for connections that block; `None` for the asynchronous form."""
    if request.param == "async_connect_archive":
        yield None
    else:
        with ThreadPoolExecutor(1) as threads:
            yield threads


@pytest.mark.parametrize("step", HANDSHAKE)
def test_a_connection_ends_at_the_step_at_which_the_archive_is_silent_and_the_next_one_succeeds(
    client: aeron.Aeron, archive: SilentArchive, step: str, threads: ThreadPoolExecutor | None
) -> None:
    before = resources(client)
    archive.silent_at = step
    assert Connect(client, archive.control_stream_id, threads).awaited(archive.step) == HANDSHAKE[step]
    archive.forget_client()
    until_freed(client, before, archive.step)
    archive.silent_at = None
    with Connect(client, archive.control_stream_id, threads).end(archive.step) as connected:
        assert connected.archive_id == ARCHIVE
        assert connected.state == "CONNECTED"
    archive.forget_client()
    until_freed(client, before, archive.step)


def test_a_connection_ends_if_there_is_no_archive_and_the_next_one_succeeds(
    client: aeron.Aeron, archive_client: aeron.Aeron, stream_id: int, threads: ThreadPoolExecutor | None
) -> None:
    before = resources(client)
    assert Connect(client, stream_id, threads).awaited() == NO_ARCHIVE
    until_freed(client, before)
    archive = SilentArchive(archive_client, stream_id)
    with Connect(client, stream_id, threads).end(archive.step) as connected:
        assert connected.archive_id == ARCHIVE
    archive.forget_client()
    until_freed(client, before, archive.step)


def test_a_connection_ends_at_every_step_at_which_the_driver_is_silent(stream_id: int) -> None:
    """The test runs the driver for 0, 1, 2 or more duty cycles, and then no longer."""
    with aeron.MediaDriver(threading_mode="INVOKER", ipc_term_buffer_length=64 * 1024) as driver:
        connecting = aeron.async_connect(driver.dir, idle_sleep_duration_ns=1_000_000)
        eventually(lambda: driver.do_work() >= 0 and connecting.done())
        with connecting.result() as client:
            before = resources(client)
            found: list[str] = []
            while NO_ARCHIVE not in found:
                attempt = Connect(client, stream_id)
                for _ in range(len(found)):
                    driver.do_work()
                    # The client processes the responses in its own thread.
                    time.sleep(0.005)
                    attempt.attempt.done()
                found.append(attempt.awaited())
                assert found[-1] in DRIVER_STEPS | {NO_ARCHIVE}
                until_freed(client, before, driver.do_work)
            assert set(found) >= DRIVER_STEPS
            # The client works after all these failures.
            adding = client.async_add_publication("aeron:ipc", stream_id)
            eventually(lambda: driver.do_work() >= 0 and adding.done())
            assert not adding.result(timeout=0).is_closed


def test_every_step_of_a_connection_is_tested_or_has_a_reason() -> None:
    steps = {NO_ARCHIVE, *HANDSHAKE.values(), *DRIVER_STEPS, *UNTESTED}
    assert steps == set(awaited_steps())


def awaited_steps() -> Iterator[str]:
    """Yields the steps that the source texts name."""
    for name in ("handshake.rs", "connecting.rs"):
        _, _, rest = (RUST / name).read_text().partition("fn awaited(")
        body, _, _ = rest.partition("\n    }\n")
        yield from re.findall(r'"([^"]+)"', body)
