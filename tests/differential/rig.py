"""Runs the real C driver and ours side by side, with one script of datagrams and commands for both.

The script is the only input of a driver: it sends and receives datagrams with raw sockets, and writes commands, logs
and position counters as a client does. So the script controls each byte of the input, and compares frames and counters
after each step.

After the datagrams of a step, the script sends RTTM requests one after the other, and waits for each response. A socket
keeps the order of datagrams, so the driver has then handled all earlier datagrams. All agents run in one thread, so a
whole duty cycle has passed between two responses. Separate tests compare the frames that only timers send: heartbeats,
and repeated SETUPs, SMs and NAKs.
"""

import itertools
import os
import random
import socket
import struct
import time
from contextlib import suppress

from differential import differences, wire
from interop.control import ControlClient

# AERON_DIFFERENTIAL_PACE multiplies every wait, for slower machines. The variable SOAK makes more and longer series.
PACE = float(os.environ.get("AERON_DIFFERENTIAL_PACE", "1"))
SCALE = 10 if os.environ.get("SOAK") else 1
PATIENCE_S = 2 * PACE
BARRIER_TIMEOUT_S = 5 * PACE
_REPEAT_S = 0.05
_HEAR_AGAIN_S = 2

SETTINGS = {
    "AERON_TERM_BUFFER_LENGTH": "64k",
    # The script's client writes no heartbeat, and the driver must not unblock its claims.
    "AERON_CLIENT_LIVENESS_TIMEOUT": "3600s",
    "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "7200s",
    "AERON_PUBLICATION_LINGER_TIMEOUT": "100ms",
    "AERON_IMAGE_LIVENESS_TIMEOUT": "60s",
    "AERON_PUBLICATION_CONNECTION_TIMEOUT": "60s",
    # With long delays, no timer repeats a frame during a step. A repeated frame would look like an effect of the step.
    "AERON_NAK_UNICAST_RETRY_DELAY_RATIO": "60000000",
    "AERON_RETRANSMIT_UNICAST_LINGER": "60s",
    "AERON_COUNTERS_FREE_TO_REUSE_TIMEOUT": "1ms",
}

# System counters that depend only on the steps. The others measure time, or depend on timers or lingering publications.
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

_FIRST_TOKEN = 0x5EED_0000_0000
_tokens = itertools.count(_FIRST_TOKEN)


class Socket:
    """A raw UDP socket of the script.

    `taken` has a tuple (time, datagram, source) for each received datagram that was not compared yet.
    """

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
        """Reads new datagrams. Returns the new part of `taken`."""
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
        self.close()  # for a scene whose constructor failed


class Side:
    """One of the two drivers, with the script's client."""

    def __init__(self, driver, port):
        """Connects the script's client to a driver. `port` is the value of `{port}` in the driver's settings."""
        self.driver, self.port = driver, port
        self.kind = driver.kind
        self.control = ControlClient(driver.directory)
        self.client = self.control.next_id()
        self.events = []

    def perform(self, type_id, body):
        """Writes a command. Returns when the driver has executed it."""
        self.events += self.control.perform(type_id, body)

    def add(self, type_id, encode, stream, channel, ready):
        """Adds a publication or subscription. Returns the event that reports it as ready."""
        correlation = self.control.next_id()
        self.perform(type_id, encode(self.client, correlation, stream, channel))
        event = self.event(ready, "ON_ERROR", correlation=correlation)
        assert event.name == ready, f"{self.kind}: {event.text}"
        return event

    def event(self, *names, timeout_s=5, **values):
        """Waits for the first event with one of these names and with these values. Removes the event and returns it."""
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
        """Returns the counters of a publication or image as `{name: counter id}`."""
        found = {}
        for counter in self.control.counters():
            (owner,) = struct.unpack_from("<q", counter.key)
            if counter.type in names and owner == registration:
                found[names[counter.type]] = counter.id
        return found

    def local_address(self, registration):
        """Returns the bound address of the endpoint of a publication or subscription."""
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


def settle(*scenes):
    """Waits until the drivers of the scenes have handled all sent datagrams."""
    for _ in range(max(scene.BARRIERS for scene in scenes)):
        _pass_barrier(scenes)


def _pass_barrier(scenes):
    waiting, token = list(scenes), next(_tokens)
    deadline, repeat = time.monotonic() + BARRIER_TIMEOUT_S, 0
    while True:
        if time.monotonic() > repeat:
            repeat = time.monotonic() + _REPEAT_S
            for scene in waiting:
                scene.ask(token)
        waiting = [scene for scene in waiting if not scene.has_answered(token)]
        if not waiting:
            return
        lives = {scene.side.kind: scene.side.is_alive() for scene in waiting}
        assert time.monotonic() < deadline, f"no response to RTTM; alive: {lives}"
        time.sleep(0.0001)


def is_answered(socket_, token):
    """Returns whether the response to a barrier's request has arrived."""
    return any(wire.kind(d) == wire.RTTM and wire.echo(d) == token for _, d, _ in socket_.take())


def is_barrier(datagram):
    """Returns whether an RTTM belongs to a barrier and not to a step."""
    return _FIRST_TOKEN <= wire.echo(datagram) < _FIRST_TOKEN + (1 << 32)


class Duel:
    """Both drivers and one script. A failure shows the seed, the last steps and the differences."""

    _STEPS_SHOWN = 25

    def __init__(self, pair, make, seed=0):
        """Builds the scene of each driver with `make(side)`. If `pair` has only our driver, the script only checks that
        our driver continues."""
        self.seed = seed
        self.random = random.Random(seed)
        self._steps = []
        self.scenes = [make(side) for side in pair]
        self._heard_at = 0

    def step(self, text, act=None):
        """Runs `act` on the scenes of both drivers, waits until both drivers have handled it, and compares the drivers.
        Returns the observations of our driver."""
        self._steps.append(text)
        for scene in self.scenes:
            if act:
                act(scene)
        return self.compare()

    def observe_each(self, text, act):
        """Runs `act` on the scenes of both drivers. Returns the observations of each driver without comparing them."""
        self._steps.append(text)
        for scene in self.scenes:
            act(scene)
        type(self.scenes[0]).settle(*self.scenes)
        return [scene.observe() for scene in self.scenes]

    def wait(self, seconds):
        """Lets time pass for both drivers, and compares them."""
        time.sleep(seconds)
        self._steps.append(f"wait {seconds:.3f} s")
        return self.compare()

    def compare(self):
        """Compares the drivers. One driver may be later than the other by up to `PATIENCE_S`."""
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
        """Announces the receivers again, because a driver removes a dynamic destination after 5 s."""
        if time.monotonic() > self._heard_at + _HEAR_AGAIN_S:
            self._heard_at = time.monotonic()
            for scene in self.scenes:
                scene.hear_everything()

    def _report(self, theirs, ours):
        lines = [f"seed {self.seed}: the drivers differ at step {len(self._steps)}"]
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
