"""Tests of the real `PersistentSubscription` of Java on our archive. They also run on the real archive, to check the
tests themselves. A number such as 11-13 is line 13 of document 11."""

import itertools

import pytest

import aeron
from interop.archive_peers import KIND, JavaReader
from interop.archives import Archive
from interop.conftest import _started
from interop.persistent import IPC, PUBLICATION, Source
from interop.test_archive_python import connected
from interop.waiting import eventually
from ports import free_port

_LENGTHS = (4000, 100, 8000, 1500)
_streams = itertools.count(7000)


@pytest.fixture(scope="module", params=["ours", "java"])
def server(request, drivers, tmp_path_factory):
    directory = tmp_path_factory.mktemp("archive")
    driver = drivers("ours")
    archive = _started(lambda: Archive(request.param, driver, directory / "files", directory / "errors", 10))
    archive.driver = driver
    yield archive
    archive.remove()


@pytest.fixture(scope="module")
def client(server):
    with aeron.connect(server.driver.directory) as client:
        yield client


@pytest.fixture
def source(client):
    with connected(client, {}) as archive:
        source = Source(archive, PUBLICATION, next(_streams), lengths=_LENGTHS)
        yield source
        source.dismiss()


@pytest.fixture
def java_reader(server, start_peer):
    """`java_reader(source, replay_channel, **settings)` opens a reader in the peer. It first closes the previous
    reader."""
    peer = start_peer(KIND, server.driver)
    readers = []

    def make(source, replay=IPC, *, recording=None, position=aeron.FROM_START):
        close()
        live, replay = (IPC, source.stream), (replay, source.stream + 10_000)
        recording = source.id if recording is None else recording
        readers.append(JavaReader(peer, server, recording, live, replay, position=position))
        return readers[-1]

    def close():
        while readers:
            readers.pop().close()

    make.peer = peer
    yield make
    close()


def _described(messages):
    return [[int.from_bytes(message[:8], "little"), len(message)] for message in messages]


@pytest.mark.parametrize(
    "replay",
    [
        IPC,
        "aeron:udp?endpoint=localhost:{port}",
        "aeron:udp?endpoint=localhost:0",
        "aeron:ipc?control-mode=response",
    ],
    ids=["session", "fixed-port", "any-port", "response"],
)
def test_the_real_client_replays_joins_the_live_stream_and_returns_to_the_recording(
    source, java_reader, client, replay
):
    """11-13, 11-14, 11-15, 11-22, 11-41, 11-51, 11-68"""
    source.send(40)
    reader = java_reader(source, replay.format(port=free_port()))
    reader.start_read(60, event="joined")
    for _ in range(20):
        source.send(1)
    found = java_reader.peer.answer()
    assert found["messages"] == _described(source.messages)
    assert (found["events"], found["live"]) == (["joined"], True)
    source.close()
    found = reader.read(0, event="left")
    assert found["events"] == ["left"]
    source.resume(client)
    reader.start_read(10, event="joined")
    eventually(lambda: len(source.messages) == 70 or source.offer() == 70)
    found = java_reader.peer.answer()
    assert found["messages"] == _described(source.messages[60:])
    assert found["live"]


def test_the_real_client_starts_at_a_position_of_the_recording_or_at_the_live_stream(source, java_reader):
    """11-19, 11-23, 11-24"""
    position = source.send(20)
    source.send(10)
    inside = java_reader(source, position=position)
    found = inside.read(10, event="joined")
    assert found["messages"] == _described(source.messages[20:])
    live = java_reader(source, position=aeron.FROM_LIVE)
    assert live.read(0, event="joined")["messages"] == []
    live.start_read(10)
    source.send(10)
    assert java_reader.peer.answer()["messages"] == _described(source.messages[30:])


def test_the_real_client_fails_with_the_reasons_of_the_reference(source, java_reader):
    """11-30, 11-32, 11-33"""
    end = source.send(5)

    def failure(**settings):
        found = java_reader(source, **settings).read(0, event="error")
        assert found["failed"]
        return found["events"]

    (beyond,) = failure(position=end + 32)
    assert beyond.startswith("error INVALID_START_POSITION ")
    assert "replay request failed: " in beyond
    (inside,) = failure(position=32)
    assert inside.startswith("error INVALID_START_POSITION ")
    (unaligned,) = failure(position=33)
    assert unaligned.startswith("error GENERIC ")
    (unknown,) = failure(recording=1 << 40)
    assert unknown == f"error RECORDING_NOT_FOUND ERROR - unknown recording id: {1 << 40}"
