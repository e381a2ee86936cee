"""Measures the cost of single calls within one process: `pytest bench/test_calls.py`, or `make bench`.

One thread is publisher and subscriber. Before each round, the thread reads all messages and waits until the publisher
limit has moved, so no measured call has back pressure."""

import time

import numpy as np
import pytest

import aeron

pytest.importorskip("pytest_benchmark")

MESSAGE = bytes(32)
COUNT = 1000


@pytest.fixture
def stream(tmp_path):
    directory = f"/dev/shm/aeron-bench-{tmp_path.name}"
    driver = aeron.MediaDriver(dir=directory, dir_delete_on_shutdown=True)
    with driver, aeron.connect(driver) as client:
        publication = client.add_exclusive_publication("aeron:ipc", 1001)
        subscription = client.add_subscription("aeron:ipc", 1001)
        publication.wait_connected(timeout=5)
        yield publication, subscription


def make_room(publication, subscription):
    """Reads all messages, and waits until the driver has moved the publisher limit."""
    while subscription.poll_batch() or publication.available_window < COUNT * 64:
        time.sleep(0)


def sent_and_taken(benchmark, stream, send):
    """Measures `send`, which sends COUNT messages. Between the rounds the subscriber reads them."""
    publication, subscription = stream
    benchmark.extra_info["messages"] = COUNT
    benchmark.pedantic(send, setup=lambda: make_room(publication, subscription), rounds=200, warmup_rounds=20)


def test_offer(benchmark, stream):
    offer = stream[0].offer

    def send():
        for _ in range(COUNT):
            while not offer(MESSAGE):
                pass

    sent_and_taken(benchmark, stream, send)


def test_try_claim_and_commit(benchmark, stream):
    try_claim = stream[0].try_claim

    def send():
        for _ in range(COUNT):
            while not (claim := try_claim(32)):
                pass
            with claim as view:
                view[:] = MESSAGE

    sent_and_taken(benchmark, stream, send)


def test_offer_batch_of_rows(benchmark, stream):
    rows = np.zeros((COUNT, 32), np.uint8)
    sent_and_taken(benchmark, stream, lambda: stream[0].offer_batch(rows))


def test_offer_batch_of_a_list(benchmark, stream):
    messages = [MESSAGE] * COUNT
    sent_and_taken(benchmark, stream, lambda: stream[0].offer_batch(messages))


def filled_and_polled(benchmark, stream, poll):
    """Measures `poll`, which reads COUNT messages. Between the rounds the publisher sends them."""
    publication, subscription = stream
    messages = [MESSAGE] * COUNT
    benchmark.extra_info["messages"] = COUNT

    def fill():
        make_room(publication, subscription)
        start = 0
        while start < COUNT:
            start += publication.offer_batch(messages, start=start)

    benchmark.pedantic(poll, setup=fill, rounds=200, warmup_rounds=20)


def test_poll_with_a_handler(benchmark, stream):
    poll = stream[1].poll
    filled_and_polled(benchmark, stream, lambda: poll(lambda payload, header: None, COUNT))


def test_poll_with_a_handler_that_takes_views(benchmark, stream):
    poll = stream[1].poll
    filled_and_polled(benchmark, stream, lambda: poll(lambda view, header: None, COUNT, copy=False))


def test_poll_batch_as_records(benchmark, stream):
    poll_batch = stream[1].poll_batch
    filled_and_polled(benchmark, stream, lambda: poll_batch().as_records("V32"))


def test_poll_batch_as_a_list(benchmark, stream):
    poll_batch = stream[1].poll_batch
    filled_and_polled(benchmark, stream, lambda: poll_batch().to_list())
