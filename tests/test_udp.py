"""Tests of UDP channels: addresses, destinations, spies, rejection, flow control, response channels and loss."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Callable, Iterator

import pytest
from tests.conftest import eventually

import aeron
from ports import free_port

Publisher = aeron.Publication | aeron.ExclusivePublication


@pytest.fixture(scope="module")
def driver() -> Iterator[aeron.MediaDriver]:
    with aeron.MediaDriver(
        term_buffer_length=64 * 1024,
        timer_interval_ns=50_000_000,
        # This timeout is short, because tests wait for it. It is not shorter, because the driver loses its images if it
        # gets no processor time for this long on a busy machine.
        image_liveness_timeout_ns=2_000_000_000,
        status_message_timeout_ns=50_000_000,
    ) as driver:
        yield driver


def unicast() -> str:
    return f"aeron:udp?endpoint=127.0.0.1:{free_port()}"


def exchange(publication: Publisher, *subscriptions: aeron.Subscription, count: int = 20) -> None:
    """Publishes short messages and messages of several frames. Checks that each subscription receives every message
    once and in order."""
    messages = [struct.pack("<q", number).ljust(100 if number % 2 else 3000, b".") for number in range(count)]
    received: list[list[bytes]] = [[] for _ in subscriptions]

    def poll() -> bool:
        for got, subscription in zip(received, subscriptions, strict=True):
            got.extend(subscription.poll_batch().to_list())
        return all(len(got) >= count for got in received)

    for message in messages:
        eventually(lambda message=message: publication.offer(message) or (poll() and False))
    eventually(poll)
    assert all(got == messages for got in received)


def connected(publication: Publisher, *subscriptions: aeron.Subscription) -> None:
    publication.wait_connected(timeout=10)
    for subscription in subscriptions:
        subscription.wait_connected(timeout=10)


# ---- unicast -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["add_publication", "add_exclusive_publication"])
def test_messages_are_sent_through_sockets(client: aeron.Aeron, stream_id: int, kind: str) -> None:
    channel = unicast()
    subscription = client.add_subscription(channel, stream_id)
    publication = getattr(client, kind)(channel, stream_id)
    connected(publication, subscription)
    exchange(publication, subscription)
    [image] = subscription.images
    [sent_from] = publication.local_socket_addresses
    assert image.source_identity == sent_from
    assert image.source_identity.startswith("127.0.0.1:")
    eventually(lambda: image.active_transport_count == 1)


def test_messages_are_sent_over_ipv6(client: aeron.Aeron, stream_id: int) -> None:
    """05-8"""
    channel = f"aeron:udp?endpoint=[::1]:{free_port('::1')}"
    subscription = client.add_subscription(channel, stream_id)
    publication = client.add_publication(channel, stream_id)
    connected(publication, subscription)
    exchange(publication, subscription)
    assert subscription.images[0].source_identity.startswith("[::1]:")


def test_a_publication_without_subscribers_is_not_connected(client: aeron.Aeron, stream_id: int) -> None:
    publication = client.add_publication(unicast(), stream_id)
    assert publication.offer(b"x") is aeron.NOT_CONNECTED
    with pytest.raises(aeron.NotConnectedError, match="subscriber"):
        publication.wait_connected(timeout=0.2)


def test_the_channel_builder_builds_network_channels(client: aeron.Aeron, stream_id: int) -> None:
    channel = aeron.ChannelUriBuilder("udp", endpoint=f"localhost:{free_port()}", mtu=8192, term_length=65536)
    subscription = client.add_subscription(channel, stream_id)
    publication = client.add_exclusive_publication(channel, stream_id)
    connected(publication, subscription)
    assert publication.max_payload_length == 8192 - 32
    exchange(publication, subscription)


@pytest.mark.parametrize(
    ("channel", "error"),
    [
        ("aeron:udp?endpoint=localhost", aeron.InvalidChannelError),
        ("aeron:udp?endpoint=no-such-host.invalid:1", aeron.UnknownHostError),
        ("aeron:udp?endpoint=localhost:0", aeron.GenericDriverError),
        ("aeron:udp?control-mode=dynamic|endpoint=localhost:9", aeron.InvalidChannelError),
        ("aeron-spy:aeron:udp?endpoint=localhost:9", aeron.InvalidChannelError),
    ],
)
def test_each_error_code_of_the_driver_has_its_own_exception(
    client: aeron.Aeron, channel: str, error: type[aeron.AeronError]
) -> None:
    """03-55"""
    with pytest.raises(error):
        client.add_publication(channel, 1001)


# ---- status and addresses ------------------------------------------------------------------------------------------


def test_channels_have_a_status_and_addresses_while_they_are_active(client: aeron.Aeron, stream_id: int) -> None:
    """03-115, 03-116"""
    port = free_port()
    channel = f"aeron:udp?endpoint=localhost:{port}"
    subscription, publication = client.add_subscription(channel, stream_id), client.add_publication(channel, stream_id)
    for each in (subscription, publication):
        assert each.channel_status == aeron.ChannelStatus.ACTIVE
        assert client.counters_reader.value(each.channel_status_id) == aeron.ChannelStatus.ACTIVE
    assert subscription.local_socket_addresses == [f"127.0.0.1:{port}"]
    assert subscription.resolved_endpoint == f"127.0.0.1:{port}"
    assert subscription.try_resolve_channel_endpoint_port() == channel
    [sent_from] = publication.local_socket_addresses
    assert sent_from.startswith("127.0.0.1:")
    for each in (subscription, publication):
        each.close()
        assert each.channel_status == aeron.ChannelStatus.ERRORED
        assert each.local_socket_addresses == []
    assert subscription.resolved_endpoint is None


def test_port_0_is_replaced_by_the_port_that_the_system_chose(client: aeron.Aeron, stream_id: int) -> None:
    """05-10, 05-43: the parameters of the resolved channel are in the builder's order"""
    subscription = client.add_subscription("aeron:udp?mtu=1408|endpoint=localhost:0|alias=x|tags=51,61", stream_id)
    endpoint = subscription.resolved_endpoint
    assert endpoint
    assert not endpoint.endswith(":0")
    resolved = subscription.try_resolve_channel_endpoint_port()
    assert resolved == f"aeron:udp?endpoint={endpoint}|tags=51,61|mtu=1408|alias=x"
    publication = client.add_publication(f"aeron:udp?endpoint={endpoint}", stream_id)
    connected(publication, subscription)
    exchange(publication, subscription)


# ---- many receivers ------------------------------------------------------------------------------------------------


def test_multicast_reaches_every_subscriber(client: aeron.Aeron, driver: aeron.MediaDriver, stream_id: int) -> None:
    channel = f"aeron:udp?endpoint=224.20.30.39:{free_port()}|interface=localhost"
    with aeron.connect(driver) as other:
        subscriptions = [each.add_subscription(channel, stream_id) for each in (client, other)]
        publication = client.add_publication(channel, stream_id)
        connected(publication, *subscriptions)
        exchange(publication, *subscriptions)


def test_a_dynamic_control_address_serves_any_receiver(client: aeron.Aeron, stream_id: int) -> None:
    control = f"aeron:udp?control=127.0.0.1:{free_port()}|control-mode=dynamic"
    publication = client.add_publication(control, stream_id)
    [sent_from] = publication.local_socket_addresses
    subscriptions = [
        client.add_subscription(f"{control}|endpoint=127.0.0.1:{free_port()}", stream_id) for _ in range(2)
    ]
    connected(publication, *subscriptions)
    exchange(publication, *subscriptions)
    assert f"control={sent_from}" in control


def _manual(client: aeron.Aeron, stream_id: int) -> aeron.Publication:
    return client.add_publication(f"aeron:udp?control=127.0.0.1:{free_port()}|control-mode=manual", stream_id)


def test_destinations_are_added_and_removed(client: aeron.Aeron, stream_id: int) -> None:
    """03-37, 03-39, 05-41: a destination is named by a channel, by an id or by a channel builder"""
    channels = [unicast() for _ in range(3)]
    subscriptions = [client.add_subscription(channel, stream_id) for channel in channels]
    publication = _manual(client, stream_id)
    publication.add_destination(channels[0])
    second = publication.add_destination(aeron.ChannelUriBuilder.parse(channels[1]))
    publication.add_destination(channels[2])
    connected(publication, *subscriptions)
    exchange(publication, *subscriptions)

    publication.remove_destination(aeron.ChannelUriBuilder.parse(channels[0]))
    publication.remove_destination(second)
    eventually(lambda: not subscriptions[0].is_connected and not subscriptions[1].is_connected)
    exchange(publication, subscriptions[2])
    assert subscriptions[0].poll_batch().to_list() == subscriptions[1].poll_batch().to_list() == []


def test_destinations_are_added_and_removed_with_operations(client: aeron.Aeron, stream_id: int) -> None:
    channel = unicast()
    subscription = client.add_subscription(channel, stream_id)
    publication = _manual(client, stream_id)
    destination = publication.async_add_destination(channel)
    assert destination.result(5) == destination.correlation_id
    assert not client.is_command_active(destination.correlation_id)
    connected(publication, subscription)
    exchange(publication, subscription)
    removal = publication.async_remove_destination(destination.correlation_id)
    assert removal.result(5) is None
    eventually(lambda: not subscription.is_connected)


def test_a_coroutine_can_wait_for_destinations(driver: aeron.MediaDriver, stream_id: int) -> None:
    async def main() -> None:
        async with aeron.connect(driver) as client:
            channel = unicast()
            subscription = await client.async_add_subscription("aeron:udp?control-mode=manual", stream_id)
            await subscription.async_add_destination(channel)
            publication = await client.async_add_publication(
                f"aeron:udp?control=127.0.0.1:{free_port()}|control-mode=manual", stream_id
            )
            destination = await publication.async_add_destination(channel)
            await publication.offer_async(b"hello")
            batch = await anext(aiter(subscription))
            assert batch.to_list() == [b"hello"]
            await publication.async_remove_destination(destination)
            assert await publication.async_remove_destination(channel) is None
            await subscription.async_remove_destination(channel)
            ordinary = await client.async_add_publication(unicast(), stream_id)
            with pytest.raises(aeron.GenericDriverError, match="manual"):
                await ordinary.async_add_destination(channel)
            assert isinstance(await client.async_next_session_id(stream_id), int)

    asyncio.run(asyncio.wait_for(main(), 30))


def test_destinations_are_refused_for_channels_without_manual_control(client: aeron.Aeron, stream_id: int) -> None:
    """03-38, 03-40"""
    channel = unicast()
    publication = client.add_publication(channel, stream_id)
    with pytest.raises(aeron.GenericDriverError, match="does not allow manual control"):
        publication.add_destination(channel)
    subscription = client.add_subscription(channel, stream_id)
    with pytest.raises(aeron.InvalidChannelError, match="does not allow manual control"):
        subscription.add_destination(channel)
    manual = _manual(client, stream_id)
    for wrong, error in [
        ("aeron:ipc", aeron.GenericDriverError),
        ("aeron-spy:aeron:udp?endpoint=localhost:9", aeron.InvalidChannelError),
        ("aeron:udp?endpoint=localhost:0", aeron.GenericDriverError),
        ("aeron:udp?endpoint=localhost:9|mtu=1408", aeron.InvalidChannelError),
        ("nonsense", aeron.InvalidChannelError),
    ]:
        with pytest.raises(error):
            manual.add_destination(wrong)
    with pytest.raises(TypeError, match="channel"):
        manual.add_destination(5)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_subscription_receives_on_several_destinations(client: aeron.Aeron, stream_id: int) -> None:
    """03-40, 03-41: two network destinations and one IPC destination"""
    first, second = unicast(), unicast()
    subscription = client.add_subscription("aeron:udp?control-mode=manual", stream_id)
    one, two = client.add_publication(first, stream_id), client.add_publication(second, stream_id)
    ipc = client.add_publication("aeron:ipc", stream_id)
    for channel in (first, aeron.ChannelUriBuilder.parse(second), "aeron:ipc"):
        subscription.add_destination(channel)
    for publication in (one, two, ipc):
        publication.wait_connected(timeout=10)
        exchange(publication, subscription)
    assert len(subscription.local_socket_addresses) == 2
    eventually(lambda: subscription.image_count == 3)
    subscription.remove_destination("aeron:ipc")
    eventually(lambda: subscription.image_count == 2)
    removal = subscription.async_remove_destination(first)
    assert removal.result(5) is None
    eventually(lambda: not one.is_connected)
    exchange(two, subscription)


# ---- spies ---------------------------------------------------------------------------------------------------------


def test_a_spy_receives_the_same_messages_as_the_network_subscriber(client: aeron.Aeron, stream_id: int) -> None:
    """03-31, 03-111: a spy cannot reject its image"""
    channel = unicast()
    spy = client.add_subscription(f"aeron-spy:{channel}", stream_id)
    publication = client.add_publication(channel, stream_id)
    eventually(lambda: spy.is_connected)
    assert not publication.is_connected, "a spy alone has connected the publication"
    subscription = client.add_subscription(channel, stream_id)
    connected(publication, subscription)
    exchange(publication, subscription, spy)
    assert spy.channel_status == aeron.ChannelStatus.ACTIVE
    assert (spy.channel_status_id, spy.local_socket_addresses) == (-1, [])
    [image] = spy.images
    assert image.source_identity == "aeron:ipc"
    assert image.correlation_id == publication.original_registration_id
    with pytest.raises(aeron.AeronError, match="spies can not reject"):
        image.reject("no")


def test_a_spy_may_simulate_a_receiver(client: aeron.Aeron, stream_id: int) -> None:
    channel = f"{unicast()}|ssc=true"
    publication = client.add_publication(channel, stream_id)
    spy = client.add_subscription(f"aeron-spy:{channel}", stream_id)
    connected(publication, spy)
    exchange(publication, spy)


# ---- rejection -----------------------------------------------------------------------------------------------------


def _rejected(
    driver: aeron.MediaDriver, stream_id: int, reject: Callable[[aeron.Aeron, aeron.Image], None]
) -> tuple[aeron.PublicationErrorFrame, aeron.Publication]:
    channel, errors = unicast(), []
    with aeron.connect(driver, on_publication_error=errors.append) as client:
        subscription = client.add_subscription(channel, stream_id)
        publication = client.add_publication(channel, stream_id)
        connected(publication, subscription)
        [image] = subscription.images
        reject(client, image)
        eventually(lambda: errors)
        eventually(lambda: not publication.is_connected)
        # The test checks this image, because the stream continues and may get a new image immediately.
        eventually(lambda: image.is_closed)
        return errors[0], publication


@pytest.mark.parametrize("how", ["waiting", "polled"])
def test_a_rejected_image_ends_and_the_publisher_receives_the_reason(
    driver: aeron.MediaDriver, stream_id: int, how: str
) -> None:
    """03-111, 03-112"""

    def reject(client: aeron.Aeron, image: aeron.Image) -> None:
        if how == "waiting":
            image.reject("too old")
        else:
            rejection = image.async_reject("too old")
            assert rejection.result(5) is None

    error, publication = _rejected(driver, stream_id, reject)
    assert (error.error_message, error.error_code) == ("too old", 13)
    assert (error.session_id, error.stream_id) == (publication.session_id, stream_id)
    assert error.registration_id == publication.registration_id
    assert error.source_address is not None
    assert error.source_address.startswith("127.0.0.1:")


def test_a_coroutine_can_wait_for_a_rejection(driver: aeron.MediaDriver, stream_id: int) -> None:
    error, _ = _rejected(driver, stream_id, lambda _, image: asyncio.run(_reject(image)))
    assert error.error_message == "no longer"


async def _reject(image: aeron.Image) -> None:
    await image.async_reject("no longer")
    with pytest.raises(aeron.AeronError):
        await image.async_reject("x" * 1024)


# ---- flow and congestion control -----------------------------------------------------------------------------------


def test_min_flow_control_waits_for_its_group(client: aeron.Aeron, stream_id: int) -> None:
    control = {"control": f"127.0.0.1:{free_port()}", "control_mode": "dynamic"}
    sending = aeron.ChannelUriBuilder("udp", **control).min_flow_control(group_min_size=2)
    publication = client.add_publication(sending, stream_id)
    channels = [aeron.ChannelUriBuilder("udp", endpoint=f"127.0.0.1:{free_port()}", **control) for _ in range(2)]
    first = client.add_subscription(channels[0], stream_id)
    eventually(lambda: first.is_connected)
    assert not publication.is_connected
    second = client.add_subscription(channels[1], stream_id)
    connected(publication, first, second)
    exchange(publication, first, second)


def test_tagged_flow_control_counts_the_receivers_with_its_tag(client: aeron.Aeron, stream_id: int) -> None:
    control = {"control": f"127.0.0.1:{free_port()}", "control_mode": "dynamic"}
    sending = aeron.ChannelUriBuilder("udp", **control).tagged_flow_control(group_tag=99, group_min_size=1)
    publication = client.add_publication(sending, stream_id)

    def subscribe(**tag: int) -> aeron.Subscription:
        channel = aeron.ChannelUriBuilder("udp", endpoint=f"127.0.0.1:{free_port()}", **control, **tag)
        return client.add_subscription(channel, stream_id)

    others = subscribe(), subscribe(gtag=98)
    eventually(lambda: all(other.is_connected for other in others))
    assert not publication.is_connected
    tagged = subscribe(gtag=99)
    connected(publication, tagged)
    exchange(publication, tagged)


def test_cubic_congestion_control_shows_its_window(client: aeron.Aeron, stream_id: int) -> None:
    channel = aeron.ChannelUriBuilder("udp", endpoint=f"127.0.0.1:{free_port()}", cc="cubic")
    subscription = client.add_subscription(channel, stream_id)
    publication = client.add_publication(channel, stream_id)
    connected(publication, subscription)
    exchange(publication, subscription)
    assert any("rcv-cc-cubic-wnd" in counter.label for counter in client.counters_reader)


# ---- responses -----------------------------------------------------------------------------------------------------


@pytest.fixture(params=["one driver", "two drivers"])
def asking_client(request: pytest.FixtureRequest, driver: aeron.MediaDriver) -> Iterator[aeron.Aeron]:
    """Yields a client of the server's driver, or of another driver."""
    with contextlib.ExitStack() as stack:
        if request.param == "two drivers":
            driver = stack.enter_context(aeron.MediaDriver(term_buffer_length=64 * 1024))
        yield stack.enter_context(aeron.connect(driver))


def test_each_client_of_a_response_channel_receives_only_its_own_responses(
    client: aeron.Aeron, asking_client: aeron.Aeron, stream_id: int
) -> None:
    """06-21, 06-24 (9.12)"""
    requests, responses = unicast(), f"aeron:udp?control=127.0.0.1:{free_port()}|control-mode=response"
    server = client.add_subscription(requests, stream_id)
    answers: dict[int, aeron.Publication] = {}

    def serve() -> None:
        for image in server.images:
            if image.session_id not in answers:
                answers[image.session_id] = client.add_publication(
                    f"{responses}|response-correlation-id={image.correlation_id}", stream_id + 1
                )
            # Polls only this image. Another image may become available now, before there is a publication for its
            # responses.
            image.poll(lambda payload, header: sent.append((header.session_id, b"answer to " + payload)))
        while sent and answers[sent[0][0]].offer(sent[0][1]):
            sent.pop(0)

    sent: list[tuple[int, bytes]] = []
    asking = []
    for _ in range(2):
        subscription = asking_client.add_subscription(responses, stream_id + 1)
        channel = f"{requests}|response-correlation-id={subscription.registration_id}"
        asking.append((asking_client.add_exclusive_publication(channel, stream_id), subscription))
    for number, (publication, _) in enumerate(asking):
        eventually(lambda publication=publication: serve() or publication.is_connected)
        for question in range(5):
            publication.publish(b"%d.%d" % (number, question), timeout=5)
    answered: list[list[bytes]] = [[], []]

    def is_answered() -> bool:
        serve()
        for got, (_, subscription) in zip(answered, asking, strict=True):
            got.extend(subscription.poll_batch().to_list())
        return all(len(got) >= 5 for got in answered)

    eventually(is_answered)
    assert answered == [[b"answer to %d.%d" % (number, question) for question in range(5)] for number in range(2)]


# ---- loss ----------------------------------------------------------------------------------------------------------


def test_lost_datagrams_are_retransmitted(stream_id: int) -> None:
    """06-5, 06-11 (document 06, section 9.11)"""
    with (
        aeron.MediaDriver(
            term_buffer_length=1 << 20, incoming_loss=aeron.RandomLoss(rate=0.05, seed=3), timer_interval_ns=50_000_000
        ) as driver,
        aeron.connect(driver) as client,
    ):
        channel = unicast()
        subscription = client.add_subscription(channel, stream_id)
        publication = client.add_publication(channel, stream_id)
        connected(publication, subscription)
        exchange(publication, subscription, count=2000)
        counters = {counter.id: counter.value for counter in client.counters_reader if counter.type_id == 0}
        assert counters[5] > 0, "the receiver has sent no NAKs"
        assert counters[6] > 0, "the sender has received no NAKs"
        assert counters[11] > 0, "the sender has retransmitted nothing"
        [loss] = aeron.read_loss_report(driver.dir)
        assert (loss.session_id, loss.stream_id) == (publication.session_id, stream_id)
        assert loss.channel == channel
        assert loss.source == publication.local_socket_addresses[0]
        assert loss.total_bytes_lost >= loss.observation_count > 0
