"""Archives inside this process."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Literal, Self, final

from aeron._stubs.driver import MediaDriver
from aeron._stubs.extensions import AuthenticatingSession, AuthenticationDecision

@final
class Archive:
    """An archive inside this process: it records streams of a media driver in a directory, and replays them.

    The archive creates the directory if it is missing. Every setting of Aeron's archive is a keyword. The
    keyword of a time ends in its unit, and lengths are in bytes. If a setting is not passed, its
    environment variable is used, otherwise its default. The documentation page of all settings names the
    variables.

    Some defaults differ from Aeron's: all agents share one thread (`threading_mode="SHARED"`), an idle
    archive parks longer (`max_idle_park_ns`), requests over the network are received only if
    `control_channel` is set, and `replication_channel` is `aeron:udp?endpoint=localhost:0`. The end of a
    `with` block closes the archive. Thread-safe.

    A driver with `threading_mode="INVOKER"` has no threads, so the archive runs it: on the archive's thread in
    mode `SHARED`, in `do_work` in mode `INVOKER`. The mode `DEDICATED` is refused for such a driver.

    Args:
        directory: Directory of catalog and recordings.
        driver: A `MediaDriver`, the directory of a driver, or `None` for the directory that `AERON_DIR`
            names. Without that variable, `None` stands for Aeron's default directory.
        driver_timeout_ms: Maximum age of the driver's heartbeat, in milliseconds. If the heartbeat is
            older, the driver counts as dead, and the archive ends. Default: `10000` milliseconds.
        archive_dir_delete_on_start: Delete the archive directory with all its files before the archive
            starts. Default: `False`.
        mark_file_dir: Directory of the mark file; if empty, the archive directory. Default: none.
        archive_id: Id of the archive, unique among the archives of its driver; -1 lets the driver choose
            one. Default: `-1`.
        control_channel: Channel of control requests over the network. It is required if such requests are
            accepted. Default: none.
        control_stream_id: Stream id of control requests over the network. Default: `10`.
        control_channel_enabled: Accept control requests over the network. Default: `True` if
            `control_channel` is set, otherwise `False`.
        local_control_channel: Channel of control requests on the same machine. Default:
            `'aeron:ipc?term-length=64k'`.
        local_control_stream_id: Stream id of control requests on the same machine. Default: `10`.
        control_term_buffer_length: Term length of control streams; a power of two. Default: `65536` bytes.
        control_term_buffer_sparse: Create sparse logs for control streams. Default: `True`.
        control_mtu_length: Longest frame of control streams; a multiple of 32. If it is not set, the
            driver's `aeron.mtu.length` applies. Default: `1408` bytes.
        recording_events_channel: Channel of recording events. It is required if recording events are
            published. Default: none.
        recording_events_stream_id: Stream id of recording events. Default: `30`.
        recording_events_enabled: Publish recording events. Default: `False`.
        replication_channel: Channel of the replays that source archives send for replications, for example
            `aeron:udp?endpoint=localhost:0`. It is required. Default: `'aeron:udp?endpoint=localhost:0'`.
        segment_file_length: Length of segment files; a power of two. Default: `134217728` bytes.
        file_io_max_length: Maximum length of a block in one read or write; a power of two. Default:
            `1048576` bytes.
        low_storage_space_threshold: A recording starts only if more than this space is free in the file
            system. Default: `134217728` bytes.
        file_sync_level: Part of each block of a recording that is forced to the disk: 0 nothing, 1 data, 2
            also metadata. Default: `0`.
        catalog_file_sync_level: Part of each change of the catalog that is forced to the disk; at least
            `aeron.archive.file.sync.level`. Default: `0`.
        catalog_capacity: Length of a new catalog. Default: `1048576` bytes.
        on_torn_fragment: Treatment of a last frame that may be torn after a kill, if no index proves that
            it is whole or torn. With `refuse`, the archive does not start, and the error has the position
            of the frame. With `truncate`, the frame is removed. One of `refuse`, `truncate`. Default:
            `'refuse'`.
        recording_on_failure: Treatment of a stream after its recording has failed. With `block`, the
            archive stops reading the stream, so its publisher is blocked and no data are lost. If the disk
            is full, the archive tries again each second to continue the recording. With `release`, the
            archive reads and drops the rest of the stream. One of `block`, `release`. Default: `'block'`.
        index: Write an index file for each segment. It has arrival times and ends of messages. After a
            kill, it shows whether the last frame is whole. Default: `True`.
        resume: Resume the recording subscriptions that were active when the archive ended. A stream that
            continues without a gap extends its recording. After a gap, the stream becomes a new recording
            that is linked to the former recording. Default: `False`.
        scrub_rate: Number of bytes of sealed segments that are read per second to find damage. Damage is
            reported and never repaired. 0 turns this off. Default: `0` bytes.
        scrub_interval_ns: Time from the begin of a pass over all sealed segments to the begin of the next
            pass. Default: `86400000000000` nanoseconds.
        retention_clock_wait_ns: Time of running for which retention deletes nothing because of its age, and
            no reader expires by its age, after the archive finds the wall clock doubtful: the archive
            started more than an hour after the last known time, or the clock was set by more than a minute.
            0 trusts every clock. Default: `86400000000000` nanoseconds.
        retention_file: TOML file of the retention policies of streams and channels. The archive reads it at
            its start and when it reloads. If it is not set, clients set these policies. Default: none.
        objects_url: Object storage to which sealed segments are copied, `s3://bucket/prefix` or
            `file:///directory`; if empty, none. Credentials come from the environment variables of AWS,
            such as `AWS_ACCESS_KEY_ID`. Default: none.
        objects_endpoint: Address of an S3-compatible service, such as `http://localhost:9000`; if empty,
            that of AWS. Default: none.
        objects_region: Region of the bucket; if empty, `AWS_REGION`, else `us-east-1`. Default: none.
        objects_concurrency: Maximum number of segments that are copied at the same time. Default: `2`.
        objects_rate: Maximum number of bytes that are sent to object storage per second; 0: no limit.
            Default: `0` bytes.
        objects_timeout_ns: Time limit for each request to object storage. Default: `30000000000`
            nanoseconds.
        objects_delete_local: Delete segment files of which the copy was read back and is equal. Their data
            are then read from the copies. Default: `False`.
        objects_local_bytes: Newest bytes of each recording that stay on the disk when copied segment files
            are deleted. Default: `0` bytes.
        objects_cache_bytes: Maximum length of all segments on the disk that were fetched for replays. The
            latest one always stays. Default: `1073741824` bytes.
        max_concurrent_recordings: Maximum number of recordings at the same time. Default: `20`.
        max_concurrent_replays: Maximum number of replays at the same time. Default: `20`.
        record_checksum: Checksum of recorded frames, `CRC-32` or `CRC-32C`; if empty, no checksum. Default:
            none.
        replay_checksum: Checksum that replayed frames must have; if empty, no checksum. Default: none.
        connect_timeout_ns: Time limit for a client to connect to its session or replay, and to use a replay
            token. Default: `5000000000` nanoseconds.
        session_liveness_check_interval_ns: Time between two pings of a control session. Default:
            `1000000000` nanoseconds.
        replay_linger_timeout_ns: Time for which the publication of a finished replay stays open. If it is
            not set, the driver's `aeron.publication.linger.timeout` applies. Default: `5000000000`
            nanoseconds.
        threading_mode: Threads of the agents: `DEDICATED`, `SHARED` or `INVOKER`. One of `DEDICATED`,
            `SHARED`, `INVOKER`. Default: `'SHARED'`.
        idle_strategy: Idle strategy of the conductor. Default: `'backoff'`.
        recorder_idle_strategy: Idle strategy of the recorder; if empty, the conductor's strategy. Default:
            none.
        replayer_idle_strategy: Idle strategy of the replayer; if empty, the conductor's strategy. Default:
            none.
        conductor_cycle_threshold_ns: Duty cycles of the conductor that take longer than this time are
            counted. Default: `100000000` nanoseconds.
        recorder_cycle_threshold_ns: Duty cycles of the recorder that take longer than this time are
            counted. Default: `100000000` nanoseconds.
        replayer_cycle_threshold_ns: Duty cycles of the replayer that take longer than this time are
            counted. Default: `100000000` nanoseconds.
        error_buffer_length: Length of the distinct error log in the mark file. Default: `1048576` bytes.
        authenticator_supplier: Clients that may connect. If it is empty, the users in
            `aeron.archive.users.file` may connect, or all clients if that file is not set. With the class
            name of Aeron's sample, the file is required. Default: none.
        authorisation_service_supplier: Requests that clients may send: `ALLOW_ALL` or `DENY_ALL`. If it is
            empty, the roles in `aeron.archive.users.file` decide. Without that file, all requests are
            allowed. Default: none.
        users_file: TOML file of users, their secrets and their roles; mode 0600. Default: none.
        max_idle_park_ns: Longest park of an idle agent in nanoseconds, after a second without work. 0 keeps
            the strategy's own limit. Default: `10000000`.
        authenticator: Function that decides about clients, `authenticator(session, credentials)`, with an
            `AuthenticatingSession` and bytes. It returns an `AuthenticationDecision`. A thread of the
            archive calls it for one client at a time, so the archive and other clients continue. After 5 s,
            or nine tenths of the connect timeout, the client is rejected. An exception rejects the client
            too: the error log gets its text. Default: `None`: the users in `users_file`, or everybody.

    Raises:
        ConfigurationError: If a setting is not valid, or contradicts another setting.
        ArchiveActiveError: If a live archive uses the directory or the archive id.
        ArchiveDirectoryError: If the directory, the catalog or a recording cannot be used.
        DriverTimeoutError: If no driver responds within the driver timeout.

    Example:
        ```python
        with aeron.MediaDriver() as driver, aeron.Archive("recordings", driver) as server:
            archive = aeron.connect_archive(aeron.connect(driver))
        ```
    """
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
    def settings() -> dict[str, bool | int | str]:
        """Returns all settings with their defaults in this process, which depend on its environment variables.

        `control_channel_enabled` is `False` if no variable sets it or `control_channel`. If the constructor gets a
        `control_channel`, the default in the new archive is `True`.

        Returns:
            A dictionary from names to values.

        Raises:
            ConfigurationError: If a variable of the environment is not valid.
        """
    @property
    def configuration(self) -> dict[str, bool | int | str]:
        """The settings of this archive: a dictionary from names to values."""
    @property
    def archive_id(self) -> int:
        """Id of the archive among the archives of its driver."""
    @property
    def directory(self) -> Path:
        """Directory of the recordings."""
    @property
    def threading_mode(self) -> Literal["DEDICATED", "SHARED", "INVOKER"]:
        """`DEDICATED`, `SHARED` or `INVOKER`."""
    def do_work(self) -> int:
        """Runs one duty cycle of an archive in mode `INVOKER`. Call it often, from one thread at a time.

        Returns:
            The amount of work; 0 if there was no work.

        Raises:
            ReentrantCallError: If another thread uses the archive at the same time: it runs the duty cycle, reads
                `is_terminated` or `is_closed`, or closes the archive.
        """
    @property
    def is_terminated(self) -> bool:
        """Whether the archive ended because its driver ended, or because the program closed the
        archive.

        If the driver ended, close the archive.
        """
    @property
    def is_closed(self) -> bool:
        """Whether the archive was closed."""
    def close(self) -> None:
        """Ends all recordings and replays, and releases the directory. Idempotent."""
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None: ...
    def __fspath__(self) -> str: ...

def aeronarchive_main(arguments: list[str] | None = None) -> int:
    """Runs an archive in the foreground, as the command `aeronarchive` does, until a signal ends the archive.

    Args:
        arguments: Arguments after the program's name. `None` takes them from `sys.argv`.

    Returns:
        The exit status.
    """

def _ended_archives(directory: str | PathLike[str]) -> list[tuple[Path, int]]:
    """Returns the private archives of ended queries in `directory`, and the number of bytes on disk of each archive."""
