"""Tests of clients and drivers that end cleanly or are killed. Others continue, and all resources are freed."""

import time
from pathlib import Path

import pytest

from interop.kinds import each_pair
from interop.peers import transfer
from interop.waiting import eventually

IPC = "aeron:ipc"
CLIENT_TIMEOUTS, UNBLOCKED_PUBLICATIONS = 24, 19
CLIENT_HEARTBEAT = 11
NOTICED_WITHIN_S = 5  # the liveness timeout of 2 s, and a few timer intervals


def log_files(driver):
    return sorted(path.name for path in (Path(driver.directory) / "publications").iterdir())


def counter_value(peer, id):
    return next(counter["value"] for counter in peer.counters() if counter["id"] == id)


def resources_of(peer, client):
    """Returns the driver's counters that a client owns. One of them is the client's heartbeat."""
    return [counter for counter in peer.counters() if counter["owner"] == client]


@each_pair
def test_an_image_becomes_available_and_unavailable_with_its_publication(
    driver, client, shared_drivers, start_peer, stream
):
    """03-65, 03-106, 03-107, 04-79"""
    running = shared_drivers(driver)
    subscriber = start_peer(client, running)
    subscription = subscriber.add_subscription(IPC, stream)
    publication = start_peer(client, running).add_publication(IPC, stream, exclusive=True)
    [came] = [event for event in subscriber.await_events("image") if event["event"] == "image"]
    assert came["session"] == publication.session
    assert came["correlation"] == publication.registration
    assert came["source"] == IPC
    assert (came["join"], came["position"], came["initial_term"]) == (0, 0, publication.initial_term)
    publication.await_connected()
    transfer([publication], [subscription], 10, [100])
    publication.close()
    [went] = [event for event in subscriber.await_events("image_gone") if event["event"] == "image_gone"]
    assert (went["session"], went["closed"], went["end_of_stream"]) == (publication.session, True, True)
    assert subscription.images() == []


@each_pair
def test_an_image_stays_until_the_subscriber_has_read_all_messages(driver, client, shared_drivers, start_peer, stream):
    """03-65"""
    running = shared_drivers(driver)
    subscription = start_peer(client, running).add_subscription(IPC, stream)
    publication = start_peer(client, running).add_publication(IPC, stream, exclusive=True)
    publication.await_connected()
    subscription.await_images(1)
    assert [publication.offer(500) > 0 for _ in range(5)] == [True] * 5
    publication.close()
    time.sleep(0.5)
    [image] = subscription.images()
    assert image["end_of_stream"] is False
    assert subscription.receive(5, [500])["received"] == 5
    subscription.await_images(0)


@each_pair
def test_revoking_a_publication_ends_its_image_although_messages_are_unread(
    driver, client, shared_drivers, start_peer, stream
):
    """03-28, 04-81"""
    running = shared_drivers(driver)
    subscriber = start_peer(client, running)
    subscriber.add_subscription(IPC, stream)
    publication = start_peer(client, running).add_publication(IPC, stream, exclusive=True)
    publication.await_connected()
    assert publication.offer(500) > 0
    publication.close(revoke=True)
    [went] = [event for event in subscriber.await_events("image_gone") if event["event"] == "image_gone"]
    assert went["revoked"] is True
    # A driver sends the event before it increments the counter.
    eventually(lambda: counter_value(subscriber, 40) >= 1)


@each_pair
def test_the_publisher_of_a_rejected_image_gets_an_error_and_the_image_returns_later(
    driver, client, start_driver, start_peer, stream
):
    """03-47, 03-111, 03-112, 04-85"""
    # The image returns after this time. Until then, the test checks the publisher.
    running = start_driver(driver, {"AERON_IMAGE_LIVENESS_TIMEOUT": "4s"})
    subscriber, publisher = start_peer(client, running), start_peer(client, running)
    subscription = subscriber.add_subscription(IPC, stream)
    publication = publisher.add_publication(IPC, stream)
    publication.await_connected()
    subscription.await_images(1)
    subscription.reject(publication.session, "not wanted here")
    told = publisher.await_event("publication_error")
    assert (told["code"], told["text"]) == (13, "not wanted here")
    assert (told["registration"], told["session"], told["stream"]) == (
        publication.registration,
        publication.session,
        stream,
    )
    subscriber.await_event("image_gone")
    publication.await_connected(connected=False)
    subscriber.await_event("image")
    publication.await_connected()


@each_pair
def test_closing_a_client_frees_all_of_its_resources(driver, client, start_driver, start_peer, stream):
    """03-62, 06-27"""
    running = start_driver(driver)
    watcher, leaver = start_peer(client, running), start_peer(client, running)
    leaving = leaver.call("connect", dir=running.directory)["client"]
    watcher.add_subscription(IPC, stream)
    # A client adds its name to the label of its heartbeat some time after the driver has created the counter.
    eventually(lambda: all("version=" in c["label"] for c in watcher.counters() if c["type"] == CLIENT_HEARTBEAT))
    before = [(c["id"], c["label"]) for c in watcher.counters()]
    publication = leaver.add_publication(IPC, stream)
    leaver.add_subscription(IPC, stream)
    leaver.add_counter(1001, "mine")
    publication.await_connected()
    assert resources_of(watcher, leaving) != []
    leaver.call("disconnect")
    eventually(lambda: resources_of(watcher, leaving) == [])
    eventually(lambda: log_files(running) == [])
    eventually(lambda: [(c["id"], c["label"]) for c in watcher.counters()] == before)
    assert counter_value(watcher, CLIENT_TIMEOUTS) == 0


@each_pair
def test_the_driver_removes_a_killed_subscriber_and_the_others_continue(
    driver, client, start_driver, start_peer, stream
):
    """03-61, 04-26, 04-29"""
    running = start_driver(driver)
    publisher, killed, survivor = (start_peer(client, running) for _ in range(3))
    publication = publisher.add_publication(f"{IPC}?term-length=64k", stream)
    dying, surviving = (peer.add_subscription(IPC, stream) for peer in (killed, survivor))
    for subscription in (dying, surviving):
        subscription.await_images(1)
    publication.await_connected()
    positions = [c for c in publisher.counters() if c["type"] == 4]
    assert len(positions) == 2
    killed.kill()
    # These messages exceed the term window, so the dead subscriber blocks the publisher until the driver removes it.
    transfer([publication], [surviving], 500, [1000])
    assert len([c for c in publisher.counters() if c["type"] == 4]) == 1
    assert counter_value(publisher, CLIENT_TIMEOUTS) == 1
    publisher.await_events("counter_gone")


@each_pair
def test_the_image_of_a_killed_publisher_becomes_unavailable(driver, client, start_driver, start_peer, stream):
    """03-61, 04-28"""
    running = start_driver(driver)
    subscriber, killed = start_peer(client, running), start_peer(client, running)
    subscription = subscriber.add_subscription(IPC, stream)
    publication = killed.add_publication(IPC, stream)
    owned = killed.add_counter(1001, "of the dead")
    static = killed.add_counter(1002, "static", registration=5)
    publication.await_connected()
    assert publication.offer(100) > 0
    assert subscription.receive(1, [100])["received"] == 1
    killed.kill()
    went = subscriber.await_events("counter_gone", "image_gone", count=3, timeout_s=NOTICED_WITHIN_S)
    assert owned.id in {event["id"] for event in went if event["event"] == "counter_gone"}
    assert subscription.images() == []
    assert static.id in {counter["id"] for counter in subscriber.counters()}
    eventually(lambda: log_files(running) == [])


@each_pair
def test_a_publisher_killed_in_a_claim_does_not_block_the_stream(driver, client, start_driver, start_peer, stream):
    """04-30, 04-82: the driver turns the dead client's claim into padding; then the live client's messages arrive"""
    # The messages do not arrive before the unblock timeout.
    running = start_driver(driver, {"AERON_PUBLICATION_UNBLOCK_TIMEOUT": "6s"})
    subscriber, killed, survivor = (start_peer(client, running) for _ in range(3))
    subscription = subscriber.add_subscription(IPC, stream)
    dying = killed.add_publication(IPC, stream)
    publication = survivor.add_publication(IPC, stream)
    assert publication.session == dying.session
    publication.await_connected()
    dying.await_connected()
    assert dying.hold(200) > 0
    killed.kill()
    assert publication.offer(64) > 0
    assert subscription.receive(1, [64], timeout_s=0.5)["received"] == 0
    received = subscription.receive(1, [64], timeout_s=2 * NOTICED_WITHIN_S)
    assert (received["received"], received["faults"]) == (1, [])
    # A driver unblocks the publication before it increments the counter.
    eventually(lambda: counter_value(subscriber, UNBLOCKED_PUBLICATIONS) == 1)


@each_pair
def test_a_stream_ends_if_its_only_publisher_is_killed_in_a_claim(driver, client, start_driver, start_peer, stream):
    """04-82"""
    running = start_driver(driver)
    subscriber, killed = start_peer(client, running), start_peer(client, running)
    subscription = subscriber.add_subscription(IPC, stream)
    publication = killed.add_publication(IPC, stream, exclusive=True)
    publication.await_connected()
    assert publication.offer(64) > 0
    assert publication.hold(200) > 0
    killed.kill()
    assert subscription.receive(1, [64])["received"] == 1
    deadline = time.monotonic() + 2 * NOTICED_WITHIN_S
    while subscription.images():
        assert time.monotonic() < deadline, "the image of a dead publisher stays"
        assert subscription.receive(1, [64], timeout_s=0.2)["received"] == 0
    eventually(lambda: log_files(running) == [])


@each_pair
def test_clients_end_after_the_driver_timeout_when_the_driver_is_killed(
    driver, client, start_driver, start_peer, stream
):
    """03-73, 03-75, 06-25"""
    running = start_driver(driver)
    publisher = start_peer(client, running, driver_timeout_ms=2000)
    subscriber = start_peer(client, running, driver_timeout_ms=2000)
    subscription = subscriber.add_subscription(IPC, stream)
    publication = publisher.add_publication(IPC, stream)
    publication.await_connected()
    running.kill()
    for peer in (publisher, subscriber):
        texts = [event["text"] for event in peer.await_events("error") if event["event"] == "error"]
        assert any("keepalive" in text and "> timeout=2000ms" in text for text in texts), texts
        eventually(peer.is_closed)
    assert publication.offer(32) == -4
    assert subscription.receive(1, [32], timeout_s=0.1)["received"] == 0


@each_pair
def test_clients_end_immediately_when_the_driver_is_shut_down(driver, client, start_driver, start_peer, stream):
    """03-8, 03-73, 06-26"""
    running = start_driver(driver)
    peer = start_peer(client, running)
    peer.add_publication(IPC, stream)
    running.stop()
    texts = [event["text"] for event in peer.await_events("error", timeout_s=5) if event["event"] == "error"]
    assert any("has been shutdown" in text for text in texts), texts
    eventually(peer.is_closed)


@each_pair
def test_a_new_driver_takes_over_the_directory_of_a_dead_driver(driver, client, start_driver, start_peer, stream):
    """04-12, 04-13: a new driver refuses a live driver's directory, and takes over the directory of a dead driver"""
    settings = {"AERON_DRIVER_TIMEOUT": "1000"}
    dead = start_driver(driver, settings)
    with pytest.raises(AssertionError, match="did not start"):
        start_driver(driver, {**settings, "AERON_DRIVER_TIMEOUT": "10000"}, directory=dead.directory)
    assert dead.process.exit_code is None
    dead.kill()
    time.sleep(1.2)
    peer = start_peer(client, start_driver(driver, settings, directory=dead.directory))
    peer.add_subscription(IPC, stream)
    publication = peer.add_publication(IPC, stream)
    publication.await_connected()


@each_pair
def test_an_untethered_subscriber_that_falls_behind_loses_its_image_and_joins_again_later(
    driver, client, start_driver, start_peer, stream
):
    """04-87, 04-88: the tethered subscriber continues, and the other one joins again at the stream's position"""
    # The resting timeout ends long after all messages were sent, even on a slow machine.
    settings = {"AERON_UNTETHERED_WINDOW_LIMIT_TIMEOUT": "300ms", "AERON_UNTETHERED_RESTING_TIMEOUT": "3s"}
    running = start_driver(driver, settings)
    publisher, tethered, untethered = (start_peer(client, running) for _ in range(3))
    publication = publisher.add_publication(f"{IPC}?term-length=64k", stream)
    reading = tethered.add_subscription(IPC, stream)
    behind = untethered.add_subscription(f"{IPC}?tether=false", stream)
    behind.await_images(1)
    publication.await_connected()
    untethered.events()
    transfer([publication], [reading], 200, [1000])
    untethered.await_event("image_gone")
    untethered.await_event("image")
    [image] = behind.await_images(1)
    assert image["join"] == publication.state()["position"]
