"""Tests of receiving after the loss of the driver. Every form of receiving raises an error, unless the program has
closed the subscription or the client before.
"""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron
from commands import Command, driver_directory, running_driver

_SENT = b"sent before the driver died"
_ENDED = r"the subscription ended with its client; last positions: session -?\d+ at \d+"


class Scene:
    """A publication and its subscription, on a driver that a test can kill."""

    def __init__(self, client: aeron.Aeron, driver: Command) -> None:
        self.client = client
        self.driver = driver
        self.publication = client.add_publication("aeron:ipc", 1)
        self.subscription = client.add_subscription("aeron:ipc", 1)
        self.subscription.wait_connected(timeout=5)
        [self.image] = self.subscription.images

    def publish(self) -> int:
        return self.publication.publish(_SENT, timeout=5)

    def kill_driver(self) -> None:
        self.driver.send(signal.SIGKILL)
        eventually(lambda: self.client.is_closed)


@pytest.fixture
def scene() -> Iterator[Scene]:
    with (
        driver_directory() as directory,
        running_driver(directory, AERON_TIMER_INTERVAL="50ms") as driver,
        aeron.connect(
            directory, driver_timeout_ms=300, keepalive_interval_ns=20_000_000, error_handler=ignore
        ) as client,
    ):
        yield Scene(client, driver)


def ignore(*_: object) -> None:
    pass


POLLS: list[Callable[[aeron.Subscription], object]] = [
    lambda subscription: subscription.poll(ignore),
    lambda subscription: subscription.poll(ignore, fragment_limit=10, copy=False),
    lambda subscription: subscription.poll(aeron.FragmentAssembler(ignore), 10),
    lambda subscription: subscription.controlled_poll(lambda *_: aeron.Action.CONTINUE),
    lambda subscription: subscription.block_poll(ignore, 4096),
    lambda subscription: subscription.raw_poll(ignore, 4096),
    lambda subscription: subscription.poll_batch(),
    lambda subscription: next(iter(subscription.batches())),
    lambda subscription: next(iter(subscription.batches(timeout=0.1))),
    lambda subscription: asyncio.run(first(subscription)),
]


async def first(subscription: aeron.Subscription) -> aeron.Batch:
    return await anext(aiter(subscription))


IMAGE_POLLS: list[Callable[[aeron.Image], object]] = [
    lambda image: image.poll(ignore),
    lambda image: image.controlled_poll(lambda *_: aeron.Action.CONTINUE),
    lambda image: image.bounded_poll(ignore, 1 << 40),
    lambda image: image.bounded_controlled_poll(lambda *_: aeron.Action.CONTINUE, 1 << 40),
    lambda image: image.block_poll(ignore, 4096),
    lambda image: image.raw_poll(ignore, 4096),
]


def test_after_a_kill_of_the_driver_every_form_of_polling_raises_an_error(
    scene: Scene,
) -> None:
    position = scene.publish()
    assert scene.subscription.poll(ignore) == 1
    scene.kill_driver()
    for _ in range(2):
        for poll in POLLS:
            with pytest.raises(aeron.SubscriptionClosedError, match=_ENDED) as caught:
                poll(scene.subscription)
            assert isinstance(caught.value.__cause__, aeron.DriverTimeoutError)
            assert f"session {scene.image.session_id} at {position}" in str(caught.value)
        for image_poll in IMAGE_POLLS:
            text = f"session {scene.image.session_id}: the image ended with its client at position {position}"
            with pytest.raises(aeron.SubscriptionClosedError, match=re.escape(text)) as caught:
                image_poll(scene.image)
            assert isinstance(caught.value.__cause__, aeron.DriverTimeoutError)


def test_a_waiting_iterator_returns_the_messages_that_it_has_read_and_then_raises_an_error(scene: Scene) -> None:
    scene.publish()
    got: list[bytes] = []
    with pytest.raises(aeron.SubscriptionClosedError, match=_ENDED):
        for batch in scene.subscription.batches():
            got += batch.to_list()
            scene.driver.send(signal.SIGKILL)
    assert got == [_SENT]


def test_a_waiting_async_for_raises_an_error_after_a_kill_of_the_driver(scene: Scene) -> None:
    scene.publish()
    got: list[bytes] = []

    async def receive() -> None:
        async for batch in scene.subscription:
            got.extend(batch.to_list())
            scene.driver.send(signal.SIGKILL)

    with pytest.raises(aeron.SubscriptionClosedError, match=_ENDED):
        asyncio.run(asyncio.wait_for(receive(), 20))
    assert got == [_SENT]


def test_polling_a_subscription_without_an_image_raises_an_error_after_a_kill_of_the_driver(scene: Scene) -> None:
    lonely = scene.client.add_subscription("aeron:ipc", 2)
    scene.kill_driver()
    with pytest.raises(aeron.SubscriptionClosedError, match=r"stream 2: .* it had no image"):
        lonely.poll(ignore)


def test_polls_of_a_closed_subscription_return_nothing_and_raise_no_error(scene: Scene) -> None:
    other = scene.client.add_subscription("aeron:ipc", 1)
    other.close()
    scene.subscription.close()
    for subscription in (scene.subscription, other):
        assert subscription.poll(ignore) == 0
        assert not subscription.poll_batch()
        assert list(subscription.batches()) == []
    assert scene.image.poll(ignore) == 0
    # The loss of the client causes no error, because the test has already closed the subscriptions.
    scene.kill_driver()
    assert scene.subscription.poll(ignore) == 0
    assert list(other.batches()) == []


def test_closing_the_client_ends_waiting_iterators_without_an_error(scene: Scene) -> None:
    scene.client.close()
    assert scene.subscription.poll(ignore) == 0
    assert list(scene.subscription.batches()) == []

    async def receive() -> list[aeron.Batch]:
        return [batch async for batch in scene.subscription]

    assert asyncio.run(receive()) == []


def test_closing_an_embedded_driver_before_its_client_is_reported_as_the_loss_of_the_driver() -> None:
    driver = aeron.MediaDriver(timer_interval_ns=20_000_000)
    with aeron.connect(driver, keepalive_interval_ns=20_000_000, error_handler=ignore) as client:
        subscription = client.add_subscription("aeron:ipc", 1)
        driver.close()
        with pytest.raises(aeron.SubscriptionClosedError, match="it had no image"):
            list(subscription.batches(timeout=10))


def test_a_consumer_process_fails_after_a_kill_of_its_driver() -> None:
    code = """
import sys, aeron
with aeron.connect(sys.argv[1], driver_timeout_ms=300, error_handler=lambda error: None) as client:
    subscription = client.add_subscription("aeron:ipc", 1)
    print("ready", flush=True)
    for batch in subscription.batches():
        pass
"""
    with driver_directory() as directory, running_driver(directory) as driver:
        consumer = subprocess.Popen([sys.executable, "-c", code, str(directory)], stdout=-1, stderr=-1, text=True)
        assert consumer.stdout is not None
        assert consumer.stdout.readline() == "ready\n"
        driver.send(signal.SIGKILL)
        start = time.monotonic()
        _, stderr = consumer.communicate(timeout=20)
        assert time.monotonic() - start < 5
        assert consumer.returncode == 1
        assert "SubscriptionClosedError: aeron:ipc, stream 1: the subscription ended with its client" in stderr


@pytest.mark.parametrize("command", ["sub", "rate", "pong", "receive"])
def test_receiving_commands_end_with_status_1_after_a_kill_of_their_driver(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with (
        driver_directory() as directory,
        running_driver(directory) as driver,
        Command(command, "--dir", directory, "--driver-timeout", 0.5) as receiver,
    ):
        eventually(lambda: has_subscription(directory))
        driver.send(signal.SIGKILL)
        assert receiver.end() == 1
        assert "Traceback" not in receiver.errors()


def has_subscription(directory: Path) -> bool:
    with aeron.CncFile(directory, timeout_ms=1000) as cnc:
        return any("rcv-channel" in counter.label for counter in cnc.counters())
