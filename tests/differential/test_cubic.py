"""Compares the receiver windows of cubic congestion control in the C driver and in ours, under `fixed-loss`.

Every datagram of the script is in the range that `fixed-loss` drops once. So each datagram is lost when it is first
sent, a heartbeat reveals the loss, and the script responds to the NAK. The script decides the times of the losses. The
window depends on the clock, so the test compares windows as functions of time: each window of one driver must occur in
the other driver at nearly the same time.
"""

import itertools
import random
import statistics
import struct
import time

import pytest

from differential import differences, wire
from differential.rig import PACE, SCALE
from differential.subscriber import ReceiveScene

_TERM_LENGTH = 1 << 18
_MTU = 1408
_FIXED_LOSS = {
    "AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS": "fixed-loss",
    "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS": f"term-id=0|term-offset=0|length={_TERM_LENGTH}",
}
_INITIAL_RTT_S = 0.02
_INITIAL_RTT = {"AERON_CUBICCONGESTIONCONTROL_INITIALRTT": f"{int(_INITIAL_RTT_S * 1000)}ms"}
_TCP = {"AERON_CUBICCONGESTIONCONTROL_TCPMODE": "true"}
_MEASURED = {"AERON_CUBICCONGESTIONCONTROL_MEASURERTT": "true"}
_ENVIRONMENT = {
    "cubic": _INITIAL_RTT,
    "tcp": {**_INITIAL_RTT, **_TCP},
    "tcp, stock round trip": _TCP,
    "measured": {**_INITIAL_RTT, **_MEASURED},
    "tcp, measured": {**_INITIAL_RTT, **_TCP, **_MEASURED},
}
# The script lengthens each round trip by this time, so that both drivers measure nearly the same time.
_ROUND_TRIP_S = 0.03
_TOLERANCE_S = 0.1 * PACE
_MAX_WINDOW = 131072 // _MTU * _MTU
_CHANCE = 2 * _MTU
_RTT_TOLERANCE_NS = 0.02e9 * PACE
_SAMPLE_S = 0.001
_DURATION_S = 7 * PACE
# The windows change if the machine pauses a driver while a loss is repaired, or pauses the script between two losses.
# The script detects its own pauses, and attempts with such a pause do not count.
_ATTEMPTS = 3
_MOST_ATTEMPTS = 10
_LONGEST_S = 0.02 * PACE


class CubicScene(ReceiveScene):
    """A subscription with cubic congestion control. Each image loses datagrams at the times in its session's plan."""

    def __init__(self, side, stream, plans):
        super().__init__(side, stream, "|cc=cubic")
        self._images = [LosingImage(self, session, plan) for session, plan in plans.items()]

    def run(self, now):
        answers = self.source.take()
        self.source.taken.clear()
        for _, datagram, _ in answers:
            self._answer(datagram)
        for image in self._images:
            image.run(now)

    def series(self):
        return {image.session: image.windows for image in self._images}

    def round_trips(self):
        """Returns the median round-trip time of each image, in nanoseconds."""
        return {image.session: statistics.median(image.round_trips) for image in self._images}

    def requests(self):
        """Returns the number of RTT requests of each image."""
        return {image.session: image.requests for image in self._images}

    def _answer(self, datagram):
        image = next((image for image in self._images if image.session == wire.session(datagram)), None)
        if image and wire.kind(datagram) == wire.NAK:
            image.repair(*struct.unpack_from("<ii", datagram, 20))
        elif image and wire.kind(datagram) == wire.RTTM:
            image.requests += 1
            answer = bytearray(datagram)
            answer[5] = 0
            struct.pack_into("<q", answer, 16, wire.echo(datagram) - int(_ROUND_TRIP_S * 1e9))
            self.send(bytes(answer))


class LosingImage:
    """One session of a scene, with its sent frames, the times of further losses, and the windows of the driver."""

    def __init__(self, scene, session, plan):
        self.session, self.requests, self.windows, self.round_trips = session, 0, [], []
        self._scene, self._plan, self._offset = scene, list(plan), 0
        scene.send(wire.setup(session, scene.stream, initial=0, active=0, offset=0, term_length=_TERM_LENGTH, mtu=_MTU))
        scene.add_image(session)
        stream = f" {session} {scene.stream} "  # images of earlier scenes linger
        labels = {c.label.split(":")[0]: c.id for c in scene.side.control.counters() if stream in c.label}
        self._window_counter, self._rtt_counter = labels["rcv-cc-cubic-wnd"], labels["rcv-cc-cubic-rtt"]

    def run(self, now):
        while self._plan and now >= self._plan[0]:
            self._plan.pop(0)
            self._send(self._offset)
            self._offset += _MTU
            # The heartbeat is sent twice, because the first one is also lost.
            for _ in range(2):
                self._scene.send(wire.heartbeat(self.session, self._scene.stream, 0, self._offset))
        self.round_trips.append(self._scene.side.control.value(self._rtt_counter))
        window = self._scene.side.control.value(self._window_counter)
        if not self.windows or self.windows[-1][1] != window:
            self.windows.append((now, window))
        self._scene.consume(self.session, self._scene.positions(self.session)["rcv-pos"])

    def repair(self, offset, length):
        """Sends the bytes that a NAK requests."""
        for at in range(offset, offset + length, _MTU):
            self._send(at)

    def _send(self, offset):
        self._scene.send(wire.data(self.session, self._scene.stream, 0, offset, bytes(_MTU - 32)))


def _plans(seed):
    """Returns the times at which each session loses a datagram, in seconds."""
    choose = random.Random(seed)
    return {
        11: [0.3, 2.5],
        12: [0.3 + 0.04 * number for number in range(9)],  # down to a window of one datagram
        13: sorted(choose.uniform(0.3, 5) for _ in range(6)),
        14: sorted(choose.uniform(0.3, 3) for _ in range(15)),
    }


@pytest.mark.parametrize("seed", range(1, 1 + SCALE))
def test_cubic_congestion_control_has_nearly_the_same_windows_in_both_drivers(pairs, stream, seed):
    """04-165, 04-166, 04-189"""
    environments, on_time = list(_ENVIRONMENT), 0
    for attempt in range(_MOST_ATTEMPTS):
        # `fixed-loss` drops each range of a stream only once, so each attempt has another stream.
        environments, reasons, longest = _play(pairs, environments, stream + 1000 * attempt, seed)
        if not environments:
            return
        on_time += longest < _LONGEST_S
        if on_time == _ATTEMPTS:
            break
    pytest.fail(f"seed {seed}: " + "\n".join(reasons))


def _play(pairs, environments, stream, seed):
    """Plays all plans in all environments at once.

    Returns the environments with differences between the drivers, the differences, and the longest pause of the script.
    """
    plans = _plans(seed)
    scenes = {
        name: [CubicScene(side, stream, plans) for side in pairs(**_FIXED_LOSS, **_ENVIRONMENT[name])]
        for name in environments
    }
    begin, last, longest = time.monotonic(), 0, 0
    while (now := time.monotonic() - begin) < _DURATION_S:
        longest, last = max(longest, now - last), now
        for pair in scenes.values():
            for scene in pair:
                scene.run(now)
        time.sleep(_SAMPLE_S)
    parted, reasons = [], []
    for name, (theirs, ours) in scenes.items():
        try:
            _assert_series_alike(name, theirs, ours)
        except AssertionError as reason:
            parted.append(name)
            reasons.append(str(reason))
        theirs.close()
        ours.close()
    return parted, reasons, longest


def _assert_series_alike(name, theirs, ours):
    for session, windows in ours.series().items():
        _assert_alike(f"{name}, {session}", theirs.series()[session], windows)
    _assert_measured_alike(name, theirs, ours)


def _assert_alike(what, theirs, ours):
    """Checks all windows after the first loss. Each must occur in the other driver within the time tolerance."""
    assert max(window for _, window in ours) <= _MAX_WINDOW
    theirs = [(at, differences.cubic_window(window, _MAX_WINDOW)) for at, window in theirs]
    theirs, ours = _from_first_loss(theirs), _from_first_loss(ours)
    assert min(len(theirs), len(ours)) > 5, f"{what}: {theirs} {ours}"
    for some, others in ((theirs, ours), (ours, theirs)):
        for (at, window), (until, _) in zip(some, [*some[1:], (_DURATION_S, None)], strict=True):
            if until - at < 2 * _INITIAL_RTT_S:
                continue  # growth is checked once per initial RTT, so the other window may grow just after the loss
            near = _between(others, at - _TOLERANCE_S, until + _TOLERANCE_S)
            # Whether the window grew just before a loss is random. That growth also changes later windows.
            assert min(near) - _CHANCE <= window <= max(near) + _CHANCE, (
                f"{what}: at {at:.3f} {window} not among {near}\nC:    {theirs}\nours: {ours}"
            )


def _from_first_loss(series):
    """Returns the windows after the first loss. Earlier ones depend on the time at which a driver created its image."""
    losses = [n for n, (before, after) in enumerate(itertools.pairwise(series)) if after[1] < before[1]]
    assert losses, f"no loss shows in {series}"
    return series[losses[0] + 1 :]


def _between(series, begin, end):
    """Returns the windows within a period."""
    ends = [at for at, _ in series[1:]] + [float("inf")]
    return [window for (at, window), until in zip(series, ends, strict=True) if at <= end and until >= begin]


def _assert_measured_alike(name, theirs, ours):
    measures = "MEASURERTT" in str(_ENVIRONMENT[name])
    for session, count in theirs.requests().items():
        assert (count > 0) == (ours.requests()[session] > 0) == measures, f"{name}: {count} {ours.requests()}"
        assert ours.requests()[session] == pytest.approx(count, rel=0.3, abs=3)
        assert ours.round_trips()[session] == pytest.approx(theirs.round_trips()[session], abs=_RTT_TOLERANCE_NS)
