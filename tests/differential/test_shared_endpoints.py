"""Compares the C driver and ours on channels that share an endpoint: accepted and refused channels, and closing."""

import re
import time

import pytest

from differential.rig import PACE
from interop import control
from ports import free_port

_PUBLICATION, _SUBSCRIPTION = "publication", "subscription"
_LENGTHS = ("", "0", "64k", "128k", "256k")
_SETTINGS = (
    {},
    {"AERON_SOCKET_SO_SNDBUF": "64k", "AERON_SOCKET_SO_RCVBUF": "256k"},
    {"AERON_SOCKET_SO_RCVBUF": "0"},
)
# Pairs of channels with several conflicts, of which a driver reports one, and pairs in which the MTU is longer than one
# of the send buffers.
_OTHER_PAIRS = [
    (_PUBLICATION, "|so-sndbuf=64k", "|so-sndbuf=128k|so-rcvbuf=512k"),
    (_PUBLICATION, "|channel-snd-ts-offset=0|so-sndbuf=8k", "|channel-snd-ts-offset=8|mtu=16k|so-rcvbuf=512k"),
    (_PUBLICATION, "|so-sndbuf=8k", "|mtu=16k"),
    (_PUBLICATION, "|so-sndbuf=8k", "|mtu=16k|so-sndbuf=32k"),
    (_PUBLICATION, "|so-sndbuf=64k", "|mtu=16k|so-sndbuf=8k"),
    (_PUBLICATION, "", "|mtu=16k|so-sndbuf=8k"),
    (_SUBSCRIPTION, "|so-sndbuf=64k", "|so-sndbuf=128k|so-rcvbuf=512k"),
    (_SUBSCRIPTION, "|channel-rcv-ts-offset=0", "|channel-rcv-ts-offset=8|rcv-wnd=1m|so-sndbuf=128k"),
    (_SUBSCRIPTION, "|media-rcv-ts-offset=0|channel-rcv-ts-offset=8", "|media-rcv-ts-offset=8|channel-rcv-ts-offset=0"),
    (_SUBSCRIPTION, "", "|rcv-wnd=1m|so-rcvbuf=512k|so-sndbuf=128k"),
]
_INNERMOST = re.compile(r"^\[\w+, \S+:\d+\] (.+)$", re.MULTILINE)


def pairs_of_lengths():
    """Yields all pairs of socket buffer lengths.

    The receiver window is shorter than the smallest buffer, because a driver also refuses a window longer than the
    buffer."""
    for kind, window in ((_PUBLICATION, ""), (_SUBSCRIPTION, "|rcv-wnd=32k")):
        for key in ("so-sndbuf", "so-rcvbuf"):
            for first in _LENGTHS:
                for second in _LENGTHS:
                    yield kind, *(f"{window}|{key}={length}" if length else window for length in (first, second))


@pytest.mark.parametrize("settings", _SETTINGS, ids=lambda settings: ",".join(settings.values()) or "defaults")
def test_the_same_pairs_of_socket_buffer_lengths_conflict_in_both_drivers(pairs, stream, settings):
    """04-55, 05-36: with and without a length in the channel, for the send buffer and the receive buffer"""
    theirs, ours = pairs(**settings)
    for kind, first, second in pairs_of_lengths():
        seen = [outcome_of_two(side, kind, stream, first, second) for side in (theirs, ours)]
        assert seen[0] == seen[1], f"{kind} {first!r} then {second!r}"


def test_both_drivers_report_the_same_conflict_of_a_shared_endpoint(pairs, stream):
    """04-55, 05-21, 05-36"""
    theirs, ours = pairs()
    for kind, first, second in _OTHER_PAIRS:
        seen = [outcome_of_two(side, kind, stream, first, second) for side in (theirs, ours)]
        assert seen[0] == seen[1], f"{kind} {first!r} then {second!r}"
        assert seen[0] != "accepted", f"{kind} {first!r} then {second!r}"


def test_an_mtu_above_the_default_send_buffer_of_the_driver_is_refused_for_a_shared_endpoint(pairs, stream):
    """05-21"""
    theirs, ours = pairs(AERON_SOCKET_SO_SNDBUF="8k")
    seen = [outcome_of_two(side, _PUBLICATION, stream, "", "|mtu=16k") for side in (theirs, ours)]
    assert seen[0] == seen[1]
    assert "for endpoint: mtu=16384 so-sndbuf=8192" in seen[1][1]


def outcome_of_two(side, kind, stream, first, second):
    """Adds two channels with one address. The driver must accept the first one. Returns the result for the second
    one."""
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    accepted = request(side, kind, stream, channel + first)
    assert accepted.name != "ON_ERROR", accepted.text
    answer = request(side, kind, stream, channel + second)
    for added in (accepted, answer):
        if added.name != "ON_ERROR":
            remove(side, kind, added.correlation)
    if answer.name != "ON_ERROR":
        return "accepted"
    text = _INNERMOST.search(answer.text)[1] if side.kind == "c" else answer.text.splitlines()[1]
    # The C driver writes two spaces into the text of a conflict.
    return answer.code, text.replace(channel, "CHANNEL").replace("  ", " ")


def request(side, kind, stream, channel):
    """Adds a publication or subscription, and returns the driver's response."""
    correlation = side.control.next_id()
    if kind == _PUBLICATION:
        side.perform(control.ADD_EXCLUSIVE_PUBLICATION, control.add(side.client, correlation, stream, channel))
    else:
        body = control.add_subscription(side.client, correlation, stream, channel)
        side.perform(control.ADD_SUBSCRIPTION, body)
    return side.event(
        "ON_EXCLUSIVE_PUBLICATION_READY", "ON_SUBSCRIPTION_READY", "ON_ERROR", correlation=correlation, timeout_s=10
    )


def remove(side, kind, registration):
    correlation = side.control.next_id()
    if kind == _PUBLICATION:
        body = control.remove_publication(side.client, correlation, registration)
        side.perform(control.REMOVE_PUBLICATION, body)
    else:
        side.perform(control.REMOVE_SUBSCRIPTION, control.remove(side.client, correlation, registration))


@pytest.mark.parametrize(
    "options", ["endpoint=127.0.0.1:{port}", "control=127.0.0.1:{port}|control-mode=response", "control-mode=manual"]
)
def test_a_removed_subscription_can_be_added_again_before_the_next_tick_of_the_drivers_timer(pairs, stream, options):
    """03-35, 04-57: an endpoint ends when the receiver has closed the endpoint's socket"""
    timer_interval_s = 4
    for side in pairs(AERON_TIMER_INTERVAL=f"{timer_interval_s}s"):
        channel = "aeron:udp?" + options.format(port=free_port())
        for _ in range(5):
            added = request_until_open(side, stream, channel, PACE * timer_interval_s / 10)
            remove(side, _SUBSCRIPTION, added.correlation)


def request_until_open(side, stream, channel, timeout_s):
    """Requests a subscription again and again while the previous endpoint is closing. Returns the successful
    response."""
    deadline = time.monotonic() + timeout_s
    while (answer := request(side, _SUBSCRIPTION, stream, channel)).name == "ON_ERROR":
        assert answer.code == 10, answer.text
        assert time.monotonic() < deadline, f"{side.kind}: closing for longer than {timeout_s} s"
    return answer
