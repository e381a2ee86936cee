"""Tests of streams over IPC between all clients on all drivers. Each client receives the messages of the others."""

import pytest

from interop.kinds import each_kind, each_pair, each_triple
from interop.peers import PeerError, transfer

IPC = "aeron:ipc"
NOT_CONNECTED, BACK_PRESSURED, CLOSED, MAX_POSITION_EXCEEDED = -1, -2, -4, -5
HEADER_LENGTH, FRAME_ALIGNMENT = 32, 32


@each_kind
@each_triple
def test_messages_arrive_complete_and_in_order(
    driver, publisher, subscriber, exclusive, shared_drivers, start_peer, stream
):
    """03-18, 03-23, 03-88, 03-98"""
    running = shared_drivers(driver)
    subscription = start_peer(subscriber, running).add_subscription(IPC, stream)
    publication = start_peer(publisher, running).add_publication(IPC, stream, exclusive=exclusive)
    publication.await_connected()
    for how in ("offer", "claim", "parts"):
        transfer([publication], [subscription], 300, [32, 0, 1, 100, 1344], how=how)
    transfer([publication], [subscription], 60, [1377, 10_000, publication.max_message])


@each_kind
@each_triple
def test_fragmented_messages_cross_many_terms(
    driver, publisher, subscriber, exclusive, shared_drivers, start_peer, stream
):
    """01-78: more than 12 terms, each with padding at its end; 03-91"""
    channel = f"{IPC}?term-length=64k"
    running = shared_drivers(driver)
    subscription = start_peer(subscriber, running).add_subscription(channel, stream)
    publication = start_peer(publisher, running).add_publication(channel, stream, exclusive=exclusive)
    assert (publication.term_length, publication.max_message) == (64 * 1024, 8 * 1024)
    publication.await_connected()
    [received] = transfer([publication], [subscription], 400, [8 * 1024, 33, 5000, 1376, 1377, 7])
    [session] = received["sessions"].values()
    assert session["position"] > 12 * publication.term_length
    assert session["position"] == publication.state()["position"]


@each_pair
def test_the_longest_possible_message_has_16_mib(driver, client, shared_drivers, start_peer, stream):
    channel = f"{IPC}?term-length=128m"
    running = shared_drivers(driver)
    subscription = start_peer(client, running).add_subscription(channel, stream)
    publication = start_peer(client, running).add_publication(channel, stream, exclusive=True)
    assert publication.max_message == 16 * 1024 * 1024
    publication.await_connected()
    transfer([publication], [subscription], 5, [publication.max_message])


@each_pair
def test_a_message_longer_than_the_maximum_is_refused(driver, client, shared_drivers, start_peer, stream):
    """03-89, 03-90"""
    running = shared_drivers(driver)
    peer = start_peer(client, running)
    peer.add_subscription(IPC, stream)
    publication = peer.add_publication(IPC, stream)
    publication.await_connected()
    with pytest.raises(PeerError, match="max"):
        publication.offer(publication.max_message + 1)
    with pytest.raises(PeerError, match="max"):
        publication.offer(publication.max_payload + 1, how="claim")


@each_triple
def test_concurrent_publications_of_one_stream_share_one_log(
    driver, publisher, subscriber, shared_drivers, start_peer, stream
):
    """03-20, 03-92, 03-97"""
    running = shared_drivers(driver)
    subscription = start_peer(subscriber, running).add_subscription(IPC, stream)
    first = start_peer(publisher, running).add_publication(IPC, stream)
    second = start_peer(subscriber, running).add_publication(IPC, stream)
    assert (second.session, second.original) == (first.session, first.registration)
    assert second.registration != first.registration
    first.await_connected()
    second.await_connected()
    first.start_publish(2000, [24])
    second.start_publish(2000, [24])
    received = subscription.receive(4000, [24])
    assert (first.peer.answer()["sent"], second.peer.answer()["sent"]) == (2000, 2000)
    assert received["received"] == 4000
    first.close()
    assert second.offer(24) > 0
    assert subscription.receive(1, [24])["received"] == 1


@each_triple
def test_every_subscriber_gets_every_message(driver, publisher, subscriber, shared_drivers, start_peer, stream):
    running = shared_drivers(driver)
    subscriptions = [start_peer(kind, running).add_subscription(IPC, stream) for kind in (publisher, subscriber)]
    publications = [
        start_peer(publisher, running).add_publication(IPC, stream, exclusive=True),
        start_peer(subscriber, running).add_publication(IPC, stream, exclusive=True),
    ]
    for subscription in subscriptions:
        subscription.await_images(2)
    for publication in publications:
        publication.await_connected()
    for received in transfer(publications, subscriptions, 500, [100, 3000]):
        assert {int(session) for session in received["sessions"]} == {p.session for p in publications}


@each_pair
def test_a_subscription_with_a_session_id_receives_only_that_session(
    driver, client, shared_drivers, start_peer, stream
):
    """03-16, 03-30"""
    running = shared_drivers(driver)
    subscription = start_peer(client, running).add_subscription(f"{IPC}?session-id=-77", stream)
    wanted = start_peer(client, running).add_publication(f"{IPC}?session-id=-77", stream, exclusive=True)
    other = start_peer(client, running).add_publication(IPC, stream, exclusive=True)
    assert wanted.session == -77
    wanted.await_connected()
    assert other.offer(8) == NOT_CONNECTED
    transfer([wanted], [subscription], 10, [64])
    assert [image["session"] for image in subscription.images()] == [-77]


@each_pair
def test_a_session_id_with_an_unknown_tag_is_refused_and_a_tagged_publication_is_accepted(
    driver, client, shared_drivers, start_peer, stream
):
    peer = start_peer(client, shared_drivers(driver))
    with pytest.raises(PeerError) as refused:
        peer.add_publication(f"{IPC}?session-id=tag:{stream}", stream, exclusive=True)
    assert refused.value.code in {1, 11}
    tagged = peer.add_publication(f"{IPC}?tags={stream},{stream}", stream, exclusive=True)
    assert tagged.state()["closed"] is False


@each_pair
def test_a_stream_starts_at_the_given_position(driver, client, shared_drivers, start_peer, stream):
    peer = start_peer(client, shared_drivers(driver))
    position = "init-term-id=7|term-id=9|term-offset=64"
    publication = peer.add_publication(f"{IPC}?term-length=64k|{position}", stream, exclusive=True)
    start = 2 * 64 * 1024 + 64
    assert (publication.initial_term, publication.state()["position"]) == (7, start)
    subscription = start_peer(client, shared_drivers(driver)).add_subscription(IPC, stream)
    [image] = subscription.await_images(1)
    assert (image["join"], image["initial_term"]) == (start, 7)
    publication.await_connected()
    assert publication.offer(32) == start + 64


@each_pair
def test_a_failed_offer_returns_not_connected_or_back_pressured(driver, client, shared_drivers, start_peer, stream):
    """03-86, 03-87"""
    running = shared_drivers(driver)
    publication = start_peer(client, running).add_publication(f"{IPC}?term-length=64k", stream)
    assert publication.offer(32) == NOT_CONNECTED
    subscription = start_peer(client, running).add_subscription(IPC, stream)
    publication.await_connected()
    positions = [publication.offer(1000) for _ in range(31)]
    assert positions == [1056 * (n + 1) for n in range(31)]
    while (result := publication.offer(1000)) > 0:
        positions.append(result)
    assert result == BACK_PRESSURED
    assert positions[-1] >= 32 * 1024
    assert subscription.receive(len(positions), [1000])["received"] == len(positions)


@each_pair
def test_an_offer_beyond_the_maximum_position_is_refused(driver, client, shared_drivers, start_peer, stream):
    """03-86, 03-95: in the last of 2**31 terms"""
    running = shared_drivers(driver)
    last = "init-term-id=0|term-id=2147483647|term-offset=65408"
    publication = start_peer(client, running).add_publication(f"{IPC}?term-length=64k|{last}", stream, exclusive=True)
    subscription = start_peer(client, running).add_subscription(IPC, stream)
    publication.await_connected()
    assert publication.offer(32) == publication.max_position - 64
    assert publication.offer(33) == MAX_POSITION_EXCEEDED
    assert publication.offer(33) == MAX_POSITION_EXCEEDED
    assert subscription.receive(1, [32])["received"] == 1


@each_triple
def test_an_aborted_claim_is_skipped(driver, publisher, subscriber, shared_drivers, start_peer, stream):
    """03-93"""
    running = shared_drivers(driver)
    subscription = start_peer(subscriber, running).add_subscription(IPC, stream)
    publication = start_peer(publisher, running).add_publication(IPC, stream)
    publication.await_connected()
    assert publication.hold(100) > 0
    publication.finish(abort=True)
    assert publication.hold(32) > 0
    publication.finish()
    received = subscription.receive(1, [32])
    assert (received["received"], received["faults"]) == (1, [])


@each_triple
def test_padding_of_an_exclusive_publication_is_skipped(
    driver, publisher, subscriber, shared_drivers, start_peer, stream
):
    """03-96"""
    running = shared_drivers(driver)
    subscription = start_peer(subscriber, running).add_subscription(IPC, stream)
    publication = start_peer(publisher, running).add_publication(IPC, stream, exclusive=True)
    publication.await_connected()
    assert publication.pad(1000) == 1056
    transfer([publication], [subscription], 1, [32])
