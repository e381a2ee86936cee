"""Tests of the sink on real drivers, with real clients as subscribers."""

import signal
import subprocess
import sys
import textwrap

import pyarrow as pa
import pytest

import aeron
from aeron._aeron import SharedPublications
from interop.kinds import REAL
from interop.peer.pattern import message
from interop.waiting import eventually

IPC = "aeron:ipc"
UNBLOCKED_WITHIN_S = 20  # unblocking after 3 s, and the timer intervals of a busy machine

# A worker that dies while it writes a run of 16 messages of 1024 bytes. The messages start at offset 1024 of a mapped
# file. The third argument is the number of pages in the file. The first read of a byte after the last page kills the
# worker.
WORKER = """
    import mmap, sys, tempfile
    import pyarrow as pa
    from aeron._aeron import SharedPublications

    directory, stream_id, pages = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    file = tempfile.TemporaryFile(dir="/dev/shm")
    file.truncate(5 * mmap.PAGESIZE)
    values = mmap.mmap(file.fileno(), 5 * mmap.PAGESIZE)
    file.truncate(pages * mmap.PAGESIZE)
    offsets = pa.array([1024 + 1024 * index for index in range(17)], pa.int32())
    column = pa.Array.from_buffers(pa.binary(), 16, [None, offsets.buffers()[1], pa.py_buffer(values)])
    client = {"aeron_dir": directory}
    task = SharedPublications().task("aeron:ipc", stream_id, query="dying", partition=0, client=client)
    task.write(pa.record_batch({"value": [b"before"]}))
    task.write(pa.record_batch({"value": column}))
"""
# Numbers of pages in the file. With 0 pages, the worker makes only the first store. With 1 page, it writes three
# frames. With 4 pages, it writes all frames except the payload of the last one.
DEATHS = {"after its first store": 0, "amid the frames": 1, "before its last store": 4}


def sink_task(publications, directory, stream):
    return publications.task(IPC, stream, query="interop", partition=0, client={"aeron_dir": directory})


def start_dying(directory, stream, pages):
    arguments = (directory, str(stream), str(pages))
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(WORKER), *arguments], stderr=subprocess.PIPE)


def received(subscription, count):
    messages = []
    eventually(
        lambda: messages.extend(subscription.poll_batch().to_list()) or len(messages) >= count, UNBLOCKED_WITHIN_S
    )
    return messages


@pytest.fixture
def publications():
    publications = SharedPublications()
    yield publications
    publications.close()


@pytest.mark.parametrize("driver", [*REAL, "ours"])
def test_the_unfinished_run_of_a_dead_worker_becomes_padding_and_other_workers_continue(
    driver, start_driver, publications, stream
):
    """08-71"""
    directory = start_driver(driver).directory
    streams = {where: stream + 10_000 * number for number, where in enumerate(DEATHS, 1)}
    with aeron.connect(directory) as client:
        subscriptions = {where: client.add_subscription(IPC, streams[where]) for where in DEATHS}
        tasks = {where: sink_task(publications, directory, streams[where]) for where in DEATHS}
        for task in tasks.values():
            task.write(pa.record_batch({"value": [b"other worker"]}))
        dying = [start_dying(directory, streams[where], pages) for where, pages in DEATHS.items()]
        for worker in dying:
            _, errors = worker.communicate(timeout=60)
            assert worker.returncode == -signal.SIGBUS, errors
        for where, task in tasks.items():
            task.write(pa.record_batch({"value": [b"behind"]}))
            assert received(subscriptions[where], 3) == [b"other worker", b"before", b"behind"]
            [image] = subscriptions[where].images
            [(_, session, _, end, _)] = task.finish()["streams"]
            assert (image.session_id, image.position) == (session, end)
            assert end == 3 * 64 + 16 * (1024 + 32)
            task.write(pa.record_batch({"value": [b"goes on"]}))
            assert received(subscriptions[where], 1) == [b"goes on"]


@pytest.mark.parametrize("subscriber", [*REAL, "ours"])
def test_real_clients_read_the_messages_of_the_sink(subscriber, shared_drivers, start_peer, publications, stream):
    """08-66, 08-80"""
    driver = shared_drivers("ours")
    subscription = start_peer(subscriber, driver).add_subscription(IPC, stream)
    lengths = [8, 100, 1376, 1377, 5000, 131072]
    count = 3000
    subscription.start_receive(count, lengths)
    task = sink_task(publications, driver.directory, stream)
    values = [message(number, lengths[number % len(lengths)]) for number in range(count)]
    for start in range(0, count, 1000):
        task.write(pa.record_batch({"value": values[start : start + 1000]}))
    assert task.finish(drain=True)["rows"] == count
    answer = subscription.peer.answer(60)
    assert (answer["received"], answer["faults"]) == (count, [])


@pytest.mark.parametrize("driver", REAL)
def test_a_write_is_slower_but_complete_under_back_pressure_of_a_real_driver(
    driver, shared_drivers, start_peer, publications, stream
):
    """08-66, 08-73"""
    running = shared_drivers(driver)
    subscription = start_peer("ours", running).add_subscription(IPC, stream)
    subscription.start_receive(20_000, [1000])
    task = sink_task(publications, running.directory, stream)
    task.write(pa.record_batch({"value": [message(number, 1000) for number in range(20_000)]}))
    assert task.finish(drain=True)["rows"] == 20_000
    answer = subscription.peer.answer(60)
    assert (answer["received"], answer["faults"]) == (20_000, [])
