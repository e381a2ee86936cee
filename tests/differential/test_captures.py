"""Plays the captured sessions to the C driver and to ours. The script is the source of an image or the receivers.

As the subscriber, the script consumes bytes as soon as they arrive. As the publisher, it appends the captured frames.
Both drivers must send the same frames.
"""

import functools
import itertools
import struct
from dataclasses import dataclass

import pytest

from differential import captures, series, wire
from differential.publisher import SendScene
from differential.rig import Duel
from differential.subscriber import ReceiveScene

_TERM_LENGTH = 65536
_STREAM = 1001


@dataclass(frozen=True)
class Session:
    """A capture with its ports. The channels of the publication and the subscription have the captured parameters."""

    name: str
    session: int
    initial_term: int
    start: int
    # `sender_leg` has the ports of the datagrams to and from the publication's driver. `receiver_port` is the
    # destination of the datagrams to the receiver.
    sender_leg: tuple
    receiver_port: int
    channel: str
    subscription: str = ""
    group: tuple | None = None


_LIKE = "term-length=64k|mtu=1408|session-id={}|init-term-id={}|term-id={}|term-offset={}"
_SESSIONS = [
    Session(
        "unicast-loss-retransmit-eos",
        7001,
        100,
        _TERM_LENGTH + 49152,
        (24301,),
        24302,
        "aeron:udp?endpoint={endpoint}|" + _LIKE.format(7001, 100, 101, 49152),
    ),
    Session(
        "mdc-dynamic-two-receivers",
        7002,
        5,
        0,
        (24311,),
        24312,
        "aeron:udp?control=127.0.0.1:0|control-mode=dynamic|fc=min|" + _LIKE.format(7002, 5, 5, 0),
        "|gtag=-77",
    ),
    Session(
        "multicast-loopback-loss",
        7003,
        9,
        0,
        (24320,),
        24320,
        "aeron:udp?endpoint={endpoint}|interface=127.0.0.1|ttl=3|" + _LIKE.format(7003, 9, 9, 0),
        "|group=false",
        ("224.20.30.39", "224.20.30.40"),
    ),
]
_each_session = pytest.mark.parametrize("captured", _SESSIONS, ids=lambda session: session.name)


def _is_to_receiver(datagram):
    return wire.kind(datagram) in (wire.DATA, wire.PAD, wire.SETUP)


def _is_revoked(datagram):
    return wire.is_heartbeat(datagram) and bool(wire.flags(datagram) & wire.REVOKED)


def _position(captured, datagram):
    offset, term = struct.unpack_from("<i8xi", datagram, 8)
    return (term - captured.initial_term) * _TERM_LENGTH + offset


@_each_session
def test_a_captured_source_has_the_same_effects_on_an_image_in_both_drivers(pairs, captured):
    """04-141, 04-144"""
    played = [
        datagram.payload
        for datagram in captures.read(captured.name)
        if datagram.port == captured.receiver_port and _is_to_receiver(datagram.payload)
    ]
    # The frames from the revocation on are left out: a revoked image ends at the next tick of the driver's timer.
    played = list(itertools.takewhile(lambda payload: not _is_revoked(payload), played))
    with Duel(pairs(), lambda side: ReceiveScene(side, _STREAM, captured.subscription)) as duel:
        duel.step("start")
        has_image = False
        for payload in played:
            seen = duel.step(wire.readable(payload), lambda scene, p=payload: scene.send(p))
            if wire.kind(payload) == wire.SETUP and not has_image:
                has_image = True
                for scene in duel.scenes:
                    scene.add_image(captured.session)
                seen = duel.step("image")
            if has_image:
                position = seen[f"rcv-pos of {captured.session}"]
                duel.step(f"read to {position}", lambda scene, p=position: scene.consume(captured.session, p))
        assert has_image


@_each_session
def test_captured_receivers_have_the_same_effects_on_a_publication_in_both_drivers(pairs, captured):
    """02-39, 02-46"""
    pair = pairs(AERON_RETRANSMIT_UNICAST_LINGER="1us")

    def make(side):
        sockets = 3 if "control-mode" in captured.channel else 1
        return SendScene(side, captured.channel, _STREAM, sockets=sockets, group=captured.group)

    sent = [d for d in captures.read(captured.name) if {d.port, d.source_port} & set(captured.sender_leg)]
    receivers = []
    with Duel(pair, make) as duel:
        duel.step("start")
        for datagram in sent:
            payload = datagram.payload
            if not _is_to_receiver(payload):
                if datagram.source_port not in receivers:
                    receivers.append(datagram.source_port)
                number = 1 + receivers.index(datagram.source_port)
                answer = functools.partial(_answer, payload=payload, receiver=number)
                if _asks_for_setup(captured, payload):
                    series.send_and_await_setup(duel, answer)
                    answer = None
                duel.step(wire.readable(payload), answer)
            elif wire.kind(payload) != wire.SETUP and not wire.is_heartbeat(payload):
                _append(duel, _position(captured, payload), payload)


def _asks_for_setup(captured, payload):
    is_request = wire.kind(payload) == wire.SM and bool(wire.flags(payload) & wire.SM_SETUP)
    return is_request and wire.session(payload) == captured.session


def _answer(scene, payload, receiver):
    scene.send(payload, receiver if scene.is_mdc else 0)


def _append(duel, position, payload):
    """Appends frames of the captured publisher. Retransmitted frames are left out."""
    if position < duel.scenes[0].log.position:
        return
    for scene in duel.scenes:
        scene.log.copy(position, payload)
    frames = duel.step(f"append {wire.readable(payload)}")["frames"]
    assert any(wire.readable(payload) in frame for frame in frames), frames
