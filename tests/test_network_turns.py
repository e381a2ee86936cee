"""Tests that a waiting client runs the sender and receiver of a driver in the same process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.conftest import Stream, eventually
from tests.test_udp import exchange, unicast

import aeron

COUNT = 20


@pytest.fixture
def asleep() -> Iterator[aeron.MediaDriver]:
    """Yields a driver. After a duty cycle without work, its sender and receiver sleep for an hour.

    So messages arrive in time only if a waiting client runs the sender and the receiver.
    """
    with aeron.MediaDriver(
        threading_mode="SHARED_NETWORK",
        shared_network_idle_strategy="sleep-ms",
        shared_network_idle_strategy_init_args="3600000",
        term_buffer_length=64 * 1024,
        timer_interval_ns=50_000_000,
    ) as driver:
        yield driver


def stream_of(client: aeron.Aeron, stream_id: int) -> Stream:
    """Connects a stream over UDP. The polls make the client run the driver's sender and receiver."""
    channel = unicast()
    subscription = client.add_subscription(channel, stream_id)
    publication = client.add_exclusive_publication(channel, stream_id)
    eventually(lambda: subscription.poll_batch().to_list() or publication.is_connected)
    return Stream(client, stream_id, publication, subscription)


def by_poll(subscription: aeron.Subscription) -> list[bytes]:
    got: list[bytes] = []
    eventually(lambda: subscription.poll(lambda payload, _: got.append(bytes(payload))) and len(got) >= COUNT)
    return got


def by_poll_batch(subscription: aeron.Subscription) -> list[bytes]:
    got: list[bytes] = []
    eventually(lambda: got.extend(subscription.poll_batch().to_list()) or len(got) >= COUNT)
    return got


def by_batches(subscription: aeron.Subscription) -> list[bytes]:
    got: list[bytes] = []
    for batch in subscription.batches(timeout=30):
        got.extend(batch.to_list())
        if len(got) >= COUNT:
            break
    return got


def by_asyncio(subscription: aeron.Subscription) -> list[bytes]:
    async def collect() -> list[bytes]:
        got: list[bytes] = []
        async for batch in subscription:
            got.extend(batch.to_list())
            if len(got) >= COUNT:
                break
        return got

    return asyncio.run(asyncio.wait_for(collect(), timeout=30))


@pytest.mark.parametrize("receive", [by_poll, by_poll_batch, by_batches, by_asyncio])
def test_a_waiting_client_runs_the_sender_and_receiver_of_its_driver(
    asleep: aeron.MediaDriver, receive: Callable[[aeron.Subscription], list[bytes]]
) -> None:
    with aeron.connect(asleep) as client:
        stream = stream_of(client, 1)
        messages = [b"%d" % number for number in range(COUNT)]
        for message in messages:
            eventually(lambda message=message: stream.publication.offer(message))
        assert receive(stream.subscription) == messages


def test_many_threads_can_wait_for_messages_of_one_driver_and_each_receives_its_messages() -> None:
    with aeron.MediaDriver(term_buffer_length=64 * 1024) as driver, aeron.connect(driver) as client:

        def run(stream_id: int) -> None:
            stream = stream_of(client, stream_id)
            for _ in range(10):
                exchange(stream.publication, stream.subscription, count=100)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(run, range(4)))


def test_a_driver_may_be_closed_while_its_clients_wait() -> None:
    driver = aeron.MediaDriver(term_buffer_length=64 * 1024)
    with aeron.connect(driver) as client:
        stream = stream_of(client, 1)
        is_over = threading.Event()

        def poll() -> None:
            while not is_over.is_set():
                stream.subscription.poll_batch()

        with ThreadPoolExecutor(1) as threads:
            polling = threads.submit(poll)
            driver.close()
            is_over.set()
            polling.result(timeout=30)
        assert not stream.subscription.poll_batch().to_list()
