"""Tests of the counters that a client adds, and of the reader for all counters of the driver."""

from __future__ import annotations

import struct

import pytest
from tests.conftest import eventually

import aeron


def test_the_value_of_a_counter_can_be_read_and_changed_until_the_counter_is_closed(client: aeron.Aeron) -> None:
    with client.add_counter(1001, "my counter", b"key") as counter:
        assert counter.value == 0
        assert counter.increment() == 0
        assert counter.get_and_add(10) == 1
        assert counter.decrement() == 11
        counter.set(-5)
        assert counter.value == -5
        assert counter.compare_and_set(-5, 7)
        assert not counter.compare_and_set(-5, 8)
        assert counter.propose_max(9)
        assert not counter.propose_max(8)
        assert counter.value == 9
        assert counter.label == "my counter"
        assert counter.state == 1
        assert not counter.is_static
        with pytest.raises(OverflowError):
            counter.set(2**63)
    assert counter.is_closed
    for call in (lambda: counter.value, counter.increment, lambda: counter.set(1), lambda: counter.label):
        with pytest.raises(aeron.ClientClosedError):
            call()


def test_the_reader_returns_every_counter(client: aeron.Aeron) -> None:
    """03-114"""
    # The search by registration id must find the counter of this test. The registration ids of the driver's own
    # counters start at 0 and stay below 1000, but a new driver gives the same small numbers to the requests of clients.
    while client.next_correlation_id() < 1000:
        pass
    counter = client.add_counter(1001, "seen", b"the key")
    counter.set(42)
    reader = client.counters_reader
    assert reader.value(counter.id) == 42
    assert reader.label(counter.id) == "seen"
    assert reader.type_id(counter.id) == 1001
    assert reader.key(counter.id).startswith(b"the key\0")
    assert reader.registration_id(counter.id) == counter.registration_id
    assert reader.owner_id(counter.id) == client.client_id
    assert reader.reference_id(counter.id) == 0
    assert reader.state(counter.id) == reader.RECORD_ALLOCATED
    assert reader.free_for_reuse_deadline_ms(counter.id) == reader.NOT_FREE_TO_REUSE
    assert reader.find_by_registration_id(counter.registration_id) == counter.id
    assert reader.find_by_type_id_and_registration_id(1001, counter.registration_id) == counter.id
    assert reader.find_by_type_id_and_registration_id(1002, counter.registration_id) == reader.NULL_COUNTER_ID
    snapshot = next(snapshot for snapshot in reader if snapshot.id == counter.id)
    assert (snapshot.value, snapshot.label, snapshot.type_id) == (42, "seen", 1001)
    for wrong in (-1, reader.max_counter_id + 1):
        for get in (reader.value, reader.label, reader.type_id, reader.key, reader.state, reader.owner_id):
            with pytest.raises(IndexError, match="there is no counter with id"):
                get(wrong)


def test_a_snapshot_has_every_counter_in_the_order_of_ids() -> None:
    # This test has its own driver, because counters of earlier tests could be freed between the two reads.
    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        _counters = [client.add_counter(1001, "seen") for _ in range(3)]
        reader = client.counters_reader
        assert [snapshot.id for snapshot in reader.snapshot()] == sorted(snapshot.id for snapshot in reader)


def test_a_key_or_label_that_is_too_long_is_refused(client: aeron.Aeron) -> None:
    """03-43: the client checks the limits."""
    with pytest.raises(ValueError, match="112"):
        client.add_counter(1001, "label", bytes(113))
    with pytest.raises(ValueError, match="380"):
        client.add_counter(1001, "x" * 381)


def test_a_static_counter_remains_after_its_client_has_ended(driver: aeron.MediaDriver, client: aeron.Aeron) -> None:
    """03-45"""
    with aeron.connect(driver) as other:
        counter = other.add_static_counter(2001, "static", 77)
        assert counter.is_static
        assert counter.registration_id == 77
        counter.set(5)
    again = client.add_static_counter(2001, "static", 77)
    assert again.value == 5


def test_handlers_are_called_for_counters_of_all_clients(driver: aeron.MediaDriver) -> None:
    """03-113"""
    events: list[tuple[str, int, int]] = []

    def on(name: str):
        return lambda reader, registration_id, counter_id: events.append((name, registration_id, counter_id))

    with (
        aeron.connect(driver, on_available_counter=on("available"), on_unavailable_counter=on("gone")) as client,
        aeron.connect(driver) as other,
    ):
        added = client.add_available_counter_handler(on("added"))
        counter = other.add_counter(1001, "theirs")
        key = (counter.registration_id, counter.id)
        eventually(lambda: ("available", *key) in events and ("added", *key) in events)
        assert client.remove_available_counter_handler(added)
        counter.close()
        eventually(lambda: ("gone", *key) in events)
        handler = client.add_unavailable_counter_handler(on("x"))
        assert client.remove_unavailable_counter_handler(handler)


def test_a_snapshot_of_a_stream_counter_says_what_it_counts(client: aeron.Aeron, stream_id: int) -> None:
    channel = f"aeron:ipc?term-length=64k|alias={'x' * 200}"
    subscription = client.add_subscription(channel, stream_id)
    publication = client.add_publication(channel, stream_id)
    publication.wait_connected(timeout=5)
    subscription.wait_connected(timeout=5)
    counters = {each.type_id: each for each in client.counters_reader if each.stream_id == stream_id}
    assert {type_id: (each.name, each.kind, each.unit) for type_id, each in counters.items()} == {
        1: ("publisher_limit", "position", "bytes"),
        4: ("subscriber_position", "position", "bytes"),
        12: ("publisher_position", "position", "bytes"),
    }
    for each in counters.values():
        assert (each.channel, each.is_channel_complete) == (channel, True)
        assert (each.session_id, each.recording_id) == (publication.session_id, None)


def test_a_snapshot_of_another_counter_has_no_stream(client: aeron.Aeron) -> None:
    # The driver counts heartbeats of a client from its first command on.
    counter = client.add_counter(1001, "mine", b"key")
    heartbeat = next(each for each in client.counters_reader if each.type_id == 11)
    assert (heartbeat.name, heartbeat.kind, heartbeat.unit) == ("client_heartbeat", "timestamp", "milliseconds")
    assert (heartbeat.channel, heartbeat.stream_id, heartbeat.session_id) == (None, None, None)
    assert not heartbeat.is_channel_complete
    [mine] = [each for each in client.counters_reader if each.id == counter.id]
    assert (mine.name, mine.kind, mine.unit, mine.stream_id) == (None, None, None, None)


@pytest.mark.parametrize("key", [b"", b"short", bytes(range(200))])
def test_a_key_of_any_length_has_a_meaning(key: bytes) -> None:
    for type_id in range(120):
        snapshot = aeron.CounterSnapshot(1, type_id, 0, "label", key, 0, 0, 0)
        assert snapshot.channel is None or isinstance(snapshot.channel, str)


def test_the_key_of_a_stream_counter_has_registration_id_session_id_and_stream_id(
    client: aeron.Aeron, stream_id: int
) -> None:
    publication = client.add_publication("aeron:ipc", stream_id)
    key = client.counters_reader.key(publication.position_limit_id)
    assert struct.unpack_from("<qii", key) == (publication.registration_id, publication.session_id, stream_id)
