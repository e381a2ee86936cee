"""UDP ports for tests: each stream gets one of its own, so that no stream meets another one's datagrams."""

from __future__ import annotations

import itertools
import os
import random
import socket

# These lie below the range from which the system serves sockets that ask for no port: drivers open such sockets too.
_FIRST, _WORKERS, _PORTS_OF_A_WORKER = 12_000, 8, 2_500

# Tests that run at the same time ask for ports of different ranges: a port is free until the test's driver binds it.
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
_low = _FIRST + _worker * _PORTS_OF_A_WORKER
_ports = random.Random(os.getpid()).sample(range(_low, _low + _PORTS_OF_A_WORKER), _PORTS_OF_A_WORKER)
_next = itertools.cycle(_ports)


def free_port(host: str = "127.0.0.1") -> int:
    """Returns a port that no socket has at the moment. The same port comes again after thousands of calls."""
    for port in itertools.islice(_next, len(_ports)):
        if _is_free(host, port):
            return port
    raise OSError(f"all UDP ports of {host} from {_low} to {_low + _PORTS_OF_A_WORKER - 1} are in use")


def two_free_ports() -> int:
    """Returns the first of two successive ports that no socket has at the moment."""
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
