"""Tests that closing an embedded driver loses no published message, and that `flush` waits until messages are sent or
consumed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron

_MESSAGE = bytes(1000)
_COUNT = 2000

_RECEIVER = """
import sys, aeron
settings = eval(sys.argv[3])
with aeron.MediaDriver(**settings) as driver, aeron.connect(driver) as client:
    subscription = client.add_subscription(sys.argv[1], 1)
    print("ready", flush=True)
    count = 0
    while count < int(sys.argv[2]):
        for batch in subscription.batches(timeout=10):
            count += len(batch)
            if count >= int(sys.argv[2]):
                break
        else:
            break
    print(count, flush=True)
    sys.stdin.read()
"""

_SENDER = """
import sys, aeron
driver = aeron.MediaDriver()
client = aeron.connect(driver)
publication = client.add_publication(sys.argv[1], 1)
publication.wait_connected(5)
for _ in range(2000):
    publication.publish(bytes(1000), timeout=5)
"""


@contextmanager
def receiver(channel: str, count: int = _COUNT, settings: str = "{}") -> Iterator[subprocess.Popen[str]]:
    """Runs a process with its own driver. The process prints the number of received messages, and then runs until the
    block ends."""
    command = [sys.executable, "-c", _RECEIVER, channel, str(count), settings]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert line(process) == "ready"
        yield process
    finally:
        process.kill()
        process.communicate()


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.fixture
def channel() -> str:
    return f"aeron:udp?endpoint=127.0.0.1:{free_port()}"


def publish_and_close(channel: str, count: int = _COUNT, **settings: object) -> float:
    """Publishes `count` messages, then closes client and driver. Returns the duration of the close in seconds."""
    with aeron.MediaDriver(**settings) as driver, aeron.connect(driver) as client:
        publication = client.add_publication(channel, 1)
        publication.wait_connected(timeout=5)
        for _ in range(count):
            publication.publish(_MESSAGE, timeout=5)
        start = time.monotonic()
    return time.monotonic() - start


@pytest.mark.parametrize("threading_mode", ["SHARED", "DEDICATED"])
def test_all_messages_arrive_although_the_driver_is_closed_immediately_after_the_last_one(
    channel: str, threading_mode: str
) -> None:
    with receiver(channel) as process:
        seconds = publish_and_close(channel, threading_mode=threading_mode)
        assert line(process) == str(_COUNT)
        assert seconds < 4, "the close waited for the linger timeout, although the receiver has reported the end"


def test_lost_datagrams_are_retransmitted_before_the_driver_ends(channel: str) -> None:
    lossy = "{'incoming_loss': aeron.RandomLoss(rate=0.05, seed=7)}"
    with receiver(channel, settings=lossy) as process:
        publish_and_close(channel)
        assert line(process) == str(_COUNT)


def test_a_driver_without_threads_also_sends_all_messages_before_it_ends(channel: str) -> None:
    with receiver(channel, 1) as process:
        with aeron.MediaDriver(threading_mode="INVOKER") as driver, aeron.connect(driver) as client:
            publication = client.add_publication(channel, 1)

            def is_sent() -> bool:
                driver.do_work()
                return bool(publication.offer(_MESSAGE))

            eventually(is_sent)
        assert line(process) == "1"


def test_closing_a_driver_does_not_wait_for_a_publication_without_receivers(channel: str) -> None:
    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        client.add_publication(channel, 1)
        start = time.monotonic()
    assert time.monotonic() - start < 1


def test_closing_a_driver_does_not_wait_for_subscribers_of_a_closed_client(channel: str) -> None:
    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        subscription = client.add_subscription(channel, 1)
        publication = client.add_publication(channel, 1)
        publication.wait_connected(timeout=5)
        publication.publish(_MESSAGE, timeout=5)
        subscription.wait_connected(timeout=5)
        start = time.monotonic()
    assert time.monotonic() - start < 1


def test_a_receiver_that_ends_cleanly_disconnects_the_publisher_immediately(channel: str) -> None:
    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        publication = client.add_publication(channel, 1)
        with receiver(channel, 1) as process:
            publication.wait_connected(timeout=10)
            publication.publish(_MESSAGE, timeout=5)
            assert line(process) == "1"
            process.communicate()
            # If the receiver did not report its end, the publication would stay connected until the timeout of 5 s.
            eventually(lambda: not publication.is_connected, timeout=2)


def test_closing_a_driver_warns_about_the_bytes_that_a_stopped_receiver_did_not_consume(channel: str) -> None:
    channel = f"{channel}|linger=300ms"
    driver = aeron.MediaDriver()
    with receiver(channel.partition("|")[0]) as process:
        with aeron.connect(driver) as client:
            publications = [client.add_exclusive_publication(channel, 1) for _ in range(2)]
            for publication in publications:
                publication.wait_connected(timeout=5)
            process.send_signal(signal.SIGSTOP)
            for publication in publications:
                publication.publish(_MESSAGE, timeout=5)
        start = time.monotonic()
        with pytest.warns(RuntimeWarning, match="the driver closed before receivers") as caught:
            driver.close()
        assert 0.3 < time.monotonic() - start < 3
    [warning] = caught
    for publication in publications:
        assert f"1056 bytes of {channel} stream 1 session {publication.session_id}" in str(warning.message)


def test_an_open_driver_sends_all_messages_at_the_end_of_the_interpreter(channel: str) -> None:
    with receiver(channel) as process:
        start = time.monotonic()
        done = subprocess.run([sys.executable, "-c", _SENDER, channel], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert line(process) == str(_COUNT)
        assert time.monotonic() - start < 15


def test_sigint_ends_the_wait_of_a_close_and_the_directory_is_deleted(channel: str) -> None:
    code = """
import sys, aeron
driver = aeron.MediaDriver(publication_linger_timeout_ns=60_000_000_000)
client = aeron.connect(driver)
publication = client.add_publication(sys.argv[1], 1)
publication.wait_connected(5)
print("connected", flush=True)
sys.stdin.readline()
publication.publish(bytes(1000), timeout=5)
print(driver.dir, flush=True)
driver.close()
"""
    with receiver(channel) as process:
        sender = subprocess.Popen([sys.executable, "-c", code, channel], stdin=-1, stdout=-1, stderr=-1, text=True)
        assert line(sender) == "connected"
        process.send_signal(signal.SIGSTOP)
        assert sender.stdin is not None
        sender.stdin.write("go\n")
        sender.stdin.flush()
        directory = Path(line(sender))
        time.sleep(0.5)
        assert sender.poll() is None, "the sender did not wait for the receiver"
        sender.send_signal(signal.SIGINT)
        _, stderr = sender.communicate(timeout=10)
        assert "KeyboardInterrupt" in stderr
        assert not directory.exists()


def test_flush_returns_true_when_the_sender_has_sent_all_messages(driver: aeron.MediaDriver, channel: str) -> None:
    with aeron.connect(driver) as client:
        subscription = client.add_subscription(channel, 1)
        publication = client.add_publication(channel, 1)
        publication.wait_connected(timeout=5)
        sent = 0
        while publication.offer(_MESSAGE):
            sent += 1
        assert sent > 100
        # No subscriber polls, and all published messages together are longer than the receiver's window.
        assert not publication.flush(timeout=0.2)
        received = 0
        while received < sent:
            received += len(subscription.poll_batch())
        assert publication.flush(timeout=0), "`flush` returned false after all messages were consumed"


def test_flush_over_ipc_returns_true_when_every_subscriber_has_consumed_all_messages(driver: aeron.MediaDriver) -> None:
    with aeron.connect(driver) as client:
        publication = client.add_exclusive_publication("aeron:ipc?alias=flushed", 77)
        assert publication.flush(timeout=0), "`flush` returned false, although nothing was published"
        subscriptions = [client.add_subscription("aeron:ipc", 77) for _ in range(2)]
        publication.wait_connected(timeout=5)
        eventually(lambda: all(subscription.image_count == 1 for subscription in subscriptions))
        publication.publish(_MESSAGE, timeout=5)
        assert not publication.flush(timeout=0.05)
        assert len(subscriptions[0].poll_batch()) == 1
        assert not publication.flush(timeout=0.05)
        assert len(subscriptions[1].poll_batch()) == 1
        assert publication.flush(timeout=5)
        publication.publish(_MESSAGE, timeout=5)
        subscriptions[0].close()
        subscriptions[1].close()
        assert publication.flush(timeout=5), "`flush` waited for closed subscriptions"
        publication.close()
        with pytest.raises(aeron.PublicationClosedError):
            publication.flush(timeout=0)


def test_flush_over_udp_does_not_wait_for_consumption(driver: aeron.MediaDriver, channel: str) -> None:
    with aeron.connect(driver) as client:
        subscription = client.add_subscription(channel, 1)
        publication = client.add_publication(channel, 1)
        publication.wait_connected(timeout=5)
        publication.publish(_MESSAGE, timeout=5)
        assert publication.flush(timeout=5)
        # The flushed message is sent, but the driver's receiver may not have polled its socket yet.
        eventually(subscription.poll_batch)


def test_a_driver_is_closed_even_if_the_warning_of_its_close_becomes_an_exception() -> None:
    """A warning filter turns the warning into an exception."""
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|linger=100ms"
    with receiver(channel) as process, warnings.catch_warnings():
        warnings.simplefilter("error")
        driver = aeron.MediaDriver()
        with aeron.connect(driver) as client:
            publication = client.add_publication(channel, 1)
            publication.wait_connected(timeout=5)
            process.send_signal(signal.SIGSTOP)
            publication.publish(_MESSAGE, timeout=5)
        with pytest.raises(RuntimeWarning):
            driver.close()
        assert driver.is_closed
        assert not os.path.exists(driver.dir)
