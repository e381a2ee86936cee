"""Hosts that send connect requests with a wrong password to an archive, each from an IP address of its own.

As a program, this module simulates the hosts in 127.77.0.0/16 until its standard input ends, and then prints the number
of requests that were sent, and a lower limit of the number of those that the archive's driver has received:

    cd tests && python -m tests.strangers PORT STREAM HOSTS RATE RESPONSE_CHANNEL...
"""

from __future__ import annotations

import selectors
import socket
import struct
import sys
import time
from contextlib import suppress

from differential import wire

TERM_LENGTH = 64 * 1024
FRAME_LENGTH = 256
INITIAL_TERM = 7
_SETUP_INTERVAL_S = 0.1
_HEARTBEAT_INTERVAL_S = 0.1
_SCHEMA, _SCHEMA_VERSION, _CONNECT = 101, 13, 58
_PROTOCOL_VERSION = 1 << 16 | 12 << 8


def connect_request(number: int, response_channel: str, response_stream: int, credentials: bytes) -> bytes:
    """Returns a connect request that fills a frame."""
    block = struct.pack("<qii", number, response_stream, _PROTOCOL_VERSION)
    header = struct.pack("<4H", len(block), _CONNECT, _SCHEMA, _SCHEMA_VERSION)
    texts = [response_channel.encode(), credentials, b""]
    missing = FRAME_LENGTH - wire.HEADER_LENGTH - len(header) - len(block) - sum(4 + len(text) for text in texts)
    texts[1] += b"g" * missing
    return header + block + b"".join(struct.pack("<I", len(text)) + text for text in texts)


class Stranger:
    """A sender of the request stream with a socket of its own.

    The archive rejects the stream after a while. Then the sender starts another one.
    """

    def __init__(self, number: int, port: int, stream: int, channels: list[str]) -> None:
        self._socket = socket.socket(type=socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind((f"127.77.{number // 250}.{number % 250 + 1}", 0))
        self._socket.connect(("127.0.0.1", port))
        self._session, self._stream, self._channels = 1_000_000 * number, stream, channels
        self._streams = 0
        self._start()

    def _start(self) -> None:
        self._session += 1
        self._streams += 1
        # Requests that were sent and received of this stream, and the position up to which the receiver has room.
        self._sent = self._received = self._limit = 0
        self._next_setup = 0.0

    def fileno(self) -> int:
        return self._socket.fileno()

    def work(self, now: float, allowed: int) -> int:
        """Sends at most `allowed` requests, as long as the window of the receiver has room. Returns their number."""
        if now >= self._next_setup:
            self._next_setup = now + _SETUP_INTERVAL_S
            self._send(self._heartbeat() if self._limit else self._setup())
        begin = self._sent
        while self._sent - begin < allowed and (self._sent + 1) * FRAME_LENGTH <= self._limit:
            self._send_request(self._sent)
            self._sent += 1
        return self._sent - begin

    def receive(self) -> int:
        """Reads status messages, NAKs and rejections. Returns how many more requests the archive has received."""
        before = self._received
        with suppress(BlockingIOError, ConnectionRefusedError):
            while True:
                datagram = self._socket.recv(2048)
                kind = wire.kind(datagram)
                if wire.session(datagram) != self._session:
                    continue
                if kind == wire.ERR:
                    received = self._received - before
                    self._start()
                    return received
                if kind not in (wire.SM, wire.NAK):
                    continue
                term, offset, length = struct.unpack_from("<3i", datagram, 16)
                begin = (term - INITIAL_TERM) * TERM_LENGTH + offset
                if kind == wire.SM:
                    self._received = max(self._received, begin // FRAME_LENGTH)
                    self._limit = max(self._limit, begin + length)
                else:
                    for number in range(begin // FRAME_LENGTH, min((begin + length) // FRAME_LENGTH, self._sent)):
                        self._send_request(number)
        return self._received - before

    def _heartbeat(self) -> bytes:
        return wire.heartbeat(self._session, self._stream, *self._place(self._sent))

    def _setup(self) -> bytes:
        terms = {"initial": INITIAL_TERM, "active": INITIAL_TERM, "offset": 0, "term_length": TERM_LENGTH}
        return wire.setup(self._session, self._stream, **terms)

    def _send_request(self, number: int) -> None:
        # Other streams of this sender use other channels, as other numbers would do.
        channel = self._channels[(number + self._streams) % len(self._channels)]
        request = connect_request(number, channel, 5, b"ann:wrong")
        self._send(wire.data(self._session, self._stream, *self._place(number), request))

    def _place(self, number: int) -> tuple[int, int]:
        terms, offset = divmod(number * FRAME_LENGTH, TERM_LENGTH)
        return INITIAL_TERM + terms, offset

    def _send(self, datagram: bytes) -> None:
        # A datagram that cannot be sent counts as lost in the network.
        with suppress(BlockingIOError, ConnectionRefusedError):
            self._socket.send(datagram)


def main() -> None:
    port, stream, hosts, rate = map(int, sys.argv[1:5])
    strangers = [Stranger(number, port, stream, sys.argv[5:]) for number in range(hosts)]
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ, None)
    for stranger in strangers:
        selector.register(stranger, selectors.EVENT_READ, stranger)
    begin = time.monotonic()
    # The hosts do not all send at the same moment.
    missing = [number / hosts for number in range(hosts)]
    sent = received = 0
    while True:
        for key, _ in selector.select(0.005):
            if key.data is None:
                print(sent, received)
                return
            received += key.data.receive()
        now = time.monotonic()
        seconds, begin = now - begin, now
        for number, stranger in enumerate(strangers):
            # A stranger that could not send for a second does not catch up.
            missing[number] = min(missing[number] + seconds * rate, rate)
            done = stranger.work(now, int(missing[number]))
            missing[number] -= done
            sent += done


if __name__ == "__main__":
    main()
