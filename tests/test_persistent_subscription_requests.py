"""Tests of the requests that a `PersistentSubscription` sends to an archive with scripted responses.

A number such as 11-20 is line 20 of the checklist in document 11 of the specification (`docs/spec`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.conftest import eventually
from tests.scripted_archive import RECORDING_UNKNOWN, Request, ScriptedArchive

import aeron

IPC = "aeron:ipc"
REPLAY_STREAM = 4711
MESSAGE_TIMEOUT = 0.2
RECORDING = 9


@pytest.fixture
def source(client: aeron.Aeron, stream_id: int) -> aeron.ExclusivePublication:
    return client.add_exclusive_publication("aeron:ipc?term-length=64k", stream_id)


@pytest.fixture
def archive(client: aeron.Aeron, source: aeron.ExclusivePublication) -> ScriptedArchive:
    """Returns a scripted archive that lists an active recording of the source."""
    archive = ScriptedArchive(client, control_stream_id=source.stream_id + 100_000)
    archive.answers["list"] = lambda request: archive.describe(request, source)
    return archive


@pytest.fixture
def subscription(client: aeron.Aeron, archive: ScriptedArchive, source: aeron.ExclusivePublication) -> Iterator[Any]:
    with aeron.PersistentSubscription(
        client,
        recording_id=RECORDING,
        live_channel=IPC,
        live_stream_id=source.stream_id,
        replay_channel=IPC,
        replay_stream_id=REPLAY_STREAM,
        start_position=aeron.FROM_START,
        message_timeout=MESSAGE_TIMEOUT,
        control_stream_id=archive.control_stream_id,
    ) as subscription:
        yield subscription


class Program:
    """Polls the subscription and lets the archive handle requests, until a condition is true."""

    def __init__(self, archive: ScriptedArchive, subscription: aeron.PersistentSubscription) -> None:
        self.archive, self.subscription = archive, subscription
        self.messages: list[bytes] = []

    def until(self, holds: Callable[[], object]) -> None:
        def step() -> object:
            self.archive.step()
            self.messages += self.subscription.poll_batch().to_list()
            return holds()

        eventually(step)

    def until_asked(self, *names: str) -> Request:
        """Polls until the archive has received exactly the requests with these names. Returns the last of them."""
        self.until(lambda: len(self.archive.names()) >= len(names))
        assert self.archive.names() == list(names)
        return self.archive.last(names[-1])


@pytest.fixture
def program(archive: ScriptedArchive, subscription: aeron.PersistentSubscription) -> Program:
    return Program(archive, subscription)


def replay(
    client: aeron.Aeron, source: aeron.ExclusivePublication, position: int = 0, session_id: int = 12345
) -> aeron.ExclusivePublication:
    """Adds a publication that simulates a replay of the source from a position."""
    uri = aeron.ChannelUriBuilder("ipc")
    uri.initial_position(position, source.initial_term_id, source.term_buffer_length)
    return client.add_exclusive_publication(f"{uri}|session-id={session_id}", REPLAY_STREAM)


def test_the_recording_is_listed_and_then_replayed_from_the_start_position_without_an_end(program: Program) -> None:
    """11-11, 11-12, 11-13, 07-131"""
    request = program.until_asked("list", "replay")
    _, _, recording_id, position, length, stream_id, file_io_max_length, token = request.block
    assert (recording_id, position, length, stream_id) == (RECORDING, 0, -1, REPLAY_STREAM)
    assert (file_io_max_length, token) == (-1, -1)
    assert "rejoin=false" in request.text
    assert program.archive.last("list").block[2] == RECORDING


def test_a_request_without_a_response_is_repeated_with_another_correlation_id(program: Program) -> None:
    """11-20"""
    first = program.until_asked("list", "replay")
    second = program.until_asked("list", "replay", "replay")
    assert second.correlation_id != first.correlation_id
    assert second.block[2:] == first.block[2:]


def test_a_replay_of_a_late_response_is_stopped(program: Program) -> None:
    """11-20"""
    first = program.until_asked("list", "replay")
    program.until_asked("list", "replay", "replay")
    program.archive.respond(first, 1 << 32 | 5)
    program.until(lambda: "stop replay" in program.archive.names())
    assert program.archive.last("stop replay").block[2] == 1 << 32 | 5


def test_a_replay_without_an_image_is_stopped_and_requested_again_without_another_listing(program: Program) -> None:
    """11-21"""
    first = program.until_asked("list", "replay")
    program.archive.respond(first, 3 << 32 | 5)
    program.until(lambda: program.archive.names()[2:] == ["stop replay", "replay"])
    assert program.archive.last("stop replay").block[2] == 3 << 32 | 5
    second = program.archive.last("replay")
    assert second.correlation_id != first.correlation_id
    assert second.block[2:] == first.block[2:]


def test_after_a_lost_replay_the_recording_is_listed_and_replayed_from_the_last_position(
    program: Program, client: aeron.Aeron, source: aeron.ExclusivePublication
) -> None:
    """11-11, 11-43"""
    request = program.until_asked("list", "replay")
    played = replay(client, source)
    program.archive.respond(request, 1 << 32 | played.session_id)
    program.until(lambda: played.is_connected)
    position = played.publish(b"first", timeout=5)
    program.until(lambda: program.messages == [b"first"])
    played.close()
    program.until(lambda: program.archive.names()[-2:] == ["list", "replay"])
    assert program.archive.last("replay").block[3] == position


def test_a_message_is_not_replayed_again_if_the_replay_is_lost_while_its_handler_runs(
    program: Program, client: aeron.Aeron, source: aeron.ExclusivePublication
) -> None:
    """11-43"""
    request = program.until_asked("list", "replay")
    played = replay(client, source)
    program.archive.respond(request, 1 << 32 | played.session_id)
    program.until(lambda: played.is_connected)
    witness = client.add_subscription(IPC, REPLAY_STREAM)
    eventually(lambda: witness.images)
    position = played.publish(b"first", timeout=5)

    def on_message(payload: bytes, _: object) -> None:
        program.messages.append(payload)
        played.revoke()
        eventually(lambda: not witness.images)

    eventually(lambda: program.subscription.poll(on_message))
    program.until(lambda: program.archive.names()[-2:] == ["list", "replay"])
    assert program.archive.last("replay").block[3] == position
    assert program.messages == [b"first"]


def test_a_live_stream_that_lags_behind_the_replay_delivers_no_message_twice(
    program: Program, client: aeron.Aeron, source: aeron.ExclusivePublication
) -> None:
    """11-38, 07-131"""
    request = program.until_asked("list", "replay")
    played = replay(client, source)
    program.archive.respond(request, 1 << 32 | played.session_id)
    program.until(lambda: played.is_connected)
    for message in (b"one", b"two"):
        position = played.publish(message, timeout=5)
    program.archive.answers["max recorded position"] = lambda asked: program.archive.respond(asked, position)
    program.until(lambda: source.is_connected and program.subscription.state == "ATTEMPT_SWITCH")
    assert program.subscription.join_difference == -position
    for message in (b"one", b"two", b"three"):
        source.publish(message, timeout=5)
    program.until(lambda: program.subscription.is_live and len(program.messages) >= 3)
    assert program.messages == [b"one", b"two", b"three"]


def test_a_live_stream_that_is_lost_before_its_first_message_is_joined_again(
    program: Program, client: aeron.Aeron, source: aeron.ExclusivePublication
) -> None:
    """11-50"""
    archive = program.archive
    archive.answers["list"] = lambda request: archive.describe(request, source, stop_position=0)
    program.until(lambda: program.subscription.is_live)
    assert archive.names() == ["list"], "a replay was requested, although the recording is empty"
    again = aeron.ChannelUriBuilder("ipc")
    again.initial_position(0, source.initial_term_id, source.term_buffer_length)
    source.close()
    program.until(lambda: not program.subscription.is_live)
    successor = client.add_exclusive_publication(str(again), source.stream_id)
    program.until(lambda: program.subscription.is_live)
    successor.publish(b"hello", timeout=5)
    program.until(lambda: program.messages)
    assert program.messages == [b"hello"]


def test_the_error_for_an_unknown_recording_names_the_recording_id(program: Program, archive: ScriptedArchive) -> None:
    """11-30"""
    archive.answers["list"] = lambda request: archive.respond(request, RECORDING, RECORDING_UNKNOWN)
    with pytest.raises(aeron.PersistentSubscriptionError, match=f"unknown recording id: {RECORDING}"):
        program.until(lambda: False)
