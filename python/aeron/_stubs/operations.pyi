"""Operations that wait for a driver or an archive."""

from collections.abc import Coroutine, Generator, Sequence
from types import GenericAlias
from typing import Any, Generic, Self, TypeVar, final

_T_co = TypeVar("_T_co", covariant=True)

@final
class PendingOperation(Generic[_T_co]):
    """A request to a driver or an archive. Thread-safe.

    The call that returned the operation has sent the request. Some operations of an archive, such as
    `async_wait_recorded` and `async_commit_reader`, send more requests, or first ask the archive for its
    capabilities. These operations make progress only while the program awaits them, or calls `result` or `done`.

    `await operation` and `operation.result(timeout)` return the result, any number of times. If the driver
    refuses the request because an endpoint is still closing (code 10), the client sends the request again,
    for up to the driver timeout. If the client has no threads, `await`, `result` and `done` run its
    conductor.

    An operation is cancelled by `cancel()`, by cancelling the task that awaits the operation, or by dropping
    the operation before its end. If the driver adds the object nevertheless, the client removes the object.
    `asyncio.shield(operation)` protects the operation from the task's cancellation.

    Example:
        ```python
        operation = client.async_add_publication("aeron:ipc", 1001)
        publication = operation.result(timeout=5)
        ```
    """
    @property
    def correlation_id(self) -> int:
        """Correlation id of the command; -1 if the operation has no command.

        A command that is sent again after a temporary refusal has a new id.
        """
    def done(self) -> bool:
        """Returns whether the operation is over: it succeeded, failed or was cancelled. Never blocks.

        Returns:
            `True` if the operation is over.
        """
    def result(self, timeout: float | None = None) -> _T_co:
        """Waits for the result.

        Args:
            timeout: Seconds to wait. `None` waits without a limit.

        Returns:
            The result. Each call returns the same object.

        Raises:
            OperationTimeoutError: If the operation is not over within `timeout`. The operation continues.
            OperationCancelledError: If the operation was cancelled.
            AeronError: If the operation failed. The method without `async_` would raise the same class.
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
    """A check of whether a wait is over. Python calls the object, or a timer calls the check repeatedly. Immutable, so
    thread-safe.
    """
    def __call__(self, *args: Any, **kwargs: Any) -> bool: ...

@final
class _Timer:
    """A one-shot timer with a file that becomes readable when the timer is due.

    The timer can instead watch conditions: a thread checks them without the GIL, and makes the file readable when
    one of them is true. A check by the event loop would cost several times as much. Thread-safe.
    """
    def __new__(cls) -> Self: ...
    def fileno(self) -> int: ...
    def set(self, after_ns: int) -> None:
        """Makes the file unreadable now, and readable after `after_ns` nanoseconds."""
    def watch(self, conditions: Sequence[_Condition], interval_ns: int) -> None:
        """Checks the conditions every `interval_ns` nanoseconds, and makes the file readable when one of them is true."""
    def clear(self) -> None:
        """Makes the file unreadable."""
