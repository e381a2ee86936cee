"""Archives inside this process."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Literal, Self, final

from aeron._stubs.driver import MediaDriver
from aeron._stubs.extensions import AuthenticatingSession, AuthenticationDecision

@final
class Archive:
    def __new__(
        cls,
        directory: str | PathLike[str],
        driver: MediaDriver | str | PathLike[str] | None = None,
        *,
        driver_timeout_ms: int = 10000,
        archive_dir_delete_on_start: bool = False,
        mark_file_dir: str | PathLike[str] = "",
        archive_id: int = -1,
        control_channel: str = "",
        control_stream_id: int = 10,
        control_channel_enabled: bool = ...,
        local_control_channel: str = "aeron:ipc?term-length=64k",
        local_control_stream_id: int = 10,
        control_term_buffer_length: int = 65536,
        control_term_buffer_sparse: bool = True,
        control_mtu_length: int = 1408,
        recording_events_channel: str = "",
        recording_events_stream_id: int = 30,
        recording_events_enabled: bool = False,
        replication_channel: str = "aeron:udp?endpoint=localhost:0",
        segment_file_length: int = 134217728,
        file_io_max_length: int = 1048576,
        low_storage_space_threshold: int = 134217728,
        file_sync_level: int = 0,
        catalog_file_sync_level: int = 0,
        catalog_capacity: int = 1048576,
        on_torn_fragment: Literal["refuse", "truncate"] = "refuse",
        recording_on_failure: Literal["block", "release"] = "block",
        index: bool = True,
        resume: bool = False,
        scrub_rate: int = 0,
        scrub_interval_ns: int = 86400000000000,
        retention_clock_wait_ns: int = 86400000000000,
        retention_file: str | PathLike[str] = "",
        objects_url: str = "",
        objects_endpoint: str = "",
        objects_region: str = "",
        objects_concurrency: int = 2,
        objects_rate: int = 0,
        objects_timeout_ns: int = 30000000000,
        objects_delete_local: bool = False,
        objects_local_bytes: int = 0,
        objects_cache_bytes: int = 1073741824,
        max_concurrent_recordings: int = 20,
        max_concurrent_replays: int = 20,
        record_checksum: str = "",
        replay_checksum: str = "",
        connect_timeout_ns: int = 5000000000,
        session_liveness_check_interval_ns: int = 1000000000,
        replay_linger_timeout_ns: int = 5000000000,
        threading_mode: Literal["DEDICATED", "SHARED", "INVOKER"] = "SHARED",
        idle_strategy: str = "backoff",
        recorder_idle_strategy: str = "",
        replayer_idle_strategy: str = "",
        conductor_cycle_threshold_ns: int = 100000000,
        recorder_cycle_threshold_ns: int = 100000000,
        replayer_cycle_threshold_ns: int = 100000000,
        error_buffer_length: int = 1048576,
        authenticator_supplier: str = "",
        authorisation_service_supplier: str = "",
        users_file: str | PathLike[str] = "",
        max_idle_park_ns: int = ...,
        authenticator: Callable[[AuthenticatingSession, bytes], AuthenticationDecision] | None = None,
    ) -> Self: ...
    @staticmethod
    def settings() -> dict[str, bool | int | str]: ...
    @property
    def configuration(self) -> dict[str, bool | int | str]: ...
    @property
    def archive_id(self) -> int: ...
    @property
    def directory(self) -> Path: ...
    @property
    def threading_mode(self) -> Literal["DEDICATED", "SHARED", "INVOKER"]: ...
    def do_work(self) -> int: ...
    @property
    def is_terminated(self) -> bool: ...
    @property
    def is_closed(self) -> bool: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None: ...
    def __fspath__(self) -> str: ...

def aeronarchive_main(arguments: list[str] | None = None) -> int: ...
def _ended_archives(directory: str | PathLike[str]) -> list[tuple[Path, int]]: ...
