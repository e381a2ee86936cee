"""Sends series of valid and invalid NAKs to the retransmit handlers of the C driver and of ours."""

import time

import pytest

from differential import differences, series, wire
from differential.publisher import SendScene
from differential.rig import PACE, SCALE, Duel

_STEPS = 100 * SCALE
_OPERATIONS = {"full_status": 2, "nak": 10, "odd_nak": 2, "append": 3}
_CHANNELS = {
    "unicast": series.UNICAST,
    "mdc": series.MDC,
    "mdc, 3 at a time": series.MDC + "|max-resend=3",
    "mdc, small window multiple": series.MDC + "|fc=max,rrwm:1",
}
_each_channel = pytest.mark.parametrize("channel", _CHANNELS)


def _scene(channel, stream):
    text = _CHANNELS[channel].format(session=stream)
    return lambda side: SendScene(side, text, stream, sockets=1 + series.RECEIVERS if "mdc" in channel else 1)


@pytest.mark.parametrize("seed", range(1, 2 + SCALE))
@pytest.mark.parametrize("linger", ["60s", "1us"])
@_each_channel
def test_both_drivers_retransmit_the_same_bytes(pairs, stream, channel, linger, seed):
    """02-39, 02-40, 02-41, 02-42, 02-43, 02-44, 02-46, 02-47, 04-114, 04-115, 04-116, 04-117, 04-118, 04-119, 04-120"""
    with Duel(pairs(AERON_RETRANSMIT_UNICAST_LINGER=linger), _scene(channel, stream), seed) as duel:
        receivers = series.Receivers(duel)
        receivers.start()
        for _ in range(_STEPS):
            receivers.any(_OPERATIONS)


def test_a_nak_beyond_the_sent_bytes_causes_no_resend_of_unsent_bytes(pairs, stream):
    """02-44"""
    length, window = 1408, 2 * 1408
    rest_of_term = series.TERM_LENGTH - series.START_OFFSET
    channel = series.UNICAST.format(session=stream)
    with Duel(pairs(), lambda side: SendScene(side, channel, stream)) as duel:
        term, offset = series.term_and_offset(series.START_OFFSET)
        status = wire.status(stream, stream, term, offset, window, 100)
        duel.step("SM", lambda scene: scene.send(status))
        for scene in duel.scenes:
            scene.log.append(1376)
            scene.log.append(*4 * [480])
        seen = duel.step("bytes within the window")
        sent = seen["snd-pos"] - series.START_OFFSET
        assert length < sent < scene.log.position - series.START_OFFSET
        nak = wire.nak(stream, stream, term, offset, rest_of_term)
        theirs, ours = duel.observe_each("NAK beyond the sent bytes", lambda scene: scene.send(nak))
        differences.assert_resent(theirs, ours, sent)


_DELAY_S = 0.1 * PACE
_LINGER_S = 0.4 * PACE


@_each_channel
def test_delay_and_linger_of_retransmits_are_the_same_in_both_drivers(pairs, stream, channel):
    """02-40, 02-45"""
    pair = pairs(
        AERON_RETRANSMIT_UNICAST_DELAY=f"{int(_DELAY_S * 1000)}ms",
        AERON_RETRANSMIT_UNICAST_LINGER=f"{int(_LINGER_S * 1000)}ms",
    )
    with Duel(pair, _scene(channel, stream), 1) as duel:
        receivers = series.Receivers(duel)
        receivers.start()
        for _ in range(30):
            receivers.any({"full_status": 1, "append": 2})
        for _ in range(4 * SCALE):
            begin = time.monotonic()
            for _ in range(5):
                receivers.nak()
            receivers.wait(max(0, begin + 2 * _DELAY_S - time.monotonic()))
            receivers.nak()
            receivers.wait(_DELAY_S + _LINGER_S + 0.1 * PACE)
