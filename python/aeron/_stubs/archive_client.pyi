"""Clients of an archive."""

from collections.abc import Callable
from typing import Literal, Self, final

from aeron._stubs.client import Aeron
from aeron._stubs.extensions import (
    CopiedRange,
    FoundPosition,
    NamedReader,
    RecordingInfo,
    RetentionOutcome,
    RetentionPolicy,
)
from aeron._stubs.operations import PendingOperation
from aeron._stubs.persistent import PersistentSubscription
from aeron._stubs.publication import ExclusivePublication, Publication
from aeron._stubs.recorded_publisher import RecordedPublisher
from aeron._stubs.recordings import Recording, RecordingSignal, RecordingSignals, RecordingSubscription
from aeron._stubs.subscription import Subscription
from aeron.exceptions import AeronError, PersistentSubscriptionError, RecordedPublisherError
from aeron.follow import Follower, RecordingChange
from aeron.recordings import Recordings
from aeron.types import Channel, Credentials, SourceLocation, Time

@final
class AeronArchive:
    def add_recorded_publication(self, channel: Channel, stream_id: int) -> Publication: ...
    def async_add_recorded_publication(self, channel: Channel, stream_id: int) -> PendingOperation[Publication]: ...
    def add_recorded_exclusive_publication(self, channel: Channel, stream_id: int) -> ExclusivePublication: ...
    def async_add_recorded_exclusive_publication(
        self, channel: Channel, stream_id: int
    ) -> PendingOperation[ExclusivePublication]: ...
    def start_recording(
        self,
        channel: Channel,
        stream_id: int,
        *,
        source: SourceLocation = "LOCAL",
        auto_stop: bool = False,
        on_failure: Literal["block", "release"] | None = None,
    ) -> int: ...
    def async_start_recording(
        self,
        channel: Channel,
        stream_id: int,
        *,
        source: SourceLocation = "LOCAL",
        auto_stop: bool = False,
        on_failure: Literal["block", "release"] | None = None,
    ) -> PendingOperation[int]: ...
    def extend_recording(
        self,
        recording_id: int,
        channel: Channel,
        stream_id: int,
        *,
        source: SourceLocation = "LOCAL",
        auto_stop: bool = False,
        on_failure: Literal["block", "release"] | None = None,
    ) -> int: ...
    def async_extend_recording(
        self,
        recording_id: int,
        channel: Channel,
        stream_id: int,
        *,
        source: SourceLocation = "LOCAL",
        auto_stop: bool = False,
        on_failure: Literal["block", "release"] | None = None,
    ) -> PendingOperation[int]: ...
    def stop_recording(
        self, recorded: Publication | ExclusivePublication | Channel | int, stream_id: int | None = None
    ) -> None: ...
    def async_stop_recording(
        self, recorded: Publication | ExclusivePublication | Channel | int, stream_id: int | None = None
    ) -> PendingOperation[None]: ...
    def try_stop_recording(
        self, recorded: Publication | ExclusivePublication | Channel | int, stream_id: int | None = None
    ) -> bool: ...
    def async_try_stop_recording(
        self, recorded: Publication | ExclusivePublication | Channel | int, stream_id: int | None = None
    ) -> PendingOperation[bool]: ...
    def try_stop_recording_by_identity(self, recording_id: int) -> bool: ...
    def async_try_stop_recording_by_identity(self, recording_id: int) -> PendingOperation[bool]: ...
    def replay(
        self,
        recording_id: int,
        channel: Channel = "aeron:ipc",
        stream_id: int = 100,
        *,
        position: int | Literal["earliest"] | None = None,
        length: int = -1,
        since: Time | None = None,
        until: Time | None = None,
        rate: int | None = None,
        speed: float | None = None,
        bounding_limit_counter_id: int | None = None,
        file_io_max_length: int | None = None,
    ) -> Subscription: ...
    def async_replay(
        self,
        recording_id: int,
        channel: Channel = "aeron:ipc",
        stream_id: int = 100,
        *,
        position: int | Literal["earliest"] | None = None,
        length: int = -1,
        since: Time | None = None,
        until: Time | None = None,
        rate: int | None = None,
        speed: float | None = None,
        bounding_limit_counter_id: int | None = None,
        file_io_max_length: int | None = None,
    ) -> PendingOperation[Subscription]: ...
    def start_replay(
        self,
        recording_id: int,
        channel: Channel,
        stream_id: int,
        *,
        position: int | None = None,
        length: int = -1,
        rate: int | None = None,
        speed: float | None = None,
        bounding_limit_counter_id: int | None = None,
        file_io_max_length: int | None = None,
    ) -> int: ...
    def async_start_replay(
        self,
        recording_id: int,
        channel: Channel,
        stream_id: int,
        *,
        position: int | None = None,
        length: int = -1,
        rate: int | None = None,
        speed: float | None = None,
        bounding_limit_counter_id: int | None = None,
        file_io_max_length: int | None = None,
    ) -> PendingOperation[int]: ...
    def stop_replay(self, replay_session_id: int) -> None: ...
    def async_stop_replay(self, replay_session_id: int) -> PendingOperation[None]: ...
    def stop_all_replays(self, recording_id: int | None = None) -> None: ...
    def async_stop_all_replays(self, recording_id: int | None = None) -> PendingOperation[None]: ...
    def list_recordings(
        self,
        *,
        channel: Channel | None = None,
        stream_id: int | None = None,
        from_recording_id: int = 0,
        limit: int | None = None,
        since: Time | None = None,
        until: Time | None = None,
    ) -> Recordings: ...
    def async_list_recordings(
        self,
        *,
        channel: Channel | None = None,
        stream_id: int | None = None,
        from_recording_id: int = 0,
        limit: int | None = None,
        since: Time | None = None,
        until: Time | None = None,
    ) -> PendingOperation[Recordings]: ...
    def list_recording(self, recording_id: int) -> Recording | None: ...
    def async_list_recording(self, recording_id: int) -> PendingOperation[Recording | None]: ...
    def list_recording_subscriptions(
        self,
        *,
        channel: Channel | None = None,
        stream_id: int | None = None,
        from_index: int = 0,
        limit: int | None = None,
    ) -> list[RecordingSubscription]: ...
    def async_list_recording_subscriptions(
        self,
        *,
        channel: Channel | None = None,
        stream_id: int | None = None,
        from_index: int = 0,
        limit: int | None = None,
    ) -> PendingOperation[list[RecordingSubscription]]: ...
    def find_last_matching_recording(
        self, channel: Channel, stream_id: int, session_id: int, *, min_recording_id: int = 0
    ) -> int | None: ...
    def async_find_last_matching_recording(
        self, channel: Channel, stream_id: int, session_id: int, *, min_recording_id: int = 0
    ) -> PendingOperation[int | None]: ...
    def get_start_position(self, recording_id: int) -> int: ...
    def async_get_start_position(self, recording_id: int) -> PendingOperation[int]: ...
    def get_recording_position(self, recording_id: int) -> int | None: ...
    def async_get_recording_position(self, recording_id: int) -> PendingOperation[int | None]: ...
    def get_stop_position(self, recording_id: int) -> int | None: ...
    def async_get_stop_position(self, recording_id: int) -> PendingOperation[int | None]: ...
    def get_max_recorded_position(self, recording_id: int) -> int: ...
    def async_get_max_recorded_position(self, recording_id: int) -> PendingOperation[int]: ...
    def truncate_recording(self, recording_id: int, position: int) -> int: ...
    def async_truncate_recording(self, recording_id: int, position: int) -> PendingOperation[int]: ...
    def purge_recording(self, recording_id: int) -> int: ...
    def async_purge_recording(self, recording_id: int) -> PendingOperation[int]: ...
    def detach_segments(self, recording_id: int, new_start_position: int) -> None: ...
    def async_detach_segments(self, recording_id: int, new_start_position: int) -> PendingOperation[None]: ...
    def delete_detached_segments(self, recording_id: int) -> int: ...
    def async_delete_detached_segments(self, recording_id: int) -> PendingOperation[int]: ...
    def purge_segments(self, recording_id: int, new_start_position: int) -> int: ...
    def async_purge_segments(self, recording_id: int, new_start_position: int) -> PendingOperation[int]: ...
    def attach_segments(self, recording_id: int) -> int: ...
    def async_attach_segments(self, recording_id: int) -> PendingOperation[int]: ...
    def migrate_segments(self, src_recording_id: int, dst_recording_id: int) -> int: ...
    def async_migrate_segments(self, src_recording_id: int, dst_recording_id: int) -> PendingOperation[int]: ...
    def update_channel(self, recording_id: int, channel: Channel) -> None: ...
    def async_update_channel(self, recording_id: int, channel: Channel) -> PendingOperation[None]: ...
    def replicate(
        self,
        src_recording_id: int,
        src_control_channel: Channel,
        src_control_stream_id: int = 10,
        *,
        stop_position: int | None = None,
        dst_recording_id: int | None = None,
        live_destination: Channel | None = None,
        replication_channel: Channel | None = None,
        src_response_channel: Channel | None = None,
        channel_tag_id: int | None = None,
        subscription_tag_id: int | None = None,
        file_io_max_length: int | None = None,
        replication_session_id: int | None = None,
        encoded_credentials: bytes | None = None,
    ) -> int: ...
    def async_replicate(
        self,
        src_recording_id: int,
        src_control_channel: Channel,
        src_control_stream_id: int = 10,
        *,
        stop_position: int | None = None,
        dst_recording_id: int | None = None,
        live_destination: Channel | None = None,
        replication_channel: Channel | None = None,
        src_response_channel: Channel | None = None,
        channel_tag_id: int | None = None,
        subscription_tag_id: int | None = None,
        file_io_max_length: int | None = None,
        replication_session_id: int | None = None,
        encoded_credentials: bytes | None = None,
    ) -> PendingOperation[int]: ...
    def stop_replication(self, replication_id: int) -> None: ...
    def async_stop_replication(self, replication_id: int) -> PendingOperation[None]: ...
    def try_stop_replication(self, replication_id: int) -> bool: ...
    def async_try_stop_replication(self, replication_id: int) -> PendingOperation[bool]: ...
    def wait_recorded(
        self, publication: Publication | ExclusivePublication, position: int, timeout: float | None = None
    ) -> Recording: ...
    def async_wait_recorded(
        self, publication: Publication | ExclusivePublication, position: int
    ) -> PendingOperation[Recording]: ...
    @staticmethod
    def segment_file_base_position(
        start_position: int, position: int, term_buffer_length: int, segment_file_length: int
    ) -> int: ...
    def signals(self, timeout: float | None = None) -> RecordingSignals: ...
    def poll(self) -> None: ...
    def find_position(
        self, recording_id: int, *, since: Time | None = None, until: Time | None = None
    ) -> FoundPosition: ...
    def async_find_position(
        self, recording_id: int, *, since: Time | None = None, until: Time | None = None
    ) -> PendingOperation[FoundPosition]: ...
    def commit_reader(
        self,
        recording_id: int,
        name: str,
        position: int,
        *,
        max_age_ms: int | None = None,
        max_lag_bytes: int | None = None,
    ) -> int: ...
    def async_commit_reader(
        self,
        recording_id: int,
        name: str,
        position: int,
        *,
        max_age_ms: int | None = None,
        max_lag_bytes: int | None = None,
    ) -> PendingOperation[int]: ...
    def remove_reader(self, recording_id: int, name: str) -> bool: ...
    def async_remove_reader(self, recording_id: int, name: str) -> PendingOperation[bool]: ...
    def list_readers(self, *, recording_id: int | None = None, name: str | None = None) -> list[NamedReader]: ...
    def async_list_readers(
        self, *, recording_id: int | None = None, name: str | None = None
    ) -> PendingOperation[list[NamedReader]]: ...
    def set_recording_name(self, recording_id: int, name: str) -> None: ...
    def async_set_recording_name(self, recording_id: int, name: str) -> PendingOperation[None]: ...
    def set_recording_metadata(self, recording_id: int, metadata: bytes) -> None: ...
    def async_set_recording_metadata(self, recording_id: int, metadata: bytes) -> PendingOperation[None]: ...
    def list_recording_info(
        self, *, recording_id: int | None = None, name: str | None = None
    ) -> list[RecordingInfo]: ...
    def async_list_recording_info(
        self, *, recording_id: int | None = None, name: str | None = None
    ) -> PendingOperation[list[RecordingInfo]]: ...
    def list_copied_ranges(self, *, recording_id: int | None = None) -> list[CopiedRange]: ...
    def async_list_copied_ranges(self, *, recording_id: int | None = None) -> PendingOperation[list[CopiedRange]]: ...
    def set_retention(
        self,
        *,
        recording_id: int | None = None,
        stream_id: int | None = None,
        channel: Channel | None = None,
        max_bytes: int | None = None,
        max_age_ms: int | None = None,
    ) -> bool: ...
    def async_set_retention(
        self,
        *,
        recording_id: int | None = None,
        stream_id: int | None = None,
        channel: Channel | None = None,
        max_bytes: int | None = None,
        max_age_ms: int | None = None,
    ) -> PendingOperation[bool]: ...
    def list_retention(self) -> list[RetentionPolicy]: ...
    def async_list_retention(self) -> PendingOperation[list[RetentionPolicy]]: ...
    def apply_retention(
        self, *, recording_id: int | None = None, dry_run: bool = False, trust_clock: bool = False
    ) -> list[RetentionOutcome]: ...
    def async_apply_retention(
        self, *, recording_id: int | None = None, dry_run: bool = False, trust_clock: bool = False
    ) -> PendingOperation[list[RetentionOutcome]]: ...
    def follow(
        self,
        recording: int | Recording | None = None,
        *,
        channel: Channel | None = None,
        stream_id: int | None = None,
        position: int | Literal["earliest", "latest"] | None = None,
        since: Time | None = None,
        reader: str | None = None,
        commit: Literal["batch", "explicit"] = "batch",
        max_age_ms: int | None = None,
        max_lag_bytes: int | None = None,
        live_channel: Channel | None = None,
        replay_channel: Channel = "aeron:ipc",
        replay_stream_id: int = 100,
        on_change: Callable[[RecordingChange], object] | None = None,
        on_live_joined: Callable[[], object] | None = None,
        on_live_left: Callable[[], object] | None = None,
        on_error: Callable[[PersistentSubscriptionError], object] | None = None,
    ) -> Follower: ...
    def reconnect(self) -> AeronArchive: ...
    def async_reconnect(self) -> PendingOperation[AeronArchive]: ...
    def persistent_subscription(
        self,
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
    ) -> PersistentSubscription: ...
    def recorded_publisher(
        self,
        channel: Channel,
        stream_id: int,
        *,
        recording_id: int | None = None,
        alias: str | None = None,
        source: SourceLocation = "LOCAL",
        buffer_length: int = 16777216,
        takeover_timeout: float = 30.0,
        on_reconnect: Callable[[int], object] | None = None,
        on_error: Callable[[RecordedPublisherError], object] | None = None,
        driver_timeout_ms: int | None = None,
    ) -> RecordedPublisher: ...
    def poll_for_error(self) -> AeronError | None: ...
    @property
    def archive_id(self) -> int: ...
    @property
    def last_correlation_id(self) -> int: ...
    @property
    def control_session_id(self) -> int: ...
    @property
    def client(self) -> Aeron: ...
    @property
    def state(self) -> Literal["CONNECTED", "DISCONNECTED", "CLOSED"]: ...
    @property
    def is_closed(self) -> bool: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None: ...

def connect_archive(
    client: Aeron,
    *,
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
    on_signal: Callable[[RecordingSignal], object] | None = None,
    error_handler: Callable[[Exception], object] | None = None,
) -> AeronArchive: ...
def async_connect_archive(
    client: Aeron,
    *,
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
    on_signal: Callable[[RecordingSignal], object] | None = None,
    error_handler: Callable[[Exception], object] | None = None,
) -> PendingOperation[AeronArchive]: ...
