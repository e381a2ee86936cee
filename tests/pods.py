"""Pods without a container tool: processes with namespaces of their own that share a file system in memory.

As in a pod of Kubernetes with an `emptyDir` in memory, each container has its own process ids, mounts and network. It
has its own limit of memory if this process may change control groups.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

MIB = 1 << 20
_VERSION_1 = Path("/sys/fs/cgroup/memory")
_VERSION_2 = Path("/sys/fs/cgroup")
# Other users than root need a namespace of users, in which they are root.
_MAKE_USER = ("--user", "--map-root-user") if os.geteuid() else ()
_JOIN_USER = ("--user", "--preserve-credentials") if os.geteuid() else ()
_NEW_NAMESPACES = ("--fork", "--pid", "--kill-child", "--mount", "--mount-proc", "--net", "--ipc")


class Container:
    """A process that is number 1 in its namespaces. Leaving the block kills it."""

    def __init__(self, pod: int, group: MemoryGroup | None, *command: str, **environment: str) -> None:
        join = f"echo 0 >{group.path}/cgroup.procs; " if group is not None else ""
        self._outer = subprocess.Popen(
            [
                *("nsenter", "--target", str(pod), *_JOIN_USER, "--mount", "--"),
                *("unshare", *_NEW_NAMESPACES, "sh", "-c", f'{join}ip link set lo up; exec "$@"', "sh", *command),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.group = group

    @property
    def pid(self) -> int:
        """Id of process 1 of the container in the namespace of this process. Waits until there is one."""
        # `nsenter` becomes `unshare`, which has one child.
        file = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children")
        deadline = time.monotonic() + 10
        while not (text := file.read_text()):
            assert time.monotonic() < deadline, "the container did not start, or has ended"
            time.sleep(0.001)
        return int(text)

    def line(self) -> str:
        """Waits for the next line of the standard output."""
        assert self._outer.stdout is not None
        return self._outer.stdout.readline().rstrip("\n")

    def execute(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a command inside the container, as the probe of a supervisor does."""
        inside = ("nsenter", "--target", str(self.pid), *_JOIN_USER, "--pid", "--mount", "--net", "--ipc", "--")
        return subprocess.run(
            [*inside, *command],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            env={**os.environ, **environment},
        )

    def end(self, number: int) -> int:
        """Sends a signal to process 1. Returns its exit status, as :meth:`wait` does."""
        os.kill(self.pid, number)
        return self.wait()

    def wait(self) -> int:
        """Waits for the end of process 1. Returns its exit status, which `unshare` reports as 1 after a kill."""
        return self._outer.wait(20)

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *_: object) -> None:
        self._outer.kill()  # with `--kill-child`, process 1 and so all processes of the container end too
        self._outer.wait()
        assert self._outer.stdout is not None
        self._outer.stdout.close()


class MemoryGroup:
    """A control group with a limit of memory, in the version of this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def shared(self) -> int:
        """Returns the bytes of files in memory that count against the limit."""
        text = (self.path / "memory.stat").read_text()
        return int(dict(line.split() for line in text.splitlines())["shmem"])

    def kills(self) -> int:
        """Returns the number of processes that the kernel has killed because of the limit."""
        version_1 = self.path / "memory.oom_control"
        text = (version_1 if version_1.exists() else self.path / "memory.events").read_text()
        return int(dict(line.split() for line in text.splitlines())["oom_kill"])


class Pod:
    """Containers that share `/dev/shm`. `python` is the command of this Python with this package."""

    python = (sys.executable, "-P")

    def __init__(self, holder: int, stack: ExitStack) -> None:
        self.holder, self._stack, self._count = holder, stack, 0

    def start(self, *command: str, memory_mib: int | None = None, **environment: str) -> Container:
        """Starts a container with `python` and the given arguments."""
        self._count += 1
        group = None
        if memory_mib is not None:
            group = self._stack.enter_context(_memory_group(f"aeron-test-{os.getpid()}-{self._count}", memory_mib))
        return self._stack.enter_context(Container(self.holder, group, *self.python, *command, **environment))


@contextmanager
def pod(shared_mib: int) -> Iterator[Pod]:
    """Yields a pod whose `/dev/shm` is a new file system of `shared_mib` MiB.

    Without the permission to make namespaces, the test is skipped. In CI, it fails.
    """
    hold = f"mount -t tmpfs -o size={shared_mib}m pod /dev/shm && echo ready && exec cat"
    with subprocess.Popen(
        ["unshare", *_MAKE_USER, "--mount", "sh", "-c", hold],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stderr is not None
        probe = [
            "nsenter",
            "--target",
            str(holder.pid),
            *_JOIN_USER,
            "--mount",
            "--",
            "unshare",
            *_NEW_NAMESPACES,
            "true",
        ]
        problem = "" if holder.stdout.readline() else holder.stderr.read()
        problem = problem or subprocess.run(probe, capture_output=True, text=True, check=False).stderr
        if problem:
            holder.kill()
            reason = f"namespaces are not permitted: {problem.strip()}"
            if os.environ.get("CI"):
                pytest.fail(f"tests of containers must not be skipped in CI: {reason}")
            pytest.skip(reason)
        with ExitStack() as stack:
            stack.callback(holder.kill)
            yield Pod(holder.pid, stack)


@contextmanager
def _memory_group(name: str, limit_mib: int) -> Iterator[MemoryGroup | None]:
    """Yields a new control group, or `None` if this machine lets nobody make one."""
    is_version_1 = (_VERSION_1 / "memory.limit_in_bytes").exists()
    parent, limit = (_VERSION_1, "memory.limit_in_bytes") if is_version_1 else (_VERSION_2, "memory.max")
    path = parent / name
    try:
        path.mkdir()
    except OSError:
        yield None
        return
    try:
        if (path / limit).exists():
            (path / limit).write_text(str(limit_mib * MIB))
            # Otherwise a machine with swap moves pages there, and the limit kills nothing.
            for name_of_swap, value in (("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", limit_mib * MIB)):
                if (path / name_of_swap).exists():
                    (path / name_of_swap).write_text(str(value))
            yield MemoryGroup(path)
        else:
            yield None
    finally:
        deadline = time.monotonic() + 10
        while True:  # the kernel removes killed processes a moment later
            try:
                path.rmdir()
                break
            except OSError:
                assert time.monotonic() < deadline, f"{path} has processes"
                time.sleep(0.01)
