"""Sends control requests of random bytes. The archive must continue, and must serve the real client at the same
time."""

import random
import struct
import time

import pytest

import aeron
from interop.archive_peers import UNKNOWN_RECORDING
from interop.peers import PeerError

_SCHEMA = 101
_TEMPLATES = [*range(2, 20), *range(50, 69), *range(104, 108), 1, 22, 24, 0, 999]
_SESSION_TEMPLATES = [*range(4, 20), *range(50, 58), *range(61, 69), 104, 105, 107]
_RECORDED_STREAM = 77
_COUNT = 4000


def _request(generator):
    """Returns a message with the header of a request. Half of the messages have a plausible start of the body."""
    version = generator.choice([13, 13, 13, 0, 6, 99])
    schema = generator.choice([_SCHEMA] * 9 + [generator.randrange(65536)])
    body = generator.randbytes(generator.randrange(120))
    block = generator.choice([len(body), 16, 24, 32, 56, generator.randrange(65536)])
    if generator.random() < 0.5:
        ids = struct.pack("<qqq", generator.randrange(-2, 2**31), generator.getrandbits(40), generator.randrange(-3, 3))
        text = b"aeron:ipc" if generator.random() < 0.5 else generator.randbytes(9)
        body = ids + generator.randbytes(generator.randrange(60)) + struct.pack("<I", len(text)) + text
    return struct.pack("<HHHH", block, generator.choice(_TEMPLATES), schema, version) + body


@pytest.mark.parametrize("seed", range(3))
def test_an_archive_serves_the_real_client_while_it_receives_requests_of_random_bytes(
    drivers, start_archive, archive_client, seed
):
    """07-8, 07-9, 07-10, 07-11"""
    driver = drivers("ours")
    archive = start_archive("ours", driver)
    client = archive_client(driver, archive)
    channel, stream, _ = archive.control("ipc")
    generator = random.Random(seed)
    with aeron.connect(driver.directory) as hostile:
        publication = hostile.add_exclusive_publication(channel, stream)
        publication.wait_connected(timeout=10)
        for _ in range(_COUNT):
            publication.publish(_request(generator), timeout=10)
            if generator.random() < 0.01:
                with pytest.raises(PeerError) as refused:
                    client.stop_position(77)
                assert refused.value.code == UNKNOWN_RECORDING
    assert client.state() == "CONNECTED"
    assert client.list_recordings() == []
    assert archive.stop() == 15


@pytest.mark.parametrize("seed", range(4))
def test_an_archive_survives_random_requests_of_a_connected_session(drivers, start_archive, archive_client, seed):
    """07-10, 07-11, 07-57, 07-84, 07-103, 07-108"""
    driver = drivers("ours")
    archive = start_archive("ours", driver)
    channel, stream, _ = archive.control("ipc")
    generator = random.Random(seed)
    with aeron.connect(driver.directory) as hostile:
        responses = hostile.add_subscription(channel, stream + 1)
        publication = hostile.add_exclusive_publication(channel, stream)
        recorded = hostile.add_exclusive_publication("aeron:ipc?term-length=64k", _RECORDED_STREAM)
        publication.wait_connected(timeout=10)
        session = _connect(publication, responses, channel, stream + 1)
        _record(publication, session, archive)
        for _ in range(_COUNT // 2):
            publication.publish(_session_request(generator, session), timeout=10)
            recorded.offer(generator.randbytes(1000))
            responses.poll(lambda *_: None, 100)
    client = archive_client(driver, archive)
    for recording in client.list_recordings():
        assert recording["stop"] == -1 or recording["stop"] >= recording["start"]
    assert archive.stop() == 15
    archive.start()
    assert isinstance(archive_client(driver, archive).list_recordings(), list)


def test_a_session_accepts_requests_only_from_the_publication_that_opened_it(drivers, start_archive):
    driver = drivers("ours")
    archive = start_archive("ours", driver)
    channel, stream, _ = archive.control("ipc")
    with aeron.connect(driver.directory) as client:
        responses = client.add_subscription(channel, stream + 1)
        owner = client.add_exclusive_publication(channel, stream)
        stranger = client.add_exclusive_publication(channel, stream)
        owner.wait_connected(timeout=10)
        stranger.wait_connected(timeout=10)
        session = _connect(owner, responses, channel, stream + 1)
        seen = []
        deadline = time.monotonic() + 10
        while 502 not in seen:
            assert time.monotonic() < deadline, "no response to the owner of the session"
            stranger.publish(_archive_id_request(session, 501), timeout=10)
            owner.publish(_archive_id_request(session, 502), timeout=10)
            responses.poll(lambda payload, _: seen.append(struct.unpack_from("<q", payload, 16)[0]), 10)
        assert 501 not in seen


def _archive_id_request(session, correlation):
    return struct.pack("<HHHHqq", 16, 68, _SCHEMA, 13, session, correlation)


def _connect(publication, responses, channel, response_stream):
    """Opens a control session over these streams. Returns the id of the session."""
    text = channel.encode()
    block = struct.pack("<qii", 1, response_stream, 0x00010C00)
    data = struct.pack("<I", len(text)) + text + struct.pack("<I", 0) + struct.pack("<I", 0)
    publication.publish(struct.pack("<HHHH", 16, 58, _SCHEMA, 13) + block + data, timeout=10)
    sessions = []

    def take(payload, _header):
        sessions.append(struct.unpack_from("<q", payload, 8)[0])

    deadline = time.monotonic() + 10
    while not sessions:
        assert time.monotonic() < deadline, "no response to a connect request"
        responses.poll(take, 10)
    return sessions[0]


def _record(publication, session, archive):
    """Starts a recording, and waits until the catalog contains it."""
    fields = struct.pack("<qqii", session, 2, _RECORDED_STREAM, 0)
    text = b"aeron:ipc"
    request = struct.pack("<HHHH", len(fields), 4, _SCHEMA, 13) + fields + struct.pack("<I", len(text)) + text
    publication.publish(request, timeout=10)
    deadline = time.monotonic() + 10
    while struct.unpack_from("<q", (archive.directory / "archive.catalog").read_bytes(), 8)[0] == 0:
        assert time.monotonic() < deadline, "no recording was added to the catalog"
        time.sleep(0.01)


def _session_request(generator, session):
    """Returns a random request of a session. The fields have few different values, so that many requests are almost
    valid."""
    template = generator.choice(_SESSION_TEMPLATES)
    ids = struct.pack("<qq", session, generator.getrandbits(30))
    values = [0, 1, _RECORDED_STREAM] * 4 + [-2, -1, 2, 32, 64, 1024, 65536, 2**31 - 1]
    length = generator.choice([8, 12, 16, 20, 24, 28, 36, 40, 52])
    fields = struct.pack("<13i", *(generator.choice(values) for _ in range(13)))[:length]
    channels = [
        b"aeron:ipc",
        b"aeron:ipc",
        b"aeron:ipc?alias=x",
        b"aeron:udp?endpoint=localhost:0",
        b"",
        b"aeron:ipc?a",
    ]
    channel = generator.choice(channels)
    return (
        struct.pack("<HHHH", 16 + len(fields), template, _SCHEMA, 13)
        + ids
        + fields
        + (struct.pack("<I", len(channel)) + channel) * generator.choice([0, 1, 2, 5])
    )
