"""Kills the archive, the driver or the process of a recorded publisher at random times. Each message is recorded once
and in order.

`make soak` sets the variable `SOAK`, which raises the number of kills to 200 of each kind.
"""

import json
import os
import random
import struct
import sys
import time
from contextlib import contextmanager

import pytest

import aeron
from interop.archive_tool import ArchiveTool
from interop.processes import Process
from interop.waiting import eventually
from ports import free_port

_KILLS = 200 if os.environ.get("SOAK") else 20
_TIME_LIMIT_S = 300 if _KILLS == 20 else 3600
# A driver detects a dead client one second after its last heartbeat. Clients write two heartbeats per second. An
# archive also writes heartbeats while it starts.
_DRIVER_SETTINGS = {
    "AERON_CLIENT_LIVENESS_TIMEOUT": "1s",
    "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "1500ms",
    "AERON_IMAGE_LIVENESS_TIMEOUT": "500ms",
    "AERON_PUBLICATION_LINGER_TIMEOUT": "300ms",
}
# After this time, a client or an archive detects that its driver is dead.
_DRIVER_TIMEOUT_MS = 1000
_TERM_LENGTH = 64 * 1024


class Place:
    """A driver and an archive that are killed and started again, in the same directories."""

    def __init__(self, start_driver, start_archive, kind):
        self._start_driver = start_driver
        self.kind = kind
        self.driver = start_driver("ours", _DRIVER_SETTINGS)
        settings = {"aeron.driver.timeout": _DRIVER_TIMEOUT_MS}
        self.archive = start_archive(kind, self.driver, settings)

    def kill(self, what):
        """Kills the archive, the driver or both. Returns a function that starts the ended processes again."""
        if what in ("archive", "both"):
            self.archive.kill()
        if what in ("driver", "both"):
            self.driver.kill()
        return lambda: self._start(what)

    def _start(self, what):
        if what == "driver":
            self.archive.process.wait(timeout_s=20)
        if what in ("driver", "both"):
            self.driver = self._start_driver("ours", _DRIVER_SETTINGS, directory=self.driver.directory)
        if self.kind == "java":
            # The real archive refuses a mark file with a heartbeat of the last ten seconds, so the file is deleted.
            (self.archive.directory / "archive-mark.dat").unlink()
            # A kill just after the creation of a segment leaves a file without bytes, which the tool cannot read.
            for segment in self.archive.directory.glob("*.rec"):
                if segment.stat().st_size == 0:
                    segment.unlink()
            # After a torn write the real archive refuses to start, so the tool truncates the recording.
            ArchiveTool(self.archive.directory).verify(answer="y")
        self.archive.start()

    @contextmanager
    def client(self):
        control, control_stream, response = self.archive.control("ipc")
        with (
            aeron.connect(self.driver.directory, error_handler=lambda _: None) as client,
            aeron.connect_archive(
                client, control_channel=control, control_stream_id=control_stream, response_channel=response
            ) as archive,
        ):
            yield archive

    def publisher(self, stream, *, driver=None, channel="aeron:ipc", **settings):
        """Returns a publisher on this driver, or on another driver. The other driver reaches the archive by UDP."""
        control, control_stream, response = self.archive.control("udp" if driver else "ipc")
        separator = "|" if "?" in channel else "?"
        return aeron.RecordedPublisher(
            f"{channel}{separator}term-length={_TERM_LENGTH}|mtu=1408",
            stream,
            driver=(driver or self.driver).directory,
            driver_timeout_ms=_DRIVER_TIMEOUT_MS,
            message_timeout=3,
            control_channel=control,
            control_stream_id=control_stream,
            response_channel=response,
            **settings,
        )


class Offered:
    """The messages that a publisher has accepted. A message begins with its number. Most have several fragments."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self.messages = []
        self.positions = []

    def next(self):
        length = self._random.choice([0, 100, 1376, 3000, self._random.randrange(8000)])
        return struct.pack("<Q", len(self.messages)) + self._random.randbytes(length)

    def add(self, message, position):
        self.messages.append(message)
        self.positions.append(position)

    def offer_for(self, publisher, duration_s):
        """Offers messages as fast as the publisher accepts them."""
        end = time.monotonic() + duration_s
        message = self.next()
        while time.monotonic() < end:
            if position := publisher.offer(message):
                self.add(message, position)
                message = self.next()


def _replayed(archive, recording_id):
    """Replays a whole recording. Returns the messages and their positions."""
    messages, positions = [], []
    with archive.replay(recording_id, position=0, length=aeron.REPLAY_ALL_AND_STOP) as replay:
        for batch in replay.batches(timeout=20):
            messages += batch.to_list()
            positions += list(batch.positions)
    return messages, positions


def _check(place, recording_id, offered):
    with place.client() as archive:
        eventually(lambda: archive.get_stop_position(recording_id) is not None)
        messages, positions = _replayed(archive, recording_id)
        numbers = [struct.unpack_from("<Q", message)[0] for message in messages]
        assert numbers == list(range(len(offered.messages)))
        assert messages == offered.messages
        assert positions == offered.positions


@pytest.mark.timeout(_TIME_LIMIT_S)
@pytest.mark.parametrize("what", ["archive", "driver", "both"])
@pytest.mark.parametrize("kind", ["ours", "java"])
def test_each_message_is_recorded_once_although_archive_and_driver_are_killed(
    start_driver, start_archive, stream, kind, what
):
    kills = _KILLS if kind == "ours" else _KILLS // 2
    generator = random.Random(f"{kind} {what}")
    place = Place(start_driver, start_archive, kind)
    errors = []
    offered = Offered(11)
    with place.publisher(stream, on_error=errors.append, buffer_length=1 << 20) as publisher:
        publisher.wait_connected(timeout=20)
        for number in range(kills):
            offered.offer_for(publisher, generator.uniform(0, 0.15))
            start = place.kill(what)
            offered.offer_for(publisher, generator.uniform(0, 0.1))
            start()
            reconnects = number + 1
            deadline = time.monotonic() + 30
            while publisher.reconnects < reconnects:
                offered.offer_for(publisher, 0.01)
                assert time.monotonic() < deadline, [str(error) for error in errors]
        offered.offer_for(publisher, 0.05)
        assert publisher.flush(timeout=30)
        assert publisher.unrecorded() == []
        assert publisher.reconnects == kills
        # After a kill of the driver, the archive still records all bytes that were sent, so nothing is offered again.
        assert (publisher.offered_again > 0) == (what != "driver")
        recording_id = publisher.recording_id
    _check(place, recording_id, offered)
    assert place.archive.stop() == (143 if kind == "java" else 15)
    ArchiveTool(place.archive.directory).verify()


@pytest.mark.timeout(_TIME_LIMIT_S)
@pytest.mark.parametrize("what", ["archive", "both"])
def test_each_message_is_recorded_once_by_an_archive_on_another_driver(start_driver, start_archive, stream, what):
    generator = random.Random(what)
    place = Place(start_driver, start_archive, "ours")
    driver = start_driver("ours", _DRIVER_SETTINGS)
    channel = f"aeron:udp?endpoint=localhost:{free_port()}"
    offered = Offered(12)
    errors = []
    with place.publisher(
        stream, driver=driver, channel=channel, source="REMOTE", on_error=errors.append, buffer_length=1 << 20
    ) as publisher:
        publisher.wait_connected(timeout=20)
        for number in range(_KILLS // 2):
            offered.offer_for(publisher, generator.uniform(0, 0.15))
            start = place.kill(what)
            offered.offer_for(publisher, generator.uniform(0, 0.1))
            start()
            deadline = time.monotonic() + 30
            while publisher.reconnects <= number:
                offered.offer_for(publisher, 0.01)
                assert time.monotonic() < deadline, [str(error) for error in errors]
        assert publisher.flush(timeout=30)
        recording_id = publisher.recording_id
    _check(place, recording_id, offered)


# Publishes consecutive numbers until it is killed. At its start, the program reads the last number from the recording.
_PROGRAM = """
import json, struct, sys, aeron
settings, stream = json.loads(sys.argv[1]), int(sys.argv[2])
driver, channel = settings.pop("driver"), settings.pop("channel")
with aeron.connect(driver) as client, aeron.connect_archive(client, **settings) as archive:
    with archive.recorded_publisher(channel, stream, alias="numbers") as publisher:
        publisher.wait_connected(timeout=20)
        number, start = 0, archive.get_start_position(publisher.recording_id)
        if publisher.position > start:
            recorded = publisher.position - start
            with archive.replay(publisher.recording_id, position=start, length=recorded) as replay:
                for batch in replay.batches(timeout=20):
                    number = max([number, *(struct.unpack_from("<Q", message)[0] + 1 for message in batch)])
        print("begins at", number, flush=True)
        while True:
            publisher.publish(struct.pack("<Q", number) + bytes(number * 997 % 5000))
            number += 1
"""


def _await_output(process, output):
    eventually(lambda: output.read_text() or process.exit_code is not None, timeout_s=30)
    assert process.exit_code is None, process.output()


@pytest.mark.timeout(_TIME_LIMIT_S)
def test_a_killed_publisher_continues_after_the_last_recorded_message_when_it_starts_again(
    start_driver, start_archive, stream, tmp_path
):
    generator = random.Random(5)
    place = Place(start_driver, start_archive, "ours")
    control, control_stream, response = place.archive.control("ipc")
    settings = {
        "driver": place.driver.directory,
        "channel": f"aeron:ipc?term-length={_TERM_LENGTH}",
        "control_channel": control,
        "control_stream_id": control_stream,
        "response_channel": response,
    }
    for number in range(_KILLS // 2):
        log, output = tmp_path / f"errors-{number}.txt", tmp_path / f"output-{number}.txt"
        with output.open("wb") as stdout:
            command = (sys.executable, "-c", _PROGRAM, json.dumps(settings), stream)
            process = Process(command, log=log, stdout=stdout)
        try:
            _await_output(process, output)
            time.sleep(generator.uniform(0, 0.1))
        finally:
            process.kill()
    with place.client() as archive:
        [recording] = archive.list_recordings(stream_id=stream)
        # The driver notices after its client liveness timeout that the last process is dead.
        eventually(lambda: archive.get_stop_position(recording.recording_id) is not None, timeout_s=40)
        messages, _ = _replayed(archive, recording.recording_id)
    numbers = [struct.unpack_from("<Q", message)[0] for message in messages]
    assert numbers == list(range(len(numbers)))
    assert [len(message) - 8 for message in messages] == [number * 997 % 5000 for number in numbers]
    assert len(numbers) > _KILLS
