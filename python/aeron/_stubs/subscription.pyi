"""Subscriptions and their images."""

from collections.abc import Callable, Coroutine
from typing import Any, Self, final

from aeron._stubs.batch import Batch, Batches
from aeron._stubs.operations import PendingOperation, _Condition
from aeron.aio import AsyncBatches
from aeron.types import Channel, FragmentHandler, ViewHandler

@final
class Subscription:
    """A subscription to a channel and stream, with an image for each publisher.

    One thread at a time may poll the subscription. A second poll at the same time, even in a handler, raises
    `ReentrantCallError`. All other methods are thread-safe. A closed subscription has no images, and
    polling it returns 0. If the driver or the client ended, every poll raises `SubscriptionClosedError`.
    The text of the error contains the last position of each image. If a peer has damaged the log of an image, a
    poll raises `CorruptLogError` once, and the image is closed.

    Example:
        ```python
        subscription = client.add_subscription("aeron:ipc", 1001)
        for batch in subscription.batches(timeout=1):
            for payload in batch:
                print(bytes(payload))
        ```
    """
    def poll(self, handler: FragmentHandler | ViewHandler, fragment_limit: int = 10, *, copy: bool = True) -> int:
        """Calls a handler for the fragments of all images that are available now. Never blocks.

        Args:
            handler: Called as `handler(payload, header)`, or a `FragmentAssembler`.
            fragment_limit: Maximum number of fragments.
            copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
                returns.

        Returns:
            The number of fragments.

        Raises:
            SubscriptionClosedError: If the driver or the client ended.
            ReentrantCallError: If another poll is under way.

        Example:
            ```python
            subscription.poll(lambda payload, header: print(payload, header.position))
            ```
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
            SubscriptionClosedError: If the driver or the client ended.
            ReentrantCallError: If another poll is under way.
        """
    def block_poll(self, handler: Callable[[bytes, int, int], object], block_length_limit: int) -> int:
        """Calls a handler with one block of whole frames of each image that has frames. Never blocks.

        Args:
            handler: Called as `handler(block, session_id, term_id)`, where `block` is `bytes` of frames with
                their headers.
            block_length_limit: Maximum length of a block, in bytes.

        Returns:
            The number of bytes that the handler got.

        Raises:
            SubscriptionClosedError: If the driver or the client ended.
            ReentrantCallError: If another poll is under way.
        """
    def raw_poll(self, handler: Callable[[int, bytes, int, int], object], block_length_limit: int) -> int:
        """Calls a handler with one block of whole frames of each image, and with the offset of the block in the log
        file. Never blocks.

        Args:
            handler: Called as `handler(file_offset, block, session_id, term_id)`. `file_offset` is the offset
                of the block in the log file, in bytes.
            block_length_limit: Maximum length of a block, in bytes.

        Returns:
            The number of bytes that the handler got.

        Raises:
            SubscriptionClosedError: If the driver or the client ended.
            ReentrantCallError: If another poll is under way.
        """
    def poll_batch(self, limit: int = 4096, *, max_bytes: int = 16777216) -> Batch:
        """Copies the whole messages that are available now into a batch, which may be empty. Never blocks.

        Args:
            limit: Maximum number of messages in a batch.
            max_bytes: Payload length, in bytes, at which a batch is full. The last message may end beyond it.

        Returns:
            The batch.

        Raises:
            SubscriptionClosedError: If the driver or the client ended.
            ArchiveError: If the replay of an archive ended before it was complete.
            ReentrantCallError: If another poll is under way.
            MemoryError: If there is no memory for the first message. In this case, nothing was consumed. If
                there is no memory for a later message, the batch ends before that message.
        """
    def batches(self, limit: int = 4096, *, timeout: float | None = None, max_bytes: int = 16777216) -> Batches:
        """Iterates over batches of messages as they arrive, for use in a `for` loop.

        The iterator ends if the subscription is closed, nothing arrives for `timeout` seconds, or the replay of
        an archive is complete.

        Args:
            limit: Maximum number of messages in a batch.
            timeout: Seconds to wait for a next batch. `None` waits without a limit.
            max_bytes: Payload length, in bytes, at which a batch is full. The last message may end beyond it.

        Returns:
            An iterator of batches that are not empty.

        Raises:
            SubscriptionClosedError: If the driver or the client ended.
            ArchiveError: If the replay of an archive ended before it was complete.
            ReentrantCallError: If another poll is under way.
        """
    def batches_async(self, limit: int = 4096, *, max_bytes: int = 16777216) -> AsyncBatches:
        """Iterates over batches of messages as they arrive, for use in an `async for` loop.

        The iterator ends if the subscription is closed, or the replay of an archive is complete. A cancelled
        wait loses no message and does not end the iterator.

        Args:
            limit: Maximum number of messages in a batch.
            max_bytes: Payload length, in bytes, at which a batch is full. The last message may end beyond it.

        Returns:
            An asynchronous iterator of batches that are not empty.

        Raises:
            SubscriptionClosedError: If the driver or the client ended.
            ArchiveError: If the replay of an archive ended before it was complete.
            ReentrantCallError: If another poll is under way.
        """
    def __aiter__(self) -> AsyncBatches: ...
    def _look(self, limit: int = 4096, max_bytes: int = 16777216, spin_ns: int = 0) -> Batch | None: ...
    @property
    def _is_over(self) -> bool: ...
    @property
    def _is_ready(self) -> _Condition: ...
    def wait_connected(self, timeout: float | None = None) -> None:
        """Waits for a publisher.

        Args:
            timeout: Seconds to wait. `None` waits without a limit.

        Raises:
            NotConnectedError: If no publisher connects within `timeout`.
            SubscriptionClosedError: If the subscription, its client or its driver is closed.
        """
    def wait_connected_async(self, timeout: float | None = None) -> Coroutine[Any, Any, None]:
        """Waits for a publisher without blocking the event loop.

        Args:
            timeout: Seconds to wait. `None` waits without a limit.

        Returns:
            A coroutine that returns `None`.

        Raises:
            NotConnectedError: If no publisher connects within `timeout`.
            SubscriptionClosedError: If the subscription, its client or its driver is closed.
        """
    @property
    def _is_connected_or_closed(self) -> _Condition: ...
    def close(self) -> None:
        """Closes the subscription and its images without waiting for the driver.

        Any thread may call `close`, even in a handler. Idempotent.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None: ...
    def image_at_index(self, index: int) -> Image:
        """Returns an image by its index in `images`.

        Args:
            index: Index of the image, from 0.

        Returns:
            The image.

        Raises:
            IndexRangeError: If the index is not less than `image_count`.
        """
    def image_by_session_id(self, session_id: int) -> Image | None:
        """Finds the image of a session.

        Args:
            session_id: Session id of the publisher.

        Returns:
            The image, or `None`.
        """
    def try_resolve_channel_endpoint_port(self) -> str | None:
        """Returns the channel, with the bound port in place of an endpoint's port 0.

        Returns:
            The channel; `None` if its port is 0 and no port is bound yet.
        """
    def add_destination(self, channel: Channel) -> None:
        """Adds a destination to a channel with `control-mode=manual`, and waits for the driver.

        Args:
            channel: Channel of the destination, such as `aeron:udp?endpoint=host:port`.

        Raises:
            RegistrationError: If the driver refuses the request; the subclass names the reason.
            DriverTimeoutError: If the driver does not respond within the driver timeout.
            SubscriptionClosedError: If the subscription, its client or its driver is closed.
        """
    def remove_destination(self, channel: Channel) -> None:
        """Removes a destination, and waits for the driver.

        Args:
            channel: Channel with which the destination was added.

        Raises:
            RegistrationError: If the driver refuses the request; the subclass names the reason.
            DriverTimeoutError: If the driver does not respond within the driver timeout.
            SubscriptionClosedError: If the subscription, its client or its driver is closed.
        """
    def async_add_destination(self, channel: Channel) -> PendingOperation[None]:
        """Starts `add_destination`, and returns its `PendingOperation` at once."""
    def async_remove_destination(self, channel: Channel) -> PendingOperation[None]:
        """Starts `remove_destination`, and returns its `PendingOperation` at once. It cannot be cancelled."""
    @property
    def channel(self) -> str:
        """Channel URI that the program passed."""
    @property
    def stream_id(self) -> int:
        """Stream id that the program passed."""
    @property
    def registration_id(self) -> int:
        """Registration id of the subscription in the driver."""
    @property
    def is_closed(self) -> bool:
        """Whether the subscription or its client is closed."""
    @property
    def is_connected(self) -> bool:
        """Whether any image is open."""
    @property
    def has_no_images(self) -> bool:
        """Whether no publisher is connected."""
    @property
    def image_count(self) -> int:
        """Number of connected publishers."""
    @property
    def images(self) -> list[Image]:
        """The images, as a list."""
    @property
    def channel_status_id(self) -> int:
        """Counter id of the channel's status; -1 for channels without a status (IPC and spies)."""
    @property
    def channel_status(self) -> int:
        """Status of the channel, a value of `ChannelStatus`.

        1 is active, 0 initialising, -1 errored or closed, 2 closing. An open subscription to IPC, or of a spy, is
        always active.
        """
    @property
    def local_socket_addresses(self) -> list[str]:
        """Addresses on which the channel receives while it is active; empty for IPC and spies."""
    @property
    def resolved_endpoint(self) -> str | None:
        """The first address on which the channel receives, or `None`."""

@final
class Image:
    """The stream of one publisher in one subscription.

    One thread at a time may poll the image, directly or through its subscription. All other methods are
    thread-safe. A closed image keeps its last values, and polling it returns 0. If the driver or the client
    ended, every poll raises `SubscriptionClosedError`.
    """
    def poll(self, handler: FragmentHandler | ViewHandler, fragment_limit: int = 10, *, copy: bool = True) -> int:
        """Calls a handler for the fragments of this image that are available now. Never blocks.

        Args:
            handler: Called as `handler(payload, header)`, or a `FragmentAssembler`.
            fragment_limit: Maximum number of fragments.
            copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
                returns.

        Returns:
            The number of fragments.

        Raises:
            SubscriptionClosedError: If the driver or the client ended.
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
            SubscriptionClosedError: If the driver or the client ended.
            ReentrantCallError: If another poll is under way.
        """
    def bounded_poll(
        self,
        handler: FragmentHandler | ViewHandler,
        limit_position: int,
        fragment_limit: int = 10,
        *,
        copy: bool = True,
    ) -> int:
        """Polls as `poll` does, up to a position.

        Args:
            handler: Called as `handler(payload, header)`, or a `FragmentAssembler`.
            limit_position: Position in bytes: only fragments that begin before this position are polled.
            fragment_limit: Maximum number of fragments.
            copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
                returns.

        Returns:
            The number of fragments.

        Raises:
            SubscriptionClosedError: If the driver or the client ended.
            ReentrantCallError: If another poll is under way.
        """
    def bounded_controlled_poll(
        self,
        handler: FragmentHandler | ViewHandler,
        limit_position: int,
        fragment_limit: int = 10,
        *,
        copy: bool = True,
    ) -> int:
        """Polls as `controlled_poll` does, up to a position.

        Args:
            handler: Called as `handler(payload, header)`; returns an `Action`, or `None` for `Action.CONTINUE`.
            limit_position: Position in bytes: only fragments that begin before this position are polled.
            fragment_limit: Maximum number of fragments.
            copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
                returns.

        Returns:
            The number of fragments.

        Raises:
            SubscriptionClosedError: If the driver or the client ended.
            ReentrantCallError: If another poll is under way.
        """
    def block_poll(self, handler: Callable[[bytes, int, int], object], block_length_limit: int) -> int:
        """Calls a handler with one block of whole frames, if frames are available. Never blocks.

        Args:
            handler: Called as `handler(block, session_id, term_id)`, where `block` is `bytes` of frames with
                their headers.
            block_length_limit: Maximum length of a block, in bytes.

        Returns:
            The number of bytes that the handler got.

        Raises:
            SubscriptionClosedError: If the driver or the client ended.
            ReentrantCallError: If another poll is under way.
        """
    def raw_poll(self, handler: Callable[[int, bytes, int, int], object], block_length_limit: int) -> int:
        """Calls a handler with one block of whole frames, and the block's offset in the log file. Never blocks.

        Args:
            handler: Called as `handler(file_offset, block, session_id, term_id)`. `file_offset` is the offset
                of the block in the log file, in bytes.
            block_length_limit: Maximum length of a block, in bytes.

        Returns:
            The number of bytes that the handler got.

        Raises:
            SubscriptionClosedError: If the driver or the client ended.
            ReentrantCallError: If another poll is under way.
        """
    def reject(self, reason: str) -> None:
        """Asks the driver to reject the image, and waits for the driver. The publisher gets the reason.

        Args:
            reason: Text for the publisher, up to 1023 bytes.

        Raises:
            RegistrationError: If the driver refuses the request; the subclass names the reason.
            DriverTimeoutError: If the driver does not respond within the driver timeout.
            ImageClosedError: If the image is closed.
            AeronError: If the subscription is a spy.
        """
    def async_reject(self, reason: str) -> PendingOperation[None]:
        """Starts `reject`, and returns its `PendingOperation` at once. It cannot be cancelled."""
    @property
    def session_id(self) -> int:
        """Session id, which distinguishes the publishers of a channel and stream."""
    @property
    def stream_id(self) -> int:
        """Stream id of the subscription."""
    @property
    def correlation_id(self) -> int:
        """Id of the image: for IPC, the registration id of the publication; else an id that the driver chose."""
    @property
    def subscription_registration_id(self) -> int:
        """Registration id of the subscription of the image."""
    @property
    def source_identity(self) -> str:
        """Source of the stream: `aeron:ipc`, or the address and port of the sender."""
    @property
    def subscriber_position_id(self) -> int:
        """Counter id of the subscriber's position."""
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
    def mtu_length(self) -> int:
        """Length of the longest frame of the stream, in bytes."""
    @property
    def join_position(self) -> int:
        """Position at which the subscription joined the stream, in bytes."""
    @property
    def position(self) -> int:
        """Position up to which the subscription has consumed the stream, in bytes.

        A closed image keeps its last position.
        """
    @property
    def is_closed(self) -> bool:
        """Whether the stream ended or was lost, or the subscription or its client is closed."""
    @property
    def is_end_of_stream(self) -> bool:
        """Whether the publisher ended the stream, and the subscription has consumed all of it."""
    @property
    def end_of_stream_position(self) -> int:
        """Position at which the stream ended, in bytes; 2**63 - 1 before its end."""
    @property
    def active_transport_count(self) -> int:
        """Number of transports on which the stream is received; 0 for IPC and for a closed image."""
    @property
    def is_publication_revoked(self) -> bool:
        """Whether the publisher revoked the stream."""
