"""Tests of padding within terms, between two drivers over UDP. Aborted and uncommitted claims become padding."""

import pytest

from interop.channels import unicast
from interop.loss import lossy
from interop.peers import transfer
from interop.system import RETRANSMITS_SENT, counter

# (sending driver, publishing client, receiving driver)
WAYS = [("ours", "ours", "c"), ("ours", "c", "c"), ("ours", "ours", "java"), ("c", "c", "ours")]
LENGTHS = [[4], [1300], [0, 1, 100, 700, 1376]]

each_way = pytest.mark.parametrize(("sender", "client", "receiver"), WAYS, ids=map("-".join, WAYS))
each_length = pytest.mark.parametrize("lengths", LENGTHS, ids=["small", "large", "mixed"])
# Without GSO, each datagram is sent separately.
each_offload = pytest.mark.parametrize("offload", ["true", "false"], ids=["gso", "no-gso"])


@each_offload
@each_length
@each_way
def test_a_backlog_with_aborted_claims_is_sent_without_retransmits(
    sender, client, receiver, lengths, offload, drivers, side, start_peer, stream
):
    """02-27, 03-93: two aborted claims of the same length precede each message, and an open claim delays all
    messages"""
    channel = unicast("|term-length=1m")
    running = drivers(sender, {"AERON_UDP_GSO": offload})
    subscription = side(receiver).add_subscription(channel, stream)
    held, publication = (start_peer(client, running).add_publication(channel, stream) for _ in range(2))
    publication.await_connected()
    before = counter(publication.peer, RETRANSMITS_SENT)
    assert held.hold(100) > 0
    # All messages and aborted claims have fewer bytes than a window, so that their datagrams fit into a socket buffer.
    count = min(60, 40_000 // (3 * (max(lengths) + 32)))
    publication.start_publish(count, lengths, how="aborts")
    assert publication.peer.answer()["sent"] == count
    held.finish(abort=True)
    received = subscription.receive(count, lengths)
    assert (received["received"], received["faults"]) == (count, [])
    assert counter(publication.peer, RETRANSMITS_SENT) == before


@each_way
def test_messages_between_aborted_claims_arrive_although_datagrams_are_lost(
    sender, client, receiver, drivers, side, start_peer, stream
):
    channel = unicast("|term-length=256k")
    publisher = start_peer(client, drivers(sender, lossy(sender, 0.05)))
    subscription = side(receiver, lossy(receiver, 0.05)).add_subscription(channel, stream)
    publication = publisher.add_publication(channel, stream)
    publication.await_connected()
    for lengths in LENGTHS:
        transfer([publication], [subscription], 2_000, lengths, how="aborts")


@pytest.mark.parametrize("receiver", ["c", "java"])
def test_messages_after_an_unblocked_claim_arrive(receiver, start_driver, start_peer, side, stream):
    """03-97: the driver turns an uncommitted claim into padding"""
    settings = {"AERON_CLIENT_LIVENESS_TIMEOUT": "1s", "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "1100ms"}
    running, channel = start_driver("ours", settings), unicast()
    subscription = side(receiver).add_subscription(channel, stream)
    held, publication = (start_peer("ours", running).add_publication(channel, stream) for _ in range(2))
    publication.await_connected()
    assert held.hold(1300) > 0
    transfer([publication], [subscription], 200, [4, 1300])
