"""An archive as a separate process on a driver: the real archive or ours, with the same settings."""

import mmap
import os
import shutil
import struct
import tempfile
import time
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path

from bench import environments as env
from bench.hosts import free_port
from bench.measure import SPARE_TIME_S
from interop import toolchain
from interop.drivers import driver_environment
from interop.processes import Process

SEGMENT_LENGTH = 128 << 20
CONTROL_STREAM, RESPONSE_STREAM = 10, 20
_MARK_FILE_VERSION = 0x00030100
_POLL_S = 0.001
_STOP_S = 20


@contextmanager
def new_directory(parent="/dev/shm"):
    """Yields the path of a directory that does not exist yet. The directory is deleted after the block."""
    path = Path(parent) / f"aeron-bench-archive-{uuid.uuid4().hex[:12]}"
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class ArchiveProcess:
    """A running archive. `start_s` is the time in seconds until the mark file showed that the archive was ready."""

    def __init__(self, kind, driver_directory, directory, log, **settings):
        self.directory = Path(directory)
        self.settings = {
            "aeron.dir": driver_directory,
            "aeron.archive.dir": str(directory),
            "aeron.archive.id": "7",
            "aeron.archive.control.channel": f"aeron:udp?endpoint=localhost:{free_port()}",
            "aeron.archive.control.stream.id": str(CONTROL_STREAM),
            "aeron.archive.local.control.stream.id": str(CONTROL_STREAM),
            "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
            "aeron.archive.recording.events.enabled": "false",
            "aeron.archive.segment.file.length": str(SEGMENT_LENGTH),
            "aeron.archive.threading.mode": "SHARED",
            **settings,
        }
        begin = time.perf_counter()
        self.process = Process(_command(kind, self.settings), log=log, environment=driver_environment({}))
        self.pid = self.process.pid
        self._await_ready()
        self.start_s = time.perf_counter() - begin

    def _await_ready(self):
        deadline = time.monotonic() + SPARE_TIME_S
        while not self._is_ready():
            if self.process.exit_code is not None or time.monotonic() > deadline:
                self.end()
                raise AssertionError(f"the archive did not start\n{self.process.output()}")
            time.sleep(_POLL_S)

    def _is_ready(self):
        with suppress(OSError, ValueError, struct.error):
            with (
                open(self.directory / "archive-mark.dat", "rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
            ):
                (version,) = struct.unpack_from("<i", data, 8)
                activity_ms, _, pid = struct.unpack_from("<qqq", data, 16)
            return version == _MARK_FILE_VERSION and pid == self.pid and activity_ms > 0
        return False

    def kill(self):
        """Kills the archive with SIGKILL."""
        self.process.kill()

    def end(self):
        """Ends the archive if it still runs."""
        if self.process.exit_code is None:
            with suppress(AssertionError):
                self.process.terminate(_STOP_S)


@contextmanager
def running_archive(kind, driver_directory, directory, **settings):
    """Runs an archive in a directory. The archive ends after the block, and the directory remains."""
    with tempfile.TemporaryDirectory() as logs:
        archive = ArchiveProcess(kind, driver_directory, directory, Path(logs) / "archive.txt", **settings)
        try:
            yield archive
        finally:
            archive.end()


def _command(kind, settings):
    options = [f"-D{name}={value}" for name, value in settings.items()]
    if kind == "java":
        *java, main = env.java("io.aeron.archive.Archive")
        return (*java, *options, main)
    return (env.aeronarchive(), *options)


def missing():
    """Returns the reason why this machine cannot run the benchmarks of the archive, or `None` if it can."""
    try:
        toolchain.java_command({}, "")
    except toolchain.Unavailable as reason:
        return str(reason)
    return None if os.access("/dev/shm", os.W_OK) else "there is no /dev/shm"
