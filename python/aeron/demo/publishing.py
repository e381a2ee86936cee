"""Starts and controls the publishing process of the demo."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from aeron.demo.patience import STANDSTILL_S
from aeron.demo.plan import Plan, Replay


class Publisher:
    """The publishing process, which waits for :meth:`tell` between its steps. One thread at a time may use this
    object."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def check(self, received: int, what: str) -> None:
        """Raises ``RuntimeError`` if the process has ended. The error text contains `received` and `what`, for example
        "5 trades".
        """
        if (status := self._process.poll()) is not None:
            raise RuntimeError(f"the publisher ended with status {status} after {received:,} {what}")

    def tell(self) -> None:
        """Tells the process to continue: the subscribers are connected, or all trades of a phase were received.

        An ended process is not an error here, because :meth:`check` reports it.
        """
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(b"\n")

    def wait(self) -> None:
        """Waits for the end of the process.

        Raises:
            RuntimeError: the process does not end in time.
        """
        try:
            self._process.wait(STANDSTILL_S)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"the publisher did not end within {STANDSTILL_S:.0f} s") from None


@contextmanager
def publishing(plan: Plan | Replay) -> Iterator[Publisher]:
    """Starts the process that publishes by this plan.

    The end of the block waits for the end of the process. If the block raises, the process is killed.
    """
    command = [sys.executable, "-m", plan.PROGRAM, plan.to_json()]
    # The publisher has a separate process group, so that it gets no Ctrl-C. This process gets Ctrl-C, and ends the
    # publisher.
    with subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, process_group=0) as process:
        try:
            publisher = Publisher(process)
            yield publisher
            publisher.wait()
        finally:
            process.kill()
