"""Sends series of SMs, SETUP requests, ERRs and NAKs to the C driver and to ours, under every flow control.

After each step, both drivers must have the same sender position, sender limit, publisher limit, number of receivers in
flow control, sent frames and counters.
"""

import functools
import time
from contextlib import ExitStack, suppress

import pytest

from differential import series
from differential.publisher import SendScene
from differential.rig import PACE, SCALE, Duel

_TAG = 77
_STEPS = 90 * SCALE
_OPERATIONS = {"status": 10, "odd_status": 2, "ask_for_setup": 0.6, "error": 1, "nak": 2, "measure": 0.5, "append": 6}
_GROUP = ("224.20.30.41", "224.20.30.42")

# `{value of fc: tag of the group, or None}`
_OF_MANY = {
    "max": None,
    "max,rrwm:1": None,
    "min": None,
    "min,g:/2": None,
    "min,g:/1,t:30s,rrwm:2": None,
    "tagged": -1,
    f"tagged,g:{_TAG}": _TAG,
    f"tagged,g:{_TAG}/2,t:30s": _TAG,
    "tagged,g:/1,rrwm:1": -1,
}


def _play(pair, make, seed, tag=None):
    with Duel(pair, make, seed) as duel:
        receivers = series.Receivers(duel, tag)
        receivers.start()
        for _ in range(_STEPS):
            receivers.any(_OPERATIONS)


def _id(fc):
    return fc.replace(":", "=")


@pytest.mark.parametrize("seed", range(1, 3))
@pytest.mark.parametrize("fc", _OF_MANY, ids=_id)
def test_flow_control_of_many_receivers_is_the_same_in_both_drivers(pairs, stream, fc, seed):
    """04-121, 04-122, 04-123, 04-124, 04-125, 04-126, 04-127"""
    channel = series.MDC.format(session=stream) + f"|fc={fc}"
    sockets = 1 + series.RECEIVERS
    _play(pairs(), lambda side: SendScene(side, channel, stream, sockets=sockets), seed, _OF_MANY[fc])


@pytest.mark.parametrize("fc", ["max", "min,g:/1", f"tagged,g:{_TAG}"], ids=_id)
def test_flow_control_of_a_multicast_group_is_the_same_in_both_drivers(pairs, stream, fc):
    """04-121, 04-122, 04-124"""
    channel = series.UNICAST.format(session=stream) + f"|interface=127.0.0.1|fc={fc}"
    _play(pairs(), lambda side: SendScene(side, channel, stream, group=_GROUP), 3, _OF_MANY.get(fc))


@pytest.mark.parametrize("fc", ["", "|fc=min,g:/2"], ids=["plain", "fc is ignored"])
def test_flow_control_of_one_receiver_is_the_same_in_both_drivers(pairs, stream, fc):
    """02-31, 02-34"""
    channel = series.UNICAST.format(session=stream) + fc
    _play(pairs(), lambda side: SendScene(side, channel, stream), 4)


_DEFAULTS = {
    "max, without GSO and GRO": {"AERON_UDP_GSO": "false", "AERON_UDP_GRO": "false"},
    "min by default": {
        "AERON_MULTICAST_FLOWCONTROL_SUPPLIER": "multicast_min",
        "AERON_FLOW_CONTROL_GROUP_MIN_SIZE": "2",
    },
    "tagged by default": {
        "AERON_MULTICAST_FLOWCONTROL_SUPPLIER": "multicast_tagged",
        "AERON_FLOW_CONTROL_GROUP_TAG": str(_TAG),
    },
}


@pytest.mark.parametrize("defaults", _DEFAULTS)
def test_configured_default_flow_control_is_the_same_in_both_drivers(pairs, stream, defaults):
    """04-123, 04-124"""
    channel = series.MDC.format(session=stream)
    sockets = 1 + series.RECEIVERS
    _play(pairs(**_DEFAULTS[defaults]), lambda side: SendScene(side, channel, stream, sockets=sockets), 5, _TAG)


# Length of a round, longest time of its steps, and receiver timeout, each for a pace of 1. A round begins with a few
# steps. During these steps, all frames of the previous round are younger than the receiver timeout, and all frames of
# earlier rounds are older.
_ROUND_S = 0.5
_STEPS_S = 0.2
_TIMEOUT_S = 0.75
# A driver also removes a dynamic destination 5 s after its last frame. If `PACE` is 1, no frame of the previous two
# rounds becomes 5 s old during the steps, at any of these paces. Frames may become 5 s old between
# the steps of two rounds.
_PACES = (PACE, 3 * PACE, 7 * PACE)
_TIMED = {"min": None, "min,g:/2": None, f"tagged,g:{_TAG}": _TAG}


class _TooSlow(Exception):
    """The steps of a round took too long, so it is unknown which frames are older than the receiver timeout."""


def test_silent_receivers_leave_flow_control_at_the_same_step_in_both_drivers(pairs, stream):
    """04-122, 04-125"""
    for pace in _PACES[:-1]:
        # Two receivers may send their last frames a few milliseconds apart, so their timeouts also end a few
        # milliseconds apart. If one driver does not run between these two moments, it removes both receivers in one
        # duty cycle. The other driver removes them in two duty cycles, so the limits of the drivers differ. This
        # difference does not occur at every pace. The difference that a defect causes occurs at every pace.
        with suppress(_TooSlow, AssertionError):
            return _play_rounds(pairs(), stream, pace)
    return _play_rounds(pairs(), stream, _PACES[-1])


def _play_rounds(pair, stream, pace):
    with ExitStack() as duels:
        players = []
        for number, (fc, tag) in enumerate(_TIMED.items()):
            session = stream * 10 + int(pace * 100) + number
            channel = series.MDC.format(session=session) + f"|fc={fc},t:{int(_TIMEOUT_S * pace * 1000)}ms"
            make = functools.partial(SendScene, channel=channel, stream=stream, sockets=1 + series.RECEIVERS)
            duel = duels.enter_context(Duel(pair, make, number))
            players.append(series.Receivers(duel, tag))
            players[-1].start()
        begin = time.monotonic()
        for number in range(10 * SCALE):
            for player in players:
                for _ in range(4):
                    player.any({"status": 6, "append": 2, "error": 0.5, "skip": 3})
            if time.monotonic() - begin > number * _ROUND_S * pace + _STEPS_S * pace:
                raise _TooSlow
            time.sleep(max(0, begin + (number + 1) * _ROUND_S * pace - time.monotonic()))
            for player in players:
                player.wait(0)
