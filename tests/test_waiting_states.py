"""Tests of the states in which a `PersistentSubscription` or a `RecordedPublisher` waits for a process that is stopped.

The driver or the archive is stopped when the object enters the state. The state ends within its time limit, or lasts as
long as document 11 of the specification (`docs/spec`) says. When the process continues or starts again, the object
reaches its goal, and each message arrives once and in order. A number such as 11-20 is line 20 of the checklist in
document 11.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import eventually
from tests.frozen import archive_process, driver_process, fill_command_buffer, frozen

import aeron
from interop.archives import Archive
from interop.drivers import PATIENT_SETTINGS, Driver
from interop.persistent import IPC, PUBLICATION, Reader, Source
from ports import free_port

pytestmark = pytest.mark.slow

MESSAGE_TIMEOUT_S = 0.4
# The message timeout, and the time that a busy machine may need in addition.
SLOW_S = 5.0
SPECIFICATION = Path(__file__).parent.parent / "docs" / "spec" / "11-persistent-subscription.md"
RESPONSE = "aeron:ipc?control-mode=response"
ANY_PORT = "aeron:udp?endpoint=localhost:0"


@dataclass(frozen=True)
class Wait:
    """A state that ends at the message timeout if a process is stopped in the state before it."""

    state: str
    before: str
    # The process for which the state waits: "archive" or "driver".
    peer: str
    # The state after the message timeout.
    after: str
    replay_channel: str = IPC


WAITS = [
    Wait("AWAIT_LIST_RECORDING_RESPONSE", "SEND_LIST_RECORDING_REQUEST", "archive", "SEND_LIST_RECORDING_REQUEST"),
    Wait("AWAIT_REPLAY_RESPONSE", "SEND_REPLAY_REQUEST", "archive", "SEND_REPLAY_REQUEST"),
    Wait("AWAIT_REPLAY_SUBSCRIPTION", "ADD_REPLAY_SUBSCRIPTION", "driver", "SEND_REPLAY_REQUEST"),
    Wait("AWAIT_REPLAY_SUBSCRIPTION", "ADD_REPLAY_SUBSCRIPTION", "driver", "ADD_REPLAY_SUBSCRIPTION", ANY_PORT),
    Wait("AWAIT_REQUEST_PUBLICATION", "ADD_REQUEST_PUBLICATION", "driver", "ADD_REPLAY_SUBSCRIPTION", RESPONSE),
    Wait("AWAIT_REPLAY_TOKEN", "SEND_REPLAY_TOKEN_REQUEST", "archive", "ADD_REPLAY_SUBSCRIPTION", RESPONSE),
]


@dataclass(frozen=True)
class Pause:
    """A state in which a subscription sends a command to the driver, and waits for a pause if the driver has no room
    for the command."""

    sends: str
    # The state during the pauses.
    waits: str
    replay_channel: str = IPC
    is_live: bool = False


PAUSES = [
    Pause("ADD_REPLAY_SUBSCRIPTION", "ADD_REPLAY_SUBSCRIPTION", ANY_PORT),
    Pause("ADD_REQUEST_PUBLICATION", "ADD_REPLAY_SUBSCRIPTION", RESPONSE),
    Pause("ADD_LIVE_SUBSCRIPTION", "ADD_LIVE_SUBSCRIPTION", is_live=True),
]
ONE_POLL = "lasts one poll: a request without room in the request stream waits in the next state"
UNTESTED = {
    "SEND_LIST_RECORDING_REQUEST": ONE_POLL,
    "SEND_REPLAY_REQUEST": ONE_POLL + ". After a failed replay subscription, it first lasts for a pause",
    "SEND_REPLAY_TOKEN_REQUEST": ONE_POLL,
    "AWAIT_REPLAY_CHANNEL_ENDPOINT": "each driver reports the port before it reports that the subscription is ready",
    "FAILED": "the last state",
}
# The states with tests of their own.
OTHERS = {"AWAIT_ARCHIVE_CONNECTION", "REPLAY", "ATTEMPT_SWITCH", "AWAIT_LIVE", "LIVE"}


class Rig:
    """A driver and an archive in processes of their own, and a client."""

    def __init__(self, driver: Driver, archive: Archive, client: aeron.Aeron) -> None:
        self.driver = driver
        self.archive = archive
        self.client = client
        self.connection = aeron.connect_archive(client)
        self.stream = 5000

    def source(self) -> Source:
        """Returns a recorded stream with five messages."""
        self.stream += 1
        source = Source(self.connection, PUBLICATION, self.stream)
        source.send(5)
        return source

    def reader(self, source: Source, **settings: Any) -> Reader:
        options = {
            "recording_id": source.id,
            "live_channel": IPC,
            "live_stream_id": source.stream,
            "start_position": aeron.FROM_START,
            "message_timeout": MESSAGE_TIMEOUT_S,
        }
        return Reader(aeron.PersistentSubscription, self.client, **options | settings)

    def pid(self, peer: str) -> int:
        return {"driver": self.driver, "archive": self.archive}[peer].process.pid


@contextmanager
def running(**settings: str) -> Iterator[Rig]:
    with (
        driver_process(**settings) as driver,
        archive_process(driver) as archive,
        aeron.connect(driver.directory) as client,
    ):
        yield Rig(driver, archive, client)


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A driver that does not remove clients that are stopped for a few seconds."""
    with running(**PATIENT_SETTINGS) as rig:
        yield rig


def until_state(reader: Reader, state: str) -> float:
    """Polls until the subscription is in a state, and returns the time. No poll may fail."""
    reader.until(lambda: reader.subscription.state == state, SLOW_S)
    return time.monotonic()


def until_live_with_all_messages(reader: Reader, source: Source) -> None:
    """Polls until the subscription is live and has also read messages that are sent then."""
    reader.until_live()
    reader.until(lambda: source.offer() >= 10)
    reader.until_read(source.messages)
    assert reader.subscription.is_live


@pytest.mark.parametrize("wait", [pytest.param(wait, id=f"{wait.state}-{wait.replay_channel}") for wait in WAITS])
def test_a_state_that_waits_for_a_stopped_process_ends_at_the_message_timeout_and_the_next_attempt_succeeds(
    rig: Rig, wait: Wait
) -> None:
    """11-20, 11-21. An expired request is not reported."""
    source = rig.source()
    with rig.reader(source, replay_channel=wait.replay_channel) as reader:
        begin = until_state(reader, wait.before)
        with frozen(rig.pid(wait.peer)):
            until_state(reader, wait.state)
            reader.until(lambda: reader.subscription.state != wait.state, SLOW_S)
            assert time.monotonic() - begin >= MESSAGE_TIMEOUT_S
            assert reader.subscription.state == wait.after
            # The second attempt ends too. When the process continues, it gets the requests of all attempts.
            ends = reader.states.count(wait.after)
            reader.until(lambda: reader.states.count(wait.after) >= ends + 2, SLOW_S)
            assert reader.errors == []
        until_live_with_all_messages(reader, source)
        assert reader.errors == []
    source.dismiss()


def test_every_state_is_tested_or_has_a_reason() -> None:
    states = re.findall(r"^\| (\d+) \| ([A-Z_]+) \|", SPECIFICATION.read_text(), re.MULTILINE)
    assert [int(code) for code, _ in states] == list(range(18))
    tested = {wait.state for wait in WAITS} | {pause.sends for pause in PAUSES} | OTHERS
    assert {name for _, name in states} == tested | UNTESTED.keys()
    assert not tested & UNTESTED.keys()


# The pauses of 1, 2, 4 and up to 256 ms.
PAUSES_S, ATTEMPTS = 0.511, 9


@pytest.mark.parametrize("pause", [pytest.param(pause, id=pause.sends) for pause in PAUSES])
def test_if_a_command_has_no_room_the_next_attempts_follow_after_longer_pauses_and_one_succeeds(
    rig: Rig, pause: Pause
) -> None:
    source = rig.source()
    if pause.is_live:
        source.close()
    start = rig.connection.get_stop_position(source.id) if pause.is_live else aeron.FROM_START
    with rig.reader(source, replay_channel=pause.replay_channel, start_position=start) as reader:
        until_state(reader, pause.sends)
        with frozen(rig.pid("driver")):
            pending = fill_command_buffer(rig.client)
            reader.poll()
            begin = time.monotonic()
            while time.monotonic() - begin < PAUSES_S:
                assert reader.subscription.state == pause.waits
                reader.poll()
        assert 5 <= len(reader.errors) <= ATTEMPTS + 1
        assert {has_failed for _, has_failed in reader.errors} == {False}
        assert all("the ring buffer to the media driver is full" in str(error) for error, _ in reader.errors)
        if pause.is_live:
            # The archive sends commands too. They have room again when the driver has read the last command.
            eventually(pending[-1].done)
            source.resume(rig.client)
        reader.until_live()
        eventually(lambda: source.offer() >= 10)
        reader.until_read(source.messages[5 if pause.is_live else 0 :])
    del pending
    source.dismiss()


def test_without_a_response_of_the_archive_each_attempt_to_connect_is_reported_once(rig: Rig) -> None:
    """11-34"""
    source = rig.source()
    with rig.reader(source) as reader:
        assert reader.subscription.state == "AWAIT_ARCHIVE_CONNECTION"
        with frozen(rig.pid("archive")):
            begin = time.monotonic()
            reader.until(lambda: len(reader.errors) == 2, SLOW_S)
            assert time.monotonic() - begin >= 2 * MESSAGE_TIMEOUT_S
            assert reader.subscription.state == "AWAIT_ARCHIVE_CONNECTION"
            for error, has_failed in reader.errors:
                assert re.search(
                    r"no connection to the archive on .* within 400ms: awaiting the archive's publ", str(error)
                )
                assert isinstance(error.__cause__, aeron.ArchiveTimeoutError)
                assert not has_failed
        until_live_with_all_messages(reader, source)
    source.dismiss()


@pytest.fixture(scope="module")
def impatient() -> Iterator[Rig]:
    """A driver that removes a client after 1.5 seconds without a sign of life."""
    settings = {"AERON_CLIENT_LIVENESS_TIMEOUT": "1500ms", "AERON_TIMER_INTERVAL": "50ms"}
    with running(**settings) as rig:
        yield rig


def restart_archive(rig: Rig) -> None:
    """Starts the archive again, which the driver has removed during a stop."""
    rig.archive.process.wait(10)
    rig.archive.start()
    rig.connection = aeron.connect_archive(rig.client)


def test_a_replay_ends_with_the_client_of_a_stopped_archive_and_continues_after_a_restart(impatient: Rig) -> None:
    """11-61: the driver ends the replay after the client liveness timeout of the archive."""
    source = impatient.source()
    source.send(2000)
    with impatient.reader(source, limit=1) as reader:
        reader.until(lambda: len(reader.messages) >= 20)
        assert reader.subscription.state == "REPLAY"
        with frozen(impatient.pid("archive")):
            until_state(reader, "AWAIT_ARCHIVE_CONNECTION")
            assert len(reader.messages) < 2000
            assert not reader.subscription.has_failed
        restart_archive(impatient)
        reader.until_live()
        source.offer()
        reader.until_read(source.messages)
        assert {has_failed for _, has_failed in reader.errors} <= {False}


@pytest.mark.parametrize("comes_back", ["continues", "is restarted"])
def test_a_switch_waits_for_a_stopped_archive_until_its_replay_ends_and_succeeds_later(
    impatient: Rig, comes_back: str
) -> None:
    """11, section 7.2: the state has no time limit. It ends when the driver ends the replay."""
    source = impatient.source()
    port = free_port()
    recorded = source.publication
    with impatient.reader(source, live_channel=f"aeron:udp?endpoint=localhost:{port}") as reader:
        reader.until_read(source.messages)
        # The missing live image is reported once, and the replay continues.
        reader.until(lambda: reader.errors)
        [(error, has_failed)] = reader.errors
        assert "No image became available on the live subscription within 400ms" in str(error)
        assert not has_failed
        with frozen(impatient.pid("archive")):
            # The live stream begins three messages after the end of the replay.
            begin = recorded.position + 3 * FRAME_LENGTH
            uri = aeron.ChannelUriBuilder.parse(f"aeron:udp?endpoint=localhost:{port}")
            uri.initial_position(begin, recorded.initial_term_id, recorded.term_buffer_length)
            live = impatient.client.add_exclusive_publication(str(uri), source.stream)
            entered = until_state(reader, "ATTEMPT_SWITCH")
            assert reader.subscription.join_difference == 3 * FRAME_LENGTH
            if comes_back == "continues":
                reader.until(lambda: time.monotonic() - entered > 2 * MESSAGE_TIMEOUT_S)
                assert reader.subscription.state == "ATTEMPT_SWITCH"
            else:
                until_state(reader, "AWAIT_ARCHIVE_CONNECTION")
        if comes_back == "is restarted":
            restart_archive(impatient)
            source.archive = impatient.connection
            eventually(lambda: source.archive.get_stop_position(source.id) == recorded.position)
            source.archive.extend_recording(source.id, IPC, source.stream, auto_stop=True)
            recorded.wait_connected(timeout=5)
        end = len(source.messages) + 3
        eventually(lambda: source.offer() == end)
        impatient.connection.wait_recorded(recorded, begin, timeout=5)
        reader.until_live()
        assert live.publish(b"live" * 25, timeout=5) == begin + FRAME_LENGTH
        reader.until_read([*source.messages, b"live" * 25])
        assert {failed for _, failed in reader.errors} == {False}


# 100 bytes and the header, rounded up to 32 bytes.
FRAME_LENGTH = 160


def test_the_end_of_the_live_stream_is_reported_once_and_the_next_live_stream_is_joined(rig: Rig) -> None:
    """11-27, 11-51: the states LIVE and AWAIT_LIVE."""
    source = rig.source()
    with rig.reader(source) as reader:
        until_live_with_all_messages(reader, source)
        # A driver that is stopped does not end the live stream.
        with frozen(rig.pid("driver")):
            stopped = time.monotonic()
            reader.until(lambda: time.monotonic() - stopped > MESSAGE_TIMEOUT_S)
            assert reader.subscription.is_live
        source.close()
        until_state(reader, "AWAIT_LIVE")
        reader.until(lambda: reader.errors, SLOW_S)
        reported = time.monotonic()
        reader.until(lambda: time.monotonic() - reported > 2 * MESSAGE_TIMEOUT_S)
        [(error, has_failed)] = reader.errors
        assert "No image became available on the live subscription within 400ms" in str(error)
        assert not has_failed
        assert reader.subscription.state == "AWAIT_LIVE"
        source.resume(rig.client)
        reader.until_live()
        source.offer()
        reader.until_read(source.messages)
    source.dismiss()


@dataclass(frozen=True)
class Attempt:
    """A recorded publisher whose peer was stopped after a number of polls with work."""

    # Whether the publisher was not yet connected when the peer was stopped.
    was_connecting: bool
    errors: list[str]
    messages: list[bytes]
    # The recordings that have messages.
    recordings: int
    # The recording subscriptions of the archive after the end of the publisher.
    left: int


MESSAGES = [b"%d" % number for number in range(10)]


def attempt(rig: Rig, peer: str, polls: int) -> Attempt:
    rig.stream += 1
    errors: list[str] = []
    publisher = aeron.RecordedPublisher(
        PUBLICATION,
        rig.stream,
        driver=rig.driver.directory,
        alias=f"stream-{rig.stream}",
        message_timeout=MESSAGE_TIMEOUT_S,
        on_error=lambda error: errors.append(str(error)),
    )
    for _ in range(polls):
        eventually(lambda: publisher.poll() or publisher.is_connected)
    was_connecting = not publisher.is_connected
    with frozen(rig.pid(peer)):
        end = time.monotonic() + 1.5 * MESSAGE_TIMEOUT_S
        while time.monotonic() < end:
            publisher.poll()
    for message in MESSAGES:
        publisher.publish(message, timeout=SLOW_S)
    publisher.close(timeout=SLOW_S)
    archive = rig.connection
    eventually(lambda: archive.get_stop_position(publisher.recording_id) is not None)
    with archive.replay(publisher.recording_id, length=aeron.REPLAY_ALL_AND_STOP) as replay:
        messages = [message for batch in replay.batches(timeout=10) for message in batch.to_list()]
    recordings = sum(recording.stop_position != 0 for recording in archive.list_recordings(stream_id=rig.stream))
    left = len(archive.list_recording_subscriptions(stream_id=rig.stream))
    return Attempt(was_connecting, errors, messages, recordings, left)


@pytest.fixture(scope="module", params=["archive", "driver"])
def attempts(rig: Rig, request: pytest.FixtureRequest) -> list[Attempt]:
    """Returns publishers whose peer was stopped at every step.

    The states of a recorded publisher are not visible: the peer is stopped after 0, 1, 2 or more polls with work.
    """
    found: list[Attempt] = []
    while not found or found[-1].was_connecting:
        found.append(attempt(rig, request.param, len(found)))
    return found


def test_a_recorded_publisher_recovers_from_the_stop_of_a_process_at_each_step(attempts: list[Attempt]) -> None:
    assert len(attempts) > 5
    for polls, attempt in enumerate(attempts):
        assert (polls, attempt.messages, attempt.recordings) == (polls, MESSAGES, 1)


def test_a_recorded_publisher_reports_each_failed_attempt_at_most_once(attempts: list[Attempt]) -> None:
    connecting = r"no connection to the archive on .* within 400ms: awaiting [a-z' ]+"
    # An expired listing is not reported. The archive refuses the next one as long as the first one is active.
    listing = r"list recordings for uri: .* active listing already in progress"
    # The archive carries out an expired request to record. The publisher does not recognise its former publication.
    former = r"recording \d+ is active with session id -?\d+: another publisher extends it"
    for polls, attempt in enumerate(attempts):
        # The texts of two connections differ, because each connection has another session id.
        assert len(set(attempt.errors)) == len(attempt.errors) <= 3, (polls, attempt)
        assert all(re.fullmatch(f"{connecting}|{listing}|{former}", error) for error in attempt.errors), (
            polls,
            attempt,
        )
    assert attempts[0].errors


def test_a_recorded_publisher_leaves_no_recording_subscription_of_an_expired_request(
    attempts: list[Attempt],
) -> None:
    assert [attempt.left for attempt in attempts] == [0] * len(attempts)
