"""asyncio: waits for changes of shared memory, without a busy loop.

A change of shared memory wakes no thread, so a wait must check its condition repeatedly. A wait for batches first spins
for up to 300 us, if recent spins were short. So a response that arrives soon does not need a pass of the event loop.
After that, one timer checks the conditions of all waits of the event loop. The timer's interval is a quarter of the
time waited so far, but at least 20 us and at most 1 ms. After a second without any change the loop sleeps. A native
thread then checks the conditions every 10 ms, because a check by the native thread costs less than a check by the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from aeron import _aeron
from aeron.exceptions import AeronError
from aeron.results import NotSent

if TYPE_CHECKING:
    from aeron._aeron import (
        Aeron,
        Batch,
        BufferClaim,
        ExclusivePublication,
        PendingOperation,
        PersistentSubscription,
        Publication,
        RecordedPublisher,
        Subscription,
    )

T = TypeVar("T")


class Closable(Protocol):
    """A resource that ``async with`` closes."""

    def close(self) -> None:
        """Closes the resource."""


Entered = TypeVar("Entered", bound=Closable)

_MIN_PARK_NS = 20_000
_MAX_PARK_NS = 1_000_000
_IDLE_PARK_NS = 10_000_000
_IDLE_AFTER_NS = 1_000_000_000

_SPIN_NS = 300_000
# A spin that ends within this time counts as short: waking the event loop would have taken about as long.
_SHORT_SPIN_NS = 60_000
# After a short spin, the next eight waits may spin, even if those spins are long. After eight long spins, the iterator
# waits 32 times without a spin, and then tries two spins.
_SPINS_AFTER_SUCCESS = 8
_SPINS_ON_TRIAL = 2
_WAITS_WITHOUT_SPIN = 32
# If an iterator always finds messages, it lets other tasks of the event loop run after this time.
_TURN_NS = 500_000


class _LoopTimer:
    """A timer of the event loop, for systems without timer files. Its resolution is a millisecond."""

    def __init__(self, loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
        self._loop = weakref.ref(loop)
        self._call = call
        self._handle: asyncio.TimerHandle | None = None

    def set(self, after_ns: int) -> None:
        self.clear()
        if (loop := self._loop()) is not None:
            self._handle = loop.call_later(after_ns / 1e9, self._call)

    def watch(self, _conditions: list[_aeron._Condition], interval_ns: int) -> None:
        self.set(interval_ns)

    def clear(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


def _timer(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> _aeron._Timer | _LoopTimer:
    if not hasattr(_aeron, "_Timer"):
        return _LoopTimer(loop, call)
    timer = _aeron._Timer()
    loop.add_reader(timer.fileno(), call)
    return timer


class _Looker:
    """Checks the conditions of all waits of an event loop, with one timer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._waits: dict[asyncio.Future[None], Callable[[], bool]] = {}
        self._timer = _timer(loop, self._look)
        self._idle_since_ns = 0

    async def wait(self, is_over: Callable[[], bool]) -> None:
        """Returns when `is_over` returns true or raises. The caller then takes the result, or gets the exception."""
        over = asyncio.get_running_loop().create_future()
        self._waits[over] = is_over
        self._start_over()
        try:
            await over
        finally:
            self._waits.pop(over, None)
            if not self._waits:
                self._timer.clear()

    def _start_over(self) -> None:
        self._idle_since_ns = time.monotonic_ns()
        self._timer.set(_MIN_PARK_NS)

    def _look(self) -> None:
        over = [wait for wait, is_over in self._waits.items() if self._is_over(is_over)]
        for wait in over:
            del self._waits[wait]
            if not wait.done():
                wait.set_result(None)
        if not self._waits:
            self._timer.clear()
        elif over:
            self._start_over()
        else:
            self._park(time.monotonic_ns() - self._idle_since_ns)

    def _park(self, waited_ns: int) -> None:
        if waited_ns < _IDLE_AFTER_NS:
            self._timer.set(min(max(waited_ns // 4, _MIN_PARK_NS), _MAX_PARK_NS))
            return
        conditions = [is_over for is_over in self._waits.values() if isinstance(is_over, _aeron._Condition)]
        if len(conditions) == len(self._waits):
            self._timer.watch(conditions, _IDLE_PARK_NS)
        else:
            self._timer.set(_IDLE_PARK_NS)

    @staticmethod
    def _is_over(is_over: Callable[[], bool]) -> bool:
        try:
            return is_over()
        except Exception:
            # The wait ends, and the caller gets the same exception when it takes the result.
            return True


def check_loop() -> asyncio.AbstractEventLoop:
    """Returns the running event loop of asyncio.

    Raises:
        RuntimeError: No event loop of asyncio runs in this thread, for example because trio runs.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "no event loop of asyncio runs here, and aeron's coroutines need one: with trio or anyio, call the method "
            "without async in a thread, as in anyio.to_thread.run_sync; see the page 'trio, anyio and gevent'"
        ) from None


_lookers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Looker] = weakref.WeakKeyDictionary()


def _looker() -> _Looker:
    loop = check_loop()
    looker = _lookers.get(loop)
    if looker is None:
        looker = _lookers[loop] = _Looker(loop)
    return looker


class _Spin:
    """Decides whether a wait spins before it sleeps. A wait spins only if recent spins were short.

    So two peers that reply to each other without delay never sleep. If one of them slows down, the other stops
    spinning.
    """

    def __init__(self) -> None:
        self._left = _SPINS_ON_TRIAL
        self._waits = 0

    def length_ns(self) -> int:
        if self._left > 0:
            return _SPIN_NS
        self._waits += 1
        if self._waits == _WAITS_WITHOUT_SPIN:
            self._waits, self._left = 0, _SPINS_ON_TRIAL
        return 0

    def took(self, spun_ns: int) -> None:
        if spun_ns < _SHORT_SPIN_NS:
            self._left = _SPINS_AFTER_SUCCESS
        else:
            self._left -= 1


class AsyncBatches:
    """An asynchronous iterator over batches, which `batches_async` returns. One task at a time may use it.

    The iterator ends if the program closes the subscription, or if the replay of an archive is complete. If a wait is
    cancelled, for instance by ``asyncio.wait_for``, no message is lost and the iterator does not end. Not thread-safe.

    Args:
        subscription: The subscription.
        limit: Maximum number of messages in a batch.
        max_bytes: Payload length, in bytes, at which a batch is full. The last message may end beyond it.

    Raises:
        SubscriptionClosedError: If the driver or the client ended.
        ArchiveError: If the replay of an archive ended before it was complete.
        PersistentSubscriptionError: If the persistent subscription has failed.
        ReentrantCallError: If another poll of the subscription is under way.
    """

    def __init__(self, subscription: Subscription | PersistentSubscription, limit: int, max_bytes: int) -> None:
        """Creates an iterator over the batches of a subscription."""
        self._subscription = subscription
        self._limits = limit, max_bytes
        self._spin = _Spin()
        self._is_ready = subscription._is_ready
        self._turned_ns = time.monotonic_ns()
        self._is_closed = False
        # The iterator may be created before the event loop runs.
        self._has_loop = False

    def __aiter__(self) -> AsyncBatches:
        """Returns the iterator itself."""
        return self

    async def __anext__(self) -> Batch:
        """Waits for the next batch. Raises ``RuntimeError`` without an event loop of asyncio."""
        if not self._has_loop:
            check_loop()
            self._has_loop = True
        if time.monotonic_ns() - self._turned_ns > _TURN_NS:
            await asyncio.sleep(0)
            self._turned_ns = time.monotonic_ns()
        while not self._is_closed:
            spin_ns, start_ns = self._spin.length_ns(), time.monotonic_ns()
            batch = self._subscription._look(*self._limits, spin_ns)
            if spin_ns:
                self._spin.took(time.monotonic_ns() - start_ns)
            if batch is not None:
                return batch
            if self._subscription._is_over:
                break
            await _looker().wait(self._is_ready)
            self._turned_ns = time.monotonic_ns()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Ends the iterator. The subscription stays open."""
        self._is_closed = True

    def __reduce__(self) -> str:
        """Refuses to be pickled, as the subscription does."""
        raise TypeError("cannot pickle 'aeron.AsyncBatches' object")

    def __repr__(self) -> str:
        """Returns the subscription and the limit as text."""
        return f"<AsyncBatches of up to {self._limits[0]} messages of {self._subscription!r}>"


# Users import the class from `aeron`, not from this module.
AsyncBatches.__module__ = "aeron"


async def offer(publication: Publication | ExclusivePublication | RecordedPublisher, message: Any) -> int:
    """Offers the message until it is sent, and returns the stream position after it."""
    check_loop()
    while not (position := publication.offer(message)):
        await _looker().wait(publication._is_ready)
    return position


async def offer_batch(
    publication: Publication | ExclusivePublication | RecordedPublisher,
    messages: Any,
    offsets: Any = None,
    start: int = 0,
) -> int:
    """Offers all messages from index `start` on, and returns their number.

    If the wait is cancelled or an offer fails, the attribute `sent` of the exception is the number of messages that
    were sent. Resume at ``start + error.sent``.
    """
    check_loop()
    if isinstance(offsets, Iterator):
        offsets = list(offsets)
    try:
        count = (len(messages) if offsets is None else len(offsets) - 1) - start
    except TypeError:
        # An object without a length is not a batch. This call raises an error that names the parameter.
        publication.offer_batch(messages, offsets=offsets, start=start)
        raise
    sent = 0
    try:
        while (sent := sent + publication.offer_batch(messages, offsets=offsets, start=start + sent)) < count:
            await _looker().wait(publication._is_ready)
    except BaseException as error:
        error.sent = sent  # type: ignore[attr-defined]
        error.add_note(f"{sent} of {count} messages were sent")
        raise
    return sent


async def finished(operation: PendingOperation[T]) -> T:
    """Implements ``await operation``: waits for the result. If the task is cancelled, the operation is cancelled.
    Without an event loop, the operation is cancelled too, or its result is closed."""
    try:
        check_loop()
    except RuntimeError:
        if not operation.cancel() and operation.done():
            with contextlib.suppress(AeronError):
                close = getattr(operation.result(0), "close", None)
                if close is not None:
                    close()
        raise
    try:
        if not operation.done():
            await _looker().wait(operation._is_done)
    except asyncio.CancelledError:
        operation.cancel()
        raise
    return operation.result(0)


async def connected(stream: Publication | ExclusivePublication | Subscription, timeout_s: float | None) -> None:
    """Waits for a peer. If none connects before the timeout, `wait_connected` raises the error."""
    check_loop()
    if not stream._is_connected_or_closed():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await _looker().wait(stream._is_connected_or_closed)
    stream.wait_connected(0)


async def claim(
    publication: Publication | ExclusivePublication, length: int, timeout_s: float | None, direct: bool
) -> BufferClaim:
    """Claims a frame as soon as there is room. If there is no room before the timeout, `publication.claim` raises the
    error."""
    check_loop()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            while True:
                claimed = publication.try_claim(length, direct=direct)
                if not isinstance(claimed, NotSent):
                    return claimed
                await _looker().wait(publication._is_ready)
    return publication.claim(length, 0, direct=direct)


async def flushed(publisher: RecordedPublisher, timeout_s: float | None) -> bool:
    """Waits until all messages are recorded, and returns whether they are. `flush` raises the errors and runs the
    handlers."""
    check_loop()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            while not publisher.flush(0):
                await _looker().wait(publisher._is_flushed)
    return publisher.flush(0)


async def enter(resource: Entered) -> Entered:
    """Implements the start of ``async with``: the resource is already open. Without an event loop, closes it."""
    try:
        check_loop()
    except RuntimeError:
        resource.close()
        raise
    return resource


async def leave_recorded(
    publisher: RecordedPublisher,
    kind: object,
    error: BaseException | None,
    traceback: object,
) -> None:
    """Closes the publisher on another thread, because the close waits for the archive."""
    await asyncio.get_running_loop().run_in_executor(None, publisher.__exit__, kind, error, traceback)


async def leave(resource: Aeron | Closable) -> None:
    """Closes the resource on another thread, because the close may wait for a handler that runs for a long time."""
    await asyncio.get_running_loop().run_in_executor(None, resource.close)
