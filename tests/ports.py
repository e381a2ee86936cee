"""UDP ports for tests. Each stream gets its own port, so that streams do not receive each other's datagrams."""

from __future__ import annotations

import itertools
import os
import random
import socket

# These ports are below the ephemeral range, from which the system chooses a port for a socket that is bound to port 0.
# Drivers open such sockets too, and must not get a port that a test is going to use.
_FIRST, _WORKERS, _PORTS_OF_A_WORKER = 12_000, 8, 2_500

# Tests in different processes use different ranges. Otherwise another process could take a port after `free_port` has
# returned it and before the driver of the test binds it.
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
_low = _FIRST + _worker * _PORTS_OF_A_WORKER
_ports = random.Random(os.getpid()).sample(range(_low, _low + _PORTS_OF_A_WORKER), _PORTS_OF_A_WORKER)
_next = itertools.cycle(_ports)


def free_port(host: str = "127.0.0.1") -> int:
    """Returns a port that no socket uses now. The same port is returned again only after all ports of the range."""
    for port in itertools.islice(_next, len(_ports)):
        if _is_free(host, port):
            return port
    raise OSError(f"all UDP ports of {host} from {_low} to {_low + _PORTS_OF_A_WORKER - 1} are in use")


def two_free_ports() -> int:
    """Returns a port. No socket uses this port or the next port now."""
    while True:
        low = free_port()
        if _is_free("127.0.0.1", low + 1):
            return low


def _is_free(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as found:
        try:
            found.bind((host, port))
        except OSError:
            return False
    return True
