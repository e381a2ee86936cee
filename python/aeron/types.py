"""Names for the types of arguments, for annotations in programs that use ``aeron``.

>>> import aeron
>>> def send(publication: aeron.AnyPublication, message: aeron.Message) -> None:
...     publication.publish(message, timeout=1)

Each name is also an attribute of ``aeron``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

from aeron._aeron import (
    BufferClaim,
    ChannelUriBuilder,
    CountersReader,
    FragmentAssembler,
    Header,
    Image,
    PendingOperation,
    RefusedAttempts,
)
from aeron.results import NotSent

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Buffer

    _Array: TypeAlias = npt.NDArray[Any]
    _NumpyTime: TypeAlias = np.datetime64
elif sys.version_info >= (3, 12):
    from collections.abc import Buffer

    _Array = Buffer
    _NumpyTime = Any
else:
    Buffer = bytes | bytearray | memoryview
    _Array = Buffer
    _NumpyTime = Any

__all__ = [
    "AnyPublication",
    "ArrowArray",
    "ArrowSchema",
    "ArrowStream",
    "Channel",
    "CounterHandler",
    "Credentials",
    "ExportFormat",
    "FragmentHandler",
    "ImageHandler",
    "MalformedTreatment",
    "Message",
    "Messages",
    "Offsets",
    "SourceLocation",
    "Time",
    "ViewHandler",
]


class ArrowArray(Protocol):
    """An array or record batch of a library with the Arrow C data interface. The library determines thread-safety."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Exports the array by the Arrow C data interface.

        Args:
            requested_schema: A capsule of the schema that the consumer prefers.

        Returns:
            Capsules of the schema and of the array.
        """
        ...


class ArrowStream(Protocol):
    """A table or stream of a library with the Arrow C stream interface. The library determines thread-safety."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Exports the data by the Arrow C stream interface.

        Args:
            requested_schema: A capsule of the schema that the consumer prefers.

        Returns:
            A capsule of the stream.
        """
        ...


class ArrowSchema(Protocol):
    """A schema of a library with the Arrow C data interface. The library determines thread-safety."""

    def __arrow_c_schema__(self) -> object:
        """Exports the schema by the Arrow C data interface.

        Returns:
            A capsule of the schema.
        """
        ...


Channel: TypeAlias = str | ChannelUriBuilder
"""A channel: its URI, such as ``"aeron:ipc"``, or a `ChannelUriBuilder`."""
Message: TypeAlias = Buffer | bytes
"""One message: any object with the buffer protocol, such as ``bytes``, ``memoryview`` or a numpy array."""
Messages: TypeAlias = list[bytes] | Sequence[Buffer] | _Array | ArrowArray | Buffer
"""Many messages: a list, a two-dimensional array, an array of records, an Arrow array, or one buffer with offsets."""
Offsets: TypeAlias = Buffer | Iterable[int]
"""Offsets of messages in one buffer: the start of each message, and then the end of the last message."""
FragmentHandler: TypeAlias = Callable[[bytes, Header], object] | FragmentAssembler
"""A handler of fragments: ``handler(payload, header)``, where ``payload`` is ``bytes``."""
ViewHandler: TypeAlias = Callable[[memoryview, Header], object] | FragmentAssembler
"""A handler of fragments that are not copied: ``payload`` is a memoryview, valid until the handler returns."""
ImageHandler: TypeAlias = Callable[[Image], object]
"""A handler of images that become available or unavailable: ``handler(image)``.

The handler runs on the client's handler thread, or in ``do_work``. Its result is ignored, and its exceptions go to the
client's ``error_handler``.
"""
CounterHandler: TypeAlias = Callable[[CountersReader, int, int], object]
"""A handler of counters that become available or are freed: ``handler(counters_reader, registration_id, counter_id)``.

The handler runs on the client's handler thread, or in ``do_work``. Its result is ignored, and its exceptions go to the
client's ``error_handler``.
"""
Credentials: TypeAlias = bytes | Callable[[bytes | None], bytes]
"""Credentials for an archive: bytes, or a function that returns bytes.

The function is first called with ``None``, and again with the archive's challenge if there is one.
"""
ExportFormat: TypeAlias = Literal["parquet", "arrow"]
"""The format of exported files: Parquet, or Arrow IPC, which is also known as Feather."""
MalformedTreatment: TypeAlias = Literal["fail", "drop", "keep"]
"""Treatment of malformed messages: an error, no row, or a row without values that has the message's bytes in the column
``_corrupt_record``."""
SourceLocation: TypeAlias = Literal["LOCAL", "REMOTE"]
"""The source of a stream that an archive records.

``"LOCAL"`` means that the archive's driver publishes the stream, ``"REMOTE"`` that another driver does. Lower-case
letters are accepted at run time.
"""
Time: TypeAlias = datetime | _NumpyTime
"""A time: a datetime with a time zone, or a ``numpy.datetime64``, which numpy defines in UTC."""


class AnyPublication(Protocol):
    """The methods that `Publication` and `ExclusivePublication` share, for annotations.

    The class of the publication determines thread-safety.
    """

    def offer(self, message: Buffer, *, reserved_value: int | Callable[[bytes], int] | None = None) -> int | NotSent:
        """Appends one message. Never blocks.

        Args:
            message: Any object with the buffer protocol.
            reserved_value: A 64-bit integer, or a function that returns one for each fragment's payload. The
                function is called before any fragment is appended: if it raises, nothing is sent.

        Returns:
            The stream position after the message in bytes, or one of the false constants `NOT_CONNECTED`,
            `BACK_PRESSURED` and `ADMIN_ACTION`. If `offer` returns a constant, nothing was sent, and the call may be
            repeated.

        Raises:
            PublicationClosedError: If the publication, its client or its driver is closed.
            MessageTooLongError: If the message is longer than `max_message_length`.
            MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
                new one.
            ReentrantCallError: If the publication is exclusive and another thread is sending.

        Example:
            ```python
            if not publication.offer(b"hello"):
                print("not sent: try again")
            ```
        """
        ...

    def offer_parts(self, parts: Iterable[Buffer]) -> int | NotSent:
        """Appends one message that consists of several parts. Never blocks.

        Args:
            parts: The parts in order: an iterable of objects with the buffer protocol.

        Returns:
            The stream position after the message in bytes, or one of the false constants that `offer` returns.

        Raises:
            PublicationClosedError: If the publication, its client or its driver is closed.
            MessageTooLongError: If the message is longer than `max_message_length`.
            MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
                new one.
            ReentrantCallError: If the publication is exclusive and another thread is sending.
        """
        ...

    def offer_batch(self, messages: Messages, *, offsets: Offsets | None = None, start: int = 0) -> int:
        """Appends as many messages as there is room for. Never blocks.

        Args:
            messages: A list of buffers, a two-dimensional array, an array of records, an Arrow array, or one
                buffer with `offsets`.
            offsets: Offsets of the messages in the buffer `messages`, and the offset of the last message's end,
                in bytes.
            start: Index of the first message to send.

        Returns:
            The number of messages that were appended. Resume at `start` plus that number.

        Raises:
            PublicationClosedError: If the publication, its client or its driver is closed.
            MessageTooLongError: If a message is longer than `max_message_length`.
            MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
                new one.
            ReentrantCallError: If the publication is exclusive and another thread is sending.
        """
        ...

    def offer_arrow(self, data: ArrowArray | ArrowStream, *, start: int = 0, timeout: float | None = 0.0) -> int:
        """Appends the rows of a table or record batch, or the values of an array.

        The data may be of any library with the Arrow C interface: pyarrow, Polars, pandas, DuckDB. Rows have
        the column `value` of bytes or text. Their column `reserved_value` of integers is optional. Dictionaries
        and views are converted.

        Args:
            data: An object with the Arrow C data or stream interface. A stream is read as a whole in each call.
                If it can be read only once, pass `timeout=None`.
            start: Index of the first message to send.
            timeout: Seconds to wait for room. `None` waits without a limit, and 0 does not wait.

        Returns:
            The number of rows that were appended. Resume at `start` plus that number.

        Raises:
            PublicationClosedError: If the publication, its client or its driver is closed.
            MessageTooLongError: If a message is longer than `max_message_length`.
            MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
                new one.
            ReentrantCallError: If the publication is exclusive and another thread is sending.
        """
        ...

    def publish(self, message: Buffer, timeout: float | None = None) -> int:
        """Appends one message, and waits for a subscriber and for room.

        Args:
            message: Any object with the buffer protocol.
            timeout: Seconds to wait. `None` waits without a limit.

        Returns:
            The stream position after the message, in bytes.

        Raises:
            NotConnectedError: If no subscriber connects within `timeout`.
            BackPressureTimeoutError: If the subscribers do not make room within `timeout`.
            PublicationClosedError: If the publication, its client or its driver is closed.
            MessageTooLongError: If a message is longer than `max_message_length`.
            MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
                new one.
            ReentrantCallError: If the publication is exclusive and another thread is sending.
        """
        ...

    def try_claim(self, length: int, *, direct: bool = False) -> BufferClaim | NotSent:
        """Claims a frame in the log, so that the program can write the message in place. Never blocks.

        Args:
            length: Length of the payload, in bytes.
            direct: Whether the memoryview of the claim is the log's memory itself. If `False`, it is a buffer
                that the commit copies into the log; see `BufferClaim`.

        Returns:
            A `BufferClaim`, or one of the false constants that `offer` returns.

        Raises:
            PublicationClosedError: If the publication, its client or its driver is closed.
            MessageTooLongError: If `length` is greater than `max_payload_length`.
            MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
                new one.
            ReentrantCallError: If the publication is exclusive and another thread is sending.

        Example:
            ```python
            claim = publication.try_claim(5)
            if claim:
                with claim as view:
                    view[:] = b"hello"
            ```
        """
        ...

    def claim(self, length: int, timeout: float | None = None, *, direct: bool = False) -> BufferClaim:
        """Claims a frame in the log, and waits for a subscriber and for room.

        Args:
            length: Length of the payload, in bytes.
            timeout: Seconds to wait. `None` waits without a limit.
            direct: Whether the memoryview of the claim is the log's memory itself. If `False`, it is a buffer
                that the commit copies into the log; see `BufferClaim`.

        Returns:
            A `BufferClaim`.

        Raises:
            NotConnectedError: If no subscriber connects within `timeout`.
            BackPressureTimeoutError: If the subscribers do not make room within `timeout`.
            PublicationClosedError: If the publication, its client or its driver is closed.
            MessageTooLongError: If `length` is greater than `max_payload_length`.
            MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
                new one.
            ReentrantCallError: If the publication is exclusive and another thread is sending.
        """
        ...

    def claim_async(
        self, length: int, timeout: float | None = None, *, direct: bool = False
    ) -> Coroutine[Any, Any, BufferClaim]:
        """Claims a frame in the log, and waits for a subscriber and for room without blocking the event loop.

        Args:
            length: Length of the payload, in bytes.
            timeout: Seconds to wait. `None` waits without a limit.
            direct: Whether the memoryview of the claim is the log's memory itself. If `False`, it is a buffer
                that the commit copies into the log; see `BufferClaim`.

        Returns:
            A coroutine that returns a `BufferClaim`.

        Raises:
            NotConnectedError: If no subscriber connects within `timeout`.
            BackPressureTimeoutError: If the subscribers do not make room within `timeout`.
            PublicationClosedError: If the publication, its client or its driver is closed.
            MessageTooLongError: If `length` is greater than `max_payload_length`.
            MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
                new one.
            ReentrantCallError: If the publication is exclusive and another thread is sending.
        """
        ...

    def offer_async(self, message: Buffer) -> Coroutine[Any, Any, int]:
        """Appends one message, and waits for a subscriber and for room without blocking the event loop.

        Args:
            message: Any object with the buffer protocol.

        Returns:
            A coroutine that returns the stream position after the message, in bytes.

        Raises:
            PublicationClosedError: If the publication, its client or its driver is closed.
            MessageTooLongError: If a message is longer than `max_message_length`.
            MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
                new one.
            ReentrantCallError: If the publication is exclusive and another thread is sending.
        """
        ...

    def offer_batch_async(
        self, messages: Messages, *, offsets: Offsets | None = None, start: int = 0
    ) -> Coroutine[Any, Any, int]:
        """Appends all messages from index `start` on without blocking the event loop.

        Args:
            messages: A list of buffers, a two-dimensional array, an array of records, an Arrow array, or one
                buffer with `offsets`.
            offsets: Offsets of the messages in the buffer `messages`, and the offset of the last message's end,
                in bytes.
            start: Index of the first message to send.

        Returns:
            A coroutine that returns the number of messages. If the coroutine is cancelled or fails, the
            attribute `sent` of the exception is the number of messages that were sent.

        Raises:
            PublicationClosedError: If the publication, its client or its driver is closed.
            MessageTooLongError: If a message is longer than `max_message_length`.
            MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
                new one.
            ReentrantCallError: If the publication is exclusive and another thread is sending.
        """
        ...

    def wait_connected(self, timeout: float | None = None) -> None:
        """Waits for a subscriber.

        Args:
            timeout: Seconds to wait. `None` waits without a limit.

        Raises:
            NotConnectedError: If no subscriber connects within `timeout`.
            PublicationClosedError: If the publication, its client or its driver is closed.
        """
        ...

    def wait_connected_async(self, timeout: float | None = None) -> Coroutine[Any, Any, None]:
        """Waits for a subscriber without blocking the event loop.

        Args:
            timeout: Seconds to wait. `None` waits without a limit.

        Returns:
            A coroutine that returns `None`.

        Raises:
            NotConnectedError: If no subscriber connects within `timeout`.
            PublicationClosedError: If the publication, its client or its driver is closed.
        """
        ...

    def flush(self, timeout: float | None = None) -> bool:
        """Waits until everything published before the call has left the publisher.

        Over UDP, data has left the publisher when the driver has sent it. Subscribers may not have received it
        yet. Over IPC, data has left the publisher when every subscriber has consumed it.

        Args:
            timeout: Seconds to wait. `None` waits without a limit.

        Returns:
            `True` if the data has left, `False` if the time is up.

        Raises:
            PublicationClosedError: If the publication, its client or its driver is closed.
        """
        ...

    def close(self) -> None:
        """Closes the publication without waiting for the driver. Any thread may call it. Idempotent."""
        ...

    def revoke(self) -> None:
        """Closes the publication and ends its stream at once, for all publications that share its log."""
        ...

    def __enter__(self) -> Self:
        """Returns the publication itself."""
        ...

    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None:
        """Closes the publication."""
        ...

    def add_destination(self, channel: Channel) -> int:
        """Adds a destination to a channel with `control-mode=manual`, and waits for the driver.

        Args:
            channel: Channel of the destination, such as `aeron:udp?endpoint=host:port`.

        Returns:
            The id of the destination.

        Raises:
            RegistrationError: If the driver refuses the request; the subclass names the reason.
            DriverTimeoutError: If the driver does not respond within the driver timeout.
            PublicationClosedError: If the publication, its client or its driver is closed.
        """
        ...

    def remove_destination(self, destination: Channel | int) -> None:
        """Removes a destination, and waits for the driver.

        Args:
            destination: Channel with which the destination was added, or its id.

        Raises:
            RegistrationError: If the driver refuses the request; the subclass names the reason.
            DriverTimeoutError: If the driver does not respond within the driver timeout.
            PublicationClosedError: If the publication, its client or its driver is closed.
        """
        ...

    def async_add_destination(self, channel: Channel) -> PendingOperation[int]:
        """Starts `add_destination`, and returns its `PendingOperation` at once."""
        ...

    def async_remove_destination(self, destination: Channel | int) -> PendingOperation[None]:
        """Starts `remove_destination`, and returns its `PendingOperation` at once. It cannot be cancelled."""
        ...

    @property
    def channel(self) -> str:
        """Channel URI that the program passed."""
        ...

    @property
    def stream_id(self) -> int:
        """Stream id that the program passed."""
        ...

    @property
    def session_id(self) -> int:
        """Session id, which distinguishes the publishers of a channel and stream."""
        ...

    @property
    def generation(self) -> int:
        """Number of drivers that had the publication before the current one.

        A client with `reconnect` gives its publications to the next driver. Positions and, unless the channel
        has one, the session id begin again with each driver.
        """
        ...

    @property
    def registration_id(self) -> int:
        """Registration id of the publication in the driver."""
        ...

    @property
    def original_registration_id(self) -> int:
        """Registration id of the first publication that shares this log."""
        ...

    @property
    def is_original(self) -> bool:
        """Whether this publication created its log; `False` if it shares a log that existed before."""
        ...

    @property
    def initial_term_id(self) -> int:
        """Id of the stream's first term."""
        ...

    @property
    def term_buffer_length(self) -> int:
        """Length of a term, in bytes."""
        ...

    @property
    def position_bits_to_shift(self) -> int:
        """Base-two logarithm of the term length."""
        ...

    @property
    def max_message_length(self) -> int:
        """Maximum length of a message, in bytes."""
        ...

    @property
    def max_payload_length(self) -> int:
        """Maximum length of the payload of one frame, in bytes. It is also the maximum length of a claim."""
        ...

    @property
    def max_possible_position(self) -> int:
        """Largest position that the stream can reach, in bytes."""
        ...

    @property
    def position(self) -> int:
        """Stream position after the last message, in bytes.

        Raises `PublicationClosedError` if the publication is closed.
        """
        ...

    @property
    def position_limit(self) -> int:
        """Position up to which the driver permits messages to be appended, in bytes.

        Raises `PublicationClosedError` if the publication is closed.
        """
        ...

    @property
    def position_limit_id(self) -> int:
        """Counter id of the position limit."""
        ...

    @property
    def refused(self) -> RefusedAttempts:
        """Numbers of attempts to send that sent nothing, since the publication was added. A call that retries,
        such as `publish`, counts each of its attempts.
        """
        ...

    @property
    def available_window(self) -> int:
        """Number of bytes between the position and the position limit; 0 or less if there is no room.

        Raises `PublicationClosedError` if the publication is closed.
        """
        ...

    @property
    def is_connected(self) -> bool:
        """Whether a subscriber receives the stream; `False` if the publication is closed."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether the publication or its client is closed."""
        ...

    @property
    def channel_status_id(self) -> int:
        """Counter id of the channel's status; -1 for channels without a status (IPC)."""
        ...

    @property
    def channel_status(self) -> int:
        """Status of the channel, a value of `ChannelStatus`.

        1 is active, 0 initialising, -1 errored or closed, 2 closing. An open IPC publication is always active.
        """
        ...

    @property
    def local_socket_addresses(self) -> list[str]:
        """Addresses from which the channel sends while it is active; empty for IPC."""
        ...


# Users import these names from `aeron`, so reprs, tracebacks and pickles name that module.
for _class in (AnyPublication, ArrowArray, ArrowSchema, ArrowStream):
    _class.__module__ = "aeron"
