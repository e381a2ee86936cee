"""Aeron's `RecordedBasicPublisher` and `ReplayedBasicSubscriber` on our archive, with our client as the peer."""

import re

import pytest

import aeron
from interop import toolchain
from interop.processes import LineProcess
from ports import free_port

_COUNT = 3
_START_TIMEOUT_S = 60
_TIMEOUT_S = 20


@pytest.fixture
def archive(drivers, start_archive):
    archive = start_archive("ours", drivers("ours"))
    archive.driver = drivers("ours")
    return archive


@pytest.fixture
def channel():
    return f"aeron:udp?endpoint=127.0.0.1:{free_port()}"


@pytest.fixture
def sample(archive, channel, stream, tmp_path):
    """`sample(name)` starts a sample and returns the process."""

    def run(name):
        control, control_stream, responses = archive.control("udp")
        properties = {
            "aeron.dir": archive.driver.directory,
            "aeron.archive.control.channel": control,
            "aeron.archive.control.stream.id": control_stream,
            "aeron.archive.control.response.channel": responses,
            "aeron.sample.channel": channel,
            "aeron.sample.streamId": stream,
            "aeron.sample.messages": _COUNT,
            "aeron.sample.lingerTimeout": "10ms",
        }
        command = toolchain.java_command(properties, f"io.aeron.samples.archive.{name}")
        return LineProcess(command, log=tmp_path / f"{name}.txt")

    return run


@pytest.fixture
def client(archive):
    control, control_stream, _ = archive.control("udp")
    with (
        aeron.connect(archive.driver.directory) as client,
        aeron.connect_archive(client, control_channel=control, control_stream_id=control_stream) as connected,
    ):
        yield connected


def _lines(process, last):
    """Returns the output lines of a process up to the line `last`."""
    lines = [process.read(_START_TIMEOUT_S)]
    while not re.search(last, lines[-1]):
        lines.append(process.read(_TIMEOUT_S))
    return lines


def _record(client, channel, stream):
    """Records messages as the sample does. Returns the recording and its end position."""
    with client.client.add_subscription(channel, stream):
        publication = client.add_recorded_publication(channel, stream)
        for number in range(_COUNT):
            position = publication.publish(f"Hello World! {number}".encode(), timeout=_TIMEOUT_S)
        recording = client.wait_recorded(publication, position, timeout=_TIMEOUT_S)
        client.stop_recording(publication)
        publication.close()
    return recording.recording_id, position


def _replayed(client, recording_id):
    with client.replay(recording_id, length=aeron.REPLAY_ALL_AND_STOP) as replay:
        return [message for batch in replay.batches(timeout=_TIMEOUT_S) for message in batch.to_list()]


def test_our_client_replays_the_recording_of_a_java_publisher(sample, client, channel, stream):
    """06-22, 06-23, 06-24 (9.13)"""
    with client.client.add_subscription(channel, stream):
        publisher = sample("RecordedBasicPublisher")
        try:
            lines = _lines(publisher, "Done sending")
        finally:
            publisher.kill()
    assert sum("yay!" in line for line in lines) == _COUNT, lines
    (recording,) = client.list_recordings(channel=channel, stream_id=stream)
    assert f"recordingId = {recording.recording_id}" in "\n".join(lines), lines
    replayed = [message.rstrip(b"\0").decode() for message in _replayed(client, recording.recording_id)]
    assert [text[: len("Hello World! 0")] for text in replayed] == [
        f"Hello World! {number}" for number in range(_COUNT)
    ]


def test_a_java_subscriber_replays_the_recording_of_our_client(sample, client, channel, stream):
    """06-22, 06-23, 06-24 (9.13): the stream has two recordings, and the sample replays the second one"""
    first, end = _record(client, channel, stream)
    second, second_end = _record(client, channel, stream)
    assert (second, second_end) == (first + 1, end)
    assert _replayed(client, first) == _replayed(client, second)
    subscriber = sample("ReplayedBasicSubscriber")
    try:
        lines = _lines(subscriber, f"Hello World! {_COUNT - 1}")
    finally:
        subscriber.kill()
    messages = [match for line in lines if (match := re.search(r"Message to stream (\d+) .*<<(.*)>>", line))]
    assert [(int(match[1]), match[2]) for match in messages] == [
        (stream, f"Hello World! {number}") for number in range(_COUNT)
    ]
