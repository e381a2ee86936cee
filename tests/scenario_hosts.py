"""Two simulated hosts for scenarios. They are network namespaces, which share the file system and which only root can
make."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=10)


@contextmanager
def namespaces() -> Iterator[tuple[str, str]]:
    """Yields the names of two new namespaces, which have no connection."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("network namespaces need root and the command `ip`")
    names = [f"aeron-test-{os.getpid()}-{side}" for side in "ab"]
    with ExitStack() as stack:
        for name in names:
            ip("netns", "add", name)
            stack.callback(ip, "netns", "del", name)
        yield names[0], names[1]


@contextmanager
def two_namespaces() -> Iterator[tuple[str, str]]:
    """Yields the names of two connected namespaces with the addresses 10.77.1.1 and 10.77.1.2."""
    with namespaces() as names:
        ip("-n", names[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", names[1])
        for number, name in enumerate(names, start=1):
            ip("-n", name, "addr", "add", f"10.77.1.{number}/24", "dev", "cable")
            for device in ("cable", "lo"):
                ip("-n", name, "link", "set", device, "up")
        yield names
