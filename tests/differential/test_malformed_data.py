"""Sends every malformed datagram for a subscription's data socket to the C driver and to ours."""

import re
import time

import pytest

from differential import cases, differences, wire
from differential.rig import Duel
from differential.subscriber import ReceiveScene

_TERM = 50
_TERM_LENGTH = 65536
_IMAGE_TIME_S = 0.05


def _join_offset(case):
    """Returns the join position of the image that the case requires, or `None` if the case requires no image."""
    found = re.search(r"offset (\d+)", case.precondition)
    return int(found[1]) if found else None


def _scene(side, case):
    scene = ReceiveScene(side, case.stream)
    offset = _join_offset(case)
    if offset is not None:
        scene.send(
            wire.setup(case.session, case.stream, initial=_TERM, active=_TERM, offset=offset, term_length=_TERM_LENGTH)
        )
        scene.add_image(case.session)
        if offset == 0:
            # The receiver executes one command per duty cycle. Earlier commands may delay the one that adds the image.
            scene.settle(scene)
            scene.send(wire.data(case.session, case.stream, _TERM, 0, b"A" * 32))
    return scene


@pytest.mark.parametrize("case", cases.of(cases.RECEIVER), ids=lambda case: case.name)
def test_the_receiver_handles_a_malformed_datagram_like_the_c_driver(pairs, case):
    """02-103, 02-104, 02-105, 02-107, 02-108, 02-109, 04-192, 04-193"""
    pair = pairs()
    sides = pair[1:] if case.name in differences.MALFORMED else pair
    with Duel(sides, lambda side: _scene(side, case)) as duel:
        duel.step("start")
        for datagram in case.datagrams:
            ours = duel.step(f"{case.name}: {datagram[:64].hex()}", lambda scene, d=datagram: scene.send(d))
        assert ours["Invalid packets"] == case.counts_as_invalid
        makes_image = "image created" in case.wanted
        if _join_offset(case) is None:
            _await_image(duel, case, makes_image)
        duel.step("the first frames of the image")
        follow_up = wire.data(case.session, case.stream, _TERM, 64, b"B" * 32)
        duel.step("a valid frame at 64", lambda scene: scene.send(follow_up))


def _await_image(duel, case, wanted):
    deadline = time.monotonic() + _IMAGE_TIME_S
    for scene in duel.scenes:
        while not scene.has_image(case.session) and time.monotonic() < deadline:
            scene.settle(scene)
        assert scene.has_image(case.session) == wanted, scene.side.kind
