"""Tests of the handlers of a client: which objects handlers keep alive, and when the client releases its handlers."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from typing import Any

import pytest
from tests.conftest import Stream, eventually

import aeron


class Owner:
    """An object that owns a client. Methods of the object are handlers of the client."""

    def __init__(self, driver: aeron.MediaDriver, stream_id: int, where: str) -> None:
        self.calls: list[str] = []
        on_client = {name: getattr(self, name) for name in HANDLERS} if where == "client" else {}
        self.client = aeron.connect(driver, **on_client)
        if where == "added":
            self.client.add_close_handler(self.on_close)
            self.client.add_available_counter_handler(self.on_available_counter)
            self.client.add_unavailable_counter_handler(self.on_unavailable_counter)
        images = {"on_available_image": self.on_available_image} if where == "subscription" else {}
        self.subscription = self.client.add_subscription("aeron:ipc", stream_id, **images)
        self.batches = self.subscription.batches()
        if where == "pending":
            self.pending = self.client.async_add_subscription(
                "aeron:ipc", stream_id, on_available_image=self.on_available_image
            )

    def error_handler(self, error: Exception) -> None:
        self.calls.append(repr(error))

    def on_available_image(self, _: aeron.Image) -> None:
        self.calls.append("available image")

    def on_unavailable_image(self, _: aeron.Image) -> None:
        self.calls.append("unavailable image")

    def on_available_counter(self, *_: object) -> None:
        self.calls.append("available counter")

    def on_unavailable_counter(self, *_: object) -> None:
        self.calls.append("unavailable counter")

    def on_close(self) -> None:
        self.calls.append("close")

    def on_publication_error(self, _: object) -> None:
        self.calls.append("publication error")


HANDLERS = [name for name in vars(Owner) if name.startswith(("on_", "error_"))]


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("where", ["client", "added", "subscription", "pending"])
def test_handlers_that_are_methods_of_the_clients_owner_do_not_keep_the_owner_alive(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, where: str, is_closed: bool
) -> None:
    owner = Owner(driver, stream_id, where)
    client_id = owner.client.client_id
    if is_closed:
        owner.client.close()
    references = weakref.ref(owner), weakref.ref(owner.client), weakref.ref(owner.subscription)
    del owner
    gc.collect()
    assert [reference() for reference in references] == [None] * 3
    heartbeats = lambda: [c for c in client.counters_reader if c.type_id == 11 and c.registration_id == client_id]  # noqa: E731
    eventually(lambda: not heartbeats())


def test_closing_releases_handlers_without_the_garbage_collector(driver: aeron.MediaDriver, stream_id: int) -> None:
    class Callback:
        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, *_: object) -> None:
            self.calls += 1

    gc.disable()
    try:
        handlers = {name: Callback() for name in HANDLERS}
        references = [weakref.ref(handler) for handler in handlers.values()]
        client = aeron.connect(driver, **handlers)  # type: ignore[arg-type]
        on_image = Callback()
        of_image = weakref.ref(on_image)
        subscription = client.add_subscription("aeron:ipc", stream_id, on_unavailable_image=on_image)
        _publication = client.add_publication("aeron:ipc", stream_id)
        subscription.wait_connected(5)
        del handlers
        subscription.close()
        eventually(lambda callback=on_image: callback.calls == 1)
        del on_image
        eventually(lambda: of_image() is None)
        assert all(reference() is not None for reference in references)
        client.close()
        assert [reference() for reference in references] == [None] * len(references)
    finally:
        gc.enable()


def test_a_publication_keeps_the_handlers_of_its_client_alive(driver: aeron.MediaDriver, stream_id: int) -> None:
    owner = Owner(driver, stream_id, "client")
    calls, publication = owner.calls, owner.client.add_publication("aeron:ipc", stream_id + 1)
    del owner
    gc.collect()
    with aeron.connect(driver) as other:
        counter = other.add_counter(1001, "seen")
        eventually(lambda: "available counter" in calls)
        counter.close()
    assert not publication.is_closed


class Cycle:
    """An object that refers to itself, so that only the garbage collector can free it."""

    def __init__(self, operation: aeron.PendingOperation[Any]) -> None:
        self.operation = operation
        self.itself = self


def test_collecting_an_operation_does_not_clear_the_handler_that_it_added(client: aeron.Aeron, stream_id: int) -> None:
    def on_image(_: aeron.Image, answer: str = "whole") -> str:
        return answer

    operation = client.async_add_subscription("aeron:ipc", stream_id, on_available_image=on_image)
    operation.result(5)
    Cycle(operation)
    del operation
    gc.collect()
    assert on_image.__defaults__ == ("whole",), "the collector must not clear a function that the subscription uses"


@pytest.mark.parametrize("what", ["subscription", "client"])
def test_handlers_are_called_after_the_operation_that_added_them_is_collected(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, what: str
) -> None:
    calls: list[aeron.Image] = []
    pending: aeron.PendingOperation[Any]
    if what == "client":
        pending = aeron.async_connect(driver, on_available_image=calls.append)
        subscription = pending.result(5).add_subscription("aeron:ipc", stream_id)
    else:
        pending = client.async_add_subscription("aeron:ipc", stream_id, on_available_image=calls.append)
        subscription = pending.result(5)
    Cycle(pending)
    del pending
    gc.collect()
    _publication = client.add_publication("aeron:ipc", stream_id)
    eventually(lambda: calls)
    subscription.close()


def test_the_dispatcher_thread_has_a_name(driver: aeron.MediaDriver, stream_id: int) -> None:
    names: list[str] = []
    with aeron.connect(driver, on_available_image=lambda _: names.append(threading.current_thread().name)) as client:
        _open = client.add_subscription("aeron:ipc", stream_id), client.add_publication("aeron:ipc", stream_id)
        eventually(lambda: names)
    assert names == ["aeron-dispatcher"]


@pytest.mark.parametrize("kind", ["publication", "exclusive_publication", "subscription", "counter"])
def test_a_handler_can_add_resources_without_waiting(driver: aeron.MediaDriver, stream_id: int, kind: str) -> None:
    added: list[aeron.PendingOperation[object]] = []

    def on_image(_: aeron.Image) -> None:
        arguments: tuple[object, ...] = (1001, "inside") if kind == "counter" else ("aeron:ipc", stream_id + 1)
        added.append(getattr(client, f"async_add_{kind}")(*arguments))

    with aeron.connect(driver) as client:
        _open = (
            client.add_subscription("aeron:ipc", stream_id, on_available_image=on_image),
            client.add_publication("aeron:ipc", stream_id),
        )
        eventually(lambda: added)
        assert added[0].result(5) is not None


def test_open_objects_support_weak_references(driver: aeron.MediaDriver, stream: Stream) -> None:
    things = [
        driver,
        stream.client,
        stream.publication,
        stream.client.add_publication("aeron:ipc", stream.stream_id),
        stream.subscription,
        stream.subscription.images[0],
        stream.client.add_counter(1001, "weak"),
        stream.client.async_next_session_id(1),
    ]
    for thing in things:
        assert weakref.ref(thing)() is thing


def test_channels_and_enums_can_be_pickled() -> None:
    def again(thing: Any) -> Any:
        return pickle.loads(pickle.dumps(thing))

    for action in (aeron.Action.ABORT, aeron.Action.BREAK, aeron.Action.COMMIT, aeron.Action.CONTINUE):
        assert again(action) is action
    assert again(aeron.ChannelStatus.ACTIVE) is aeron.ChannelStatus.ACTIVE
    for channel in (
        aeron.ChannelUriBuilder("udp", endpoint="localhost:40123", term_length=65536, alias="a b"),
        aeron.ChannelUriBuilder("udp", spy=True, endpoint="localhost:40123"),
        aeron.ChannelUriBuilder(),
        aeron.ChannelUriBuilder("udp"),
        aeron.ChannelUriBuilder("ipc", spy=True, alias="a=b"),
    ):
        assert str(again(channel)) == str(channel)


def test_the_repr_of_an_object_has_its_class_and_state(stream: Stream) -> None:
    assert "CountersReader of" in repr(stream.client.counters_reader)
    assert f"4096 messages of <Subscription aeron:ipc stream {stream.stream_id}" in repr(stream.subscription.batches())
    assert "FragmentAssembler for <built-in function print>" in repr(aeron.FragmentAssembler(print))
    shown: list[Any] = []
    stream.publication.publish(b"x")
    eventually(lambda: stream.subscription.poll(lambda _, header: shown.extend([header, repr(header)])) or shown)
    assert f"Header of session {stream.publication.session_id} stream {stream.stream_id}, position 64" in shown[1]
    assert "valid in its handler only" in repr(shown[0])


def test_the_repr_of_a_receivers_error_has_the_reason(driver: aeron.MediaDriver, stream_id: int) -> None:
    errors: list[aeron.PublicationErrorFrame] = []
    with aeron.connect(driver, on_publication_error=errors.append) as client:
        publication = client.add_publication("aeron:ipc", stream_id)
        subscription = client.add_subscription("aeron:ipc", stream_id)
        subscription.wait_connected(5)
        subscription.images[0].reject("too old")
        eventually(lambda: errors)
        assert repr(errors[0]).startswith(
            f'<PublicationErrorFrame code 13 "too old", session {publication.session_id} '
        )
