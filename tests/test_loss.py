"""Tests of streams with simulated loss. Users can test their programs with the same settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from tests.conftest import Stream, eventually

import aeron

NAKS_SENT = 5
STATUS_MESSAGES_RECEIVED = 8
RETRANSMITS_SENT = 11

DATA = "0x2"
STATUS_MESSAGES = "0x8"

TERM_LENGTH = 64 * 1024
MESSAGE_LENGTH = 1000
# A frame of 1032 bytes, aligned to 32 bytes.
DATAGRAM_LENGTH = 1056


@contextmanager
def lossy(**settings: Any) -> Iterator[aeron.Aeron]:
    with aeron.MediaDriver(timer_interval_ns=100_000_000, **settings) as driver, aeron.connect(driver) as client:
        yield client


def counter(client: aeron.Aeron, counter_id: int) -> int:
    return client.counters_reader.value(counter_id)


def subscribe_and_publish(client: aeron.Aeron, initial_term_id: int = 7) -> Stream:
    subscription = client.add_subscription("aeron:udp?endpoint=127.0.0.1:0", 1001)
    eventually(lambda: subscription.resolved_endpoint)
    channel = (
        f"aeron:udp?endpoint={subscription.resolved_endpoint}|term-length={TERM_LENGTH}"
        f"|init-term-id={initial_term_id}|term-id={initial_term_id}|term-offset=0"
    )
    publication = client.add_exclusive_publication(channel, 1001)
    return Stream(client, 1001, publication, subscription)


def publish_and_receive(stream: Stream, count: int) -> None:
    stream.publication.wait_connected(timeout=10)
    messages = [number.to_bytes(4, "little") * (MESSAGE_LENGTH // 4) for number in range(count)]
    received: list[bytes] = []

    def offer(message: bytes) -> bool:
        received.extend(stream.subscription.poll_batch(100).to_list())
        return not isinstance(stream.publication.offer(message), aeron.NotSent)

    for message in messages:
        eventually(partial(offer, message))
    received += stream.receive(count - len(received))
    assert received == messages


def test_04_188_a_subscriber_receives_no_messages_if_all_data_is_lost() -> None:
    with lossy(
        udp_channel_incoming_interceptors="loss",
        udp_channel_transport_bindings_loss_args=f"rate=1.0|seed=1|recv-msg-mask={DATA}",
    ) as client:
        stream = subscribe_and_publish(client)
        stream.publication.wait_connected(timeout=10)
        stream.publication.publish(b"x" * MESSAGE_LENGTH, timeout=10)
        eventually(lambda: counter(client, STATUS_MESSAGES_RECEIVED) > 3)
        assert stream.subscription.poll_batch(10).to_list() == []


def test_04_188_a_publication_does_not_connect_if_all_status_messages_are_lost() -> None:
    with lossy(
        udp_channel_incoming_interceptors="loss",
        udp_channel_transport_bindings_loss_args=f"rate=1.0|seed=1|recv-msg-mask={STATUS_MESSAGES}",
    ) as client:
        stream = subscribe_and_publish(client)
        stream.subscription.wait_connected(timeout=10)
        with pytest.raises(TimeoutError):
            stream.publication.wait_connected(timeout=1)
        assert counter(client, STATUS_MESSAGES_RECEIVED) == 0


def test_04_189_a_retransmit_repairs_a_fixed_loss() -> None:
    with lossy(
        udp_channel_incoming_interceptors="fixed-loss",
        udp_channel_transport_bindings_fixed_loss_args=f"term-id=7|term-offset={2 * DATAGRAM_LENGTH}|length=100",
    ) as client:
        publish_and_receive(subscribe_and_publish(client), 20)
        assert counter(client, NAKS_SENT) >= 1
        assert counter(client, RETRANSMITS_SENT) >= 1


@pytest.mark.parametrize("gaps", [1, 3, 7])
def test_04_190_multi_gap_loss_causes_the_configured_number_of_gaps(gaps: int) -> None:
    with lossy(
        udp_channel_incoming_interceptors="multi-gap-loss",
        udp_channel_transport_bindings_multi_gap_loss_args=(
            f"term-id=7|gap-radix=4096|gap-length={DATAGRAM_LENGTH}|total-gaps={gaps}"
        ),
    ) as client:
        publish_and_receive(subscribe_and_publish(client), 50)
        assert counter(client, RETRANSMITS_SENT) >= gaps


@pytest.mark.parametrize("udp_gso", [True, False])
def test_a_stream_survives_random_loss_with_and_without_segmentation(udp_gso: bool) -> None:
    with lossy(
        udp_channel_incoming_interceptors="loss",
        udp_channel_transport_bindings_loss_args="rate=0.05|seed=3|recv-msg-mask=0xf",
        udp_gso=udp_gso,
    ) as client:
        publish_and_receive(subscribe_and_publish(client), 2000)
        assert counter(client, RETRANSMITS_SENT) > 10


def test_invalid_arguments_of_a_loss_cause_a_warning(capfd: pytest.CaptureFixture[str]) -> None:
    arguments = "rate=everything|recv-msg-mask=f"
    with lossy(udp_channel_incoming_interceptors="loss", udp_channel_transport_bindings_loss_args=arguments) as client:
        publish_and_receive(subscribe_and_publish(client), 20)
    warning = f"WARNING: AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS={arguments} is invalid, nothing is lost\n"
    assert capfd.readouterr().err == warning
