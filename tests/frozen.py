"""Processes that stop responding. SIGSTOP stops a process, and SIGCONT lets it continue."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.conftest import eventually

import aeron
from interop.archives import Archive
from interop.drivers import Driver

_SHARED_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Stops a process during the block. The process continues at the end of the block, unless it was killed."""
    os.kill(pid, signal.SIGSTOP)
    try:
        # The signal stops the threads one by one. A thread that still runs could send a response.
        eventually(lambda: all(_state(task) == "T" for task in Path(f"/proc/{pid}/task").iterdir()))
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _state(task: Path) -> str:
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


@contextmanager
def driver_process(**settings: str) -> Iterator[Driver]:
    """Yields a driver in a process of its own. Settings have the names of the environment variables."""
    with tempfile.TemporaryDirectory(prefix="aeron-test-frozen-", dir=_SHARED_MEMORY) as parent:
        driver = Driver("ours", Path(parent) / "aeron", Path(parent) / "driver.txt", settings)
        try:
            yield driver
        finally:
            driver.remove()


@contextmanager
def archive_process(driver: Driver, stream_id: int = 10, kind: str = "ours") -> Iterator[Archive]:
    """Yields an archive in a process of its own, on the driver. The control stream has this stream id."""
    parent = Path(tempfile.mkdtemp(prefix="aeron-test-frozen-"))
    archive = Archive(kind, driver, parent / "archive", parent / "archive-errors", stream_id)
    try:
        yield archive
    finally:
        archive.remove()
        shutil.rmtree(parent)


def fill_command_buffer(client: aeron.Aeron) -> list[aeron.PendingOperation[aeron.Counter]]:
    """Sends commands until not even a short command has room. Returns the pending operations."""
    pending: list[aeron.PendingOperation[aeron.Counter]] = []
    for label in ("x" * 380, ""):
        with suppress(aeron.AeronError):
            while True:
                pending.append(client.async_add_counter(1001, label))
    return pending
