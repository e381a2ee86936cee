"""Waiting for the end of the program: SIGINT, SIGTERM, or a call."""

from __future__ import annotations

import contextlib
import signal
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, ClassVar

from aeron.exceptions import ArgumentTypeError

__all__ = ["ShutdownSignalBarrier"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class ShutdownSignalBarrier:
    """Wakes whoever waits for the program to end: ``with ShutdownSignalBarrier() as barrier: barrier.wait()``.

    While a barrier is open SIGINT and SIGTERM do not kill the process, they wake all barriers. Create and close it on
    the main thread, where Python handles signals; on another thread only :meth:`signal` and :meth:`signal_all` wake it.
    The other methods may be called from any thread.
    """

    _open: ClassVar[weakref.WeakSet[ShutdownSignalBarrier]] = weakref.WeakSet()
    _previous: ClassVar[dict[signal.Signals, Any]] = {}

    def __init__(self, handler: Callable[[], object] | None = None) -> None:
        """`handler` is called once, by whoever wakes the barrier."""
        # Popped by the first who wakes the barrier.
        if handler is not None and not callable(handler):
            raise ArgumentTypeError(f"handler={handler!r} is not callable: pass a function")
        self._pending = [handler]
        # Held until then. A bare lock, because a signal handler can release it wherever it interrupts wait(); an Event
        # would have it wait for a lock that the interrupted code holds.
        self._gate = threading.Lock()
        self._gate.acquire()
        self._open.add(self)
        if threading.current_thread() is threading.main_thread() and not self._previous:
            for number in _SIGNALS:
                self._previous[number] = signal.signal(number, self._on_signal)

    @classmethod
    def _on_signal(cls, _number: int, _frame: FrameType | None) -> None:
        cls.signal_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the barrier is woken, at most ``timeout`` seconds; answers whether it was."""
        if not self._gate.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
            return False
        self._gate.release()
        return True

    @property
    def is_signalled(self) -> bool:
        """Whether the barrier was woken."""
        return not self._pending

    def signal(self) -> None:
        """Wakes this barrier and calls its handler, the first time only."""
        try:
            handler = self._pending.pop()
        except IndexError:
            return
        self._gate.release()
        if handler is not None:
            handler()

    @classmethod
    def signal_all(cls) -> None:
        """Wakes all barriers of the process."""
        for barrier in list(cls._open):
            barrier.signal()

    def close(self) -> None:
        """Wakes the barrier and takes it back; with the last one signals have their former effect. Idempotent."""
        self.signal()
        self._open.discard(self)
        if not self._open:
            while self._previous:
                number, former = self._previous.popitem()
                # Not the main thread: the signals keep waking barriers, of which there are none.
                with contextlib.suppress(ValueError):
                    signal.signal(number, former)

    def __enter__(self) -> ShutdownSignalBarrier:
        """The barrier."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes."""
        self.close()
