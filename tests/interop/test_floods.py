"""Test of local clients during a flood of SETUP frames. `python -m interop.floods` also floods the C driver."""

import aeron
from interop.drivers import PATIENT_SETTINGS
from interop.floods import flooded, waiting_times

WAIT_S = 0.25
# Share of the added publications that may take longer than WAIT_S, because a busy machine delays processes. No
# publication may take longer than _LONGEST_WAIT_S.
_TOLERATED = 0.01
_LONGEST_WAIT_S = 1
# The flood lasts so long that thousands of its first images end at once, while other images are created.
FLOOD_S = 8


def test_a_client_adds_publications_without_delay_during_a_flood_of_new_sessions(start_driver):
    driver = start_driver("ours", PATIENT_SETTINGS)
    with aeron.connect(driver.directory) as client, flooded(client, endpoints=4, rate=1000) as flood:
        times = waiting_times(client, FLOOD_S)
    assert flood.sent > 2 * FLOOD_S * 1000, "the flood did not keep its rate"
    slow = [round(time, 3) for time in times if time > WAIT_S]
    assert len(slow) <= _TOLERATED * len(times), f"of {len(times)} publications these took too long: {slow}"
    assert max(times) < _LONGEST_WAIT_S
