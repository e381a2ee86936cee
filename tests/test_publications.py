"""Tests of sending with `offer`, `publish` and claims, and of the results if nothing was sent."""

from __future__ import annotations

import array
import ctypes
import pickle
import threading
import time
from typing import Any

import numpy as np
import pytest
from tests.conftest import Stream, eventually

import aeron


@pytest.mark.parametrize(
    "message",
    [
        b"bytes",
        bytearray(b"bytearray"),
        memoryview(b"memoryview"),
        array.array("d", [1.0, 2.0]),
        np.arange(6, dtype="<i4").reshape(2, 3),
        b"",
    ],
    ids=lambda message: type(message).__name__,
)
def test_offer_accepts_any_object_with_the_buffer_protocol(stream: Stream, message: object) -> None:
    position = stream.publication.offer(message)
    assert isinstance(position, int)
    assert position > 0
    assert position == stream.publication.position
    assert stream.receive() == [bytes(message)]


@pytest.mark.parametrize("message", ["text", 5, None, np.arange(10)[::2], [b"list"]])
def test_offer_refuses_objects_without_a_contiguous_buffer(stream: Stream, message: object) -> None:
    with pytest.raises((TypeError, ValueError, BufferError)):
        stream.publication.offer(message)
    assert stream.publication.offer(b"still works")


def test_the_constants_for_unsent_messages_are_falsy_integers_with_names() -> None:
    for constant, code, name in [
        (aeron.NOT_CONNECTED, -1, "NOT_CONNECTED"),
        (aeron.BACK_PRESSURED, -2, "BACK_PRESSURED"),
        (aeron.ADMIN_ACTION, -3, "ADMIN_ACTION"),
    ]:
        assert not constant
        assert constant == code
        assert repr(constant) == name
        assert isinstance(constant, int)
        assert pickle.loads(pickle.dumps(constant)) is constant


def test_an_offer_without_a_subscriber_returns_not_connected(client: aeron.Aeron, stream_id: int) -> None:
    publication = client.add_publication("aeron:ipc", stream_id)
    assert publication.offer(b"nobody") is aeron.NOT_CONNECTED
    assert publication.try_claim(8) is aeron.NOT_CONNECTED
    assert publication.offer_batch([b"nobody"]) == 0
    assert not publication.is_connected
    assert publication.refused == aeron.RefusedAttempts(not_connected=3, back_pressured=0, admin_action=0)


def test_a_slow_subscriber_causes_back_pressure_until_it_has_read(stream: Stream) -> None:
    results = {}
    while (result := stream.publication.offer(bytes(1000))) is not aeron.BACK_PRESSURED:
        results[repr(result) if result < 0 else "sent"] = True
    assert "sent" in results
    assert stream.publication.refused.back_pressured == 1
    while stream.subscription.poll(lambda *_: None, 100):
        pass
    eventually(lambda: stream.publication.offer(b"room again"))


def test_an_offer_at_the_end_of_a_term_returns_admin_action(stream: Stream) -> None:
    def is_end_of_term() -> bool:
        result = stream.publication.offer(bytes(1000))
        stream.subscription.poll(lambda *_: None, 100)
        return result is aeron.ADMIN_ACTION

    # The driver decides when the publisher limit moves, so the number of calls is unknown. The term ends after 62
    # messages.
    eventually(is_end_of_term)
    assert stream.publication.position == stream.publication.term_buffer_length
    assert stream.publication.refused.admin_action == 1


def test_calls_of_a_closed_publication_raise_an_error(stream: Stream) -> None:
    stream.publication.close()
    stream.publication.close()
    assert stream.publication.is_closed
    for call in (
        lambda: stream.publication.offer(b"x"),
        lambda: stream.publication.try_claim(1),
        lambda: stream.publication.publish(b"x", timeout=1),
        lambda: stream.publication.claim(1, timeout=1),
        lambda: stream.publication.offer_batch([b"x"]),
        lambda: stream.publication.position,
        lambda: stream.publication.wait_connected(timeout=1),
    ):
        with pytest.raises(aeron.PublicationClosedError) as caught:
            call()
        assert caught.value.__cause__ is None, "the error has a cause, although the program closed the publication"


def test_the_cause_of_a_closed_publication_is_the_error_that_closed_it(stream_id: int) -> None:
    """03-75: the cause is the loss of the driver."""
    driver = aeron.MediaDriver(dir_delete_on_shutdown=False, dir_delete_on_start=True)
    try:
        client = aeron.connect(driver, error_handler=lambda _: None)
        publication = client.add_publication("aeron:ipc", stream_id)
        driver.close()
        eventually(lambda: publication.is_closed)
        with pytest.raises(aeron.PublicationClosedError) as caught:
            publication.offer(b"x")
        assert isinstance(caught.value.__cause__, aeron.DriverTimeoutError)
        with pytest.raises(aeron.ClientClosedError) as closed:
            client.add_publication("aeron:ipc", stream_id)
        assert isinstance(closed.value.__cause__, aeron.DriverTimeoutError)
        client.close()
    finally:
        import shutil

        shutil.rmtree(driver.dir, ignore_errors=True)


def test_the_error_for_a_message_that_is_too_long_names_the_limit(stream: Stream) -> None:
    limit = stream.publication.max_message_length
    assert stream.publication.offer(bytes(limit))
    with pytest.raises(aeron.MessageTooLongError, match=str(limit)):
        stream.publication.offer(bytes(limit + 1))
    with pytest.raises(ValueError, match=str(limit)):
        stream.publication.publish(bytes(limit + 1))
    with pytest.raises(aeron.MessageTooLongError, match=str(stream.publication.max_payload_length)):
        stream.publication.try_claim(stream.publication.max_payload_length + 1)
    with pytest.raises(OverflowError, match="length=-1 is not within 0 to"):
        stream.publication.try_claim(-1)


def test_an_offer_beyond_the_maximum_position_raises_an_error(client: aeron.Aeron, stream_id: int) -> None:
    """03-86: at the end of the last term"""
    channel = aeron.ChannelUriBuilder(term_length=65536)
    channel.initial_position((2**31 - 1) * 65536 + 65536 - 64, 0, 65536)
    publication = client.add_exclusive_publication(channel, stream_id)
    subscription = client.add_subscription("aeron:ipc", stream_id)
    subscription.wait_connected(5)
    with pytest.raises(aeron.MaxPositionExceededError):
        while True:
            publication.offer(bytes(64))


def test_a_waiting_publish_does_not_block_the_subscriber_in_another_thread(stream: Stream) -> None:
    count, got = 2000, []

    def read() -> None:
        while len(got) < count:
            got.extend(stream.subscription.poll_batch().to_list())

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(count):
        stream.publication.publish(i.to_bytes(1000, "little"), timeout=10)
    reader.join(20)
    assert [int.from_bytes(message, "little") for message in got] == list(range(count))


def test_the_error_of_a_wait_that_times_out_names_the_cause(client: aeron.Aeron, stream_id: int) -> None:
    publication = client.add_publication("aeron:ipc", stream_id)
    start = time.monotonic()
    with pytest.raises(aeron.NotConnectedError, match=rf"aeron:ipc, stream {stream_id}: no subscriber"):
        publication.publish(b"x", timeout=0.2)
    with pytest.raises(TimeoutError, match="no subscriber"):
        publication.wait_connected(timeout=0.1)
    assert 0.3 <= time.monotonic() - start < 2

    subscription = client.add_subscription("aeron:ipc", stream_id)
    publication.wait_connected(timeout=5)
    # The publication may be connected before the client has read the event of the image, so the test waits for the
    # image.
    subscription.wait_connected(timeout=5)
    with pytest.raises(aeron.BackPressureTimeoutError, match="does not keep up"):
        while True:
            publication.publish(bytes(1000), timeout=0.1)
    assert subscription.is_connected


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("-inf")])
def test_an_invalid_timeout_is_refused(stream: Stream, timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout"):
        stream.publication.publish(b"x", timeout=timeout)


def test_a_reserved_value_is_a_constant_or_a_function_of_the_fragment(stream: Stream) -> None:
    stream.publication.offer(b"constant", reserved_value=-7)
    stream.publication.offer(b"computed", reserved_value=len)
    stream.publication.offer(b"none")
    values = []
    eventually(
        lambda: stream.subscription.poll(lambda _, header: values.append(header.reserved_value)) or len(values) == 3
    )
    assert values == [-7, 8, 0]
    with pytest.raises(TypeError, match="reserved_value='text' is not an integer"):
        stream.publication.offer(b"wrong", reserved_value="text")


@pytest.mark.parametrize("kind", ["add_publication", "add_exclusive_publication"])
@pytest.mark.parametrize("fails_at", [1, 3])
def test_nothing_is_sent_if_the_function_for_reserved_values_raises(
    client: aeron.Aeron, stream_id: int, kind: str, fails_at: int
) -> None:
    publication = getattr(client, kind)("aeron:ipc", stream_id)
    subscription = client.add_subscription("aeron:ipc", stream_id)
    publication.wait_connected(5)
    before = publication.position
    seen: list[bytes] = []

    def value(fragment: bytes) -> int:
        seen.append(fragment)
        assert publication.position == before, "the function must be called before a fragment is appended"
        return 1 // (fails_at - len(seen))

    message = bytes(publication.max_payload_length) * 2 + b"the end"
    with pytest.raises(ZeroDivisionError):
        publication.offer(message, reserved_value=value)
    assert len(seen) == fails_at
    assert publication.position == before
    assert publication.offer(b"next")
    got: list[bytes] = []
    eventually(lambda: subscription.poll(lambda payload, _: got.append(payload)) or got)
    assert got == [b"next"]


def test_the_function_for_reserved_values_is_called_once_for_each_fragment(stream: Stream) -> None:
    limit = stream.publication.max_payload_length
    message = b"a" * limit + b"b" * limit + b"c"
    seen: list[bytes] = []
    assert stream.publication.offer(message, reserved_value=lambda part: seen.append(part) or -len(seen))
    assert seen == [b"a" * limit, b"b" * limit, b"c"]
    values: list[int] = []
    eventually(
        lambda: stream.subscription.poll(lambda _, header: values.append(header.reserved_value)) or len(values) > 2
    )
    assert values == [-1, -2, -3]
    assert stream.publication.offer(b"", reserved_value=lambda part: len(part) + 9)
    eventually(
        lambda: stream.subscription.poll(lambda _, header: values.append(header.reserved_value)) or len(values) > 3
    )
    assert values[3] == 9
    for wrong in ("text", 2**63):
        with pytest.raises((TypeError, OverflowError), match="reserved_value="):
            stream.publication.offer(b"x", reserved_value=lambda _, wrong=wrong: wrong)


def test_an_infinite_timeout_is_accepted(stream: Stream) -> None:
    assert stream.publication.publish(b"x", timeout=float("inf"))
    stream.subscription.wait_connected(timeout=float("inf"))
    assert len(next(stream.subscription.batches(timeout=float("inf")))) == 1


class _Strings(ctypes.Structure):
    _fields_ = (("O", ctypes.c_int), ("text", ctypes.c_char_p))


@pytest.mark.parametrize(
    "message",
    [
        np.array(["a", "b"], dtype=object),
        np.array([["a", "b"]], dtype=object),
        np.array([(1, "x")], dtype=[("number", "<i4"), ("text", "O")]),
        np.array([(1, "x", "2020-01-01")], dtype=[("number", "<i4"), ("text", "O"), ("day", "<M8[D]")]),
        np.array(["a", "b"], dtype=np.dtypes.StringDType()),
        np.rec.fromrecords([(1, "x")], dtype=[("number", "<i4"), ("text", "O")]),
        memoryview(np.array(["a", "b"], dtype=object)),
        (ctypes.c_char_p * 2)(b"a", b"b"),
        (ctypes.c_wchar_p * 2)("a", "b"),
        (ctypes.c_void_p * 2)(),
        (ctypes.POINTER(ctypes.c_int) * 2)(),
        (_Strings * 1)(),
    ],
    ids=lambda message: type(message).__name__,
)
def test_buffers_of_addresses_instead_of_values_are_refused(stream: Stream, message: Any) -> None:
    publication = stream.publication
    for send in (
        publication.offer,
        publication.publish,
        publication.offer_batch,
        lambda message: publication.offer(message, reserved_value=1),
        lambda message: publication.offer_parts([message]),
        lambda message: publication.offer_batch([b"first", message]),
        lambda message: publication.offer_batch(message, offsets=[0, 8]),
        publication.offer_block,
    ):
        with pytest.raises((TypeError, ValueError), match=r"addresses|offer_batch takes") as caught:
            send(message)
        assert isinstance(caught.value, TypeError)
    assert publication.position == 0


def test_buffers_of_values_are_sent(stream: Stream) -> None:
    for message in (
        np.array([1 + 2j]),
        np.array([(1, 2j)], dtype=[("O", "<i4"), ("Z", "<c8")]),
        np.array(["2020-01-01"], dtype="<M8[D]"),
        np.array([True]),
        np.array([b"a"], dtype="S4"),
        np.array(["a"], dtype="<U4"),
        (ctypes.c_double * 2)(),
    ):
        assert stream.publication.offer(message)
        assert stream.receive() == [message.tobytes() if isinstance(message, np.ndarray) else bytes(message)]


def test_offer_parts_joins_the_parts_into_one_message(stream: Stream) -> None:
    """03-98: an offer of parts equals an offer of the joined parts."""
    assert stream.publication.offer_parts([b"one, ", bytearray(b""), memoryview(b"two")])
    assert stream.publication.offer_parts(bytes([i]) * 500 for i in range(10))
    assert stream.receive(2) == [b"one, two", b"".join(bytes([i]) * 500 for i in range(10))]
    with pytest.raises(TypeError):
        stream.publication.offer_parts([b"one", 2])


def test_an_exclusive_publication_appends_padding_and_refuses_an_invalid_block(stream: Stream) -> None:
    publication = stream.publication
    before = publication.term_offset
    assert publication.append_padding(64) == publication.position
    assert publication.term_offset == before + 96
    assert publication.offer(b"after")
    assert stream.receive() == [b"after"]
    with pytest.raises(ValueError, match="block"):
        publication.offer_block(bytes(64))


def test_the_properties_of_a_publication_have_the_values_of_its_stream(stream: Stream) -> None:
    publication = stream.publication
    assert publication.channel == "aeron:ipc"
    assert publication.stream_id == stream.stream_id
    assert publication.is_connected
    assert publication.is_original
    assert publication.term_buffer_length == 64 * 1024
    assert publication.position_bits_to_shift == 16
    assert publication.max_message_length == 8 * 1024
    assert publication.max_payload_length == 1408 - 32
    assert publication.max_possible_position == 64 * 1024 * 2**31
    assert publication.channel_status == 1
    assert publication.local_socket_addresses == []
    assert publication.available_window == publication.position_limit - publication.position
    assert stream.client.counters_reader.value(publication.position_limit_id) == publication.position_limit
    assert str(publication.session_id) in repr(publication)


def test_two_concurrent_publications_write_to_one_stream(client: aeron.Aeron, stream_id: int) -> None:
    """03-97: after one publication is closed, the other one stays usable."""
    first, second = (client.add_publication("aeron:ipc", stream_id) for _ in range(2))
    assert first.session_id == second.session_id
    assert second.original_registration_id == first.registration_id
    assert not second.is_original
    subscription = client.add_subscription("aeron:ipc", stream_id)
    first.publish(b"first", timeout=5)
    first.close()
    second.publish(b"second", timeout=5)
    got: list[bytes] = []
    eventually(lambda: got.extend(subscription.poll_batch().to_list()) or len(got) == 2)
    assert got == [b"first", b"second"]


def test_revoking_a_publication_ends_its_stream_immediately(stream: Stream) -> None:
    image = stream.subscription.images[0]
    stream.publication.revoke()
    assert stream.publication.is_closed
    eventually(lambda: image.is_closed)
    assert image.is_publication_revoked


def test_offer_accepts_its_arguments_by_position_and_by_keyword(stream: Stream) -> None:
    publication = stream.publication
    assert publication.offer(b"positional")
    assert publication.offer(message=b"keyword")
    assert publication.offer(b"both", reserved_value=1)
    assert publication.offer(*[b"unpacked"], **{"reserved_value": 2})
    assert stream.receive(4) == [b"positional", b"keyword", b"both", b"unpacked"]
    for arguments, keywords in [((), {}), ((b"a", b"b"), {}), ((b"a",), {"wrong": 1}), ((b"a",), {"message": b"b"})]:
        with pytest.raises(TypeError):
            publication.offer(*arguments, **keywords)
    with pytest.raises(TypeError):
        aeron.ExclusivePublication.offer(stream.subscription, b"x")
    with pytest.raises(TypeError):
        aeron.Publication.offer(publication, b"x")
