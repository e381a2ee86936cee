"""Series of SMs, SETUP requests, ERRs and NAKs under every flow control, to the C driver and to ours.

After each step the sender position and limit, the publisher limit, the receivers that flow control counts, everything
that was sent and every counter of the driver must be the same.
"""

import pytest

from differential import series
from differential.rig import SCALE, Duel, SendScene

_TAG = 77
_STEPS = 120 * SCALE
_OPERATIONS = {"status": 10, "odd_status": 2, "ask_for_setup": 0.6, "error": 1, "nak": 2, "measure": 0.5, "append": 6}

_MULTICAST = {
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


@pytest.mark.parametrize("seed", range(1, 3))
@pytest.mark.parametrize("fc", _MULTICAST, ids=lambda fc: fc.replace(":", "="))
def test_flow_control_of_many_receivers(pairs, stream, fc, seed):
    """04-121, 04-122, 04-123, 04-124, 04-125, 04-126"""
    channel = series.MDC.format(session=stream) + f"|fc={fc}"
    with Duel(pairs(), lambda side: SendScene(side, channel, stream, sockets=1 + series.RECEIVERS), seed) as duel:
        receivers = series.Receivers(duel, stream, stream, _MULTICAST[fc])
        receivers.start()
        for _ in range(_STEPS):
            receivers.any(_OPERATIONS)
