"""Subscriptions that replay a recording and then follow the live stream."""

from collections.abc import Callable
from typing import Self, final

from aeron._stubs.batch import Batch
from aeron._stubs.client import Aeron
from aeron._stubs.operations import _Condition
from aeron.aio import AsyncBatches
from aeron.exceptions import PersistentSubscriptionError
from aeron.types import Channel, Credentials, FragmentHandler, ViewHandler

@final
class PersistentSubscription:
    """A subscription to a recorded stream, without gaps: it replays the recording, and then joins the live stream.

    Each message of the recording arrives once and in order. If the live stream is lost, a replay continues from
    the last position until the subscription joins the live stream again. If the archive is lost during a replay,
    the replay continues when the archive is available again. If a message cannot be delivered, the subscription
    fails and does not skip the message.

    The subscription works only during polls: poll it, or iterate over its batches, all the time. Handlers
    and batches get whole messages. If the live stream has several publishers, only the messages of the first
    publisher arrive. To choose a publisher, set `session-id` in the live channel.

    The end of a `with` block closes the subscription. One thread at a time may poll the subscription. A second
    poll at the same time, even in a handler, raises `ReentrantCallError`. All other methods are thread-safe.
    After a failure every poll raises `PersistentSubscriptionError`.

    Args:
        client: An Aeron client. Closing the subscription does not close the client.
        recording_id: Id of the stream's recording.
        live_channel: Channel of the live stream: IPC, unicast, multicast, `control-mode=dynamic` or a spy.
        live_stream_id: Stream id of the live stream, which must be the stream id of the recording.
        replay_channel: Channel of replays, with an address of this machine. Its port may be 0, and it may
            have `control-mode=response`.
        replay_stream_id: Stream id of replays.
        start_position: Position of the first message in bytes, `FROM_START`, or `FROM_LIVE`. With
            `FROM_LIVE` the subscription begins with the live stream.
        on_live_joined: Called without arguments in a poll, when the subscription has joined the live stream.
        on_live_left: Called without arguments in a poll, when the subscription has lost the live stream.
        on_error: Called in a poll as `on_error(error)` with each `PersistentSubscriptionError`. If
            `has_failed` is then `True`, the error has ended the subscription.
        control_channel: Channel of the requests. Default: `AERON_ARCHIVE_CONTROL_CHANNEL`, or `aeron:ipc`.
        control_stream_id: Stream id of the requests. Default: `AERON_ARCHIVE_CONTROL_STREAM_ID`, or `10`.
        response_channel: Channel on which the archive publishes its responses. Default:
            `AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL`. Without that variable, IPC if `control_channel` is IPC, or a
            free local port if `control_channel` has a loopback address. There is no default for an archive
            on another host.
        response_stream_id: Stream id of the responses. Default:
            `AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID`, or `20`.
        credentials: Bytes for the archive's authenticator, or a function that returns them. The function is
            first called with `None`, and again with the archive's challenge if there is one.
        message_timeout: Seconds to wait for the connection, for each response, and for images. Default:
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
        ArgumentTypeError: If a required argument is missing.
        InvalidArgumentError: If a channel, `start_position` or `message_timeout` is not valid.
        ConfigurationError: If a setting is not valid or contradicts another setting.
        RegistrationError: If the driver refuses the counters of the subscription; the subclass names the reason.
        DriverTimeoutError: If the driver does not respond within the driver timeout.
        ClientClosedError: If the Aeron client is closed.
    """
    def __new__(
        cls,
        client: Aeron,
        *,
        recording_id: int,
        live_channel: Channel,
        live_stream_id: int,
        replay_channel: Channel = "aeron:ipc",
        replay_stream_id: int = 100,
        start_position: int = -2,
        on_live_joined: Callable[[], object] | None = None,
        on_live_left: Callable[[], object] | None = None,
        on_error: Callable[[PersistentSubscriptionError], object] | None = None,
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
    def poll(self, handler: FragmentHandler | ViewHandler, fragment_limit: int = 10, *, copy: bool = True) -> int:
        """Takes one step, and calls a handler with the messages that are available now.

        The poll also calls the handlers of the subscription, such as `on_live_joined`.

        The position in the header is the position in the recording. For messages that began in a replay, the
        session id is the session id of the replay.

        Args:
            handler: Called as `handler(payload, header)`, or a `FragmentAssembler`.
            fragment_limit: Maximum number of fragments.
            copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
                returns.

        Returns:
            The number of messages.

        Raises:
            PersistentSubscriptionError: If the subscription has failed.
            ReentrantCallError: If another poll is under way.
        """
    def controlled_poll(
        self, handler: FragmentHandler | ViewHandler, fragment_limit: int = 10, *, copy: bool = True
    ) -> int:
        """Polls as `poll` does, with a handler that decides whether each message is consumed.

        After `Action.ABORT`, a later poll delivers the whole message again.

        Args:
            handler: Called as `handler(payload, header)`; returns an `Action`, or `None` for `Action.CONTINUE`.
            fragment_limit: Maximum number of fragments.
            copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
                returns.

        Returns:
            The number of messages.

        Raises:
            PersistentSubscriptionError: If the subscription has failed.
            ReentrantCallError: If another poll is under way.
        """
    def poll_batch(self, limit: int = 4096, *, max_bytes: int = 16777216) -> Batch:
        """Takes one step, and copies the messages that are available now into a batch, which may be empty.

        The stream id of the batch is the stream id of the live stream, even if its messages are from a replay.

        Args:
            limit: Maximum number of messages in a batch.
            max_bytes: Payload length, in bytes, at which a batch is full. The last message may end beyond it.
                Values above 1 MiB count as 1 MiB.

        Returns:
            The batch.

        Raises:
            PersistentSubscriptionError: If the subscription has failed.
            ReentrantCallError: If another poll is under way.
        """
    def batches(
        self, limit: int = 4096, *, timeout: float | None = None, max_bytes: int = 16777216
    ) -> PersistentBatches:
        """Iterates over batches of messages as they arrive, for use in a `for` loop.

        The iterator ends if the subscription is closed, or nothing arrives for `timeout` seconds.

        Args:
            limit: Maximum number of messages in a batch.
            timeout: Seconds to wait for a next batch. `None` waits without a limit.
            max_bytes: Payload length, in bytes, at which a batch is full. The last message may end beyond it.
                Values above 1 MiB count as 1 MiB.

        Returns:
            An iterator of batches that are not empty.

        Raises:
            PersistentSubscriptionError: If the subscription has failed.
            ReentrantCallError: If another poll is under way.
        """
    def batches_async(self, limit: int = 4096, *, max_bytes: int = 16777216) -> AsyncBatches:
        """Iterates over batches of messages as they arrive, for use in an `async for` loop.

        The iterator ends when the subscription is closed. A cancelled wait loses no message and does not end
        the iterator.

        Args:
            limit: Maximum number of messages in a batch.
            max_bytes: Payload length, in bytes, at which a batch is full. The last message may end beyond it.
                Values above 1 MiB count as 1 MiB.

        Returns:
            An asynchronous iterator of batches that are not empty.

        Raises:
            PersistentSubscriptionError: If the subscription has failed.
            ReentrantCallError: If another poll is under way.
        """
    def __aiter__(self) -> AsyncBatches: ...
    def _look(self, limit: int = 4096, max_bytes: int = 16777216, spin_ns: int = 0) -> Batch | None: ...
    @property
    def _is_over(self) -> bool: ...
    @property
    def _is_ready(self) -> _Condition: ...
    def close(self) -> None:
        """Stops a replay, and closes the streams, the session with the archive and the counters. Idempotent.

        Any thread may call `close`, even in a handler. If a poll runs, the subscription closes at the end of the
        poll.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None: ...
    @property
    def is_live(self) -> bool:
        """Whether messages come from the live stream."""
    @property
    def is_replaying(self) -> bool:
        """Whether messages come from a replay."""
    @property
    def has_failed(self) -> bool:
        """Whether an error ended the subscription."""
    @property
    def failure_reason(self) -> PersistentSubscriptionError | None:
        """The `PersistentSubscriptionError` that ended the subscription, or `None`."""
    @property
    def state(self) -> str:
        """Aeron's name of the subscription's state: `AWAIT_LIVE`, `REPLAY`, `LIVE`, `FAILED` and others."""
    @property
    def join_difference(self) -> int | None:
        """Distance from the replay to the live stream at the time when the live stream was found, in bytes.

        The distance is the position of the live stream minus the position of the replay. `None` before the live
        stream is found.
        """
    @property
    def is_closed(self) -> bool:
        """Whether the subscription was closed."""

@final
class PersistentBatches:
    """An iterator over batches, which `PersistentSubscription.batches` returns.

    One thread at a time may use it: it is not thread-safe.
    """
    def __iter__(self) -> Self: ...
    def __next__(self) -> Batch: ...
