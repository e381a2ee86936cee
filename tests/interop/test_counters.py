"""Tests of counters of drivers and clients that other processes read."""

import pytest

import aeron
from interop.kinds import each_pair, each_triple
from interop.waiting import eventually

IPC = "aeron:ipc"
PUBLISHER_LIMIT, SUBSCRIBER_POSITION, CLIENT_HEARTBEAT, PUBLISHER_POSITION = 1, 4, 11, 12


def by_id(peer):
    return {counter["id"]: counter for counter in peer.counters()}


@each_triple
def test_another_client_sees_the_counter_of_a_client(driver, publisher, subscriber, shared_drivers, start_peer):
    """03-42, 03-44, 03-113"""
    running = shared_drivers(driver)
    owner, other = start_peer(publisher, running), start_peer(subscriber, running)
    counter = owner.add_counter(1001, "orders sent", key=b"\x01\x02\x03")
    # The test waits for the event with this registration id. The heartbeats of clients are counters too, so there are
    # other events: the heartbeat of `owner` was added, and the driver may free the heartbeat of an earlier client.
    assert other.await_event("counter", registration=counter.registration)["id"] == counter.id
    counter.set(2**40)
    seen = by_id(other)[counter.id]
    assert (seen["type"], seen["label"], seen["value"]) == (1001, "orders sent", 2**40)
    assert seen["key"].startswith("010203" + "00" * 8)
    assert seen["registration"] == counter.registration
    counter.close()
    assert other.await_event("counter_gone", registration=counter.registration)["id"] == counter.id
    eventually(lambda: counter.id not in by_id(other))


@each_triple
def test_all_clients_share_a_static_counter(driver, publisher, subscriber, shared_drivers, start_peer, stream):
    """03-45, 04-28, 04-59"""
    running = shared_drivers(driver)
    first, second = start_peer(publisher, running), start_peer(subscriber, running)
    counter = first.add_counter(1002, "static", registration=stream)
    assert second.add_counter(1002, "another label", registration=stream).id == counter.id
    counter.set(77)
    first.call("disconnect")
    seen = by_id(second)[counter.id]
    assert (seen["label"], seen["value"], seen["owner"]) == ("static", 77, -1)


@each_pair
def test_a_publication_and_a_subscription_have_the_counters_of_the_reference(
    driver, client, shared_drivers, start_peer, stream
):
    running = shared_drivers(driver)
    peer = start_peer(client, running)
    subscription = peer.add_subscription(f"{IPC}?alias=s", stream)
    publication = peer.add_publication(f"{IPC}?alias=p", stream, exclusive=True)
    publication.await_connected()
    registration, session = publication.registration, publication.session
    counters = {c["type"]: c for c in peer.counters() if c["registration"] in {registration, subscription.registration}}
    of_publication = f"{registration} {session} {stream} aeron:ipc?alias=p"
    assert counters[PUBLISHER_POSITION]["label"] == f"pub-pos (exclusive): {of_publication}"
    assert counters[PUBLISHER_LIMIT]["label"] == f"pub-lmt: {of_publication}"
    assert counters[PUBLISHER_LIMIT]["id"] == publication.limit_counter
    of_subscription = f"{subscription.registration} {session} {stream} aeron:ipc?alias=s @0"
    assert counters[SUBSCRIBER_POSITION]["label"] == f"sub-pos: {of_subscription}"
    [image] = subscription.await_images(1)
    assert counters[SUBSCRIBER_POSITION]["id"] == image["position_counter"]


@each_pair
def test_the_label_of_a_clients_heartbeat_has_the_clients_name(driver, client, start_driver, start_peer, stream):
    """03-60, 03-70"""
    running = start_driver(driver)
    peer = start_peer(client, running, name="trader")
    peer.add_subscription(IPC, stream)

    def label():
        [heartbeat] = [c for c in peer.counters() if c["type"] == CLIENT_HEARTBEAT]
        return heartbeat["label"]

    eventually(lambda: "name=trader version=" in label())
    assert label().startswith("client-heartbeat: id=")


@each_triple
def test_session_ids_are_assigned_in_order(driver, publisher, subscriber, shared_drivers, start_peer, stream):
    """03-15, 03-17, 04-60, 04-61"""
    running = shared_drivers(driver)
    first, second = start_peer(publisher, running), start_peer(subscriber, running)
    session = first.call("next_session", stream=stream)["session"]
    assert second.call("next_session", stream=stream)["session"] == session + 1
    assert second.add_publication(IPC, stream, exclusive=True).session == session + 2


@pytest.mark.parametrize("kind", ["c", "java"])
@pytest.mark.parametrize("channel", ["aeron:udp?endpoint=localhost:0", "aeron:ipc"])
def test_our_client_detects_a_flushed_publication_by_the_counters_of_a_real_driver(kind, channel, start_driver):
    """A UDP publication is flushed when all data is sent, an IPC publication when every subscriber has consumed it."""
    driver = start_driver(kind)
    with aeron.connect(driver.directory) as client:
        subscription = client.add_subscription(channel, 77)
        eventually(subscription.try_resolve_channel_endpoint_port)
        publication = client.add_publication(subscription.try_resolve_channel_endpoint_port(), 77)
        publication.wait_connected(timeout=10)
        # A real driver reports the connection before the publisher limit moves.
        eventually(lambda: publication.offer(bytes(1000)))
        sent = 1
        while publication.offer(bytes(1000)):
            sent += 1
        assert not publication.flush(timeout=0.2), "the publication was flushed, although no subscriber has polled"
        received = 0
        while received < sent:
            received += len(subscription.poll_batch())
        assert publication.flush(timeout=5)
