"""Source processes that tests kill at a test hook or at any time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import aeron
from hooks import pause_at
from live.streams import numbered

_PROGRAM = Path(__file__).with_name("query.py")


class SourceProcess:
    """A query in a separate process. With `point`, such as `appended:3`, the process stops at that test hook."""

    def __init__(self, checkpoint: Path, options: dict[str, object], point: str | None = None) -> None:
        self.reached = checkpoint.with_name("reached")
        self.reached.unlink(missing_ok=True)
        environment = dict(os.environ, PYTHONPATH=str(_PROGRAM.parent.parent))
        if point is not None:
            environment |= pause_at(f"{point}:{self.reached}")
        checkpoint.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(_PROGRAM), str(checkpoint), json.dumps(options)]
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)

    def wait_until_reached(self, timeout: float = 30.0) -> None:
        """Waits until the process has stopped at its test hook."""
        deadline = time.monotonic() + timeout
        while not self.reached.exists():
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < deadline, "the test hook was not reached"
            time.sleep(0.005)

    def kill(self) -> None:
        """Kills the process with SIGKILL."""
        self.end(signal.SIGKILL)

    def end(self, number: signal.Signals) -> float:
        """Sends a signal. Returns the seconds until the process ended."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.communicate(timeout=20)
        return time.monotonic() - began


class Publisher:
    """Publishes numbered messages until `stop`, as fast as `per_second` and the subscribers allow."""

    def __init__(self, publication: aeron.ExclusivePublication, *, size: int = 8, per_second: int = 5000) -> None:
        self.count = 0
        self._publication, self._size, self._pause = publication, size, 10 / per_second
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """Stops publishing. Returns the number of published messages."""
        self._is_stopped.set()
        self._thread.join()
        return self.count

    def _run(self) -> None:
        while not self._is_stopped.is_set():
            if self._publication.offer(numbered(self.count, self._size)) > 0:
                self.count += 1
            elif self._is_stopped.wait(0.001):
                break
            if self.count % 10 == 0:
                time.sleep(self._pause)
