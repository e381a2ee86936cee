"""The publishing process of the demo, as the process that shows it has it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from aeron.demo.plan import Plan, Replay

SILENCE_S = 60.0
"""How long nothing may happen before the demo gives up; a first batch of Spark on a busy machine takes a while."""


class Publisher:
    """The process, which ends each of its phases when it is told to. Serves one thread at a time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def check(self, received: int, what: str) -> None:
        """Raises ``RuntimeError`` if the process has ended; `received` of `what` had come by then."""
        if (status := self._process.poll()) is not None:
            raise RuntimeError(f"the publisher ended with status {status} after {received:,} {what}")

    def tell(self) -> None:
        """Says that all of a phase is here. A process that has ended does not hear it: :meth:`check` tells."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(b"\n")

    def wait(self) -> None:
        """Waits for the end of the process.

        Raises:
            RuntimeError: it does not come.
        """
        try:
            self._process.wait(SILENCE_S)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"the publisher did not end within {SILENCE_S:.0f} s") from None


@contextmanager
def publishing(plan: Plan | Replay) -> Iterator[Publisher]:
    """Starts the process that publishes by this plan. At the end of the block it has ended; an exception kills it."""
    command = [sys.executable, "-m", plan.PROGRAM, plan.to_json()]
    # A process group of its own: Ctrl-C goes to this process alone, which then ends the publisher.
    with subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, process_group=0) as process:
        try:
            publisher = Publisher(process)
            yield publisher
            publisher.wait()
        finally:
            process.kill()
