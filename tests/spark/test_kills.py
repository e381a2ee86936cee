"""Test that each recorded message occurs once after a query on a live stream is killed and restarted with its
checkpoint.

`make soak` runs more kills: `soak_kills.py`.
"""

import pytest

from spark.killed.runs import Kill, Publisher, check, progress, run_killed, run_to_the_end

KILLS = [Kill("batch-zero", "application"), Kill("appended", "source", 2000), Kill("purged", "jvm", 2)]


@pytest.mark.timeout(600)  # starts four applications, and each takes a minute on a busy machine
def test_each_message_is_read_once_after_kills(java, media_driver, shared_memory):
    """08-14, 08-22, 08-45: over IPC no message is missing, because the publisher waits or is not connected while no
    query runs
    """
    publisher = Publisher(shared_memory, "aeron:ipc", media_driver.dir)
    try:
        for kill in KILLS:
            run_killed(shared_memory, "aeron:ipc", media_driver.dir, kill)
        accepted = run_to_the_end(shared_memory, "aeron:ipc", media_driver.dir, publisher)
        assert check(shared_memory, publisher, accepted) == []
    finally:
        publisher.close()
    assert progress(shared_memory)[-1]["gap"] == 0
