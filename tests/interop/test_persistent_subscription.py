"""Tests of our client's `PersistentSubscription` on the real archive and on ours.

A number such as 11-13 is line 13 of document 11.
"""

import asyncio
import itertools
import time

import pytest

import aeron
from interop.archives import Archive
from interop.conftest import _started
from interop.our_archive_client import OurArchiveClient
from interop.persistent import (
    CONTROL_SESSIONS_TYPE,
    IPC,
    JOIN_DIFFERENCE_TYPE,
    LIVE_JOINED_TYPE,
    LIVE_LEFT_TYPE,
    NO_JOIN_DIFFERENCE,
    PUBLICATION,
    REPLAYS_TYPE,
    STATE_TYPE,
    TYPES,
    Reader,
    Source,
    counters,
)
from interop.test_archive_python import connected
from interop.waiting import eventually
from ports import free_port

_SUBSCRIBER_TYPE = 4
_FRAGMENTED = (4000, 100, 8000, 1500)
_SHORT_TIMEOUT_S = 0.5
_streams = itertools.count(5000)


@pytest.fixture(scope="module", params=["ours", "java"])
def server(request, drivers, tmp_path_factory):
    directory = tmp_path_factory.mktemp("archive")
    # A killed archive can start again only after the driver has removed the archive's client.
    driver = drivers("ours", {"AERON_IMAGE_LIVENESS_TIMEOUT": "1s", "AERON_CLIENT_LIVENESS_TIMEOUT": "5s"})
    archive = _started(lambda: Archive(request.param, driver, directory / "files", directory / "errors", 10))
    archive.driver = driver
    yield archive
    archive.remove()


@pytest.fixture(scope="module")
def client(server):
    with aeron.connect(server.driver.directory) as client:
        yield client


@pytest.fixture(scope="module")
def archive(server, client):
    with connected(client, {}) as archive:
        yield archive


@pytest.fixture
def stream():
    return next(_streams)


@pytest.fixture
def source(archive, stream):
    """Returns a recorded stream over IPC."""
    source = Source(archive, PUBLICATION, stream)
    yield source
    source.dismiss()


@pytest.fixture
def read(archive, client):
    """`read(source, **settings)` returns a reader of the source. By default it starts at the start of the recording."""
    readers = []

    def make(source, *, limit=10, **settings):
        options = {
            "recording_id": source.id,
            "live_channel": IPC,
            "live_stream_id": source.stream,
            "start_position": aeron.FROM_START,
            **settings,
        }
        if "message_timeout" in settings:
            reader = Reader(aeron.PersistentSubscription, client, limit=limit, **options)
        else:
            reader = Reader(archive.persistent_subscription, limit=limit, **options)
        readers.append(reader)
        return reader

    yield make
    for reader in readers:
        reader.subscription.close()


# ---- channels of live streams and replays ----------------------------------------------------------------------------

_LOOK_UP = ["AWAIT_ARCHIVE_CONNECTION", "SEND_LIST_RECORDING_REQUEST", "AWAIT_LIST_RECORDING_RESPONSE"]
_REQUEST = ["SEND_REPLAY_REQUEST", "AWAIT_REPLAY_RESPONSE"]
_SUBSCRIBE = ["ADD_REPLAY_SUBSCRIPTION", "AWAIT_REPLAY_SUBSCRIPTION"]
_ENDPOINT = ["AWAIT_REPLAY_CHANNEL_ENDPOINT"]
_TOKEN = ["ADD_REQUEST_PUBLICATION", "AWAIT_REQUEST_PUBLICATION", "SEND_REPLAY_TOKEN_REQUEST", "AWAIT_REPLAY_TOKEN"]
_SWITCH = ["REPLAY", "ATTEMPT_SWITCH", "LIVE"]

_NETWORK = "ssc=true|term-length=1m"
_LIVE = {
    "ipc": (PUBLICATION, IPC),
    "spy": (f"aeron:udp?endpoint=localhost:{{port}}|{_NETWORK}", "aeron-spy:aeron:udp?endpoint=localhost:{port}"),
    "unicast": (
        f"aeron:udp?endpoint=localhost:{{port}}|{_NETWORK}",
        "aeron:udp?endpoint=localhost:{port}",
    ),
    "multicast": (
        f"aeron:udp?endpoint=224.20.30.39:{{port}}|interface=localhost|{_NETWORK}",
        "aeron:udp?endpoint=224.20.30.39:{port}|interface=localhost",
    ),
    "dynamic": (
        f"aeron:udp?control=localhost:{{port}}|control-mode=dynamic|{_NETWORK}",
        "aeron:udp?endpoint=localhost:0|control=localhost:{port}|control-mode=dynamic",
    ),
}
_REPLAY = {
    "ipc": (IPC, _REQUEST + _SUBSCRIBE),
    "fixed": ("aeron:udp?endpoint=localhost:{port}", _REQUEST + _SUBSCRIBE),
    "any": ("aeron:udp?endpoint=localhost:0", _SUBSCRIBE + _ENDPOINT + _REQUEST),
    "response-ipc": ("aeron:ipc?control-mode=response", _SUBSCRIBE + _TOKEN + _REQUEST),
    "response-udp": (
        "aeron:udp?control-mode=response|control=localhost:{port}",
        _SUBSCRIBE + _TOKEN + _ENDPOINT + _REQUEST,
    ),
    "response-any": (
        "aeron:udp?control-mode=response|control=localhost:{port}|endpoint=localhost:0",
        _SUBSCRIBE + _TOKEN + _ENDPOINT + _REQUEST,
    ),
}
_WAYS = [
    *(("ipc", replay, limit) for replay, limit in zip(_REPLAY, itertools.cycle([1, 10, 2**31 - 1]), strict=False)),
    *((live, "ipc", limit) for live, limit in zip(list(_LIVE)[1:], itertools.cycle([10, 1]), strict=False)),
]


@pytest.mark.parametrize(("live", "replay", "limit"), _WAYS, ids=["-".join(map(str, way)) for way in _WAYS])
def test_a_recording_is_replayed_and_then_the_live_stream_is_joined(
    server, client, archive, stream, live, replay, limit
):
    """11-13, 11-14, 11-15, 11-16, 11-18, 11-22, 11-36, 11-37, 11-45, 11-63, 11-68"""
    port = free_port()
    published, live_channel = (channel.format(port=port) for channel in _LIVE[live])
    replay_channel, order = _REPLAY[replay]
    source = Source(archive, published, stream, lengths=_FRAGMENTED)
    source.send(40)
    settings = {
        "recording_id": source.id,
        "live_channel": live_channel,
        "live_stream_id": stream,
        "replay_channel": replay_channel.format(port=free_port()),
        "replay_stream_id": stream + 10_000,
        "start_position": aeron.FROM_START,
    }
    if "response-" in replay and replay != "response-ipc":
        control, _, responses = server.control("udp")
        settings |= {"control_channel": control, "response_channel": responses}
    replays = counters(client, REPLAYS_TYPE)
    with Reader(aeron.PersistentSubscription, client, limit=limit, **settings) as reader:
        reader.until_live(meanwhile=source.trickle)
        assert reader.events == [("joined", "LIVE", reader.subscription.join_difference)]
        source.send(20, reader=reader)
        reader.until_read(source.messages)
        found = counters(client)
        assert found.pop(JOIN_DIFFERENCE_TYPE) == reader.subscription.join_difference
        assert found == {STATE_TYPE: 16, LIVE_LEFT_TYPE: 0, LIVE_JOINED_TYPE: 1}
        assert reader.errors == []
        eventually(lambda: counters(client, REPLAYS_TYPE) == replays)
    reader.states.append("LIVE")
    assert reader.states[: len(_LOOK_UP) + len(order)] == _LOOK_UP + order
    assert reader.states[len(_LOOK_UP) + len(order) :][:3] == _SWITCH
    source.dismiss()
    eventually(lambda: counters(client) == {})


# ---- where a subscription begins -------------------------------------------------------------------------------------


def test_a_subscription_that_starts_at_the_live_stream_replays_nothing(source, read, client):
    """11-19, 11-24, 11-45, 11-68"""
    source.send(5)
    reader = read(source, start_position=aeron.FROM_LIVE).until_live()
    source.send(5)
    reader.until_read(source.messages[5:])
    assert reader.events == [("joined", "LIVE", 0)]
    assert not {"SEND_REPLAY_REQUEST", "ADD_REPLAY_SUBSCRIPTION", "REPLAY"} & set(reader.states)
    assert counters(client)[JOIN_DIFFERENCE_TYPE] == 0


def test_a_start_position_within_the_recording_delivers_exactly_the_later_messages(source, read):
    """11-23, 11-71"""
    position = source.send(7)
    source.send(8)
    reader = read(source, start_position=position).until_live()
    source.send(5)
    reader.until_read(source.messages[7:])
    assert reader.positions[-1] == source.publication.position


def test_an_empty_active_recording_is_replayed_and_then_the_live_stream_is_joined(source, read):
    """11-28"""
    source.send(0)
    reader = read(source).until_live()
    source.send(5)
    reader.until_read(source.messages)
    assert "REPLAY" in reader.states


def test_a_start_position_at_the_end_of_a_stopped_recording_joins_the_live_stream_without_a_replay(
    source, read, client
):
    """11-25, 11-26, 11-55"""
    position = source.send(5)
    # Over IPC, a driver lets a subscriber join at the position of the other subscribers.
    with client.add_subscription(IPC, source.stream) as other:
        other.wait_connected(timeout=10)
        source.publication.publish(b"joined", timeout=5)
        source.messages.append(b"joined")
        eventually(lambda: other.poll(lambda payload, header: None) or other.images[0].position > position)
        position = source.send(0)
        source.stop()
        _expect_live(source, read, position)


def _expect_live(source, read, position):
    reader = read(source, start_position=position).until_live()
    assert "REPLAY" not in reader.states
    assert reader.errors == []
    from_live = read(source, start_position=aeron.FROM_LIVE).until_live()
    source.messages.append(b"live only")
    source.publication.publish(b"live only", timeout=5)
    reader.until_read([b"live only"])
    from_live.until_read([b"live only"])


def test_a_missing_live_stream_is_reported_once_and_joined_when_the_publisher_returns(source, read, archive, client):
    """11-27, 11-29, 11-51, 11-65"""
    position = source.send(5)
    source.close()
    reader = read(source, start_position=position, message_timeout=_SHORT_TIMEOUT_S)
    reader.until(lambda: reader.errors)
    ((error, has_failed),) = reader.errors
    assert str(error).startswith("No image became available on the live subscription within 500ms.")
    assert (has_failed, error.reason, reader.subscription.failure_reason) == (False, "GENERIC", None)
    end = time.monotonic() + 2 * _SHORT_TIMEOUT_S
    reader.until(lambda: time.monotonic() > end)
    assert len(reader.errors) == 1
    source.resume(client)
    reader.until_live()
    source.send(5)
    reader.until_read(source.messages[5:])
    source.close()
    reader.until(lambda: reader.count("left"))
    source.resume(client)
    source.send(5)
    reader.until_live()
    reader.until_read(source.messages[5:])
    whole = read(source, start_position=position).until_live()
    whole.until_read(source.messages[5:])


# ---- failures --------------------------------------------------------------------------------------------------------


def test_a_subscription_that_cannot_have_all_messages_fails_with_the_reason(source, read, archive):
    """11-30, 11-31, 11-32, 11-33, 11-64, 11-65, 11-66"""
    end = source.send(5)
    refusals = [
        ({"recording_id": 1 << 40}, "RECORDING_NOT_FOUND", f"unknown recording id: {1 << 40}"),
        ({"live_stream_id": 77}, "STREAM_ID_MISMATCH", "Requested live stream with ID: 77 does not match stream ID: "),
        ({"start_position": end + 64}, "INVALID_START_POSITION", "replay request failed: "),
        ({"start_position": 32}, "INVALID_START_POSITION", "replay request failed: "),
        ({"start_position": 33}, "GENERIC", "replay request failed: "),
    ]
    for settings, reason, text in refusals:
        failure = read(source, **settings).until_failed()
        assert (failure.reason, str(failure)[: len(text)]) == (reason, text)
    source.stop()
    failure = read(source, start_position=end + 32).until_failed()
    assert failure.reason == "INVALID_START_POSITION"
    limit = f"must be less than the limit position={end} for recording {source.id}"
    assert str(failure) == f"requested replay start position={end + 32} {limit}"
    sessions = counters(archive.client, CONTROL_SESSIONS_TYPE)[CONTROL_SESSIONS_TYPE]
    reader = read(source, start_position=end + 32)
    assert reader.subscription.failure_reason is None
    reader.until_failed()
    # On a busy machine, sessions of the subscriptions before may end after the count.
    eventually(lambda: counters(archive.client, CONTROL_SESSIONS_TYPE)[CONTROL_SESSIONS_TYPE] <= sessions)
    assert counters(archive.client)[STATE_TYPE] == 17
    with pytest.raises(aeron.PersistentSubscriptionError):
        reader.subscription.poll_batch()
    with pytest.raises(aeron.PersistentSubscriptionError):
        next(reader.subscription.batches(timeout=5))


def test_a_start_position_before_the_start_of_the_recording_is_refused(source, read, archive, stream):
    """11-22, 11-32, 11-57"""
    source.send(1000)
    reader = read(source).until_live()
    reader.until_read(source.messages)
    source.close()
    reader.until(lambda: reader.subscription.state == "AWAIT_LIVE")
    archive.purge_segments(source.id, 128 * 1024)
    failure = read(source, start_position=0).until_failed()
    assert failure.reason == "INVALID_START_POSITION"
    assert str(failure) == (
        f"requested replay start position=0 is less than recording start position=131072 for recording {source.id}"
    )
    from_start = read(source)
    from_start.until(lambda: from_start.subscription.state == "AWAIT_LIVE")
    assert from_start.messages == source.messages[-len(from_start.messages) :]
    assert from_start.positions[0] > 128 * 1024


def test_invalid_settings_for_the_archive_fail_at_the_first_poll(source, client):
    """11-35"""
    source.send(1)
    settings = {"recording_id": source.id, "live_channel": IPC, "live_stream_id": source.stream}
    with pytest.raises(aeron.ConfigurationError):
        aeron.PersistentSubscription(client, **settings | {"live_channel": ""})
    reader = Reader(aeron.PersistentSubscription, client, client_name="n" * 101, **settings)
    reader.poll()
    assert reader.failure.reason == "GENERIC"
    assert isinstance(reader.failure.__cause__, aeron.ConfigurationError)
    reader.subscription.close()


def test_the_loss_of_the_live_stream_fails_the_subscription_if_the_recording_ends_earlier(source, read):
    """11-53"""
    source.send(5)
    reader = read(source).until_live()
    source.stop()
    for _ in range(5):
        source.offer()
    reader.until_read(source.messages)
    live = source.publication.position
    source.publication.close()
    failure = reader.until_failed()
    assert failure.reason == "INVALID_START_POSITION"
    assert str(failure).endswith(f"which is earlier than last observed live position={live}")
    assert reader.count("left") == 1


def test_all_messages_of_a_stopped_recording_are_delivered_before_the_subscription_fails(source, read, client):
    """11-54"""
    source.send(5)
    source.stop()
    recorded = list(source.messages)
    # Without a subscriber, a stream over IPC makes no progress.
    with client.add_subscription(IPC, source.stream) as other:
        other.wait_connected(timeout=10)
        eventually(lambda: source.offer() and other.poll(lambda payload, header: None))
        _expect_what_was_recorded(source, read, recorded)


def _expect_what_was_recorded(source, read, recorded):
    reader = read(source)
    failure = reader.until_failed()
    assert failure.reason == "INVALID_START_POSITION"
    assert reader.messages == recorded


def test_messages_lost_by_a_revoked_publication_are_replayed(source, read, client):
    """11-58"""
    source.send(1)
    reader = read(source).until_live()
    source.send(50)
    session = str(source.publication.session_id)
    source.publication.revoke()
    # The reader does not poll until the live stream has ended.
    eventually(lambda: not any(session in it.label for it in client.counters_reader if it.type_id == _SUBSCRIBER_TYPE))
    reader.until_read(source.messages)
    assert reader.count("left") == 1


def test_a_purged_recording_fails_the_subscription_only_after_the_live_stream_is_lost(source, read, archive):
    """11-56"""
    source.send(5)
    reader = read(source).until_live()
    source.stop()
    eventually(lambda: _purged(archive, source.id))
    reader.until_read(source.messages)
    source.publication.close()
    failure = reader.until_failed()
    assert failure.reason == "RECORDING_NOT_FOUND"


def _purged(archive, recording_id):
    """Requests a purge, and returns whether the archive accepted it. A replay that has not ended causes a refusal."""
    try:
        archive.purge_recording(recording_id)
    except aeron.ArchiveError:
        return False
    return True


def test_a_new_live_stream_at_an_earlier_position_fails_the_subscription(source, read, client):
    """11-52"""
    position = source.send(5)
    reader = read(source).until_live()
    reader.until_read(source.messages)
    source.close()
    reader.until(lambda: reader.subscription.state == "AWAIT_LIVE")
    with client.add_exclusive_publication(PUBLICATION, source.stream):
        failure = reader.until_failed()
    assert failure.reason == "GENERIC"
    assert str(failure) == f"live stream joined at position 0 which is earlier than last seen position {position}"
    assert reader.count("left") == 1


# ---- the switch ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 7, 2**31 - 1])
def test_the_switch_to_the_live_stream_within_fragmented_messages_of_a_busy_publisher_loses_nothing(
    source, read, client, limit
):
    """11-36, 11-37, 11-40, 11-41"""
    source.send(20)
    big = Source(source.archive, PUBLICATION, source.stream + 20_000, lengths=(7000, 8000))
    big.send(20)
    reader = read(big, limit=limit)
    sent = len(big.messages)

    # The replay and the live stream always move. At first the publisher is half as fast as the reader: a reader that is
    # slower than the publisher would never reach the live stream.
    def offer():
        read = len(reader.messages)
        if len(big.messages) <= max(sent + read // 2, read):
            big.offer()

    reader.until_live(meanwhile=offer)
    big.send(50, reader=reader)
    reader.until_read(big.messages)
    assert reader.count("joined") == 1
    big.dismiss()


def test_the_live_image_waits_until_a_slow_replay_has_reached_its_position(archive, stream, client, read):
    """11-17, 11-37, 11-43"""
    source = Source(archive, PUBLICATION, stream, lengths=(1000,))
    with client.add_subscription(IPC, stream) as other:
        other.wait_connected(timeout=10)
        position = source.send(5)
        # These bytes are less than a quarter of a term, so the subscription joins the live stream before the replay
        # ends.
        source.send(15)
        eventually(lambda: other.poll(lambda payload, header: None, 1000) == 0)
        slow = read(source, limit=1, start_position=position)
        # The polls are slow, so that the driver adds the live subscription before the replay ends.
        slow.until_live(meanwhile=lambda: time.sleep(0.003))
        assert slow.subscription.join_difference > 0
        slow.until_read(source.messages[5:])
        again = read(source, limit=1, start_position=position)
        again.until(lambda: again.subscription.state == "ATTEMPT_SWITCH", meanwhile=lambda: time.sleep(0.003))
        archive.stop_all_replays(source.id)
        eventually(lambda: counters(client, REPLAYS_TYPE) == {REPLAYS_TYPE: 0})
        again.until(lambda: again.subscription.state != "ATTEMPT_SWITCH")
        again.until_live()
        again.until_read(source.messages[5:])
        assert again.events == [("joined", "LIVE", again.subscription.join_difference)]
    source.dismiss()


def test_the_live_stream_of_an_idle_publisher_is_joined_without_a_new_frame(source, read):
    """11-39"""
    source.send(50)
    reader = read(source).until_live()
    assert reader.messages == source.messages


def test_the_replay_continues_while_there_is_no_live_image_and_after_the_live_image_is_lost(archive, stream, client):
    """11-42, 11-44"""
    port, recorded = free_port(), f"aeron:udp?endpoint=localhost:{free_port()}"
    archive.start_recording(recorded, stream, source="REMOTE")
    source = Source(
        archive, "aeron:udp?control-mode=manual|term-length=1m", stream, add=client.add_exclusive_publication
    )
    source.publication.add_destination(recorded)
    source.publication.wait_connected(timeout=10)
    source.send(30)
    settings = {
        "recording_id": source.id,
        "live_channel": f"aeron:udp?endpoint=localhost:{port}",
        "live_stream_id": stream,
        "start_position": aeron.FROM_START,
        "message_timeout": _SHORT_TIMEOUT_S,
    }
    with Reader(aeron.PersistentSubscription, client, **settings) as reader:
        reader.until(lambda: reader.errors)
        replays = counters(client, REPLAYS_TYPE)
        source.send(10)
        reader.until_read(source.messages)
        assert (reader.subscription.state, len(reader.errors)) == ("REPLAY", 1)
        assert counters(client, REPLAYS_TYPE) == replays
        source.publication.add_destination(f"aeron:udp?endpoint=localhost:{port}")
        reader.until_live(meanwhile=source.trickle)
        source.publication.remove_destination(f"aeron:udp?endpoint=localhost:{port}")
        source.send(10, reader=reader)
        reader.until(lambda: reader.count("left"))
        reader.until_read(source.messages)
        source.publication.add_destination(f"aeron:udp?endpoint=localhost:{port}")
        reader.until(lambda: reader.count("joined") == 2, meanwhile=source.trickle)
        reader.until_read(source.messages)
        assert [name for name, _, _ in reader.events] == ["joined", "left", "joined"]
        assert reader.events[1] == ("left", "SEND_LIST_RECORDING_REQUEST", None)
    source.publication.close()


@pytest.mark.parametrize("lengths", [(100,), (8000,)], ids=["whole", "fragmented"])
def test_a_consumer_that_is_too_slow_for_the_live_stream_replays_the_missed_messages(archive, stream, read, lengths):
    """11-47, 11-48, 11-49"""
    untethered = "untethered-window-limit-timeout=100ms|untethered-linger-timeout=100ms|untethered-resting-timeout=1s"
    source = Source(archive, f"{PUBLICATION}|{untethered}", stream, lengths=lengths)
    source.send(10)
    reader = read(source, limit=1, live_channel="aeron:ipc?tether=false").until_live()
    source.send(120_000 // lengths[0])
    reader.until(lambda: reader.count("left"))
    assert reader.events[-1] == ("left", "SEND_LIST_RECORDING_REQUEST", None)
    reader.until(lambda: reader.subscription.is_replaying)
    reader.until(lambda: reader.count("joined") == 2)
    source.send(3, reader=reader)
    reader.until_read(source.messages)
    assert [name for name, _, _ in reader.events] == ["joined", "left", "joined"]
    source.dismiss()


def test_messages_of_a_second_publisher_on_the_live_channel_are_ignored(source, read, client):
    """11-75"""
    source.send(5)
    reader = read(source).until_live()
    with client.add_exclusive_publication(PUBLICATION, source.stream) as other:
        other.wait_connected(timeout=10)
        for _ in range(5):
            other.publish(b"another stream", timeout=5)
            source.send(1, reader=reader)
        reader.until_read(source.messages)


# ---- the archive is lost ---------------------------------------------------------------------------------------------


@pytest.fixture
def own(request, server, client, start_archive):
    """Starts an archive of the same kind and on the same driver as `server`. The test may end it."""
    archive = start_archive(server.kind, server.driver)
    channel, stream, responses = archive.control("ipc")
    archive.settings_of_clients = {
        "control_channel": channel,
        "control_stream_id": stream,
        "response_channel": responses,
    }
    return archive


def test_a_live_subscription_needs_no_archive_until_the_live_stream_is_lost(own, client, stream):
    """11-34, 11-59, 11-60"""
    with connected(client, own.settings_of_clients) as archive:
        source = Source(archive, PUBLICATION, stream)
        source.send(5)
    settings = {
        "recording_id": source.id,
        "live_channel": IPC,
        "live_stream_id": stream,
        "start_position": aeron.FROM_START,
        **own.settings_of_clients,
        "message_timeout": _SHORT_TIMEOUT_S,
    }
    with Reader(aeron.PersistentSubscription, client, **settings) as reader:
        reader.until_live()
        own.kill() if own.kind == "ours" else own.stop()
        eventually(lambda: source.publication.offer(b"live") > 0)
        source.messages.append(b"live")
        reader.until_read(source.messages)
        reader.until(lambda: reader.errors)
        assert reader.subscription.is_live
        assert {has_failed for _, has_failed in reader.errors} == {False}
        assert isinstance(reader.errors[0][0].__cause__, aeron.ArchiveTimeoutError)
        own.start()
        with connected(client, own.settings_of_clients) as archive:
            source.archive = archive
            recorded = archive.get_stop_position(source.id)
            assert recorded is not None
            source.publication.close()
            reader.until(lambda: reader.count("left"))
            # The archive did not record the messages that were sent while it was down, so the subscription fails.
            failure = reader.until_failed()
            assert failure.reason == "INVALID_START_POSITION"


def test_a_replay_continues_after_the_archive_has_started_again(own, client, stream):
    """11-61, 11-62"""
    with connected(client, own.settings_of_clients) as archive:
        source = Source(archive, PUBLICATION, stream)
        # Together, these messages have more bytes than the log of the replay, so the replay is incomplete when the
        # archive ends.
        source.send(3000)
    settings = {
        "recording_id": source.id,
        "live_channel": IPC,
        "live_stream_id": stream,
        "start_position": aeron.FROM_START,
        **own.settings_of_clients,
    }
    with Reader(aeron.PersistentSubscription, client, limit=1, **settings) as reader:
        reader.until(lambda: len(reader.messages) >= 20)
        own.kill() if own.kind == "ours" else own.stop()
        reader.until(lambda: reader.subscription.state == "AWAIT_ARCHIVE_CONNECTION")
        assert not reader.subscription.has_failed
        read = len(reader.messages)
        assert read < 3000
        own.start()
        source.publication.close()
        reader.until(lambda: reader.subscription.state == "AWAIT_LIVE")
        assert reader.messages == source.messages


def test_a_subscription_waits_for_an_archive_that_starts_later(own, client, stream):
    """11-34, 11-62"""
    with connected(client, own.settings_of_clients) as archive:
        source = Source(archive, PUBLICATION, stream)
        source.send(5)
        source.close()
    settings = {
        "recording_id": source.id,
        "live_channel": IPC,
        "live_stream_id": stream,
        **own.settings_of_clients,
        "message_timeout": _SHORT_TIMEOUT_S,
    }
    waiting = [
        Reader(aeron.PersistentSubscription, client, start_position=0, replay_channel=channel, **settings)
        for channel in (IPC, IPC, "aeron:ipc?control-mode=response")
    ]
    for reader, state in zip(waiting, (_LOOK_UP[-1], _REQUEST[-1], _TOKEN[-1]), strict=True):
        reader.until(lambda reader=reader, state=state: reader.subscription.state == state)
    own.stop()
    for start_position in (aeron.FROM_LIVE, aeron.FROM_START):
        with Reader(aeron.PersistentSubscription, client, start_position=start_position, **settings) as reader:
            reader.until(lambda: len(reader.errors) >= 2)
            assert reader.subscription.state == "AWAIT_ARCHIVE_CONNECTION"
            if start_position == aeron.FROM_START:
                own.start()
                reader.until_read(source.messages)
    for reader in waiting:
        with reader:
            reader.until_read(source.messages)


# ---- polling, closing ------------------------------------------------------------------------------------------------


def test_iterators_over_batches_and_coroutines_read_the_same_messages(source, archive):
    """11-71"""
    source.send(200)
    settings = {
        "recording_id": source.id,
        "live_channel": IPC,
        "live_stream_id": source.stream,
        "start_position": aeron.FROM_START,
    }
    with archive.persistent_subscription(**settings) as subscription:
        got, positions = [], []
        for batch in subscription.batches(limit=64, timeout=10):
            got += batch.to_list()
            positions += batch.positions
            if len(got) == 200:
                break
        assert got == source.messages
        assert positions[-1] == source.publication.position
    assert list(subscription.batches(timeout=1)) == []

    async def read():
        got = []
        with archive.persistent_subscription(**settings) as subscription:
            async for batch in subscription:
                got += batch.to_list()
                if len(got) == 200:
                    return got

    assert asyncio.run(asyncio.wait_for(read(), 20)) == source.messages


def test_an_aborted_message_is_delivered_again_completely(source, archive):
    """11-71, 11-72"""
    big = Source(archive, PUBLICATION, source.stream + 20_000, lengths=(5000, 100))
    big.send(6)
    settings = {"recording_id": big.id, "live_channel": IPC, "live_stream_id": big.stream, "start_position": 0}
    seen, faults = [], []

    def handle(payload, header):
        seen.append(payload)
        if len(seen) % 2:
            return aeron.Action.ABORT
        return aeron.Action.CONTINUE

    with archive.persistent_subscription(**settings) as subscription:
        eventually(lambda: subscription.controlled_poll(handle) is not None and len(seen) >= 8)
        count = len(seen) // 2
        assert seen[::2][:count] == seen[1::2][:count] == big.messages[:count]

    def fail(payload, header):
        seen.append(payload)
        raise LookupError(payload)

    seen.clear()
    with archive.persistent_subscription(**settings) as subscription:
        while len(seen) < 6:
            try:
                subscription.poll(fail)
            except LookupError as fault:
                faults.append(fault.args[0])
    assert seen == faults == big.messages
    big.dismiss()


def test_poll_raises_the_exception_of_a_listener_after_the_state_has_changed(source, archive):
    """11-63"""
    source.send(3)

    def refuse():
        raise LookupError("joined")

    settings = {"recording_id": source.id, "live_channel": IPC, "live_stream_id": source.stream}
    with archive.persistent_subscription(**settings, on_live_joined=refuse) as subscription:
        with pytest.raises(LookupError, match="joined"):
            for _ in itertools.repeat(None):
                subscription.poll_batch()
        assert subscription.is_live
        source.send(1)
        assert next(subscription.batches(timeout=10)).to_list() == source.messages[3:]


def test_closing_a_subscription_in_any_state_frees_all_of_its_resources(server, source):
    """11-67, 11-70"""
    source.send(5)
    settings = {
        "recording_id": source.id,
        "live_channel": IPC,
        "live_stream_id": source.stream,
        "replay_channel": "aeron:udp?endpoint=localhost:0",
        "start_position": aeron.FROM_START,
    }
    with aeron.connect(server.driver.directory) as client:
        for state in [*_LOOK_UP, *_SUBSCRIBE, *_ENDPOINT, *_REQUEST, *_SWITCH]:
            with Reader(aeron.PersistentSubscription, client, limit=1, **settings) as reader:
                _expect_first_counters(client, source.stream)
                reader.until(lambda reader=reader, state=state: reader.subscription.state == state)
                assert _owned(client) >= len(TYPES)
            eventually(lambda: _owned(client) == 0)


def _expect_first_counters(client, stream):
    found = {counter.type_id: counter for counter in client.counters_reader if counter.type_id in TYPES}
    assert {type_id: counter.value for type_id, counter in found.items()} == {
        STATE_TYPE: 0,
        JOIN_DIFFERENCE_TYPE: NO_JOIN_DIFFERENCE,
        LIVE_LEFT_TYPE: 0,
        LIVE_JOINED_TYPE: 0,
    }
    streams = f"100 aeron:udp?endpoint=localhost:0|rejoin=false {stream} aeron:ipc"
    assert found[STATE_TYPE].label == f"Persistent Subscription State: {streams}"
    assert set(found[LIVE_LEFT_TYPE].key) == {0}


def _owned(client):
    """Returns the number of counters that the client owns, without its heartbeat."""
    owned = [counter for counter in client.counters_reader if counter.owner_id == client.client_id]
    return sum(counter.type_id != _HEARTBEAT_TYPE for counter in owned)


_HEARTBEAT_TYPE = 11


def test_a_subscription_of_the_rust_client_may_create_its_own_aeron_client(server, source, client, tmp_path):
    """11-7"""
    source.send(5)
    control, control_stream, responses = server.control("ipc")
    peer = _started(lambda: OurArchiveClient(tmp_path / "errors"))
    peer.start(
        "read_persistently",
        dir=server.driver.directory,
        request=control,
        response=responses,
        stream=control_stream,
        recording=source.id,
        live=IPC,
        live_stream=source.stream,
        replay_stream=source.stream + 10_000,
        count=10,
        timeout_ms=20_000,
    )

    def is_there():
        return any("name=PersistentSubscription " in each.label for each in client.counters_reader)

    eventually(is_there)
    source.send(5)
    assert peer.answer() == {"read": 10, "live": True}
    eventually(lambda: not is_there())
    assert peer.is_usable()
    peer.kill()
