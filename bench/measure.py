"""Measurements. Each one starts a driver and the programs of one cell, checks the programs' results, and ends the
driver and the programs."""

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench import environments as env
from bench.conditions import add_migrations
from bench.placement import SPLIT, Placement, cpus
from interop import toolchain
from interop.drivers import Driver
from interop.processes import LineProcess

SHARED = {"AERON_THREADING_MODE": "SHARED", "AERON_IPC_TERM_BUFFER_LENGTH": "16m"}
STOCK = {"AERON_THREADING_MODE": "DEDICATED", "AERON_IPC_TERM_BUFFER_LENGTH": "64m"}
_TIMEOUTS = {
    "AERON_TIMER_INTERVAL": "1s",
    "AERON_CLIENT_LIVENESS_TIMEOUT": "10s",
    "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "15s",
    "AERON_IMAGE_LIVENESS_TIMEOUT": "10s",
}
SPARE_TIME_S = 60
WARM_UP_S = 0.3
"""Seconds of sending at the start of a run that do not count. In this time, all pages of the logs are made."""
_PROBE_S = 0.02
_IDLE_SETTLE_S = 3
_GRACE_S = 0.5


class VoidError(Exception):
    """Reason why a run does not count: messages are missing, duplicated or out of order, or the run took too long."""


@contextmanager
def running_driver(kind, settings, place=()):
    """Runs a driver. Yields its directory and its process.

    If `kind` is `None`, no driver runs: the directory is empty, and the process is `None`.
    """
    directory = Path("/dev/shm") / f"aeron-bench-{uuid.uuid4().hex[:12]}"
    if kind is None:
        directory.mkdir()
        try:
            yield str(directory), None
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        return
    with tempfile.TemporaryDirectory() as logs:
        program = env.aeronmd() if kind == "ours" else None
        driver = Driver(kind, directory, Path(logs) / "driver.txt", {**_TIMEOUTS, **settings}, program, place=place)
        try:
            yield driver.directory, driver.process
        finally:
            add_migrations(driver.process.pid)
            driver.remove()


@contextmanager
def started(command, directory, words, place=(), environment=None):
    """Starts a program in the role `words[0]` and yields its process. The process ends at the end of the block."""
    with tempfile.TemporaryDirectory() as logs:
        full = (*place, *command, words[0], directory, *words[1:])
        variables = {**_quiet_environment(), **(environment or {})}
        process = LineProcess(full, log=Path(logs) / "errors.txt", environment=variables)
        try:
            yield process
        finally:
            add_migrations(process.pid)
            process.finish(_GRACE_S)


def _quiet_environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("AERON_")}


def words_of(settings):
    return [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in settings.items()]


def timed(settings, seconds):
    """Returns the words for settings and for the time of a run: a warm-up, and `seconds` that count."""
    return words_of({**settings, "seconds": WARM_UP_S + seconds, "warmup": WARM_UP_S})


def probe():
    """Returns the time of a round trip of a cache line between the first two CPUs, in nanoseconds."""
    first, second = cpus()[:2]
    words = words_of({"seconds": _PROBE_S, "cpus": f"{first},{second}"})
    with started((env.native(),), "-", ["probe", *words]) as process:
        return json.loads(process.read(SPARE_TIME_S))["p50"]


@dataclass
class OneWay:
    """Messages per second from one process to another."""

    name: str
    command: Callable
    driver: str | None = None
    settings: dict = field(default_factory=dict)
    driver_settings: dict = field(default_factory=lambda: SHARED)
    placement: Placement = SPLIT
    unit: str = "messages/s"

    def measure(self, seconds):
        words, place = timed(self.settings, seconds), self.placement.prefix
        with (
            running_driver(self.driver, self.driver_settings, place("driver")) as (directory, _),
            started(self.command(), directory, ["sub", *words], place("subscriber")) as receiver,
        ):
            expect_ready(receiver)
            with started(self.command(), directory, ["pub", *words], place("publisher")) as sender:
                sent = json.loads(_after_ready(sender, seconds + SPARE_TIME_S))
                got = json.loads(receiver.read(seconds + SPARE_TIME_S))
        if got["faults"] or (got["received"], got["sum"]) != (sent["sent"], sent["sum"]):
            raise VoidError(f"{self.name}: sent {sent}, received {got}")
        return {"rate": got["measured"] / got["seconds"]}


@dataclass
class RoundTrip:
    """Round-trip time. The next message is sent after the previous one has come back."""

    name: str
    command: Callable
    driver: str | None = None
    settings: dict = field(default_factory=dict)
    driver_settings: dict = field(default_factory=lambda: SHARED)
    placement: Placement = SPLIT
    unit: str = "ns"

    def measure(self, seconds):
        words, place = timed(self.settings, seconds), self.placement.prefix
        with (
            running_driver(self.driver, self.driver_settings, place("driver")) as (directory, _),
            started(self.command(), directory, ["pong", *words], place("subscriber")) as echo,
        ):
            expect_ready(echo)
            with started(self.command(), directory, ["ping", *words], place("publisher")) as caller:
                return json.loads(caller.read(seconds * 4 + SPARE_TIME_S))


@dataclass
class BareMemory:
    """Limit of this machine: one thread copies messages into a buffer of the size of a log, and another thread clears
    the buffer. The value is shown without a goal."""

    name: str
    command: Callable
    settings: dict
    unit: str = "messages/s"

    def measure(self, seconds):
        with started(self.command(), "-", ["bare", *timed(self.settings, seconds)]) as process:
            return json.loads(process.read(seconds + SPARE_TIME_S))


@dataclass
class JavaSample:
    """Aeron's own sample, which runs publisher, subscriber and driver in one process. The value is shown without a
    goal."""

    name: str
    length: int
    unit: str = "messages/s"

    def measure(self, seconds):
        directory = Path("/dev/shm") / f"aeron-bench-{uuid.uuid4().hex[:12]}"
        properties = {"aeron.dir": directory, "aeron.sample.messageLength": self.length}
        command = toolchain.java_command(properties, "io.aeron.samples.EmbeddedExclusiveIpcThroughput")
        command = [part for part in command if "TieredStopAtLevel" not in part]
        with tempfile.TemporaryDirectory() as logs:
            process = LineProcess(command, log=Path(logs) / "errors.txt")
            try:
                rates = [_java_rate(process.read(SPARE_TIME_S)) for _ in range(2 + max(1, round(seconds)))]
            finally:
                process.kill()
                shutil.rmtree(directory, ignore_errors=True)
        return {"rate": statistics.median(rates[2:])}


def _java_rate(line):
    """Returns the messages per second from a line `Duration 1,000ms - 12,345 messages - 395,040 payload bytes`."""
    numbers = [int("".join(filter(str.isdigit, part))) for part in line.split(" - ")]
    return numbers[1] / (numbers[0] / 1000)


@dataclass
class Idle:
    """Resources of a process without work: CPU time as a share of one core, and resident memory. Without a command,
    the process is the driver."""

    name: str
    command: Callable | None
    driver: str | None = None
    settings: dict = field(default_factory=dict)
    driver_settings: dict = field(default_factory=lambda: SHARED)
    unit: str = "% of a core"

    def measure(self, seconds):
        with running_driver(self.driver, self.driver_settings) as (directory, driver_process):
            if not self.command:
                return usage(driver_process.pid, seconds)
            with started(self.command(), directory, ["idle", *words_of(self.settings)]) as process:
                expect_ready(process)
                return usage(process.pid, seconds)


def usage(pid, seconds):
    """Waits until the process has settled. Then returns its CPU time in `seconds` as a share of one core, and its
    memory."""
    time.sleep(_IDLE_SETTLE_S)
    before, start = cpu_seconds(pid), time.monotonic()
    time.sleep(max(seconds, 1))
    used = cpu_seconds(pid) - before
    return {"cpu": 100 * used / (time.monotonic() - start), "rss": _resident_mib(pid)}


def cpu_seconds(pid):
    """Returns the CPU seconds of all threads of a process.

    They come from `schedstat`, which counts nanoseconds. The usual counter in `stat` has a resolution of 10 ms.
    """
    total = 0
    for task in (Path("/proc") / str(pid) / "task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def _resident_mib(pid):
    for line in (Path("/proc") / str(pid) / "status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise LookupError("VmRSS")


def expect_ready(process):
    line = process.read(SPARE_TIME_S).strip()
    if line != "ready":
        raise AssertionError(f"expected `ready`, got {line!r}")


def _after_ready(process, timeout_s):
    """Returns the report of a publisher. Some publishers print `ready` before the report, when they are connected."""
    line = process.read(timeout_s)
    return process.read(timeout_s) if line.strip() == "ready" else line


def machine():
    """Returns a description of the machine. `load` is the load average of the last five minutes. It is the load of
    other programs, unless an earlier measurement ran in this time."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        "unknown processor",
    )
    kernel = os.uname().release
    rust = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    load = f"{os.getloadavg()[1]:.1f}"
    return {"processor": model, "cores": os.cpu_count(), "kernel": kernel, "rust": rust, "load": load}
