"""Waits for the end of the program: for SIGINT, SIGTERM, or a call."""

from __future__ import annotations

import signal
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, ClassVar

from aeron.exceptions import ArgumentTypeError

__all__ = ["ShutdownSignalBarrier"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


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
        is_first = not self._open
        self._open.add(self)
        if _is_main_thread():
            if is_first:
                # The last barrier may have been closed on another thread. After that, the program may have installed
                # its own signal handlers.
                self._restore()
            if not self._previous:
                for number in _SIGNALS:
                    self._previous[number] = signal.signal(number, ShutdownSignalBarrier._on_signal)

    @classmethod
    def _on_signal(cls, number: int, _frame: FrameType | None) -> None:
        if cls._open:
            cls.signal_all()
            return
        # The last barrier was closed on another thread, or was dropped without a close.
        is_installed = signal.getsignal(number) == ShutdownSignalBarrier._on_signal
        cls._restore()
        # A handler of the program may have called this method. Then the program has handled the signal, and raising it
        # again would call that handler for ever.
        if is_installed and signal.getsignal(number) != ShutdownSignalBarrier._on_signal:
            signal.raise_signal(number)

    @classmethod
    def _restore(cls) -> None:
        """Restores the former signal handlers. Call it on the main thread.

        A signal can interrupt this method and call it again, so each handler is removed after it is restored.
        """
        for number, former in list(cls._previous.items()):
            # The program may have replaced the handler.
            if signal.getsignal(number) == ShutdownSignalBarrier._on_signal:
                # Python does not know a handler that was not set by Python.
                signal.signal(number, signal.SIG_DFL if former is None else former)
            cls._previous.pop(number, None)

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

        Another thread than the main thread cannot restore the former signal handlers. If the last barrier is closed on
        such a thread, the first signal restores them and then has its former effect.
        """
        self.signal()
        self._open.discard(self)
        if not self._open and _is_main_thread():
            self._restore()

    def __enter__(self) -> ShutdownSignalBarrier:
        """Returns the barrier."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the barrier."""
        self.close()


# Users import the class from `aeron`, so reprs and pickles name that module.
ShutdownSignalBarrier.__module__ = "aeron"
