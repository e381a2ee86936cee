"""Tests of lossy streams between two drivers, one of them ours. All messages arrive, and the losses are reported.

`make soak` sets the variable `SOAK`, which raises the number of messages to 100,000 for every loss rate.
"""

import os
import time

import pytest

from interop.channels import dynamic, multicast, unicast
from interop.kinds import each_way
from interop.loss import fixed_loss, gaps, loss_entries, lossy
from interop.peers import transfer
from interop.system import (
    LOSS_GAP_FILLS,
    NAKS_RECEIVED,
    NAKS_SENT,
    RETRANSMITS_SENT,
    RETRANSMITTED_BYTES,
    counter,
)

IS_SOAK = bool(os.environ.get("SOAK"))
# Multicast streams have fewer messages, because a receiver waits longer before it sends a NAK again.
MESSAGES = {
    unicast: {0.01: 10_000, 0.05: 20_000, 0.2: 2_000},
    multicast: {0.01: 10_000, 0.05: 2_000, 0.2: 500},
}
SOAK_MESSAGES = 100_000
LENGTHS = [3000, 32, 1377, 5000]
TIMEOUT_S = 1800 if IS_SOAK else 60

pytestmark = pytest.mark.timeout(2 * TIMEOUT_S + 120)


@pytest.mark.parametrize("form", MESSAGES, ids=lambda form: form.__name__)
@pytest.mark.parametrize("rate", MESSAGES[unicast])
@each_way
def test_a_lossy_stream_arrives_completely(sender, receiver, rate, form, side, stream):
    """04-188, 04-191: datagrams of both directions are lost, and each byte arrives nevertheless"""
    channel = form("|term-length=1m")
    publisher, subscriber = side(sender, lossy(sender, rate)), side(receiver, lossy(receiver, rate))
    subscription = subscriber.add_subscription(channel, stream)
    publication = publisher.add_publication(channel, stream, exclusive=True)
    publication.await_connected()
    asked, heard = counter(subscriber, NAKS_SENT), counter(publisher, NAKS_RECEIVED)
    count = SOAK_MESSAGES if IS_SOAK else MESSAGES[form][rate]
    transfer([publication], [subscription], count, LENGTHS, timeout_s=TIMEOUT_S)
    asked, heard = counter(subscriber, NAKS_SENT) - asked, counter(publisher, NAKS_RECEIVED) - heard
    # The receiver sends NAKs for lost data, and some NAKs are lost too.
    assert asked >= heard > 0


@each_way
def test_a_lossy_stream_to_several_receivers_arrives_completely_at_each_of_them(sender, receiver, side, stream):
    """04-119, 04-191: retransmits to a group with receivers of both drivers"""
    control, channel = dynamic("|term-length=1m|fc=min")
    subscriptions = [side(kind, lossy(kind, 0.01)).add_subscription(channel, stream) for kind in (sender, receiver)]
    publication = side(sender, lossy(sender, 0.01)).add_publication(control, stream, exclusive=True)
    for subscription in subscriptions:
        subscription.await_images(1, timeout_s=15)
    publication.await_connected()
    transfer([publication], subscriptions, 2000, LENGTHS, timeout_s=TIMEOUT_S)


def end_of_frames(count, length, term_length):
    """Returns the position after `count` frames from the start of a stream. No frame crosses the end of a term."""
    terms, rest = divmod(count, term_length // length)
    return terms * term_length + rest * length


@each_way
def test_an_unreliable_stream_continues_with_gaps(sender, receiver, side, stream):
    """02-81, 04-149, 04-191: the receiver skips lost frames and sends no NAKs"""
    channel = unicast()
    subscriber = side(receiver, lossy(receiver, 0.05))
    subscription = subscriber.add_subscription(f"{channel}|reliable=false", stream)
    publication = side(sender).add_publication(channel, stream, exclusive=True)
    publication.await_connected()
    subscription.await_images(1)
    fills, naks = counter(subscriber, LOSS_GAP_FILLS), counter(subscriber, NAKS_SENT)
    publication.start_publish(2000, [1000])
    received, end, deadline = 0, end_of_frames(2000, 1000 + 56, publication.term_length), time.monotonic() + TIMEOUT_S
    while subscription.images()[0]["position"] < end:
        assert time.monotonic() < deadline, f"only {received} received"
        received += subscription.receive(2000, [1000], timeout_s=0.5)["received"]
    assert publication.peer.answer()["sent"] == 2000
    lost = 2000 - received
    assert 20 < lost < 500
    assert counter(subscriber, LOSS_GAP_FILLS) > fills
    assert counter(subscriber, NAKS_SENT) == naks
    [image] = subscription.images()
    assert image["position"] == publication.state()["position"]


@pytest.mark.parametrize("receiver", ["c", "ours"])
def test_the_range_of_a_fixed_loss_is_lost_and_repaired_once(receiver, side, stream):
    """02-76, 04-114, 04-147, 04-189: the sender resends the 6144 bytes up to the end of the range, with one
    retransmit"""
    sender = "ours" if receiver == "c" else "c"
    place = "|init-term-id=5|term-id=5|term-offset=0|term-length=64k"
    channel = unicast()
    publisher, subscriber = side(sender), side(receiver, fixed_loss(5, 4096, 2048))
    subscription = subscriber.add_subscription(channel, stream)
    publication = publisher.add_publication(channel + place, stream, exclusive=True)
    publication.await_connected()
    before = {id: counter(publisher, id) for id in (NAKS_RECEIVED, RETRANSMITS_SENT, RETRANSMITTED_BYTES)}
    transfer([publication], [subscription], 200, [992])
    after = {id: counter(publisher, id) for id in before}
    assert after[RETRANSMITTED_BYTES] - before[RETRANSMITTED_BYTES] == 4096 + 2048
    assert after[RETRANSMITS_SENT] - before[RETRANSMITS_SENT] == 1
    assert after[NAKS_RECEIVED] > before[NAKS_RECEIVED]


@pytest.mark.parametrize("receiver", ["c", "ours"])
def test_the_configured_number_of_gaps_is_lost_and_repaired(receiver, side, stream):
    """04-190"""
    sender = "ours" if receiver == "c" else "c"
    place = "|init-term-id=5|term-id=5|term-offset=0|term-length=64k"
    channel = unicast()
    publisher, subscriber = side(sender), side(receiver, gaps(term=5, radix=8192, length=1024, total=6))
    subscription = subscriber.add_subscription(channel, stream)
    publication = publisher.add_publication(channel + place, stream, exclusive=True)
    publication.await_connected()
    before = counter(publisher, RETRANSMITS_SENT)
    transfer([publication], [subscription], 200, [1000])
    assert 6 <= counter(publisher, RETRANSMITS_SENT) - before <= 8


@each_way
def test_the_loss_report_has_an_entry_for_the_lost_bytes_of_a_stream(
    sender, receiver, start_driver, start_peer, stream
):
    """04-150"""
    channel = unicast()
    running = start_driver(receiver, lossy(receiver, 0.05))
    subscriber = start_peer(receiver, running)
    subscription = subscriber.add_subscription(channel, stream)
    publication = start_peer(sender, start_driver(sender)).add_publication(channel, stream, exclusive=True)
    publication.await_connected()
    transfer([publication], [subscription], 500, LENGTHS, timeout_s=TIMEOUT_S)
    [entry] = loss_entries(running)
    assert (entry["session"], entry["stream"]) == (publication.session, stream)
    assert entry["bytes"] >= entry["observations"] * 32
    assert channel in entry["channel"]
    assert entry["source"] == subscription.images()[0]["source"]
