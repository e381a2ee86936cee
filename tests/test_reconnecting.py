"""Clients with `reconnect`, on drivers in their own processes that are killed."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import aeron
from aeron.metrics import snapshot
from commands import Command, driver_directory, run
from conftest import eventually

_STREAM = 1001
_ANY_PORT = "aeron:udp?endpoint=localhost:0"
_FAST = aeron.Reconnect(min_delay=0.02)


class Programs:
    """A driver in a directory, and an archive on it, which a test kills and starts again."""

    def __init__(self, directory: Path, archive_directory: Path) -> None:
        self.directory, self.archive_directory = directory, archive_directory
        self._running: list[Command] = []

    def start(self, archive: bool = False) -> None:
        driver = self._run("driver", "--dir", self.directory)
        info = ("info", "--dir", self.directory, "-t", 100, "-P")
        eventually(lambda: run(*info).stdout.strip() == str(driver.pid), 15)
        if archive:
            settings = (
                "-Daeron.archive.control.channel.enabled=false",
                f"-Daeron.archive.replication.channel={_ANY_PORT}",
            )
            directories = ("--dir", self.directory, "--archive-dir", self.archive_directory)
            self._run("archive", "run", *settings, *directories)

    def _run(self, *arguments: object) -> Command:
        self._running.append(Command(*arguments).__enter__())
        return self._running[-1]

    def kill(self) -> None:
        """Kills all programs."""
        for program in reversed(self._running):
            program.__exit__()
        self._running.clear()


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    with driver_directory() as directory:
        programs = Programs(directory, tmp_path / "archive")
        programs.start()
        yield programs
        programs.kill()


Connect = Callable[..., aeron.Aeron]


@pytest.fixture
def connect(programs: Programs) -> Iterator[Connect]:
    clients: list[aeron.Aeron] = []

    def start(**settings: object) -> aeron.Aeron:
        given: dict[str, Any] = {"reconnect": _FAST, "error_handler": lambda _: None, **settings}
        clients.append(aeron.connect(programs.directory, **given))
        return clients[-1]

    yield start
    for client in clients:
        client.close()


def _lose(programs: Programs, client: aeron.Aeron) -> None:
    programs.kill()
    eventually(lambda: not client.has_driver)


def test_the_sending_methods_return_not_connected_without_a_driver(programs: Programs, connect: Connect) -> None:
    client = connect()
    for add in (client.add_publication, client.add_exclusive_publication):
        publication = add("aeron:ipc", _STREAM)
        subscription = client.add_subscription("aeron:ipc", _STREAM)
        publication.wait_connected(timeout=10)
        _lose(programs, client)
        assert publication.offer(b"x") is aeron.NOT_CONNECTED
        assert publication.offer_parts([b"x", b"y"]) is aeron.NOT_CONNECTED
        assert publication.try_claim(5) is aeron.NOT_CONNECTED
        assert publication.offer_batch([b"x", b"y"]) == 0
        assert not publication.is_connected
        assert not publication.is_closed
        with pytest.raises(aeron.NotConnectedError, match="the client has had no driver"):
            publication.publish(b"x", timeout=0.05)
        with pytest.raises(aeron.NotConnectedError):
            publication.wait_connected(timeout=0.05)
        assert publication.refused.not_connected > 3
        programs.start()
        eventually(lambda: client.has_driver)
        publication.publish(b"on", timeout=10)
        assert publication.generation == 1
        assert not subscription.is_closed


def test_an_open_claim_is_aborted_with_its_driver_and_says_so(programs: Programs, connect: Connect) -> None:
    client = connect()
    subscription = client.add_subscription("aeron:ipc", _STREAM)
    publication = client.add_exclusive_publication("aeron:ipc", _STREAM)
    publication.wait_connected(timeout=10)
    claim = publication.claim(5)
    with pytest.raises(aeron.ClaimAbortedError, match="claim again and send it again"), publication.claim(5) as view:
        view[:] = b"never"
        _lose(programs, client)
    with pytest.raises(aeron.ClaimAbortedError):
        claim.commit()
    assert claim.is_finished
    assert not subscription.is_closed


def test_an_iterator_waits_for_the_next_driver(programs: Programs, connect: Connect) -> None:
    client = connect()
    subscription = client.add_subscription("aeron:ipc", _STREAM)
    publication = client.add_exclusive_publication("aeron:ipc", _STREAM)
    publication.publish(b"old", timeout=10)
    _lose(programs, client)
    batches = subscription.batches(timeout=30)
    assert [bytes(payload) for payload in next(batches)] == [b"old"]
    programs.start()
    publication.publish(b"new", timeout=10)
    assert [bytes(payload) for payload in next(batches)] == [b"new"]


def test_an_async_iterator_waits_for_the_next_driver(programs: Programs, connect: Connect) -> None:
    client = connect()
    publication = client.add_exclusive_publication("aeron:ipc", _STREAM)

    async def receive() -> list[bytes]:
        received: list[bytes] = []
        async for batch in client.add_subscription("aeron:ipc", _STREAM):
            received += [bytes(payload) for payload in batch]
            if received == [b"old"]:
                await asyncio.to_thread(_lose, programs, client)
                programs.start()
                await asyncio.to_thread(publication.publish, b"new", timeout=10)
            elif len(received) > 1:
                break
        return received

    async def main() -> list[bytes]:
        receiving = asyncio.create_task(receive())
        await asyncio.to_thread(publication.publish, b"old", timeout=10)
        return await asyncio.wait_for(receiving, 30)

    assert asyncio.run(main()) == [b"old", b"new"]


def test_a_counter_keeps_its_value(programs: Programs, connect: Connect) -> None:
    client = connect()
    counter = client.add_counter(1001, "my counter", key=b"k")
    counter.set(41)
    _lose(programs, client)
    assert counter.value == 41
    counter.increment()
    programs.start()

    def is_there() -> bool:
        found = [record for record in client.counters_reader if record.label == "my counter"]
        return [(record.value, record.type_id, record.key[:1]) for record in found] == [(42, 1001, b"k")]

    eventually(lambda: client.has_driver and is_there())
    counter.increment()
    assert client.counters_reader.value(counter.id) == 43


def test_the_handlers_tell_the_reason_and_what_was_lost(programs: Programs, connect: Connect) -> None:
    causes: list[BaseException] = []
    reports: list[aeron.ReconnectReport] = []
    client = connect(on_disconnect=causes.append, on_reconnect=reports.append)
    subscription = client.add_subscription("aeron:ipc", _STREAM)
    publication = client.add_exclusive_publication("aeron:ipc", _STREAM)
    publication.publish(b"read", timeout=10)
    eventually(lambda: subscription.poll(lambda *_: None))
    publication.publish(b"not read", timeout=10)
    _lose(programs, client)
    programs.start()
    eventually(lambda: reports)
    (report,) = reports
    (cause,) = causes
    assert isinstance(cause, aeron.DriverTimeoutError)
    assert "has ended" in str(cause)
    assert str(report.cause) == str(cause)
    assert report.reconnections == 1
    assert 0 < report.outage < 60
    sent = next(stream for stream in report.streams if stream.kind == "exclusive_publication")
    assert (sent.channel, sent.stream_id, sent.position) == ("aeron:ipc", _STREAM, 128)
    assert (sent.delivered_bytes, sent.lost_bytes, sent.possibly_lost_bytes) == (64, 0, 64)
    image = next(stream for stream in report.streams if stream.kind == "image")
    assert (image.session_id, image.position, image.lost_bytes) == (sent.session_id, 64, None)


def test_a_client_gives_up_when_the_program_says_so(programs: Programs, connect: Connect) -> None:
    client = connect(reconnect=aeron.Reconnect(min_delay=0.02, give_up_after=0.3))
    publication = client.add_publication("aeron:ipc", _STREAM)
    programs.kill()
    eventually(lambda: client.is_closed)
    assert isinstance(client.close_cause, aeron.DriverTimeoutError)
    with pytest.raises(aeron.PublicationClosedError):
        publication.offer(b"x")


def test_a_driver_of_another_version_is_final(programs: Programs, connect: Connect) -> None:
    client = connect()
    _lose(programs, client)
    cnc = programs.directory / "cnc.dat"
    content = bytearray(cnc.read_bytes())
    struct.pack_into("<i", content, 0, 0x0001_0000)
    (programs.directory / "next").write_bytes(content)
    os.replace(programs.directory / "next", cnc)
    eventually(lambda: client.is_closed)
    assert "version not compatible" in str(client.close_cause)


def test_a_client_without_reconnect_is_closed_for_good(programs: Programs, connect: Connect) -> None:
    client = connect(reconnect=False, driver_timeout_ms=500)
    programs.kill()
    eventually(lambda: client.is_closed)
    assert not client.has_driver


@pytest.mark.parametrize(
    ("reconnect", "error"),
    [
        ("yes", "reconnect='yes' is not True, False or an aeron.Reconnect"),
        (aeron.Reconnect(min_delay=0), "min_delay of reconnect is 0"),
        (aeron.Reconnect(min_delay=-1), "min_delay=-1"),
        (aeron.Reconnect(max_delay=0.01), "is below min_delay"),
        (aeron.Reconnect(give_up_after=float("nan")), "give_up_after=NaN"),
        (aeron.Reconnect(min_delay="soon"), "min_delay='soon' is not a number of seconds"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_argument_is_named(programs: Programs, reconnect: object, error: str) -> None:
    with pytest.raises(aeron.AeronError, match=error):
        aeron.connect(programs.directory, reconnect=reconnect)  # type: ignore[arg-type]


def test_an_archive_client_connects_again_with_the_same_client(programs: Programs, connect: Connect) -> None:
    programs.kill()
    programs.start(archive=True)
    client = connect()
    archive = aeron.connect_archive(client, control_channel="aeron:ipc", message_timeout=15)
    recording = archive.start_recording("aeron:ipc", _STREAM)
    publication = client.add_exclusive_publication("aeron:ipc", _STREAM)
    publication.publish(b"recorded", timeout=10)
    assert recording is not None
    eventually(lambda: any(found.stop_position is None for found in archive.list_recordings()))
    _lose(programs, client)
    with pytest.raises(aeron.AeronError):
        archive.list_recordings()
    programs.start(archive=True)
    eventually(lambda: client.has_driver)
    again = archive.reconnect()
    assert len(again.list_recordings()) == 1


def test_a_recorded_stream_continues_on_both_sides_with_the_next_driver(programs: Programs, connect: Connect) -> None:
    """The publisher notices the kill at once, and the persistent subscription gets each message once."""
    programs.kill()
    programs.start(archive=True)
    client, errors = connect(), list[Exception]()
    offered, received = list[bytes](), list[bytes]()
    archive: dict[str, Any] = {"control_channel": "aeron:ipc", "response_channel": "aeron:ipc", "message_timeout": 5}
    publisher: dict[str, Any] = {"driver": programs.directory, "on_error": errors.append, **archive}
    replay: dict[str, Any] = {"replay_channel": "aeron:ipc", "replay_stream_id": _STREAM + 1, **archive}
    with aeron.RecordedPublisher("aeron:ipc?term-length=64k", _STREAM, **publisher) as sent:
        eventually(lambda: sent.poll() >= 0 and sent.recording_id is not None, 30)
        live: dict[str, Any] = {"live_channel": "aeron:ipc", "live_stream_id": _STREAM}
        with aeron.PersistentSubscription(
            client, recording_id=sent.recording_id, start_position=aeron.FROM_START, **live, **replay
        ) as subscription:

            def is_complete() -> bool:
                """Takes a step of both sides. Before a kill, all live messages must be recorded."""
                sent.poll()
                subscription.poll(lambda message, _: received.append(bytes(message)), 100)
                return received == offered and sent.unrecorded_messages == 0

            for kill in range(3):
                for _ in range(10):
                    message = b"%d" % len(offered)
                    eventually(lambda message=message: sent.offer(message) > 0)  # type: ignore[misc]
                    offered.append(message)
                eventually(is_complete, 30)
                assert sent.reconnects == kill
                if kill < 2:
                    _lose(programs, client)
                    # Long before the driver timeout of 10 s.
                    eventually(lambda kill=kill: sent.poll() >= 0 and len(errors) > kill, 5)  # type: ignore[misc]
                    programs.start(archive=True)


def test_a_forked_child_leaves_the_client_to_its_parent(programs: Programs, connect: Connect) -> None:
    client = connect()
    publication = client.add_exclusive_publication("aeron:ipc", _STREAM)
    child = os.fork()
    if child == 0:
        try:
            publication.offer(b"x")
        except aeron.ForkedError:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    _lose(programs, client)
    programs.start()
    eventually(lambda: client.has_driver and publication.generation == 1)


def test_a_client_that_is_closed_without_a_driver_closes_at_once(programs: Programs, connect: Connect) -> None:
    client = connect(driver_timeout_ms=60_000)
    client.add_subscription("aeron:ipc", _STREAM)
    _lose(programs, client)
    client.close()
    assert client.is_closed
    programs.start()
    assert [found for found in snapshot(programs.directory).clients if found.name] == []


def test_a_process_that_was_paused_beyond_the_liveness_timeout_continues(programs: Programs) -> None:
    """The driver pauses instead, which is the same for a client with a short timeout."""
    with aeron.connect(programs.directory, reconnect=_FAST, driver_timeout_ms=400) as client:
        publication = client.add_exclusive_publication("aeron:ipc", _STREAM)
        subscription = client.add_subscription("aeron:ipc", _STREAM)
        programs._running[0].send(signal.SIGSTOP)
        eventually(lambda: not client.has_driver)
        programs._running[0].send(signal.SIGCONT)
        publication.publish(b"on", timeout=20)
        assert publication.generation == 1
        assert not subscription.is_closed
