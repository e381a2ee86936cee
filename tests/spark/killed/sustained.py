"""A query that runs for a while at a steady rate, and what it holds meanwhile."""

import time
from dataclasses import dataclass

import aeron
from spark.killed.runs import Publisher, check, finish, progress, running

CHANNEL = "aeron:ipc"
SAMPLE_INTERVAL_S = 2


@dataclass(frozen=True)
class Held:
    """What a running query holds at one moment; sizes in bytes."""

    retained: int
    own_memory: int
    descriptors: int
    counters: int
    images: int


def held(place, driver, source):
    """A sample; the memory is without pages that other processes share, as those of log buffers and files are."""
    memory = source.memory_info()
    said = progress(place)[-1]
    with aeron.CncFile(driver.dir) as cnc:
        counters = len(cnc.counters())
    return Held(said["retained"], memory.rss - memory.shared, source.num_fds(), counters, said["images"])


def run_steadily(place, driver, seconds):
    """Samples of a run of so many seconds, at whose end every message is there once."""
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
    """Nothing is higher in the second half than it was in the first, but for what moves with each batch."""
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
