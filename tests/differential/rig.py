"""Two drivers side by side, the real C driver and ours, under one script of datagrams and commands.

Nobody but the script is on the other side: raw sockets send and take the datagrams, commands are written to the ring by
hand, logs and position counters are written as a client's would be. So what a driver sees is the script, byte by byte,
and what it says and counts can be compared after each step.

A step is over for a driver when it has answered an RTTM that was sent behind the step's datagrams, twice: sockets keep
the order, so everything before it has been taken in, and with all agents in one thread a whole duty cycle has passed.
What a driver sends on timers alone (heartbeats, repeated SETUPs, SMs and NAKs) is compared where tests say so.
"""

import itertools
import mmap
import os
import random
import socket
import struct
import time
import zlib
from contextlib import suppress

from differential import differences, wire
from interop import control
from interop.control import ControlClient

# AERON_DIFFERENTIAL_PACE stretches every wait, for slower machines; AERON_DIFFERENTIAL_SCALE multiplies the series.
PACE = float(os.environ.get("AERON_DIFFERENTIAL_PACE", "1"))
SCALE = int(os.environ.get("AERON_DIFFERENTIAL_SCALE", "1"))
PATIENCE_S = 2 * PACE
_BARRIER_TIMEOUT_S = 5 * PACE
_REPEAT_S = 0.05
_HEAR_AGAIN_S = 2

SETTINGS = {
    "AERON_TERM_BUFFER_LENGTH": "64k",
    "AERON_CLIENT_LIVENESS_TIMEOUT": "300s",
    "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "600s",
    "AERON_PUBLICATION_LINGER_TIMEOUT": "100ms",
    "AERON_IMAGE_LIVENESS_TIMEOUT": "60s",
    "AERON_PUBLICATION_CONNECTION_TIMEOUT": "60s",
    # What is repeated on its timer must not be mistaken for what a step caused.
    "AERON_NAK_UNICAST_RETRY_DELAY_RATIO": "60000000",
    "AERON_RETRANSMIT_UNICAST_LINGER": "60s",
    "AERON_COUNTERS_FREE_TO_REUSE_TIMEOUT": "1ms",
}

POSITIONS = {1: "pub-lmt", 2: "snd-pos", 9: "snd-lmt", 12: "pub-pos", 13: "snd-bpe", 17: "fc-receivers", 19: "snd-naks"}
IMAGE_POSITIONS = {3: "rcv-hwm", 5: "rcv-pos", 20: "rcv-naks-sent"}
# System counters that a step decides; others measure time, or count what timers and lingering publications do.
SYSTEM = {
    6: "NAKs received",
    8: "Status Messages received",
    10: "Heartbeats received",
    11: "Retransmits sent",
    12: "under runs",
    13: "over runs",
    14: "Invalid packets",
    15: "Errors",
    21: "Possible TTL Asymmetry",
    23: "Loss gap fills",
    36: "Retransmitted bytes",
    37: "Retransmit Pool Overflow",
    38: "Error Frames received",
    41: "Images Revoked",
    44: "Status Messages rejected",
}

_tokens = itertools.count(0x5EED_0000_0000)


def free_port():
    """A UDP port that nobody has at the moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Socket:
    """A raw UDP socket of the script; `taken` holds what came and was not compared yet, as (time, datagram, source)."""

    def __init__(self, port=0, group=None):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
        if group:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((group, port))
            membership = socket.inet_aton(group) + socket.inet_aton("127.0.0.1")
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        else:
            self._socket.bind(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        self._socket.setblocking(False)
        self.address = self._socket.getsockname()
        self.taken = []

    def send(self, datagram, to):
        self._socket.sendto(datagram, to)

    def take(self):
        """Reads what came since; answers the new part of `taken`."""
        new = []
        with suppress(BlockingIOError):
            while True:
                datagram, source = self._socket.recvfrom(1 << 16)
                new.append((time.monotonic(), datagram, source))
        self.taken += new
        return new

    def close(self):
        self._socket.close()

    def __del__(self):
        self.close()  # of a scene that could not be made


class Side:
    """One of the two drivers, with a client by hand."""

    def __init__(self, driver, port):
        """`port` is what `{port}` stood for in its settings."""
        self.driver, self.port = driver, port
        self.kind = driver.kind
        self.control = ControlClient(driver.directory)
        self.client = self.control.next_id()
        self.events = []

    def perform(self, type_id, body):
        """Writes a command; returns when the driver has dealt with it."""
        self.events += self.control.perform(type_id, body)

    def add(self, type_id, encode, stream, channel, ready):
        """Adds a publication or subscription and answers the event that says that it is ready."""
        correlation = self.control.next_id()
        self.perform(type_id, encode(self.client, correlation, stream, channel))
        event = self.event(ready, "ON_ERROR", correlation=correlation)
        assert event.name == ready, f"{self.kind}: {event.text}"
        return event

    def event(self, *names, timeout_s=5, **values):
        """The first event of one of these names and with these values, taken out; waits for it."""
        deadline = time.monotonic() + timeout_s * PACE
        while True:
            self.events += self.control.events()
            for event in self.events:
                if event.name in names and all(event.values[name] == value for name, value in values.items()):
                    self.events.remove(event)
                    return event
            assert time.monotonic() < deadline, f"{self.kind}: no {names} with {values}, only {self.events}"
            time.sleep(0.001)

    def counters_of(self, registration, names):
        """`{name: counter id}` of an object's counters."""
        found = {}
        for counter in self.control.counters():
            (owner,) = struct.unpack_from("<q", counter.key)
            if counter.type in names and owner == registration:
                found[names[counter.type]] = counter.id
        return found

    def local_address(self, registration):
        """Where the endpoint of a publication or subscription is bound."""
        [label] = [c.label for c in self.control.counters() if c.type == 14 and c.registration == registration]
        host, port = label.rsplit(" ", 1)[1].rsplit(":", 1)
        return host, int(port)

    def values(self, counters):
        return {name: self.control.value(id) for name, id in counters.items()}

    def system(self):
        return {name: self.control.value(id) for id, name in SYSTEM.items()}

    def is_alive(self):
        return self.driver.process.exit_code is None

    def close(self):
        self.control.close()
        self.driver.remove()


class Log:
    """The term buffers of a publication, written as an exclusive publisher writes them."""

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
        """Makes messages with payloads of these lengths visible at once, padding the term if they do not fit."""
        frames = [(wire.DATA, wire.HEADER_LENGTH + length) for length in lengths]
        room = self.term_length - self.position % self.term_length
        if sum(wire.align(length) for _, length in frames) > room:
            self._write([(wire.PAD, room)], wire.BEGIN_AND_END)
        self._write(frames, flags)

    def copy(self, position, datagram):
        """Makes the frames of a datagram visible, as they are, at a position that is the next one."""
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
        """How far the position moves by appending these."""
        total = sum(wire.align(wire.HEADER_LENGTH + length) for length in lengths)
        room = self.term_length - self.position % self.term_length
        return total if total <= room else room + total

    def _write(self, frames, flags):
        term_count, offset = divmod(self.position, self.term_length)
        term = self.initial_term + term_count
        base = (term_count % 3) * self.term_length
        at, first = offset, None
        for type_id, length in frames:
            # Bytes that no one can take for a frame's length.
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


def settle(*scenes):
    """Returns when everything sent so far has had its effect."""
    for _ in range(max(scene.BARRIERS for scene in scenes)):
        _pass_barrier(scenes)


def _pass_barrier(scenes):
    waiting, token = list(scenes), next(_tokens)
    deadline, repeat = time.monotonic() + _BARRIER_TIMEOUT_S, 0
    while True:
        if time.monotonic() > repeat:
            repeat = time.monotonic() + _REPEAT_S
            for scene in waiting:
                scene.ask(token)
        waiting = [scene for scene in waiting if not scene.has_answered(token)]
        if not waiting:
            return
        lives = {scene.side.kind: scene.side.is_alive() for scene in waiting}
        assert time.monotonic() < deadline, f"no answer to RTTM; alive: {lives}"
        time.sleep(0.0001)


def _is_answered(socket_, token):
    return any(wire.kind(d) == wire.RTTM and wire.echo(d) == token for _, d, _ in socket_.take())


class SendScene:
    """A publication of one driver, and sockets that stand for its receivers; the first hears everything."""

    BARRIERS = 2

    def __init__(self, side, channel, stream, *, sockets=1, group=None):
        """`{endpoint}` in the channel is the first socket, which with a group (data and control address) is in it."""
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
        self.counters = side.counters_of(self.registration, POSITIONS)
        self._system_before = side.system()
        self._setups = 0

    def send(self, datagram, by=0):
        self.sockets[by].send(datagram, self.control_address)

    def ask(self, token):
        """Sends the request whose answer says that everything before it was taken in."""
        self.send(wire.rttm(self.session, self.stream, token, 0))

    def has_answered(self, token):
        return _is_answered(self.sockets[0], token)

    settle = staticmethod(settle)

    def listening(self):
        """The sockets that frames come to."""
        return self.sockets

    def hear_everything(self):
        """Makes the first socket a destination of a dynamic publication; no stream is concerned."""
        if self.is_mdc:
            self.send(wire.status(0, 0, 0, 0, 0, 0x0B5E, flags=wire.SM_SETUP))

    def setups(self):
        """How many SETUPs came so far."""
        for socket_ in self.sockets:
            socket_.take()
        return self._setups + sum(wire.kind(d) == wire.SETUP for _, d, _ in self.sockets[0].taken)

    def observe(self):
        """What must agree: counters, and what was sent that no timer repeats."""
        system = self.side.system()
        frames = []
        for number, socket_ in enumerate(self.sockets):
            socket_.take()
            frames += [f"to {number}: {wire.readable(d)}" for _, d, _ in socket_.taken if _is_answer(d)]
        return {
            **self.side.values(self.counters),
            **{name: value - self._system_before[name] for name, value in system.items()},
            "frames": frames,
        }

    def forget_frames(self):
        self._setups = self.setups()
        for socket_ in self.sockets:
            socket_.taken.clear()

    def close(self):
        body = control.remove_publication(self.side.client, self.side.control.next_id(), self.registration)
        self.side.perform(control.REMOVE_PUBLICATION, body)
        self.log.close()
        for socket_ in self.sockets:
            socket_.close()


def _is_answer(datagram):
    """Whether a script and not a timer (or the barrier) caused a frame of a sender."""
    if wire.kind(datagram) == wire.RTTM:
        return not 0x5EED_0000_0000 <= wire.echo(datagram) < 0x5EEE_0000_0000
    return not wire.is_heartbeat(datagram) and wire.kind(datagram) != wire.SETUP


class ReceiveScene:
    """A subscription of one driver, and a socket that stands for its sources.

    Session 1 is there for the barrier only; its frames are not compared.
    """

    def hear_everything(self):
        """Sources hear without being asked to."""

    ANCHOR = 1
    # A gap is found in one cycle, reported in the next and asked for in that after it.
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
        self.send(wire.setup(self.ANCHOR, stream, initial=0, active=0, offset=0, term_length=65536))
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
        """Waits for the image of a session, which every subscription is told of."""
        told = [
            self.side.event("ON_AVAILABLE_IMAGE", session=session, subscription=registration)
            for registration in self._registrations
        ]
        counters = self.side.counters_of(told[0].image, IMAGE_POSITIONS)
        self._readers[session] = [image.position_counter for image in told]
        self.images[session] = {**counters, **{f"sub-pos {n}": image.position_counter for n, image in enumerate(told)}}
        if session != self.ANCHOR:
            self._logs[session] = os.open(told[0].log, os.O_RDONLY)

    def has_image(self, session):
        """Whether the image of a session has been announced; takes it in if so."""
        self.side.events += self.side.control.events()
        if any(e.name == "ON_AVAILABLE_IMAGE" and e.session == session for e in self.side.events):
            self.add_image(session)
        return session in self.images

    def listening(self):
        """The sockets that frames come to."""
        return [self.source]

    def consume(self, session, position, reader=0):
        """A subscriber has read up to a position."""
        self.side.control.set_value(self._readers[session][reader], position)

    def positions(self, session):
        return self.side.values(self.images[session])

    def ask(self, token):
        """Sends the request whose answer says that everything before it was taken in."""
        self.send(wire.rttm(self.ANCHOR, self.stream, token, 0))

    def has_answered(self, token):
        return _is_answered(self.source, token)

    settle = staticmethod(settle)

    def _await_receiver_id(self):
        deadline = time.monotonic() + _BARRIER_TIMEOUT_S
        while not self.receivers:
            self.receivers = [
                struct.unpack_from("<q", d, 28)[0] for _, d, _ in self.source.take() if wire.kind(d) == wire.SM
            ]
            assert time.monotonic() < deadline, f"{self.side.kind}: no SM"
        self.source.taken.clear()

    def observe(self):
        """What must agree: positions, counters, and what was sent, by kind; what a timer repeats counts once."""
        self.source.take()
        for _, datagram, _ in self.source.taken:
            self._add_frame(datagram)
        self.source.taken.clear()
        images = {s: self.side.values(c) for s, c in self.images.items()}
        system = self.side.system()
        by_kind = sorted(self._frames, key=lambda frame: frame.split()[0])
        return {
            **{f"{name} of {s}": value for s, values in images.items() for name, value in values.items()},
            **{f"log of {s}": zlib.crc32(os.pread(log, 3 * 65536, 0)) for s, log in self._logs.items()},
            **{name: value - self._system_before[name] for name, value in system.items()},
            "frames": by_kind,
        }

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


class Duel:
    """Both drivers under one script. A failure shows the seed, the last steps and where the drivers part."""

    _STEPS_SHOWN = 25

    def __init__(self, pair, make, seed=0):
        """`make(side)` builds the scene of a driver; a pair of ours alone is only seen to go on."""
        self.seed = seed
        self.random = random.Random(seed)
        self._steps = []
        self.scenes = [make(side) for side in pair]
        self._heard_at = 0

    def step(self, text, act=None):
        """Does the same to both, waits until each is done with it, and compares what they say; answers ours."""
        self._steps.append(text)
        for scene in self.scenes:
            if act:
                act(scene)
        return self.compare()

    def observe_each(self, text, act):
        """Does the same to both and answers what each says, for what is known to differ."""
        self._steps.append(text)
        for scene in self.scenes:
            act(scene)
        type(self.scenes[0]).settle(*self.scenes)
        return [scene.observe() for scene in self.scenes]

    def wait(self, seconds):
        """Lets time pass for both, and compares what it brought."""
        time.sleep(seconds)
        self._steps.append(f"wait {seconds:.3f} s")
        return self.compare()

    def compare(self):
        """Compares the drivers now; a driver may be late, but not for long."""
        self._keep_hearing()
        deadline = time.monotonic() + PATIENCE_S
        while True:
            type(self.scenes[0]).settle(*self.scenes)
            seen = [scene.observe() for scene in self.scenes]
            theirs, ours = seen[0], seen[-1]
            if not differences.parting(theirs, ours):
                break
            if time.monotonic() > deadline:
                raise AssertionError(self._report(theirs, ours))
            time.sleep(0.002)
        for scene in self.scenes:
            scene.forget_frames()
        return ours

    def _keep_hearing(self):
        """Dynamic destinations are forgotten after 5 s."""
        if time.monotonic() > self._heard_at + _HEAR_AGAIN_S:
            self._heard_at = time.monotonic()
            for scene in self.scenes:
                scene.hear_everything()

    def _report(self, theirs, ours):
        lines = [f"seed {self.seed}: the drivers part at step {len(self._steps)}"]
        lines += [f"  {step}" for step in self._steps[-self._STEPS_SHOWN :]]
        for name in differences.parting(theirs, ours):
            lines.append(f"{name}:\n  C:    {theirs.get(name)}\n  ours: {ours.get(name)}")
        lines += [f"errors of {scene.side.kind}: {scene.side.control.error_log()[-2:]}" for scene in self.scenes]
        return "\n".join(lines)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for scene in self.scenes:
            scene.close()
