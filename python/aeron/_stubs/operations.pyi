"""Operations that wait for a driver or an archive."""

from collections.abc import Coroutine, Generator, Sequence
from types import GenericAlias
from typing import Any, Generic, Self, TypeVar, final

_T_co = TypeVar("_T_co", covariant=True)

@final
class PendingOperation(Generic[_T_co]):
    """An operation that waits for a driver or an archive. The call that returned it has sent the request.
    Thread-safe.

    `await operation` and `operation.result(timeout)` return the result, any number of times. A refusal
    because an endpoint is closing (code 10) is repeated within the driver timeout. In a program that runs
    the client's conductor itself, `await`, `result` and `done` run it.

    `cancel()`, cancelling the task that awaits, and dropping the operation before its end undo it: if the
    driver adds the object nevertheless, the client removes it. `asyncio.shield(operation)` protects the
    operation from the task's cancellation.

    Example:
        ```python
        operation = client.async_add_publication("aeron:ipc", 1001)
        publication = operation.result(timeout=5)
        ```
    """
    @property
    def correlation_id(self) -> int:
        """Correlation id of the command, -1 if the operation needs none.

        A command that is repeated after a temporary refusal has another id.
        """
    def done(self) -> bool:
        """Returns whether the operation succeeded, failed or was cancelled. Never blocks.

        Returns:
            `True` if the operation is over.
        """
    def result(self, timeout: float | None = None) -> _T_co:
        """Waits for the result.

        Args:
            timeout: Seconds to wait. `None` waits without a limit.

        Returns:
            The result, the same at each call.

        Raises:
            OperationTimeoutError: If the operation is not over within `timeout`. The operation goes on.
            OperationCancelledError: If the operation was cancelled.
            AeronError: If the operation failed, an error of the class that its waiting form raises.
        """
    def cancel(self) -> bool:
        """Cancels the operation.

        Returns:
            `True` if the operation was cancelled. `False` if it is over, or if it cannot be cancelled
            (removals, rejections and static counters).
        """
    @property
    def _is_done(self) -> _Condition: ...
    def __await__(self) -> Generator[Any, Any, _T_co]: ...
    def __aenter__(self) -> Coroutine[Any, Any, _T_co]: ...
    def __aexit__(self, _type: object, _error: object, _traceback: object, /) -> Coroutine[Any, Any, None]: ...
    def __class_getitem__(cls, key: object) -> GenericAlias: ...

@final
class _Condition:
    """Whether a wait is over: called from Python, or watched by a timer. Immutable, so thread-safe."""
    def __call__(self, *args: Any, **kwargs: Any) -> bool: ...

@final
class _Timer:
    """A one-shot timer whose file becomes readable when it is due.

    It can watch conditions instead: a thread checks them without the GIL. A check by the event loop would cost
    several times as much. Thread-safe.
    """
    def __new__(cls) -> Self: ...
    def fileno(self) -> int: ...
    def set(self, after_ns: int) -> None:
        """Makes the file unreadable now, and readable after `after_ns` nanoseconds."""
    def watch(self, conditions: Sequence[_Condition], interval_ns: int) -> None:
        """Checks the conditions every `interval_ns` nanoseconds, and makes the file readable when one of them holds."""
    def clear(self) -> None:
        """Makes the file unreadable."""
