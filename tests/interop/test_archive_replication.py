"""Tests of replication: the real client asks one archive to copy a recording from another archive.

Each of the two archives is the real one or ours.
"""

import time

import pytest

from interop.archive_peers import ACTIVE_RECORDING, GENERIC, REPLICATION_CONNECTION_FAILURE, UNKNOWN_RECORDING
from interop.peers import PeerError
from interop.users import security
from ports import free_port

_TERM_LENGTH = 64 * 1024
_CHANNEL = f"aeron:ipc?term-length={_TERM_LENGTH}"
_LENGTHS = (10, 3000, 0, 1400, 7)
_COUNT = 400
_TIMEOUT_S = 20

# (source, destination). Two real archives check the test itself.
_WAYS = [("java", "ours"), ("ours", "java"), ("ours", "ours"), ("java", "java")]
each_way = pytest.mark.parametrize("ways", _WAYS, ids=["-to-".join(way) for way in _WAYS])


class Pair:
    """A source archive and a destination archive on one driver. Each of them has a client."""

    def __init__(self, source, destination, stream):
        (self.source_archive, self.source), (self.archive, self.client) = source, destination
        self.stream = stream

    def record(self, count=_COUNT, *, is_stopped=True):
        """Records messages at the source. Returns publication, recording id and position."""
        subscription = self.source.start_recording(_CHANNEL, self.stream)
        publication = self.source.peer.add_publication(_CHANNEL, self.stream, exclusive=True)
        recording = self.source.await_signal("START")["recording"]
        self.publish(publication, recording, count)
        if is_stopped:
            self.source.stop_recording(subscription)
            self.source.await_signal("STOP", recording=recording)
        return publication, recording, publication.state()["position"]

    def publish(self, publication, recording, count):
        publication.await_connected()
        publication.start_publish(count, _LENGTHS)
        assert publication.peer.answer()["sent"] == count
        self.source.await_recorded(recording, publication.state()["position"])

    def replicate(self, recording, **params):
        return self.client.replicate(recording, self.source_archive, **params)

    def signals(self, last="STOP"):
        """Returns the signals of a replication up to the signal `last`."""
        seen = []
        deadline = time.monotonic() + _TIMEOUT_S
        while not seen or seen[-1]["signal"] != last:
            assert time.monotonic() < deadline, f"no {last} within {_TIMEOUT_S} s, only {seen}: {self.client.errors()}"
            seen += self.client.signals()
            time.sleep(0.02)
        return seen

    def replayed(self, recording, count):
        """Replays a recording of the destination. Returns the number of received messages, which must be
        undamaged."""
        subscription = self.client.replay(recording, "aeron:ipc", self.stream + 10_000)
        received = subscription.receive(count, _LENGTHS)
        assert received["faults"] == []
        return received["received"]


@pytest.fixture
def pair(drivers, start_archive, archive_client, stream):
    """`pair(ways, secured)` starts two archives of these kinds on one driver. The source may have a `Security`."""

    def start(ways, secured=None):
        driver = drivers("ours")
        source, destination = (
            start_archive(kind, driver, settings)
            for kind, settings in zip(ways, (secured and secured.settings, None), strict=True)
        )
        credentials = {"credentials": secured.accepted} if secured else {}
        return Pair(
            (source, archive_client(driver, source, **credentials)),
            (destination, archive_client(driver, destination)),
            stream,
        )

    return start


@each_way
def test_a_recording_is_copied_with_all_its_properties(pair, ways):
    """07-113"""
    both = pair(ways)
    _, recording, position = both.record()
    replication = both.replicate(recording)
    signals = both.signals()
    assert [signal["signal"] for signal in signals] == ["REPLICATE", "EXTEND", "SYNC", "REPLICATE_END", "STOP"]
    assert {signal["correlation"] for signal in signals} == {replication}
    copy = both.client.list_recording(signals[0]["recording"])
    original = both.source.list_recording(recording)
    for name in ("start", "stop", "initial_term", "term_length", "mtu", "session", "stream", "stripped", "source"):
        assert copy[name] == original[name], name
    assert copy["stop"] == position
    assert both.replayed(copy["recording"], _COUNT) == _COUNT


@each_way
def test_a_second_replication_completes_a_partial_copy_and_a_third_one_only_signals_sync(pair, ways):
    """07-114, 07-115"""
    both = pair(ways)
    _, recording, position = both.record()
    middle = position // 2 // 32 * 32
    both.replicate(recording, position=middle)
    signals = both.signals()
    assert "SYNC" not in {signal["signal"] for signal in signals}
    copy = signals[0]["recording"]
    assert middle <= signals[-1]["position"] < middle + 2 * 1408
    both.replicate(recording, destination=copy)
    completed = [signal["signal"] for signal in both.signals()]
    assert completed == ["EXTEND", "SYNC", "REPLICATE_END", "STOP"]
    assert both.client.stop_position(copy) == position
    both.replicate(recording, destination=copy)
    assert [signal["signal"] for signal in both.signals("REPLICATE_END")] == ["SYNC", "REPLICATE_END"]
    assert both.replayed(copy, _COUNT) == _COUNT


@each_way
def test_a_refused_replication_has_the_error_code_of_the_real_archive(pair, ways):
    """07-116, 07-117, 07-120"""
    both = pair(ways)
    _, recording, _ = both.record()
    with pytest.raises(PeerError) as refused:
        both.replicate(recording, destination=77)
    assert refused.value.code == UNKNOWN_RECORDING
    both.replicate(recording + 77)
    assert [signal["signal"] for signal in both.signals("REPLICATE_END")] == ["REPLICATE_END"]
    assert any("unknown src recording id" in error["text"] for error in both.client.errors())
    active = both.client.start_recording(_CHANNEL, both.stream + 1)
    both.client.peer.add_publication(_CHANNEL, both.stream + 1, exclusive=True)
    started = both.client.await_signal("START")
    with pytest.raises(PeerError) as refused:
        both.replicate(recording, destination=started["recording"])
    assert refused.value.code == ACTIVE_RECORDING
    both.client.stop_recording(active)
    assert not both.client.stop_replication(12_345)


@each_way
def test_a_copy_merges_with_the_live_stream_and_continues_to_record_it(pair, ways):
    """07-118"""
    both = pair(ways)
    control = free_port()
    channel = f"aeron:udp?control=127.0.0.1:{control}|control-mode=dynamic|ssc=true|term-length=64k"
    both.source.start_recording(channel, both.stream)
    publication = both.source.peer.add_publication(channel, both.stream, exclusive=True)
    recording = both.source.await_signal("START")["recording"]
    both.publish(publication, recording, _COUNT)
    live = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|control=127.0.0.1:{control}"
    replication = both.replicate(recording, live=live)
    signals = both.signals("REPLICATE_END")
    assert [signal["signal"] for signal in signals] == ["REPLICATE", "EXTEND", "MERGE", "REPLICATE_END"]
    assert {signal["correlation"] for signal in signals} == {replication}
    copy = signals[0]["recording"]
    both.publish(publication, recording, _COUNT)
    position = publication.state()["position"]
    both.client.await_recorded(copy, position)
    publication.close()
    assert both.client.await_signal("STOP")["position"] == position
    assert both.replayed(copy, 2 * _COUNT) == 2 * _COUNT


@each_way
def test_a_recording_is_copied_over_response_channels_of_the_source(pair, ways):
    """07-101, 07-113: both the responses and the replay of the source"""
    both = pair(ways)
    _, recording, _ = both.record()
    _copied(both, recording, replication=_response_channel(), source_response=_response_channel())


# The real archive cannot copy a recording in these ways: its request for the replay repeats the session id of its
# control session. Over IPC, it waits for the endpoint of the subscription.
@pytest.mark.parametrize("source", ["java", "ours"])
@pytest.mark.parametrize("media", ["udp", "ipc"])
def test_our_archive_receives_a_replay_over_a_response_channel_of_each_kind(pair, source, media):
    """07-101"""
    both = pair((source, "ours"))
    _, recording, _ = both.record()
    if media == "udp":
        _copied(both, recording, replication=_response_channel())
    else:
        channel = "aeron:ipc?control-mode=response"
        _copied(both, recording, way="ipc", replication=channel, source_response=channel)


@each_way
def test_a_replication_over_a_response_channel_with_a_live_destination_or_a_tag_is_refused(pair, ways):
    both = pair(ways)
    _, recording, _ = both.record()
    live = {"live": f"aeron:udp?endpoint=127.0.0.1:{free_port()}"}
    for params, kind in [(live, "live destinations"), ({"channel_tag": 7}, "tagged replication")]:
        with pytest.raises(PeerError, match=f"response channels can't be used with {kind}") as refused:
            both.replicate(recording, replication=_response_channel(), **params)
        assert refused.value.code == GENERIC
    assert both.client.list_recordings() == []


def _response_channel():
    return f"aeron:udp?control-mode=response|control=localhost:{free_port()}"


def _copied(both, recording, **params):
    """Replicates a recording, and checks the copy."""
    both.replicate(recording, **params)
    signals = both.signals()
    assert [signal["signal"] for signal in signals] == ["REPLICATE", "EXTEND", "SYNC", "REPLICATE_END", "STOP"]
    assert both.client.errors() == []
    assert both.replayed(signals[0]["recording"], _COUNT) == _COUNT


@each_way
def test_a_stopped_replication_keeps_the_copied_part(pair, ways):
    """07-120"""
    both = pair(ways)
    publication, recording, position = both.record(is_stopped=False)
    replication = both.replicate(recording)
    copy = both.signals("EXTEND")[0]["recording"]
    both.client.await_recorded(copy, position)
    assert both.client.stop_replication(replication)
    assert [signal["signal"] for signal in both.signals()] == ["REPLICATE_END", "STOP"]
    both.publish(publication, recording, _COUNT)
    assert both.client.stop_position(copy) == position
    assert not both.client.stop_replication(replication)


@each_way
def test_a_replication_ends_without_sync_if_the_recording_of_the_copy_is_stopped(pair, ways):
    """07-120"""
    both = pair(ways)
    publication, recording, position = both.record(is_stopped=False)
    replication = both.replicate(recording)
    copy = both.signals("EXTEND")[0]["recording"]
    both.client.await_recorded(copy, position)
    assert both.client.try_stop_recording_by_identity(copy)
    both.publish(publication, recording, _COUNT)
    ends = {"STOP", "REPLICATE_END"}
    signals = both.signals("REPLICATE_END")
    assert {signal["signal"] for signal in signals} <= ends
    assert both.client.stop_position(copy) == position
    assert not both.client.stop_replication(replication)


@each_way
@pytest.mark.parametrize("has_both", [True, False], ids=["both-tags", "channel-tag"])
def test_a_tagged_replication_uses_a_channel_with_these_tags_and_manual_destinations(pair, ways, has_both):
    """07-119"""
    both = pair(ways)
    _, recording, position = both.record(is_stopped=False)
    channel_tag, subscription_tag = both.stream + 100_000, both.stream + 200_000
    tags = {"channel_tag": channel_tag, **({"subscription_tag": subscription_tag} if has_both else {})}
    replication = both.replicate(recording, **tags)
    copy = both.signals("EXTEND")[0]["recording"]
    both.client.await_recorded(copy, position)
    # The default of a tag is the replication id.
    expected = f"tags={channel_tag},{subscription_tag if has_both else replication}"
    channels = [counter["label"] for counter in both.client.peer.counters() if expected in counter["label"]]
    assert channels
    assert all("control-mode=manual" in channel for channel in channels)
    assert not any("endpoint=" in channel for channel in channels)
    assert both.client.stop_replication(replication)
    assert [signal["signal"] for signal in both.signals()] == ["REPLICATE_END", "STOP"]
    assert both.replayed(copy, _COUNT) == _COUNT


@each_way
def test_a_replication_sends_its_credentials_to_the_source(pair, ways, tmp_path):
    """07-121"""
    secured = security(ways[0], tmp_path)
    both = pair(ways, secured)
    _, recording, position = both.record()
    both.replicate(recording, source_credentials=secured.accepted.hex())
    signals = both.signals()
    assert signals[-1]["position"] == position
    assert both.replayed(signals[0]["recording"], _COUNT) == _COUNT


@each_way
@pytest.mark.parametrize("kind", ["challenged", "wrong", "missing"])
def test_a_replication_fails_if_the_source_does_not_accept_the_credentials(pair, ways, tmp_path, kind):
    """07-121"""
    secured = security(ways[0], tmp_path)
    both = pair(ways, secured)
    _, recording, _ = both.record()
    credentials = {"challenged": secured.challenged, "wrong": b"nobody:0", "missing": b""}[kind]
    both.replicate(recording, source_credentials=credentials.hex())
    assert [signal["signal"] for signal in both.signals("REPLICATE_END")] == ["REPLICATE_END"]
    errors = both.client.errors()
    assert [error["code"] for error in errors] == [REPLICATION_CONNECTION_FAILURE]
    reason = "does not support challenge/response" if kind == "challenged" else "authentication rejected"
    assert reason in errors[0]["text"]
    assert both.client.list_recordings() == []
