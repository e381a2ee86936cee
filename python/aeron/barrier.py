"""Waits for the end of the program: for SIGINT, SIGTERM, or a call."""

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
    """Blocks until the program must end: until SIGINT, SIGTERM, or a call of `signal`.

    While a barrier is open, SIGINT and SIGTERM do not end the process; they wake all barriers. Create and close the
    barrier on the main thread, because Python handles signals there. If all barriers were created on other threads,
    only `signal` and `signal_all` wake them. All other methods are thread-safe. The end of a ``with`` block closes
    the barrier.

    Args:
        handler: Called once, without arguments, when the barrier is woken.

    Raises:
        ArgumentTypeError: If ``handler`` is not callable.

    Example:
        ```python
        with aeron.ShutdownSignalBarrier() as barrier:
            barrier.wait()
        ```
    """

    _open: ClassVar[weakref.WeakSet[ShutdownSignalBarrier]] = weakref.WeakSet()
    _previous: ClassVar[dict[signal.Signals, Any]] = {}

    def __init__(self, handler: Callable[[], object] | None = None) -> None:
        """Creates an open barrier."""
        if handler is not None and not callable(handler):
            raise ArgumentTypeError(f"handler={handler!r} is not callable: pass a function")
        # The call that wakes the barrier pops the handler, so the handler is called once.
        self._pending = [handler]
        # Held until the barrier is woken. It is a plain lock, because a signal handler can release it at any point of
        # wait(). With an Event the handler would wait for a lock that the interrupted code holds.
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
        """Waits until the barrier is woken.

        Args:
            timeout: Seconds to wait. ``None`` waits without a limit.

        Returns:
            ``True`` if the barrier was woken.
        """
        if not self._gate.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
            return False
        self._gate.release()
        return True

    @property
    def is_signalled(self) -> bool:
        """Whether the barrier was woken."""
        return not self._pending

    def signal(self) -> None:
        """Wakes this barrier and calls its handler. Further calls do nothing."""
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
        """Wakes and closes the barrier. After the close of the last barrier, signals have their former effect.
        Idempotent.

        If the last barrier is closed on another thread than the main thread, SIGINT and SIGTERM have no effect after
        that.
        """
        self.signal()
        self._open.discard(self)
        if not self._open:
            while self._previous:
                number, former = self._previous.popitem()
                # On another thread the signal handlers stay installed. They do nothing, because no barrier is open.
                with contextlib.suppress(ValueError):
                    signal.signal(number, former)

    def __enter__(self) -> ShutdownSignalBarrier:
        """Returns the barrier."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the barrier."""
        self.close()


# Users import the class from `aeron`, so reprs and pickles name that module.
ShutdownSignalBarrier.__module__ = "aeron"
