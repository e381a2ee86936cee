"""Tests of drivers with 64 MiB of shared memory, the default in containers."""

from pathlib import Path

import pytest
from tests.small_disk import run_on_small_disk

# Time limit for a script: a driver without free pages could wait for ever.
TIMEOUT_S = 60

FIRST_MESSAGE = """
import aeron

with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
    publication = client.add_exclusive_publication("{channel}", 1001)
    subscription = client.add_subscription("{channel}", 1001)
    publication.wait_connected(timeout=5)
    publication.publish(b"hello", timeout=1)
    while not subscription.poll(lambda payload, header: print(payload, header.position)):
        pass
"""

# Both publishers continue until no further page can be allocated for either. A store to a missing page would raise
# SIGBUS.
TWO_PUBLISHERS = """
import aeron

MESSAGE = bytes(1024 * 1024)

with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
    subscriptions = [client.add_subscription("aeron:ipc", stream) for stream in (1, 2)]
    publications = [client.add_publication("aeron:ipc", stream) for stream in (1, 2)]
    for publication in publications:
        publication.wait_connected(timeout=5)
    sent, refused = [0, 0], [False, False]
    while not all(refused):
        for index, publication in enumerate(publications):
            try:
                publication.publish(MESSAGE, timeout=1)
                sent[index] += 1
            except aeron.BackPressureTimeoutError:
                refused[index] = True
    received = [len(subscription.poll_batch(max_bytes=1 << 30)) for subscription in subscriptions]
    print(received == sent, min(sent) >= 4)
"""


def run(script):
    """Runs a script with its own `/dev/shm` of 64 MiB. Returns its output."""
    return run_on_small_disk(script, Path("/dev/shm"), size_mib=64, timeout_s=TIMEOUT_S)


@pytest.mark.parametrize("channel", ["aeron:ipc", "aeron:udp?endpoint=localhost:20121"])
def test_a_publisher_and_a_subscriber_run_in_64_mib(channel):
    assert run(FIRST_MESSAGE.format(channel=channel)) == "b'hello' 64\n"


@pytest.mark.slow
def test_two_publishers_that_need_the_last_pages_get_back_pressure_and_lose_no_message():
    assert run(TWO_PUBLISHERS) == "True True\n"
