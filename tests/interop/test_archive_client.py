"""Our Rust client of an archive before the real archive."""

import time
from types import SimpleNamespace

import pytest

from interop.archive_client import ANY_PORT, IPC, SEGMENT_LENGTH, ArchiveClient, RealArchive
from interop.conftest import _started
from interop.peers import PeerError
from interop.waiting import eventually
from ports import free_port

_CHANNEL = "aeron:ipc?term-length=64k"
_LENGTH = 1000
_FRAME = 1056
_TERM_LENGTH = 64 * 1024
_COUNT = 400

_UNKNOWN_SUBSCRIPTION, _UNKNOWN_RECORDING, _UNKNOWN_REPLICATION = 4, 5, 12
_AUTHENTICATION_REJECTED = 10


@pytest.fixture(scope="module")
def archives(drivers, tmp_path_factory):
    """`archives(name, driver, **settings)`: a real archive that the tests of this module share."""
    running = {}

    def get(name, driver="java", settings=None):
        if name not in running:
            directory = tmp_path_factory.mktemp(f"archive-{name}")
            number = len(running)
            running[name] = _started(
                lambda: RealArchive(
                    drivers(driver),
                    directory / "files",
                    directory / "errors.txt",
                    id=100 + number,
                    stream=10 + number,
                    settings=settings,
                )
            )
        return running[name]

    yield get
    for archive in running.values():
        archive.kill()


@pytest.fixture
def archive(archives):
    return archives("first")


@pytest.fixture
def start_client(tmp_path):
    """`start_client()`: a client process of its own, not connected."""
    started = []

    def start():
        client = _started(lambda: ArchiveClient(tmp_path / f"client-{len(started)}.txt"))
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
    """A recording of so many messages: its id, positions, session and subscription."""
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
    """Replays to the end of the replay and checks that it was `count` messages from number `first` on."""
    replay = client.call("replay", recording=recording, channel=channel, stream=stream, **params)
    received = client.call("receive", id=replay["registration"], lengths=[_LENGTH], first=first, to_end=True)
    client.call("close", id=replay["registration"])
    assert received["faults"] == []
    assert received["received"] == count
    return received


def _await_signal(client, kind, timeout_s=10, **values):
    """The next signal of a kind with these values."""
    deadline = time.monotonic() + timeout_s
    while True:
        for signal in client.call("signals")["signals"]:
            if signal["signal"] == kind and values.items() <= signal.items():
                return signal
        assert time.monotonic() < deadline, f"no {kind} with {values} within {timeout_s} s"
        time.sleep(0.02)


def _refusal(client, operation, **values):
    """Code and text of the error with which the archive refuses."""
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
    assert found in client.ask("list_recordings")
    assert _replayed(client, recording.id, stream)["position"] == recording.position
