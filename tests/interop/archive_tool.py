"""Runs the real `ArchiveTool` on an archive directory."""

import re
import subprocess

from interop import toolchain

_TIMEOUT_S = 60


class ArchiveTool:
    """Runs the tool's commands.

    `show` and `positions` change no file. `verify` writes its result into the catalog. `run` and `succeed` run any
    command.
    """

    def __init__(self, directory):
        self.directory = directory

    def run(self, *arguments, answer="n"):
        """Runs one command and returns its result. The tool receives `answer` for each of its questions."""
        command = toolchain.java_command({}, "io.aeron.archive.ArchiveTool", self.directory, *arguments)
        return subprocess.run(
            [str(part) for part in command],
            check=False,
            capture_output=True,
            text=True,
            input=f"{answer}\n" * 20,
            timeout=_TIMEOUT_S,
        )

    def succeed(self, *arguments, answer="n"):
        """Runs a command, which must end with status 0, and returns its output."""
        result = self.run(*arguments, answer=answer)
        assert result.returncode == 0, f"{arguments}: {result.stdout[-2000:]}{result.stderr[-2000:]}"
        return result.stdout

    def show(self):
        """Runs each of the read-only commands. Each must end with status 0.

        The tool cannot dump a catalog with a deleted entry, even if the real archive wrote the catalog. A test checks
        this.
        """
        self.succeed("describe")
        if "DELETED" not in self.succeed("describe-all"):
            self.succeed("dump")

    def verify(self, answer="n", checksum=None):
        """Verifies every frame, with its checksum if `checksum` names the algorithm. Returns whether the tool asked if
        a last frame is complete."""
        arguments = ("-checksum", checksum) if checksum else ()
        shown = self.succeed("verify", "-a", *arguments, answer=answer)
        assert "ERR" not in shown
        return "straddles a page boundary" in shown

    def positions(self):
        """Returns the start and stop position of each recording, by recording id."""
        shown = self.succeed("describe-all")
        found = re.findall(r"recordingId=(\d+)\|.*?startPosition=(-?\d+)\|stopPosition=(-?\d+)", shown)
        return {int(id): (int(start), int(stop)) for id, start, stop in found}
