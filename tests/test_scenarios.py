"""Runs scenarios of section 9 of the specification's document 06 (`docs/spec`) with the commands of `docs/cli.md`. Most
of the scenarios have two drivers, on one or two hosts.

The two hosts are network namespaces, which only root can make. They share the file system, so the two drivers have
different directories.
"""

from __future__ import annotations

import re
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import eventually

import aeron
from commands import Command, driver_directory, run, running_driver
from scenario_hosts import two_namespaces

pytestmark = pytest.mark.slow

NOT_CONNECTED = "Offer failed because publisher is not connected to a subscriber"
KEEPALIVE = r"^ERROR: .*MediaDriver keepalive: age=(\d+)ms > timeout=(\d+)ms"

IMAGE_LIVENESS_S = 2.0
SETTINGS = {
    "AERON_THREADING_MODE": "SHARED",
    "AERON_TERM_BUFFER_LENGTH": "64k",
    "AERON_TIMER_INTERVAL": "100ms",
    "AERON_IMAGE_LIVENESS_TIMEOUT": f"{IMAGE_LIVENESS_S:g}s",
    "AERON_PUBLICATION_LINGER_TIMEOUT": "500ms",
}
SLACK_S = 2.0
"""Seconds that are added to each time limit, because the machine may be busy."""


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


# ---- hosts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Host:
    """A host with one driver and its clients. `namespace` is `None` for the host on which the test runs."""

    directory: Path
    address: str
    namespace: str | None = None

    def driver(self, **settings: str) -> contextmanager[Command]:
        return running_driver(self.directory, namespace=self.namespace, **{**SETTINGS, **settings})

    def command(self, name: str, channel: str, *arguments: object) -> Command:
        return Command(name, "--dir", self.directory, "-c", channel, *arguments, namespace=self.namespace)

    def files(self) -> dict[str, int]:
        """Returns the number of files in each folder of the driver's directory, and 1 for each file beside the
        folders."""
        found: dict[str, int] = {}
        for path in self.directory.rglob("*"):
            if path.is_file():
                kind = path.parent.name if path.parent != self.directory else path.name
                found[kind] = found.get(kind, 0) + 1
        return found

    def has_files(self, **logs: int) -> bool:
        """Returns whether the directory has only the driver's own files and, in each folder, this number of logs."""
        return self.files() == {"aeron-driver.lock": 1, "cnc.dat": 1, "loss-report.dat": 1, **logs}


@dataclass(frozen=True)
class Hosts:
    """The hosts of the subscriber and of the publisher."""

    subscriber: Host
    publisher: Host
    network: str

    def unicast(self) -> str:
        return f"aeron:udp?endpoint={self.subscriber.address}:{free_port()}"

    def multicast(self) -> str:
        return f"aeron:udp?endpoint=224.10.9.7:{free_port()}|interface={self.network}"


@pytest.fixture(scope="module", params=["one host", "two hosts"])
def namespaces(request: pytest.FixtureRequest) -> Iterator[tuple[str, str] | None]:
    if request.param == "one host":
        yield None
        return
    with two_namespaces() as names:
        yield names


@pytest.fixture
def hosts(namespaces: tuple[str, str] | None) -> Iterator[Hosts]:
    with driver_directory() as first, driver_directory() as second:
        if namespaces is None:
            yield Hosts(Host(first, "127.0.0.1"), Host(second, "127.0.0.1"), "localhost")
        else:
            a, b = namespaces
            yield Hosts(Host(first, "10.77.1.1", a), Host(second, "10.77.1.2", b), "10.77.1.0/24")


@contextmanager
def both_drivers(hosts: Hosts) -> Iterator[None]:
    """Runs both drivers. After the block, each driver must end cleanly at a SIGINT."""
    with hosts.subscriber.driver() as one, hosts.publisher.driver() as two:
        yield
        for driver in (one, two):
            driver.send(signal.SIGINT)
            assert driver.end() == 2
            assert (driver.output(), driver.errors()) == ("Shutting down driver...\n", "")


def numbers(subscriber: Command) -> list[int]:
    """Returns the numbers in the messages that a subscriber has printed."""
    return [int(number) for number in re.findall(r"<<Hello World! (\d+) *>>", subscriber.output())]


# ---- 9.1 to 9.3 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["multicast", "unicast"])
def test_a_subscriber_that_starts_first_receives_all_messages_in_order(hosts: Hosts, form: str) -> None:
    """06-24, 06-27 (9.1, 9.3): the image ends after the publisher has ended"""
    channel = getattr(hosts, form)()
    with both_drivers(hosts):
        assert hosts.subscriber.has_files()
        assert hosts.publisher.has_files()
        with hosts.subscriber.command("sub", channel) as sub:
            sub.wait_for("Subscription channel status 1\n")
            time.sleep(1)
            assert hosts.subscriber.has_files()
            with hosts.publisher.command("pub", channel, "-m", 3, "--interval", 1, "--linger", 0.5) as pub:
                sub.wait_for("Available image")
                eventually(lambda: hosts.subscriber.has_files(images=1))
                assert hosts.publisher.has_files(publications=1)
                assert pub.end() == 0
            ended = time.monotonic()
            sub.wait_for("Unavailable image", IMAGE_LIVENESS_S + 1 + SLACK_S)
            assert time.monotonic() - ended < IMAGE_LIVENESS_S + 1 + SLACK_S
            offers = re.findall(r"offering (\d)/3 - (.*)", pub.output())
            sent = [int(number) for number, result in offers if result == "yay!"]
            assert [number for number, _ in offers] == ["0", "1", "2"]
            assert sent in ([0, 1, 2], [1, 2]), "only the first offer may fail, before the publication is connected"
            assert numbers(sub) == sent
            assert f" from {hosts.publisher.address}:" in sub.output()
            eventually(lambda: hosts.publisher.has_files() and hosts.subscriber.has_files())
            sub.send(signal.SIGINT)
            assert sub.end() == 0


@pytest.mark.parametrize("form", ["multicast", "unicast"])
def test_a_subscriber_that_starts_later_misses_no_message_after_its_first_message(hosts: Hosts, form: str) -> None:
    """06-24, 06-27 (9.2, 9.3)"""
    channel = getattr(hosts, form)()
    with both_drivers(hosts):
        with hosts.publisher.command("pub", channel, "--interval", 0.2) as pub:
            pub.wait_for("offering 2/")
            assert hosts.publisher.has_files(publications=1)
            assert hosts.subscriber.has_files()
            with hosts.subscriber.command("sub", channel) as sub:
                eventually(lambda: len(numbers(sub)) >= 5, timeout=30)
                pub.send(signal.SIGINT)
                assert pub.end() == 0
                sub.wait_for("Unavailable image", IMAGE_LIVENESS_S + 1 + SLACK_S)
                sub.send(signal.SIGTERM)
                assert sub.end() == 0
        results = dict(re.findall(r"offering (\d+)/\d+ - (.*)", pub.output()))
        assert results["0"] == results["1"] == NOT_CONNECTED
        assert "No active subscribers detected" in pub.output()
        sent = [int(number) for number, result in results.items() if result == "yay!"]
        assert sent == list(range(sent[0], len(results)))
        assert numbers(sub) == sent
        eventually(lambda: hosts.publisher.has_files() and hosts.subscriber.has_files())


# ---- 9.5 -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def host() -> Iterator[Host]:
    with driver_directory() as directory:
        yield Host(directory, "127.0.0.1")


def test_a_spy_and_a_network_subscriber_receive_the_same_stream(host: Host) -> None:
    """06-24 (9.5)"""
    channel = f"aeron:udp?endpoint={host.address}:{free_port()}"
    with (
        host.driver(),
        host.command("sub", f"aeron-spy:{channel}", "-m", 3) as spy,
        host.command("sub", channel, "-m", 3) as sub,
    ):
        for each in (spy, sub):
            each.wait_for("Subscription channel status 1\n")
        # The publisher runs until both subscribers have enough messages, because an unknown number of offers fails
        # before the publication is connected.
        with host.command("pub", channel, "--interval", 0.2) as pub:
            assert (spy.end(), sub.end()) == (0, 0)
            pub.send(signal.SIGINT)
            assert pub.end() == 0
        assert numbers(sub)[-1] >= 2
        assert numbers(spy)[-1] >= 2
        assert " from aeron:ipc" in spy.output()


def test_a_spy_alone_connects_a_publication_only_with_the_channel_parameter_ssc(host: Host) -> None:
    """06-24 (9.5)"""
    channel = f"aeron:udp?endpoint={host.address}:{free_port()}"
    with host.driver(), host.command("sub", f"aeron-spy:{channel}") as spy:
        spy.wait_for("Subscription channel status 1\n")
        with host.command("pub", channel, "-m", 3, "--interval", 0.1) as pub:
            assert pub.end() == 0
            assert pub.output().count(NOT_CONNECTED) == 3
        spy.wait_for("Unavailable image")
        with host.command("pub", f"{channel}|ssc=true", "--interval", 0.1) as pub:
            eventually(lambda: len(numbers(spy)) >= 4, timeout=30)
            pub.send(signal.SIGINT)
            assert pub.end() == 0
        sent = [int(number) for number in re.findall(r"offering (\d+)/\d+ - yay!", pub.output())]
        eventually(lambda: numbers(spy) == sent)


# ---- 9.6 and 9.7 ---------------------------------------------------------------------------------------------------


def test_a_killed_driver_ends_its_network_clients(hosts: Hosts) -> None:
    """06-25 (9.6): clients of a killed driver end at most 1 s after the driver timeout; the other driver continues"""
    channel, timeout_s = hosts.unicast(), 2
    with hosts.subscriber.driver() as receiving, hosts.publisher.driver() as sending:
        patience = ["--driver-timeout", timeout_s]
        with (
            hosts.subscriber.command("sub", channel, *patience) as sub,
            hosts.publisher.command("pub", channel, "--interval", 0.05, *patience) as pub,
        ):
            sub.wait_for("<<Hello World! 5")
            sending.send(signal.SIGKILL)
            killed = time.monotonic()
            assert pub.end(timeout_s + 1 + SLACK_S) == 1
            assert time.monotonic() - killed < timeout_s + 1 + SLACK_S
            sub.wait_for("Unavailable image")
            receiving.send(signal.SIGKILL)
            killed = time.monotonic()
            assert sub.end(timeout_s + 1 + SLACK_S) == 1
            assert time.monotonic() - killed < timeout_s + 1 + SLACK_S
            for client in (pub, sub):
                age, timeout = map(int, re.search(KEEPALIVE, client.errors()).groups())
                assert age > timeout == timeout_s * 1000
                assert "Traceback" not in client.errors()
    for host in (hosts.subscriber, hosts.publisher):
        shutil.rmtree(host.directory)


def test_network_clients_end_immediately_after_a_clean_end_of_their_driver(hosts: Hosts) -> None:
    """06-26 (9.7)"""
    channel = hosts.unicast()
    with (
        hosts.subscriber.driver() as receiving,
        hosts.publisher.driver() as sending,
        hosts.subscriber.command("sub", channel) as sub,
        hosts.publisher.command("pub", channel, "--interval", 0.05) as pub,
    ):
        sub.wait_for("<<Hello World! 5")
        for driver, client in ((sending, pub), (receiving, sub)):
            driver.send(signal.SIGINT)
            assert driver.end() == 2
            ended = time.monotonic()
            assert client.end(1 + SLACK_S) == 1
            assert time.monotonic() - ended < 1 + SLACK_S
            assert re.search("^ERROR: .*MediaDriver has been shutdown", client.errors())
            assert driver.output() == "Shutting down driver...\n"
    for host in (hosts.subscriber, hosts.publisher):
        shutil.rmtree(host.directory)


# ---- 9.11 ----------------------------------------------------------------------------------------------------------

LOSSY = {
    "AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS": "loss",
    "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS": "rate=0.02|seed=11|recv-msg-mask=0x3",
    "AERON_TERM_BUFFER_LENGTH": "1m",
}
NAKS_SENT, NAKS_RECEIVED, RETRANSMITS, GAP_FILLS, RETRANSMITTED_BYTES = 5, 6, 11, 23, 36


def system_counters(host: Host) -> dict[int, int]:
    with aeron.CncFile(host.directory) as cnc:
        return {counter.id: counter.value for counter in cnc.counters() if counter.type_id == 0}


def test_lost_data_is_retransmitted_and_reported(hosts: Hosts) -> None:
    """06-24 (9.11): publisher and subscriber report the same number of messages and bytes"""
    channel, count = hosts.unicast(), 200_000
    with (
        hosts.subscriber.driver(**LOSSY),
        hosts.publisher.driver(**LOSSY),
        hosts.subscriber.command("rate", channel, "-m", count) as rate,
    ):
        rate.wait_for("Subscription channel status")
        with hosts.publisher.command("rate", channel, "--publish", "-m", count, "--linger", 2) as streaming:
            assert rate.end(45) == 0
            assert streaming.end(45) == 0
        for output in (rate.output(), streaming.output()):
            assert f"totals {count} messages {count * 32 >> 20} MB payloads" in output
        received, sent = system_counters(hosts.subscriber), system_counters(hosts.publisher)
        assert received[NAKS_SENT] > 0
        assert min(sent[NAKS_RECEIVED], sent[RETRANSMITS], sent[RETRANSMITTED_BYTES]) > 0
        report = run("loss", "--dir", hosts.subscriber.directory).stdout.splitlines()
        assert report[-1] == "1 entries read"
        assert re.fullmatch(
            rf"\d+,\d+,.*,.*,-?\d+,1001,{re.escape(channel)},{re.escape(hosts.publisher.address)}:\d+", report[1]
        )


def test_numbered_messages_arrive_in_order_although_datagrams_are_lost() -> None:
    """06-24 (9.11)"""
    count, channel = 200_000, f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    with (
        aeron.MediaDriver(term_buffer_length=1 << 20, incoming_loss=aeron.RandomLoss(0.02, seed=5)) as driver,
        aeron.connect(driver) as client,
    ):
        subscription = client.add_subscription(channel, 1001)
        publication = client.add_exclusive_publication(channel, 1001)
        publication.wait_connected(timeout=10)
        messages = np.arange(count, dtype="<i8").reshape(-1, 1)
        sent = received = 0
        deadline = time.monotonic() + 50
        while received < count:
            assert time.monotonic() < deadline, (sent, received)
            if sent < count:
                sent += publication.offer_batch(messages[sent : sent + 1000])
            batch = subscription.poll_batch()
            got = batch.as_records("<i8")
            assert (got == messages[received : received + len(batch), 0]).all()
            received += len(batch)
        [loss] = aeron.read_loss_report(driver.dir)
        assert loss.total_bytes_lost > 0


def test_an_unreliable_stream_has_gaps_and_continues(hosts: Hosts) -> None:
    """06-24 (9.11)"""
    channel = f"{hosts.unicast()}|reliable=false"
    with (
        hosts.subscriber.driver(**LOSSY),
        hosts.publisher.driver(**LOSSY),
        hosts.subscriber.command("rate", channel) as rate,
    ):
        rate.wait_for("Subscription channel status")
        with hosts.publisher.command("rate", channel, "--publish", "-m", 200_000) as streaming:
            assert streaming.end(45) == 0
        eventually(lambda: system_counters(hosts.subscriber)[GAP_FILLS] > 0)
        eventually(lambda: re.search(r"totals [1-9]\d* messages", rate.output()), timeout=20)
        rate.send(signal.SIGINT)
        assert rate.end() == 0
        totals = [int(total) for total in re.findall(r"totals (\d+) messages", rate.output())]
        assert totals[-1] < 200_000
        assert system_counters(hosts.subscriber)[NAKS_SENT] == 0
