"""Cells with recorded and replayed streams. They measure rates, CPU time per KiB of log, and latencies."""

import json
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import aeron
from bench import environments as env
from bench.archive.server import new_directory, running_archive
from bench.hosts import free_port
from bench.measure import SPARE_TIME_S, VoidError, cpu_seconds, expect_ready, running_driver, started, words_of

# All channels have terms of 16 MiB. The receiver window fits into the socket buffers.
DRIVER = {
    "AERON_THREADING_MODE": "SHARED",
    "AERON_IPC_TERM_BUFFER_LENGTH": "16m",
    "AERON_TERM_BUFFER_LENGTH": "16m",
    "AERON_SOCKET_SO_SNDBUF": "4m",
    "AERON_SOCKET_SO_RCVBUF": "4m",
    "AERON_RCV_INITIAL_WINDOW_LENGTH": "2m",
}
DISK = tempfile.gettempdir()
STREAM = 1001
IPC = "aeron:ipc"
_RECORDING_POSITION_TYPE = 100
_SAMPLE_S = 0.001
WARM_UP_S = 0.4
# Longest recording on a disk, in seconds. Such a recording has fewer bytes than a tenth of the free memory. If more
# bytes wait to be written, the kernel begins by default to write them to the disk.
_DISK_S = 0.8


@dataclass
class Rig:
    """A driver, an archive on it, and our clients of both."""

    driver: str
    archive: object
    client: object
    control: object

    def cpu(self):
        return cpu_seconds(self.archive.pid)


@contextmanager
def rig(kind, parent="/dev/shm", **settings):
    """Runs our driver and an archive of the given kind in a directory below `parent`, and connects our clients."""
    with ExitStack() as stack:
        driver, _ = stack.enter_context(running_driver("ours", DRIVER))
        directory = stack.enter_context(new_directory(parent))
        archive = stack.enter_context(running_archive(kind, driver, directory, **settings))
        client = stack.enter_context(aeron.connect(driver))
        control = stack.enter_context(aeron.connect_archive(client, message_timeout=SPARE_TIME_S))
        yield Rig(driver, archive, client, control)


@dataclass
class Transfer:
    """Result of recording or replaying a stream: messages per second, bytes of log, and CPU seconds of the archive."""

    rate: float
    bytes: int
    cpu: float

    @property
    def cost(self):
        """CPU time of the archive in nanoseconds per KiB of log."""
        return self.cpu * 1e9 / (self.bytes / 1024)


@dataclass
class RecordAndReplay:
    """Records a stream at full rate, then replays it. The receiver of the replay checks the messages.

    Before the measurement, a shorter stream is recorded and replayed, so that the Java archive compiles its code.
    """

    name: str
    kind: str
    length: int
    channel: str = IPC
    parent: str = "/dev/shm"
    replays: bool = True
    unit: str = "messages/s"

    def measure(self, seconds):
        if self.parent != "/dev/shm":
            seconds = min(seconds, _DISK_S)
        with rig(self.kind, self.parent) as stand:
            self._round(stand, min(WARM_UP_S, seconds))
            recorded, replayed, first_s = self._round(stand, seconds)
        figures = {"rate": recorded.transfer.rate, "record cost": recorded.transfer.cost}
        if self.replays:
            figures |= {"replayed": replayed.rate, "replay cost": replayed.cost, "first message": first_s * 1e3}
        return figures

    def _round(self, stand, seconds):
        recorded = record(stand, self.channel.format(port=free_port()), self.length, seconds)
        replayed, first_s = self._replay(stand, recorded)
        return recorded, replayed, first_s

    def _replay(self, stand, recorded):
        words = words_of({"channel": IPC, "length": self.length, "idle": "yield"})
        with started((env.native(),), stand.driver, ["sub", *words]) as receiver:
            expect_ready(receiver)
            cpu, begin_ns = stand.cpu(), time.monotonic_ns()
            stand.control.start_replay(recorded.recording, IPC, STREAM)
            got = json.loads(receiver.read(SPARE_TIME_S))
            used = stand.cpu() - cpu
        if got["faults"] or (got["received"], got["sum"]) != (recorded.messages, recorded.sum):
            raise VoidError(f"{self.name}: sent {recorded}, received {got}")
        first_s = (got["first_ns"] - begin_ns) / 1e9
        return Transfer(got["measured"] / got["seconds"], recorded.bytes, used), first_s


@dataclass
class RecordedStream:
    """A recorded stream and the report of its publisher."""

    recording: int
    messages: int
    sum: int
    bytes: int
    transfer: Transfer


def record(stand, channel, length, seconds):
    """Records a stream that is published at full rate for `seconds`."""
    words = words_of({"channel": channel, "length": length, "seconds": seconds, "idle": "yield"})
    source = "LOCAL" if channel == IPC else "REMOTE"
    subscription = stand.control.start_recording(channel, STREAM, source=source)
    cpu = stand.cpu()
    with started((env.native(),), stand.driver, ["pub", *words]) as publisher:
        expect_ready(publisher)
        recording, counter = _active_recording(stand)
        with Samples(counter.value) as samples:
            sent = json.loads(publisher.read(seconds + SPARE_TIME_S))
            samples.wait_for(sent["position"])
        stand.control.stop_recording(subscription)
    measured_s, bytes_ = samples.span()
    messages = sent["sent"] * bytes_ / sent["position"]
    transfer = Transfer(messages / measured_s, sent["position"], stand.cpu() - cpu)
    return RecordedStream(recording, sent["sent"], sent["sum"], sent["position"], transfer)


@dataclass
class PositionCounter:
    """The counter with the recorded position of a recording."""

    reader: object
    id: int

    def value(self):
        return self.reader.value(self.id)


def _active_recording(stand):
    """Waits for the only active recording. Returns the recording's id and the counter of the recorded position."""
    reader, deadline = stand.client.counters_reader, time.monotonic() + SPARE_TIME_S
    while time.monotonic() < deadline:
        for counter in reader.snapshot():
            if counter.type_id == _RECORDING_POSITION_TYPE:
                return int.from_bytes(counter.key[:8], "little"), PositionCounter(reader, counter.id)
        time.sleep(_SAMPLE_S)
    raise AssertionError("nothing is recorded")


class Samples:
    """Samples of a position. A thread takes one every millisecond."""

    def __init__(self, position):
        self._position, self._points = position, []
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join()

    def wait_for(self, position):
        """Waits until a sample is at least `position`."""
        deadline = time.monotonic() + SPARE_TIME_S
        while not self._points or self._points[-1][1] < position:
            if time.monotonic() > deadline:
                raise AssertionError(f"position {position} was not recorded, only {self._points[-1:]}")
            time.sleep(_SAMPLE_S)

    def span(self):
        """Returns the seconds and the bytes between the first sample above 0 and the sample that reached the last
        position."""
        points = [point for point in self._points if point[1] > 0]
        first, last = points[0], next(point for point in points if point[1] == points[-1][1])
        if last[0] <= first[0]:
            raise AssertionError("all messages were recorded within a millisecond: send for longer")
        return last[0] - first[0], last[1] - first[1]

    def _run(self):
        while not self._ends.is_set():
            self._points.append((time.monotonic(), self._position()))
            time.sleep(_SAMPLE_S)


@dataclass
class Files:
    """Limit of the file system: a program writes blocks to new files and reads the files. The rates count messages of
    `length` bytes."""

    name: str
    length: int
    parent: str = "/dev/shm"
    unit: str = "messages/s"

    def measure(self, seconds):
        framed = (self.length + 32 + 31) // 32 * 32
        with new_directory(self.parent) as directory:
            # An archive records about 1 GiB per second.
            words = words_of({"bytes": int(min(max(seconds, 0.1), _DISK_S) * (1 << 30))})
            with started((env.native(),), str(directory), ["files", *words]) as process:
                found = json.loads(process.read(SPARE_TIME_S))
        return {
            "rate": found["write"] / framed,
            "record cost": found["write_cost"],
            "replayed": found["read"] / framed,
            "replay cost": found["read_cost"],
        }


@dataclass
class Recorded:
    """Time from the offer of a message until the message is recorded, at 2,000 messages per second."""

    name: str
    kind: str
    settings: dict = field(default_factory=dict)
    unit: str = "ns"

    def measure(self, seconds):
        with rig(self.kind) as stand:
            stand.control.start_recording(IPC, STREAM)
            words = words_of({"channel": IPC, "length": 32, "seconds": max(seconds, 0.5)})
            with started((env.native(),), stand.driver, ["recorded", *words]) as process:
                expect_ready(process)
                return json.loads(process.read(seconds + SPARE_TIME_S))


@dataclass
class PythonRead:
    """Rate at which Python reads a recording in batches. The source is a `replay` or the segment `files` themselves."""

    name: str
    how: str
    unit: str = "messages/s"

    def measure(self, seconds):
        with rig("ours") as stand:
            recorded = record(stand, IPC, 32, seconds)
            found = self._read(stand, recorded.recording, recorded.bytes)
        if found["faults"] or (found["received"], found["sum"]) != (recorded.messages, recorded.sum):
            raise VoidError(f"{self.name}: sent {recorded}, received {found}")
        return {"rate": found["measured"] / found["seconds"]}

    def _read(self, stand, recording, stop):
        words = words_of({"how": self.how, "recording": recording, "stop": stop, "files": stand.archive.directory})
        reader = (env.ours(), "-u", env.PEERS / "archive_reader.py")
        with started(reader, stand.driver, ["sub", *words]) as process:
            return json.loads(process.read(SPARE_TIME_S))
