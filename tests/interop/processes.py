"""Processes for tests. Every wait for a process has a limit, and a process that does not end in time is killed."""

import queue
import signal
import subprocess
import threading
from contextlib import suppress

_STOP_TIMEOUT_S = 20
# A killed process may end late, for example while it waits for a busy disk.
_REAP_TIMEOUT_S = 60


class Process:
    """A child process. Its standard error is written to a file, and `output()` returns the text."""

    def __init__(self, command, *, log, environment=None, **options):
        self.command = [str(part) for part in command]
        self._log = log
        with open(log, "wb") as errors:
            self._popen = subprocess.Popen(self.command, stderr=errors, env=environment, **options)
        self.pid = self._popen.pid

    @property
    def exit_code(self):
        """Exit code of the process, or `None` while the process runs."""
        return self._popen.poll()

    def kill(self):
        """Kills the process with SIGKILL."""
        self._popen.kill()
        self._popen.wait(_REAP_TIMEOUT_S)
        self._close_pipes()

    def signal(self, number):
        self._popen.send_signal(number)

    def pause(self):
        """Stops the process until `resume` or `kill`."""
        self._popen.send_signal(signal.SIGSTOP)

    def resume(self):
        self._popen.send_signal(signal.SIGCONT)

    def terminate(self, timeout_s=_STOP_TIMEOUT_S):
        """Sends SIGTERM, and returns the exit code. If the process is late, kills it and raises an error."""
        self._popen.terminate()
        return self.wait(timeout_s)

    def wait(self, timeout_s):
        """Waits for the end of the process, and returns the exit code.

        If the process does not end in time, kills it and raises an error.
        """
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.command} did not end within {timeout_s} s\n{self.output()}") from None
        finally:
            self._close_pipes()

    def output(self):
        """Returns the standard error of the process."""
        return self._log.read_text(errors="replace")

    def _close_pipes(self):
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe:
                pipe.close()


class LineProcess(Process):
    """A child process that responds to each line with a line."""

    def __init__(self, command, *, log, environment=None):
        super().__init__(
            command,
            log=log,
            environment=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._lines = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def write(self, line):
        try:
            self._popen.stdin.write(line + "\n")
        except (BrokenPipeError, ValueError) as error:
            raise AssertionError(f"{self.command} has ended\n{self.output()}") from error

    def finish(self, grace_s):
        """Closes the standard input, which ends the process. Kills the process if it has not ended after `grace_s`."""
        with suppress(BrokenPipeError):
            self._popen.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(grace_s)
        self.kill()

    def read(self, timeout_s):
        """Returns the next line. If there is no line in time, raises an error with the process's standard error."""
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise AssertionError(f"{self.command} did not respond within {timeout_s} s\n{self.output()}") from None
        if not line:
            raise AssertionError(f"{self.command} ended with exit code {self._popen.wait(1)}\n{self.output()}")
        return line

    def _read(self):
        try:
            for line in self._popen.stdout:
                self._lines.put(line)
        except ValueError:  # kill() in another thread has closed the pipe
            pass
        self._lines.put("")
