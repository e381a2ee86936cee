"""Publishers that keep each message until an archive has recorded it."""

from collections.abc import Callable, Coroutine
from os import PathLike
from typing import Any, Self, final

from typing_extensions import Buffer

from aeron._stubs.driver import MediaDriver
from aeron._stubs.operations import _Condition
from aeron.exceptions import RecordedPublisherError
from aeron.results import NotSent
from aeron.types import Channel, Credentials, Messages, Offsets, SourceLocation

@final
class RecordedPublisher:
    """A publisher that keeps each message until an archive has recorded it.

    After the loss of the archive, of the driver or of the recording, the publisher connects again. It extends the
    recording at its stop position, and sends the later messages again. Each message is in the recording once and in
    order, at the position that `offer` has returned. Messages are accepted while the buffer has room, even during a
    loss.

    The publisher has its own client of the driver and no thread: only calls make progress. Call `poll` regularly if
    there is nothing to offer. At the end call `close`, which waits until everything is recorded. A publisher that is
    dropped without a close does not wait.

    Another process continues a recording if it passes the `recording_id`, or the `alias` that the first process has
    used. The messages of the new process begin at `position`. The new process must offer again all messages that ended
    after this position.

    The end of a `with` block closes the publisher, and waits up to 5 seconds until everything is recorded. One thread
    at a time may call the publisher. A second call at the same time raises `ReentrantCallError`. Attributes are
    thread-safe. Handlers run in the calls, and may call the publisher. After a failure, each call except `close` and
    `unrecorded` raises `RecordedPublisherError`. `unrecorded` returns the messages that are not recorded.

    Args:
        channel: Channel of the stream. A local stream over UDP gets `ssc=true` unless the channel sets `ssc`. With
            `ssc=true`, the stream needs no subscriber other than the archive.
        stream_id: Stream id of the stream and of its recording.
        driver: A `MediaDriver`, the directory of a driver, or `None` for the directory that `AERON_DIR` names. Without
            that variable, `None` stands for Aeron's default directory.
        recording_id: Id of the recording to extend.
        alias: Name of the stream, instead of a recording id. The publisher extends the last recording with this alias
            and stream id. If there is none, the publisher starts a recording.
        source: `"LOCAL"` if the archive is on this driver, `"REMOTE"` if the archive is on another driver.
        buffer_length: Maximum number of bytes of messages that are not recorded yet, at least 65536. Each message
            counts with 32 bytes more than its length.
        takeover_timeout: Seconds to wait at the start until another publisher of the recording has ended. If the
            process of that publisher was killed, its driver notices the death only after the client liveness timeout.
        on_reconnect: Called as `on_reconnect(position)` when the recording continues after a loss.
        on_error: Called as `on_error(error)` with each `RecordedPublisherError`. If `has_failed` is then `True`, the
            error has ended the publisher.
        driver_timeout_ms: Milliseconds to wait for the driver. Default: `AERON_DRIVER_TIMEOUT`, or `10000`.
        control_channel: Channel of the requests. Default: `AERON_ARCHIVE_CONTROL_CHANNEL`, or `aeron:ipc`.
        control_stream_id: Stream id of the requests. Default: `AERON_ARCHIVE_CONTROL_STREAM_ID`, or `10`.
        response_channel: Channel on which the archive publishes its responses. Default:
            `AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL`; or IPC if `control_channel` is IPC, or a free port if
            `control_channel` has a loopback address. There is no default for an archive on another host.
        response_stream_id: Stream id of the responses. Default:
            `AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID`, or `20`.
        credentials: Bytes for the archive's authenticator, or a function that returns them. The function is
            first called with `None`, and again with the archive's challenge if there is one.
        message_timeout: Seconds to wait for the connection, for each response, and for the recording to begin. Default:
            `AERON_ARCHIVE_MESSAGE_TIMEOUT`, or `10`.
        client_name: Name of the client in the archive's counters. Default: `AERON_ARCHIVE_CLIENT_NAME`, or
            no name.
        control_term_buffer_length: Term length of the control streams, in bytes. Default:
            `AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH`, or 1 MiB.
        control_term_buffer_sparse: Whether the log files of the control streams are sparse. Default:
            `AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE`, or `True`.
        control_mtu_length: Maximum length of a frame of the control streams, in bytes. Default:
            `AERON_ARCHIVE_CONTROL_MTU_LENGTH`, or `1408`.

    Raises:
        InvalidArgumentError: If a channel or a timeout is not valid.
        ConfigurationError: If a setting is not valid or contradicts another setting.

    Example:
        ```python
        with aeron.RecordedPublisher("aeron:ipc", 1001, alias="trades") as publisher:
            position = publisher.publish(b"hello", timeout=5)
            publisher.wait_recorded(position, timeout=5)
        ```
    """

    def __new__(
        cls,
        channel: Channel,
        stream_id: int,
        *,
        driver: MediaDriver | str | PathLike[str] | None = None,
        recording_id: int | None = None,
        alias: str | None = None,
        source: SourceLocation = "LOCAL",
        buffer_length: int = 16777216,
        takeover_timeout: float = 30.0,
        on_reconnect: Callable[[int], object] | None = None,
        on_error: Callable[[RecordedPublisherError], object] | None = None,
        driver_timeout_ms: int | None = None,
        control_channel: Channel | None = None,
        control_stream_id: int | None = None,
        response_channel: Channel | None = None,
        response_stream_id: int | None = None,
        credentials: Credentials | None = None,
        message_timeout: float | None = None,
        client_name: str | None = None,
        control_term_buffer_length: int | None = None,
        control_term_buffer_sparse: bool | None = None,
        control_mtu_length: int | None = None,
    ) -> Self: ...
    def offer(self, message: Buffer) -> int | NotSent:
        """Accepts one message, and sends it if possible. Never blocks.

        The call also takes one step of the publisher, and runs the handlers of the publisher.

        Args:
            message: Any object with the buffer protocol.

        Returns:
            The stream position after the message in bytes. Or `BACK_PRESSURED` if the buffer is full, or
            `NOT_CONNECTED` if the recording was not found or started yet. Both are false in a condition, and mean
            that the message was not accepted.

        Raises:
            RecordedPublisherError: If the publisher has failed.
            PublicationClosedError: If the publisher is closed.
            MessageTooLongError: If the message is longer than the maximum message length, or than the buffer.
            MaxPositionExceededError: If the stream is at its largest position. Record another stream.
            ReentrantCallError: If another call is under way.

        Example:
            ```python
            if not publisher.offer(b"hello"):
                print("not accepted: try again")
            ```
        """
    def offer_batch(self, messages: Messages, *, offsets: Offsets | None = None, start: int = 0) -> int:
        """Accepts as many messages as the buffer has room for. Never blocks.

        Args:
            messages: A list of buffers, a two-dimensional array, an array of records, an Arrow array, or one
                buffer with `offsets`.
            offsets: Offsets of the messages in the buffer `messages`, and the offset of the last message's end,
                in bytes.
            start: Index of the first message to send.

        Returns:
            The number of messages that were accepted. Resume at `start` plus that number.

        Raises:
            RecordedPublisherError: If the publisher has failed.
            PublicationClosedError: If the publisher is closed.
            MessageTooLongError: If a message is longer than the maximum message length, or than the buffer.
            MaxPositionExceededError: If the stream is at its largest position. Record another stream.
            ReentrantCallError: If another call is under way.
        """
    def publish(self, message: Buffer, timeout: float | None = None) -> int:
        """Waits until the recording is found or started and the buffer has room, and accepts one message.

        The message may still be unrecorded when the call returns; see `wait_recorded`.

        Args:
            message: Any object with the buffer protocol.
            timeout: Seconds to wait. `None` waits without a limit.

        Returns:
            The stream position after the message, in bytes.

        Raises:
            NotConnectedError: If the recording is not found or started within `timeout`.
            BackPressureTimeoutError: If the buffer has no room within `timeout`.
            RecordedPublisherError: If the publisher fails.
            PublicationClosedError: If the publisher is closed.
            MessageTooLongError: If the message is longer than the maximum message length, or than the buffer.
            MaxPositionExceededError: If the stream is at its largest position. Record another stream.
            ReentrantCallError: If another call is under way.
        """
    def offer_async(self, message: Buffer) -> Coroutine[Any, Any, int]:
        """Waits until the recording is found or started and the buffer has room, and accepts one message.

        The wait does not block the event loop.

        Args:
            message: Any object with the buffer protocol.

        Returns:
            A coroutine that returns the stream position after the message, in bytes.

        Raises:
            RecordedPublisherError: If the publisher fails.
            PublicationClosedError: If the publisher is closed.
            MessageTooLongError: If the message is longer than the maximum message length, or than the buffer.
            MaxPositionExceededError: If the stream is at its largest position. Record another stream.
            ReentrantCallError: If another call is under way.
        """
    def offer_batch_async(
        self, messages: Messages, *, offsets: Offsets | None = None, start: int = 0
    ) -> Coroutine[Any, Any, int]:
        """Accepts all messages from index `start` on without blocking the event loop.

        Args:
            messages: A list of buffers, a two-dimensional array, an array of records, an Arrow array, or one
                buffer with `offsets`.
            offsets: Offsets of the messages in the buffer `messages`, and the offset of the last message's end,
                in bytes.
            start: Index of the first message to send.

        Returns:
            A coroutine that returns the number of messages. If the coroutine is cancelled or fails, the
            attribute `sent` of the exception is the number of messages that were accepted.

        Raises:
            RecordedPublisherError: If the publisher fails.
            PublicationClosedError: If the publisher is closed.
            MessageTooLongError: If a message is longer than the maximum message length, or than the buffer.
            MaxPositionExceededError: If the stream is at its largest position. Record another stream.
            ReentrantCallError: If another call is under way.
        """
    def poll(self) -> int:
        """Takes one step: connects, drops recorded messages, and sends waiting messages. Never blocks.

        The call also runs the handlers of the publisher. Call it regularly if there is nothing to offer.

        Returns:
            A work count, which is 0 if there was nothing to do.

        Raises:
            RecordedPublisherError: If the publisher has failed.
            PublicationClosedError: If the publisher is closed.
            ReentrantCallError: If another call is under way.
        """
    def wait_connected(self, timeout: float | None = None) -> None:
        """Waits until the archive records the stream.

        Args:
            timeout: Seconds to wait. `None` waits without a limit.

        Raises:
            NotConnectedError: If the archive does not record the stream within `timeout`.
            RecordedPublisherError: If the publisher fails.
            PublicationClosedError: If the publisher is closed.
            ReentrantCallError: If another call is under way.
        """
    def flush(self, timeout: float | None = None) -> bool:
        """Waits until all accepted messages are recorded.

        Args:
            timeout: Seconds to wait. `None` waits without a limit.

        Returns:
            Whether all messages are recorded; `False` if the time is up.

        Raises:
            RecordedPublisherError: If the publisher fails.
            PublicationClosedError: If the publisher is closed.
            ReentrantCallError: If another call is under way.
        """
    def flush_async(self, timeout: float | None = None) -> Coroutine[Any, Any, bool]:
        """Waits until all accepted messages are recorded, without blocking the event loop.

        Args:
            timeout: Seconds to wait. `None` waits without a limit.

        Returns:
            A coroutine that returns whether all messages are recorded; `False` if the time is up.

        Raises:
            RecordedPublisherError: If the publisher fails.
            PublicationClosedError: If the publisher is closed.
            ReentrantCallError: If another call is under way.
        """
    def wait_recorded(self, position: int, timeout: float | None = None) -> None:
        """Waits until the stream is recorded up to a position.

        The archive has then written the messages to the recording's files. Whether the messages survive a power failure
        depends on the archive's setting `file_sync_level`.

        Args:
            position: Position in bytes, as `offer` has returned it.
            timeout: Seconds to wait. `None` waits without a limit.

        Raises:
            ArchiveTimeoutError: If the position is not recorded within `timeout`.
            RecordedPublisherError: If the publisher fails.
            PublicationClosedError: If the publisher is closed.
            ReentrantCallError: If another call is under way.
        """
    def unrecorded(self) -> list[bytes]:
        """Returns the messages that are not known to be recorded, in order.

        After a failure or a close, the program can save these messages. If the archive was lost, the archive may have
        recorded some of these messages.

        Returns:
            The messages.

        Raises:
            ReentrantCallError: If another call is under way.
        """
    def close(self, timeout: float | None = 5.0) -> None:
        """Waits until all messages are recorded, and closes the publisher. Idempotent.

        The publication, the session with the archive and the client are closed even if messages are not
        recorded.

        Args:
            timeout: Seconds to wait. `None` waits without a limit, 0 does not wait.

        Raises:
            UnrecordedMessagesError: If messages are not known to be recorded. `unrecorded` still returns them.
            ReentrantCallError: If another call is under way.
        """
    @property
    def channel(self) -> str:
        """Channel that the program passed."""
    @property
    def stream_id(self) -> int:
        """Stream id that the program passed."""
    @property
    def recording_id(self) -> int | None:
        """Recording id; `None` until the recording is found or started."""
    @property
    def position(self) -> int | None:
        """Stream position after the last accepted message in bytes; `None` until the recording is found or started.

        Before the first message, the position is the end of the recording to extend.
        """
    @property
    def recorded_position(self) -> int | None:
        """Stream position up to which the messages are recorded, in bytes; `None` until the recording is found or started."""
    @property
    def unrecorded_messages(self) -> int:
        """Number of accepted messages that are not known to be recorded."""
    @property
    def unrecorded_bytes(self) -> int:
        """Number of bytes of accepted messages that are not known to be recorded."""
    @property
    def reconnects(self) -> int:
        """Number of times that the recording was extended after a loss."""
    @property
    def offered_again(self) -> int:
        """Number of messages that were sent again after a loss. A message that was sent again twice counts twice."""
    @property
    def is_connected(self) -> bool:
        """Whether the archive records the stream, as far as the publisher knows."""
    @property
    def has_failed(self) -> bool:
        """Whether an error ended the publisher."""
    @property
    def failure_reason(self) -> RecordedPublisherError | None:
        """The `RecordedPublisherError` that ended the publisher, or `None`."""
    @property
    def is_closed(self) -> bool:
        """Whether the publisher was closed."""
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, error: BaseException | None, _traceback: object, /) -> None: ...
    def __aenter__(self) -> Coroutine[Any, Any, Self]: ...
    def __aexit__(
        self, kind: object, error: BaseException | None, traceback: object, /
    ) -> Coroutine[Any, Any, None]: ...
    @property
    def _is_ready(self) -> _Condition: ...
    @property
    def _is_flushed(self) -> _Condition: ...
