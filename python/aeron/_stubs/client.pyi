"""Clients of a media driver."""

from collections.abc import Callable, Coroutine
from os import PathLike
from typing import Any, Self, final

from aeron._reconnect import Reconnect, ReconnectReport
from aeron._stubs.counters import Counter, CountersReader
from aeron._stubs.driver import MediaDriver
from aeron._stubs.operations import PendingOperation
from aeron._stubs.publication import ExclusivePublication, Publication, PublicationErrorFrame
from aeron._stubs.subscription import Subscription
from aeron.exceptions import AeronError
from aeron.metrics import DriverMetrics
from aeron.types import Channel, CounterHandler, ImageHandler

@final
class Aeron:
    """A client of a media driver.

    The constructor, also known as `aeron.connect`, waits for the driver. In a coroutine write `async with
    aeron.async_connect(driver) as client:` instead. `async with aeron.connect(driver)` works too, but
    `connect` blocks the event loop until the driver responds.

    The end of a `with` block closes the client, and everything that was opened through the client. The client
    stays open as long as a publication, a subscription, a counter or a pending operation refers to it.
    Closing the client releases its handlers. If a client is dropped without being closed, its handlers are no
    longer called. Thread-safe.

    One thread of the client calls the handlers, such as `on_available_image`. In a handler, a method that waits for
    the driver raises `ReentrantCallError`: use the method with the prefix `async_`.

    Args:
        driver: A `MediaDriver`, the directory of a driver, or `None` for the directory that `AERON_DIR` names. Without
            that variable, `None` stands for Aeron's default directory.
        driver_timeout_ms: Milliseconds to wait for the driver. Default: `AERON_DRIVER_TIMEOUT`, or `10000`.
        keepalive_interval_ns: Nanoseconds between keepalives. Default: `500000000`.
        idle_sleep_duration_ns: Sleep of the conductor between two duty cycles, in nanoseconds. Default:
            `AERON_CLIENT_IDLE_SLEEP_DURATION`, or `16000000`.
        awaiting_sleep_duration_ns: Sleep between two checks in a call that waits for the driver, in
            nanoseconds. Default: `1000000`.
        resource_linger_duration_ns: Nanoseconds for which the memory of an ended image stays mapped. Default:
            `AERON_CLIENT_RESOURCE_LINGER_DURATION`, or `3000000000`.
        close_linger_duration_ns: Nanoseconds that a closing client waits before it unmaps memory. Default:
            `0`.
        pre_touch_mapped_memory: Whether all pages of a log are touched when it is mapped. Default:
            `AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY`, or `False`.
        client_name: Name of the client in the counters. Default: `AERON_CLIENT_NAME`, or no name.
        use_conductor_agent_invoker: Whether the client has no threads, and the program calls `do_work`.
            Default: `False`.
        reconnect: Whether and how the client connects again after it has lost its driver: `True`, or a `Reconnect`.
            Default: `False`. The client is then closed for good, as in Aeron.
        max_idle_park_ns: Longest park of a waiting call, in nanoseconds, after a second without a result. Default:
            `10000000`.
        error_handler: Called as `error_handler(error)` with errors that no call can raise. Default:
            `sys.unraisablehook` shows them.
        on_available_image: Called as `on_available_image(image)` with each new image of a subscription that
            has no handlers of its own.
        on_unavailable_image: Called as `on_unavailable_image(image)` with each ended image of a subscription
            that has no handlers of its own.
        on_available_counter: Called as `on_available_counter(counters_reader, registration_id,
            counter_id)` with each new counter of any client.
        on_unavailable_counter: Called as `on_unavailable_counter(counters_reader, registration_id,
            counter_id)` with each freed counter of any client.
        on_close: Called without arguments when the client is closed.
        on_publication_error: Called as `on_publication_error(frame)` with each `PublicationErrorFrame`.
        on_disconnect: Called as `on_disconnect(error)` when a client with `reconnect` has lost its driver.
        on_reconnect: Called as `on_reconnect(report)` with a `ReconnectReport` when the client has connected again and
            the driver has all its resources.

    Raises:
        DriverTimeoutError: If no driver responds within the driver timeout.
        ConfigurationError: If a setting is not valid, or the driver has another version.
        DriverError: If the directory of the driver cannot be used.

    Example:
        ```python
        with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
            publication = client.add_publication("aeron:ipc", 1001)
        ```
    """
    def __new__(
        cls,
        driver: MediaDriver | str | PathLike[str] | None = None,
        *,
        driver_timeout_ms: int | None = None,
        keepalive_interval_ns: int | None = None,
        idle_sleep_duration_ns: int | None = None,
        awaiting_sleep_duration_ns: int | None = None,
        resource_linger_duration_ns: int | None = None,
        close_linger_duration_ns: int | None = None,
        pre_touch_mapped_memory: bool | None = None,
        client_name: str | None = None,
        use_conductor_agent_invoker: bool | None = None,
        reconnect: bool | Reconnect = False,
        max_idle_park_ns: int = 10_000_000,
        error_handler: Callable[[Exception], object] | None = None,
        on_available_image: ImageHandler | None = None,
        on_unavailable_image: ImageHandler | None = None,
        on_available_counter: CounterHandler | None = None,
        on_unavailable_counter: CounterHandler | None = None,
        on_close: Callable[[], object] | None = None,
        on_publication_error: Callable[[PublicationErrorFrame], object] | None = None,
        on_disconnect: Callable[[AeronError], object] | None = None,
        on_reconnect: Callable[[ReconnectReport], object] | None = None,
    ) -> Self: ...
    def add_publication(self, channel: Channel, stream_id: int) -> Publication:
        """Adds a publication, and waits for the driver. Publications with the same channel and stream id share one log.

        Args:
            channel: A channel URI, such as `aeron:ipc`, or a `ChannelUriBuilder`.
            stream_id: Stream id.

        Returns:
            The publication.

        Raises:
            InvalidArgumentError: If the channel is not ASCII, or is longer than 4095 bytes.
            RegistrationError: If the driver refuses the request; the subclass names the reason.
            DriverTimeoutError: If the driver does not respond within the driver timeout.
            ClientClosedError: If the client is closed.

        Example:
            ```python
            publication = client.add_publication("aeron:udp?endpoint=localhost:20121", 1001)
            ```
        """
    def add_exclusive_publication(self, channel: Channel, stream_id: int) -> ExclusivePublication:
        """Adds a publication that is the only writer of its log, and waits for the driver.

        Args:
            channel: A channel URI, such as `aeron:ipc`, or a `ChannelUriBuilder`.
            stream_id: Stream id.

        Returns:
            The publication.

        Raises:
            InvalidArgumentError: If the channel is not ASCII, or is longer than 4095 bytes.
            RegistrationError: If the driver refuses the request; the subclass names the reason.
            DriverTimeoutError: If the driver does not respond within the driver timeout.
            ClientClosedError: If the client is closed.
        """
    def add_subscription(
        self,
        channel: Channel,
        stream_id: int,
        *,
        on_available_image: ImageHandler | None = None,
        on_unavailable_image: ImageHandler | None = None,
    ) -> Subscription:
        """Adds a subscription, and waits for the driver.

        Args:
            channel: A channel URI, such as `aeron:ipc`, or a `ChannelUriBuilder`.
            stream_id: Stream id.
            on_available_image: Called as `on_available_image(image)` with each new image. If both handlers are
                `None`, the handlers of the client are called instead.
            on_unavailable_image: Called as `on_unavailable_image(image)` with each image that ended.

        Returns:
            The subscription.

        Raises:
            InvalidArgumentError: If the channel is not ASCII, or is longer than 4095 bytes.
            RegistrationError: If the driver refuses the request; the subclass names the reason.
            DriverTimeoutError: If the driver does not respond within the driver timeout.
            ClientClosedError: If the client is closed.
        """
    def add_counter(self, type_id: int, label: str, key: bytes | None = None) -> Counter:
        """Adds a counter that is freed when the client closes, and waits for the driver.

        Args:
            type_id: Type of the counter. Counters of programs have types from 1000 on.
            label: Label of the counter, up to 380 bytes.
            key: Key of the counter, up to 112 bytes.

        Returns:
            The counter.

        Raises:
            InvalidArgumentError: If `label` or `key` is too long.
            RegistrationError: If the driver refuses the request; the subclass names the reason.
            DriverTimeoutError: If the driver does not respond within the driver timeout.
            ClientClosedError: If the client is closed.
        """
    def add_static_counter(self, type_id: int, label: str, registration_id: int, key: bytes | None = None) -> Counter:
        """Adds a static counter, which outlives the client, and waits for the driver.

        If the driver already has a static counter with the same type and registration id, the call
        returns that counter.

        Args:
            type_id: Type of the counter. Counters of programs have types from 1000 on.
            label: Label of the counter, up to 380 bytes.
            registration_id: Registration id of the counter, an integer that the program chooses.
            key: Key of the counter, up to 112 bytes.

        Returns:
            The counter.

        Raises:
            InvalidArgumentError: If `label` or `key` is too long.
            RegistrationError: If the driver refuses the request; the subclass names the reason.
            DriverTimeoutError: If the driver does not respond within the driver timeout.
            ClientClosedError: If the client is closed.
        """
    def async_add_publication(self, channel: Channel, stream_id: int) -> PendingOperation[Publication]:
        """Starts `add_publication`, and returns its `PendingOperation` at once."""
    def async_add_exclusive_publication(
        self, channel: Channel, stream_id: int
    ) -> PendingOperation[ExclusivePublication]:
        """Starts `add_exclusive_publication`, and returns its `PendingOperation` at once."""
    def async_add_subscription(
        self,
        channel: Channel,
        stream_id: int,
        *,
        on_available_image: ImageHandler | None = None,
        on_unavailable_image: ImageHandler | None = None,
    ) -> PendingOperation[Subscription]:
        """Starts `add_subscription`, and returns its `PendingOperation` at once."""
    def async_add_counter(self, type_id: int, label: str, key: bytes | None = None) -> PendingOperation[Counter]:
        """Starts `add_counter`, and returns its `PendingOperation` at once."""
    def async_add_static_counter(
        self, type_id: int, label: str, registration_id: int, key: bytes | None = None
    ) -> PendingOperation[Counter]:
        """Starts `add_static_counter`, and returns its `PendingOperation` at once. It cannot be cancelled."""
    def async_remove_publication(self, registration_id: int) -> PendingOperation[bool]:
        """Removes a concurrent or exclusive publication by its registration id, without waiting for
        the driver.

        Args:
            registration_id: Registration id of the publication.

        Returns:
            A `PendingOperation` whose result is `True` if the client had the publication.

        Raises:
            ClientClosedError: If the client is closed.
        """
    def async_remove_subscription(self, registration_id: int) -> PendingOperation[bool]:
        """Removes a subscription by its registration id, without waiting for the driver.

        Args:
            registration_id: Registration id of the subscription.

        Returns:
            A `PendingOperation` whose result is `True` if the client had the subscription.

        Raises:
            ClientClosedError: If the client is closed.
        """
    def async_remove_counter(self, registration_id: int) -> PendingOperation[bool]:
        """Removes a counter by its registration id, without waiting for the driver.

        Args:
            registration_id: Registration id of the counter.

        Returns:
            A `PendingOperation` whose result is `True` if the client had the counter.

        Raises:
            ClientClosedError: If the client is closed.
        """
    def is_command_active(self, correlation_id: int) -> bool:
        """Returns whether a command was sent and has no response yet.

        Args:
            correlation_id: Correlation id of the command.

        Returns:
            `True` if the response is outstanding.
        """
    def has_active_commands(self) -> bool:
        """Returns whether any command of this client has no response yet.

        Returns:
            `True` if a response is outstanding.
        """
    def next_correlation_id(self) -> int:
        """Reserves an id that is unique among all clients and commands of the driver.

        Returns:
            The id.
        """
    def next_session_id(self, stream_id: int) -> int:
        """Reserves a session id that no publication of the stream has. Waits for the driver.

        Args:
            stream_id: Stream id.

        Returns:
            The session id.

        Raises:
            RegistrationError: If the driver refuses the request; the subclass names the reason.
            DriverTimeoutError: If the driver does not respond within the driver timeout.
            ClientClosedError: If the client is closed.
        """
    def async_next_session_id(self, stream_id: int) -> PendingOperation[int]:
        """Starts `next_session_id`, and returns its `PendingOperation` at once."""
    def add_available_counter_handler(self, handler: CounterHandler) -> int:
        """Adds a handler that is called for each new counter of any client.

        Args:
            handler: Called as `handler(counters_reader, registration_id, counter_id)` on the client's
                handler thread.

        Returns:
            An id for the removal of the handler.
        """
    def remove_available_counter_handler(self, handler_id: int) -> bool:
        """Removes a handler that `add_available_counter_handler` added.

        Args:
            handler_id: Id that `add_available_counter_handler` returned.

        Returns:
            `True` if the client had the handler.
        """
    def add_unavailable_counter_handler(self, handler: CounterHandler) -> int:
        """Adds a handler that is called for each freed counter of any client.

        Args:
            handler: Called as `handler(counters_reader, registration_id, counter_id)` on the client's
                handler thread.

        Returns:
            An id for the removal of the handler.
        """
    def remove_unavailable_counter_handler(self, handler_id: int) -> bool:
        """Removes a handler that `add_unavailable_counter_handler` added.

        Args:
            handler_id: Id that `add_unavailable_counter_handler` returned.

        Returns:
            `True` if the client had the handler.
        """
    def add_close_handler(self, handler: Callable[[], object]) -> int:
        """Adds a handler that is called once when the client is closed, by the program or by an error.

        Args:
            handler: Called without arguments.

        Returns:
            An id for the removal of the handler.
        """
    def remove_close_handler(self, handler_id: int) -> bool:
        """Removes a handler that `add_close_handler` added.

        Args:
            handler_id: Id that `add_close_handler` returned.

        Returns:
            `True` if the client had the handler.
        """
    def do_work(self) -> int:
        """Runs one duty cycle of a client without threads (`use_conductor_agent_invoker`), and its handlers.

        The time between two calls must be shorter than the driver's client liveness timeout, else the client
        closes with an error. If another thread is inside a duty cycle, the call waits for the end of that
        duty cycle. A call from a handler runs no other handlers.

        Returns:
            The amount of work; 0 if there was no work.
        """
    def close(self) -> None:
        """Closes the client and everything that was opened through it. Idempotent.

        `close` calls handlers, such as `on_close`, and waits until they have returned. There is one exception: if these
        handlers wait for the thread that called `close`, they run after `close` has returned.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None: ...
    def __aenter__(self) -> Coroutine[Any, Any, Self]: ...
    def __aexit__(self, _type: object, _error: object, _traceback: object, /) -> Coroutine[Any, Any, None]: ...
    @property
    def client_id(self) -> int:
        """Id of the client. The key of the client's heartbeat counter contains this id."""
    @property
    def aeron_dir(self) -> str:
        """Directory of the driver."""
    def metrics(self) -> DriverMetrics:
        """Reads the state of the driver, as `aeron.metrics.snapshot` does.

        Returns:
            The state, of which this client is a part.

        Raises:
            DriverTimeoutError: If there is no complete file of a driver.
            DriverError: If the file has another version or is damaged.
            OSError: If the loss report cannot be read.
        """
    @property
    def has_driver(self) -> bool:
        """Whether the client has a driver. Only a client with `reconnect` can be open without one."""
    @property
    def is_closed(self) -> bool:
        """Whether the client was closed, by the program or by an error."""
    @property
    def close_cause(self) -> Exception | None:
        """The error that closed the client; `None` while it is open, or if the program closed it."""
    @property
    def counters_reader(self) -> CountersReader:
        """A reader of all counters of the driver and its clients. After a reconnection, get another one."""

def async_connect(
    driver: MediaDriver | str | PathLike[str] | None = None,
    *,
    driver_timeout_ms: int | None = None,
    keepalive_interval_ns: int | None = None,
    idle_sleep_duration_ns: int | None = None,
    awaiting_sleep_duration_ns: int | None = None,
    resource_linger_duration_ns: int | None = None,
    close_linger_duration_ns: int | None = None,
    pre_touch_mapped_memory: bool | None = None,
    client_name: str | None = None,
    use_conductor_agent_invoker: bool | None = None,
    reconnect: bool | Reconnect = False,
    max_idle_park_ns: int = 10_000_000,
    error_handler: Callable[[Exception], object] | None = None,
    on_available_image: ImageHandler | None = None,
    on_unavailable_image: ImageHandler | None = None,
    on_available_counter: CounterHandler | None = None,
    on_unavailable_counter: CounterHandler | None = None,
    on_close: Callable[[], object] | None = None,
    on_publication_error: Callable[[PublicationErrorFrame], object] | None = None,
    on_disconnect: Callable[[AeronError], object] | None = None,
    on_reconnect: Callable[[ReconnectReport], object] | None = None,
) -> PendingOperation[Aeron]:
    """Starts `connect`, and returns its `PendingOperation` at once. `async with` closes the client.

    Example:
        ```python
        async with aeron.async_connect(driver) as client:
            publication = await client.async_add_publication("aeron:ipc", 1001)
        ```
    """

def _close_all() -> None:
    """Closes all open clients, then archives, then drivers; within each kind, the newest first. Registered with `atexit`."""
