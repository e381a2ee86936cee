"""Counters."""

from collections.abc import Iterator
from typing import ClassVar, Literal, Self, final

@final
class Counter:
    """A counter that this client added. Thread-safe.

    Closing the counter frees it, except that a static counter stays in the driver. Reading or writing a
    closed counter raises `CounterClosedError`.

    Example:
        ```python
        counter = client.add_counter(1001, "my counter")
        counter.increment()
        ```
    """
    def set(self, value: int) -> None:
        """Sets the value, with release order.

        Args:
            value: A 64-bit integer.

        Raises:
            CounterClosedError: If the counter is closed.
        """
    def increment(self) -> int:
        """Adds 1 to the value.

        Returns:
            The value before the call.

        Raises:
            CounterClosedError: If the counter is closed.
        """
    def decrement(self) -> int:
        """Subtracts 1 from the value.

        Returns:
            The value before the call.

        Raises:
            CounterClosedError: If the counter is closed.
        """
    def get_and_add(self, delta: int) -> int:
        """Adds an integer to the value.

        Args:
            delta: A 64-bit integer.

        Returns:
            The value before the call.

        Raises:
            CounterClosedError: If the counter is closed.
        """
    def compare_and_set(self, current: int, new: int) -> bool:
        """Sets the value to `new` if it is `current`, in one atomic step.

        Args:
            current: The expected value.
            new: The new value.

        Returns:
            `True` if the value was set.

        Raises:
            CounterClosedError: If the counter is closed.
        """
    def propose_max(self, proposed: int) -> bool:
        """Sets the value to `proposed` if `proposed` is greater. Not atomic: use it only if the counter has one writer.

        Args:
            proposed: A 64-bit integer.

        Returns:
            `True` if the value was changed.

        Raises:
            CounterClosedError: If the counter is closed.
        """
    def close(self) -> None:
        """Closes the counter without waiting for the driver. Idempotent."""
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None: ...
    @property
    def value(self) -> int:
        """Value, read with acquire order. Raises `CounterClosedError` if the counter is closed."""
    @property
    def id(self) -> int:
        """Counter id."""
    @property
    def registration_id(self) -> int:
        """Registration id of the counter in the driver."""
    @property
    def label(self) -> str | None:
        """Label that tools show."""
    @property
    def state(self) -> int:
        """State of the counter's record: 1 allocated, -1 reclaimed."""
    @property
    def is_static(self) -> bool:
        """Whether the counter is a static counter, which outlives the client."""
    @property
    def is_closed(self) -> bool:
        """Whether the counter or its client is closed."""

@final
class CounterSnapshot:
    """A counter and its value at one moment. Immutable. Comparison and pickling use the values."""
    def __new__(
        cls,
        id: int,
        type_id: int,
        value: int,
        label: str,
        key: bytes,
        registration_id: int,
        owner_id: int,
        reference_id: int,
    ) -> Self: ...
    def __getnewargs__(self) -> tuple[int, int, int, str, bytes, int, int, int]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def id(self) -> int:
        """Counter id."""
    @property
    def type_id(self) -> int:
        """Type of the counter."""
    @property
    def value(self) -> int:
        """Value."""
    @property
    def label(self) -> str:
        """Label that tools show."""
    @property
    def key(self) -> bytes:
        """Key of the counter, padded with zeros to 112 bytes."""
    @property
    def registration_id(self) -> int:
        """Registration id of the counter."""
    @property
    def owner_id(self) -> int:
        """Id of the client that owns the counter; -1 if no client owns it."""
    @property
    def reference_id(self) -> int:
        """Id of the object to which the counter belongs. The kind of object depends on the counter's type."""
    @property
    def name(self) -> str | None:
        """Name in lower case with underscores, for example `publisher_limit`; `None` if the type is unknown. All counters
        of a type have the same name, except system counters and the indicators of congestion control.
        """
    @property
    def kind(self) -> Literal["counter", "gauge", "position", "state", "timestamp"] | None:
        """Kind of the value: `"counter"` (a total), `"gauge"`, `"position"`, `"state"` (a code) or `"timestamp"`; `None`
        if it is unknown.
        """
    @property
    def unit(self) -> Literal["bytes", "nanoseconds", "milliseconds"] | None:
        """Unit of the value: `"bytes"`, `"nanoseconds"` or `"milliseconds"`; `None` for a number without a unit, and for
        an unknown type.
        """
    @property
    def channel(self) -> str | None:
        """Channel of the stream or endpoint; `None` if the type has no channel. Key and label have room for the beginning
        of a long channel. This is the longer one of the two.
        """
    @property
    def is_channel_complete(self) -> bool:
        """Whether `channel` is complete. Without a channel, the value is `False`."""
    @property
    def stream_id(self) -> int | None:
        """Stream id; `None` if the type has none."""
    @property
    def session_id(self) -> int | None:
        """Session id; `None` if the type has none."""
    @property
    def recording_id(self) -> int | None:
        """Recording id; `None` if the type has none."""

@final
class CountersReader:
    """A reader of the counters of a driver and all its clients.

    Iterating over the reader yields a `CounterSnapshot` of each allocated counter. Thread-safe.

    Example:
        ```python
        for counter in client.counters_reader:
            print(counter.label, counter.value)
        ```
    """

    NULL_COUNTER_ID: ClassVar[int]
    RECORD_UNUSED: ClassVar[int]
    RECORD_ALLOCATED: ClassVar[int]
    RECORD_RECLAIMED: ClassVar[int]
    NOT_FREE_TO_REUSE: ClassVar[int]
    @property
    def max_counter_id(self) -> int:
        """The highest possible counter id."""
    def state(self, id: int) -> int:
        """Returns the state of a counter's record.

        Args:
            id: Counter id.

        Returns:
            0 unused, 1 allocated, -1 reclaimed.

        Raises:
            IndexRangeError: If `id` is not within 0 to `max_counter_id`.
        """
    def value(self, id: int) -> int:
        """Returns the value of a counter, with acquire order.

        Args:
            id: Counter id.

        Returns:
            The value.

        Raises:
            IndexRangeError: If `id` is not within 0 to `max_counter_id`.
        """
    def type_id(self, id: int) -> int:
        """Returns the type of a counter.

        Args:
            id: Counter id.

        Returns:
            The type id.

        Raises:
            IndexRangeError: If there is no counter with this id.
        """
    def label(self, id: int) -> str:
        """Returns the label of a counter.

        Args:
            id: Counter id.

        Returns:
            The label that tools show.

        Raises:
            IndexRangeError: If there is no counter with this id.
        """
    def key(self, id: int) -> bytes:
        """Returns the key of a counter. The key distinguishes counters of the same type.

        Args:
            id: Counter id.

        Returns:
            112 bytes.

        Raises:
            IndexRangeError: If there is no counter with this id.
        """
    def registration_id(self, id: int) -> int:
        """Returns the registration id of a counter.

        Args:
            id: Counter id.

        Returns:
            The registration id.

        Raises:
            IndexRangeError: If `id` is not within 0 to `max_counter_id`.
        """
    def owner_id(self, id: int) -> int:
        """Returns the owner of a counter.

        Args:
            id: Counter id.

        Returns:
            The id of the client; -1 if no client owns the counter.

        Raises:
            IndexRangeError: If `id` is not within 0 to `max_counter_id`.
        """
    def reference_id(self, id: int) -> int:
        """Returns the id of the object to which a counter belongs. The kind of object depends on the counter's type.

        Args:
            id: Counter id.

        Returns:
            The reference id.

        Raises:
            IndexRangeError: If `id` is not within 0 to `max_counter_id`.
        """
    def free_for_reuse_deadline_ms(self, id: int) -> int:
        """Returns the time after which a reclaimed record may be used again.

        Args:
            id: Counter id.

        Returns:
            Milliseconds since the epoch; `NOT_FREE_TO_REUSE` if the counter is in use.

        Raises:
            IndexRangeError: If `id` is not within 0 to `max_counter_id`.
        """
    def find_by_type_id_and_registration_id(self, type_id: int, registration_id: int) -> int:
        """Finds a counter by type and registration id.

        Args:
            type_id: Type of the counter.
            registration_id: Registration id of the counter.

        Returns:
            The counter id; -1 if there is no such counter.
        """
    def find_by_registration_id(self, registration_id: int) -> int:
        """Finds a counter by its registration id.

        Args:
            registration_id: Registration id of the counter.

        Returns:
            The counter id; -1 if there is no such counter.
        """
    def snapshot(self) -> list[CounterSnapshot]:
        """Takes a snapshot of all allocated counters.

        Returns:
            A list in the order of the counter ids.
        """
    def __iter__(self) -> Iterator[CounterSnapshot]: ...
