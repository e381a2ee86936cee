"""A publication for a script. The script writes the term buffers and plays the receivers with sockets."""

import mmap
import struct

from differential import wire
from differential.rig import Socket, is_answered, is_barrier, settle
from interop import control
from ports import free_port

_POSITIONS = {
    1: "pub-lmt",
    2: "snd-pos",
    9: "snd-lmt",
    12: "pub-pos",
    13: "snd-bpe",
    17: "fc-receivers",
    19: "snd-naks",
}


class Log:
    """The term buffers of a publication. The script writes frames as an exclusive publication does."""

    def __init__(self, path, publication):
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self._metadata = len(self._memory) - 4096
        self.initial_term, _, _, self.term_length = struct.unpack_from("<4i", self._memory, self._metadata + 264)
        self._session, self._stream = publication.session, publication.stream
        (count,) = struct.unpack_from("<i", self._memory, self._metadata + 24)
        (tail,) = struct.unpack_from("<q", self._memory, self._metadata + 8 * (count % 3))
        self.position = count * self.term_length + (tail & 0xFFFF_FFFF)
        self.starts = []

    def append(self, *lengths, flags=wire.BEGIN_AND_END):
        """Appends messages with payloads of these lengths, and makes them visible at once. If they do not fit into the
        term, padding precedes them."""
        frames = [(wire.DATA, wire.HEADER_LENGTH + length) for length in lengths]
        room = self.term_length - self.position % self.term_length
        if sum(wire.align(length) for _, length in frames) > room:
            self._write([(wire.PAD, room)], wire.BEGIN_AND_END)
        self._write(frames, flags)

    def copy(self, position, datagram):
        """Appends the unchanged frames of a datagram. The current position must be `position`."""
        assert position == self.position
        term_count, offset = divmod(position, self.term_length)
        base, at, first = (term_count % 3) * self.term_length, 0, None
        while at < len(datagram):
            (length,) = struct.unpack_from("<i", datagram, at)
            end = min(at + wire.align(length), len(datagram))
            self._memory[base + offset + at + 4 : base + offset + end] = datagram[at + 4 : end]
            if first is None:
                first = (base + offset, length)
            else:
                struct.pack_into("<i", self._memory, base + offset + at, length)
            at += wire.align(length)
        self.position += at
        self._store_tail(term_count, self.initial_term + term_count, offset + at)
        struct.pack_into("<i", self._memory, *first)

    def room(self, *lengths):
        """Returns the number of bytes by which appending these payloads moves the position."""
        total = sum(wire.align(wire.HEADER_LENGTH + length) for length in lengths)
        room = self.term_length - self.position % self.term_length
        return total if total <= room else room + total

    def _write(self, frames, flags):
        term_count, offset = divmod(self.position, self.term_length)
        term = self.initial_term + term_count
        base = (term_count % 3) * self.term_length
        at, first = offset, None
        for type_id, length in frames:
            # No four bytes of the payload are a valid length of a frame.
            payload = bytes(0x80 | (at // 32 + i) & 0xFF for i in range(length - 32)) if type_id == wire.DATA else b""
            self.starts.append(self.position + at - offset)
            fields = (0, flags, type_id, at, self._session, self._stream, term, 0)
            struct.pack_into("<BBHiiiiq", self._memory, base + at + 4, *fields)
            self._memory[base + at + 32 : base + at + 32 + len(payload)] = payload
            if first is None:
                first = (base + at, length)
            else:
                struct.pack_into("<i", self._memory, base + at, length)
            at += wire.align(length)
        self.position += at - offset
        self._store_tail(term_count, term, at)
        struct.pack_into("<i", self._memory, *first)

    def _store_tail(self, term_count, term, offset):
        struct.pack_into("<q", self._memory, self._metadata + 8 * (term_count % 3), (term << 32) | offset)
        if offset == self.term_length:
            following = self._metadata + 8 * ((term_count + 1) % 3)
            struct.pack_into("<q", self._memory, following, (term + 1) << 32)
            struct.pack_into("<i", self._memory, self._metadata + 24, term_count + 1)

    def close(self):
        self._memory.close()


# Our driver limits the bytes to a new destination of a dynamic publication, until the destination proves that it
# receives: 120 bytes for each byte that the destination sent. This number of status messages allows more bytes than a
# series of steps sends.
_EARNING_MESSAGES = 128


class SendScene:
    """A publication of one driver, and sockets in the role of its receivers. The first socket receives all frames."""

    BARRIERS = 2

    def __init__(self, side, channel, stream, *, sockets=1, group=None):
        """Adds the publication.

        Args:
            channel: The channel. `{endpoint}` stands for the address of the first socket.
            group: Data address and control address of a multicast group, which the sockets join.
        """
        self.side, self.stream = side, stream
        port = free_port() if group else 0
        self.sockets = [Socket(port, group and group[0]) for _ in range(sockets)]
        self.is_mdc = "control-mode" in channel
        host, port = self.sockets[0].address
        ready = side.add(
            control.ADD_EXCLUSIVE_PUBLICATION,
            control.add,
            stream,
            channel.format(endpoint=f"{host}:{port}"),
            "ON_EXCLUSIVE_PUBLICATION_READY",
        )
        self.registration, self.session = ready.registration, ready.session
        self.log = Log(ready.log, ready)
        self.control_address = (group[1], port) if group else side.local_address(self.registration)
        self.counters = side.counters_of(self.registration, _POSITIONS)
        self._system_before = side.system()
        self._setups = 0
        self._observed = [0] * sockets
        self._has_earned = set()

    def send(self, datagram, by=0):
        if self.is_mdc and wire.kind(datagram) == wire.SM:
            self._earn(by, wire.receiver_of_status(datagram))
        self.sockets[by].send(datagram, self.control_address)

    def _earn(self, by, receiver):
        """Raises the allowance of a new receiver above the bytes of a series, by status messages for a session that
        does not exist."""
        if (by, receiver) not in self._has_earned:
            self._has_earned.add((by, receiver))
            message = wire.status(0, 0, 0, 0, 0, receiver, flags=wire.SM_SETUP)
            for _ in range(_EARNING_MESSAGES):
                self.sockets[by].send(message, self.control_address)

    def ask(self, token):
        """Sends an RTTM request. The response shows that the driver has handled all earlier datagrams."""
        self.send(wire.rttm(self.session, self.stream, token, 0))

    def has_answered(self, token):
        return is_answered(self.sockets[0], token)

    settle = staticmethod(settle)

    def listening(self):
        """Returns the sockets that receive frames."""
        return self.sockets

    def hear_everything(self):
        """Makes the first socket a destination of a dynamic publication, by a status message for a session that does
        not exist."""
        if self.is_mdc:
            self.send(wire.status(0, 0, 0, 0, 0, 0x0B5E, flags=wire.SM_SETUP))

    def setups(self):
        """Returns the number of SETUPs that the first socket has received."""
        for socket_ in self.sockets:
            socket_.take()
        return self._setups + sum(wire.kind(d) == wire.SETUP for _, d, _ in self.sockets[0].taken)

    def observe(self):
        """Returns the observations that must be equal for both drivers: counters, and sent frames that no timer
        repeats."""
        system = self.side.system()
        frames = []
        for number, socket_ in enumerate(self.sockets):
            socket_.take()
            frames += [f"to {number}: {wire.readable(d)}" for _, d, _ in socket_.taken if _is_answer(d)]
            self._observed[number] = len(socket_.taken)
        return {
            **self.side.values(self.counters),
            **{name: value - self._system_before[name] for name, value in system.items()},
            "frames": frames,
        }

    def forget_frames(self):
        """Forgets the frames that the last `observe` returned. Later frames belong to the next step."""
        heard = self.sockets[0].taken[: self._observed[0]]
        self._setups += sum(wire.kind(d) == wire.SETUP for _, d, _ in heard)
        for number, socket_ in enumerate(self.sockets):
            del socket_.taken[: self._observed[number]]
            self._observed[number] = 0

    def close(self):
        body = control.remove_publication(self.side.client, self.side.control.next_id(), self.registration)
        self.side.perform(control.REMOVE_PUBLICATION, body)
        self.log.close()
        for socket_ in self.sockets:
            socket_.close()


def _is_answer(datagram):
    """Returns whether the sender sent this frame as a reaction to the script, and not because of a timer or the
    barrier."""
    if wire.kind(datagram) == wire.RTTM:
        return not is_barrier(datagram)
    return not wire.is_heartbeat(datagram) and wire.kind(datagram) != wire.SETUP
