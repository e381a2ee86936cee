"""Tests of errors. Each text names the wrong argument or object. Each class is an `AeronError` and a built-in
exception."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from tests.conftest import Stream, eventually

import aeron
from aeron import exceptions
from aeron.cli.file_messages import BadMessageError
from aeron.demo.trades import TradesError
from aeron.exceptions import registration_error
from aeron.spark import errors as spark_errors


class Idler(aeron.Agent):
    def do_work(self) -> int:
        return 0


def classes() -> list[type[Exception]]:
    found = [
        value for module in (exceptions, spark_errors) for value in vars(module).values() if inspect.isclass(value)
    ]
    ours = [kind for kind in found if issubclass(kind, Exception) and kind.__module__.startswith("aeron.")]
    return [*ours, BadMessageError, TradesError]


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_every_exception_derives_from_aeron_error_and_from_a_built_in_exception(kind: type[Exception]) -> None:
    assert issubclass(kind, aeron.AeronError)
    builtins = [base for base in kind.__mro__ if base.__module__ == "builtins"]
    if kind is not aeron.AeronError:
        assert builtins[0] is not Exception, "the class must derive from a more specific built-in class than Exception"
    assert str(kind("what happened")) == "what happened"


def test_an_argument_that_is_not_a_driver_is_refused_with_the_valid_types() -> None:
    with pytest.raises(TypeError, match="driver=5 is not a driver: pass a MediaDriver, its directory") as caught:
        aeron.connect(5)  # type: ignore[arg-type]
    assert isinstance(caught.value, aeron.AeronError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"threading_mode": "shard"},
            "threading_mode='shard' is not one of DEDICATED, SHARED_NETWORK, SHARED, INVOKER",
        ),
        (
            {"receiver_group_consideration": "yes"},
            "receiver_group_consideration='yes' is not one of infer, true, false",
        ),
        ({"mtu_length": "large"}, "mtu_length='large' is not a number from 32 to 65504"),
        ({"reliable_stream": "large"}, "reliable_stream='large' is not True or False"),
        ({"max_idle_park_ns": -1}, "max_idle_park_ns=-1 is not within 0 to"),
    ],
)
def test_the_error_for_an_invalid_setting_of_the_driver_shows_the_valid_values(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(aeron.AeronError, match=message):
        aeron.MediaDriver(**settings)


def test_the_error_for_a_number_out_of_range_names_the_parameter(stream: Stream) -> None:
    client, subscription, publication = stream.client, stream.subscription, stream.publication
    calls: list[tuple[str, Callable[[], object]]] = [
        ("fragment_limit=-1", lambda: subscription.poll(print, -1)),
        ("fragment_limit=-1", lambda: subscription.poll(print, fragment_limit=-1)),
        ("limit=-1", lambda: subscription.poll_batch(-1)),
        ("max_bytes=-2", lambda: subscription.batches(max_bytes=-2)),
        ("block_length_limit=-1", lambda: subscription.block_poll(print, -1)),
        ("index=-1", lambda: subscription.image_at_index(-1)),
        ("length=-1", lambda: publication.claim(-1)),
        ("start=-1", lambda: publication.offer_batch([b"x"], start=-1)),
        ("stream_id=1099511627776", lambda: client.add_subscription("aeron:ipc", 2**40)),
        ("type_id=4294967296", lambda: client.add_counter(2**32, "x")),
        ("driver_timeout_ms=-1", lambda: aeron.connect(driver_timeout_ms=-1)),
        ("max_spins=-1", lambda: aeron.BackoffIdleStrategy(max_spins=-1)),
    ]
    for message, call in calls:
        with pytest.raises(OverflowError, match=rf"^{message} is not within ") as caught:
            call()
        assert isinstance(caught.value, aeron.AeronError)
        assert isinstance(caught.value, ValueError)
    with pytest.raises(TypeError, match=r"^stream_id='1' is not an integer"):
        client.add_publication("aeron:ipc", "1")  # type: ignore[arg-type]


def test_a_handler_that_is_not_callable_is_refused_immediately(driver: aeron.MediaDriver, stream: Stream) -> None:
    client, subscription = stream.client, stream.subscription
    image = subscription.images[0]
    wrong: Any = 5
    calls: list[tuple[str, Callable[[], object]]] = [
        (name, lambda name=name: aeron.connect(driver, **{name: wrong}))  # type: ignore[misc]
        for name in (
            "error_handler",
            "on_available_image",
            "on_unavailable_image",
            "on_available_counter",
            "on_unavailable_counter",
            "on_close",
            "on_publication_error",
        )
    ]
    calls += [
        ("on_available_image", lambda: client.add_subscription("aeron:ipc", 1, on_available_image=wrong)),
        ("on_unavailable_image", lambda: client.async_add_subscription("aeron:ipc", 1, on_unavailable_image=wrong)),
        ("handler", lambda: client.add_close_handler(wrong)),
        ("handler", lambda: client.add_available_counter_handler(wrong)),
        ("handler", lambda: client.add_unavailable_counter_handler(wrong)),
        ("handler", lambda: aeron.FragmentAssembler(wrong)),
        ("handler", lambda: subscription.poll(wrong)),
        ("handler", lambda: subscription.controlled_poll(wrong)),
        ("handler", lambda: subscription.block_poll(wrong, 1000)),
        ("handler", lambda: subscription.raw_poll(wrong, 1000)),
        ("handler", lambda: image.poll(wrong)),
        ("handler", lambda: image.bounded_poll(wrong, 1000)),
        ("handler", lambda: image.block_poll(wrong, 1000)),
        ("handler", lambda: image.raw_poll(wrong, 1000)),
        ("error_handler", lambda: aeron.AgentInvoker(Idler(), error_handler=wrong)),
        ("handler", lambda: aeron.ShutdownSignalBarrier(wrong)),
    ]
    for name, call in calls:
        with pytest.raises(TypeError, match=rf"^{name}=5 is not callable: pass a function"):
            call()


@pytest.mark.parametrize("port", ["99999", "-1", "abc", ""])
@pytest.mark.parametrize("key", ["endpoint", "control"])
def test_a_channel_with_an_invalid_port_raises_the_error_for_invalid_channels(
    client: aeron.Aeron, key: str, port: str
) -> None:
    mode = "|control-mode=dynamic" if key == "control" else ""
    channel = f"aeron:udp?{key}=localhost:{port}{mode}"
    for add in (client.add_publication, client.add_exclusive_publication, client.add_subscription):
        with pytest.raises(aeron.InvalidChannelError, match="port") as caught:
            add(channel, 1)
        assert caught.value.code == 11, "the exception does not have the code of the driver's response"
    with pytest.raises(aeron.InvalidChannelError, match="port"):
        aeron.ChannelUriBuilder("udp", **{key: f"localhost:{port}"})
    with pytest.raises(aeron.InvalidChannelError, match="port"):
        aeron.ChannelUriBuilder("udp", **{key: f"[::1]:{port}"})
    aeron.ChannelUriBuilder("udp", endpoint="[::1]:40123", control="a-name").validate()


def test_code_11_with_an_unknown_text_is_a_generic_driver_error_and_an_unknown_code_is_a_registration_error() -> None:
    assert type(registration_error(11, "no available ports in range 1 2")) is aeron.GenericDriverError
    assert type(registration_error(99, "new")) is aeron.RegistrationError


def test_errors_of_a_closed_counter_and_a_closed_image_name_the_object(stream: Stream) -> None:
    counter = stream.client.add_counter(1001, "a counter")
    counter.close()
    with pytest.raises(aeron.CounterClosedError, match=f"counter {counter.id} .* is closed"):
        counter.increment()
    image = stream.subscription.images[0]
    stream.publication.close()
    eventually(lambda: image.is_closed)
    with pytest.raises(aeron.ImageClosedError, match=f"image of session {image.session_id} from aeron:ipc is closed"):
        image.reject("too late")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: aeron.RandomLoss(rate=0.5, seed=-1), "seed=-1 is not within 0 to 18446744073709551615"),
        (lambda: aeron.RandomLoss(rate=0.5, seed=2**64), "seed=18446744073709551616 is not within"),
        (lambda: aeron.RandomLoss(rate=0.5, frame_types=[64]), "frame_types=64 is not within 0 to 63"),
        (lambda: aeron.RandomLoss(rate=1.5), "a loss rate of 1.5 is not within 0 and 1"),
        (lambda: aeron.FixedLoss(2**31, 0, 1), "term_id=2147483648 is not within"),
        (lambda: aeron.FixedLoss(0, -1, 1), "term_offset=-1 is not within 0 to"),
        (lambda: aeron.FixedLoss(0, 0, -1), "length=-1 is not within"),
        (lambda: aeron.MultiGapLoss(2**31, 1, 1, 1), "term_id=2147483648 is not within"),
        (lambda: aeron.MultiGapLoss(0, -1, 1, 1), "gap_radix=-1 is not within"),
        (lambda: aeron.MultiGapLoss(0, 1, -1, 1), "gap_length=-1 is not within"),
        (lambda: aeron.MultiGapLoss(0, 1, 1, -1), "total_gaps=-1 is not within"),
    ],
)
def test_a_loss_that_the_driver_would_ignore_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
