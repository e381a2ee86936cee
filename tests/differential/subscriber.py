"""A subscription for a script. The script reads the images and plays their sources with a socket."""

import os
import struct
import time
import zlib

from differential import wire
from differential.rig import BARRIER_TIMEOUT_S, Socket, is_answered, settle
from interop import control
from ports import free_port

TERM_LENGTH = 65536
_POSITIONS = {3: "rcv-hwm", 5: "rcv-pos", 20: "rcv-naks-sent"}


class ReceiveScene:
    """A subscription of one driver, and a socket in the role of its sources.

    Session 1 exists only for the barrier. Its frames are not compared.
    """

    ANCHOR = 1
    # The driver finds a gap in one duty cycle, reports the gap in the next one, and sends a NAK in the third one.
    BARRIERS = 4

    def __init__(self, side, stream, options="", *, subscriptions=1):
        self.side, self.stream = side, stream
        self.source = Socket()
        self._registrations = []
        self.address = ("127.0.0.1", free_port())
        for _ in range(subscriptions):
            options = options.format(source=":".join(map(str, self.source.address)))
            self._subscribe(f"aeron:udp?endpoint=127.0.0.1:{self.address[1]}{options}")
        self._last_of_kind = {}
        self._frames = []
        self.images = {}
        self._logs = {}
        self.receivers = []
        self._readers = {}
        self.send(wire.setup(self.ANCHOR, stream, initial=0, active=0, offset=0, term_length=TERM_LENGTH))
        self.add_image(self.ANCHOR)
        del self.images[self.ANCHOR]
        self._await_receiver_id()
        self._system_before = side.system()

    def send(self, datagram):
        self.source.send(datagram, self.address)

    def _subscribe(self, channel):
        encode = control.add_subscription
        ready = self.side.add(control.ADD_SUBSCRIPTION, encode, self.stream, channel, "ON_SUBSCRIPTION_READY")
        self._registrations.append(ready.correlation)

    def add_image(self, session):
        """Waits until the driver has announced the image of a session to every subscription."""
        told = [
            self.side.event("ON_AVAILABLE_IMAGE", session=session, subscription=registration)
            for registration in self._registrations
        ]
        counters = self.side.counters_of(told[0].image, _POSITIONS)
        self._readers[session] = [image.position_counter for image in told]
        self.images[session] = {**counters, **{f"sub-pos {n}": image.position_counter for n, image in enumerate(told)}}
        if session != self.ANCHOR:
            self._logs[session] = os.open(told[0].log, os.O_RDONLY)

    def has_image(self, session):
        """Returns whether the image of a session has been announced. Stores the image if it is new."""
        self.side.events += self.side.control.events()
        if any(e.name == "ON_AVAILABLE_IMAGE" and e.session == session for e in self.side.events):
            self.add_image(session)
        return session in self.images

    def listening(self):
        """Returns the sockets that receive frames."""
        return [self.source]

    def consume(self, session, position, reader=0):
        """Moves the position of a subscriber."""
        self.side.control.set_value(self._readers[session][reader], position)

    def positions(self, session):
        return self.side.values(self.images[session])

    def ask(self, token):
        """Sends an RTTM request. The response shows that the driver has handled all earlier datagrams."""
        self.send(wire.rttm(self.ANCHOR, self.stream, token, 0))

    def has_answered(self, token):
        return is_answered(self.source, token)

    settle = staticmethod(settle)

    def hear_everything(self):
        """Does nothing: a source receives frames without asking for them."""

    def _await_receiver_id(self):
        deadline = time.monotonic() + BARRIER_TIMEOUT_S
        while not self.receivers:
            self.receivers = [
                struct.unpack_from("<q", d, 28)[0] for _, d, _ in self.source.take() if wire.kind(d) == wire.SM
            ]
            assert time.monotonic() < deadline, f"{self.side.kind}: no SM"
        self.source.taken.clear()

    def observe(self):
        """Returns the observations that must be equal for both drivers: positions, counters, and sent frames by kind.

        A frame that a timer repeats counts once.
        """
        self.source.take()
        for _, datagram, _ in self.source.taken:
            self._add_frame(datagram)
        self.source.taken.clear()
        images = {s: self.side.values(c) for s, c in self.images.items()}
        system = self.side.system()
        by_kind = sorted(self._frames, key=lambda frame: frame.split()[0])
        return {
            **{f"{name} of {s}": value for s, values in images.items() for name, value in values.items()},
            **{f"log of {session}": self._checksum(session) for session in self._logs},
            **{name: value - self._system_before[name] for name, value in system.items()},
            "frames": by_kind,
        }

    def _checksum(self, session):
        """Returns a checksum of the log from the position of the slowest subscriber.

        Earlier bytes do not count, because the drivers clean them at different times.
        """
        log, term_length = self._logs[session], TERM_LENGTH
        begin = min(self.side.control.value(reader) for reader in self._readers[session])
        if begin < term_length:
            return zlib.crc32(os.pread(log, 3 * term_length, 0))
        begin %= 3 * term_length
        length = min(term_length, 3 * term_length - begin)
        return zlib.crc32(os.pread(log, length, begin) + os.pread(log, term_length - length, 0))

    def _add_frame(self, datagram):
        if wire.session(datagram) == self.ANCHOR:
            return
        line = wire.readable(datagram, self.receivers)
        key = (wire.kind(datagram), wire.session(datagram))
        if self._last_of_kind.get(key) != line:
            self._last_of_kind[key] = line
            self._frames.append(line)

    def forget_frames(self):
        self._frames.clear()

    def close(self):
        for registration in self._registrations:
            body = control.remove(self.side.client, self.side.control.next_id(), registration)
            self.side.perform(control.REMOVE_SUBSCRIPTION, body)
        self.source.close()
        for log in self._logs.values():
            os.close(log)
