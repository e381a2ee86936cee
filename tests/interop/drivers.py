"""Runs media drivers as processes: the real Java and C drivers and ours. The settings have the C driver's names."""

import mmap
import os
import shutil
import struct
import sys
import time
from pathlib import Path

from interop import toolchain
from interop.processes import Process

_START_TIMEOUT_S = 60
_CNC_VERSION = 0x00000200
_HEARTBEAT_OFFSET = 640
_RING_TRAILER_LENGTH = 768

# The threading mode SHARED leaves the other core to the clients. With short timeouts, the driver ends dead clients and
# unused publications within seconds.
SETTINGS = {
    "AERON_THREADING_MODE": "SHARED",
    "AERON_IPC_TERM_BUFFER_LENGTH": "1m",
    "AERON_TERM_BUFFER_LENGTH": "1m",
    "AERON_TIMER_INTERVAL": "100ms",
    "AERON_CLIENT_LIVENESS_TIMEOUT": "2s",
    "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "3s",
    "AERON_IMAGE_LIVENESS_TIMEOUT": "1s",
}

# Long timeouts for tests that keep the processors busy and do not depend on the timeouts of clients or streams.
PATIENT_SETTINGS = {
    "AERON_CLIENT_LIVENESS_TIMEOUT": "10s",
    "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "12s",
    "AERON_IMAGE_LIVENESS_TIMEOUT": "3s",
}


class Driver:
    """A running media driver with its own directory.

    `program` is the path of another `aeronmd`. `place` is a prefix of the command.
    """

    def __init__(self, kind, directory, log, settings=None, program=None, arguments=(), place=()):
        self.kind = kind
        self.directory = str(directory)
        settings = {**SETTINGS, **(settings or {})}
        command = driver_command(kind, self.directory, settings, program)
        environment = driver_environment({**settings, **toolchain.python_environment(kind)})
        self.process = Process((*place, *command, *arguments), log=log, environment=environment)
        self._await_ready()

    def kill(self):
        """Kills the driver with SIGKILL. The directory stays."""
        self.process.kill()

    def stop(self):
        """Ends the driver cleanly. Returns its exit code."""
        return self.process.terminate()

    def remove(self):
        """Ends the driver in any state, and deletes its directory."""
        if self.process.exit_code is None:
            self.process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _await_ready(self):
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not is_ready(Path(self.directory) / "cnc.dat", self.process.pid):
            if self.process.exit_code is not None or time.monotonic() > deadline:
                if self.process.exit_code is None:
                    self.process.kill()
                raise AssertionError(f"the {self.kind} driver did not start\n{self.process.output()}")
            time.sleep(0.01)


def is_ready(cnc, pid):
    """Returns whether the driver with this process id has written the version and the first heartbeat to the CnC
    file."""
    try:
        with open(cnc, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            version, ring_length = struct.unpack_from("<ii", data, 0)
            (owner,) = struct.unpack_from("<q", data, 40)
            heartbeat_at = 128 + ring_length - _RING_TRAILER_LENGTH + _HEARTBEAT_OFFSET
            (heartbeat,) = struct.unpack_from("<q", data, heartbeat_at)
            return version == _CNC_VERSION and owner == pid and heartbeat > 0
    except (OSError, ValueError, struct.error):
        return False


def driver_command(kind, directory, settings, program=None):
    """Returns the command that starts a driver. The C driver and ours read their settings from the environment."""
    if kind == "java":
        properties = {_java_property(name): _java_value(name, value) for name, value in settings.items()}
        return toolchain.java_command({"aeron.dir": directory, **properties}, "io.aeron.driver.MediaDriver")
    if kind == "c":
        return (toolchain.wheel_python(), toolchain.HERE / "peer" / "c_driver.py", directory)
    if kind == "ours":
        return (program or _our_driver(), f"-Daeron.dir={directory}")
    if kind == "old":
        return (toolchain.old_package() / "bin" / "aeronmd", f"-Daeron.dir={directory}")
    raise ValueError(f"no driver of kind {kind}")


def driver_environment(settings):
    """Returns the environment of this process, with `settings` in place of all its variables `AERON_*`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AERON_")}
    # The output is compared with that of drivers that print no log.
    return {**clean, "AERON_LOG_LEVEL": "off", **settings}


def _java_property(name):
    """Returns Java's name for a setting of the C driver. Settings that only the Java driver has keep their names."""
    return name if name.startswith("aeron.") else name.lower().replace("_", ".")


def _java_value(name, value):
    """Returns Java's value for a setting. The C driver finds a validator by a short name, and Java by a class name."""
    if name == "AERON_DRIVER_TERMINATION_VALIDATOR":
        return f"io.aeron.driver.Default{value.capitalize()}TerminationValidator"
    return value


def _our_driver():
    """Returns the console script of the installed package, or the driver crate's example if no package is installed."""
    script = Path(sys.executable).parent / "aeronmd"
    if script.exists():
        return script
    return toolchain.rust_example("aeronmd")
