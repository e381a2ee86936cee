"""Runs the scenarios of `docs/archive.md` with the commands of that page. One scenario has one driver. The other has
three drivers, and runs twice: on one host, and on two hosts.

The two hosts are network namespaces, which only root can make.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commands import Command, driver_directory, running_driver
from ports import free_port
from scenario_hosts import two_namespaces

EXAMPLES = Path(__file__).parent.parent / "examples" / "archive"
SETTINGS = {"AERON_THREADING_MODE": "SHARED", "AERON_TERM_BUFFER_LENGTH": "64k", "AERON_IPC_TERM_BUFFER_LENGTH": "64k"}
# Clients can reach the archive only over IPC. An archive must have a replication channel, although no test replicates.
LOCAL = (
    "-Daeron.archive.control.channel.enabled=false",
    "-Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0",
)
SEGMENTS = "-Daeron.archive.segment.file.length=64k"
COUNT = 10
MESSAGES = [f"Hello World! {number}" for number in range(COUNT)]


@contextmanager
def running_archive(driver: Path, archive: Path, *options: str, namespace: str | None = None) -> Iterator[Command]:
    """Starts `aeron archive run --with-driver`, and waits until clients can connect."""
    arguments = ("--dir", driver, "--archive-dir", archive, "--with-driver", SEGMENTS, *options)
    with Command("archive", "run", *arguments, namespace=namespace, **SETTINGS) as process:
        deadline = time.monotonic() + 20
        while not is_ready(archive, process.pid):
            assert time.monotonic() < deadline, process.errors()
            time.sleep(0.01)
        yield process


def is_ready(archive: Path, pid: int) -> bool:
    """Returns whether the mark file has a version and the process id of the archive."""
    try:
        mark = (archive / "archive-mark.dat").read_bytes()
    except OSError:
        return False
    return len(mark) > 40 and mark[8:12] != bytes(4) and int.from_bytes(mark[32:40], "little") == pid


def example(name: str, *arguments: object, namespace: str | None = None) -> str:
    """Runs an example program to its end, and returns its output."""
    place = ["ip", "netns", "exec", namespace] if namespace else []
    command = [*place, sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, arguments)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def content(archive: Path) -> list[str]:
    """Returns the names of the files in the archive's directory."""
    return sorted(path.name for path in archive.iterdir())


def replayed(output: str) -> list[str]:
    return re.findall(r"^(.*) up to position \d+$", output, re.MULTILINE)


OWN = ["archive-mark.dat", "archive.catalog", "archive.lock"]


def test_an_archive_on_the_same_host_records_and_replays(tmp_path: Path) -> None:
    """07, sections 1.2 and 6.5: one process runs driver and archive, and the recordings remain after the process
    ends"""
    archive = tmp_path / "archive"
    with driver_directory() as driver:
        with running_archive(driver, archive, *LOCAL) as process:
            assert content(archive) == OWN
            output = example("recorded_publisher", "--dir", driver, "-m", COUNT)
            assert "recording 0 is at position 640" in output
            assert content(archive) == ["0-0.rec", *OWN, "index-0-0.idx"]
            assert replayed(example("replayed_subscriber", "--dir", driver)) == MESSAGES
            assert "recording 1 is at" in example("recorded_publisher", "--dir", driver, "-m", 2)
            assert content(archive) == ["0-0.rec", "1-0.rec", *OWN, "index-0-0.idx", "index-1-0.idx"]
            process.send(signal.SIGTERM)
            assert process.end() == signal.SIGTERM
        assert content(archive) == ["0-0.rec", "1-0.rec", *OWN, "index-0-0.idx", "index-1-0.idx"]
        with running_archive(driver, archive, *LOCAL) as process:
            assert replayed(example("replayed_subscriber", "--dir", driver, "--recording", 0)) == MESSAGES
            assert replayed(example("replayed_subscriber", "--dir", driver)) == MESSAGES[:2]
            process.send(signal.SIGTERM)
            process.end()


@pytest.fixture(params=["one host", "two hosts"])
def places(request: pytest.FixtureRequest) -> Iterator[tuple[tuple[str | None, str], tuple[str | None, str]]]:
    """Yields namespace and address of two hosts: the archive's host, and the host of publisher and subscriber."""
    if request.param == "one host":
        yield (None, "127.0.0.1"), (None, "127.0.0.1")
        return
    with two_namespaces() as (first, second):
        yield (first, "10.77.1.1"), (second, "10.77.1.2")


@pytest.mark.slow
def test_an_archive_on_another_host_records_and_replays(
    tmp_path: Path, places: tuple[tuple[str | None, str], tuple[str | None, str]]
) -> None:
    """07, section 1.2: publisher, archive and subscriber each have their own driver, and communicate over UDP"""
    (there, archive_address), (here, address) = places
    archive, any_port = tmp_path / "archive", f"aeron:udp?endpoint={address}:0"
    control = f"aeron:udp?endpoint={archive_address}:{free_port()}"
    remote = ("--control", control, "--response", any_port)
    recorded = f"aeron:udp?endpoint={archive_address}:{free_port()}"
    options = (
        f"-Daeron.archive.control.channel={control}",
        f"-Daeron.archive.replication.channel=aeron:udp?endpoint={archive_address}:0",
    )
    with (
        driver_directory() as archive_driver,
        driver_directory() as publisher_driver,
        driver_directory() as subscriber_driver,
        running_archive(archive_driver, archive, *options, namespace=there),
        running_driver(publisher_driver, namespace=here, **SETTINGS),
        running_driver(subscriber_driver, namespace=here, **SETTINGS),
    ):
        publisher = ("--dir", publisher_driver, "--channel", recorded, *remote, "-m", COUNT)
        assert "recording 0 is at position 640" in example("recorded_publisher", *publisher, namespace=here)
        assert content(archive) == ["0-0.rec", *OWN, "index-0-0.idx"]
        subscriber = ("--dir", subscriber_driver, "--channel", any_port, *remote)
        assert replayed(example("replayed_subscriber", *subscriber, namespace=here)) == MESSAGES
