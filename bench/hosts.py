"""Hosts on which processes run. They are this host, or two network namespaces that are connected."""

import os
import socket
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Host:
    """A host: its address, and the prefix of a command that runs on it."""

    address: str
    place: tuple = ()


HERE = Host("localhost")


@contextmanager
def two_hosts():
    """Yields two namespaces that a pair of veth devices connects. Needs root."""
    names = [f"aeron-bench-{os.getpid()}-{side}" for side in "ab"]
    with ExitStack() as stack:
        for name in names:
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "del", name)
        _ip("-n", names[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", names[1])
        for number, name in enumerate(names, start=1):
            _ip("-n", name, "addr", "add", f"10.77.2.{number}/24", "dev", "cable")
            for device in ("cable", "lo"):
                _ip("-n", name, "link", "set", device, "up")
        yield [Host(f"10.77.2.{i}", ("ip", "netns", "exec", name)) for i, name in enumerate(names, start=1)]


def free_port():
    """Returns a port that no UDP socket of this host uses now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def free_tcp_ports(count):
    """Returns `count` different ports that no TCP socket of this host uses now."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=10)
