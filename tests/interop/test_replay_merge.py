"""Tests of `ReplayMerge`, a replay that continues with the live stream. Ours and the real one run on the real archive
and on ours."""

import time

import pytest

import aeron
from interop.archives import Archive
from interop.conftest import _started
from interop.kinds import ARCHIVES, each_archive_on_ours
from interop.merging import COUNT, Recorded
from interop.peers import transfer
from interop.waiting import eventually
from ports import free_port

_LENGTHS = (10, 3000, 0, 1400, 7)
_TIMEOUT_S = 30
_SHORT_S = 2
# This number of messages fits into the term window, so they can be published while the subscriber is not polled.
_BURST = 100


@pytest.fixture(scope="module", params=sorted({archive for archive, _ in ARCHIVES}))
def server(request, drivers, tmp_path_factory):
    directory = tmp_path_factory.mktemp("archive")
    driver = drivers("ours")
    archive = _started(lambda: Archive(request.param, driver, directory / "files", directory / "errors", 10))
    archive.driver = driver
    yield archive
    archive.remove()


@pytest.fixture
def archive(server):
    control, control_stream, _ = server.control("udp")
    with (
        aeron.connect(server.driver.directory) as client,
        aeron.connect_archive(client, control_channel=control, control_stream_id=control_stream) as archive,
    ):
        yield archive


@pytest.fixture
def recorded(archive, stream):
    recorded = Recorded(archive, stream)
    yield recorded
    recorded.publication.close()


def _nowhere():
    """Returns a destination that receives no datagrams."""
    return f"aeron:udp?endpoint=127.0.0.1:{free_port()}"


def _run(merge, is_done, got):
    """Polls until `is_done()` returns true, and appends the messages to `got`."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not is_done():
        assert time.monotonic() < deadline, f"{merge}: {len(got)} messages after {_TIMEOUT_S} s"
        messages = merge.poll_batch().to_list()
        got += messages
        if not messages:
            time.sleep(0.001)


def _fail(merge):
    """Polls until the merge raises an error. Returns the error and the received messages."""
    got = []
    with pytest.raises(aeron.AeronError) as failure:
        _run(merge, lambda: merge.is_merged, got)
    assert merge.has_failed
    assert not merge.is_merged
    return failure.value, got


@pytest.mark.parametrize("replay_port", ["any", "fixed"])
def test_a_replay_switches_to_the_live_stream_without_gap_or_duplicate(recorded, replay_port):
    """07-130"""
    port = 0 if replay_port == "any" else free_port()
    got = []
    with (
        recorded.subscribe() as subscription,
        recorded.merge(subscription, replay_destination=f"aeron:udp?endpoint=127.0.0.1:{port}") as merge,
    ):
        assert not merge.is_live_added
        _run(merge, lambda: len(got) > COUNT // 2, got)
        recorded.publish(_BURST)
        _run(merge, lambda: merge.is_merged, got)
        assert merge.is_live_added
        image = merge.image
        recorded.publish(_BURST)
        _run(merge, lambda: len(got) >= len(recorded.sent), got)
        assert got == recorded.sent
        # The image now has only the live stream as a source.
        eventually(lambda: image.active_transport_count == 1)
        merge.close()
        recorded.publish(1)
        eventually(lambda: subscription.poll_batch().to_list() == recorded.sent[-1:])
        assert [each.correlation_id for each in subscription.images] == [image.correlation_id]


def test_a_merge_starts_at_the_given_position(recorded):
    """07-130"""
    frames = []
    with recorded.subscribe() as subscription, recorded.merge(subscription) as whole:
        deadline = time.monotonic() + _TIMEOUT_S
        while len(frames) < 10:
            whole.poll(lambda payload, header: frames.append((header.position, payload)), 10 - len(frames))
            assert time.monotonic() < deadline
    got = []
    position = frames[-1][0]
    with recorded.subscribe() as subscription, recorded.merge(subscription, start_position=position) as merge:
        _run(merge, lambda: merge.is_merged and len(got) >= COUNT - 10, got)
    assert got == recorded.sent[10:]


def test_ipc_and_a_subscription_without_manual_destinations_are_refused(recorded):
    """07-130, 11-76"""
    ipc = {"replay_channel": "aeron:ipc", "replay_destination": "aeron:ipc", "live_destination": "aeron:ipc"}
    client = recorded.archive.client
    with recorded.subscribe() as subscription:
        for name, channel in ipc.items():
            with pytest.raises(aeron.InvalidArgumentError, match=r"^IPC merging is not supported$"):
                recorded.merge(subscription, **{name: channel})
        with pytest.raises(aeron.InvalidArgumentError, match="has no endpoint"):
            recorded.merge(subscription, replay_destination="aeron:udp?interface=127.0.0.1")
    with (
        client.add_subscription("aeron:ipc", recorded.stream_id) as subscription,
        pytest.raises(aeron.InvalidArgumentError, match=r"^IPC merging is not supported$"),
    ):
        recorded.merge(subscription)
    channel = _nowhere()
    with client.add_subscription(channel, recorded.stream_id) as subscription:
        with pytest.raises(aeron.InvalidArgumentError) as refusal:
            recorded.merge(subscription)
        assert str(refusal.value) == f"Subscription URI must have 'control-mode=manual' uri={channel}"


def test_a_merge_that_is_not_polled_fails_for_lack_of_progress(recorded):
    """07-130, 11-76, 11-79"""
    with recorded.subscribe() as subscription, recorded.merge(subscription, progress_timeout=_SHORT_S) as merge:
        text = r"^ReplayMerge no progress: state=CATCHUP, activeTransportCount=1$"
        with pytest.raises(aeron.ArchiveTimeoutError, match=text):
            while True:
                merge.do_work()
                time.sleep(0.001)
        assert merge.has_failed
        assert not merge.is_live_added
        assert merge.do_work() == 0
        # Messages that arrived before the failure can still be read.
        got = []
        _run(merge, lambda: len(got) >= 10, got)
        assert got == recorded.sent[: len(got)]


def test_a_merge_without_a_live_stream_fails_for_lack_of_progress(recorded):
    """07-130: the real client waits without a limit."""
    with (
        recorded.subscribe() as subscription,
        recorded.merge(subscription, live_destination=_nowhere(), progress_timeout=_SHORT_S) as merge,
    ):
        error, got = _fail(merge)
        assert isinstance(error, aeron.ArchiveTimeoutError)
        assert "activeTransportCount=1" in str(error)
        assert merge.is_live_added
        assert got == recorded.sent


def test_a_replay_and_a_live_stream_with_different_session_ids_do_not_merge(recorded):
    """11-77"""
    client = recorded.archive.client
    with (
        client.add_subscription("aeron:udp?control-mode=manual", recorded.stream_id) as subscription,
        recorded.merge(subscription, replay_channel=_nowhere(), progress_timeout=_SHORT_S) as merge,
    ):
        error, got = _fail(merge)
        assert isinstance(error, aeron.ArchiveTimeoutError)
        assert got == recorded.sent
        assert merge.image.session_id != recorded.publication.session_id
        # The live stream has its own image, and the merge does not poll that image.
        eventually(lambda: subscription.image_count == 2)
        assert merge.poll_batch().to_list() == []


def test_an_error_response_without_a_waiting_request_fails_the_merge(recorded):
    """11-78"""
    with (
        recorded.subscribe() as subscription,
        recorded.merge(subscription, live_destination=_nowhere(), progress_timeout=_TIMEOUT_S) as merge,
    ):
        _run(merge, lambda: merge.is_live_added, [])
        replay = recorded.archive.async_start_replay(99_999, _nowhere(), recorded.stream_id)
        correlation_id = replay.correlation_id
        assert replay.cancel()
        error, _ = _fail(merge)
        assert isinstance(error, aeron.UnknownRecordingError)
        assert error.correlation_id == correlation_id
        assert str(error).startswith(f"archive response for correlationId={correlation_id}, error: ")


def test_an_unknown_recording_fails_the_merge(recorded):
    """11-76"""
    with recorded.subscribe() as subscription, recorded.merge(subscription, recording_id=99_999) as merge:
        error, got = _fail(merge)
        assert isinstance(error, aeron.UnknownRecordingError)
        assert got == []


def test_a_merge_delivers_single_fragments_and_nothing_before_it_has_an_image(archive, stream):
    """11-79"""
    recorded = Recorded(archive, stream)
    long = bytes(range(256)) * 16
    recorded.publication.publish(long, timeout=_TIMEOUT_S)
    fragments = []
    with recorded.subscribe() as subscription, recorded.merge(subscription) as merge:
        assert merge.image is None
        assert merge.poll(print) == 0
        with pytest.raises(aeron.ArgumentTypeError):
            merge.poll(None)
        deadline = time.monotonic() + _TIMEOUT_S
        while sum(map(len, fragments)) < COUNT * 800 + len(long):
            merge.poll(lambda payload, header: fragments.append(payload), 100)
            assert time.monotonic() < deadline
        assert fragments[:COUNT] == recorded.sent
        assert len(fragments[COUNT:]) > 1
        assert b"".join(fragments[COUNT:]) == long
    recorded.publication.close()


def test_closing_a_merge_before_its_end_stops_the_replay(recorded):
    """07-130"""
    counters = recorded.archive.client.counters_reader

    def replays():
        return [each for each in counters if f"{recorded.stream_id} " in each.label and "linger=0" in each.label]

    with recorded.subscribe() as subscription, recorded.merge(subscription) as merge:
        _run(merge, lambda: merge.image is not None, [])
        assert replays()
        merge.close()
        assert merge.is_closed
        eventually(lambda: not replays())
        assert merge.do_work() == 0
        assert not subscription.is_closed
    assert recorded.archive.list_recording(recorded.recording_id)


def test_the_end_of_the_control_session_fails_the_merge(recorded):
    """11-76"""
    with recorded.subscribe() as subscription:
        merge = recorded.merge(subscription, live_destination=_nowhere(), progress_timeout=_TIMEOUT_S)
        _run(merge, lambda: merge.is_live_added, [])
        recorded.archive.close()
        error, _ = _fail(merge)
        assert isinstance(error, aeron.ArchiveDisconnectedError)
        assert str(error) == "archive is not connected"
        merge.close()


@each_archive_on_ours
def test_the_real_client_merges_a_replay_with_the_live_stream(drivers, start_archive, archive_client, stream, kinds):
    """07-130, 07-129"""
    archive_kind, driver_kind = kinds
    driver = drivers(driver_kind)
    archive = start_archive(archive_kind, driver)
    publisher, merger = archive_client(driver, archive), archive_client(driver, archive, "udp")
    control = free_port()
    channel = f"aeron:udp?control=127.0.0.1:{control}|control-mode=dynamic|ssc=true|term-length=64k"
    publication = publisher.add_recorded_publication(channel, stream, exclusive=True)
    recording = publisher.await_signal("START")["recording"]
    publication.await_connected()
    publication.start_publish(COUNT, _LENGTHS)
    assert publication.peer.answer()["sent"] == COUNT
    publisher.await_recorded(recording, publication.state()["position"])
    session = f"session-id={publication.session}"
    subscription = merger.peer.add_subscription(f"aeron:udp?control-mode=manual|{session}", stream)
    merger.start_merge(
        subscription,
        recording,
        replay=f"aeron:udp?{session}",
        replay_destination="aeron:udp?endpoint=127.0.0.1:0",
        live_destination=f"aeron:udp?endpoint=127.0.0.1:{free_port()}|control=127.0.0.1:{control}",
        count=2 * COUNT,
        lengths=_LENGTHS,
    )
    publication.start_publish(COUNT, _LENGTHS)
    assert publication.peer.answer()["sent"] == COUNT
    merged = merger.peer.answer()
    assert merged["faults"] == []
    assert (merged["merged"], merged["received"]) == (True, 2 * COUNT)
    transfer([publication], [subscription], COUNT, _LENGTHS)
