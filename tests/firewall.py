"""A network between two hosts with a firewall, for tests as root. It needs no program for packet filters.

The hosts are network namespaces. Each has a TUN device, and a thread of the test carries packets between the devices.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fcntl import ioctl
from pathlib import Path

import pytest

from scenario_hosts import ip, namespaces

OUTSIDE_ADDRESS, INSIDE_ADDRESS = "10.77.3.1", "10.77.3.2"
_MAX_PACKET_LENGTH = 65536
_TUN = "/dev/net/tun"
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 1, 0x1000

Flow = tuple[int, bytes, bytes]
"""Protocol, and address with port of the sender and of the receiver."""
_CARRIED = (socket.IPPROTO_UDP, socket.IPPROTO_TCP)


@dataclass
class Firewall:
    """Two hosts. Packets reach `inside` only if they respond to a flow that `inside` began."""

    outside: str
    """Namespace with the address `OUTSIDE_ADDRESS`."""
    inside: str
    """Namespace with the address `INSIDE_ADDRESS`."""
    refused: list[Flow] = field(default_factory=list)
    """Flow of each packet of UDP or TCP that was not let in."""

    def run(self, outside: int, inside: int, end: int) -> None:
        """Carries packets between the two devices, until there is something to read from `end`."""
        begun: set[Flow] = set()
        while end not in (readable := select.select([outside, inside, end], [], [])[0]):
            for device in readable:
                packet = os.read(device, _MAX_PACKET_LENGTH)
                # Other packets are dropped: the kernel searches for routers with IPv6, and reports closed ports with
                # ICMP.
                if packet[0] >> 4 != 4 or packet[9] not in _CARRIED:
                    continue
                protocol, source, destination = flow = flow_of(packet)
                if device == inside:
                    begun.add((protocol, destination, source))
                    os.write(outside, packet)
                elif flow in begun:
                    os.write(inside, packet)
                else:
                    self.refused.append(flow)


def flow_of(packet: bytes) -> Flow:
    """Returns the flow of a packet of IPv4 with UDP or TCP."""
    ports = 4 * (packet[0] & 15)
    source, destination = packet[ports : ports + 2], packet[ports + 2 : ports + 4]
    return packet[9], packet[12:16] + source, packet[16:20] + destination


@contextmanager
def two_hosts_with_a_firewall() -> Iterator[Firewall]:
    """Yields two connected namespaces, and the firewall between them."""
    if not Path(_TUN).exists():
        pytest.skip(f"the firewall needs {_TUN}")
    with namespaces() as (outside, inside), ExitStack() as stack:
        firewall = Firewall(outside, inside)
        devices = []
        for name, address, peer in (
            (outside, OUTSIDE_ADDRESS, INSIDE_ADDRESS),
            (inside, INSIDE_ADDRESS, OUTSIDE_ADDRESS),
        ):
            devices.append(device := _device(name))
            stack.callback(os.close, device)
            ip("-n", name, "addr", "add", address, "peer", peer, "dev", "cable")
            for link in ("cable", "lo"):
                ip("-n", name, "link", "set", link, "up")
        end, ending = os.pipe()
        stack.callback(os.close, end)
        thread = threading.Thread(target=firewall.run, args=(*devices, end))
        thread.start()
        stack.callback(thread.join)
        stack.callback(os.close, ending)
        yield firewall


def _device(namespace: str) -> int:
    """Makes the TUN device `cable` in a namespace. Returns its file descriptor."""
    device = os.open(_TUN, os.O_RDWR)
    # The kernel replaces `%d` by a free number.
    request = ioctl(device, _TUNSETIFF, struct.pack("16sH14x", b"aeron%d", _IFF_TUN | _IFF_NO_PI))
    made = request[:16].rstrip(b"\0").decode()
    ip("link", "set", made, "netns", namespace, "name", "cable")
    return device
