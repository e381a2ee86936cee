"""Tests of unicast and multicast streams between two drivers, one of them ours: start, join and end."""

import pytest

from interop.channels import dynamic, multicast, unicast, unicast_6
from interop.kinds import each_kind, each_pair, each_way
from interop.peers import transfer
from interop.system import BYTES_RECEIVED, counter
from interop.waiting import eventually

NOT_CONNECTED, BACK_PRESSURED = -1, -2
LENGTHS = [32, 0, 1, 100, 1344, 1377, 3000, 8 * 1024]

each_form = pytest.mark.parametrize("form", [unicast, unicast_6, multicast], ids=lambda form: form.__name__)


def stream_between(publisher, subscriber, channel, stream, *, exclusive=True):
    """Returns a connected publication and its subscription."""
    subscription = subscriber.add_subscription(channel, stream)
    publication = publisher.add_publication(channel, stream, exclusive=exclusive)
    publication.await_connected()
    subscription.await_images(1)
    return publication, subscription


@each_kind
@each_form
@each_way
def test_messages_arrive_complete_and_in_order(sender, receiver, form, exclusive, side, stream):
    """02-28, 02-31, 04-141: dozens of terms with messages of one frame and of several frames"""
    channel = form("|term-length=64k")
    publication, subscription = stream_between(side(sender), side(receiver), channel, stream, exclusive=exclusive)
    for how in ("offer", "parts"):
        transfer([publication], [subscription], 400, LENGTHS, how=how)
    [received] = transfer([publication], [subscription], 400, [32, 0, 100, 1344], how="claim")
    [session] = received["sessions"].values()
    assert session["position"] == publication.state()["position"] > 20 * publication.term_length


@each_way
def test_messages_arrive_with_the_largest_mtu(sender, receiver, side, stream):
    channel = unicast("|mtu=65504|so-sndbuf=1m|so-rcvbuf=1m|rcv-wnd=512k|term-length=4m")
    publication, subscription = stream_between(side(sender), side(receiver), channel, stream)
    assert publication.max_payload == 65504 - 32
    transfer([publication], [subscription], 200, [65472, 100, 200_000, publication.max_message])


@each_way
def test_subscribers_of_both_drivers_receive_multicast_streams(sender, receiver, side, stream):
    channel = multicast("|term-length=128k|fc=min")
    subscriptions = [side(kind).add_subscription(channel, stream) for kind in (sender, receiver)]
    publications = [side(kind).add_publication(channel, stream, exclusive=True) for kind in (sender, receiver)]
    for subscription in subscriptions:
        subscription.await_images(2)
    for publication in publications:
        publication.await_connected()
    for received in transfer(publications, subscriptions, 300, [100, 3000]):
        assert {int(session) for session in received["sessions"]} == {p.session for p in publications}


@each_way
def test_an_image_reports_the_end_of_its_stream(sender, receiver, side, stream):
    """02-68, 04-151: the image then closes when all messages are consumed"""
    subscriber = side(receiver)
    publication, subscription = stream_between(side(sender), subscriber, unicast("|term-length=64k"), stream)
    transfer([publication], [subscription], 5, [100])
    assert publication.offer(100) > 0
    position = publication.state()["position"]
    publication.close()
    assert subscription.receive(1, [100])["received"] == 1
    eventually(lambda: all(image["end_of_stream"] for image in subscription.images()))
    [gone] = [event for event in subscriber.await_events("image_gone") if event["event"] == "image_gone"]
    assert (gone["position"], gone["revoked"]) == (position, False)


@pytest.mark.parametrize("receiver", ["ours", "c", "java"])
def test_a_subscriber_that_left_and_joined_again_receives_the_end_of_the_stream(receiver, start_driver, start_peer):
    """Differs from 04-105: our driver continues to linger after an end-of-stream status message from before the second
    join. The C driver does not."""
    channel, streams = unicast("|term-length=64k"), range(1, 101)
    # If the driver did not linger, the publication would end before its next heartbeat.
    sending = start_driver("ours", {"AERON_TIMER_INTERVAL": "20ms"})
    publisher, subscriber = start_peer("ours", sending), start_peer(receiver, start_driver(receiver))
    publications = [publisher.add_publication(channel, stream, exclusive=True) for stream in streams]
    for has_left in (False, True):
        subscriptions = [subscriber.add_subscription(channel, stream) for stream in streams]
        for publication, subscription in zip(publications, subscriptions, strict=True):
            publication.await_connected()
            subscription.await_images(1)
        if not has_left:
            for subscription in subscriptions:
                subscription.close()
            for publication in publications:
                publication.await_connected(False)
    subscriber.events()
    for publication in publications:
        publication.close()
    gone = [event for event in subscriber.await_events("image_gone", count=100) if event["event"] == "image_gone"]
    assert [image["end_of_stream"] for image in gone] == [True] * 100


@each_way
def test_revoking_a_publication_closes_its_image_immediately(sender, receiver, side, stream):
    """02-69, 04-153: the image closes although a message was not consumed"""
    subscriber = side(receiver)
    publication, _ = stream_between(side(sender), subscriber, unicast(), stream)
    assert publication.offer(100) > 0
    publication.close(revoke=True)
    [gone] = [event for event in subscriber.await_events("image_gone", timeout_s=8) if event["event"] == "image_gone"]
    assert gone["revoked"]


@each_way
def test_the_publisher_is_disconnected_when_the_last_subscriber_leaves(sender, receiver, side, stream):
    """02-32, 02-61, 04-105, 04-152: by an end-of-stream status message, long before the connection timeout"""
    publication, subscription = stream_between(side(sender), side(receiver), unicast(), stream)
    transfer([publication], [subscription], 10, [100])
    subscription.close()
    publication.await_connected(False, timeout_s=4)
    assert publication.offer(10) == NOT_CONNECTED


@each_form
@each_way
def test_a_subscriber_can_join_again_after_it_has_left(sender, receiver, form, side, stream):
    """04-141, 04-154: the second image starts at the current position of the stream"""
    channel = form("|term-length=64k")
    publisher, subscriber = side(sender), side(receiver)
    publication, subscription = stream_between(publisher, subscriber, channel, stream)
    transfer([publication], [subscription], 50, [1000])
    subscription.close()
    publication.await_connected(False)
    joined_at = publication.state()["position"]
    again = subscriber.add_subscription(channel, stream)
    [image] = again.await_images(1)
    assert (image["join"], image["session"]) == (joined_at, publication.session)
    publication.await_connected()
    assert publication.offer(1000) > 0
    assert again.receive(1, [1000], first=50)["faults"] == []


@each_way
def test_a_second_subscriber_joins_at_the_position_of_the_first_subscriber(sender, receiver, side, stream):
    """04-157"""
    channel = unicast()
    publication, subscription = stream_between(side(sender), side(receiver), channel, stream)
    transfer([publication], [subscription], 10, [1000])
    for _ in range(5):
        assert publication.offer(1000) > 0
    [first] = subscription.images()
    late = side(receiver).add_subscription(channel, stream)
    [image] = late.await_images(1)
    assert image["join"] == first["position"]
    assert late.receive(5, [1000], first=10)["faults"] == []


@each_way
def test_unconsumed_bytes_cause_back_pressure(sender, receiver, side, stream):
    """02-24, 04-100, 04-143: over unicast, the window of the only receiver limits the publisher"""
    channel = unicast("|term-length=64k")
    publication, subscription = stream_between(side(sender), side(receiver), channel, stream)
    sent = 0
    while publication.offer(1000) > 0:
        sent += 1
    eventually(lambda: publication.offer(1000) == BACK_PRESSURED)
    assert subscription.receive(sent, [1000])["faults"] == []
    assert subscription.images()[0]["position"] >= sent * 1056


@each_way
def test_a_subscription_with_a_session_id_receives_only_that_session(sender, receiver, side, stream):
    """02-52, 04-134"""
    channel = unicast()
    subscription = side(receiver).add_subscription(f"{channel}|session-id=-77", stream)
    wanted = side(sender).add_publication(f"{channel}|session-id=-77", stream, exclusive=True)
    other = side(sender).add_publication(channel, stream, exclusive=True)
    wanted.await_connected()
    transfer([wanted], [subscription], 10, [64])
    assert other.offer(8) == NOT_CONNECTED
    assert [image["session"] for image in subscription.images()] == [-77]


@each_way
def test_a_stream_starts_at_the_given_position(sender, receiver, side, stream):
    """02-10, 04-141: a replay also starts at a given position"""
    channel = unicast()
    place = "|init-term-id=7|term-id=9|term-offset=64|term-length=64k"
    publication, subscription = stream_between(side(sender), side(receiver), channel + place, stream)
    [image] = subscription.images()
    assert (image["join"], image["initial_term"]) == (2 * 64 * 1024 + 64, 7)
    transfer([publication], [subscription], 100, LENGTHS)


@each_way
def test_the_publisher_of_a_rejected_image_gets_an_error_and_the_image_returns_later(sender, receiver, side, stream):
    """02-71, 02-72, 04-160"""
    publisher, subscriber = side(sender), side(receiver)
    publication, subscription = stream_between(publisher, subscriber, unicast(), stream)
    transfer([publication], [subscription], 3, [100])
    reason = f"not this one, {stream}"
    subscription.reject(publication.session, reason)
    events = publisher.await_events("publication_error")
    [told] = [event for event in events if event["event"] == "publication_error"]
    assert (told["code"], told["text"], told["session"]) in {
        (code, reason, publication.session) for code in (13, "IMAGE_REJECTED")
    }
    subscriber.await_events("image_gone", timeout_s=5)
    subscription.await_images(1, timeout_s=5)
    publication.await_connected()
    assert publication.offer(100) > 0
    assert subscription.receive(1, [100], first=3)["received"] == 1


@each_way
def test_an_unreliable_stream_arrives_completely_if_no_datagram_is_lost(sender, receiver, side, stream):
    """The window fits into the socket buffer, including the kernel's overhead for each datagram.

    With the default window, datagrams would overflow the buffer while the receiver is not scheduled, and no driver
    sends them again.
    """
    channel = unicast()
    subscription = side(receiver).add_subscription(f"{channel}|reliable=false|rcv-wnd=32k", stream)
    publication = side(sender).add_publication(channel, stream, exclusive=True)
    publication.await_connected()
    transfer([publication], [subscription], 200, LENGTHS)


@each_pair
def test_a_spy_receives_the_messages_of_a_network_publication(driver, client, drivers, start_peer, stream):
    """04-109, 04-110, 04-111: with `ssc` the spy also connects the publication; it receives all messages and the end"""
    running, channel = drivers(driver), unicast()
    spying = start_peer(client, running)
    spy = spying.add_subscription(f"aeron-spy:{channel}", stream)
    publisher = start_peer(client, running)
    silent = publisher.add_publication(channel, stream, exclusive=True)
    assert silent.offer(10) == NOT_CONNECTED
    publication = publisher.add_publication(f"{channel}|ssc=true", stream, exclusive=True)
    publication.await_connected()
    transfer([publication], [spy], 100, LENGTHS)
    assert publication.offer(LENGTHS[100 % len(LENGTHS)]) > 0
    spying.events()
    publication.close()
    assert spy.receive(1, LENGTHS)["received"] == 1
    spying.await_events("image_gone")


@each_way
def test_a_response_is_sent_only_to_its_requester(sender, receiver, side, stream):
    """02-11, 02-90, 02-92, 04-168, 04-169, 04-171: two clients send requests, and each receives only its own
    response"""
    requests = unicast()
    control = dynamic()[0].replace("control-mode=dynamic", "control-mode=response")
    responder = side(receiver)
    asked = responder.add_subscription(requests, stream)
    asking = []
    for number in range(2):
        requester = side(sender)
        answers = requester.add_subscription(f"{control}|endpoint=127.0.0.1:0", stream)
        channel = f"{requests}|response-correlation-id={answers.registration}"
        asking.append((requester.add_publication(channel, stream, exclusive=True), answers))
        asked.await_images(number + 1)
    answering = {}
    for image in asked.images():
        channel = f"{control}|response-correlation-id={image['correlation']}"
        answering[image["session"]] = responder.add_publication(channel, stream, exclusive=True)
    for number, (question, answers) in enumerate(asking):
        answer = answering[question.session]
        answer.await_connected()
        [image] = answers.await_images(1)
        assert image["session"] == answer.session
        lengths = [100 + number, 5000]
        answers.start_receive(20, lengths)
        answer.start_publish(20, lengths)
        assert answer.peer.answer()["sent"] == 20
        assert answers.peer.answer()["faults"] == []


@each_way
def test_the_receiver_counts_the_received_bytes(sender, receiver, side, stream):
    publisher, subscriber = side(sender), side(receiver)
    publication, subscription = stream_between(publisher, subscriber, unicast(), stream)
    before = counter(subscriber, BYTES_RECEIVED)
    transfer([publication], [subscription], 100, [1000])
    # The receiver increments the counter only after it has handled all waiting datagrams.
    eventually(lambda: counter(subscriber, BYTES_RECEIVED) - before >= 100 * 1056)
