"""Publications and claims."""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Self, final

from typing_extensions import Buffer

from aeron._stubs.operations import PendingOperation, _Condition
from aeron.results import NotSent
from aeron.types import ArrowArray, ArrowStream, Channel, Messages, Offsets

@final
class Publication:
    """A publication that clients of the same driver share. Any number of threads may send at the same time.

    These methods wait: `publish`, `claim`, `flush`, `wait_connected`, `add_destination`, `remove_destination`, and
    `offer_arrow` with a `timeout`. No other method blocks. Thread-safe.

    Example:
        ```python
        publication = client.add_publication("aeron:ipc", 1001)
        publication.publish(b"hello", timeout=5)
        ```
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
    @property
    def _is_ready(self) -> _Condition: ...
    def wait_connected(self, timeout: float | None = None) -> None:
        """Waits for a subscriber.

        Args:
            timeout: Seconds to wait. `None` waits without a limit.

        Raises:
            NotConnectedError: If no subscriber connects within `timeout`.
            PublicationClosedError: If the publication, its client or its driver is closed.
        """
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
    @property
    def _is_connected_or_closed(self) -> _Condition: ...
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
    def close(self) -> None:
        """Closes the publication without waiting for the driver. Any thread may call it. Idempotent."""
    def revoke(self) -> None:
        """Closes the publication and ends its stream at once, for all publications that share its log."""
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None: ...
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
    def remove_destination(self, destination: Channel | int) -> None:
        """Removes a destination, and waits for the driver.

        Args:
            destination: Channel with which the destination was added, or its id.

        Raises:
            RegistrationError: If the driver refuses the request; the subclass names the reason.
            DriverTimeoutError: If the driver does not respond within the driver timeout.
            PublicationClosedError: If the publication, its client or its driver is closed.
        """
    def async_add_destination(self, channel: Channel) -> PendingOperation[int]:
        """Starts `add_destination`, and returns its `PendingOperation` at once."""
    def async_remove_destination(self, destination: Channel | int) -> PendingOperation[None]:
        """Starts `remove_destination`, and returns its `PendingOperation` at once. It cannot be cancelled."""
    @property
    def channel(self) -> str:
        """Channel URI that the program passed."""
    @property
    def stream_id(self) -> int:
        """Stream id that the program passed."""
    @property
    def session_id(self) -> int:
        """Session id, which distinguishes the publishers of a channel and stream."""
    @property
    def generation(self) -> int:
        """Number of drivers that had the publication before the current one.

        A client with `reconnect` gives its publications to the next driver. Positions and, unless the channel
        has one, the session id begin again with each driver.
        """
    @property
    def registration_id(self) -> int:
        """Registration id of the publication in the driver."""
    @property
    def original_registration_id(self) -> int:
        """Registration id of the first publication that shares this log."""
    @property
    def is_original(self) -> bool:
        """Whether this publication created its log; `False` if it shares a log that existed before."""
    @property
    def initial_term_id(self) -> int:
        """Id of the stream's first term."""
    @property
    def term_buffer_length(self) -> int:
        """Length of a term, in bytes."""
    @property
    def position_bits_to_shift(self) -> int:
        """Base-two logarithm of the term length."""
    @property
    def max_message_length(self) -> int:
        """Maximum length of a message, in bytes."""
    @property
    def max_payload_length(self) -> int:
        """Maximum length of the payload of one frame, in bytes. It is also the maximum length of a claim."""
    @property
    def max_possible_position(self) -> int:
        """Largest position that the stream can reach, in bytes."""
    @property
    def position(self) -> int:
        """Stream position after the last message, in bytes.

        Raises `PublicationClosedError` if the publication is closed.
        """
    @property
    def position_limit(self) -> int:
        """Position up to which the driver permits messages to be appended, in bytes.

        Raises `PublicationClosedError` if the publication is closed.
        """
    @property
    def position_limit_id(self) -> int:
        """Counter id of the position limit."""
    @property
    def refused(self) -> RefusedAttempts:
        """Numbers of attempts to send that sent nothing, since the publication was added. A call that retries,
        such as `publish`, counts each of its attempts.
        """
    @property
    def available_window(self) -> int:
        """Number of bytes between the position and the position limit; 0 or less if there is no room.

        Raises `PublicationClosedError` if the publication is closed.
        """
    @property
    def is_connected(self) -> bool:
        """Whether a subscriber receives the stream; `False` if the publication is closed."""
    @property
    def is_closed(self) -> bool:
        """Whether the publication or its client is closed."""
    @property
    def channel_status_id(self) -> int:
        """Counter id of the channel's status; -1 for channels without a status (IPC)."""
    @property
    def channel_status(self) -> int:
        """Status of the channel, a value of `ChannelStatus`.

        1 is active, 0 initialising, -1 errored or closed, 2 closing. An open IPC publication is always active.
        """
    @property
    def local_socket_addresses(self) -> list[str]:
        """Addresses from which the channel sends while it is active; empty for IPC."""

@final
class ExclusivePublication:
    """A publication that is the only writer of its log. Sending is faster than with `Publication`.

    One thread at a time may be inside a sending method. In a second thread, a sending method raises
    `ReentrantCallError`. All other methods are thread-safe.

    These methods wait: `publish`, `claim`, `flush`, `wait_connected`, `add_destination`, `remove_destination`, and
    `offer_arrow` with a `timeout`. No other method blocks.

    Example:
        ```python
        publication = client.add_exclusive_publication("aeron:ipc", 1001)
        publication.publish(b"hello", timeout=5)
        ```
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
    @property
    def _is_ready(self) -> _Condition: ...
    def wait_connected(self, timeout: float | None = None) -> None:
        """Waits for a subscriber.

        Args:
            timeout: Seconds to wait. `None` waits without a limit.

        Raises:
            NotConnectedError: If no subscriber connects within `timeout`.
            PublicationClosedError: If the publication, its client or its driver is closed.
        """
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
    @property
    def _is_connected_or_closed(self) -> _Condition: ...
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
    def close(self) -> None:
        """Closes the publication without waiting for the driver. Any thread may call it. Idempotent."""
    def revoke(self) -> None:
        """Closes the publication and ends its stream at once, for all publications that share its log."""
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None: ...
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
    def remove_destination(self, destination: Channel | int) -> None:
        """Removes a destination, and waits for the driver.

        Args:
            destination: Channel with which the destination was added, or its id.

        Raises:
            RegistrationError: If the driver refuses the request; the subclass names the reason.
            DriverTimeoutError: If the driver does not respond within the driver timeout.
            PublicationClosedError: If the publication, its client or its driver is closed.
        """
    def async_add_destination(self, channel: Channel) -> PendingOperation[int]:
        """Starts `add_destination`, and returns its `PendingOperation` at once."""
    def async_remove_destination(self, destination: Channel | int) -> PendingOperation[None]:
        """Starts `remove_destination`, and returns its `PendingOperation` at once. It cannot be cancelled."""
    @property
    def channel(self) -> str:
        """Channel URI that the program passed."""
    @property
    def stream_id(self) -> int:
        """Stream id that the program passed."""
    @property
    def session_id(self) -> int:
        """Session id, which distinguishes the publishers of a channel and stream."""
    @property
    def generation(self) -> int:
        """Number of drivers that had the publication before the current one.

        A client with `reconnect` gives its publications to the next driver. Positions and, unless the channel
        has one, the session id begin again with each driver.
        """
    @property
    def registration_id(self) -> int:
        """Registration id of the publication in the driver."""
    @property
    def original_registration_id(self) -> int:
        """Registration id of the first publication that shares this log."""
    @property
    def is_original(self) -> bool:
        """Whether this publication created its log; `False` if it shares a log that existed before."""
    @property
    def initial_term_id(self) -> int:
        """Id of the stream's first term."""
    @property
    def term_buffer_length(self) -> int:
        """Length of a term, in bytes."""
    @property
    def position_bits_to_shift(self) -> int:
        """Base-two logarithm of the term length."""
    @property
    def max_message_length(self) -> int:
        """Maximum length of a message, in bytes."""
    @property
    def max_payload_length(self) -> int:
        """Maximum length of the payload of one frame, in bytes. It is also the maximum length of a claim."""
    @property
    def max_possible_position(self) -> int:
        """Largest position that the stream can reach, in bytes."""
    @property
    def position(self) -> int:
        """Stream position after the last message, in bytes.

        Raises `PublicationClosedError` if the publication is closed.
        """
    @property
    def position_limit(self) -> int:
        """Position up to which the driver permits messages to be appended, in bytes.

        Raises `PublicationClosedError` if the publication is closed.
        """
    @property
    def position_limit_id(self) -> int:
        """Counter id of the position limit."""
    @property
    def refused(self) -> RefusedAttempts:
        """Numbers of attempts to send that sent nothing, since the publication was added. A call that retries,
        such as `publish`, counts each of its attempts.
        """
    @property
    def available_window(self) -> int:
        """Number of bytes between the position and the position limit; 0 or less if there is no room.

        Raises `PublicationClosedError` if the publication is closed.
        """
    @property
    def is_connected(self) -> bool:
        """Whether a subscriber receives the stream; `False` if the publication is closed."""
    @property
    def is_closed(self) -> bool:
        """Whether the publication or its client is closed."""
    @property
    def channel_status_id(self) -> int:
        """Counter id of the channel's status; -1 for channels without a status (IPC)."""
    @property
    def channel_status(self) -> int:
        """Status of the channel, a value of `ChannelStatus`.

        1 is active, 0 initialising, -1 errored or closed, 2 closing. An open IPC publication is always active.
        """
    @property
    def local_socket_addresses(self) -> list[str]:
        """Addresses from which the channel sends while it is active; empty for IPC."""
    def append_padding(self, length: int) -> int | NotSent:
        """Appends a frame that subscribers skip. Never blocks.

        Args:
            length: Length of the frame's payload, in bytes.

        Returns:
            The stream position after the frame in bytes, or one of the false constants that `offer` returns.

        Raises:
            PublicationClosedError: If the publication, its client or its driver is closed.
            MessageTooLongError: If `length` is greater than `max_message_length`.
            MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
                new one.
            ReentrantCallError: If another thread is sending.
        """
    def offer_block(self, block: Buffer) -> int | NotSent:
        """Appends whole frames that continue the stream. Never blocks.

        `block_poll` passes such frames to its handler, for instance.

        Args:
            block: The frames, with their headers: any object with the buffer protocol.

        Returns:
            The stream position after the frames in bytes, or one of the false constants that `offer` returns.

        Raises:
            InvalidArgumentError: If the frames do not continue the stream, or do not fit into the active term.
            PublicationClosedError: If the publication, its client or its driver is closed.
            MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
                new one.
            ReentrantCallError: If another thread is sending.
        """
    @property
    def term_id(self) -> int:
        """Id of the active term.

        Raises `ReentrantCallError` if another thread is sending.
        """
    @property
    def term_offset(self) -> int:
        """Offset of the next frame in the active term, in bytes.

        Raises `ReentrantCallError` if another thread is sending.
        """

@final
class BufferClaim:
    """A claimed frame of the log: a context manager around a writable memoryview of its payload.

    The end of the `with` block commits the message. If the block raises, or the claim is dropped, the
    message is aborted. Subscribers cannot read past an open claim, so commit or abort each claim soon. If the
    client loses its driver, the claim is aborted, and the commit raises. One thread at a time may use a
    claim: it is not thread-safe.

    The view is private memory, all zero at first, which the commit copies into the log. Slices and arrays
    of the view stay usable after the block, and do not change the message. With `direct=True` the view is
    the log itself, without a copy. Then a slice or array that outlives the block stays writable: writing to
    it overwrites the message, and later other messages and their headers.

    Example:
        ```python
        with publication.claim(5) as view:
            view[:] = b"hello"
        ```
    """
    def __enter__(self) -> memoryview: ...
    def __exit__(self, exception_type: object, _exception: object, _traceback: object, /) -> None: ...
    @property
    def view(self) -> memoryview:
        """The payload: a writable memoryview, which is released when the claim is finished.

        `BufferClaim` describes what happens to slices of the view.
        """
    @property
    def is_finished(self) -> bool:
        """Whether the claim was committed or aborted."""
    @property
    def length(self) -> int:
        """Length of the payload, in bytes."""
    @property
    def position(self) -> int:
        """Stream position after the message, in bytes."""
    def commit(self) -> int:
        """Makes the message readable for subscribers.

        Returns:
            The stream position after the message, in bytes.

        Raises:
            ClaimAbortedError: If the client has lost its driver since the claim. The message was not sent.
            AeronError: If the claim was committed or aborted already.
        """
    def abort(self) -> None:
        """Turns the frame into padding, which subscribers skip.

        Raises:
            AeronError: If the claim was committed or aborted already.
        """
    def set_reserved_value(self, value: int) -> None:
        """Sets the frame's reserved value. The default is 0.

        Args:
            value: A 64-bit integer.

        Raises:
            AeronError: If the claim was committed or aborted already.
        """
    def set_flags(self, flags: int) -> None:
        """Sets the frame's flags. The default is 0xC0, the flags of an unfragmented message.

        Args:
            flags: The flags, 0 to 255.

        Raises:
            AeronError: If the claim was committed or aborted already.
        """
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

@final
class PublicationErrorFrame:
    """An error that a receiver reported to a publication. Immutable. Comparison and pickling use the values."""
    def __new__(
        cls,
        registration_id: int,
        destination_registration_id: int,
        session_id: int,
        stream_id: int,
        receiver_id: int,
        group_tag: int,
        error_code: int,
        error_message: str,
        source_address: str | None,
    ) -> Self: ...
    def __getnewargs__(self) -> tuple[int, int, int, int, int, int, int, str, str | None]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def registration_id(self) -> int:
        """Original registration id of the publication."""
    @property
    def destination_registration_id(self) -> int:
        """Registration id of the destination that reported the error; -1 if no destination reported the error."""
    @property
    def session_id(self) -> int:
        """Session id of the publication."""
    @property
    def stream_id(self) -> int:
        """Stream id of the publication."""
    @property
    def receiver_id(self) -> int:
        """Id of the receiver, -1 for IPC."""
    @property
    def group_tag(self) -> int:
        """Group tag of the receiver; -1 if it has no tag."""
    @property
    def error_code(self) -> int:
        """Error code; 13 if the image was rejected."""
    @property
    def error_message(self) -> str:
        """Error text from the receiver."""
    @property
    def source_address(self) -> str | None:
        """Source address of the report, `None` if it is not known."""

@final
class RefusedAttempts:
    """Numbers of attempts to send that sent nothing. Immutable. Comparison and pickling use the values."""

    def __new__(cls, not_connected: int, back_pressured: int, admin_action: int) -> Self: ...
    def __getnewargs__(self) -> tuple[int, int, int]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def not_connected(self) -> int:
        """Attempts while no subscriber was connected."""
    @property
    def back_pressured(self) -> int:
        """Attempts while subscribers had not consumed enough, or the network was too slow."""
    @property
    def admin_action(self) -> int:
        """Attempts while the log was rotating to its next term."""
