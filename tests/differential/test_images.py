"""Sends series of data, padding, heartbeats, losses and repairs to an image of the C driver and of ours.

After each step, both drivers must have the same counters, the same positions and log bytes of the image, and the same
sent SMs and NAKs.
"""

import bisect

import pytest

from differential import differences, wire
from differential.rig import SCALE, Duel
from differential.subscriber import ReceiveScene

_SESSION = 21
_INITIAL_TERM = -3
_TERM_LENGTH = 65536
_START = 65536 - 8192
_STEPS = 120 * SCALE
_WEIGHTS = {
    "send": 10,
    "send_pad": 0.5,
    "lose": 3,
    "repair": 5,
    "repeat": 2,
    "beat": 1.5,
    "consume": 5,
    "setup_again": 0.5,
    "stray": 1,
}


class Source:
    """Plays the source of one image. The source may skip datagrams, and send them later.

    With `keeps_frames` every heartbeat has the position of the start of a frame, like a heartbeat of a real source. A
    receiver that skips a gap continues at the heartbeat's position. If this position is within a frame, the C driver
    reads payload bytes as a header.
    """

    def __init__(self, duel, stream, window=32768, *, keeps_frames=False):
        self._duel, self._stream, self._choose, self._window = duel, stream, duel.random, window
        self._position, self._sent, self._missing = _START, [], []
        self._keeps_frames, self._frames, self._promised = keeps_frames, [_START], []
        self._consumed = {}
        self._seen = {}

    def start(self):
        setup = self._setup()
        for scene in self._duel.scenes:
            scene.send(setup)
        for scene in self._duel.scenes:
            scene.add_image(_SESSION)
        self._see(self._duel.step("start"))

    def any(self, weights):
        [name] = self._choose.choices(list(weights), list(weights.values()))
        getattr(self, name)()

    def send(self):
        """Sends the next datagram. If the window has no room for it, only a fifth of the calls send it."""
        if self._has_room() or self._choose.random() < 0.2:
            position, datagram = self._next()
            self._send(f"data at {position}", datagram)

    def lose(self):
        """Skips the next datagram."""
        if self._has_room():
            self._missing.append(self._next())

    def send_pad(self):
        """Sends the header of a padding frame. The frame often reaches the end of the term."""
        rest = _TERM_LENGTH - self._position % _TERM_LENGTH
        if rest < _TERM_LENGTH // 8 or self._choose.random() < 0.2:
            rest = min(rest, 4096)
            term, offset = _term_and_offset(self._position)
            datagram = wire.pad(_SESSION, self._stream, term, offset, rest)
            self._sent.append((self._position, datagram))
            self._advance(rest)
            self._send(f"PAD of {rest}", datagram)

    def repair(self):
        """Sends one of the missing datagrams, in most calls the first one."""
        if self._missing:
            number = 0 if self._choose.random() < 0.7 else self._choose.randrange(len(self._missing))
            position, datagram = self._missing.pop(number)
            self._send(f"repair at {position}", datagram)

    def repeat(self):
        """Sends a datagram again that was sent earlier, and possibly long ago."""
        if self._sent:
            position, datagram = self._choose.choice(self._sent[-self._choose.choice([3, 20, 200]) :])
            if all(position != at for at, _ in self._missing):
                self._send(f"again at {position}", datagram)

    def beat(self):
        """Sends a heartbeat, often with the position of the end of the sent bytes."""
        position = max(0, self._position + self._choose.choice([0, 0, 0, -1408, -32 * 2000, 4096, 40_000 // 32 * 32]))
        flags = wire.BEGIN_AND_END
        if self._keeps_frames:
            position = self._beginning_of_frame(position)
        self._send(
            f"heartbeat at {position}", wire.heartbeat(_SESSION, self._stream, *_term_and_offset(position), flags)
        )

    def consume(self):
        """Moves the position of a subscriber up to the received position at most."""
        reader = self._choose.choice(sorted(self._consumed))
        limit = self._seen[f"rcv-pos of {_SESSION}"]
        far = self._choose.random() < 0.7
        position = limit if far else self._choose.randrange(self._consumed[reader], limit + 32, 32)
        position = min(position, limit)
        self._consumed[reader] = position
        self._step(f"subscriber {reader} is at {position}", lambda scene: scene.consume(_SESSION, position, reader))

    def setup_again(self):
        self._send("SETUP", self._setup(self._choose.choice([0, 4096])))

    def stray(self):
        """Sends an empty data frame, often of another session or stream, or of a term outside the window."""
        session = self._choose.choice([_SESSION, _SESSION, 99])
        term = self._choose.choice([_INITIAL_TERM - 1, _INITIAL_TERM, _INITIAL_TERM + 50, 0x7FFF_FFFF])
        stream = self._choose.choice([self._stream, 77]) if session == _SESSION else 77
        self._send("stray", wire.data(session, stream, term, self._choose.choice([0, 4096, 65504]), b""))

    def end(self):
        """Sends all missing datagrams, and then the end of the stream."""
        while self._missing:
            self.repair()
        for reader in sorted(self._consumed):
            position = self._seen[f"rcv-pos of {_SESSION}"]
            self._step("all read", lambda scene, r=reader, p=position: scene.consume(_SESSION, p, r))
        frame = wire.heartbeat(_SESSION, self._stream, *_term_and_offset(self._position), wire.BEGIN_AND_END | wire.EOS)
        self._send("end of stream", frame)

    def _has_room(self):
        return self._position + 4096 <= min(self._consumed.values()) + self._window

    def _beginning_of_frame(self, position):
        """Returns the start of the last frame at or before `position`. If `position` is after all frames, returns
        `position`, and a later frame starts there."""
        if position > self._position:
            self._promised.append(position)
            return position
        return self._frames[max(0, bisect.bisect(self._frames, position) - 1)]

    def _advance(self, length):
        self._position += length
        self._frames.append(self._position)

    def _next(self):
        """Makes the next datagram of the stream with one frame or several frames."""
        position, term_end = self._position, (self._position // _TERM_LENGTH + 1) * _TERM_LENGTH
        datagram = b""
        for _ in range(self._choose.choice([1, 1, 2, 5])):
            end = min([term_end, *(promised for promised in self._promised if promised > self._position)])
            length = min(self._choose.choice([0, 10, 100, 500, 1376]), end - self._position - 32)
            if length < 0 or len(datagram) + wire.align(length + 32) > 1408:
                break
            term, offset = _term_and_offset(self._position)
            datagram += wire.data(_SESSION, self._stream, term, offset, self._choose.randbytes(length))
            self._advance(wire.align(length + 32))
        self._sent.append((position, datagram))
        return position, datagram

    def _setup(self, offset=0):
        term, start = _term_and_offset(_START)
        return wire.setup(
            _SESSION, self._stream, initial=_INITIAL_TERM, active=term, offset=start + offset, term_length=_TERM_LENGTH
        )

    def _send(self, text, datagram):
        self._step(text, lambda scene: scene.send(datagram))

    def _step(self, text, act):
        self._see(self._duel.step(text, act))

    def _see(self, seen):
        self._seen = seen
        self._consumed = {int(name.split()[1]): value for name, value in seen.items() if name.startswith("sub-pos")}


def _term_and_offset(position):
    return _INITIAL_TERM + position // _TERM_LENGTH, position % _TERM_LENGTH


_VARIANTS = {
    "plain": ("", 1),
    "two subscribers": ("", 2),
    "unreliable": ("|reliable=false", 1),
    "small window": ("|rcv-wnd=16k", 1),
    "group tag": ("|gtag=-77", 1),
}


@pytest.mark.parametrize("seed", range(1, 1 + SCALE))
@pytest.mark.parametrize("variant", _VARIANTS)
def test_a_series_of_frames_has_the_same_effects_on_an_image_in_both_drivers(pairs, stream, variant, seed):
    """02-48, 02-53, 02-58, 02-62, 02-64, 02-65, 02-66, 02-67, 02-76, 02-78, 02-81, 04-195"""
    options, subscriptions = _VARIANTS[variant]
    window = 16384 if "rcv-wnd" in options else 32768

    def make(side):
        return ReceiveScene(side, stream, options, subscriptions=subscriptions)

    with Duel(pairs(), make, seed) as duel:
        source = Source(duel, stream, window, keeps_frames="reliable=false" in options)
        source.start()
        for _ in range(_STEPS):
            source.any(_WEIGHTS)
        source.end()


def test_our_driver_stays_at_the_position_of_a_heartbeat_within_a_frame_of_an_unreliable_stream(pairs, stream):
    """02-81: our driver does not read the bytes after the heartbeat's position as frames."""
    with Duel(pairs(), lambda side: ReceiveScene(side, stream, "|reliable=false")) as duel:
        Source(duel, stream).start()
        begin, within = _START + 32, _START + 64
        heartbeat = wire.heartbeat(_SESSION, stream, *_term_and_offset(within), wire.BEGIN_AND_END)
        duel.step("heartbeat", lambda scene: scene.send(heartbeat))
        payload = (1 << 28).to_bytes(4, "little") + bytes(96)
        datagram = wire.data(_SESSION, stream, *_term_and_offset(begin), payload)
        seen = duel.observe_each("the frame around it", lambda scene: scene.send(datagram))
        differences.assert_goes_astray(*seen, within, _SESSION)


_LOSS = {
    "fixed-loss": "term-id=-3|term-offset=60000|length=4000",
    "multi-gap-loss": "term-id=-2|gap-radix=4096|gap-length=1000|total-gaps=11",
}


@pytest.mark.parametrize("seed", range(1, 2 + SCALE))
@pytest.mark.parametrize("interceptor", _LOSS)
def test_a_series_with_injected_loss_has_the_same_effects_on_an_image_in_both_drivers(pairs, stream, interceptor, seed):
    """04-189, 04-190"""
    arguments = f"AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_{interceptor.upper().replace('-', '_')}_ARGS"
    pair = pairs(AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS=interceptor, **{arguments: _LOSS[interceptor]})
    with Duel(pair, lambda side: ReceiveScene(side, stream), seed) as duel:
        source = Source(duel, stream)
        source.start()
        for _ in range(_STEPS):
            source.any({**_WEIGHTS, "repeat": 8})
