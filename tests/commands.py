"""Runs the ``aeron`` command in this process, or in a process of its own if a test sends signals or kills it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner, Result

from aeron.cli.commands import aeron

SHARED_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


def run(*arguments: object, input: str | None = None, **environment: str | None) -> Result:
    """Runs a command in this process. The result has standard output and standard error separately."""
    texts = [str(argument) for argument in arguments]
    return CliRunner(env=environment).invoke(aeron, texts, input=input, prog_name="aeron")


@contextmanager
def driver_directory() -> Iterator[Path]:
    """Yields the path of a directory for a driver, and deletes the directory at the end of the block.

    The driver must leave no files beside the directory, except saved error logs.
    """
    with tempfile.TemporaryDirectory(prefix="aeron-test-cli-", dir=SHARED_MEMORY) as parent:
        directory = Path(parent) / "aeron"
        yield directory
        if directory.exists():
            shutil.rmtree(directory)
        # A driver saves the error log of a killed predecessor in a file beside the directory.
        assert all(path.name.endswith("-error.log") for path in Path(parent).iterdir())


class Command:
    """An ``aeron`` command in a process of its own. Every wait has a limit, and leaving the block kills the process.

    The process writes its standard output to the file descriptor `output`. The default is a file that
    :meth:`output` reads. If `namespace` is given, the process runs in that network namespace.
    """

    def __init__(
        self, *arguments: object, output: int | None = None, namespace: str | None = None, **environment: str
    ) -> None:
        place = ["ip", "netns", "exec", namespace] if namespace else []
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AERON_")}
        self._output, self._errors = _Output(), _Output()
        self._process = subprocess.Popen(
            [*place, sys.executable, "-m", "aeron", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=self._output.file if output is None else output,
            stderr=self._errors.file,
            # Tests compare the output with that of Aeron's programs, which print no log.
            env={**inherited, "AERON_LOG_LEVEL": "off", **environment},
        )
        self.pid = self._process.pid

    def output(self) -> str:
        """Returns the standard output so far. After the block, this is the whole output."""
        return self._output.text()

    def errors(self) -> str:
        """Returns the standard error so far. After the block, this is the whole output."""
        return self._errors.text()

    def wait_for(self, text: str, timeout: float = 15) -> None:
        """Waits until the process has printed `text`."""
        deadline = time.monotonic() + timeout
        while True:
            # The status is read before the output. If the process has ended, the output is therefore complete.
            status = self._process.poll()
            if text in self.output():
                return
            assert status is None, f"ended with {status}:\n{self.output()}{self.errors()}"
            assert time.monotonic() < deadline, f"no {text!r} within {timeout} s:\n{self.output()}{self.errors()}"
            time.sleep(0.005)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the process."""
        self._process.send_signal(number)

    def end(self, timeout: float = 15) -> int:
        """Waits for the end of the process. Returns the exit status."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s:\n{self.output()}{self.errors()}") from None

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()
        self._errors.close()


class _Output:
    """Output of a process. Until `close` it is a temporary file; `close` keeps the text of the file in memory."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115
        self._kept: str | None = None

    def text(self) -> str:
        return os.pread(self.file.fileno(), 1 << 20, 0).decode() if self._kept is None else self._kept

    def close(self) -> None:
        self._kept = self.text()
        self.file.close()


@contextmanager
def running_driver(
    directory: Path, *arguments: object, namespace: str | None = None, **environment: str
) -> Iterator[Command]:
    """Starts a driver in its own process, and waits until clients can connect."""
    with Command("driver", "--dir", directory, *arguments, namespace=namespace, **environment) as driver:
        deadline = time.monotonic() + 15
        while run("info", "--dir", directory, "-t", 100, "-P").stdout.strip() != str(driver.pid):
            assert time.monotonic() < deadline, driver.errors()
        yield driver
