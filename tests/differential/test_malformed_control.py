"""Sends every malformed datagram for a publication's control socket to the C driver and to ours."""

import pytest

from differential import cases, differences, wire
from differential.publisher import SendScene
from differential.rig import Duel
from interop.waiting import eventually

_RECEIVER = 0x1122334455667788
_CHANNEL = (
    "aeron:udp?endpoint={{endpoint}}|session-id={session}|term-length=64k|mtu=1408|"
    "init-term-id=50|term-id=50|term-offset=0"
)


def _scene(side, case, stream):
    scene = SendScene(side, _CHANNEL.format(session=case.session), stream)
    scene.send(wire.status(scene.session, stream, 50, 0, 32768, _RECEIVER))
    scene.settle(scene)
    scene.log.append(1024, 1024, 1024, 1024)
    scene.settle(scene)
    scene.send(wire.status(scene.session, stream, 50, 4224, 16384, _RECEIVER))
    scene.settle(scene)
    return scene


@pytest.mark.parametrize("case", cases.of(cases.SENDER), ids=lambda case: case.name)
def test_the_sender_handles_a_malformed_datagram_like_the_c_driver(pairs, case):
    """02-103, 02-106, 02-110, 02-111, 02-114"""
    pair = pairs()
    sides = pair[1:] if case.name in differences.MALFORMED else pair
    with Duel(sides, lambda side: _scene(side, case, case.stream)) as duel:
        begin = duel.step("start")
        before = [scene.setups() for scene in duel.scenes]
        for datagram in case.datagrams:
            duel.step(f"{case.name}: {datagram[:64].hex()}", lambda scene, d=datagram: scene.send(d))
        ours = duel.step("nothing follows")
        if "SETUP" in case.wanted:
            eventually(lambda: [scene.setups() for scene in duel.scenes] == [count + 1 for count in before])
        assert ours["Invalid packets"] == case.counts_as_invalid
        if "snd-lmt moves" in case.wanted:
            assert ours["snd-lmt"] > begin["snd-lmt"]
