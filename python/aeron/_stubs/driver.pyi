"""Media drivers inside this process, and what finds and ends other drivers."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Literal, Self, final

from aeron.loss import Loss
from aeron.metrics import DriverMetrics

@final
class MediaDriver:
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
    def settings() -> dict[str, bool | int | str]: ...
    @property
    def configuration(self) -> dict[str, bool | int | str]: ...
    def metrics(self) -> DriverMetrics: ...
    @property
    def dir(self) -> str: ...
    @property
    def threading_mode(self) -> Literal["DEDICATED", "SHARED_NETWORK", "SHARED", "INVOKER"]: ...
    @property
    def is_terminated(self) -> bool: ...
    @property
    def is_closed(self) -> bool: ...
    def do_work(self) -> int: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None: ...
    def __fspath__(self) -> str: ...

def aeronmd_main(arguments: list[str] | None = None) -> int: ...
def _left_directories() -> list[tuple[Path, int, bool]]: ...
def default_directory() -> Path: ...
def is_driver_active(aeron_dir: str | PathLike[str], *, timeout_ms: int = 10000) -> bool: ...
def request_driver_termination(aeron_dir: str | PathLike[str], token: bytes | None = None) -> bool: ...
