"""Tests of wrong commands for UDP channels. Our driver must refuse them with the same texts as the C driver."""

import re

import pytest

from interop import control
from interop.channels import dynamic, multicast, unicast
from interop.control import ControlClient
from interop.peers import transfer
from ports import free_port

STREAM = 1001
ENDPOINT = "aeron:udp?endpoint=127.0.0.1:PORT"
MULTICAST = "aeron:udp?endpoint=224.20.30.41:PORT|interface=localhost"
_INNERMOST = re.compile(r"^\[\w+, \S+:\d+\] (.+)$", re.MULTILINE)

REFUSED_PUBLICATIONS = [
    "aeron:tcp?endpoint=127.0.0.1:PORT",
    "aeron:udp",
    "aeron:udp?endpoint=127.0.0.1",
    "aeron:udp?endpoint=127.0.0.1:0",
    "aeron:udp?endpoint=127.0.0.1:99999",
    "aeron:udp?endpoint=no-such-host.invalid:PORT",
    "aeron:udp?endpoint=224.20.30.40:PORT",
    "aeron:udp?control-mode=dynamic",
    "aeron:udp?control=127.0.0.1:PORT|control-mode=response",
    "aeron:udp?control=127.0.0.1:PORT|control-mode=response|response-correlation-id=4711",
    f"{ENDPOINT}|mtu=100",
    f"{ENDPOINT}|mtu=70000",
    f"{ENDPOINT}|term-length=100k",
    f"{ENDPOINT}|term-length=2g",
    f"{ENDPOINT}|session-id=tag:99",
    f"{ENDPOINT}|init-term-id=1",
    f"{ENDPOINT}|init-term-id=1|term-id=1|term-offset=33",
    f"{ENDPOINT}|init-term-id=2|term-id=1|term-offset=0",
    f"{ENDPOINT}|pub-wnd=100",
    f"{ENDPOINT}|linger=-1",
    f"{ENDPOINT}|linger=later",
    f"{ENDPOINT}|max-resend=0",
    f"{ENDPOINT}|max-resend=257",
    f"{ENDPOINT}|so-sndbuf=100",
    f"{ENDPOINT}|tags=abc",
    f"{MULTICAST}|fc=fast",
    "aeron:udp?tags=4711",
    "aeron:udp?endpoint=127.0.0.1:PORT|interface=198.51.100.7",
    "aeron-spy:aeron:udp?endpoint=127.0.0.1:PORT",
]
REFUSED_SUBSCRIPTIONS = [
    "aeron:udp",
    "aeron:udp?endpoint=127.0.0.1",
    "aeron:udp?endpoint=no-such-host.invalid:PORT",
    "aeron:udp?endpoint=224.20.30.40:PORT",
    "aeron:udp?endpoint=127.0.0.1:PORT|control=127.0.0.1:0",
    "aeron:udp?endpoint=198.51.100.7:PORT",
    f"{ENDPOINT}|rcv-wnd=1g",
    f"{ENDPOINT}|so-rcvbuf=100",
    f"{ENDPOINT}|reliable=perhaps",
    f"{ENDPOINT}|tags=abc",
    f"{ENDPOINT}|media-rcv-ts-offset=never",
    "aeron:udp?endpoint=224.20.30.41:PORT|interface=198.51.100.7",
]


# The number of the socket in an error text of the C driver differs in each run.
_DESCRIPTOR = re.compile(r"(?<=failed to bind\()\d+, ")


@pytest.fixture(scope="module")
def controls(drivers):
    """Returns the only client of the real C driver, and the only client of ours."""
    settings = {"AERON_CLIENT_LIVENESS_TIMEOUT": "100s", "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "101s"}
    both = [ControlClient(drivers(kind, settings).directory) for kind in ("c", "ours")]
    yield both
    for client in both:
        client.close()


def refusal(client, type_id, body):
    """Sends a command that the driver must refuse. Returns the code and the text of the error.

    Our driver resolves names on another thread, so the error may follow the responses to later commands.
    """
    client.send(type_id, body(client.next_id()))
    [error] = [event for event in client.await_event("ON_ERROR") if event.name == "ON_ERROR"]
    return error.code, error.text


def observations(client):
    """Returns the number of recorded errors. The number of distinct errors may differ between the drivers."""
    return sum(count for count, _ in client.error_log())


def assert_refused_alike(controls, type_id, body):
    theirs, ours = controls
    their_code, their_text = refusal(theirs, type_id, body)
    our_code, our_text = refusal(ours, type_id, body)
    assert our_code == their_code, (their_text, our_text)
    assert _DESCRIPTOR.sub("", _INNERMOST.search(their_text)[1]) in our_text
    assert observations(ours) == observations(theirs)


@pytest.mark.parametrize("channel", REFUSED_PUBLICATIONS)
def test_a_publication_is_refused_with_the_text_of_the_c_driver(controls, channel):
    """04-38, 04-39, 04-40, 04-46, 04-49, 05-1"""
    channel = channel.replace("PORT", str(free_port()))
    assert_refused_alike(controls, control.ADD_EXCLUSIVE_PUBLICATION, lambda id: control.add(1, id, STREAM, channel))


@pytest.mark.parametrize("channel", REFUSED_SUBSCRIPTIONS)
def test_a_subscription_is_refused_with_the_text_of_the_c_driver(controls, channel):
    """04-41, 04-42, 04-51, 05-1"""
    channel = channel.replace("PORT", str(free_port()))
    assert_refused_alike(
        controls, control.ADD_SUBSCRIPTION, lambda id: control.add_subscription(1, id, STREAM, channel)
    )


def test_our_driver_records_as_many_errors_as_the_c_driver_for_streams_and_a_rejected_image(
    start_driver, start_peer, stream
):
    """Neither driver prints anything."""
    logs = [errors_after_streams(start_driver(kind), start_peer, stream) for kind in ("c", "ours")]
    theirs, ours = (sum(count for count, _ in log) for log in logs)
    assert ours == theirs, logs


def errors_after_streams(driver, start_peer, stream):
    subscriber, publisher = start_peer("java", driver), start_peer("c", driver)
    for sent, received in ((unicast(),) * 2, (multicast(),) * 2, dynamic()):
        subscription = subscriber.add_subscription(received, stream)
        publication = publisher.add_publication(sent, stream, exclusive=True)
        publication.await_connected()
        transfer([publication], [subscription], 50, [100, 5000])
        publication.close()
        subscription.await_images(0)
        subscription.close()
    channel = unicast()
    subscription = subscriber.add_subscription(channel, stream)
    publication = publisher.add_publication(channel, stream)
    subscription.await_images(1)
    subscription.reject(publication.session, "not wanted")
    publisher.await_events("publication_error")
    assert driver.process.output() == ""
    return ControlClient(driver.directory).error_log()
