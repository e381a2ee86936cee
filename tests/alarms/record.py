"""Records what the exporter shows while real processes are killed, stopped and slowed: the files in `recorded`.

    python tests/alarms/record.py [--raw DIRECTORY] [NAME ...]

Each scenario starts a driver, an archive, clients and an exporter as processes of their own, makes one failure after
30 s, and scrapes the exporter each second. A file keeps the series of the metrics that `dashboards/alerts.yml` names.
Times are relative to the first scrape, so that the time of a test can begin at 0.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import aeron  # noqa: E402
from alarms import series  # noqa: E402

RECORDED = HERE / "recorded"
BEGIN_S = 30
"""Time of the failure."""
LENGTH_S = 210
HEALTHY_S = 600
AT_ONCE = 6
"""Scenarios that run at the same time. They wait most of the time."""
IPC = "aeron:ipc?term-length=1m"
STREAM = "1001"


@dataclass
class Processes:
    """The processes of a scenario, in a directory of their own in shared memory."""

    directory: Path
    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def start(self, name: str, *command: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
        log = (self.directory / f"{name}.log").open("a")
        process = subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.PIPE if name == "exporter" else log,
            stderr=log,
            text=True,
            env=os.environ | (environment or {}),
        )
        self.running[name] = process
        return process

    def driver(self, *settings: str, name: str = "quotes") -> None:
        directory = str(self.directory / name)
        options = [f"-Daeron.{each}" for each in ("threading.mode=SHARED", *settings)]
        self.start(name, "-m", "aeron", "driver", "--dir", directory, *options)
        wait_until(lambda: aeron.health(directory).is_live)

    def archive(self, *settings: str, at: Path | None = None, environment: dict[str, str] | None = None) -> None:
        files = at or self.directory / "journal"
        every = (
            "control.channel.enabled=false",
            "replication.channel=aeron:udp?endpoint=localhost:0",
            "segment.file.length=1048576",
            "low.storage.space.threshold=0",
            *settings,
        )
        options = [f"-Daeron.archive.{each}" for each in every]
        place = ["--dir", str(self.directory / "quotes"), "--archive-dir", str(files)]
        self.start("journal", "-m", "aeron", "archive", "run", *place, *options, environment=environment)
        wait_until(lambda: aeron.health(archive=files).is_live)

    def client(self, name: str, role: str, *arguments: object, driver: str = "quotes") -> None:
        directory = str(self.directory / driver)
        self.start(name, str(HERE / "client.py"), directory, name, role, *map(str, arguments))

    def signal(self, name: str, number: signal.Signals) -> None:
        self.running[name].send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.running[name].wait()

    def end(self) -> None:
        for process in self.running.values():
            process.send_signal(signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def wait_until(condition: Callable[[], object], timeout: float = 30) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout} s")
        time.sleep(0.05)


def record(processes: Processes, failure: Iterator[float], seconds: int, archive: Path | None) -> list[str]:
    """Scrapes each second. Returns the time of the first scrape and all texts.

    `failure` yields the times from the first scrape on at which it continues.
    """
    sources = ["--dir", f"quotes={processes.directory / 'quotes'}"]
    if archive:
        sources += ["--archive", f"journal={archive}"]
    exporter = processes.start("exporter", "-m", "aeron", "exporter", "--port", "0", *sources)
    assert exporter.stdout is not None
    url = exporter.stdout.readline().split()[-1]
    texts = []
    begin = time.time()
    due = next(failure, float("inf"))
    for second in range(seconds):
        while due <= second:
            time.sleep(max(0.0, begin + due - time.time()))
            due = next(failure, float("inf"))
        time.sleep(max(0.0, begin + second - time.time()))
        texts.append(urllib.request.urlopen(url, timeout=10).read().decode())
    return [f"{begin}", *texts]


# ---- scenarios -------------------------------------------------------------------------------------------------------


def feed(processes: Processes, messages_per_turn: int = 5, channel: str = IPC) -> None:
    """Starts a publisher and two readers that keep up."""
    processes.client("feed", "publish", channel, STREAM, messages_per_turn)
    for name in ("desk", "risk"):
        processes.client(name, "read", channel, STREAM, 1000)


def healthy(processes: Processes) -> Iterator[float]:
    """A driver with an archive, an IPC stream that is recorded and a UDP stream. A reader and a publisher restart."""
    processes.driver()
    processes.archive()
    processes.client("recorder", "record", IPC, STREAM, 0)
    feed(processes)
    udp = "aeron:udp?endpoint=127.0.0.1:23301"
    processes.client("orders", "publish", udp, 1002, 5)
    processes.client("gateway", "read", udp, 1002, 1000)
    time.sleep(3)
    yield 200
    processes.signal("risk", signal.SIGTERM)
    processes.client("risk", "read", IPC, STREAM, 1000)
    yield 400
    processes.signal("orders", signal.SIGTERM)
    processes.client("orders", "publish", udp, 1002, 5)


def driver_killed(processes: Processes) -> Iterator[float]:
    processes.driver()
    feed(processes)
    yield BEGIN_S
    processes.signal("quotes", signal.SIGKILL)


def archive_killed(processes: Processes) -> Iterator[float]:
    processes.driver()
    processes.archive()
    processes.client("recorder", "record", IPC, STREAM, 0)
    feed(processes)
    time.sleep(2)
    yield BEGIN_S
    processes.signal("journal", signal.SIGKILL)


def conductor_stalled(processes: Processes) -> Iterator[float]:
    """The driver is stopped for 0.3 s, every 1.5 s."""
    processes.driver()
    feed(processes)
    for turn in range(int((LENGTH_S - BEGIN_S) / 1.5)):
        yield BEGIN_S + 1.5 * turn
        processes.signal("quotes", signal.SIGSTOP)
        yield BEGIN_S + 1.5 * turn + 0.3
        processes.signal("quotes", signal.SIGCONT)


def conductor_paused(processes: Processes) -> Iterator[float]:
    """The driver is stopped once, for 3 s."""
    processes.driver()
    feed(processes)
    yield BEGIN_S
    processes.signal("quotes", signal.SIGSTOP)
    yield BEGIN_S + 3
    processes.signal("quotes", signal.SIGCONT)


def reader_stuck(processes: Processes) -> Iterator[float]:
    """A second reader does not poll."""
    processes.driver()
    processes.client("feed", "publish", IPC, STREAM, 5)
    processes.client("desk", "read", IPC, STREAM, 1000)
    yield BEGIN_S
    processes.client("risk", "read", IPC, STREAM, 0)


def receiver_stuck(processes: Processes) -> Iterator[float]:
    """The only reader of a UDP stream does not poll."""
    channel = "aeron:udp?endpoint=127.0.0.1:23306|term-length=1m"
    processes.driver()
    processes.client("feed", "publish", channel, STREAM, 5)
    yield BEGIN_S
    processes.client("risk", "read", channel, STREAM, 0)


def receiver_missing(processes: Processes) -> Iterator[float]:
    """A UDP stream without a reader: no failure."""
    processes.driver()
    processes.client("feed", "publish", "aeron:udp?endpoint=127.0.0.1:23308", STREAM, 5)
    yield BEGIN_S


def reader_slow(processes: Processes) -> Iterator[float]:
    """A second reader takes 3 of 5 messages, of a window of 8 MiB."""
    channel = "aeron:ipc?term-length=16m"
    processes.driver()
    processes.client("feed", "publish", channel, STREAM, 5)
    processes.client("desk", "read", channel, STREAM, 1000)
    yield BEGIN_S
    processes.client("risk", "read", channel, STREAM, 3)


def loss(processes: Processes) -> Iterator[float]:
    """The receiver loses 5 % of all datagrams."""
    yield from lossy(processes, "127.0.0.1:23302", "rate=0.05")


def retransmit_overflow(processes: Processes) -> Iterator[float]:
    """Multicast with a loss of 10 %, and a sender that repeats one range at a time."""
    yield from lossy(processes, "224.20.30.39:23303|interface=localhost", "rate=0.1", "max.resend=1")


def lossy(processes: Processes, endpoint: str, rate: str, *settings: str) -> Iterator[float]:
    every = (
        "udp.channel.incoming.interceptors=loss",
        f"udp.channel.transport.bindings.loss.args={rate}|seed=27|recv-msg-mask=0x2",
    )
    processes.driver(*every, *settings)
    channel = f"aeron:udp?endpoint={endpoint}"
    processes.client("feed", "publish", channel, STREAM, 20)
    processes.client("desk", "read", channel, STREAM, 1000)
    yield BEGIN_S


def client_killed(processes: Processes) -> Iterator[float]:
    processes.driver()
    feed(processes)
    yield BEGIN_S
    processes.signal("risk", signal.SIGKILL)


def claim_abandoned(processes: Processes) -> Iterator[float]:
    """A publisher is killed between claim and commit. Another one goes on with the same publication."""
    processes.driver()
    feed(processes)
    processes.client("orders", "claim", IPC, STREAM, BEGIN_S)
    yield BEGIN_S + 5
    processes.signal("orders", signal.SIGKILL)


def errors(processes: Processes) -> Iterator[float]:
    """A client asks for the address of a host that does not exist."""
    processes.driver()
    feed(processes)
    processes.client("orders", "unknown", BEGIN_S)
    yield BEGIN_S


def recording_failed(processes: Processes) -> Iterator[float]:
    """The next segment file of the recording exists already."""
    processes.driver()
    processes.archive()
    (processes.directory / "journal" / f"0-{4 << 20}.rec").write_bytes(b"data of somebody")
    processes.client("recorder", "record", IPC, STREAM, 0)
    feed(processes)
    yield BEGIN_S


def recording_released(processes: Processes) -> Iterator[float]:
    """The same with an archive that reads and drops the rest of the stream."""
    processes.driver()
    processes.archive("recording.on.failure=release")
    (processes.directory / "journal" / f"0-{4 << 20}.rec").write_bytes(b"data of somebody")
    processes.client("recorder", "record", IPC, STREAM, 0)
    feed(processes)
    yield BEGIN_S


def recording_of_image_stopped(processes: Processes) -> Iterator[float]:
    """The publisher of a recorded UDP stream has another driver."""
    channel = "aeron:udp?endpoint=127.0.0.1:23307"
    processes.driver(name="remote")
    processes.driver()
    processes.archive()
    processes.client("feed", "publish", channel, STREAM, 5, driver="remote")
    processes.client("recorder", "record", channel, STREAM, BEGIN_S, "REMOTE")
    processes.client("desk", "read", channel, STREAM, 1000)
    yield BEGIN_S


def recording_stopped(processes: Processes) -> Iterator[float]:
    processes.driver()
    processes.archive()
    processes.client("recorder", "record", IPC, STREAM, BEGIN_S)
    feed(processes)
    yield BEGIN_S


def driver_disk_full(processes: Processes) -> Iterator[float]:
    """The driver's file system has 128 MiB."""
    processes.driver()
    feed(processes)
    yield BEGIN_S


def disk_full(processes: Processes) -> Iterator[float]:
    """The archive's file system has 64 MiB."""
    processes.driver()
    processes.archive("low.storage.space.threshold=1048576", at=processes.directory / "disk")
    processes.client("recorder", "record", IPC, STREAM, 0)
    feed(processes, 40)
    yield BEGIN_S


def recorder_behind(processes: Processes) -> Iterator[float]:
    """The archive runs for 0.1 s of each 7 s."""
    channel = "aeron:ipc?term-length=16m"
    processes.driver()
    processes.archive("segment.file.length=16777216")
    processes.client("recorder", "record", channel, STREAM, 0)
    feed(processes, 20, channel)
    # Scrapes each 15 s must not always be at the same time of a turn.
    for at in range(BEGIN_S, LENGTH_S, 7):
        yield at
        processes.signal("journal", signal.SIGSTOP)
        yield at + 6.9
        processes.signal("journal", signal.SIGCONT)


def segment_damaged(processes: Processes) -> Iterator[float]:
    """A byte of a segment file changes. The archive reads its segments each second."""
    processes.driver()
    processes.archive("scrub.rate=100000000", "scrub.interval=1s")
    processes.client("recorder", "record", IPC, STREAM, 0)
    feed(processes, 10)
    yield BEGIN_S
    with (processes.directory / "journal" / "0-0.rec").open("r+b") as file:
        file.seek(10 * 1024 + 6)
        file.write(b"\xff")


def copies_failing(processes: Processes) -> Iterator[float]:
    """Nothing listens at the address of the object storage."""
    processes.driver()
    credentials = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    away = ("objects.url=s3://bucket/prefix", "objects.endpoint=http://127.0.0.1:9")
    processes.archive(*away, environment=credentials)
    processes.client("recorder", "record", IPC, STREAM, 0)
    feed(processes, 20)
    yield BEGIN_S


def lookup_slow(processes: Processes) -> Iterator[float]:
    """A lookup counts as slow from 10 us on, so that each lookup of a client does."""
    processes.driver("driver.name.resolver.threshold=10us")
    feed(processes)
    processes.client("orders", "unknown", BEGIN_S)
    yield BEGIN_S


def counters_low(processes: Processes) -> Iterator[float]:
    """A client adds nearly as many counters as there is room for."""
    processes.driver("counters.buffer.length=1048576")
    feed(processes)
    processes.client("orders", "counters", 7900, BEGIN_S)
    yield BEGIN_S


def neighbor_killed(processes: Processes) -> Iterator[float]:
    """The only driver that knows names of other drivers is killed."""
    supplier = "name.resolver.supplier=driver"
    local = ("driver.resolver.interface=127.0.0.1:23305", "driver.resolver.bootstrap.neighbor=127.0.0.1:23304")
    other = ("driver.resolver.interface=127.0.0.1:23304", "driver.resolver.name=names")
    processes.driver(supplier, *other, name="names")
    processes.driver(supplier, "driver.resolver.name=quotes", *local)
    feed(processes)
    # Late, so that an alarm about living neighbors would fire before.
    yield 3 * BEGIN_S
    processes.signal("names", signal.SIGKILL)


SCENARIOS: dict[str, Callable[[Processes], Iterator[float]]] = {
    each.__name__: each
    for each in (
        healthy,
        driver_killed,
        archive_killed,
        conductor_stalled,
        conductor_paused,
        reader_stuck,
        receiver_stuck,
        receiver_missing,
        reader_slow,
        loss,
        retransmit_overflow,
        client_killed,
        claim_abandoned,
        errors,
        recording_failed,
        recording_released,
        recording_stopped,
        recording_of_image_stopped,
        disk_full,
        driver_disk_full,
        recorder_behind,
        segment_damaged,
        copies_failing,
        lookup_slow,
        counters_low,
        neighbor_killed,
    )
}


def run(name: str, raw: Path) -> None:
    """Runs a scenario, and writes all scrapes into a file of the directory `raw`."""
    directory = Path(tempfile.mkdtemp(prefix=f"aeron-{name}-", dir="/dev/shm"))
    processes = Processes(directory)
    with ExitStack() as stack:
        stack.callback(processes.end)
        archive = directory / ("disk" if name == "disk_full" else "journal")
        if name == "disk_full":
            archive.mkdir()
            mount(archive, "64m", stack)
        if name == "driver_disk_full":
            mount(directory, "128m", stack)
        failure = SCENARIOS[name](processes)
        # The processes start before the first scrape.
        failure = chain([next(failure)], failure)
        seconds = HEALTHY_S if name == "healthy" else LENGTH_S
        texts = record(processes, failure, seconds, archive if "journal" in processes.running else None)
    raw_file(raw, name).write_text("\0".join(texts))
    print(name, flush=True)


def mount(directory: Path, size: str, stack: ExitStack) -> None:
    """Mounts a small file system until the end of the scenario. Only root can."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(directory)], check=True)
    stack.callback(subprocess.run, ["umount", "--lazy", str(directory)], check=True)


def raw_file(raw: Path, name: str) -> Path:
    return raw / f"{name}.raw"


def pack(name: str, raw: Path) -> None:
    """Writes the series of a scenario that the alarms need."""
    begin, *texts = raw_file(raw, name).read_text().split("\0")
    text = series.to_text(texts, series.metrics_of_rules(), float(begin))
    about = (SCENARIOS[name].__doc__ or name.replace("_", " ").capitalize() + ".").splitlines()[0]
    RECORDED.mkdir(exist_ok=True)
    head = f"# Recorded by tests/alarms/record.py: one sample each second. {about}\n"
    (RECORDED / f"{name}.txt").write_text(head + text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(SCENARIOS), help="scenarios; all if there is no name")
    parser.add_argument("--raw", type=Path, help="directory that keeps all scrapes, for tools/dashboard_pictures.py")
    parser.add_argument("--pack", action="store_true", help="read the scrapes of an earlier run from --raw")
    options = parser.parse_args()
    raw = options.raw or Path(tempfile.mkdtemp())
    if not options.pack:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for done in [pool.submit(run, name, raw) for name in options.names]:
                done.result()
    for name in options.names:
        pack(name, raw)


if __name__ == "__main__":
    main()
