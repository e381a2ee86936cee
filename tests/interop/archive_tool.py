"""The real `ArchiveTool` on an archive directory."""

import re
import subprocess

from interop import toolchain

_TIMEOUT_S = 60


class ArchiveTool:
    """Runs the tool's commands. Only `verify` changes the directory: it writes its result into the catalog."""

    def __init__(self, directory):
        self.directory = directory

    def run(self, *arguments, answer="n"):
        """The result of one command. Each of its questions gets the same response."""
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
        """The output of a command that ends with status 0."""
        result = self.run(*arguments, answer=answer)
        assert result.returncode == 0, f"{arguments}: {result.stdout[-2000:]}{result.stderr[-2000:]}"
        return result.stdout

    def show(self):
        """Reads the directory with each of the read-only commands.

        The tool cannot dump a catalog with a deleted entry, not even of the real archive; a test shows that.
        """
        self.succeed("describe")
        if "DELETED" not in self.succeed("describe-all"):
            self.succeed("dump")

    def verify(self, answer="n", checksum=None):
        """Verifies every frame, and its checksum if it is given. Returns whether the tool asked about a last frame."""
        arguments = ("-checksum", checksum) if checksum else ()
        shown = self.succeed("verify", "-a", *arguments, answer=answer)
        assert "ERR" not in shown
        return "straddles a page boundary" in shown

    def positions(self):
        """Start and stop position of each recording, by its id."""
        shown = self.succeed("describe-all")
        found = re.findall(r"recordingId=(\d+)\|.*?startPosition=(-?\d+)\|stopPosition=(-?\d+)", shown)
        return {int(id): (int(start), int(stop)) for id, start, stop in found}
