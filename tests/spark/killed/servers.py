"""A driver and an archive in processes of their own, to be killed and started again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import eventually

import aeron

PATIENCE_S = 60

DRIVER = """
import signal, sys, aeron
with aeron.MediaDriver(dir=sys.argv[1], ipc_term_buffer_length=1 << 20, client_liveness_timeout_ns=2_000_000_000):
    signal.pause()
"""

# Tries again after an error, because the driver may still be starting. Until the driver runs, its directory may contain
# files of a killed driver.
ARCHIVE = """
import signal, sys, time, aeron

def start():
    while True:
        try:
            settings = {"segment_file_length": 128 * 1024, "low_storage_space_threshold": 0}
            return aeron.Archive(sys.argv[2], sys.argv[1], **settings)
        except aeron.AeronError as error:
            print(error, file=sys.stderr)
            time.sleep(0.1)

with start():
    signal.pause()
"""


class Servers:
    """The processes, and the directories that they share."""

    def __init__(self, place: Path) -> None:
        self.dir = place / "driver"
        self.archive_directory = place / "archive"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.start("driver")
        self.start("archive")

    def start(self, name: str) -> None:
        """Starts the driver or the archive. A killed predecessor may have left its files."""
        program = {"driver": DRIVER, "archive": ARCHIVE}[name]
        self.processes[name] = subprocess.Popen(
            [sys.executable, "-c", program, str(self.dir), str(self.archive_directory)]
        )

    def kill(self, name: str) -> None:
        """Kills a process with SIGKILL."""
        self.processes[name].kill()
        self.processes[name].wait(10)

    def close(self) -> None:
        """Kills both processes."""
        for name in self.processes:
            self.kill(name)

    @contextmanager
    def connected(self) -> Iterator[aeron.AeronArchive]:
        """Waits for driver and archive, and connects a client."""
        found: list[aeron.Aeron] = []
        eventually(lambda: found.extend(self._clients()) or found, PATIENCE_S)
        with found[0] as client, aeron.connect_archive(client) as archive:
            yield archive

    def _clients(self) -> list[aeron.Aeron]:
        """Returns a list with a client. The list is empty while the driver or the archive does not respond yet."""
        client = None
        try:
            client = aeron.connect(self.dir)
            aeron.connect_archive(client, message_timeout=1).close()
        except aeron.AeronError:
            # The client may have found the files of the killed driver.
            if client is not None:
                client.close()
            return []
        return [client]
