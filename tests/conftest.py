"""Fixtures for tests of the Python package: an embedded driver with small logs, a client, and a stream."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.durations import Durations
from tests.spark import jvm

import aeron

# A test may also use the next 19 ids. A stream of a former test can still be open in the driver of the session: a
# subscription to its id would get an image of it.
_stream_ids = itertools.count(1000, 20)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--durations-file", type=Path, default=Path("target/test-durations.csv"))


def pytest_configure(config: pytest.Config) -> None:
    """Lets Spark start quickly, records the duration of tests, and restores the default handler of SIGINT.

    A shell starts background jobs with SIGINT ignored. Without the reset, processes that tests start would ignore it
    too.
    """
    config.pluginmanager.register(Durations(config.getoption("durations_file")))
    jvm.start_quickly()
    # Tests compare what programs print with what Aeron's programs print. Only tests/test_logs.py wants the log too.
    os.environ["AERON_LOG_LEVEL"] = "off"
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def eventually(condition: Callable[[], object], timeout: float = 10.0) -> None:
    """Waits until `condition` returns a true value, and fails after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout} s: {condition}"
        time.sleep(0.001)


@dataclass(frozen=True)
class Stream:
    """A stream with a publication and a subscription of the same client."""

    client: aeron.Aeron
    stream_id: int
    publication: aeron.ExclusivePublication
    subscription: aeron.Subscription

    def receive(self, count: int = 1) -> list[bytes]:
        """Waits for the next `count` messages and returns them."""
        got: list[bytes] = []
        eventually(lambda: got.extend(self.subscription.poll_batch(count - len(got)).to_list()) or len(got) >= count)
        return got


@pytest.fixture(scope="session")
def driver() -> Iterator[aeron.MediaDriver]:
    with aeron.MediaDriver(ipc_term_buffer_length=64 * 1024, timer_interval_ns=100_000_000) as driver:
        yield driver


@pytest.fixture
def client(driver: aeron.MediaDriver) -> Iterator[aeron.Aeron]:
    with aeron.connect(driver) as client:
        yield client


@pytest.fixture
def stream_id() -> int:
    return next(_stream_ids)


@pytest.fixture
def stream(client: aeron.Aeron, stream_id: int) -> Stream:
    publication = client.add_exclusive_publication("aeron:ipc", stream_id)
    subscription = client.add_subscription("aeron:ipc", stream_id)
    publication.wait_connected(timeout=5)
    subscription.wait_connected(timeout=5)
    eventually(lambda: publication.available_window > 0)
    return Stream(client, stream_id, publication, subscription)
