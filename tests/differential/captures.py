"""Reads the captured sessions of the test vectors. A session is a list of UDP datagrams in the order of their
sending."""

import struct
from dataclasses import dataclass

from differential.cases import VECTORS

_FILE_HEADER, _RECORD_HEADER, _ETHERNET_HEADER, _UDP_HEADER = 24, 16, 14, 8


@dataclass(frozen=True)
class Captured:
    """One captured datagram."""

    source_port: int
    port: int
    payload: bytes


def read(name):
    """Returns the datagrams of a capture."""
    data = (VECTORS / f"{name}.pcap").read_bytes()
    at, datagrams = _FILE_HEADER, []
    while at < len(data):
        (length,) = struct.unpack_from("<8xI", data, at)
        packet = data[at + _RECORD_HEADER : at + _RECORD_HEADER + length]
        udp = _ETHERNET_HEADER + 4 * (packet[_ETHERNET_HEADER] & 0xF)
        datagrams.append(Captured(*struct.unpack_from(">HH", packet, udp), packet[udp + _UDP_HEADER :]))
        at += _RECORD_HEADER + length
    return datagrams
