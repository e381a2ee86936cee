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
    """A recorded stream without gaps: replayed from the archive first, and then live.

    Each message of the recording arrives once and in order. If the live stream is lost, a replay continues
    where it ended, until the subscription joins the live stream again. If the archive is lost during a
    replay, the replay continues when the archive is back. The subscription fails before it leaves out a
    message.

    Nothing happens between polls: poll it, or iterate over its batches, all the time. Messages are whole.
    If the live stream has several publishers, only the messages of the first one arrive: give the live
    channel a `session-id` to choose.

    A context manager that closes the subscription. One thread at a time may poll it: a second poll
    meanwhile, also from inside a handler, raises `ReentrantCallError`. All other methods are thread-safe.
    After a failure every poll raises `PersistentSubscriptionError`.

    Args:
        client: An Aeron client, which the subscription does not close.
        recording_id: Id of the stream's recording.
        live_channel: Channel of the live stream: IPC, unicast, multicast, `control-mode=dynamic` or a spy.
        live_stream_id: Stream id of the live stream, which is that of the recording.
        replay_channel: Channel of replays, on an address of this machine; its port may be 0, and it may
            have `control-mode=response`.
        replay_stream_id: Stream id of replays.
        start_position: Position of the first message in bytes, `FROM_START`, or `FROM_LIVE`, which replays
            nothing at first.
        on_live_joined: Called without arguments in a poll after which messages come from the live stream.
        on_live_left: Called without arguments in a poll that found that the live stream was lost.
        on_error: Called in a poll as `on_error(error)` with each `PersistentSubscriptionError`. If
            `has_failed` is then set, the error has ended the subscription.
        control_channel: Channel of the requests. `None` is `aeron:ipc`.
        control_stream_id: Stream id of the requests. `None` is the archive's default.
        response_channel: Channel of the responses, on which the archive publishes.
        response_stream_id: Stream id of the responses.
        credentials: Bytes for the archive's authenticator, or a function that returns them. The function is
            called with `None` at first, and with the archive's challenge if there is one.
        message_timeout: Seconds to wait for the connection, for each response, and for images.
        client_name: Name of the client in the archive's counters.
        control_term_buffer_length: Term length of the control streams in bytes. `None` is 1 MiB.
        control_term_buffer_sparse: Whether the log files of the control streams are sparse.
        control_mtu_length: Longest frame of the control streams, in bytes.

    Raises:
        ConfigurationError: If a setting is missing or contradicts another one.
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

        The handlers of the subscription are called too.

        The position in the header is that of the recording. The session id is that of the replay for messages
        that began in a replay.

        Args:
            handler: Called as `handler(payload, header)`, or a `FragmentAssembler`.
            fragment_limit: Largest number of fragments.
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
        """Polls as `poll`, with a handler that controls the consumption.

        After `Action.ABORT` the whole message is delivered again.

        Args:
            handler: Called as `handler(payload, header)`; returns an `Action`, or `None` for `Action.CONTINUE`.
            fragment_limit: Largest number of fragments.
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

        The stream id of the batch is that of the live stream, also for messages of a replay. A batch ends after
        1 MiB.

        Args:
            limit: Largest number of messages in a batch.
            max_bytes: Bytes of payload after which no other message is added to a batch.

        Returns:
            The batch.

        Raises:
            PersistentSubscriptionError: If the subscription has failed.
            ReentrantCallError: If another poll is under way.
        """
    def batches(
        self, limit: int = 4096, *, timeout: float | None = None, max_bytes: int = 16777216
    ) -> PersistentBatches:
        """Iterates over batches of messages as they arrive, for `for`.

        The iterator ends if the subscription is closed, or nothing arrives for `timeout` seconds.

        Args:
            limit: Largest number of messages in a batch.
            timeout: Seconds to wait. `None` waits without a limit.
            max_bytes: Bytes of payload after which no other message is added to a batch.

        Returns:
            An iterator of batches that are not empty.

        Raises:
            PersistentSubscriptionError: If the subscription has failed.
        """
    def batches_async(self, limit: int = 4096, *, max_bytes: int = 16777216) -> AsyncBatches:
        """Iterates over batches of messages as they arrive, for `async for`, until the subscription is closed.

        A cancelled wait loses no message and does not end the iterator.

        Args:
            limit: Largest number of messages in a batch.
            max_bytes: Bytes of payload after which no other message is added to a batch.

        Returns:
            An asynchronous iterator of batches that are not empty.

        Raises:
            PersistentSubscriptionError: If the subscription has failed.
        """
    def __aiter__(self) -> AsyncBatches: ...
    def _look(self, limit: int = 4096, max_bytes: int = 16777216, spin_ns: int = 0) -> Batch | None: ...
    @property
    def _is_over(self) -> bool: ...
    @property
    def _is_ready(self) -> _Condition: ...
    def close(self) -> None:
        """Stops a replay, and closes the streams, the session with the archive and the counters. Idempotent.

        Any thread and handler may call it. A poll that is under way ends first.
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
        """Name of the state in Aeron: `AWAIT_LIVE`, `REPLAY`, `LIVE`, `FAILED` and others."""
    @property
    def join_difference(self) -> int | None:
        """Distance from the replay to the live stream when the live stream was found, in bytes.

        It is the position of the live stream minus the position of the replay. `None` before there is a live
        stream.
        """
    @property
    def is_closed(self) -> bool:
        """Whether the subscription was closed."""

@final
class PersistentBatches:
    """An iterator of batches, which `PersistentSubscription.batches` returns. One thread at a time may use it:
    it is not thread-safe.
    """
    def __iter__(self) -> Self: ...
    def __next__(self) -> Batch: ...
