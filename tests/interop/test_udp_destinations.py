"""Tests of multi-destination channels between two drivers, one of them ours.

One sender has many receivers, or one receiver has many senders.
"""

import pytest

from interop.channels import dynamic, multicast, unicast
from interop.kinds import WAYS, each_way
from interop.peers import transfer
from interop.system import counters_of
from interop.waiting import eventually
from ports import free_port

NOT_CONNECTED = -1
MDC_DESTINATIONS = 18
LENGTHS = [32, 1000, 5000]


def destinations(publication):
    """Returns the number of a publication's destinations, from a counter of the driver."""
    found = counters_of(publication.peer, MDC_DESTINATIONS)
    return next(c["value"] for c in found if c["registration"] == publication.original)


@each_way
def test_a_dynamic_destination_exists_as_long_as_its_subscription(sender, receiver, side, stream):
    """02-85, 02-88, 04-69, 04-70"""
    control, channel = dynamic("|term-length=64k|fc=min")
    publication = side(sender).add_publication(control, stream)
    subscriptions = [side(kind).add_subscription(channel, stream) for kind in (receiver, sender, receiver)]
    for subscription in subscriptions:
        subscription.await_images(1)
    publication.await_connected()
    # Two subscriptions of one driver have different sockets, and so different destinations.
    eventually(lambda: destinations(publication) == 3)
    transfer([publication], subscriptions, 200, LENGTHS)
    subscriptions.pop().close()
    transfer([publication], subscriptions, 200, LENGTHS)
    eventually(lambda: publication.offer(32) > 0 and destinations(publication) == 2, timeout_s=15)


@each_way
def test_a_manual_destination_receives_the_stream_until_it_is_removed(sender, receiver, side, stream):
    """02-87, 04-67"""
    publication = side(sender).add_publication("aeron:udp?control-mode=manual|fc=min", stream)
    channels = [unicast(), unicast()]
    subscriptions = [
        side(kind).add_subscription(channel, stream) for kind, channel in zip((receiver, sender), channels, strict=True)
    ]
    assert publication.offer(32) == NOT_CONNECTED
    for channel in channels:
        publication.add_destination(channel)
    # The conductor responds when it has sent the command to the sender. The sender may execute the command later.
    eventually(lambda: destinations(publication) == 2)
    for subscription in subscriptions:
        subscription.await_images(1)
    transfer([publication], subscriptions, 200, LENGTHS)
    publication.remove_destination(channels[1])
    publication.remove_destination(unicast())
    eventually(lambda: destinations(publication) == 1)
    subscriptions[1].await_images(0)
    transfer([publication], subscriptions[:1], 200, LENGTHS)


@each_way
def test_two_transports_of_one_stream_share_one_image(sender, receiver, side, stream):
    """02-89, 04-74: each datagram arrives twice, and each message once"""
    publication = side(sender).add_publication("aeron:udp?control-mode=manual", stream, exclusive=True)
    subscription = side(receiver).add_subscription("aeron:udp?control-mode=manual", stream)
    channels = [unicast(), unicast()]
    for channel in channels:
        subscription.add_destination(channel)
        publication.add_destination(channel)
    publication.await_connected()
    subscription.await_images(1)
    transfer([publication], [subscription], 300, LENGTHS)
    subscription.remove_destination(channels[0])
    transfer([publication], [subscription], 300, LENGTHS)
    assert len(subscription.images()) == 1


@each_way
def test_an_image_ends_when_the_stream_has_ended_on_all_transports(sender, receiver, side, stream):
    """02-70, 04-158"""
    publication = side(sender).add_publication("aeron:udp?control-mode=manual", stream, exclusive=True)
    subscriber = side(receiver)
    subscription = subscriber.add_subscription("aeron:udp?control-mode=manual", stream)
    for channel in (unicast(), unicast()):
        subscription.add_destination(channel)
        publication.add_destination(channel)
    subscription.await_images(1)
    transfer([publication], [subscription], 10, LENGTHS)
    publication.close()
    [gone] = [event for event in subscriber.await_events("image_gone") if event["event"] == "image_gone"]
    assert gone["end_of_stream"]


@pytest.mark.parametrize(("sender", "receiver"), [way for way in WAYS if way[1] != "c"])
def test_a_multi_destination_subscription_receives_streams_of_every_kind_of_channel(sender, receiver, side, stream):
    """04-72, 04-74: unicast, multicast and dynamic destinations of the other driver; a spy and IPC on the subscriber's
    driver

    The C driver is not tested as a receiver, because it stops acknowledging the unicast stream, even if the sender is a
    C driver too.
    """
    subscriber = side(receiver)
    subscription = subscriber.add_subscription("aeron:udp?control-mode=manual", stream)
    control, dynamic_channel = dynamic()
    spied = unicast("|ssc=true")
    pairs = [(unicast(),) * 2, (multicast(),) * 2, (control, dynamic_channel)]
    publications = []
    for sent, received in pairs:
        subscription.add_destination(received)
        publications.append(side(sender).add_publication(sent, stream, exclusive=True))
    for sent, received in ((spied, f"aeron-spy:{spied}"), ("aeron:ipc",) * 2):
        publications.append(side(receiver).add_publication(sent, stream, exclusive=True))
        subscription.add_destination(received)
    subscription.await_images(len(publications))
    for publication in publications:
        publication.await_connected()
    transfer(publications, [subscription], 100, LENGTHS)
    subscription.remove_destination("aeron:ipc")
    subscription.remove_destination(f"aeron-spy:{spied}")
    assert len(subscription.await_images(3)) == 3


@each_way
def test_a_stream_moves_to_another_destination_of_its_subscriber(sender, receiver, side, stream):
    """02-89: the second transport continues at the end of the first one, like a live stream after a replay merge"""
    publisher, subscriber = side(sender), side(receiver)
    subscription = subscriber.add_subscription("aeron:udp?control-mode=manual", stream)
    publication = publisher.add_publication("aeron:udp?control-mode=manual", stream, exclusive=True)
    first, second = unicast(), unicast()
    subscription.add_destination(first)
    publication.add_destination(first)
    publication.await_connected()
    subscription.await_images(1)
    transfer([publication], [subscription], 50, LENGTHS)
    subscription.add_destination(second)
    publication.add_destination(second)
    publication.remove_destination(first)
    transfer([publication], [subscription], 50, LENGTHS)
    subscription.remove_destination(first)
    transfer([publication], [subscription], 50, LENGTHS)


@pytest.mark.parametrize("last", ["publisher", "subscriber"])
@each_way
def test_a_stream_connects_if_the_publisher_or_the_subscriber_starts_first(sender, receiver, last, side, stream):
    """04-69: with dynamic destinations"""
    control, channel = dynamic()
    if last == "publisher":
        subscription = side(receiver).add_subscription(channel, stream)
        publication = side(sender).add_publication(control, stream)
    else:
        publication = side(sender).add_publication(control, stream)
        subscription = side(receiver).add_subscription(channel, stream)
    publication.await_connected()
    subscription.await_images(1)
    transfer([publication], [subscription], 20, LENGTHS)


@each_way
def test_an_endpoint_with_port_0_gets_a_free_port(sender, receiver, side, stream):
    """02-59: the address counter has the port of the socket"""
    control = f"aeron:udp?control=127.0.0.1:{free_port()}|control-mode=dynamic"
    subscriber = side(receiver)
    subscription = subscriber.add_subscription(f"{control}|endpoint=127.0.0.1:0", stream)
    publication = side(sender).add_publication(control, stream)
    publication.await_connected()
    [image] = subscription.await_images(1)
    assert image["source"].startswith("127.0.0.1:")
    bound = [c["label"] for c in counters_of(subscriber, 14) if "rcv-local-sockaddr" in c["label"]]
    assert bound
    assert not [label for label in bound if label.endswith(":0")]
