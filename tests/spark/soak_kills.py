"""Kills the processes of a query on a live stream at several points of the pipeline, twenty times in all. In one more
test, the query stays down until messages are lost.

`make soak` runs this file. It takes a quarter of an hour.
"""

import threading

import pytest

import aeron
from spark.killed.runs import STREAM_ID, Kill, Publisher, check, progress, run_killed, run_to_the_end

PROCESSES = ["source", "application", "jvm"]
KILLS = [
    *[Kill("indexed", whom, 2000) for whom in PROCESSES],
    Kill("appended", "source", 3000, wait_s=15),
    *[Kill("planned", whom, 4) for whom in PROCESSES],
    *[Kill("purged", whom, 2) for whom in PROCESSES],
    *[Kill("taken-over", whom) for whom in PROCESSES],
    Kill(None, "source", wait_s=15),
    Kill(None, "application", wait_s=15),
    Kill(None, "worker"),
    Kill(None, "jvm"),
]


def killed(place, directory, kills):
    """Runs a query with these kills. Returns the ranges of missing positions."""
    publisher = Publisher(place, "aeron:ipc", directory)
    try:
        for kill in kills:
            run_killed(place, "aeron:ipc", directory, kill)
        accepted = run_to_the_end(place, "aeron:ipc", directory, publisher)
        return check(place, publisher, accepted)
    finally:
        publisher.close()


@pytest.mark.timeout(3600)
def test_each_message_is_read_once_after_seventeen_kills(java, media_driver, shared_memory):
    assert killed(shared_memory, media_driver.dir, KILLS) == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("whom", PROCESSES)
def test_a_kill_inside_batch_0_loses_nothing(java, media_driver, shared_memory, whom):
    assert killed(shared_memory, media_driver.dir, [Kill("batch-zero", whom)]) == []


@pytest.mark.timeout(600)
def test_the_progress_reports_the_exact_gap_after_a_long_absence(java, media_driver, shared_memory):
    """08-20, 08-49: another subscriber keeps the publication connected while no query runs"""
    done = threading.Event()
    with aeron.connect(media_driver) as client, client.add_subscription("aeron:ipc", STREAM_ID) as other:

        def read():
            while not done.wait(0.001):
                other.poll_batch()

        reader = threading.Thread(target=read)
        reader.start()
        try:
            missing = killed(shared_memory, media_driver.dir, [Kill(None, "application", wait_s=15)])
        finally:
            done.set()
            reader.join()
    # Messages that were sent before the first subscription are not a gap.
    [gap] = [(begin, end) for begin, end in missing if begin]
    assert gap[1] - gap[0] == progress(shared_memory)[-1]["gap"]
