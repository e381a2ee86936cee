"""Test of a driver with a low limit for open files. Publications and images must not keep file descriptors open."""

import resource

import aeron
from interop.drivers import PATIENT_SETTINGS
from interop.floods import flooded
from interop.waiting import eventually

DESCRIPTORS = 256
PUBLICATIONS = 3_000
MESSAGE = bytes(1024 * 1024)
# Together, these messages have more bytes than the log, so the driver allocates every page of the log.
MESSAGES = 60


def test_publishers_work_while_a_driver_has_thousands_of_publications_and_flooded_images(start_driver):
    driver = start_driver("ours", PATIENT_SETTINGS)
    resource.prlimit(driver.process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    with aeron.connect(driver.directory) as client, flooded(client, endpoints=1, rate=1000) as flood:
        publications = [
            client.add_publication("aeron:ipc?term-length=64k", stream) for stream in range(1, PUBLICATIONS + 1)
        ]
        eventually(lambda: flood.sent > 2 * DESCRIPTORS)
        subscription = client.add_subscription("aeron:ipc?alias=large", -1)
        publication = client.add_exclusive_publication("aeron:ipc?term-length=16m", -1)
        publication.wait_connected(timeout=10)
        subscription.wait_connected(timeout=10)  # before `publish`, which blocks the polling thread
        received = 0
        for _ in range(MESSAGES):
            publication.publish(MESSAGE, timeout=10)
            received += len(subscription.poll_batch())
        while received < MESSAGES:  # the time limit of the test ends the loop
            received += len(subscription.poll_batch())
        assert received == MESSAGES
        assert len(publications) == PUBLICATIONS
