"""Tests of names and sockets of an embedded driver: name resolvers, the port range for port 0, and settings of the
transport.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.conftest import eventually

import aeron
from ports import free_port, two_free_ports


def arrives(client: aeron.Aeron, sending: str, receiving: str, stream_id: int) -> None:
    """Sends a message to the channel `sending`, and receives it from the channel `receiving`."""
    with (
        client.add_subscription(receiving, stream_id) as subscription,
        client.add_publication(sending, stream_id) as publication,
    ):
        publication.publish(b"hello", timeout=10)
        eventually(lambda: subscription.poll_batch().to_list() == [b"hello"])


def test_a_channel_may_contain_a_name_of_a_table(stream_id: int) -> None:
    table = "exchange,127.0.0.1,127.0.0.2|gateway,localhost,localhost"
    with (
        aeron.MediaDriver(name_resolver_supplier="csv_table", name_resolver_init_args=table) as driver,
        aeron.connect(driver) as client,
    ):
        for name in ("exchange", "gateway"):
            port = free_port()
            arrives(client, f"aeron:udp?endpoint={name}:{port}", f"aeron:udp?endpoint=127.0.0.1:{port}", stream_id)
        labels = [counter.label for counter in client.counters_reader if counter.type_id == 2001]
        assert labels[0].startswith("NameEntry{name='exchange'")
        with pytest.raises(aeron.UnknownHostError, match=r"no-such-name\.invalid"):
            client.add_publication("aeron:udp?endpoint=no-such-name.invalid:1", stream_id)


@pytest.fixture
def neighbours() -> Iterator[tuple[aeron.MediaDriver, aeron.MediaDriver]]:
    """Yields two drivers that exchange names."""
    first_port, second_port = free_port(), free_port()

    def driver(name: str, port: int, **settings: str) -> aeron.MediaDriver:
        return aeron.MediaDriver(
            name_resolver_supplier="driver",
            resolver_name=name,
            resolver_interface=f"127.0.0.1:{port}",
            resolver_self_resolution_interval_ns=50_000_000,
            resolver_neighbor_resolution_interval_ns=50_000_000,
            **settings,
        )

    with (
        driver("first", first_port) as first,
        driver("second", second_port, resolver_bootstrap_neighbor=f"127.0.0.1:{first_port}") as second,
    ):
        yield first, second


def test_a_driver_resolves_the_name_of_its_neighbour(
    neighbours: tuple[aeron.MediaDriver, aeron.MediaDriver], stream_id: int
) -> None:
    first, second = neighbours
    port = free_port()
    with aeron.connect(first) as receiver, aeron.connect(second) as sender:
        subscription = receiver.add_subscription(f"aeron:udp?endpoint=127.0.0.1:{port}", stream_id)
        deadline = time.monotonic() + 10
        while True:
            try:
                publication = sender.add_publication(f"aeron:udp?endpoint=first:{port}", stream_id)
                break
            except aeron.UnknownHostError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        publication.publish(b"hello", timeout=10)
        eventually(lambda: subscription.poll_batch().to_list() == [b"hello"])


def test_port_0_is_replaced_by_a_free_port_of_the_configured_range(stream_id: int) -> None:
    """05-44"""
    low = two_free_ports()
    with (
        aeron.MediaDriver(receiver_wildcard_port_range=f"{low} {low + 1}", timer_interval_ns=20_000_000) as driver,
        aeron.connect(driver) as client,
    ):
        channel = "aeron:udp?endpoint=127.0.0.1:0"
        taken = [client.add_subscription(f"{channel}|alias={name}", stream_id) for name in "ab"]
        ports = {int(each.resolved_endpoint.rpartition(":")[2]) for each in taken}
        assert ports == {low, low + 1}
        with pytest.raises(aeron.GenericDriverError, match=f"no available ports in range {low} {low + 1}"):
            client.add_subscription(channel, stream_id)
        taken.pop().close()

        def is_free_again() -> bool:
            try:
                return bool(client.add_subscription(channel, stream_id).resolved_endpoint)
            except aeron.GenericDriverError:
                return False

        eventually(is_free_again)
    with pytest.raises(aeron.ConfigurationError, match='receiver wildcard port range "foo" is invalid'):
        aeron.MediaDriver(receiver_wildcard_port_range="foo")


@pytest.mark.parametrize(
    "settings",
    [
        {"udp_gso": False, "udp_gro": False, "sender_batch_wait_ns": 0},
        {"udp_gso": True, "udp_gro": True, "sender_batch_wait_ns": 1_000_000},
        {
            "connect_enabled": False,
            "socket_rcvbuf": 1 << 20,
            "socket_sndbuf": 1 << 20,
            "initial_window_length": 1 << 18,
        },
        {"mtu_length": 65504, "socket_sndbuf": 1 << 20},
    ],
    ids=["plain", "trains", "buffers", "long datagrams"],
)
@pytest.mark.parametrize("threading_mode", ["shared", "dedicated", "shared_network", "invoker"])
def test_streams_arrive_with_all_settings_of_the_transport(
    settings: dict[str, int], threading_mode: str, stream_id: int
) -> None:
    with (
        aeron.MediaDriver(threading_mode=threading_mode, term_buffer_length=1 << 20, **settings) as driver,
        aeron.connect(driver) as client,
    ):
        channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
        subscription = client.add_subscription(channel, stream_id)
        publication = client.add_exclusive_publication(channel, stream_id)
        messages = [b"%d" % number for number in range(3000)]
        received: list[bytes] = []
        sent = 0
        deadline = time.monotonic() + 20
        while len(received) < len(messages):
            assert time.monotonic() < deadline, (sent, len(received))
            if threading_mode == "invoker":
                driver.do_work()
                client.do_work()
            if sent < len(messages):
                sent += publication.offer_batch(messages, start=sent)
            received += subscription.poll_batch().to_list()
        assert received == messages
