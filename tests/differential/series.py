"""Generated series: frames from the receivers of a publication, and messages from its publisher.

All choices come from the duel's seeded generator. If a choice depends on a position, both drivers have that position.
"""

import struct
import time

from differential import wire
from differential.rig import PACE

INITIAL_TERM = 7
TERM_LENGTH = 65536
START_OFFSET = 65536 - 4096  # the first term ends early in every series
CHANNEL = (
    "term-length=64k|mtu=1408|session-id={session}|"
    f"init-term-id={INITIAL_TERM}|term-id={INITIAL_TERM}|term-offset={START_OFFSET}"
)
MDC = "aeron:udp?control=127.0.0.1:0|control-mode=dynamic|" + CHANNEL
UNICAST = "aeron:udp?endpoint={{endpoint}}|" + CHANNEL

RECEIVERS = 4
_OTHER_TAG = 1
_SETUP_TIMEOUT_S = 2 * PACE


def term_and_offset(position):
    return INITIAL_TERM + position // TERM_LENGTH, position % TERM_LENGTH


class Receivers:
    """Plays the receivers of a publication in a duel. Each receiver has a receiver id and a socket."""

    def __init__(self, duel, tag=None):
        self._duel, self._tag = duel, tag
        self._stream, self._session = duel.scenes[0].stream, duel.scenes[0].session
        self._choose = duel.random
        self.seen = {}

    @property
    def position(self):
        return self.seen["snd-pos"]

    def start(self):
        self.seen = self._duel.step("start")

    def any(self, weights):
        """Makes one step. `weights` is `{name of a method: weight}`: the weight is the relative frequency of the
        method."""
        [name] = self._choose.choices(list(weights), list(weights.values()))
        getattr(self, name)()

    def wait(self, seconds):
        self.seen = self._duel.wait(seconds)

    def status(self):
        """Sends an SM with a position within the window, sometimes with an EOS flag."""
        choose = self._choose
        position = max(0, self.position - 32 * choose.choice([0, 0, 1, 10, 44, 200, 1000]))
        flags = wire.SM_EOS if choose.random() < 0.1 else 0
        self._status(position, choose.choice([0, 1408, 4096, 10_000, 16384, 32768]), flags)

    def full_status(self):
        """Sends an SM of the first receiver with the largest valid window."""
        term, offset = term_and_offset(self.position)
        frame = wire.status(self._session, self._stream, term, offset, TERM_LENGTH // 2, 100, feedback=self._feedback())
        self._step(f"SM at {self.position}", frame, 0)

    def skip(self):
        """Sends no frame."""

    def odd_status(self):
        """Sends an SM with a position that is too far away, with an invalid window, or with an unaligned position."""
        choose = self._choose
        distance = choose.choice([-32768 - 32, -32768, 32, 32768, 98304 + 32, 100_000 // 32 * 32])
        window = choose.choice([0, 32768, 32769, -1, 0x7FFF_FFFF])
        flags = choose.choice([0, wire.SM_EOS, 0x3F])
        # The C driver of 1.53-SNAPSHOT refuses a position more than half a term ahead. Ours accepts one and a half
        # terms, as 1.53.0 does (02-30). No distance is between the two limits.
        unaligned = choose.choice([0, 0, 8]) if distance != 32768 else 0
        self._status(max(0, self.position + distance), window, flags, unaligned=unaligned)

    def _status(self, position, window, flags, unaligned=0):
        receiver = self._choose.randrange(RECEIVERS)
        term, offset = term_and_offset(position)
        feedback = self._feedback()
        frame = wire.status(
            self._session,
            self._stream,
            term,
            offset + unaligned,
            window,
            receiver + 100,
            flags=flags,
            feedback=feedback,
        )
        text = f"SM of receiver {receiver} at {position} + {window} flags {flags:#x} {feedback.hex()}"
        self._step(text, frame, receiver)

    def _feedback(self):
        """Returns the group's tag in most calls, and otherwise another tag, no tag, or bytes that are not a tag.

        If the group has no tag, returns no tag or another tag.
        """
        if self._tag is None:
            return self._choose.choice([b"", b"", struct.pack("<q", _OTHER_TAG)])
        own, other = struct.pack("<q", self._tag), struct.pack("<q", _OTHER_TAG)
        return self._choose.choices([own, other, b"", b"\1\2\3\4"], [12, 3, 3, 1])[0]

    def ask_for_setup(self):
        """Requests a SETUP and waits for it. The driver may wait until the previous SETUP is 100 ms old."""
        receiver = self._choose.randrange(RECEIVERS)
        frame = wire.status(
            self._session, self._stream, 0, 0, 0, receiver + 100, flags=wire.SM_SETUP, feedback=self._feedback()
        )
        send_and_await_setup(self._duel, lambda scene: scene.send(frame, _socket(scene, receiver)))
        self.seen = self._duel.step(f"SETUP requested by receiver {receiver}: {frame[36:].hex()}")

    def error(self):
        receiver = self._choose.randrange(RECEIVERS)
        text = self._choose.choice([b"no more", b"a longer reason to be left alone", b"x" * 1023])
        tag = self._choose.choice([None, _OTHER_TAG, self._tag])
        self._step(
            f"ERR of receiver {receiver}",
            wire.error(self._session, self._stream, receiver + 100, text, tag=tag),
            receiver,
        )

    def nak(self):
        """Sends a NAK, in most calls for sent bytes."""
        choose = self._choose
        starts = self._duel.scenes[0].log.starts
        position = starts[-choose.randint(1, min(len(starts), choose.choice([3, 30, 300])))] if starts else START_OFFSET
        length = choose.choice([32, 64, 1408, 4096, 9024, 20000])
        self._nak(position, min(length, max(32, self.position - position)))

    def odd_nak(self):
        choose = self._choose
        position = max(0, self.position + choose.choice([-100_000, 0, 32, 16, 100_000]))
        self._nak(position, choose.choice([0, -1, 32, 16, 65536, 0x7FFF_FFFF]))

    def _nak(self, position, length):
        receiver = self._choose.randrange(RECEIVERS)
        term, offset = term_and_offset(position)
        frame = wire.nak(self._session, self._stream, term, offset, length)
        self._step(f"NAK of receiver {receiver} at {position} + {length}", frame, receiver)

    def measure(self):
        receiver = self._choose.randrange(RECEIVERS)
        flags = self._choose.choice([0, wire.RTTM_REPLY])
        frame = wire.rttm(self._session, self._stream, self._choose.randrange(1 << 40), receiver + 100, flags)
        self._step(f"RTTM of receiver {receiver} flags {flags:#x}", frame, receiver)

    def append(self):
        """Appends messages of any length up to several datagrams, and makes them visible at once.

        If the publisher limit does not allow them, nothing is appended.
        """
        choose = self._choose
        lengths = [choose.choice([0, 4, 32, 100, 500, 1376]) for _ in range(choose.choice([1, 1, 2, 5, 12]))]
        logs = [scene.log for scene in self._duel.scenes]
        if logs[0].position + logs[0].room(*lengths) > self.seen["pub-lmt"]:
            return
        for log in logs:
            log.append(*lengths)
        self.seen = self._duel.step(f"append {lengths}")

    def _step(self, text, frame, receiver):
        self.seen = self._duel.step(text, lambda scene: scene.send(frame, _socket(scene, receiver)))


def _socket(scene, receiver):
    """Returns the number of a receiver's socket.

    All receivers of a unicast stream share the socket of the endpoint. Otherwise each receiver has its own socket, and
    socket 0 belongs to no receiver.
    """
    return 1 + receiver if scene.is_mdc else 0


def send_and_await_setup(duel, act):
    """Requests a SETUP and waits for it, because flow control depends on the order of frames."""
    before = [scene.setups() for scene in duel.scenes]
    for scene in duel.scenes:
        act(scene)
    for scene, count in zip(duel.scenes, before, strict=True):
        deadline = time.monotonic() + _SETUP_TIMEOUT_S
        while scene.setups() == count:
            assert time.monotonic() < deadline, f"{scene.side.kind}: no SETUP was sent"
            scene.settle(scene)
