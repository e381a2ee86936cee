"""Replays that merge with the live stream."""

from typing import Self, final

from aeron._stubs.archive_client import AeronArchive
from aeron._stubs.batch import Batch
from aeron._stubs.subscription import Image, Subscription
from aeron.types import Channel, FragmentHandler, ViewHandler

@final
class ReplayMerge:
    """A merge of a recording's replay with the live stream: each message arrives once and in order.

    The channel of the subscription needs `control-mode=manual` and the `session-id` of the recorded stream.
    `replay_channel` needs the same `session-id`, so that replay and live stream arrive as one image. The
    merge adds the replay destination first, and the live destination later. When the live stream arrives,
    the merge removes the replay destination. IPC is not supported.

    Poll the merge until `is_merged` is `True`. Then the program may poll the subscription itself. After an
    error `has_failed` is `True`, and further polls return the remaining messages of the image.

    The end of a `with` block ends the merge. If the merge is not complete, its replay is stopped.
    Subscription and archive stay open. One thread at a time may poll the merge.

    Args:
        subscription: Subscription that receives the stream.
        archive: Client of the archive.
        replay_channel: Channel of the replay, with the `session-id` of the recorded stream.
        replay_destination: Destination of the subscription for the replay. Its port may be 0.
        live_destination: Destination of the subscription for the live stream.
        recording_id: Id of the recording.
        start_position: Position of the first message, in bytes. `None` stands for the start of the recording.
        progress_timeout: Seconds without progress after which the merge fails.

    Raises:
        InvalidArgumentError: If a channel is not suitable, or a number is out of its range.
        SubscriptionClosedError: If the subscription is closed.
        ReentrantCallError: If a handler of the archive's client calls the constructor.
    """
    def __new__(
        cls,
        subscription: Subscription,
        archive: AeronArchive,
        replay_channel: Channel,
        replay_destination: Channel,
        live_destination: Channel,
        recording_id: int,
        start_position: int | None = None,
        *,
        progress_timeout: float = 5.0,
    ) -> Self: ...
    def do_work(self) -> int:
        """Takes one step of the merge. Never blocks.

        Returns:
            The amount of work; 0 if the merge is complete, has failed or is closed.

        Raises:
            ArchiveTimeoutError: If the merge makes no progress within `progress_timeout`.
            ArchiveDisconnectedError: If the session with the archive has ended, or its client is closed.
            ArchiveError: If the archive refuses a request or sends an error that belongs to no request, or the image is
                closed before the merge is complete.
            ReentrantCallError: If another poll is under way.
        """
    def poll(self, handler: FragmentHandler | ViewHandler, fragment_limit: int = 10, *, copy: bool = True) -> int:
        """Takes one step, then calls a handler for the fragments that are available now. Never blocks.

        The handler gets the fragments of long messages one by one. For whole messages pass a `FragmentAssembler`,
        or use `poll_batch`.

        Args:
            handler: Called as `handler(payload, header)`, or a `FragmentAssembler`.
            fragment_limit: Maximum number of fragments.
            copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
                returns.

        Returns:
            The number of fragments; 0 before there is an image.

        Raises:
            ArchiveTimeoutError: If the merge makes no progress within `progress_timeout`.
            ArchiveDisconnectedError: If the session with the archive has ended, or its client is closed.
            ArchiveError: If the archive refuses a request or sends an error that belongs to no request, or the image is
                closed before the merge is complete.
            ReentrantCallError: If another poll is under way.
        """
    def controlled_poll(
        self, handler: FragmentHandler | ViewHandler, fragment_limit: int = 10, *, copy: bool = True
    ) -> int:
        """Polls as `poll` does, with a handler that decides whether each fragment is consumed.

        Args:
            handler: Called as `handler(payload, header)`; returns an `Action`, or `None` for `Action.CONTINUE`.
            fragment_limit: Maximum number of fragments.
            copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
                returns.

        Returns:
            The number of fragments.

        Raises:
            ArchiveTimeoutError: If the merge makes no progress within `progress_timeout`.
            ArchiveDisconnectedError: If the session with the archive has ended, or its client is closed.
            ArchiveError: If the archive refuses a request or sends an error that belongs to no request, or the image is
                closed before the merge is complete.
            ReentrantCallError: If another poll is under way.
        """
    def poll_batch(self, limit: int = 4096, *, max_bytes: int = 16777216) -> Batch:
        """Takes one step, then copies the whole messages that are available now into a batch. Never blocks.

        The batch may be empty.

        Args:
            limit: Maximum number of messages in a batch.
            max_bytes: Payload length, in bytes, at which a batch is full. The last message may end beyond it.

        Returns:
            The batch.

        Raises:
            ArchiveTimeoutError: If the merge makes no progress within `progress_timeout`.
            ArchiveDisconnectedError: If the session with the archive has ended, or its client is closed.
            ArchiveError: If the archive refuses a request or sends an error that belongs to no request, or the image is
                closed before the merge is complete.
            ReentrantCallError: If another poll is under way.
        """
    @property
    def image(self) -> Image | None:
        """The image of replay and live stream; `None` before there is an image."""
    @property
    def subscription(self) -> Subscription:
        """The subscription that receives the stream."""
    @property
    def is_merged(self) -> bool:
        """Whether the merge is complete. The driver may not have removed the replay destination yet."""
    @property
    def has_failed(self) -> bool:
        """Whether an error has ended the merge."""
    @property
    def is_live_added(self) -> bool:
        """Whether the merge has requested the live destination. The driver may not have added it yet."""
    @property
    def is_closed(self) -> bool:
        """Whether the merge was closed."""
    def close(self) -> None:
        """Ends the merge.

        If the merge is not complete, its replay destination is removed and the replay is stopped. Subscription and
        archive stay open. Idempotent.

        Raises:
            ReentrantCallError: If a poll is under way.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None: ...
