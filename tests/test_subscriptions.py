"""Tests of receiving: handlers, headers, views of the log, assemblers and images."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest
from tests.conftest import Stream, eventually

import aeron
from aeron import Action


class Oops(Exception):
    pass


def offer_all(stream: Stream, *messages: bytes) -> None:
    for message in messages:
        assert stream.publication.publish(message, timeout=5)


def test_poll_passes_payload_and_header_and_returns_the_number_of_fragments(stream: Stream) -> None:
    offer_all(stream, b"one", b"two")
    got = []
    assert stream.subscription.poll(lambda payload, header: got.append((payload, header.position)), 10) == 2
    assert got == [(b"one", 64), (b"two", 128)]
    assert stream.subscription.poll(lambda *_: None) == 0


def test_images_have_no_peek() -> None:
    """03-104: `peek` is deprecated in Aeron 1.52, and removed in 1.53."""
    assert not any("peek" in name for name in dir(aeron.Image))


def test_poll_stops_at_its_limit(stream: Stream) -> None:
    offer_all(stream, *[b"x"] * 5)
    assert stream.subscription.poll(lambda *_: None, 2) == 2
    assert stream.subscription.poll(lambda *_: None, fragment_limit=10) == 3
    assert stream.subscription.poll(lambda *_: None, 0) == 0


def test_the_header_has_all_fields_of_its_frame(stream: Stream) -> None:
    offer_all(stream, b"12345")
    seen = {}

    def handler(_: bytes, header: aeron.Header) -> None:
        names = [name for name in dir(header) if not name.startswith("_")]
        seen.update({name: getattr(header, name) for name in names})

    stream.subscription.poll(handler)
    publication = stream.publication
    assert seen == {
        "position": 64,
        "reserved_value": 0,
        "session_id": publication.session_id,
        "stream_id": stream.stream_id,
        "term_id": publication.initial_term_id,
        "term_offset": 0,
        "next_term_offset": 64,
        "frame_length": 37,
        "fragmented_frame_length": -1,
        "flags": 0xC0,
        "type": 1,
        "initial_term_id": publication.initial_term_id,
        "position_bits_to_shift": 16,
    }


def test_a_header_is_valid_only_within_its_handler(stream: Stream) -> None:
    offer_all(stream, b"x")
    kept = []
    stream.subscription.poll(lambda _, header: kept.append(header))
    with pytest.raises(aeron.AeronError, match="only inside the handler"):
        _ = kept[0].position


def test_poll_raises_the_exception_of_a_handler_and_consumes_the_message(stream: Stream) -> None:
    """03-101"""
    offer_all(stream, b"good", b"bad", b"next")
    got = []

    def handler(payload: bytes, _: aeron.Header) -> None:
        got.append(payload)
        if payload == b"bad":
            raise Oops

    with pytest.raises(Oops):
        stream.subscription.poll(handler, 10)
    assert stream.subscription.poll(handler, 10) == 1
    assert got == [b"good", b"bad", b"next"]


def test_a_handler_cannot_poll_its_own_subscription(stream: Stream) -> None:
    offer_all(stream, b"x", b"y")
    with pytest.raises(aeron.ReentrantCallError):
        stream.subscription.poll(lambda *_: stream.subscription.poll(lambda *_: None))
    with pytest.raises(aeron.ReentrantCallError):
        stream.subscription.poll(lambda *_: stream.subscription.poll_batch())
    assert stream.subscription.poll(lambda *_: None) == 0


@pytest.mark.parametrize("closed", ["subscription", "client"])
def test_a_handler_may_close_its_subscription_or_its_client(stream: Stream, closed: str) -> None:
    offer_all(stream, b"x", b"y")
    assert stream.subscription.poll(lambda *_: getattr(stream, closed).close(), 10) == 1
    assert stream.subscription.is_closed
    assert stream.subscription.poll(lambda *_: None) == 0


def test_a_handler_may_offer_messages(stream: Stream) -> None:
    offer_all(stream, b"ping")
    stream.subscription.poll(lambda *_: stream.publication.offer(b"pong"))
    assert stream.receive() == [b"pong"]


@pytest.mark.parametrize("handler", [None, 5, "text"])
def test_a_handler_that_is_not_callable_is_refused_and_consumes_no_message(stream: Stream, handler: object) -> None:
    offer_all(stream, b"x")
    with pytest.raises(TypeError):
        stream.subscription.poll(handler)
    assert stream.receive() == [b"x"]


def test_controlled_poll_performs_the_action_that_its_handler_returns(stream: Stream) -> None:
    """03-102: ABORT delivers the fragment again, BREAK ends the poll, and COMMIT moves the position immediately."""
    offer_all(stream, *[bytes([i]) for i in range(6)])
    image = stream.subscription.images[0]
    actions = iter([Action.CONTINUE, None, Action.COMMIT, Action.ABORT])
    got, positions = [], []

    def handler(payload: bytes, _: aeron.Header) -> Action | None:
        got.append(payload[0])
        positions.append(image.position)
        return next(actions)

    assert stream.subscription.controlled_poll(handler, 10) == 3
    assert got == [0, 1, 2, 3]
    assert positions == [0, 0, 0, 3 * 64]
    assert stream.subscription.controlled_poll(lambda payload, _: got.append(payload[0]) or Action.BREAK, 10) == 1
    assert got[-1] == 3
    assert stream.subscription.controlled_poll(lambda payload, _: got.append(payload[0]), 10) == 2


def test_poll_accepts_its_arguments_by_position_or_by_keyword(stream: Stream) -> None:
    offer_all(stream, *[bytes([i]) for i in range(20)])
    got: list[bytes] = []

    def handler(payload: bytes | memoryview, _: aeron.Header) -> None:
        got.append(bytes(payload))

    poll = stream.subscription.poll
    calls = [
        lambda: poll(handler, 1),
        lambda: poll(handler, fragment_limit=2),
        lambda: poll(fragment_limit=np.int64(3), handler=handler),
        lambda: poll(handler, np.int32(1), copy=False),
        lambda: poll(handler),
        lambda: poll(handler=handler),
    ]
    assert [call() for call in calls] == [1, 2, 3, 1, 10, 3]
    assert got == [bytes([i]) for i in range(20)]
    assert "fragment_limit=10" in (aeron.Subscription.poll.__text_signature__ or "")
    bad: list[tuple[object, ...]] = [(), (handler, 1, True), (handler, "1"), (handler, 1.0), (handler, -1)]
    for arguments in bad:
        with pytest.raises((TypeError, OverflowError)):
            poll(*arguments)  # type: ignore[arg-type]


def test_an_invalid_result_of_a_controlled_handler_raises_an_error(stream: Stream) -> None:
    offer_all(stream, b"x")
    with pytest.raises(TypeError, match=r"aeron\.Action"):
        stream.subscription.controlled_poll(lambda *_: "nonsense")


def test_actions_have_the_values_of_the_c_client() -> None:
    assert [int(action) for action in (Action.ABORT, Action.BREAK, Action.COMMIT, Action.CONTINUE)] == [1, 2, 3, 4]


def test_views_of_the_log_are_released_when_the_handler_returns(stream: Stream) -> None:
    offer_all(stream, b"in the log")
    kept = []

    def handler(view: memoryview, _: aeron.Header) -> None:
        assert view.readonly
        assert bytes(view) == b"in the log"
        kept.append(view)

    stream.subscription.poll(handler, copy=False)
    with pytest.raises(ValueError, match="released"):
        bytes(kept[0])


@pytest.mark.parametrize("keep", [lambda view: np.frombuffer(view, "u1"), lambda view: view[2:4], memoryview])
def test_keeping_a_view_of_the_log_is_an_error_and_the_view_stays_readable(stream: Stream, keep: object) -> None:
    offer_all(stream, b"in the log", b"next")
    kept = []
    with pytest.raises(BufferError, match="kept"):
        stream.subscription.poll(lambda view, _: kept.append(keep(view)), copy=False)
    assert stream.receive() == [b"next"]
    stream.publication.close()
    stream.subscription.close()
    stream.client.close()
    gc.collect()
    bytes(kept[0])


def test_an_assembler_joins_fragments(stream: Stream) -> None:
    """03-108, 03-109"""
    payload = bytes(range(256)) * 20
    offer_all(stream, b"short", payload, b"last")
    got = []

    def handler(message: bytes, header: aeron.Header) -> None:
        got.append((bytes(message), header.flags, header.frame_length, header.position))

    assembler = aeron.FragmentAssembler(handler)
    eventually(lambda: stream.subscription.poll(assembler, 2) == 0 and len(got) == 3)
    assert got[0][:3] == (b"short", 0xC0, 37)
    assert got[1][:3] == (payload, 0xC0, 32 + len(payload))
    assert got[2][0] == b"last"
    assert got[2][3] == got[1][3] + 64
    assert assembler.handler is handler
    assert assembler.free_session_buffer(stream.publication.session_id)
    assert not assembler.free_session_buffer(1)


def test_an_assembler_passes_views_and_a_message_is_consumed_although_its_handler_raises(stream: Stream) -> None:
    payload = bytes(range(256)) * 20
    offer_all(stream, payload)
    got = []
    assembler = aeron.FragmentAssembler(lambda view, _: got.append(bytes(view)))
    while stream.subscription.poll(assembler, 10, copy=False):
        pass
    assert got == [payload]

    offer_all(stream, payload, b"next")

    def raising(*_: object) -> None:
        raise Oops

    with pytest.raises(Oops):
        stream.subscription.poll(aeron.FragmentAssembler(raising), 100)
    assert stream.receive() == [b"next"]


def test_a_kept_view_of_an_assembled_message_does_not_change(stream: Stream) -> None:
    first, second = bytes(range(256)) * 20, bytes(reversed(range(256))) * 20
    kept: list[np.ndarray] = []
    keeping = aeron.FragmentAssembler(lambda view, _: kept.append(np.frombuffer(view, "u1")))

    def receive() -> None:
        with pytest.raises(BufferError, match="kept"):
            while True:
                stream.subscription.poll(keeping, 10, copy=False)

    for payload in (first, second):
        offer_all(stream, payload)
        receive()
    assert [bytes(view) for view in kept] == [first, second]


def test_a_controlled_assembler_delivers_an_aborted_message_again(stream: Stream) -> None:
    """03-110: ABORT on the last fragment delivers the complete message again."""
    payload = bytes(range(256)) * 20
    offer_all(stream, payload)
    answers, got = iter([Action.ABORT, Action.CONTINUE]), []

    def handler(message: bytes, _: aeron.Header) -> Action:
        got.append(message)
        return next(answers)

    assembler = aeron.FragmentAssembler(handler)
    stream.subscription.controlled_poll(assembler, 10)
    stream.subscription.controlled_poll(assembler, 10)
    assert got == [payload, payload]


def test_block_poll_passes_complete_frames(stream: Stream) -> None:
    """03-105"""
    offer_all(stream, b"one", b"two")
    blocks = []
    assert stream.subscription.block_poll(lambda *block: blocks.append(block), 1 << 16) == 128
    frames, session_id, term_id = blocks[0]
    assert (session_id, term_id) == (stream.publication.session_id, stream.publication.initial_term_id)
    assert frames[32:35] == b"one"
    assert frames[96:99] == b"two"
    offer_all(stream, b"three")
    assert stream.subscription.block_poll(lambda *_: None, 32) == 0
    raw = []
    assert stream.subscription.raw_poll(lambda *block: raw.append(block), 1 << 16) == 64
    assert raw[0][0] == 128
    offer_all(stream, b"four")
    with pytest.raises(ZeroDivisionError):
        stream.subscription.block_poll(lambda *_: 1 // 0, 1 << 16)


def test_each_image_can_be_polled_separately(stream: Stream) -> None:
    offer_all(stream, b"a", b"b", b"c")
    image = stream.subscription.images[0]
    got = []
    assert image.bounded_poll(lambda payload, _: got.append(payload), 64, 10) == 1
    assert image.bounded_controlled_poll(lambda payload, _: got.append(payload) or Action.BREAK, 10_000, 10) == 1
    assert image.poll(lambda payload, _: got.append(payload), 10) == 1
    assert image.controlled_poll(lambda *_: None) == 0
    assert got == [b"a", b"b", b"c"]


def test_the_properties_of_an_image_and_its_subscription_have_the_values_of_the_stream(stream: Stream) -> None:
    subscription, publication = stream.subscription, stream.publication
    assert subscription.is_connected
    assert subscription.image_count == 1
    assert not subscription.has_no_images
    image = subscription.image_by_session_id(publication.session_id)
    assert image is not None
    assert image.source_identity == "aeron:ipc"
    assert image.correlation_id == publication.registration_id
    assert image.subscription_registration_id == subscription.registration_id
    assert image.mtu_length == 1408
    assert image.join_position == image.position == 0
    assert image.end_of_stream_position == 2**63 - 1
    assert not image.is_end_of_stream
    assert image.active_transport_count == 0
    assert stream.client.counters_reader.value(image.subscriber_position_id) == 0
    assert subscription.image_by_session_id(12345) is None
    with pytest.raises(IndexError, match="has 1"):
        subscription.image_at_index(1)
    assert subscription.try_resolve_channel_endpoint_port() == "aeron:ipc"
    assert subscription.resolved_endpoint is None

    offer_all(stream, b"x")
    publication.close()
    eventually(lambda: image.end_of_stream_position == 64)
    subscription.poll(lambda *_: None)
    assert image.is_end_of_stream
    eventually(lambda: image.is_closed)
    assert image.position == 64, "the closed image did not keep its position"
    assert image.poll(lambda *_: None) == 0


def test_the_publisher_receives_the_reason_of_a_rejected_image(driver: aeron.MediaDriver, stream_id: int) -> None:
    """03-111, 03-112"""
    errors = []
    with aeron.connect(driver, on_publication_error=errors.append) as client:
        publication = client.add_publication("aeron:ipc", stream_id)
        subscription = client.add_subscription("aeron:ipc", stream_id)
        subscription.wait_connected(5)
        subscription.images[0].reject("no thanks")
        eventually(lambda: errors)
        assert errors[0].error_message == "no thanks"
        assert errors[0].error_code == 13
        assert errors[0].registration_id == publication.registration_id
        assert errors[0].session_id == publication.session_id
        with pytest.raises(aeron.RegistrationError):
            client.add_subscription("aeron:ipc", stream_id).images or client.add_publication("aeron:x", 1)


def test_image_handlers_are_called_for_available_and_unavailable_images(client: aeron.Aeron, stream_id: int) -> None:
    """03-107"""
    events = []
    subscription = client.add_subscription(
        "aeron:ipc",
        stream_id,
        on_available_image=lambda image: events.append(("available", image.session_id, threading.get_ident())),
        on_unavailable_image=lambda image: events.append(("unavailable", image.session_id, image.is_closed)),
    )
    publication = client.add_publication("aeron:ipc", stream_id)
    eventually(lambda: events)
    assert events[0][:2] == ("available", publication.session_id)
    assert events[0][2] != threading.get_ident(), "the dispatcher thread did not call the handler"
    publication.close()
    eventually(lambda: len(events) == 2)
    assert events[1] == ("unavailable", publication.session_id, True)
    assert subscription.has_no_images


def test_a_second_thread_cannot_poll_during_a_poll(stream: Stream) -> None:
    offer_all(stream, b"x", b"y")
    is_inside, go_on, errors = threading.Event(), threading.Event(), []

    def handler(*_: object) -> None:
        is_inside.set()
        go_on.wait(5)

    thread = threading.Thread(target=lambda: stream.subscription.poll(handler, 1))
    thread.start()
    is_inside.wait(5)
    for call in (lambda: stream.subscription.poll(handler), stream.subscription.poll_batch):
        with pytest.raises(aeron.ReentrantCallError) as caught:
            call()
        errors.append(caught.value)
    go_on.set()
    thread.join()
    assert len(errors) == 2


def test_the_error_of_wait_connected_names_the_missing_publisher(client: aeron.Aeron, stream_id: int) -> None:
    subscription = client.add_subscription("aeron:ipc", stream_id)
    with pytest.raises(aeron.NotConnectedError, match=f"stream {stream_id}: no publisher"):
        subscription.wait_connected(timeout=0.1)
    threading.Timer(0.1, subscription.close).start()
    start = time.monotonic()
    with pytest.raises(aeron.SubscriptionClosedError):
        subscription.wait_connected(timeout=5)
    assert time.monotonic() - start < 2
