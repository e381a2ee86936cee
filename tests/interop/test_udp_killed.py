"""Tests with two drivers, one of them ours. One driver is killed during a stream and started again, or is paused."""

import time

from interop.channels import dynamic, unicast
from interop.kinds import each_way
from interop.peers import transfer

NOT_CONNECTED = -1
LENGTHS = [100, 3000]
# These timeouts are longer than a live driver waits for a processor.
SETTINGS = {
    "AERON_PUBLICATION_CONNECTION_TIMEOUT": "3s",
    "AERON_IMAGE_LIVENESS_TIMEOUT": "3s",
    "AERON_DRIVER_TIMEOUT": "1000",
}


@each_way
def test_a_stream_continues_after_a_kill_and_restart_of_either_driver(
    sender, receiver, start_driver, drivers, start_peer, stream
):
    """02-33, 02-60, 04-103, 04-154: first the publisher's driver is killed and replaced, then the subscriber's
    driver"""
    channel = unicast("|term-length=64k")
    sending, receiving = start_driver(sender, SETTINGS), start_driver(receiver, SETTINGS)
    subscriber = start_peer(receiver, receiving)
    subscription = subscriber.add_subscription(channel, stream)
    publication = start_peer(sender, sending).add_publication(channel, stream, exclusive=True)
    publication.await_connected()
    transfer([publication], [subscription], 50, LENGTHS)

    sending.kill()
    subscriber.await_events("image_gone", timeout_s=15)
    assert subscription.images() == []
    sending = start_driver(sender, {**SETTINGS, "AERON_DIR_DELETE_ON_START": "true"}, directory=sending.directory)
    publication = start_peer(sender, sending).add_publication(channel, stream, exclusive=True)
    publication.await_connected()
    transfer([publication], [subscription], 50, LENGTHS)

    receiving.kill()
    publication.await_connected(False, timeout_s=15)
    assert publication.offer(32) == NOT_CONNECTED
    receiving = start_driver(receiver, {**SETTINGS, "AERON_DIR_DELETE_ON_START": "true"}, directory=receiving.directory)
    subscription = start_peer(receiver, receiving).add_subscription(channel, stream)
    publication.await_connected()
    [image] = subscription.await_images(1)
    assert image["join"] == publication.state()["position"]
    # The new subscription joins a running stream, so its first message is number 50.
    subscription.start_receive(50, LENGTHS, first=50)
    publication.start_publish(50, LENGTHS)
    assert publication.peer.answer()["sent"] == 50
    received = subscription.peer.answer()
    assert (received["received"], received["faults"]) == (50, [])


@each_way
def test_a_stream_to_many_subscribers_continues_after_one_of_them_is_killed(
    sender, receiver, start_driver, drivers, start_peer, stream
):
    """04-69, 04-121"""
    control, channel = dynamic("|term-length=64k")
    running, killed = drivers(sender), start_driver(receiver)
    surviving = start_peer(sender, running).add_subscription(channel, stream)
    dying = start_peer(receiver, killed).add_subscription(channel, stream)
    publication = start_peer(sender, running).add_publication(control, stream)
    for subscription in (surviving, dying):
        subscription.await_images(1)
    publication.await_connected()
    killed.kill()
    transfer([publication], [surviving], 200, LENGTHS)


@each_way
def test_a_paused_driver_does_not_lose_the_stream(sender, receiver, start_driver, start_peer, stream):
    """04-94, 04-142: after a pause shorter than the timeouts, each side continues at its position"""
    channel = unicast("|term-length=64k")
    patient = {"AERON_IMAGE_LIVENESS_TIMEOUT": "5s"}
    drivers = start_driver(sender, patient), start_driver(receiver, patient)
    subscription = start_peer(receiver, drivers[1]).add_subscription(channel, stream)
    publication = start_peer(sender, drivers[0]).add_publication(channel, stream, exclusive=True)
    publication.await_connected()
    [image] = subscription.await_images(1)
    for driver in drivers:
        subscription.start_receive(300, LENGTHS)
        publication.start_publish(300, LENGTHS)
        driver.process.pause()
        time.sleep(0.5)
        driver.process.resume()
        assert publication.peer.answer()["sent"] == 300
        received = subscription.peer.answer()
        assert (received["received"], received["faults"]) == (300, [])
    assert [again["correlation"] for again in subscription.images()] == [image["correlation"]]
