"""Media drivers inside this process, and what finds and ends other drivers."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Literal, Self, final

from aeron.loss import Loss
from aeron.metrics import DriverMetrics

@final
class MediaDriver:
    """A media driver inside this process. Thread-safe.

    Every setting of Aeron's driver is a keyword. The keyword of a time ends in its unit, and lengths are in
    bytes. If a setting is not passed, its environment variable is used, otherwise its default. The
    documentation page of all settings names the variables. `MediaDriver.settings()` returns the defaults of
    this process, which depend on its environment variables.

    Some defaults differ from those of `aeronmd`: all agents share one thread (`threading_mode="SHARED"`),
    there is room for 16,384 counters (`counters_values_buffer_length`), and an idle driver parks longer
    (`max_idle_park_ns`). The directory is a new one, which is removed when the driver closes. If the
    process is killed, the next embedded driver removes the directory.

    A client that `aeron.connect(driver)` creates runs the driver's sender and receiver itself while the
    client's polls find nothing. A client that `aeron.connect(driver.dir)` creates does not. The end of a
    `with` block closes the driver.

    Args:
        dir: Directory of the driver's files. Default: a fresh directory beside the default one.
        dir_delete_on_start: Delete the files of an earlier driver without saving its errors, even if its
            CnC file is damaged. An active driver's files are never deleted. Default: `False`.
        dir_delete_on_shutdown: Remove the driver's files and the directory when the driver closes. Default:
            `True`.
        dir_warn_if_exists: Warn on stderr when the directory exists. Default: `False`.
        threading_mode: Distribution of the agents over threads. One of `DEDICATED`, `SHARED_NETWORK`,
            `SHARED`, `INVOKER`. Default: `'SHARED'`.
        thread_naming: Names of the threads: `classic` as in Aeron 1.52, or `new` as in Aeron 1.53. One of
            `classic`, `new`. Default: `'classic'`.
        driver_timeout_ms: Age of the driver's heartbeat, in milliseconds, after which the driver counts as
            dead. Default: `10000` milliseconds.
        print_configuration: Print all settings to stdout at the start. Default: `False`.
        termination_validator: Validator of termination commands: `allow` or `deny`, or a class name such as
            `io.aeron.driver.DefaultAllowTerminationValidator`. Default: `'deny'`.
        enable_experimental_features: Has no effect. Default: `False`.
        perform_storage_checks: Check the free space before a log file is created. Default: `True`.
        low_file_store_warning_threshold: Warn in the error log when less space than this is free. Default:
            `167772160` bytes.
        file_page_size: Lengths of files are rounded up to a multiple of this page size. It is a power of
            two, at most 1 GiB. Default: `4096` bytes.
        to_driver_buffer_length: Length of the ring buffer for the clients' commands: a power of two + 768.
            Default: `1049344` bytes.
        to_clients_buffer_length: Length of the broadcast buffer for events to clients: a power of two +
            128. Default: `1048704` bytes.
        counters_values_buffer_length: Length of the counters' values; their metadata needs four times as
            much in addition. Default: `2097152` bytes.
        error_buffer_length: Length of the distinct error log. Default: `4194304` bytes.
        loss_report_buffer_length: Length of the loss report file. Default: `1048576` bytes.
        term_buffer_length: Term length of network publications. Default: `16777216` bytes.
        ipc_term_buffer_length: Term length of IPC publications. Default: `67108864` bytes.
        term_buffer_sparse_file: Create sparse log files. Default: `True`.
        mtu_length: Maximum length of the datagrams of network publications. Default: `1408` bytes.
        ipc_mtu_length: Maximum length of the frames of IPC publications. Default: `1408` bytes.
        publication_window_length: Maximum distance of network publishers from their slowest consumer; 0
            stands for half a term. Default: `0` bytes.
        ipc_publication_window_length: Maximum distance of IPC publishers from their slowest consumer; 0
            stands for half a term. Default: `0` bytes.
        initial_window_length: Initial window of a receiver. Default: `131072` bytes.
        socket_rcvbuf: Length of the sockets' receive buffers; 0 stands for the system's default. Default:
            `131072` bytes.
        socket_sndbuf: Length of the sockets' send buffers; 0 stands for the system's default. Default: `0`
            bytes.
        multicast_ttl: Time to live of multicast datagrams; 0 stands for the system's default. Default: `0`.
        client_liveness_timeout_ns: Time without a keepalive after which a client counts as dead. Default:
            `10000000000` nanoseconds.
        timer_interval_ns: Interval of the checks for all timeouts. Default: `1000000000` nanoseconds.
        publication_unblock_timeout_ns: Time after which the driver skips an unfinished claim that blocks a
            publication. Default: `15000000000` nanoseconds.
        publication_connection_timeout_ns: Time without a status message after which a network publication
            is not connected. Default: `5000000000` nanoseconds.
        publication_linger_timeout_ns: Time for which a drained network publication is kept. Default:
            `5000000000` nanoseconds.
        image_liveness_timeout_ns: Time without data or heartbeats after which an image ends. Also the time
            for which a rejected IPC image is unavailable. Default: `10000000000` nanoseconds.
        status_message_timeout_ns: Maximum time between two status messages. Default: `200000000`
            nanoseconds.
        counter_free_to_reuse_timeout_ns: Time during which the id of a freed counter is not reused.
            Default: `1000000000` nanoseconds.
        untethered_window_limit_timeout_ns: Time that a slow untethered subscriber may hold back the
            publisher. Default: `5000000000` nanoseconds.
        untethered_linger_timeout_ns: Time that an unlinked untethered subscriber may continue to read;
            `None` stands for the window limit timeout. Default: none.
        untethered_resting_timeout_ns: Time that an unlinked untethered subscriber rests before it rejoins.
            Default: `10000000000` nanoseconds.
        re_resolution_check_interval_ns: Interval of the checks for changed addresses; 0 turns them off.
            Default: `1000000000` nanoseconds.
        conductor_cycle_threshold_ns: Duty cycles of the conductor that take longer than this time are
            counted. Default: `100000000` nanoseconds.
        sender_cycle_threshold_ns: Duty cycles of the sender that take longer than this time are counted.
            Default: `100000000` nanoseconds.
        receiver_cycle_threshold_ns: Duty cycles of the receiver that take longer than this time are
            counted. Default: `100000000` nanoseconds.
        name_resolver_threshold_ns: Name resolutions that take longer than this time are counted. Default:
            `5000000000` nanoseconds.
        reliable_stream: Default of the channel's `reliable`. Default: `True`.
        tether_subscriptions: Default of the channel's `tether`. Default: `True`.
        rejoin_stream: Default of the channel's `rejoin`. Default: `True`.
        receiver_group_consideration: Default of the channel's `group`. One of `infer`, `true`, `false`.
            Default: `'infer'`.
        spies_simulate_connection: Default of the channel's `ssc`. Default: `False`.
        publication_reserved_session_id_low: First id of the session ids that the driver never allocates.
            Default: `-1`.
        publication_reserved_session_id_high: Last id of the session ids that the driver never allocates.
            Default: `1000`.
        stream_session_limit: Maximum number of sessions for each stream of a receive endpoint. Default:
            `2147483647`.
        max_resend: Default of the channel's `max-resend`. Default: `16`.
        retransmit_unicast_delay_ns: Delay of a unicast retransmit. Default: `0` nanoseconds.
        retransmit_unicast_linger_ns: Time after a unicast retransmit during which NAKs for the same range
            are ignored. Default: `10000000` nanoseconds.
        nak_multicast_group_size: Estimated number of receivers of a multicast stream. Default: `10`.
        nak_multicast_max_backoff_ns: Maximum delay of a multicast NAK. Default: `10000000` nanoseconds.
        nak_unicast_delay_ns: Delay of a unicast NAK. Default: `1000` nanoseconds.
        nak_unicast_retry_delay_ratio: Interval between repeated unicast NAKs for the same gap, as a
            multiple of the NAK's delay. Default: `100`.
        unicast_flow_control_supplier: Flow control of unicast publications: a short name, or a class name
            such as `io.aeron.driver.DefaultUnicastFlowControlSupplier`. Default: `'unicast_max'`.
        multicast_flow_control_supplier: Flow control of multicast publications whose channel has no `fc`:
            `multicast_max`, `multicast_min` or `multicast_tagged`, or a class name such as
            `io.aeron.driver.MinMulticastFlowControlSupplier`. Default: `'multicast_max'`.
        flow_control_group_tag: Default group tag of tagged flow control. Default: `-1`.
        flow_control_group_min_size: Default number of receivers that flow control requires. Default: `0`.
        flow_control_receiver_timeout_ns: Time without a status message after which flow control removes a
            receiver. Default: `5000000000` nanoseconds.
        receiver_group_tag: Default of the channel's `gtag`. Default: none.
        congestion_control_supplier: Congestion control of channels without `cc`: `default`, `static` or
            `cubic`, or a class name such as `io.aeron.driver.ext.CubicCongestionControlSupplier`. Default:
            `'default'`.
        cubic_measure_rtt: Whether cubic congestion control measures the round trip. Default: `False`.
        cubic_initial_rtt_ns: Round trip that cubic congestion control assumes before the first measurement.
            Default: `100000` nanoseconds.
        cubic_tcp_mode: Whether the window of cubic congestion control grows at least as fast as the window
            of TCP. Default: `False`.
        name_resolver_supplier: Name resolver: `default`, `driver` or `csv_table`, or the class name
            `io.aeron.driver.DefaultNameResolver`. Default: `'default'`.
        name_resolver_init_args: Arguments of the name resolver. Default: none.
        resolver_name: Name under which this driver announces itself to other drivers. Default: none.
        resolver_interface: Local address for the protocol between name resolvers. Default: none.
        resolver_bootstrap_neighbor: Bootstrap neighbours of the resolver: `host:port`, separated by commas.
            Default: none.
        resolver_neighbor_timeout_ns: Time without an announcement after which a neighbour is removed.
            Default: `10000000000` nanoseconds.
        resolver_self_resolution_interval_ns: Interval at which this driver announces itself to other
            drivers. Default: `1000000000` nanoseconds.
        resolver_neighbor_resolution_interval_ns: Interval at which this driver announces its known
            neighbours to other drivers. Default: `2000000000` nanoseconds.
        resolver_bootstrap_neighbor_resolution_interval_ns: Interval of the resolutions of bootstrap
            neighbours. Default: `10000000000` nanoseconds.
        sender_wildcard_port_range: Port range for senders without a fixed port, `low high`; `0 0` leaves
            the choice to the system. Default: `'0 0'`.
        receiver_wildcard_port_range: Port range for receivers without a fixed port, `low high`; `0 0`
            leaves the choice to the system. Default: `'0 0'`.
        connect_enabled: Whether the sockets of unicast publications are connected. Default: `True`.
        udp_channel_transport_bindings: Socket layer of the sender and the receiver. Default: `'default'`.
        conductor_udp_channel_transport_bindings: Socket layer of the name resolver. Default: `'default'`.
        udp_channel_outgoing_interceptors: Interceptors of outgoing datagrams, separated by commas. Default:
            none.
        udp_channel_incoming_interceptors: Interceptors of incoming datagrams, separated by commas. Default:
            none.
        udp_channel_transport_bindings_loss_args: Arguments of the interceptor `loss`:
            `rate=…|seed=…|recv-msg-mask=…`. Default: none.
        udp_channel_transport_bindings_fixed_loss_args: Arguments of the interceptor `fixed-loss`:
            `term-id=…|term-offset=…|length=…`. Default: none.
        udp_channel_transport_bindings_multi_gap_loss_args: Arguments of the interceptor `multi-gap-loss`:
            `term-id=…|gap-radix=…|gap-length=…|total-gaps=…`. Default: none.
        udp_gso: Let the kernel cut GSO batches into datagrams, if it can. Default: `True`.
        udp_gro: Let the kernel deliver several datagrams in one buffer (GRO), if it can. Default: `True`.
        conductor_idle_strategy: Idle strategy of the conductor. Default: `'backoff'`.
        conductor_idle_strategy_init_args: Arguments of `conductor_idle_strategy`. Default: none.
        sender_idle_strategy: Idle strategy of the sender. Default: `'backoff'`.
        sender_idle_strategy_init_args: Arguments of `sender_idle_strategy`. Default: none.
        receiver_idle_strategy: Idle strategy of the receiver. Default: `'backoff'`.
        receiver_idle_strategy_init_args: Arguments of `receiver_idle_strategy`. Default: none.
        shared_network_idle_strategy: Idle strategy of the thread that sender and receiver share. Default:
            `'backoff'`.
        shared_network_idle_strategy_init_args: Arguments of `shared_network_idle_strategy`. Default: none.
        shared_idle_strategy: Idle strategy of the thread that all agents share. Default: `'backoff'`.
        shared_idle_strategy_init_args: Arguments of `shared_idle_strategy`. Default: none.
        native_resource_agent_idle_strategy: Idle strategy of the native resource agent. Default:
            `'sleep-ns'`.
        native_resource_agent_idle_strategy_init_args: Arguments of `native_resource_agent_idle_strategy`.
            Default: `'1ms'`.
        conductor_cpu_affinity: CPU of the conductor's thread; -1 allows any. Default: `-1`.
        sender_cpu_affinity: CPU of the sender's thread; -1 allows any. Default: `-1`.
        receiver_cpu_affinity: CPU of the receiver's thread; -1 allows any. Default: `-1`.
        native_resource_agent_cpu_affinity: CPU of the native resource agent's thread; -1 allows any.
            Default: `-1`.
        cpuset_affinity: Take the CPUs of the threads from the cpuset of the process. Default: `False`.
        cpuset_warnings_as_errors: Whether problems with the cpuset prevent the start. Default: `False`.
        agent_on_start_function: Function of a C library to call at the start of a thread. Not supported:
            any name is refused. Default: none.
        dynamic_libraries: C libraries to load. Not supported: any name is refused. Default: none.
        send_to_status_poll_ratio: Maximum number of consecutive duty cycles that send without polling for
            status messages. Default: `6`.
        receiver_io_vector_capacity: Maximum number of datagrams in a receive call. Default: `4`.
        sender_io_vector_capacity: Maximum number of datagrams in a send call. Default: `4`.
        network_publication_max_messages_per_send: Maximum number of datagrams of a publication in a duty
            cycle. Default: `4`.
        sender_batch_wait_ns: Maximum time that small messages of a busy publication wait for others to
            share their datagram; 0 sends them at once. Default: `20000` nanoseconds.
        resource_free_limit: Maximum number of failed removals of log files that are repeated in a duty
            cycle. Default: `1`.
        max_idle_park_ns: Longest park of an idle agent in nanoseconds, after a second without work. 0 keeps
            the strategy's own limit. Default: `10000000`.
        incoming_loss: For tests: a `RandomLoss`, `FixedLoss` or `MultiGapLoss`, or several of different
            kinds. Default: no loss.

    Raises:
        ConfigurationError: If a setting is not valid, or contradicts another setting.
        DriverActiveError: If a live driver owns the directory.
        DriverError: If the directory cannot be used.

    Example:
        ```python
        with aeron.MediaDriver(threading_mode="DEDICATED", mtu_length=8192) as driver:
            print(driver.dir)
        ```
    """
    def __new__(
        cls,
        *,
        dir: str | PathLike[str] = ...,
        dir_delete_on_start: bool = False,
        dir_delete_on_shutdown: bool = True,
        dir_warn_if_exists: bool = False,
        threading_mode: Literal["DEDICATED", "SHARED_NETWORK", "SHARED", "INVOKER"] = "SHARED",
        thread_naming: Literal["classic", "new"] = "classic",
        driver_timeout_ms: int = 10000,
        print_configuration: bool = False,
        termination_validator: str = "deny",
        enable_experimental_features: bool = False,
        perform_storage_checks: bool = True,
        low_file_store_warning_threshold: int = 167772160,
        file_page_size: int = 4096,
        to_driver_buffer_length: int = 1049344,
        to_clients_buffer_length: int = 1048704,
        counters_values_buffer_length: int = 2097152,
        error_buffer_length: int = 4194304,
        loss_report_buffer_length: int = 1048576,
        term_buffer_length: int = 16777216,
        ipc_term_buffer_length: int = 67108864,
        term_buffer_sparse_file: bool = True,
        mtu_length: int = 1408,
        ipc_mtu_length: int = 1408,
        publication_window_length: int = 0,
        ipc_publication_window_length: int = 0,
        initial_window_length: int = 131072,
        socket_rcvbuf: int = 131072,
        socket_sndbuf: int = 0,
        multicast_ttl: int = 0,
        client_liveness_timeout_ns: int = 10000000000,
        timer_interval_ns: int = 1000000000,
        publication_unblock_timeout_ns: int = 15000000000,
        publication_connection_timeout_ns: int = 5000000000,
        publication_linger_timeout_ns: int = 5000000000,
        image_liveness_timeout_ns: int = 10000000000,
        status_message_timeout_ns: int = 200000000,
        counter_free_to_reuse_timeout_ns: int = 1000000000,
        untethered_window_limit_timeout_ns: int = 5000000000,
        untethered_linger_timeout_ns: int = ...,
        untethered_resting_timeout_ns: int = 10000000000,
        re_resolution_check_interval_ns: int = 1000000000,
        conductor_cycle_threshold_ns: int = 100000000,
        sender_cycle_threshold_ns: int = 100000000,
        receiver_cycle_threshold_ns: int = 100000000,
        name_resolver_threshold_ns: int = 5000000000,
        reliable_stream: bool = True,
        tether_subscriptions: bool = True,
        rejoin_stream: bool = True,
        receiver_group_consideration: Literal["infer", "true", "false"] = "infer",
        spies_simulate_connection: bool = False,
        publication_reserved_session_id_low: int = -1,
        publication_reserved_session_id_high: int = 1000,
        stream_session_limit: int = 2147483647,
        max_resend: int = 16,
        retransmit_unicast_delay_ns: int = 0,
        retransmit_unicast_linger_ns: int = 10000000,
        nak_multicast_group_size: int = 10,
        nak_multicast_max_backoff_ns: int = 10000000,
        nak_unicast_delay_ns: int = 1000,
        nak_unicast_retry_delay_ratio: int = 100,
        unicast_flow_control_supplier: str = "unicast_max",
        multicast_flow_control_supplier: str = "multicast_max",
        flow_control_group_tag: int = -1,
        flow_control_group_min_size: int = 0,
        flow_control_receiver_timeout_ns: int = 5000000000,
        receiver_group_tag: int = ...,
        congestion_control_supplier: str = "default",
        cubic_measure_rtt: bool = False,
        cubic_initial_rtt_ns: int = 100000,
        cubic_tcp_mode: bool = False,
        name_resolver_supplier: str = "default",
        name_resolver_init_args: str = "",
        resolver_name: str = "",
        resolver_interface: str = "",
        resolver_bootstrap_neighbor: str = "",
        resolver_neighbor_timeout_ns: int = 10000000000,
        resolver_self_resolution_interval_ns: int = 1000000000,
        resolver_neighbor_resolution_interval_ns: int = 2000000000,
        resolver_bootstrap_neighbor_resolution_interval_ns: int = 10000000000,
        sender_wildcard_port_range: str = "0 0",
        receiver_wildcard_port_range: str = "0 0",
        connect_enabled: bool = True,
        udp_channel_transport_bindings: str = "default",
        conductor_udp_channel_transport_bindings: str = "default",
        udp_channel_outgoing_interceptors: str = "",
        udp_channel_incoming_interceptors: str = "",
        udp_channel_transport_bindings_loss_args: str = "",
        udp_channel_transport_bindings_fixed_loss_args: str = "",
        udp_channel_transport_bindings_multi_gap_loss_args: str = "",
        udp_gso: bool = True,
        udp_gro: bool = True,
        conductor_idle_strategy: str = "backoff",
        conductor_idle_strategy_init_args: str = "",
        sender_idle_strategy: str = "backoff",
        sender_idle_strategy_init_args: str = "",
        receiver_idle_strategy: str = "backoff",
        receiver_idle_strategy_init_args: str = "",
        shared_network_idle_strategy: str = "backoff",
        shared_network_idle_strategy_init_args: str = "",
        shared_idle_strategy: str = "backoff",
        shared_idle_strategy_init_args: str = "",
        native_resource_agent_idle_strategy: str = "sleep-ns",
        native_resource_agent_idle_strategy_init_args: str = "1ms",
        conductor_cpu_affinity: int = -1,
        sender_cpu_affinity: int = -1,
        receiver_cpu_affinity: int = -1,
        native_resource_agent_cpu_affinity: int = -1,
        cpuset_affinity: bool = False,
        cpuset_warnings_as_errors: bool = False,
        agent_on_start_function: str = "",
        dynamic_libraries: str = "",
        send_to_status_poll_ratio: int = 6,
        receiver_io_vector_capacity: int = 4,
        sender_io_vector_capacity: int = 4,
        network_publication_max_messages_per_send: int = 4,
        sender_batch_wait_ns: int = 20000,
        resource_free_limit: int = 1,
        max_idle_park_ns: int = ...,
        incoming_loss: Loss | Iterable[Loss] | None = ...,
    ) -> Self: ...
    @staticmethod
    def settings() -> dict[str, bool | int | str]:
        """Returns all settings with their defaults in this process, which depend on its environment variables.

        A variable with a value that is not valid has no effect. Such a value causes a `UserWarning`, except for a
        setting that is `True` or `False`.

        Returns:
            A dictionary from names to values.
        """
    @property
    def configuration(self) -> dict[str, bool | int | str]:
        """The settings of this driver: a dictionary from names to values."""
    def metrics(self) -> DriverMetrics:
        """Reads the state of the driver, as `aeron.metrics.snapshot` does.

        Returns:
            The state.

        Raises:
            DriverTimeoutError: If the driver is closed.
            OSError: If the loss report cannot be read.
        """
    @property
    def dir(self) -> str:
        """Directory of the driver."""
    @property
    def threading_mode(self) -> Literal["DEDICATED", "SHARED_NETWORK", "SHARED", "INVOKER"]:
        """`DEDICATED`, `SHARED_NETWORK`, `SHARED` or `INVOKER`."""
    @property
    def is_terminated(self) -> bool:
        """Whether the driver has accepted a termination command, or is closed.

        A termination command does not stop the driver: it runs until the program closes it.
        """
    @property
    def is_closed(self) -> bool:
        """Whether the driver was closed."""
    def do_work(self) -> int:
        """Runs one duty cycle of a driver in mode `INVOKER`. Call it often, from one thread at a time.

        Returns:
            The amount of work; 0 if there was no work.

        Raises:
            ReentrantCallError: If another thread uses the driver at the same time: it runs the duty cycle, reads
                `is_terminated` or `is_closed`, or closes the driver.
        """
    def close(self) -> None:
        """Closes the driver. Clients detect the end because the driver's heartbeat ends. Idempotent.

        The driver first sends all messages that were published over UDP. Then it waits until each live receiver
        has reported that it consumed its stream to the end. The wait lasts at most for the linger time of the
        publications, and there is no wait without receivers. A `RuntimeWarning` names the streams that were not
        consumed. An interrupt (Ctrl-C) ends the wait, and the driver closes.

        Raises:
            DriverError: If the directory cannot be removed.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None: ...
    def __fspath__(self) -> str: ...

def aeronmd_main(arguments: list[str] | None = None) -> int:
    """Runs a driver in the foreground, as the command `aeronmd` does.

    The driver runs until a signal or a termination command ends it.

    Args:
        arguments: Arguments after the program's name. `None` takes them from `sys.argv`.

    Returns:
        The exit status.
    """

def _left_directories() -> list[tuple[Path, int, bool]]:
    """Returns the driver directories of this user that no live driver uses: path, bytes on disk, and whether the next
    embedded driver removes the directory.
    """

def default_directory() -> Path:
    """Returns the directory that drivers and clients use by default.

    Returns:
        The value of `AERON_DIR`; without it, `/dev/shm/aeron-<user>` on Linux and `aeron-<user>` in the
        temporary directory on other systems.
    """

def is_driver_active(aeron_dir: str | PathLike[str], *, timeout_ms: int = 10000) -> bool:
    """Returns whether a driver runs in a directory.

    If a driver is starting, the call waits for up to `timeout_ms`.

    Args:
        aeron_dir: Directory of the driver.
        timeout_ms: Age of the driver's heartbeat, in milliseconds, after which the driver counts as dead.

    Returns:
        `True` if the driver's heartbeat is not older than `timeout_ms`.

    Raises:
        DriverTimeoutError: If the CnC file is still incomplete after `timeout_ms`.
        ConfigurationError: If the CnC file has another version.
        DriverError: If the CnC file is damaged or cannot be mapped.
    """

def request_driver_termination(aeron_dir: str | PathLike[str], token: bytes | None = None) -> bool:
    """Asks a driver to terminate. The driver terminates if its termination validator accepts the token.

    Args:
        aeron_dir: Directory of the driver.
        token: Bytes for the termination validator. `None` stands for no bytes.

    Returns:
        `True` if the request was written to the driver's CnC file, even if the driver is dead. `False` if the
        directory has no complete CnC file.

    Raises:
        ConfigurationError: If the CnC file has another version.
        DriverError: If the CnC file is damaged or cannot be mapped.
    """
