"""asyncio: waiting for what happens in shared memory, without a busy loop.

Shared memory wakes nobody, so whoever waits has to look. A wait first looks for some microseconds right where it is, as
long as that has paid off lately: an answer that is on its way costs no turn of the event loop. Then the loop looks, on
a timer that all waits of the loop share: each time after a quarter of what was waited so far, from 20 us to 1 ms. One
wake serves everything that has arrived by then. After a second without anything the loop sleeps, and a native thread,
whose looks are cheaper, looks for it every 10 ms.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from aeron import _aeron
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
        Subscription,
    )

T = TypeVar("T")


class Closable(Protocol):
    """A resource that ``async with`` closes."""

    def close(self) -> None:
        """Closes it."""


_MIN_PARK_NS = 20_000
_MAX_PARK_NS = 1_000_000
_IDLE_PARK_NS = 10_000_000
_IDLE_AFTER_NS = 1_000_000_000

_SPIN_NS = 300_000
# A spin that ended sooner than this has paid off: waking up would have taken about as long.
_SHORT_SPIN_NS = 60_000
# After a spin that paid off so many may fail to; after that there are none for a while, and then two on trial.
_SPINS_AFTER_SUCCESS = 8
_SPINS_ON_TRIAL = 2
_WAITS_WITHOUT_SPIN = 32
# What always finds something would never let the loop turn: it does so after this long.
_TURN_NS = 500_000


class _LoopTimer:
    """The loop's own timer, where the system has none that is a file. Its resolution is a millisecond."""

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
    """Looks for everything that a loop waits for, on one timer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._waits: dict[asyncio.Future[None], Callable[[], bool]] = {}
        self._timer = _timer(loop, self._look)
        self._idle_since_ns = 0

    async def wait(self, is_over: Callable[[], bool]) -> None:
        """Returns once `is_over` answers true or raises; what is there then is the caller's to take."""
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
            # The caller meets it again when it takes what is there.
            return True


_lookers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Looker] = weakref.WeakKeyDictionary()


def _looker() -> _Looker:
    loop = asyncio.get_running_loop()
    looker = _lookers.get(loop)
    if looker is None:
        looker = _lookers[loop] = _Looker(loop)
    return looker


class _Spin:
    """Decides whether to look for a while before waiting: only as long as that finds something soon.

    Two peers that answer each other find into their fast form by it, in which neither ever sleeps, and out of it.
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
    """Batches of what arrives, for ``async for``: ends if the owner closes the subscription, raises if it died.

    A cancelled wait, such as one that ``asyncio.wait_for`` gave up, loses no message and does not end the iterator.
    """

    def __init__(self, subscription: Subscription | PersistentSubscription, limit: int, max_bytes: int) -> None:
        """`limit` messages of a batch at most, none begun after `max_bytes`."""
        self._subscription = subscription
        self._limits = limit, max_bytes
        self._spin = _Spin()
        self._is_ready = subscription._is_ready
        self._turned_ns = time.monotonic_ns()
        self._is_closed = False

    def __aiter__(self) -> AsyncBatches:
        """Itself."""
        return self

    async def __anext__(self) -> Batch:
        """Waits for the next batch."""
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
        """Ends the iterator; the subscription stays open."""
        self._is_closed = True

    def __repr__(self) -> str:
        """The subscription and the limit."""
        return f"<AsyncBatches of up to {self._limits[0]} messages of {self._subscription!r}>"


async def offer(publication: Publication | ExclusivePublication, message: Any) -> int:
    """Offers until it is sent; answers the position."""
    while not (position := publication.offer(message)):
        await _looker().wait(publication._is_ready)
    return position


async def offer_batch(
    publication: Publication | ExclusivePublication, messages: Any, offsets: Any = None, start: int = 0
) -> int:
    """Offers all messages from index `start` on; returns how many there were.

    If the wait is cancelled or an offer fails, the attribute `sent` of the exception says how many were sent.
    Resume at ``start + error.sent``.
    """
    if isinstance(offsets, Iterator):
        offsets = list(offsets)
    try:
        count = (len(messages) if offsets is None else len(offsets) - 1) - start
    except TypeError:
        # Something without a length is no batch: this raises an error that names the parameter.
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
    """Runs ``await operation``: waits for the result. Cancelling it cancels the operation."""
    try:
        if not operation.done():
            await _looker().wait(operation._is_done)
    except asyncio.CancelledError:
        operation.cancel()
        raise
    return operation.result(0)


async def connected(stream: Publication | ExclusivePublication | Subscription, timeout_s: float | None) -> None:
    """Waits for a peer; what is missing then, `wait_connected` says."""
    if not stream._is_connected_or_closed():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await _looker().wait(stream._is_connected_or_closed)
    stream.wait_connected(0)


async def claim(
    publication: Publication | ExclusivePublication, length: int, timeout_s: float | None, direct: bool
) -> BufferClaim:
    """Claims as soon as there is room; what is missing when the time is up, `claim` says."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            while True:
                claimed = publication.try_claim(length, direct=direct)
                if not isinstance(claimed, NotSent):
                    return claimed
                await _looker().wait(publication._is_ready)
    return publication.claim(length, 0, direct=direct)


async def enter(client: Aeron) -> Aeron:
    """``async with``."""
    return client


async def leave(resource: Aeron | Closable) -> None:
    """Closes without blocking the loop: handlers of a client that are due may take their time."""
    await asyncio.get_running_loop().run_in_executor(None, resource.close)
