"""Tests of the end of a replay. The archive has scripted responses, and the test publishes the replay.

If an archive is killed, the driver closes the publications of its replays. A subscriber sees the same end of stream as
after a complete replay.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from tests.conftest import eventually
from tests.scripted_archive import Request, ScriptedArchive

import aeron

RECORDING = 9
FRAME = 64
"""Length in bytes of the frame of the one message that arrives."""


@pytest.fixture
def scripted(client: aeron.Aeron, stream_id: int) -> Iterator[ScriptedArchive]:
    """Runs a scripted archive that starts a replay, publishes one message, and closes the publication."""
    scripted = ScriptedArchive(client, control_stream_id=stream_id)
    # Each test has its own session id, because the driver may still have the publication of the former test.
    session_id = 12345 + stream_id

    def publish(request: Request) -> None:
        channel = f"aeron:ipc?term-length=64k|linger=0|session-id={session_id}"
        with client.add_exclusive_publication(channel, request.block[5]) as publication:
            scripted.respond(request, 1 << 32 | session_id)
            publication.publish(bytes(FRAME - 32), timeout=5)

    scripted.answers["replay"] = publish
    is_over = threading.Event()

    def run() -> None:
        while not is_over.wait(0.001):
            scripted.step()

    thread = threading.Thread(target=run)
    thread.start()
    yield scripted
    is_over.set()
    thread.join()


@pytest.fixture
def archive(client: aeron.Aeron, scripted: ScriptedArchive) -> Iterator[aeron.AeronArchive]:
    with aeron.connect_archive(
        client,
        control_channel="aeron:ipc",
        control_stream_id=scripted.control_stream_id,
        response_channel="aeron:ipc",
        message_timeout=0.5,
    ) as archive:
        yield archive


def stopped_at(scripted: ScriptedArchive, position: int) -> Callable[[Request], None]:
    return lambda request: scripted.respond(request, position)


def received(archive: aeron.AeronArchive, length: int, position: int | None = 0) -> int:
    """Returns the number of received messages of a replay."""
    with archive.replay(RECORDING, stream_id=4712, position=position, length=length) as replay:
        return sum(len(batch) for batch in replay.batches(timeout=5))


LENGTHS = [2 * FRAME, aeron.REPLAY_ALL_AND_STOP, aeron.REPLAY_ALL_AND_FOLLOW]


@pytest.mark.parametrize("length", LENGTHS)
def test_a_replay_that_ends_early_raises_if_its_archive_does_not_respond(
    archive: aeron.AeronArchive, length: int
) -> None:
    with pytest.raises(aeron.ArchiveError, match=f"ended at position {FRAME}, and its archive does not confirm"):
        received(archive, length)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_replay_up_to_the_stop_position_of_its_recording_is_complete(
    archive: aeron.AeronArchive, scripted: ScriptedArchive, length: int
) -> None:
    scripted.answers["stop position"] = stopped_at(scripted, FRAME)
    assert received(archive, length) == 1


def test_a_replay_of_the_requested_length_is_complete_without_another_request(
    archive: aeron.AeronArchive, scripted: ScriptedArchive
) -> None:
    assert received(archive, FRAME) == 1
    assert "stop position" not in scripted.names()


@pytest.mark.parametrize("length", [2 * FRAME, aeron.REPLAY_ALL_AND_FOLLOW])
def test_a_replay_raises_if_it_ends_before_the_stop_position_and_before_the_requested_length(
    archive: aeron.AeronArchive, scripted: ScriptedArchive, length: int
) -> None:
    scripted.answers["stop position"] = stopped_at(scripted, 3 * FRAME)
    with pytest.raises(aeron.ArchiveError, match=f"ended at position {FRAME}, before the end of its stream"):
        received(archive, length)


def test_a_replay_up_to_the_recorded_position_at_its_start_is_complete_although_more_was_recorded(
    archive: aeron.AeronArchive, scripted: ScriptedArchive
) -> None:
    scripted.answers["stop position"] = stopped_at(scripted, 3 * FRAME)
    assert received(archive, aeron.REPLAY_ALL_AND_STOP) == 1


def test_the_end_of_a_replay_is_not_checked_after_the_program_has_closed_the_client(
    archive: aeron.AeronArchive,
) -> None:
    with archive.replay(RECORDING, stream_id=4712, length=aeron.REPLAY_ALL_AND_STOP) as replay:
        eventually(lambda: len(replay.poll_batch()) > 0)
        archive.close()
        assert list(replay.batches(timeout=5)) == []
