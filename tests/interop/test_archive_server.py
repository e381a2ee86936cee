"""Tests of the basic operations of an archive: the real client connects, records, lists, replays and stops.

Each test runs on the real archive, to check the test itself, and on ours.
"""

import pytest

from interop.archive_peers import ACTIVE_SUBSCRIPTION, UNKNOWN_RECORDING, UNKNOWN_SUBSCRIPTION
from interop.channels import unicast
from interop.kinds import each_archive
from interop.peers import PeerError

_TERM_LENGTH = 64 * 1024
_CHANNEL = f"aeron:ipc?term-length={_TERM_LENGTH}"
_REPLAY_CHANNEL = "aeron:ipc"
_LENGTHS = (10, 3000, 0, 1400, 7)
_COUNT = 400

each_way = pytest.mark.parametrize("way", ["ipc", "udp"])


@pytest.fixture
def server(drivers, start_archive, archive_client):
    """`server(kinds, way)` starts an archive on a driver, and connects the real client over `way`."""

    def start(kinds, way="ipc"):
        archive_kind, driver_kind = kinds
        driver = drivers(driver_kind)
        archive = start_archive(archive_kind, driver)
        return archive, archive_client(driver, archive, way)

    return start


@pytest.fixture
def recorded(stream):
    """`recorded(client)` records messages and stops the recording. Returns publication, recording id and stop
    position."""

    def record(client):
        subscription = client.start_recording(_CHANNEL, stream)
        publication = client.peer.add_publication(_CHANNEL, stream, exclusive=True)
        start = client.await_signal("START")
        publication.await_connected()
        publication.start_publish(_COUNT, _LENGTHS)
        assert client.peer.answer()["sent"] == _COUNT
        position = publication.state()["position"]
        client.await_recorded(start["recording"], position)
        client.stop_recording(subscription)
        stop = client.await_signal("STOP", recording=start["recording"])
        assert stop["position"] == position
        return publication, start["recording"], position

    return record


@each_archive
@each_way
def test_a_client_connects_and_receives_the_archive_id(server, kinds, way):
    """07-16, 07-18, 07-19, 07-122"""
    _, client = server(kinds, way)
    assert client.state() == "CONNECTED"
    assert client.archive_id != -1
    assert client.list_recordings() == []
    assert client.list_subscriptions() == []
    client.close()


@each_archive
@each_way
def test_a_listed_recording_has_the_properties_of_its_publication(server, recorded, stream, kinds, way):
    """07-39, 07-45, 07-48, 07-54, 07-102, 07-106"""
    archive, client = server(kinds, way)
    publication, recording, position = recorded(client)
    descriptor = client.list_recording(recording)
    assert client.list_recordings() == [descriptor]
    timestamps = descriptor.pop("start_timestamp"), descriptor.pop("stop_timestamp")
    assert 0 < timestamps[0] <= timestamps[1]
    assert descriptor == {
        "recording": recording,
        "start": 0,
        "stop": position,
        "initial_term": publication.initial_term,
        "segment_length": 128 * 1024,
        "term_length": _TERM_LENGTH,
        "mtu": 1408,
        "session": publication.session,
        "stream": stream,
        "stripped": "aeron:ipc",
        "original": _CHANNEL,
        "source": "aeron:ipc",
    }
    assert client.start_position(recording) == 0
    assert client.stop_position(recording) == client.max_recorded_position(recording) == position
    assert client.recording_position(recording) == -1
    assert client.list_subscriptions() == []
    files = sorted(path.name for path in archive.directory.glob("*.rec"))
    assert files == sorted(f"{recording}-{base}.rec" for base in range(0, position + 1, 128 * 1024))


@each_archive
@each_way
@pytest.mark.parametrize("replay_channel", [lambda: _REPLAY_CHANNEL, unicast], ids=["to-ipc", "to-udp"])
def test_a_replay_has_the_published_messages(server, recorded, stream, kinds, way, replay_channel):
    """07-83, 07-86, 07-90, 07-99"""
    _, client = server(kinds, way)
    _, recording, position = recorded(client)
    subscription = client.replay(recording, replay_channel(), stream + 10_000)
    received = subscription.receive(_COUNT, _LENGTHS)
    assert received["faults"] == []
    assert received["received"] == _COUNT
    (session,) = received["sessions"].values()
    assert session["position"] == position
    subscription.await_images(0)


@each_archive
def test_a_replay_follows_an_active_recording(server, stream, kinds):
    """07-90, 07-106"""
    _, client = server(kinds)
    publication = client.add_recorded_publication(_CHANNEL, stream, exclusive=True)
    recording = client.await_signal("START")["recording"]
    publication.start_publish(_COUNT, _LENGTHS)
    assert client.peer.answer()["sent"] == _COUNT
    subscription = client.replay(recording, _REPLAY_CHANNEL, stream + 10_000)
    assert subscription.receive(_COUNT, _LENGTHS)["faults"] == []
    publication.start_publish(_COUNT, _LENGTHS)
    assert client.peer.answer()["sent"] == _COUNT
    received = subscription.receive(_COUNT, _LENGTHS)
    assert received["received"] == _COUNT
    position = publication.state()["position"]
    client.await_recorded(recording, position)
    assert client.recording_position(recording) == position
    client.stop_recording_publication(publication)
    assert client.await_signal("STOP")["position"] == position
    subscription.await_images(0)


@each_archive
def test_requests_for_a_missing_recording_or_subscription_get_the_error_codes_of_the_real_archive(
    server, stream, kinds
):
    """07-41, 07-54, 07-103, 07-106"""
    _, client = server(kinds)
    subscription = client.start_recording(_CHANNEL, stream)
    with pytest.raises(PeerError) as refused:
        client.start_recording(_CHANNEL, stream)
    assert refused.value.code == ACTIVE_SUBSCRIPTION
    assert client.try_stop_recording(subscription)
    assert not client.try_stop_recording(subscription)
    with pytest.raises(PeerError) as refused:
        client.stop_recording(subscription)
    assert refused.value.code == UNKNOWN_SUBSCRIPTION
    with pytest.raises(PeerError) as refused:
        client.stop_position(77)
    assert refused.value.code == UNKNOWN_RECORDING
    assert client.list_recording(77) is None


@each_archive
def test_an_archive_can_start_again_immediately_after_a_clean_end(server, recorded, archive_client, drivers, kinds):
    """07-64, 07-72, 07-81"""
    archive, client = server(kinds)
    _, recording, position = recorded(client)
    before = client.list_recording(recording)
    archive.stop()
    assert archive.mark_file()[1] == -1
    archive.start()
    client = archive_client(drivers(kinds[1]), archive)
    assert client.list_recordings() == [before]
    assert client.stop_position(recording) == position
    _, second, _ = recorded(client)
    assert second == recording + 1
