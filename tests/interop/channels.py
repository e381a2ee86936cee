"""Channels for tests: each gets a port of its own, so that no stream meets another one's datagrams."""

import os
import random
import socket

# Below what the system gives to sockets that ask for no port, as drivers open such sockets before they use this one.
_PORTS = range(25_000, 32_000)
_taken = set()
_choose = random.Random(os.getpid())


def free_port(host="127.0.0.1"):
    """A UDP port that no socket has at the moment, and that this function has not answered before."""
    while True:
        port = _choose.choice(_PORTS)
        if port not in _taken and _is_free(host, port):
            _taken.add(port)
            return port


def _is_free(host, port):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as found:
        try:
            found.bind((host, port))
        except OSError:
            return False
    return True


def unicast(parameters=""):
    return f"aeron:udp?endpoint=127.0.0.1:{free_port()}{parameters}"


def unicast_6(parameters=""):
    return f"aeron:udp?endpoint=[::1]:{free_port('::1')}{parameters}"


def multicast(parameters=""):
    return f"aeron:udp?endpoint=224.20.30.41:{free_port()}|interface=localhost{parameters}"


def dynamic(parameters=""):
    """The channels of the publication and of each subscription of a dynamic multi-destination stream."""
    control = f"aeron:udp?control=127.0.0.1:{free_port()}|control-mode=dynamic"
    return control + parameters, f"{control}|endpoint=127.0.0.1:0"
