"""Tests of our Rust client of an archive, with the real archive and ours."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from interop.conftest import _started
from interop.kinds import ARCHIVES
from interop.our_archive_client import ANY_PORT, IPC, SEGMENT_LENGTH, OurArchiveClient, SharedArchive
from interop.peers import PeerError
from interop.waiting import eventually
from ports import free_port

_CHANNEL = "aeron:ipc?term-length=64k"
_LENGTH = 1000
_FRAME = 1056
_TERM_LENGTH = 64 * 1024
_COUNT = 400

_ACTIVE_SUBSCRIPTION, _UNKNOWN_SUBSCRIPTION, _UNKNOWN_RECORDING, _UNKNOWN_REPLICATION = 3, 4, 5, 12
_AUTHENTICATION_REJECTED = 10

# Types of counters.
_PUBLISHER_LIMIT, _CONTROL_SESSION = 1, 113


@pytest.fixture(scope="module", params=sorted({archive for archive, _ in ARCHIVES}))
def archives(request, drivers, tmp_path_factory):
    """`archives(name, driver, settings)` returns an archive for all tests of this module."""
    running = {}

    def get(name, driver="java", settings=None):
        if name not in running:
            directory = tmp_path_factory.mktemp(f"archive-{name}")
            number = len(running)
            running[name] = _started(
                lambda: SharedArchive(
                    request.param,
                    drivers(driver),
                    directory / "files",
                    directory / "errors",
                    10 + number,
                    id=100 + number,
                    settings=settings,
                )
            )
        return running[name]

    get.kind = request.param
    yield get
    for archive in running.values():
        archive.remove()


@pytest.fixture
def archive(archives):
    return archives("first")


@pytest.fixture
def start_client(tmp_path):
    """`start_client()` starts a separate client process, which is not connected."""
    started = []

    def start():
        client = _started(lambda: OurArchiveClient(tmp_path / f"client-{len(started)}.txt"))
        started.append(client)
        return client

    yield start
    for client in started:
        client.kill()


@pytest.fixture
def client(start_client, archive):
    client = start_client()
    client.connect(archive)
    return client


def _record(client, stream, count=_COUNT, channel=_CHANNEL, stop=True):
    """Records `count` messages. Returns id, positions, session and subscription of the recording."""
    subscription = client.ask("start_recording", channel=channel, stream=stream)
    publication = client.call("add_publication", channel=channel, stream=stream, exclusive=True)
    session = publication["session"]
    position = client.call("publish", id=publication["registration"], count=count, lengths=[_LENGTH])["position"]
    counter = _counter(client, session)
    recording = counter["recording"]
    eventually(lambda: client.ask("recording_position", recording=recording) == position)
    if stop:
        client.ask("stop_recording_subscription", subscription=subscription)
        client.call("close", id=publication["registration"])
        eventually(lambda: client.ask("stop_position", recording=recording) == position)
    return SimpleNamespace(
        id=recording,
        position=position,
        session=session,
        stream=stream,
        subscription=subscription,
        publication=publication,
        counter=counter,
    )


def _counter(client, session):
    eventually(lambda: client.call("recording_counter", session=session))
    return client.call("recording_counter", session=session)


def _replayed(client, recording, stream, channel=IPC, count=_COUNT, first=0, **params):
    """Reads a replay to its end, and checks that it has `count` messages from number `first`."""
    replay = client.call("replay", recording=recording, channel=channel, stream=stream, **params)
    received = client.call("receive", id=replay["registration"], lengths=[_LENGTH], first=first, to_end=True)
    client.call("close", id=replay["registration"])
    assert received["faults"] == []
    assert received["received"] == count
    return received


def _await_signal(client, kind, timeout_s=10, **values):
    """Waits for the next signal of a kind with these values, and returns it."""
    deadline = time.monotonic() + timeout_s
    while True:
        for signal in client.call("signals")["signals"]:
            if signal["signal"] == kind and values.items() <= signal.items():
                return signal
        assert time.monotonic() < deadline, f"no {kind} with {values} within {timeout_s} s"
        time.sleep(0.02)


def _refusal(client, operation, **values):
    """Sends a request that the archive must refuse. Returns code and text of the error."""
    with pytest.raises(PeerError) as refused:
        client.call(operation, **values)
    assert refused.value.type == "Refused", refused.value
    return refused.value.code, refused.value.text


def test_a_client_records_lists_and_replays_over_ipc(client, archive, stream):
    """07-122, 07-129"""
    recording = _record(client, stream)
    found = client.ask("list_recording", recording=recording.id)
    assert (found["stream"], found["session"]) == (stream, recording.session)
    assert (found["start"], found["stop"]) == (0, recording.position)
    assert found in client.ask("list_recordings", **{"from": recording.id})
    assert _replayed(client, recording.id, stream)["position"] == recording.position


_CONNECTIONS = {
    "ipc": lambda archive: {"request": IPC, "response": IPC},
    "port-0": lambda archive: {"request": archive.control_channel, "response": ANY_PORT},
    "udp": lambda archive: {
        "request": archive.control_channel + "|term-length=128k|mtu=4k",
        "response": f"aeron:udp?endpoint=localhost:{free_port()}",
    },
    "response-channel": lambda archive: {
        "request": archive.control_channel,
        "response": f"aeron:udp?control-mode=response|control=localhost:{free_port()}",
    },
    "invoker": lambda archive: {"request": archive.control_channel, "response": ANY_PORT, "invoker": True},
}


@pytest.mark.parametrize("driver", ["java", "ours"])
@pytest.mark.parametrize("way", _CONNECTIONS)
def test_a_client_connects_over_each_kind_of_channel(start_client, archives, driver, way):
    """07-122, 07-123"""
    archive = archives("first" if driver == "java" else "on-ours", driver)
    client = start_client()
    connected = client.connect(archive, name="quotes", **_CONNECTIONS[way](archive))
    assert connected["archive"] == archive.id
    assert client.ask("list_recordings", **{"from": 1 << 40}) == []
    assert client.call("state")["state"] == "connected"
    [counter] = _session_counters(client, connected)
    assert "name=quotes" in counter["label"]


def _session_counters(client, connected):
    """Returns the counters of a connection's control session."""
    counters = client.call("counters", type=_CONTROL_SESSION)["counters"]
    return [it for it in counters if it["value"] == connected["control_session"]]


def test_the_request_and_the_response_stream_have_the_same_session_id(start_client, archive):
    """07-123"""
    client = start_client()
    [counter] = _session_counters(client, client.connect(archive, request=archive.control_channel, response=ANY_PORT))
    request_session = int(counter["label"].split(" sessionId=")[1].split()[0])
    limits = client.call("counters", type=_PUBLISHER_LIMIT)["counters"]
    response = [it for it in limits if it["registration"] == counter["reference"]]
    assert [f" {request_session} " in it["label"] for it in response] == [True]


def test_connecting_without_an_archive_times_out(start_client, archive):
    """07-124"""
    client = start_client()
    began = time.monotonic()
    with pytest.raises(PeerError, match="awaiting an archive that subscribes to the request channel"):
        client.connect(archive, request=f"aeron:udp?endpoint=localhost:{free_port()}", timeout_ms=500)
    assert time.monotonic() - began < 5


def _is_stopped(pid):
    """Returns whether all threads of a paused process have stopped."""
    states = (path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{pid}/task").glob("*/stat"))
    return all(state == "T" for state in states)


def test_a_request_to_a_paused_archive_times_out(start_client, archive):
    """07-124"""
    client = start_client()
    client.connect(archive)
    client.reconnect(archive, timeout_ms=2000)
    archive.process.pause()
    try:
        eventually(lambda: _is_stopped(archive.process.pid))
        with pytest.raises(PeerError, match="start position: awaiting a response for 2s") as failed:
            client.ask("start_position", recording=0)
        assert failed.value.type == "Timeout"
    finally:
        archive.process.resume()


# The authenticator of these tests is a Java class, so only the real archive can run it.
with_java_authenticator = pytest.mark.parametrize("archives", ["java"], indirect=True)


@pytest.fixture
def secured(archives):
    """Returns an archive that requires credentials."""
    return archives("secured", settings={"aeron.archive.authenticator.supplier": "ChallengingAuthenticator"})


@with_java_authenticator
def test_correct_credentials_and_the_correct_response_to_a_challenge_are_accepted(start_client, secured):
    """07-27, 07-13"""
    client = start_client()
    assert client.connect(secured, credentials="secret")["archive"] == secured.id
    assert client.reconnect(secured, credentials="ask", challenged=":answer")["archive"] == secured.id
    assert client.ask("list_recordings") == []


@with_java_authenticator
@pytest.mark.parametrize("credentials", [{}, {"credentials": "wrong"}, {"credentials": "ask", "challenged": "?"}])
def test_wrong_credentials_are_refused(start_client, secured, credentials):
    """07-26, 07-125"""
    client = start_client()
    with pytest.raises(PeerError, match="authentication rejected") as refused:
        client.connect(secured, **credentials)
    assert refused.value.code == _AUTHENTICATION_REJECTED


def test_requests_may_overlap_and_a_second_listing_waits_for_the_first(client, stream):
    """07-102"""
    recording = _record(client, stream, count=10)
    answer = client.ask("overlap", recording=recording.id)
    assert answer["second"]["recording"] == recording.id
    assert answer["second"] in answer["first"]
    assert (answer["start"], answer["stop"]) == (0, recording.position)


def test_several_threads_may_call_the_client_at_the_same_time(client, stream):
    """07-129"""
    recording = _record(client, stream, count=3)
    assert client.ask("threads", recording=recording.id, count=20) == 4 * 20 * (3 * _FRAME + 1)


def test_a_client_that_the_application_invokes_records_and_replays(start_client, archive, stream):
    """07-122"""
    client = start_client()
    client.connect(archive, **_CONNECTIONS["invoker"](archive))
    recording = _record(client, stream, count=10)
    _replayed(client, recording.id, stream, channel=ANY_PORT, count=10)


def test_listings_contain_only_matching_recordings_and_at_most_the_requested_number(client, stream):
    """07-102, 07-103, 07-104"""
    first = _record(client, stream, count=1)
    second = _record(client, stream, count=2)
    found = client.ask("list_recordings_for_uri", channel="term-length", stream=stream)
    assert [it["recording"] for it in found] == [first.id, second.id]
    assert found[0]["channel"] == _CHANNEL
    assert found[0]["stripped_channel"] == "aeron:ipc"
    assert found[0]["segment_length"] == SEGMENT_LENGTH
    assert found[0]["source"] == "aeron:ipc"
    assert client.ask("list_recordings_for_uri", channel="udp", stream=stream) == []
    assert [it["recording"] for it in client.ask("list_recordings", **{"from": first.id}, count=1)] == [first.id]
    assert client.ask("list_recordings", count=0) == []
    assert client.ask("list_recording", recording=1 << 40) is None
    assert client.ask("find_last", stream=stream, session=second.session) == second.id
    assert client.ask("find_last", stream=stream, session=second.session, channel="udp") is None
    code, _ = _refusal(client, "find_last", stream=stream, session=1, **{"from": -1})
    assert code == _UNKNOWN_RECORDING


def test_recording_subscriptions_are_listed_by_channel_and_stream_until_they_are_stopped(client, stream):
    """07-105"""
    subscription = client.ask("start_recording", channel=_CHANNEL, stream=stream)
    [found] = client.ask("list_subscriptions", stream=stream)
    assert found == {"subscription": subscription, "stream": stream, "channel": IPC}
    assert found in client.ask("list_subscriptions", channel="ipc")
    assert client.ask("list_subscriptions", stream=stream, channel="udp") == []
    assert client.ask("list_subscriptions", index=1000) == []
    client.ask("stop_recording", channel=_CHANNEL, stream=stream)
    assert client.ask("list_subscriptions", stream=stream) == []


def test_an_error_text_longer_than_a_frame_arrives_complete(client, stream):
    """07-14, 07-41"""
    channel = f"aeron:ipc?alias={'a' * 3000}"
    client.ask("start_recording", channel=channel, stream=stream)
    code, text = _refusal(client, "start_recording", channel=channel, stream=stream)
    assert code == _ACTIVE_SUBSCRIPTION
    assert "a" * 3000 in text


def test_a_request_longer_than_the_maximum_message_length_is_refused(client, stream):
    with pytest.raises(PeerError, match=r"failed to send: length 1\d{4} exceeds the maximum of 8192"):
        client.ask("start_recording", channel=f"aeron:ipc?alias={'a' * 10_000}", stream=stream)


def test_positions_of_active_and_stopped_recordings_are_returned(client, stream):
    """07-106, 07-46"""
    recording = _record(client, stream, count=5, stop=False)
    of = {"recording": recording.id}
    assert client.ask("start_position", **of) == 0
    assert client.ask("recording_position", **of) == 5 * _FRAME
    assert client.ask("stop_position", **of) is None
    assert client.ask("max_recorded_position", **of) == 5 * _FRAME
    counter = recording.counter
    assert (counter["source"], counter["is_active"]) == ("aeron:ipc", True)
    assert counter["by_recording"] == counter["id"]
    client.ask("stop_recording_subscription", subscription=recording.subscription)
    eventually(lambda: client.ask("stop_position", **of) == 5 * _FRAME)
    assert client.ask("recording_position", **of) is None
    assert client.ask("max_recorded_position", **of) == 5 * _FRAME
    eventually(lambda: client.call("recording_counter", session=recording.session) == {})
    code, text = _refusal(client, "stop_position", recording=1 << 40)
    assert code == _UNKNOWN_RECORDING
    assert f"errorCode=5, error: unknown recording id: {1 << 40}" in text


@pytest.mark.parametrize("exclusive", [False, True], ids=["concurrent", "exclusive"])
def test_a_recorded_publication_is_recorded_from_the_first_byte(client, stream, exclusive):
    """07-42, 07-129"""
    added = client.call("add_publication", channel=_CHANNEL, stream=stream, recorded=True, exclusive=exclusive)
    id = added["registration"]
    recording = _counter(client, added["session"])["recording"]
    position = client.call("publish", id=id, count=7, lengths=[_LENGTH])["position"]
    eventually(lambda: client.ask("recording_position", recording=recording) == position)
    assert f"session-id={added['session']}" in client.ask("list_recording", recording=recording)["channel"]
    if not exclusive:
        with pytest.raises(PeerError, match="publication already added"):
            client.call("add_publication", channel=_CHANNEL, stream=stream, recorded=True)
    client.call("stop_recording_publication", id=id)
    eventually(lambda: client.ask("stop_position", recording=recording) == position)
    code, _ = _refusal(client, "stop_recording_publication", id=id)
    assert code == _UNKNOWN_SUBSCRIPTION


def test_stopping_a_stream_that_is_not_recorded_is_an_error(client, stream):
    """07-54"""
    recording = _record(client, stream, count=1)
    assert client.ask("try_stop_recording", channel=_CHANNEL, stream=stream) is False
    assert client.ask("try_stop_recording_subscription", subscription=1 << 40) is False
    assert client.ask("try_stop_recording_by_identity", recording=recording.id) is False
    for operation, values in (
        ("stop_recording", {"channel": _CHANNEL, "stream": stream}),
        ("stop_recording_subscription", {"subscription": 1 << 40}),
    ):
        assert _refusal(client, operation, **values)[0] == _UNKNOWN_SUBSCRIPTION
    assert _refusal(client, "try_stop_recording_by_identity", recording=1 << 40)[0] == _UNKNOWN_RECORDING


def test_a_recording_is_stopped_by_channel_by_subscription_and_by_recording_id(client, stream):
    """07-54"""
    client.ask("start_recording", channel=_CHANNEL, stream=stream)
    assert client.ask("try_stop_recording", channel=_CHANNEL, stream=stream) is True
    subscription = client.ask("start_recording", channel=_CHANNEL, stream=stream)
    assert client.ask("try_stop_recording_subscription", subscription=subscription) is True
    recording = _record(client, stream, count=1, stop=False)
    assert client.ask("try_stop_recording_by_identity", recording=recording.id) is True


def test_a_remote_source_is_recorded_until_its_end_and_auto_stop_then_removes_the_subscription(client, stream):
    """07-40, 07-56"""
    channel = f"aeron:udp?endpoint=localhost:{free_port()}|term-length=64k"
    client.ask("start_recording", channel=channel, stream=stream, source="remote", auto_stop=True)
    added = client.call("add_publication", channel=channel, stream=stream)
    client.call("publish", id=added["registration"], count=3, lengths=[_LENGTH])
    recording = _counter(client, added["session"])["recording"]
    assert client.ask("list_recording", recording=recording)["source"] != "aeron:ipc"
    client.call("close", id=added["registration"])
    eventually(lambda: client.ask("stop_position", recording=recording) == 3 * _FRAME)
    eventually(lambda: client.ask("list_subscriptions", stream=stream) == [])


def _extending_channel(recording, position):
    """Returns the channel for a publication that continues a recording at `position`."""
    initial = recording.publication["initial_term"]
    term = initial + position // _TERM_LENGTH
    return f"{_CHANNEL}|init-term-id={initial}|term-id={term}|term-offset={position % _TERM_LENGTH}"


def test_a_continuing_publication_extends_a_recording(client, stream):
    """07-59, 07-57"""
    recording = _record(client, stream, count=90)
    channel = _extending_channel(recording, recording.position)
    client.ask("extend_recording", recording=recording.id, channel=_CHANNEL, stream=stream, auto_stop=True)
    added = client.call("add_publication", channel=channel, stream=stream, exclusive=True)
    client.call("publish", id=added["registration"], count=10, lengths=[_LENGTH])
    signal = _await_signal(client, "Extend", recording=recording.id)
    assert signal["position"] == recording.position
    eventually(lambda: client.ask("max_recorded_position", recording=recording.id) > recording.position)
    client.call("close", id=added["registration"])
    _await_signal(client, "Stop", recording=recording.id)
    code, _ = _refusal(client, "extend_recording", recording=1 << 40, channel=_CHANNEL, stream=stream)
    assert code == _UNKNOWN_RECORDING


def test_an_extension_at_another_position_causes_an_error_after_the_response(client, stream):
    """07-58, 07-125"""
    recording = _record(client, stream, count=1)
    answer = client.call("extend_recording", recording=recording.id, channel=_CHANNEL, stream=stream, auto_stop=True)
    client.call("add_publication", channel=_CHANNEL, stream=stream, exclusive=True)
    errors = []
    eventually(lambda: errors.extend(client.call("errors")["errors"]) or errors)
    assert f"correlationId={answer['correlation']}, errorCode=9" in errors[0]


def test_replays_begin_and_end_at_the_requested_positions(client, stream):
    """07-83, 07-89, 07-96"""
    recording = _record(client, stream)
    rest = _COUNT - 10
    _replayed(client, recording.id, stream, position=10 * _FRAME, count=rest, first=10)
    _replayed(client, recording.id, stream, position=10 * _FRAME, length=5 * _FRAME, count=5, first=10)
    _replayed(client, recording.id, stream, length=-2, io_length=64 * 1024)
    _, text = _refusal(client, "start_replay", recording=recording.id, channel=IPC, stream=stream, io_length=32)
    assert "fileIoMaxLength" in text
    code, _ = _refusal(client, "start_replay", recording=1 << 40, channel=IPC, stream=stream)
    assert code == _UNKNOWN_RECORDING


@pytest.mark.parametrize("channel", [ANY_PORT, "aeron:udp?endpoint=localhost:{port}", IPC + "?session-id=777"])
def test_a_replay_has_its_own_session_over_each_kind_of_channel(client, stream, channel):
    """07-87, 07-88"""
    recording = _record(client, stream, count=50)
    received = _replayed(client, recording.id, stream, channel=channel.format(port=free_port()), count=50)
    assert received["session"] != recording.session
    if "session-id" in channel:
        assert received["session"] == 777


def test_a_replay_follows_an_active_recording_until_the_recording_stops(client, stream):
    """07-90"""
    recording = _record(client, stream, count=20, stop=False)
    replay = client.call("replay", recording=recording.id, channel=IPC, stream=stream + 100_000)["registration"]
    receive = {"id": replay, "lengths": [_LENGTH]}
    assert client.call("receive", count=20, **receive)["received"] == 20
    client.call("publish", id=recording.publication["registration"], count=10, lengths=[_LENGTH])
    assert client.call("receive", count=10, **receive)["received"] == 10
    client.ask("stop_recording_subscription", subscription=recording.subscription)
    assert client.call("receive", to_end=True, **receive)["ended"]


def test_a_bounded_replay_sends_up_to_the_value_of_a_counter_and_ends_when_the_counter_is_closed(client, stream):
    """07-91, 07-92"""
    recording = _record(client, stream, count=50)
    counter = client.call("add_counter", value=10 * _FRAME)
    values = {"recording": recording.id, "channel": IPC, "stream": stream}
    replay = client.call("replay", counter=counter["id"], **values)["registration"]
    receive = {"id": replay, "lengths": [_LENGTH]}
    assert client.call("receive", count=10, **receive)["received"] == 10
    assert client.call("receive", count=1, timeout_ms=300, **receive)["received"] == 0
    client.call("set_counter", id=counter["registration"], value=30 * _FRAME)
    assert client.call("receive", count=20, **receive)["received"] == 20
    client.call("close", id=counter["registration"])
    assert client.call("receive", to_end=True, **receive)["ended"]
    assert "counter" in _refusal(client, "start_replay", counter=999_999, **values)[1]


def test_a_replay_is_stopped_alone_and_with_all_replays_of_its_recording(client, stream):
    """07-95"""
    recording = _record(client, stream, count=20, stop=False)
    for stop in (
        lambda replay: client.ask("stop_replay", replay=replay),
        lambda replay: client.ask("stop_all_replays", recording=recording.id),
    ):
        subscription = client.call("add_subscription", channel=IPC, stream=stream + 100_000)["registration"]
        replay = client.ask("start_replay", recording=recording.id, channel=IPC, stream=stream + 100_000)
        received = client.call("receive", id=subscription, count=20, lengths=[_LENGTH])
        assert received["received"] == 20
        assert (received["session"] - replay) % (1 << 32) == 0
        stop(replay)
        assert client.call("receive", id=subscription, lengths=[_LENGTH], to_end=True)["ended"]
        client.call("close", id=subscription)
    client.ask("stop_replay", replay=1 << 40)
    client.ask("stop_recording_subscription", subscription=recording.subscription)


def test_a_replay_without_a_subscriber_causes_an_error_after_the_response(client, stream):
    """07-93, 07-125"""
    recording = _record(client, stream, count=1)
    answer = client.call("start_replay", recording=recording.id, channel=IPC, stream=stream)
    errors = []
    eventually(lambda: errors.extend(client.call("errors")["errors"]) or errors)
    assert f"correlationId={answer['correlation']}, errorCode=0" in errors[0]
    assert "no connection established" in errors[0]
    client.call("check")


@pytest.mark.parametrize("driver", ["java", "ours"])
def test_a_replay_is_received_over_a_response_channel(start_client, archives, stream, driver):
    """07-101, 07-122"""
    archive = archives("first" if driver == "java" else "on-ours", driver)
    client = start_client()
    client.connect(archive, **_CONNECTIONS["response-channel"](archive))
    recording = _record(client, stream, count=50)
    channel = f"aeron:udp?control-mode=response|control=localhost:{free_port()}"
    _replayed(client, recording.id, stream, channel=channel, count=50)
    limit = client.call("add_counter", value=20 * _FRAME)["id"]
    bounded = client.call("replay", recording=recording.id, channel=channel, stream=stream, counter=limit)
    receive = {"id": bounded["registration"], "lengths": [_LENGTH]}
    assert client.call("receive", count=20, **receive)["received"] == 20
    assert client.call("receive", count=1, timeout_ms=300, **receive)["received"] == 0
    with pytest.raises(PeerError, match="needs the registration id of its subscription"):
        client.call("start_replay", recording=recording.id, channel=channel, stream=stream)


@pytest.mark.parametrize("driver", ["java", "ours"])
def test_a_replay_over_a_response_channel_continues_after_the_request_publication_is_closed(
    start_client, archives, stream, driver
):
    """07-101"""
    archive = archives("first" if driver == "java" else "on-ours", driver)
    client = start_client()
    client.connect(archive)
    client.reconnect(archive, timeout_ms=2000, **_CONNECTIONS["response-channel"](archive))
    recording = _record(client, stream, count=5, stop=False)
    channel = f"aeron:udp?control-mode=response|control=localhost:{free_port()}"
    replay = client.call("replay", recording=recording.id, channel=channel, stream=stream)["registration"]
    publications = len(client.call("counters", type=_PUBLISHER_LIMIT)["counters"])
    receive = {"id": replay, "lengths": [_LENGTH]}
    assert client.call("receive", count=5, **receive)["received"] == 5
    time.sleep(2.1)
    client.ask("list_recordings")
    eventually(lambda: len(client.call("counters", type=_PUBLISHER_LIMIT)["counters"]) < publications)
    client.call("publish", id=recording.publication["registration"], count=300, lengths=[_LENGTH])
    assert client.call("receive", count=300, **receive)["received"] == 300


def test_a_recording_is_truncated_and_purged(client, archive, stream):
    """07-108, 07-109, 07-112"""
    recording = _record(client, stream)
    assert len(archive.segments(recording.id)) > 2
    correlation = client.call("truncate", recording=recording.id, position=20 * _FRAME)["correlation"]
    signal = _await_signal(client, "Delete", correlation=correlation)
    assert signal["recording"] == recording.id
    assert archive.segments(recording.id) == [0]
    _replayed(client, recording.id, stream, count=20)
    assert client.ask("purge", recording=recording.id) == 1
    _await_signal(client, "Delete", recording=recording.id)
    assert archive.segments(recording.id) == []
    assert _refusal(client, "purge", recording=recording.id)[0] == _UNKNOWN_RECORDING


def test_segments_are_detached_attached_deleted_and_purged(client, archive, stream):
    """07-110"""
    recording = _record(client, stream)
    of = {"recording": recording.id}
    bases = archive.segments(recording.id)
    client.ask("detach", position=bases[1], **of)
    assert client.ask("start_position", **of) == bases[1]
    assert client.ask("attach", **of) == 1
    assert client.ask("start_position", **of) == 0
    client.ask("detach", position=bases[1], **of)
    assert client.ask("delete_detached", **of) == 1
    _await_signal(client, "Delete", **of)
    assert archive.segments(recording.id) == bases[1:]
    assert client.ask("purge_segments", position=bases[2], **of) == 1
    _await_signal(client, "Delete", **of)
    assert client.ask("start_position", **of) == bases[2]
    assert "invalid" in _refusal(client, "detach", position=bases[2] + 32, **of)[1]


def test_segments_migrate_to_a_recording_that_starts_where_they_end(client, archive, stream):
    """07-111"""
    source = _record(client, stream)
    middle = archive.segments(source.id)[1]
    client.ask("truncate", recording=source.id, position=middle)
    _await_signal(client, "Delete", recording=source.id)
    channel = _extending_channel(source, middle)
    client.ask("start_recording", channel=channel, stream=stream)
    added = client.call("add_publication", channel=channel, stream=stream, exclusive=True)
    client.call("publish", id=added["registration"], count=3, lengths=[_LENGTH])
    target = _counter(client, added["session"])["recording"]
    assert client.ask("start_position", recording=target) == middle
    client.ask("stop_recording", channel=channel, stream=stream)
    assert client.ask("migrate", recording=source.id, destination=target) == 1
    assert client.ask("start_position", recording=target) == 0
    other = _record(client, stream + 100_000, count=1)
    assert "invalid migrate" in _refusal(client, "migrate", recording=other.id, destination=target)[1]


def test_the_channel_of_a_recording_is_updated(client, stream):
    """07-107, 07-69"""
    recording = _record(client, stream, count=1)
    client.ask("update_channel", recording=recording.id, channel="aeron:ipc?alias=renamed")
    assert client.ask("list_recording", recording=recording.id)["channel"] == "aeron:ipc?alias=renamed"
    code, _ = _refusal(client, "update_channel", recording=1 << 40, channel=IPC)
    assert code == _UNKNOWN_RECORDING


def test_a_handler_receives_signals_and_may_not_call_the_client(start_client, archive, stream):
    """07-126, 07-127, 07-45"""
    client = start_client()
    client.connect(archive, handlers=True)
    recording = _record(client, stream, count=1)
    client.ask("list_recordings")
    signals = client.call("signals")["signals"]
    assert [it["signal"] for it in signals] == ["Start", "Stop"]
    assert all(it["refused_call"] for it in signals)
    assert signals[0]["recording"] == recording.id
    assert signals[0]["subscription"] == recording.subscription
    assert (signals[0]["position"], signals[1]["position"]) == (0, recording.position)


def test_signals_are_kept_until_they_are_read(client, stream):
    """07-126"""
    recording = _record(client, stream, count=1)
    signals = client.call("signals")["signals"]
    assert [(it["signal"], it["recording"]) for it in signals] == [("Start", recording.id), ("Stop", recording.id)]


def _source(archives, start_client, stream):
    """Makes a recording in a second archive, from which the first archive copies it. Returns archive, client and
    recording."""
    archive = archives("source")
    client = start_client()
    client.connect(archive)
    return archive, client, _record(client, stream)


def test_a_recording_is_replicated_completely_a_second_time_and_in_part(client, archives, start_client, stream):
    """07-113, 07-114"""
    source, _, recording = _source(archives, start_client, stream)
    of = {"recording": recording.id, "stream": source.stream, "channel": source.control_channel, "response": ANY_PORT}
    replication = client.ask("replicate", **of)
    copy = _await_signal(client, "ReplicateEnd", correlation=replication)["recording"]
    eventually(lambda: client.ask("stop_position", recording=copy) == recording.position)
    _replayed(client, copy, stream)
    again = client.ask("replicate", destination=copy, **of)
    assert _await_signal(client, "Sync", correlation=again)["position"] == recording.position
    part = client.ask("replicate", stop=10 * _FRAME, **of)
    copy = _await_signal(client, "ReplicateEnd", correlation=part)["recording"]
    eventually(lambda: client.ask("stop_position", recording=copy) == 10 * _FRAME)


def test_a_replication_is_stopped_and_the_replication_of_an_unknown_recording_fails(
    client, archives, start_client, stream
):
    """07-116, 07-120"""
    source, other, _ = _source(archives, start_client, stream)
    active = _record(other, stream, count=3, stop=False)
    of = {"stream": source.stream, "channel": source.control_channel}
    replication = client.ask("replicate", recording=active.id, **of)
    _await_signal(client, "Extend", correlation=replication)
    client.ask("stop_replication", replication=replication)
    _await_signal(client, "ReplicateEnd", correlation=replication)
    assert client.ask("try_stop_replication", replication=replication) is False
    assert _refusal(client, "stop_replication", replication=1 << 40)[0] == _UNKNOWN_REPLICATION
    replication = client.ask("replicate", recording=1 << 40, **of)
    errors = []
    eventually(lambda: errors.extend(client.call("errors")["errors"]) or errors)
    assert f"correlationId={replication}, errorCode={_UNKNOWN_RECORDING}" in errors[0]
    with pytest.raises(PeerError, match="live destination"):
        client.ask("replicate", recording=0, live="aeron:udp?endpoint=localhost:1", session=3, **of)


def test_a_closed_client_is_in_state_closed_and_refuses_requests(client):
    client.call("close_archive")
    assert client.call("state")["state"] == "closed"
    with pytest.raises(PeerError) as refused:
        client.ask("list_recordings")
    assert refused.value.type == "Closed"
    client.call("close_archive")


def test_a_client_that_lost_its_archive_is_closed_by_the_next_call(start_client, archives):
    """07-128"""
    archive = archives("dying")
    client = start_client()
    client.connect(archive, request=archive.control_channel, response=ANY_PORT)
    assert client.ask("list_recordings") == []
    archive.process.terminate()
    eventually(lambda: client.call("state")["state"] == "disconnected")
    with pytest.raises(PeerError) as lost:
        client.ask("list_recordings")
    assert lost.value.type == "Disconnected"
    assert client.call("state")["state"] == "closed"
    with pytest.raises(PeerError) as closed:
        client.ask("list_recordings")
    assert closed.value.type == "Closed"
