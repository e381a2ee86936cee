"""Runs archives as processes: the real Java archive and ours. The settings have Aeron's property names."""

import mmap
import shutil
import struct
import sys
import time
from pathlib import Path

from interop import toolchain
from interop.drivers import driver_environment
from interop.processes import Process
from ports import free_port

_START_TIMEOUT_S = 60
_MARK_FILE_VERSION = 0x00030100
_LOCAL_CONTROL_CHANNEL = "aeron:ipc?term-length=64k"
_ANY_PORT = "aeron:udp?endpoint=localhost:0"
_HEADER_LENGTH = 8192

# The threading mode SHARED leaves the other core to the driver and the clients. Short segments give each recording
# several segment files. A killed client may leave the command ring blocked. The driver unblocks the ring after a time
# (`PATIENT_SETTINGS`), so the driver timeout, in milliseconds, is longer than that time.
SETTINGS = {
    "aeron.driver.timeout": "30000",
    "aeron.archive.threading.mode": "SHARED",
    "aeron.archive.segment.file.length": "128k",
    "aeron.archive.replication.channel": _ANY_PORT,
    "aeron.archive.local.control.channel": _LOCAL_CONTROL_CHANNEL,
}


class Archive:
    """A running archive with its own directory, on the driver of a test."""

    def __init__(self, kind, driver, directory, log, stream, settings=None):
        self.kind = kind
        self.directory = Path(directory)
        self._stream = stream
        self._control_channel = f"aeron:udp?endpoint=localhost:{free_port()}"
        self.settings = {
            "aeron.dir": driver.directory,
            "aeron.archive.dir": str(directory),
            "aeron.archive.control.channel": self._control_channel,
            "aeron.archive.control.stream.id": str(stream),
            "aeron.archive.local.control.stream.id": str(stream),
            **SETTINGS,
            **(settings or {}),
        }
        self._log = log
        self._starts = 0
        self.start()

    def start(self, kind=None):
        """Starts the archive. After `stop` or `kill`, starts it again with the same settings, or one of another
        kind."""
        self.kind = kind or self.kind
        self._starts += 1
        log = self._log.with_suffix(f".{self._starts}.txt")
        environment = driver_environment(toolchain.python_environment(self.kind))
        self.process = Process(archive_command(self.kind, self.settings), log=log, environment=environment)
        self._await_ready()

    def control(self, way):
        """Returns the channel and stream id for control requests, and a channel for responses. `way` is `ipc`, `udp` or
        `response`."""
        if way == "ipc":
            return _LOCAL_CONTROL_CHANNEL, self._stream, _LOCAL_CONTROL_CHANNEL
        if way == "response":
            responses = f"aeron:udp?control-mode=response|control=localhost:{free_port()}"
            return self._control_channel, self._stream, responses
        return self._control_channel, self._stream, _ANY_PORT

    def mark_file(self):
        """Returns version, activity timestamp and process id from the mark file."""
        return _mark_file(self._mark_file_path())

    def archive_id(self):
        """Returns the archive id from the mark file."""
        return struct.unpack_from("<q", self._mark_file_path().read_bytes(), 64)[0]

    def error_log(self):
        """Returns the bytes of the error log in the mark file, without the zeros at the end."""
        return self._mark_file_path().read_bytes()[_HEADER_LENGTH:].rstrip(b"\0")

    def _mark_file_path(self):
        directory = self.settings.get("aeron.archive.mark.file.dir", self.directory)
        return Path(directory) / "archive-mark.dat"

    def kill(self):
        """Kills the archive with SIGKILL."""
        self.process.kill()

    def stop(self):
        """Ends the archive cleanly. Returns its exit code."""
        return self.process.terminate()

    def remove(self):
        """Ends the archive in any state, and deletes its directory."""
        if self.process.exit_code is None:
            self.process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _await_ready(self):
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._is_ready():
            if self.process.exit_code is not None or time.monotonic() > deadline:
                if self.process.exit_code is None:
                    self.process.kill()
                raise AssertionError(f"the {self.kind} archive did not start\n{self.process.output()}")
            time.sleep(0.01)

    def _is_ready(self):
        found = self.mark_file()
        if found is None:
            return False
        version, activity_ms, pid = found
        return version == _MARK_FILE_VERSION and pid == self.process.pid and activity_ms > 0


def archive_command(kind, settings):
    """Returns the command that starts an archive of a kind."""
    if kind == "java":
        # The class path contains the test classes, because a setting may name one of them as the authenticator.
        *java, program = toolchain.java_peer_command("io.aeron.archive.Archive")
        return (*java, *(f"-D{name}={value}" for name, value in settings.items()), program)
    if kind in ("ours", "old"):
        programs = Path(sys.executable).parent if kind == "ours" else toolchain.old_package() / "bin"
        program = programs / "aeronarchive"
        return (program, *(f"-D{name}={value}" for name, value in settings.items()))
    raise ValueError(f"no archive of kind {kind}")


def _mark_file(path):
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            (version,) = struct.unpack_from("<i", data, 8)
            activity_ms, _, pid = struct.unpack_from("<qqq", data, 16)
            return version, activity_ms, pid
    except (OSError, ValueError, struct.error):
        return None
