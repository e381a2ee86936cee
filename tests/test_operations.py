"""Tests of `PendingOperation`, the class of all requests to the driver. A cancelled or dropped operation leaves no
resource.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import eventually

import aeron

CLIENT_HEARTBEAT = 11


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 30))


def adds(client: aeron.Aeron, stream_id: int) -> dict[str, Callable[[], aeron.PendingOperation[Any]]]:
    return {
        "publication": lambda: client.async_add_publication("aeron:ipc", stream_id),
        "exclusive publication": lambda: client.async_add_exclusive_publication("aeron:ipc", stream_id),
        "subscription": lambda: client.async_add_subscription("aeron:ipc", stream_id),
        "counter": lambda: client.async_add_counter(1001, "a counter"),
    }


def counters_of(client: aeron.Aeron) -> list[str]:
    """Returns the labels of the counters that belong to this client, except its heartbeat counter."""
    return [
        counter.label
        for counter in client.counters_reader
        if counter.owner_id == client.client_id and counter.type_id != CLIENT_HEARTBEAT
    ]


def logs(driver: aeron.MediaDriver) -> set[str]:
    return {path.name for path in (Path(driver.dir) / "publications").iterdir()}


@pytest.mark.parametrize("kind", adds(None, 0))  # type: ignore[arg-type]
def test_a_finished_operation_always_returns_the_same_object(client: aeron.Aeron, stream_id: int, kind: str) -> None:
    """03-78"""
    operation = adds(client, stream_id)[kind]()
    assert isinstance(operation, aeron.PendingOperation)
    assert operation.correlation_id > 0
    assert "pending" in repr(operation)
    eventually(operation.done)
    resource = operation.result()
    assert resource.registration_id == operation.correlation_id
    assert operation.result(0) is resource
    assert not operation.cancel(), "a finished operation was cancelled"
    assert not resource.is_closed
    assert "finished" in repr(operation)
    assert not client.is_command_active(operation.correlation_id)


def test_a_refused_operation_raises_its_error_each_time(client: aeron.Aeron, stream_id: int) -> None:
    operation = client.async_add_publication("aeron:foo", stream_id)
    for _ in range(2):
        with pytest.raises(aeron.InvalidChannelError):
            operation.result(5)
    assert operation.done()
    assert not operation.cancel()

    async def main() -> None:
        with pytest.raises(aeron.InvalidChannelError):
            await operation
        with pytest.raises(aeron.InvalidChannelError):
            await client.async_add_subscription("aeron:foo", stream_id)

    run(main())


def test_a_timeout_of_result_does_not_cancel_the_operation(stream_id: int) -> None:
    with (
        aeron.MediaDriver(threading_mode="INVOKER") as driver,
        _unserved(driver) as client,
    ):
        operation = client.async_add_publication("aeron:ipc", stream_id)
        start = time.monotonic()
        with pytest.raises(aeron.OperationTimeoutError, match=r"add_publication aeron:ipc stream \d+ is not finished"):
            operation.result(0.05)
        with pytest.raises(TimeoutError):
            operation.result(0)
        assert time.monotonic() - start < 5
        assert not operation.done()
        eventually(lambda: driver.do_work() >= 0 and operation.done())
        assert isinstance(operation.result(0), aeron.Publication)


def _unserved(driver: aeron.MediaDriver) -> aeron.Aeron:
    """Connects a client by the driver's directory. Such a client does not run the driver; only the test runs it."""
    connecting = aeron.async_connect(driver.dir)

    def is_connected() -> bool:
        driver.do_work()
        return connecting.done()

    eventually(is_connected)
    return connecting.result()


@pytest.mark.parametrize("kind", adds(None, 0))  # type: ignore[arg-type]
def test_operations_run_a_driver_and_its_client_without_threads(stream_id: int, kind: str) -> None:
    with aeron.MediaDriver(threading_mode="INVOKER") as driver, aeron.connect(driver) as client:
        first = adds(client, stream_id)[kind]()
        assert not first.result(5).is_closed
        second = adds(client, stream_id + 1)[kind]()
        eventually(second.done)

        async def main() -> None:
            assert not (await adds(client, stream_id + 2)[kind]()).is_closed

        run(main())


@pytest.mark.parametrize("how", ["cancelled", "dropped", "task cancelled before its first step", "task cancelled"])
@pytest.mark.parametrize("kind", adds(None, 0))  # type: ignore[arg-type]
def test_a_cancelled_operation_leaves_no_resource(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, kind: str, how: str
) -> None:
    assert client.add_counter(1001, "the client is known").close() is None
    eventually(lambda: not counters_of(client))
    before = logs(driver)
    add = adds(client, stream_id)[kind]

    async def cancel_tasks() -> None:
        tasks = [asyncio.ensure_future(add()) for _ in range(20)]
        if how == "task cancelled":
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        # With "task cancelled", the driver may have responded before the first step of a task. Then that step returns
        # the resource, and the task is not cancelled.
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert how == "task cancelled" or all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)

    if how == "cancelled":
        operations = [add() for _ in range(20)]
        assert all(operation.cancel() for operation in operations)
        for operation in operations:
            with pytest.raises(aeron.OperationCancelledError):
                operation.result()
    elif how == "dropped":
        for _ in range(20):
            add()
    else:
        run(cancel_tasks())
    gc.collect()
    eventually(lambda: not counters_of(client))
    # The driver may delete logs of other tests meanwhile, so fewer logs than before are allowed.
    eventually(lambda: logs(driver) <= before)
    eventually(lambda: not client.has_active_commands())


def test_cancelled_subscriptions_do_not_keep_a_publisher_connected(client: aeron.Aeron, stream_id: int) -> None:
    publication = client.add_publication("aeron:ipc", stream_id)

    async def main() -> None:
        tasks = [asyncio.ensure_future(client.async_add_subscription("aeron:ipc", stream_id)) for _ in range(10)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(main())
    eventually(lambda: not publication.is_connected)
    assert publication.offer(b"x") is aeron.NOT_CONNECTED


def test_a_shielded_operation_continues_after_its_task_is_cancelled(client: aeron.Aeron, stream_id: int) -> None:
    async def main() -> None:
        operation = client.async_add_publication("aeron:ipc", stream_id)
        task = asyncio.ensure_future(asyncio.shield(operation))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not (await operation).is_closed
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(never(), 0.01)

    async def never() -> None:
        await asyncio.sleep(10)

    run(main())


def test_gathered_operations_run_at_the_same_time(driver: aeron.MediaDriver, stream_id: int) -> None:
    async def main() -> None:
        async with aeron.async_connect(driver) as client:
            publication, exclusive, subscription, counter, session_id = await asyncio.gather(
                client.async_add_publication("aeron:ipc", stream_id),
                client.async_add_exclusive_publication("aeron:ipc", stream_id),
                client.async_add_subscription("aeron:ipc", stream_id),
                client.async_add_counter(1001, "async"),
                client.async_next_session_id(stream_id),
            )
            assert publication.session_id != exclusive.session_id
            assert subscription.stream_id == stream_id
            assert counter.label == "async"
            assert isinstance(session_id, int)
            static = await client.async_add_static_counter(1002, "static", stream_id)
            assert static.is_static
        assert client.is_closed
        with pytest.raises(aeron.ClientClosedError):
            client.async_add_publication("aeron:ipc", stream_id)

    run(main())


def test_async_with_closes_the_added_resource(client: aeron.Aeron, stream_id: int) -> None:
    async def main() -> None:
        async with client.async_add_publication("aeron:ipc", stream_id) as publication:
            assert not publication.is_closed
        assert publication.is_closed

    run(main())


def test_removals_return_whether_the_resource_existed_and_cannot_be_cancelled(
    client: aeron.Aeron, stream_id: int
) -> None:
    subscription = client.add_subscription("aeron:ipc", stream_id)
    removal = client.async_remove_subscription(subscription.registration_id)
    assert not removal.cancel()
    assert removal.result(5) is True
    assert subscription.is_closed
    assert client.async_remove_subscription(subscription.registration_id).result(5) is False
    assert client.async_remove_counter(12345).result(5) is False
    pending = client.async_add_publication("aeron:ipc", stream_id)
    assert client.async_remove_publication(pending.correlation_id).result(5) is True


def test_connecting_does_not_block_the_event_loop(tmp_path: Path) -> None:
    async def main() -> None:
        turns = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0.01)

        turning = asyncio.create_task(turn())
        with pytest.raises(aeron.DriverTimeoutError, match=r"cnc\.dat"):
            async with aeron.async_connect(tmp_path, driver_timeout_ms=500):
                pass
        turning.cancel()
        assert turns > 10
        operation = aeron.async_connect(tmp_path, driver_timeout_ms=500_000)
        assert not operation.done()
        assert operation.cancel()
        with pytest.raises(aeron.OperationCancelledError):
            await operation

    run(main())


def test_waiting_for_a_subscriber_and_during_back_pressure_does_not_block_the_event_loop(
    client: aeron.Aeron, stream_id: int
) -> None:
    async def main() -> None:
        publication = await client.async_add_exclusive_publication("aeron:ipc", stream_id)
        with pytest.raises(aeron.NotConnectedError):
            await publication.wait_connected_async(timeout=0.05)
        with pytest.raises(aeron.NotConnectedError):
            await publication.claim_async(8, timeout=0.05)
        waiting = asyncio.create_task(publication.wait_connected_async())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        subscription = await client.async_add_subscription("aeron:ipc", stream_id)
        await waiting
        await subscription.wait_connected_async(5)
        with await publication.claim_async(5, timeout=5) as view:
            view[:] = b"hello"
        assert (await anext(aiter(subscription))).to_list() == [b"hello"]
        while publication.offer(bytes(1000)) is not aeron.BACK_PRESSURED:
            pass
        with pytest.raises(aeron.BackPressureTimeoutError):
            await publication.claim_async(1000, timeout=0.05)
        claim = asyncio.create_task(publication.claim_async(1000))
        await asyncio.sleep(0.01)
        assert not claim.done()
        while not claim.done():
            subscription.poll(lambda *_: None, 100)
            await asyncio.sleep(0)
        claim.result().abort()
        publication.close()
        with pytest.raises(aeron.PublicationClosedError):
            await publication.wait_connected_async()

    run(main())


def test_waiting_for_an_unfinished_operation_in_a_handler_is_refused(driver: aeron.MediaDriver, stream_id: int) -> None:
    """03-77"""
    errors: list[Exception] = []
    pending: list[aeron.PendingOperation[aeron.Publication]] = []

    def on_image(_: aeron.Image) -> None:
        pending.append(client.async_add_publication("aeron:ipc", stream_id + 1))
        pending[0].result(5)

    with aeron.connect(driver, error_handler=errors.append) as client:
        _subscription = client.add_subscription("aeron:ipc", stream_id, on_available_image=on_image)
        _publication = client.add_publication("aeron:ipc", stream_id)
        eventually(lambda: errors or (pending and pending[0].done()))
        assert all(isinstance(error, aeron.ReentrantCallError) for error in errors)
        assert not pending[0].result(5).is_closed


def test_resources_keep_their_client_open(driver: aeron.MediaDriver, stream_id: int) -> None:
    publication = aeron.connect(driver).add_publication("aeron:ipc", stream_id)
    subscription = aeron.connect(driver).add_subscription("aeron:ipc", stream_id)
    counter = aeron.connect(driver).async_add_counter(1001, "kept").result(5)
    gc.collect()
    assert publication.publish(b"hello", timeout=5)
    assert not counter.is_closed
    got: list[bytes] = []
    eventually(lambda: subscription.poll(lambda payload, _: got.append(payload)) or got)
    assert got == [b"hello"]


def test_a_failed_operation_does_not_keep_its_client_alive(driver: aeron.MediaDriver, stream_id: int) -> None:
    def fail() -> weakref.ref[aeron.Aeron]:
        client = aeron.connect(driver)
        operation = client.async_add_publication("aeron:udp?endpoint=localhost:0", stream_id)
        with contextlib.suppress(aeron.RegistrationError):
            operation.result(5)
        return weakref.ref(client)

    client = fail()
    gc.collect()
    assert client() is None


def test_the_traceback_of_an_error_does_not_grow_if_the_error_is_raised_again(
    client: aeron.Aeron, stream_id: int
) -> None:
    operation = client.async_add_publication("aeron:udp?endpoint=localhost:0", stream_id)
    lengths = set()
    for _ in range(3):
        with pytest.raises(aeron.RegistrationError) as raised:
            operation.result(5)
        lengths.add(len(raised.traceback))
    assert len(lengths) == 1


def test_the_result_type_of_an_operation_can_be_named_in_an_annotation() -> None:
    assert "Publication" in repr(aeron.PendingOperation[aeron.Publication])


def test_several_threads_can_wait_for_one_operation(client: aeron.Aeron, stream_id: int) -> None:
    for number in range(20):
        operation = client.async_add_publication("aeron:ipc", stream_id + number)
        results: list[aeron.Publication] = []
        takers = [threading.Thread(target=lambda: results.append(operation.result(10))) for _ in range(8)]  # noqa: B023
        for taker in takers:
            taker.start()
        while any(taker.is_alive() for taker in takers):
            assert repr(operation)
            assert operation.correlation_id > 0
        assert len(results) == 8
        assert {id(result) for result in results} == {id(operation.result())}
