"""Replays that merge with the live stream."""

from typing import Self, final

from aeron._stubs.archive_client import AeronArchive
from aeron._stubs.batch import Batch
from aeron._stubs.subscription import Image, Subscription
from aeron.types import Channel, FragmentHandler, ViewHandler

@final
class ReplayMerge:
    """A replay of a recording that merges with the live stream: every message once, in order, without a gap.

    The subscription has `control-mode=manual` and the `session-id` of the recorded stream, and so has
    `replay_channel`: replay and live stream arrive as one image. The merge adds the replay destination
    first and the live destination later. It removes the replay when the live stream has joined. IPC is not
    supported.

    Poll the merge until `is_merged`; then the program may poll the subscription itself. After an error
    `has_failed` is `True`, and further polls return the rest of the image.

    A context manager that ends the merge. If the merge is not complete, its replay is stopped; subscription
    and archive stay open. One thread at a time may poll it.

    Args:
        subscription: Subscription that receives the stream.
        archive: Client of the archive.
        replay_channel: Channel of the replay, with the `session-id` of the recorded stream.
        replay_destination: Destination of the subscription for the replay; its port may be 0.
        live_destination: Destination of the subscription for the live stream.
        recording_id: Id of the recording.
        start_position: Position of the first message in bytes. `None` is the start of the recording.
        progress_timeout: Seconds without progress after which the merge fails.

    Raises:
        InvalidArgumentError: If a channel is not suitable.
        ArchiveError: If the archive refuses the request; the subclass names the reason.
        ArchiveTimeoutError: If the archive does not respond within the message timeout.
        ArchiveDisconnectedError: If the archive ended the session.
        ArchiveClosedError: If the client of the archive is closed.
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
        """Makes progress without waiting.

        Returns:
            The amount of work, 0 if the merge is complete, has failed or is closed.

        Raises:
            ArchiveTimeoutError: If the merge makes no progress within `progress_timeout`.
            ArchiveError: If the archive refuses a request, or the replay fails.
            ReentrantCallError: If another poll is under way.
        """
    def poll(self, handler: FragmentHandler | ViewHandler, fragment_limit: int = 10, *, copy: bool = True) -> int:
        """Makes progress, then calls a handler for the fragments that are available now. Never blocks.

        Messages of several fragments are not joined: pass a `FragmentAssembler`, or use `poll_batch`.

        Args:
            handler: Called as `handler(payload, header)`, or a `FragmentAssembler`.
            fragment_limit: Largest number of fragments.
            copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
                returns.

        Returns:
            The number of fragments, 0 before there is an image.

        Raises:
            ArchiveTimeoutError: If the merge makes no progress within `progress_timeout`.
            ArchiveError: If the archive refuses a request, or the replay fails.
            ReentrantCallError: If another poll is under way.
        """
    def controlled_poll(
        self, handler: FragmentHandler | ViewHandler, fragment_limit: int = 10, *, copy: bool = True
    ) -> int:
        """Polls as `poll`, with a handler that controls the consumption.

        Args:
            handler: Called as `handler(payload, header)`; returns an `Action`, or `None` for `Action.CONTINUE`.
            fragment_limit: Largest number of fragments.
            copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
                returns.

        Returns:
            The number of fragments.

        Raises:
            ArchiveTimeoutError: If the merge makes no progress within `progress_timeout`.
            ArchiveError: If the archive refuses a request, or the replay fails.
            ReentrantCallError: If another poll is under way.
        """
    def poll_batch(self, limit: int = 4096, *, max_bytes: int = 16777216) -> Batch:
        """Makes progress, then copies the whole messages that are available now into a batch, which may be empty.
        Never blocks.

        Args:
            limit: Largest number of messages in a batch.
            max_bytes: Bytes of payload after which no other message is added to a batch.

        Returns:
            The batch.

        Raises:
            ArchiveTimeoutError: If the merge makes no progress within `progress_timeout`.
            ArchiveError: If the archive refuses a request, or the replay fails.
            ReentrantCallError: If another poll is under way.
        """
    @property
    def image(self) -> Image | None:
        """The image, or `None` before there is one. The same image continues with the live stream."""
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

        If it is not complete, its replay is removed and stopped. Subscription and archive stay open. Idempotent.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None: ...
