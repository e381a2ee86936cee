"""Tests of flow control and congestion control between two drivers: they determine which receiver limits a stream."""

import time

import pytest

from interop.channels import dynamic, multicast, unicast
from interop.kinds import each_way
from interop.peers import transfer
from interop.system import counters_of
from interop.waiting import eventually

NOT_CONNECTED, BACK_PRESSURED = -1, -2
FLOW_CONTROL_RECEIVERS = 17
MORE_THAN_A_TERM = 100
LENGTHS = [1000]
WINDOW_LENGTH = 32 * 1024  # half a term


def by_multicast(parameters):
    channel = multicast()
    return f"{channel}|term-length=64k{parameters}", channel


def by_destinations(parameters):
    return dynamic(f"|term-length=64k{parameters}")


each_form = pytest.mark.parametrize("form", [by_multicast, by_destinations], ids=["multicast", "destinations"])


def receivers(peer, publication):
    """Returns the number of receivers in the flow control of a publication."""
    found = counters_of(peer, FLOW_CONTROL_RECEIVERS)
    return next(c["value"] for c in found if c["registration"] == publication.registration)


def fill(publication):
    """Sends until the window has been full for 0.5 s, so that late status messages have arrived. Returns the number of
    sent messages."""
    sent, full_since = 0, time.monotonic()
    while (result := publication.offer(LENGTHS[0])) > 0 or time.monotonic() - full_since < 0.5:
        if result > 0:
            sent, full_since = sent + 1, time.monotonic()
    assert result == BACK_PRESSURED
    return sent


@each_form
@each_way
def test_min_flow_control_waits_for_the_slowest_receiver(sender, receiver, form, side, stream):
    """04-122, 04-125: the receiver that stopped reading limits the stream until it leaves"""
    sent_to, read_from = form("|fc=min,t:30s")
    publisher = side(sender)
    publication = publisher.add_publication(sent_to, stream, exclusive=True)
    reading, stopped = (side(kind).add_subscription(read_from, stream) for kind in (sender, receiver))
    for subscription in (reading, stopped):
        subscription.await_images(1)
    eventually(lambda: receivers(publisher, publication) == 2)
    transfer([publication], [reading, stopped], 20, LENGTHS)
    sent = fill(publication)
    early = reading.receive(sent, LENGTHS, timeout_s=0.5)["received"]
    assert early < sent
    # The last status message may lag by at most a quarter of the window, so the publisher may send that many more
    # bytes. It cannot send as many bytes as the other subscriber has read.
    late = fill(publication)
    assert late * LENGTHS[0] < WINDOW_LENGTH // 4
    sent += late
    stopped.close()
    assert reading.receive(sent - early, LENGTHS)["received"] == sent - early
    transfer([publication], [reading], MORE_THAN_A_TERM, LENGTHS)
    eventually(lambda: receivers(publisher, publication) == 1)


@each_form
@each_way
def test_max_flow_control_continues_with_the_fastest_receiver(sender, receiver, form, side, stream):
    """04-121: a receiver that has stopped reading does not slow the stream"""
    sent_to, read_from = form("|fc=max")
    publication = side(sender).add_publication(sent_to, stream, exclusive=True)
    reading, stopped = (side(kind).add_subscription(read_from, stream) for kind in (receiver, sender))
    for subscription in (reading, stopped):
        subscription.await_images(1)
    publication.await_connected()
    transfer([publication], [reading], 3 * MORE_THAN_A_TERM, LENGTHS)


@each_form
@each_way
def test_tagged_flow_control_waits_only_for_its_own_group(sender, receiver, form, side, stream):
    """02-62, 04-124"""
    sent_to, read_from = form(f"|fc=tagged,g:{stream},t:30s")
    publisher = side(sender)
    publication = publisher.add_publication(sent_to, stream, exclusive=True)
    # The two subscriptions are on different drivers, because the tag is a property of the receive endpoint.
    of_the_group = side(receiver).add_subscription(f"{read_from}|gtag={stream}", stream)
    other = side(sender).add_subscription(read_from, stream)
    for subscription in (of_the_group, other):
        subscription.await_images(1)
    publication.await_connected()
    eventually(lambda: receivers(publisher, publication) == 1)
    transfer([publication], [of_the_group], 3 * MORE_THAN_A_TERM, LENGTHS)
    sent = fill(publication)
    assert of_the_group.receive(sent, LENGTHS)["faults"] == []


@each_way
def test_the_tag_of_a_multi_destination_receiver_comes_from_the_subscription_channel(sender, receiver, side, stream):
    """02-62: a tag in the channel of a destination has no effect"""
    publisher = side(sender)
    sent_to = f"aeron:udp?control-mode=manual|term-length=64k|fc=tagged,g:{stream},t:30s"
    publication = publisher.add_publication(sent_to, stream, exclusive=True)
    of_the_group, other = f"|gtag={stream}", f"|gtag={stream + 1}"
    # Only the last receiver belongs to the group. When it is counted, the status messages of the others have
    # arrived too.
    for on_subscription, on_destination in (("", of_the_group), (other, of_the_group), (of_the_group, other)):
        assert receivers(publisher, publication) == 0
        channel = unicast()
        publication.add_destination(channel)
        subscription = side(receiver).add_subscription(f"aeron:udp?control-mode=manual{on_subscription}", stream)
        subscription.add_destination(channel + on_destination)
        subscription.await_images(1)
    eventually(lambda: receivers(publisher, publication) == 1)


@pytest.mark.parametrize("group", ["min,g:/2", "tagged,g:7/2"], ids=["min", "tagged"])
@each_way
def test_a_publication_waits_for_the_required_number_of_receivers(sender, receiver, group, side, stream):
    """04-123: the publication is not connected and does not move before the second receiver joins"""
    sent_to, read_from = by_destinations(f"|fc={group}")
    publisher = side(sender)
    publication = publisher.add_publication(sent_to, stream, exclusive=True)
    first = side(receiver).add_subscription(f"{read_from}|gtag=7", stream)
    first.await_images(1)
    eventually(lambda: receivers(publisher, publication) == 1)
    assert publication.offer(LENGTHS[0]) == NOT_CONNECTED
    second = side(sender).add_subscription(f"{read_from}|gtag=7", stream)
    publication.await_connected()
    second.await_images(1)
    transfer([publication], [first, second], MORE_THAN_A_TERM, LENGTHS)


@each_form
@each_way
def test_min_flow_control_removes_a_silent_receiver_after_its_timeout(
    sender, receiver, form, start_driver, drivers, start_peer, stream
):
    """04-122: a receiver with a killed driver delays the other receiver only until the receiver timeout"""
    sent_to, read_from = form("|fc=min,t:1s")
    running, killed = drivers(sender), start_driver(receiver)
    publisher = start_peer(sender, running)
    publication = publisher.add_publication(sent_to, stream, exclusive=True)
    reading = start_peer(sender, running).add_subscription(read_from, stream)
    start_peer(receiver, killed).add_subscription(read_from, stream)
    reading.await_images(1)
    eventually(lambda: receivers(publisher, publication) == 2)
    killed.kill()
    transfer([publication], [reading], MORE_THAN_A_TERM, LENGTHS)
    # If the driver was not scheduled for a whole receiver timeout, it also removes the other receiver. The next status
    # message adds that receiver again.
    eventually(lambda: receivers(publisher, publication) == 1)


@each_way
def test_the_receiver_window_of_a_subscription_limits_the_publisher(sender, receiver, side, stream):
    """04-143: `rcv-wnd` of the subscription"""
    channel = unicast()
    subscription = side(receiver).add_subscription(f"{channel}|rcv-wnd=16k", stream)
    publication = side(sender).add_publication(f"{channel}|term-length=64k", stream, exclusive=True)
    publication.await_connected()
    subscription.await_images(1)
    sent = fill(publication)
    # The publisher limit does not show the receiver window: it is one term window ahead of the sender position. So the
    # test reads the sender limit.
    [limit] = [c["value"] for c in counters_of(publication.peer, 9) if c["registration"] == publication.registration]
    assert limit == 16 * 1024
    assert subscription.receive(sent, LENGTHS)["faults"] == []


@each_way
def test_a_stream_with_cubic_congestion_control_arrives_completely(sender, receiver, side, stream):
    """04-165, 04-166"""
    channel = unicast()
    subscriber = side(receiver)
    subscription = subscriber.add_subscription(f"{channel}|cc=cubic", stream)
    publication = side(sender).add_publication(channel, stream, exclusive=True)
    publication.await_connected()
    transfer([publication], [subscription], 3000, LENGTHS)
    assert [c for c in subscriber.counters() if "rcv-cc-cubic-wnd" in c["label"]]
