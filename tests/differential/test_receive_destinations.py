"""Checks which parameters of a destination of a multi-destination subscription have an effect.

In the C driver, only the addresses (`endpoint`, `control`, `interface`) and `ttl` come from the destination. All other
parameters come from the subscription. A destination with `mtu`, `rcv-wnd`, `so-rcvbuf`, `so-sndbuf`,
`response-correlation-id` or `control-mode=response` is refused. If a destination sets another parameter, the driver
ignores it.

The test sends the same SETUP and the same message to each driver. The log, the status messages, the counters and the
socket buffers must be the same.
"""

import os
import re
import shutil
import socket
import struct
import subprocess

import pytest

from differential import wire
from differential.rig import PACE, Socket
from interop import control
from interop.waiting import eventually
from ports import free_port

_SESSION = 77
_TERM_LENGTH = 65536
_METADATA_LENGTH = 512
# Ranges of the log's metadata that differ between drivers: the number of transports, which a timer changes, and the id
# of the image.
_OWN_METADATA = [(140, 144), (256, 264)]
_PAYLOAD = b"\x07" * 64
_GROUP, _CONTROL_GROUP = "224.20.30.41", "224.20.30.42"
_IP_RECVTTL, _IP_TTL = 12, 2
_SUBSCRIBED = [
    "|channel-rcv-ts-offset=0",
    "|media-rcv-ts-offset=8",
    "|so-rcvbuf=256k",
    "|so-sndbuf=64k",
    "|rcv-wnd=64k",
    "|gtag=5",
    "|ttl=9",
    "|group=true",
    "|reliable=false",
    "|tether=false",
    "|rejoin=false",
    "|session-id=77",
    "|untethered-window-limit-timeout=3s|untethered-linger-timeout=4s|untethered-resting-timeout=5s",
]
_OF_DESTINATION = [
    # A destination with one of the other parameters is refused.
    *[options for options in _SUBSCRIBED if not options.startswith(("|so-", "|rcv-wnd"))],
    "|channel-rcv-ts-offset=reserved",
    "|session-id=78",
    "|group=false",
    "|cc=cubic",
    "|nak-delay=5ms",
    "|sparse=true",
    "|eos=false",
    "|fc=min",
    "|alias=x",
    "|tags=4",
    "|stream-id=5",
    "|control-mode=manual",
    "|cc=unknown",
    "|reliable=perhaps",
]
_CASES = [
    ("", ""),
    *[(options, "") for options in _SUBSCRIBED],
    *[("", options) for options in _OF_DESTINATION],
    ("|channel-rcv-ts-offset=0", "|channel-rcv-ts-offset=16"),
    ("|gtag=5", "|gtag=6"),
    ("|ttl=9", "|ttl=7"),
    ("|reliable=false", "|reliable=true"),
]


class Destination:
    """A subscription of one driver with one destination, and the source of its stream."""

    def __init__(self, side, stream, subscribed, options, *, is_multicast):
        self.side, self.stream = side, stream
        self.source = Socket()
        self.port = free_port()
        self.listener = _listener(_CONTROL_GROUP, self.port) if is_multicast else self.source._socket
        self.listener.setsockopt(socket.IPPROTO_IP, _IP_RECVTTL, 1)
        self.to = (_GROUP if is_multicast else "127.0.0.1", self.port)
        interface = "|interface=localhost" if is_multicast else ""
        self.channel = f"aeron:udp?endpoint={self.to[0]}:{self.port}{interface}{options}"
        manual = f"aeron:udp?control-mode=manual{subscribed}"
        ready = side.add(control.ADD_SUBSCRIPTION, control.add_subscription, stream, manual, "ON_SUBSCRIPTION_READY")
        self.subscription = ready.correlation
        self._change(control.ADD_RCV_DESTINATION)
        self.log = None

    def _change(self, command):
        correlation = self.side.control.next_id()
        channel = self.channel.encode()
        body = struct.pack("<qqqi", self.side.client, correlation, self.subscription, len(channel)) + channel
        self.side.perform(command, body)
        answer = self.side.event("ON_OPERATION_SUCCESS", "ON_ERROR", correlation=correlation)
        assert answer.name == "ON_OPERATION_SUCCESS", f"{self.side.kind} {self.channel}: {answer.text}"

    def observe(self):
        """Returns all observations that depend on the parameters."""
        addresses, sockets = self.addresses(), self.socket_buffers()
        setup = {"initial": 0, "active": 0, "offset": 0, "term_length": _TERM_LENGTH}
        self.source.send(wire.setup(_SESSION, self.stream, **setup), self.to)
        image = self.side.event("ON_AVAILABLE_IMAGE", session=_SESSION, subscription=self.subscription)
        status = self.first_status()
        self.log = os.open(image.log, os.O_RDONLY)
        self.source.send(wire.data(_SESSION, self.stream, 0, 0, _PAYLOAD), self.to)
        return {
            "addresses": addresses,
            "socket buffers": sockets,
            "first status message": status,
            "message": self.message(),
            "metadata": self.metadata(),
        }

    def addresses(self):
        """Returns a tuple for each address counter: whether the counter has the registration id of the subscription,
        and the counter's owner, reference and name."""
        found = [c for c in self.side.control.counters() if c.type == 14 and c.label.endswith(f":{self.port}")]
        return [
            (counter.registration == self.subscription, counter.owner, counter.reference, counter.label.split(":")[0])
            for counter in found
        ]

    def socket_buffers(self):
        """Returns the buffer lengths of the driver's socket in the kernel."""
        pid = self.side.driver.process.pid
        lines = subprocess.run(
            ["ss", "-uamnpOH", f"sport = :{self.port}"], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        return [re.findall(r"\b([rt]b\d+)", line) for line in lines if f"pid={pid}," in line]

    def first_status(self):
        """Returns the time to live, position, window, flags and feedback of the first SM of the session."""
        self.listener.settimeout(5 * PACE)
        while True:
            datagram, ancillary, _, _ = self.listener.recvmsg(2048, 256)
            if wire.kind(datagram) == wire.SM and wire.session(datagram) == _SESSION:
                [ttl] = [struct.unpack("i", data)[0] for _, kind, data in ancillary if kind == _IP_TTL]
                return ttl, struct.unpack_from("<3i", datagram, 16), wire.flags(datagram), datagram[36:].hex()

    def message(self):
        """Returns a list of booleans, one for the reserved value and one for each eight bytes of the payload. `True`
        means that the bytes are as the source sent them."""
        eventually(lambda: struct.unpack("<i", os.pread(self.log, 4, 0))[0] > 0, timeout_s=5 * PACE)
        expected = bytes(8) + _PAYLOAD
        found = os.pread(self.log, len(expected), 24)
        return [found[at : at + 8] == expected[at : at + 8] for at in range(0, len(expected), 8)]

    def metadata(self):
        """Returns the log's metadata without values that differ between drivers."""
        data = bytearray(os.pread(self.log, _METADATA_LENGTH, 3 * _TERM_LENGTH))
        for begin, end in _OWN_METADATA:
            data[begin:end] = bytes(end - begin)
        return data.hex()

    def close(self):
        self._change(control.REMOVE_RCV_DESTINATION)
        body = control.remove(self.side.client, self.side.control.next_id(), self.subscription)
        self.side.perform(control.REMOVE_SUBSCRIPTION, body)
        self.listener.close()
        self.source.close()
        if self.log is not None:
            os.close(self.log)


def _listener(group, port):
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((group, port))
    membership = socket.inet_aton(group) + socket.inet_aton("127.0.0.1")
    listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    return listener


@pytest.fixture(scope="module")
def socket_statistics():
    """Skips the test if the program that prints the buffer lengths of sockets is missing. In CI, the test fails."""
    if not shutil.which("ss"):
        missing = "`ss` of iproute2 is needed"
        if os.environ.get("CI"):
            pytest.fail(f"differential tests must not be skipped in CI: {missing}")
        pytest.skip(missing)


@pytest.mark.usefixtures("socket_statistics")
@pytest.mark.parametrize("is_multicast", [False, True], ids=["unicast", "multicast"])
@pytest.mark.parametrize(("subscribed", "options"), _CASES)
def test_the_same_parameters_of_a_destination_have_an_effect_in_both_drivers(
    pairs, stream, subscribed, options, is_multicast
):
    """04-71, 04-183"""
    seen = []
    for side in pairs():
        destination = Destination(side, stream, subscribed, options, is_multicast=is_multicast)
        try:
            seen.append(destination.observe())
        finally:
            destination.close()
    theirs, ours = seen
    assert ours == theirs
    assert ours["addresses"] == [(True, 0, 0, "rcv-local-sockaddr")]
