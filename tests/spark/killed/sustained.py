"""Measures the resources of a query that runs at a steady rate."""

import time
from dataclasses import dataclass

import aeron
from spark.killed.runs import Publisher, check, finish, progress, running

CHANNEL = "aeron:ipc"
SAMPLE_INTERVAL_S = 2


@dataclass(frozen=True)
class Held:
    """Resources of a running query at one time. Sizes are in bytes."""

    retained: int
    own_memory: int
    descriptors: int
    counters: int
    images: int


def held(place, driver, source):
    """Takes a sample. Memory does not include pages that other processes share, such as log buffers and files."""
    memory = source.memory_info()
    said = progress(place)[-1]
    with aeron.CncFile(driver.dir) as cnc:
        counters = len(cnc.counters())
    return Held(said["retained"], memory.rss - memory.shared, source.num_fds(), counters, said["images"])


def run_steadily(place, driver, seconds):
    """Runs a query for this many seconds and returns samples of its resources. Checks that each message occurs once."""
    publisher = Publisher(place, CHANNEL, driver.dir)
    try:
        with running(place, CHANNEL, driver.dir) as application:
            application.await_(lambda: len(progress(place)) > 3)
            source = application.source_process()
            samples = []
            for _ in range(seconds // SAMPLE_INTERVAL_S):
                time.sleep(SAMPLE_INTERVAL_S)
                samples.append(held(place, driver, source))
            accepted = finish(place, application, publisher)
        assert check(place, publisher, accepted) == []
    finally:
        publisher.close()
    return samples


def check_flat(samples):
    """Checks that no resource has a higher maximum in the second half of the samples than in the first half. A slack
    allows for changes within a batch.
    """
    half = len(samples) // 2
    first, second = samples[:half], samples[half:]
    for name, slack in (
        ("retained", 16 << 20),
        ("own_memory", 16 << 20),
        ("descriptors", 4),
        ("counters", 2),
        ("images", 0),
    ):
        before, after = (max(getattr(sample, name) for sample in part) for part in (first, second))
        assert after <= before + slack, (name, [getattr(sample, name) for sample in samples])
