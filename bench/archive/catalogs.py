"""Archives with and without recordings: time to start, time to list recordings, and resources of an idle archive."""

import atexit
import functools
import json
import os
import shutil
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import aeron
from bench import environments as env
from bench.archive.server import new_directory, running_archive
from bench.archive.streams import STREAM, rig
from bench.measure import SHARED, SPARE_TIME_S, running_driver, usage
from interop.drivers import driver_environment, is_ready
from interop.processes import LineProcess, Process

MANY = 100_000
_FEW = 1000
_FULL_S = 1
_HEADER = 32
_NEXT_ID_AT, _ID_AT = 8, _HEADER + 16
_SEGMENT = {"aeron.archive.segment.file.length": "131072"}
_LISTINGS = 6


def _count(seconds):
    """Returns the number of recordings. A short run has fewer, because it only shows that all parts work."""
    return MANY if seconds >= _FULL_S else _FEW


class ManyRecordings:
    """A directory with copies of one short recording, each with a segment file. Either all copies are stopped or all
    need recovery."""

    def __init__(self, parent, count, is_stopped):
        self._made = new_directory(parent)
        self.path = self._made.__enter__()
        atexit.register(self.remove)
        with new_directory() as template:
            _record_one(template, is_stopped)
            catalog = (template / "archive.catalog").read_bytes()
            segment = (template / "0-0.rec").read_bytes()
        self.path.mkdir(parents=True)
        self._catalog = _copies(catalog, count)
        content = segment.rstrip(b"\0")
        for number in range(count):
            file = os.open(self.path / f"{number}-0.rec", os.O_CREAT | os.O_WRONLY)
            os.write(file, content)
            os.ftruncate(file, len(segment))
            os.close(file)
        self.restore()

    def restore(self):
        """Restores the state that the directory had before an archive used it."""
        for entry in os.scandir(self.path):
            if not entry.name.endswith(".rec"):
                os.unlink(entry.path)
        (self.path / "archive.catalog").write_bytes(self._catalog)

    def remove(self):
        """Deletes the directory."""
        shutil.rmtree(self.path, ignore_errors=True)


@functools.cache
def many_recordings(parent, count, is_stopped):
    """Returns the directory for these arguments. The first call makes it, and the end of this process deletes it."""
    return ManyRecordings(parent, count, is_stopped)


def _record_one(directory, is_stopped):
    """Makes recording 0 with three messages.

    If `is_stopped`, the recording is stopped before the archive ends. Otherwise the archive is killed during the
    recording.
    """
    with ExitStack() as stack:
        driver, _ = stack.enter_context(running_driver("ours", SHARED))
        archive = stack.enter_context(running_archive("ours", driver, directory, **_SEGMENT))
        client = stack.enter_context(aeron.connect(driver))
        with aeron.connect_archive(client) as control:
            publication = control.add_recorded_publication("aeron:ipc?term-length=64k", STREAM)
            for _ in range(3):
                position = publication.publish(bytes(32), timeout=SPARE_TIME_S)
            control.wait_recorded(publication, position, timeout=SPARE_TIME_S)
            if is_stopped:
                control.stop_recording(publication)
                while control.list_recording(0).is_active:
                    time.sleep(0.001)
            else:
                archive.kill()


def _copies(catalog, count):
    """Returns a catalog of the recordings 0 to `count` - 1. All fields except the ids have the values of
    recording 0."""
    length = _HEADER + int.from_bytes(catalog[_HEADER : _HEADER + 4], "little")
    entries = np.tile(np.frombuffer(catalog[_HEADER : _HEADER + length], np.uint8), (count, 1))
    entries[:, _ID_AT : _ID_AT + 8] = np.arange(count, dtype="<i8").view(np.uint8).reshape(count, 8)
    header = bytearray(catalog[:_HEADER])
    header[_NEXT_ID_AT : _NEXT_ID_AT + 8] = count.to_bytes(8, "little")
    return bytes(header) + entries.tobytes()


@dataclass
class Start:
    """Time from the start of the archive's process until the mark file shows that the archive is ready.

    The metric `over driver` is this time minus the start time of our driver.
    """

    name: str
    kind: str
    state: str = "empty"
    """State of the archive: `empty`, `stopped` or `to recover`."""
    parent: str = "/dev/shm"
    unit: str = "ms"

    def measure(self, seconds):
        driver_ms = _driver_start_ms()
        with ExitStack() as stack:
            driver, _ = stack.enter_context(running_driver("ours", SHARED))
            if self.state == "empty":
                directory = stack.enter_context(new_directory(self.parent))
            else:
                many = many_recordings(self.parent, _count(seconds), self.state == "stopped")
                many.restore()
                directory = many.path
            archive = stack.enter_context(running_archive(self.kind, driver, directory, **_SEGMENT))
            start_ms = archive.start_s * 1e3
        return {"start": start_ms, "over driver": start_ms - driver_ms}


def _driver_start_ms():
    with new_directory() as directory, tempfile.TemporaryDirectory() as logs:
        begin = time.perf_counter()
        command = (env.aeronmd(), f"-Daeron.dir={directory}")
        process = Process(command, log=Path(logs) / "driver.txt", environment=driver_environment(SHARED))
        try:
            while not is_ready(directory / "cnc.dat", process.pid):
                if time.perf_counter() - begin > SPARE_TIME_S:
                    raise AssertionError("the driver did not start")
                time.sleep(0.001)
            return (time.perf_counter() - begin) * 1e3
        finally:
            process.kill()


@dataclass
class List:
    """Time to list all recordings of a large archive, with the real client, or with our client as an Arrow table."""

    name: str
    kind: str
    response_term: str | None
    """Term length of the channel on which the real client receives responses. `None` measures our client with its
    default channel."""
    unit: str = "ms"

    def measure(self, seconds):
        count = _count(seconds)
        many = many_recordings("/dev/shm", count, True)
        many.restore()
        with ExitStack() as stack:
            driver, _ = stack.enter_context(running_driver("ours", SHARED))
            stack.enter_context(running_archive(self.kind, driver, many.path))
            logs = stack.enter_context(tempfile.TemporaryDirectory())
            process = LineProcess(self._command(driver, count), log=Path(logs) / "errors.txt")
            try:
                listings = [json.loads(process.read(SPARE_TIME_S)) for _ in range(_LISTINGS)]
            finally:
                process.kill()
        if any(listing["count"] != count for listing in listings):
            raise AssertionError(f"{self.name}: {count} recordings, listed {listings}")
        # The first listing is a warm-up and does not count.
        return {"listing": statistics.median(listing["ms"] for listing in listings[1:])}

    def _command(self, driver, count):
        if self.response_term is None:
            return (env.ours(), "-u", env.PEERS / "archive_lister.py", driver, _LISTINGS)
        return (*env.java_lister(), driver, self.response_term, count, _LISTINGS)


@dataclass
class IdleArchive:
    """Resources of an archive without work: CPU time as a share of one core, and resident memory."""

    name: str
    kind: str
    has_many: bool = False
    unit: str = "% of a core"

    def measure(self, seconds):
        with ExitStack() as stack:
            driver, _ = stack.enter_context(running_driver("ours", SHARED))
            if self.has_many:
                many = many_recordings("/dev/shm", _count(seconds), True)
                many.restore()
                directory = many.path
            else:
                directory = stack.enter_context(new_directory())
            archive = stack.enter_context(running_archive(self.kind, driver, directory))
            return usage(archive.pid, seconds)


@dataclass
class StreamsAtRest:
    """Resources of an archive with a connected client, and with a recording that waits for messages."""

    name: str
    kind: str
    unit: str = "% of a core"

    def measure(self, seconds):
        with rig(self.kind) as stand:
            publication = stand.control.add_recorded_publication("aeron:ipc", STREAM)
            position = publication.publish(bytes(32), timeout=SPARE_TIME_S)
            stand.control.wait_recorded(publication, position, timeout=SPARE_TIME_S)
            return usage(stand.archive.pid, seconds)
