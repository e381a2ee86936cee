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
    """A client of an archive, which `connect_archive` returns. Thread-safe.

    A method that sends a request waits for the response, up to the message timeout. The method of the same
    name with the prefix `async_` returns a `PendingOperation` at once, for `await` or `result(timeout)`. It has the
    same arguments, except a timeout, and the same result and errors.

    A thread of the client keeps the session alive while the program makes no calls. The client has no such
    thread if `use_conductor_agent_invoker` is set, or if its embedded driver has the mode `INVOKER`. The
    program must then call `poll` every few seconds.

    The client closes itself if the archive ends the session or no longer runs, or if the Aeron client is closed. One
    call may then raise `ArchiveDisconnectedError` or `ClientClosedError`. All later calls raise `ArchiveClosedError`.
    `reconnect` connects again.

    In a handler of the Aeron client, methods that wait raise `ReentrantCallError`.

    The end of a `with` block closes the session. Recordings, replays and replications of the archive
    continue.

    Raises:
        ArchiveError: By every method that sends a request, if the archive refuses it. The subclass names the reason.
            The error has a `code` and a `correlation_id`.
        ArchiveTimeoutError: By every such method, if the archive does not respond within the message timeout.
        ArchiveDisconnectedError: By every such method and by `poll`, if the archive ended the session.
        ArchiveClosedError: By every such method and by `poll`, if the client of the archive is closed.

    Example:
        ```python
        archive = aeron.connect_archive(client)
        publication = archive.add_recorded_publication("aeron:ipc", 1001)
        for recording in archive.list_recordings():
            print(recording.recording_id, recording.stop_position)
        ```
    """
    def add_recorded_publication(self, channel: Channel, stream_id: int) -> Publication:
        """Adds a publication, and records it from the first byte on.

        Args:
            channel: A channel URI, such as `aeron:ipc`, or a `ChannelUriBuilder`.
            stream_id: Stream id.

        Returns:
            The publication.

        Raises:
            InvalidArgumentError: If the client already has the publication.
            RegistrationError: If the driver refuses the publication; the subclass names the reason.
            DriverTimeoutError: If the driver does not respond within the driver timeout.
        """
    def async_add_recorded_publication(self, channel: Channel, stream_id: int) -> PendingOperation[Publication]:
        """Starts `add_recorded_publication`, and returns its `PendingOperation` at once."""
    def add_recorded_exclusive_publication(self, channel: Channel, stream_id: int) -> ExclusivePublication:
        """Adds an exclusive publication, and records it from the first byte on.

        Args:
            channel: A channel URI, such as `aeron:ipc`, or a `ChannelUriBuilder`.
            stream_id: Stream id.

        Returns:
            The publication.

        Raises:
            RegistrationError: If the driver refuses the publication; the subclass names the reason.
            DriverTimeoutError: If the driver does not respond within the driver timeout.
        """
    def async_add_recorded_exclusive_publication(
        self, channel: Channel, stream_id: int
    ) -> PendingOperation[ExclusivePublication]:
        """Starts `add_recorded_exclusive_publication`, and returns its `PendingOperation` at once."""
    def start_recording(
        self,
        channel: Channel,
        stream_id: int,
        *,
        source: SourceLocation = "LOCAL",
        auto_stop: bool = False,
        on_failure: Literal["block", "release"] | None = None,
    ) -> int:
        """Starts to record a channel and stream. Each image of the stream becomes a recording.

        Args:
            channel: A channel URI, such as `aeron:ipc`, or a `ChannelUriBuilder`.
            stream_id: Stream id.
            source: `"LOCAL"` if the archive's driver publishes the stream, `"REMOTE"` if another driver does.
            auto_stop: Whether the archive closes its subscription when the first recording of the
                subscription ends.
            on_failure: How the archive treats the rest of a stream after its recording has failed, for example because
                the disk is full. `"block"`: the archive stops reading, so the publisher is blocked and no data are
                lost. `"release"`: the archive reads and drops the rest. `None`: the setting `recording_on_failure` of
                the archive. Aeron's own archive ignores this argument, and blocks.

        Returns:
            The id of the archive's subscription. `stop_recording` accepts it.
        """
    def async_start_recording(
        self,
        channel: Channel,
        stream_id: int,
        *,
        source: SourceLocation = "LOCAL",
        auto_stop: bool = False,
        on_failure: Literal["block", "release"] | None = None,
    ) -> PendingOperation[int]:
        """Starts `start_recording`, and returns its `PendingOperation` at once."""
    def extend_recording(
        self,
        recording_id: int,
        channel: Channel,
        stream_id: int,
        *,
        source: SourceLocation = "LOCAL",
        auto_stop: bool = False,
        on_failure: Literal["block", "release"] | None = None,
    ) -> int:
        """Extends a recording with a stream that begins where the recording ends.

        The archive checks this when the stream arrives. If the stream does not continue the recording, `poll_for_error`
        or the `error_handler` gets the error.

        Args:
            recording_id: Id of the recording.
            channel: A channel URI, such as `aeron:ipc`, or a `ChannelUriBuilder`.
            stream_id: Stream id.
            source: `"LOCAL"` if the archive's driver publishes the stream, `"REMOTE"` if another driver does.
            auto_stop: Whether the archive closes its subscription when the first recording of the
                subscription ends.
            on_failure: How the archive treats the rest of a stream after its recording has failed, for example because
                the disk is full. `"block"`: the archive stops reading, so the publisher is blocked and no data are
                lost. `"release"`: the archive reads and drops the rest. `None`: the setting `recording_on_failure` of
                the archive. Aeron's own archive ignores this argument, and blocks.

        Returns:
            The id of the archive's subscription. `stop_recording` accepts it.
        """
    def async_extend_recording(
        self,
        recording_id: int,
        channel: Channel,
        stream_id: int,
        *,
        source: SourceLocation = "LOCAL",
        auto_stop: bool = False,
        on_failure: Literal["block", "release"] | None = None,
    ) -> PendingOperation[int]:
        """Starts `extend_recording`, and returns its `PendingOperation` at once."""
    def stop_recording(
        self, recorded: Publication | ExclusivePublication | Channel | int, stream_id: int | None = None
    ) -> None:
        """Stops the recording of a stream.

        Args:
            recorded: A recorded publication, the id of the archive's subscription, or the channel that
                `start_recording` or `extend_recording` got.
            stream_id: Stream id. Required if `recorded` is a channel.

        Raises:
            InvalidArgumentError: If `recorded` is a channel and `stream_id` is missing.
        """
    def async_stop_recording(
        self, recorded: Publication | ExclusivePublication | Channel | int, stream_id: int | None = None
    ) -> PendingOperation[None]:
        """Starts `stop_recording`, and returns its `PendingOperation` at once."""
    def try_stop_recording(
        self, recorded: Publication | ExclusivePublication | Channel | int, stream_id: int | None = None
    ) -> bool:
        """Stops the recording of a stream, if there is one.

        Args:
            recorded: A recorded publication, the id of the archive's subscription, or the channel that
                `start_recording` or `extend_recording` got.
            stream_id: Stream id. Required if `recorded` is a channel.

        Returns:
            `True` if there was a recording to stop.

        Raises:
            InvalidArgumentError: If `recorded` is a channel and `stream_id` is missing.
        """
    def async_try_stop_recording(
        self, recorded: Publication | ExclusivePublication | Channel | int, stream_id: int | None = None
    ) -> PendingOperation[bool]:
        """Starts `try_stop_recording`, and returns its `PendingOperation` at once."""
    def try_stop_recording_by_identity(self, recording_id: int) -> bool:
        """Stops one recording, if the recording is active.

        Args:
            recording_id: Id of the recording.

        Returns:
            `True` if the recording was active.
        """
    def async_try_stop_recording_by_identity(self, recording_id: int) -> PendingOperation[bool]:
        """Starts `try_stop_recording_by_identity`, and returns its `PendingOperation` at once."""
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
    ) -> Subscription:
        """Replays a recording to a new subscription.

        An iteration over the subscription's batches ends at the end of the replay. If the archive ends the replay
        early, or the image is lost, the iteration raises `ArchiveError`. If the replay ends before `length` bytes, the
        client also checks that the archive still responds. If the archive does not respond, it may have been killed,
        and the iteration raises `ArchiveError`. After a close of this client, the check is left out. Closing the
        subscription stops the replay.

        Args:
            recording_id: Id of the recording.
            channel: Channel of the replay. Its port may be 0. For an archive on another host, the channel must
                have an address of this machine.
            stream_id: Stream id of the replay.
            position: Position of the first message, in bytes. `None` stands for the start position of the recording on
                the archive's disk. ``"earliest"`` includes older segments in object storage.
            length: Number of bytes to replay. `REPLAY_ALL_AND_FOLLOW` replays to the end and follows an active
                recording. `REPLAY_ALL_AND_STOP` stops at the position up to which the archive had recorded when
                the replay started.
            since: Replay the messages that arrived at or after this time, instead of `position`: a datetime with a
                time zone, or a `numpy.datetime64`, which is in UTC.
            until: Replay only messages that arrived before this time, instead of `length`. If the recording has no
                index for `since` or `until`, whole segments are replayed, and a `UserWarning` says so.
            rate: Maximum number of bytes of the stream per second, including the headers of frames. At least 1.
            speed: Factor of the recorded pace, from 0.000001 to 1000000. The intervals between the arrivals of messages
                are divided by this number, so `1.0` is the recorded pace. With `rate`, the slower of the two applies.
                The recording must have an index.
            bounding_limit_counter_id: Id of a counter. The replay does not go beyond the counter's value. Not together
                with `rate` or `speed`.
            file_io_max_length: Maximum number of bytes that the archive reads at once. `None` stands for the archive's
                setting.

        Returns:
            The `Subscription`.

        Raises:
            InvalidArgumentError: If an argument is out of range, a datetime has no time zone, or two arguments
                contradict each other.
            RegistrationError: If the driver refuses the subscription; the subclass names the reason.
            EmptyTimeRangeError: If the recording has no message in the range of time.
            NotSupportedByArchiveError: If the archive does not have replays by time, rate or speed.

        Example:
            ```python
            for batch in archive.replay(recording_id).batches():
                print(len(batch))
            ```
        """
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
    ) -> PendingOperation[Subscription]:
        """Starts `replay`, and returns its `PendingOperation` at once."""
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
    ) -> int:
        """Replays a recording to a channel and stream. The program adds the subscription itself.

        Args:
            recording_id: Id of the recording.
            channel: Channel of the replay. For a channel with `control-mode=response`, use `replay`.
            stream_id: Stream id of the replay.
            position: Position of the first message, in bytes. `None` stands for the start position of the recording on
                the archive's disk. For the first position in object storage, see `list_copied_ranges`.
            length: Number of bytes to replay. `REPLAY_ALL_AND_FOLLOW` replays to the end and follows an active
                recording. `REPLAY_ALL_AND_STOP` stops at the position up to which the archive had recorded when
                the replay started.
            rate: Maximum number of bytes of the stream per second, including the headers of frames. At least 1.
            speed: Factor of the recorded pace, from 0.000001 to 1000000. The intervals between the arrivals of messages
                are divided by this number, so `1.0` is the recorded pace. With `rate`, the slower of the two applies.
                The recording must have an index.
            bounding_limit_counter_id: Id of a counter. The replay does not go beyond the counter's value. Not together
                with `rate` or `speed`.
            file_io_max_length: Maximum number of bytes that the archive reads at once. `None` stands for the archive's
                setting.

        Returns:
            The id of the replay. Its low 32 bits are the session id of the replayed stream.

        Raises:
            InvalidArgumentError: If an argument is out of range, two arguments contradict each other, or the channel
                has `control-mode=response`.
            NotSupportedByArchiveError: If the archive does not have replays with a rate or speed.
        """
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
    ) -> PendingOperation[int]:
        """Starts `start_replay`, and returns its `PendingOperation` at once."""
    def stop_replay(self, replay_session_id: int) -> None:
        """Stops a replay. An unknown id is not an error.

        Args:
            replay_session_id: Id of the replay, which `start_replay` returned.
        """
    def async_stop_replay(self, replay_session_id: int) -> PendingOperation[None]:
        """Starts `stop_replay`, and returns its `PendingOperation` at once."""
    def stop_all_replays(self, recording_id: int | None = None) -> None:
        """Stops all replays of a recording, including the replays of other clients.

        Args:
            recording_id: Id of the recording. `None` stops the replays of all recordings.
        """
    def async_stop_all_replays(self, recording_id: int | None = None) -> PendingOperation[None]:
        """Starts `stop_all_replays`, and returns its `PendingOperation` at once."""
    def list_recordings(
        self,
        *,
        channel: Channel | None = None,
        stream_id: int | None = None,
        from_recording_id: int = 0,
        limit: int | None = None,
        since: Time | None = None,
        until: Time | None = None,
    ) -> Recordings:
        """Lists recordings in the order of their ids.

        Args:
            channel: Text that the original channel of a recording contains. `None` lists all channels.
            stream_id: Stream id of the recordings. `None` lists all streams.
            from_recording_id: Lowest recording id to list.
            limit: Maximum number of results. `None` stands for no limit.
            since: List only recordings that were active at or after this time, according to their timestamps. The time
                is a datetime with a time zone, or a `numpy.datetime64`, which is in UTC.
            until: List only recordings that began before this time.

        Returns:
            `Recordings`, a tuple with `to_arrow()`.

        Raises:
            InvalidArgumentError: If a datetime has no time zone.
        """
    def async_list_recordings(
        self,
        *,
        channel: Channel | None = None,
        stream_id: int | None = None,
        from_recording_id: int = 0,
        limit: int | None = None,
        since: Time | None = None,
        until: Time | None = None,
    ) -> PendingOperation[Recordings]:
        """Starts `list_recordings`, and returns its `PendingOperation` at once."""
    def list_recording(self, recording_id: int) -> Recording | None:
        """Looks up one recording by its id.

        Args:
            recording_id: Id of the recording.

        Returns:
            The recording, or `None` if the archive does not have it.
        """
    def async_list_recording(self, recording_id: int) -> PendingOperation[Recording | None]:
        """Starts `list_recording`, and returns its `PendingOperation` at once."""
    def list_recording_subscriptions(
        self,
        *,
        channel: Channel | None = None,
        stream_id: int | None = None,
        from_index: int = 0,
        limit: int | None = None,
    ) -> list[RecordingSubscription]:
        """Lists the subscriptions with which the archive records.

        Args:
            channel: Text that the channel of a subscription contains. `None` lists all channels.
            stream_id: Stream id of the subscriptions. `None` lists all streams.
            from_index: Index of the first subscription.
            limit: Maximum number of results. `None` stands for no limit.

        Returns:
            A list of `RecordingSubscription`.
        """
    def async_list_recording_subscriptions(
        self,
        *,
        channel: Channel | None = None,
        stream_id: int | None = None,
        from_index: int = 0,
        limit: int | None = None,
    ) -> PendingOperation[list[RecordingSubscription]]:
        """Starts `list_recording_subscriptions`, and returns its `PendingOperation` at once."""
    def find_last_matching_recording(
        self, channel: Channel, stream_id: int, session_id: int, *, min_recording_id: int = 0
    ) -> int | None:
        """Finds the newest recording of a session and stream.

        Args:
            channel: Text that the original channel of the recording contains.
            stream_id: Stream id.
            session_id: Session id of the publisher.
            min_recording_id: Lowest recording id to consider.

        Returns:
            The recording id, or `None` if there is no such recording.
        """
    def async_find_last_matching_recording(
        self, channel: Channel, stream_id: int, session_id: int, *, min_recording_id: int = 0
    ) -> PendingOperation[int | None]:
        """Starts `find_last_matching_recording`, and returns its `PendingOperation` at once."""
    def get_start_position(self, recording_id: int) -> int:
        """Returns the position of the first byte of a recording.

        Args:
            recording_id: Id of the recording.

        Returns:
            The position, in bytes.
        """
    def async_get_start_position(self, recording_id: int) -> PendingOperation[int]:
        """Starts `get_start_position`, and returns its `PendingOperation` at once."""
    def get_recording_position(self, recording_id: int) -> int | None:
        """Returns the recorded position of an active recording.

        Args:
            recording_id: Id of the recording.

        Returns:
            The position in bytes; `None` if the recording is not active.
        """
    def async_get_recording_position(self, recording_id: int) -> PendingOperation[int | None]:
        """Starts `get_recording_position`, and returns its `PendingOperation` at once."""
    def get_stop_position(self, recording_id: int) -> int | None:
        """Returns the position at which a recording ended.

        Args:
            recording_id: Id of the recording.

        Returns:
            The position in bytes; `None` if the recording is active.
        """
    def async_get_stop_position(self, recording_id: int) -> PendingOperation[int | None]:
        """Starts `get_stop_position`, and returns its `PendingOperation` at once."""
    def get_max_recorded_position(self, recording_id: int) -> int:
        """Returns the recorded position of an active recording, or the stop position of any other recording.

        Args:
            recording_id: Id of the recording.

        Returns:
            The position, in bytes.
        """
    def async_get_max_recorded_position(self, recording_id: int) -> PendingOperation[int]:
        """Starts `get_max_recorded_position`, and returns its `PendingOperation` at once."""
    def truncate_recording(self, recording_id: int, position: int) -> int:
        """Truncates a recording that is not active.

        The archive sends the signal `DELETE` after it has deleted the files.

        Args:
            recording_id: Id of the recording.
            position: New stop position, in bytes. It is the present stop position, or a frame begins there.

        Returns:
            The number of files to delete.
        """
    def async_truncate_recording(self, recording_id: int, position: int) -> PendingOperation[int]:
        """Starts `truncate_recording`, and returns its `PendingOperation` at once."""
    def purge_recording(self, recording_id: int) -> int:
        """Deletes a recording that is neither active nor being replayed.

        The archive sends the signal `DELETE` after it has deleted the files.

        Args:
            recording_id: Id of the recording.

        Returns:
            The number of files to delete.
        """
    def async_purge_recording(self, recording_id: int) -> PendingOperation[int]:
        """Starts `purge_recording`, and returns its `PendingOperation` at once."""
    def detach_segments(self, recording_id: int, new_start_position: int) -> None:
        """Moves the start of a recording to the start of a segment, and keeps the files before the new start.

        Args:
            recording_id: Id of the recording.
            new_start_position: New start position, in bytes. A segment must begin there.
        """
    def async_detach_segments(self, recording_id: int, new_start_position: int) -> PendingOperation[None]:
        """Starts `detach_segments`, and returns its `PendingOperation` at once."""
    def delete_detached_segments(self, recording_id: int) -> int:
        """Deletes the files before the start of a recording.

        The archive sends the signal `DELETE` after it has deleted the files.

        Args:
            recording_id: Id of the recording.

        Returns:
            The number of files to delete.
        """
    def async_delete_detached_segments(self, recording_id: int) -> PendingOperation[int]:
        """Starts `delete_detached_segments`, and returns its `PendingOperation` at once."""
    def purge_segments(self, recording_id: int, new_start_position: int) -> int:
        """Moves the start of a recording to the start of a segment, and deletes the files before the new start.

        The archive sends the signal `DELETE` after it has deleted the files.

        Args:
            recording_id: Id of the recording.
            new_start_position: New start position, in bytes. A segment must begin there.

        Returns:
            The number of files to delete.
        """
    def async_purge_segments(self, recording_id: int, new_start_position: int) -> PendingOperation[int]:
        """Starts `purge_segments`, and returns its `PendingOperation` at once."""
    def attach_segments(self, recording_id: int) -> int:
        """Moves the start of a recording back, so that the recording includes the detached files
        before its start.

        Args:
            recording_id: Id of the recording.

        Returns:
            The number of attached files.
        """
    def async_attach_segments(self, recording_id: int) -> PendingOperation[int]:
        """Starts `attach_segments`, and returns its `PendingOperation` at once."""
    def migrate_segments(self, src_recording_id: int, dst_recording_id: int) -> int:
        """Moves all segments of one recording to an adjacent recording of the same stream.

        Two recordings are adjacent if one begins where the other ends, at the start of a segment. The recording
        `src_recording_id` is empty afterwards.

        Args:
            src_recording_id: Id of the recording that loses its segments.
            dst_recording_id: Id of the recording that gets the segments.

        Returns:
            The number of moved segments.
        """
    def async_migrate_segments(self, src_recording_id: int, dst_recording_id: int) -> PendingOperation[int]:
        """Starts `migrate_segments`, and returns its `PendingOperation` at once."""
    def update_channel(self, recording_id: int, channel: Channel) -> None:
        """Replaces the channel of a recording.

        Args:
            recording_id: Id of the recording.
            channel: The new channel.
        """
    def async_update_channel(self, recording_id: int, channel: Channel) -> PendingOperation[None]:
        """Starts `update_channel`, and returns its `PendingOperation` at once."""
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
    ) -> int:
        """Copies a recording of another archive to this archive.

        The copy is a new recording, or extends the recording `dst_recording_id`.

        Args:
            src_recording_id: Id of the recording in the other archive.
            src_control_channel: Control channel of the other archive.
            src_control_stream_id: Control stream id of the other archive.
            stop_position: Position at which the copy ends, in bytes. `None` stands for the end of the recording.
            dst_recording_id: Id of the recording to extend. `None` creates a new recording.
            live_destination: Destination for the live stream. If it is set, the copy follows the live stream after
                it has caught up.
            replication_channel: Channel of the replay from the other archive. `None` stands for the archive's
                setting.
            src_response_channel: Channel of the responses of the other archive. `None` stands for a free UDP port on
                the host of this archive's `control_channel`, or on `localhost`.
            channel_tag_id: Channel tag of the copy's subscription. `None` stands for no tag.
            subscription_tag_id: Subscription tag of the copy's subscription. `None` stands for no tag.
            file_io_max_length: Maximum number of bytes that the other archive reads at once. `None` stands for the
                other archive's setting.
            replication_session_id: Session id of the replay. `None` stands for the session id of the recording. Not
                together with `live_destination`.
            encoded_credentials: Credentials for the other archive.

        Returns:
            The id of the replication. Signals and errors of the replication have this id as their correlation id.

        Raises:
            InvalidArgumentError: If `live_destination` and `replication_session_id` are both given.
        """
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
    ) -> PendingOperation[int]:
        """Starts `replicate`, and returns its `PendingOperation` at once."""
    def stop_replication(self, replication_id: int) -> None:
        """Stops a replication.

        Args:
            replication_id: Id of the replication.
        """
    def async_stop_replication(self, replication_id: int) -> PendingOperation[None]:
        """Starts `stop_replication`, and returns its `PendingOperation` at once."""
    def try_stop_replication(self, replication_id: int) -> bool:
        """Stops a replication, if there is one.

        Args:
            replication_id: Id of the replication.

        Returns:
            `True` if there was a replication to stop.
        """
    def async_try_stop_replication(self, replication_id: int) -> PendingOperation[bool]:
        """Starts `try_stop_replication`, and returns its `PendingOperation` at once."""
    def wait_recorded(
        self, publication: Publication | ExclusivePublication, position: int, timeout: float | None = None
    ) -> Recording:
        """Waits until the archive has recorded a publication up to a position.

        The archive has then written the data to the recording's files. Whether the data survives a power failure
        depends on the archive's setting `file_sync_level`. If there is no recording, or it stops before the position,
        the call waits until `timeout`.

        Args:
            publication: A recorded publication of this client.
            position: Position in bytes, such as `publication.position`.
            timeout: Seconds to wait. `None` waits without a limit.

        Returns:
            The `Recording`.

        Raises:
            ArchiveTimeoutError: If the archive has not recorded the position within `timeout`, or does not respond
                within the message timeout.
            InvalidArgumentError: If the recording is deleted during the wait.
        """
    def async_wait_recorded(
        self, publication: Publication | ExclusivePublication, position: int
    ) -> PendingOperation[Recording]:
        """Starts `wait_recorded`, and returns its `PendingOperation` at once."""
    @staticmethod
    def segment_file_base_position(
        start_position: int, position: int, term_buffer_length: int, segment_file_length: int
    ) -> int:
        """Returns the position of the first byte of the segment file that contains a position.

        Args:
            start_position: Start position of the recording, in bytes.
            position: Position in the segment file, in bytes.
            term_buffer_length: Length of a term, in bytes.
            segment_file_length: Length of a segment file, in bytes.

        Returns:
            The position of the segment file's first byte, in bytes.
        """
    def signals(self, timeout: float | None = None) -> RecordingSignals:
        """Iterates over signals of recordings as they arrive.

        The client keeps up to 1024 signals. If more arrive, the oldest signal is lost.

        The iterator ends if no signal arrives for `timeout` seconds, or if the program closes this client or the Aeron
        client. If the archive ends the session, the iterator returns the signals that the client has received, and then
        raises `ArchiveDisconnectedError`.

        Args:
            timeout: Seconds to wait for each signal. `None` waits without a limit.

        Returns:
            An iterator of `RecordingSignal`.

        Raises:
            InvalidArgumentError: If the client has a signal handler (`on_signal`).
            ArchiveDisconnectedError: Raised by the iterator if the archive ended the session.
            ClientClosedError: Raised by the iterator if an error closed the Aeron client.
        """
    def poll(self) -> None:
        """Polls the session once. Needed only if the client has no threads."""
    def find_position(
        self, recording_id: int, *, since: Time | None = None, until: Time | None = None
    ) -> FoundPosition:
        """Finds the position of a recording at which a range of time begins or ends.

        A range that begins at a time has all messages that arrived at or after this time. A range that ends at this
        time ends at the same position, so that adjacent ranges share no message. Exception: if arrival times are lost,
        or a segment has no index, both ranges have the messages with unknown times.

        Args:
            recording_id: Id of the recording.
            since: Start of a range: a datetime with a time zone, or a `numpy.datetime64`, which is in UTC.
            until: End of a range, instead of `since`.

        Returns:
            The `FoundPosition`. If the recording has no index, the position is the start or end of a segment, and
            `is_approximate` is `True`.

        Raises:
            InvalidArgumentError: If not exactly one of `since` and `until` is given, or a datetime has no time zone.
            NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
                archive must report its capabilities within a second.

        Example:
            ```python
            noon = datetime(2026, 11, 26, 12, tzinfo=UTC)
            begin = archive.find_position(recording.recording_id, since=noon).position
            ```
        """
    def async_find_position(
        self, recording_id: int, *, since: Time | None = None, until: Time | None = None
    ) -> PendingOperation[FoundPosition]:
        """Starts `find_position`, and returns its `PendingOperation` at once."""
    def commit_reader(
        self,
        recording_id: int,
        name: str,
        position: int,
        *,
        max_age_ms: int | None = None,
        max_lag_bytes: int | None = None,
    ) -> int:
        """Stores the position of a named reader of a recording in the archive. Creates the reader if it does not exist.

        Retention never deletes data after the position of a reader, unless the reader expires or object storage has a
        copy of the data. Each commit replaces both limits, `max_age_ms` and `max_lag_bytes`.

        Args:
            recording_id: Id of the recording.
            name: Name of the reader, unique for the recording: 1 to 255 bytes of UTF-8, without control characters.
            position: Position up to which the reader has processed the recording, in bytes. It must be within the
                recording, and may be less than the stored position.
            max_age_ms: Milliseconds without a commit after which the reader expires. `None` sets no limit.
            max_lag_bytes: Maximum number of bytes recorded after the position. With more bytes, the reader expires.
                `None` sets no limit.

        Returns:
            The position.

        Raises:
            NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
                archive must report its capabilities within a second.

        Example:
            ```python
            archive.commit_reader(recording.recording_id, "bars", batch.positions[-1])
            ```
        """
    def async_commit_reader(
        self,
        recording_id: int,
        name: str,
        position: int,
        *,
        max_age_ms: int | None = None,
        max_lag_bytes: int | None = None,
    ) -> PendingOperation[int]:
        """Starts `commit_reader`, and returns its `PendingOperation` at once."""
    def remove_reader(self, recording_id: int, name: str) -> bool:
        """Removes a named reader. Retention then no longer keeps data for this reader.

        Args:
            recording_id: Id of the recording.
            name: Name of the reader.

        Returns:
            `True` if there was a reader to remove.

        Raises:
            NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
                archive must report its capabilities within a second.
        """
    def async_remove_reader(self, recording_id: int, name: str) -> PendingOperation[bool]:
        """Starts `remove_reader`, and returns its `PendingOperation` at once."""
    def list_readers(self, *, recording_id: int | None = None, name: str | None = None) -> list[NamedReader]:
        """Lists named readers in the order of recording ids and names.

        Args:
            recording_id: Id of the recording. `None` lists the readers of all recordings.
            name: Name of the readers. `None` lists readers with any name.

        Returns:
            A list of `NamedReader`.

        Raises:
            NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
                archive must report its capabilities within a second.
        """
    def async_list_readers(
        self, *, recording_id: int | None = None, name: str | None = None
    ) -> PendingOperation[list[NamedReader]]:
        """Starts `list_readers`, and returns its `PendingOperation` at once."""
    def set_recording_name(self, recording_id: int, name: str) -> None:
        """Sets the name of a recording. The archive stores the name.

        Args:
            recording_id: Id of the recording.
            name: Name, unique in the archive: at most 255 bytes of UTF-8, without control characters. An empty string
                removes the name.

        Raises:
            NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
                archive must report its capabilities within a second.
        """
    def async_set_recording_name(self, recording_id: int, name: str) -> PendingOperation[None]:
        """Starts `set_recording_name`, and returns its `PendingOperation` at once."""
    def set_recording_metadata(self, recording_id: int, metadata: bytes) -> None:
        """Sets the metadata of a recording. The archive stores the metadata, which may be any bytes.

        Args:
            recording_id: Id of the recording.
            metadata: At most 16 KiB. An empty value removes the metadata.

        Raises:
            NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
                archive must report its capabilities within a second.
        """
    def async_set_recording_metadata(self, recording_id: int, metadata: bytes) -> PendingOperation[None]:
        """Starts `set_recording_metadata`, and returns its `PendingOperation` at once."""
    def list_recording_info(self, *, recording_id: int | None = None, name: str | None = None) -> list[RecordingInfo]:
        """Lists the recordings that have a name, metadata or a link, in the order of their ids.

        Args:
            recording_id: Id of the recording. `None` lists all recordings.
            name: Name of the recording. `None` lists recordings with any name and without a name.

        Returns:
            A list of `RecordingInfo`.

        Raises:
            NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
                archive must report its capabilities within a second.
        """
    def async_list_recording_info(
        self, *, recording_id: int | None = None, name: str | None = None
    ) -> PendingOperation[list[RecordingInfo]]:
        """Starts `list_recording_info`, and returns its `PendingOperation` at once."""
    def list_copied_ranges(self, *, recording_id: int | None = None) -> list[CopiedRange]:
        """Lists the recordings of which segments have copies in object storage, in the order of their ids.

        After its start, an archive may not know the copies of a recording yet. The request then waits up to 5 seconds,
        and is refused after that. A request for all recordings needs the copies of each recording in the catalog.

        Args:
            recording_id: Id of the recording. `None` lists all recordings.

        Returns:
            A list of `CopiedRange`. A recording without copies is not in the list.

        Raises:
            NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
                archive must report its capabilities within a second.
        """
    def async_list_copied_ranges(self, *, recording_id: int | None = None) -> PendingOperation[list[CopiedRange]]:
        """Starts `list_copied_ranges`, and returns its `PendingOperation` at once."""
    def set_retention(
        self,
        *,
        recording_id: int | None = None,
        stream_id: int | None = None,
        channel: Channel | None = None,
        max_bytes: int | None = None,
        max_age_ms: int | None = None,
    ) -> bool:
        """Sets a retention policy, by which the archive deletes old data automatically. Without a policy, the archive
        never deletes data by itself. The archive applies a new policy at once.

        A policy is for one recording, or for all recordings that match `stream_id` and `channel`. At most one policy
        applies to a recording: the policy for its id, otherwise the most specific match. If neither `max_bytes` nor
        `max_age_ms` is given, the call removes the policy.

        Args:
            recording_id: Id of the recording. `None` stands for all recordings that match.
            stream_id: Stream id of the recordings. `None` matches all streams.
            channel: Text that the original channel of the recordings contains, at most 1024 bytes. `None` matches all
                channels.
            max_bytes: Maximum number of bytes of all recordings of the policy together. If there are more, whole
                segments are deleted, the oldest first. A stopped recording is deleted with its last segment. `None`
                sets no limit.
            max_age_ms: Maximum age of the data in milliseconds. A segment is deleted if all its data are older than
                this. A whole recording is deleted if it stopped longer ago than this. `None` sets no limit.

        Returns:
            `True` if a policy was replaced or removed.

        Raises:
            InvalidArgumentError: If `recording_id` is given together with `stream_id` or `channel`.
            NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
                archive must report its capabilities within a second.

        Example:
            ```python
            archive.set_retention(stream_id=1001, max_bytes=10 * 2**30, max_age_ms=7 * 24 * 3_600_000)
            for outcome in archive.apply_retention(dry_run=True):
                print(outcome.recording_id, outcome.new_start_position, outcome.held_by)
            ```
        """
    def async_set_retention(
        self,
        *,
        recording_id: int | None = None,
        stream_id: int | None = None,
        channel: Channel | None = None,
        max_bytes: int | None = None,
        max_age_ms: int | None = None,
    ) -> PendingOperation[bool]:
        """Starts `set_retention`, and returns its `PendingOperation` at once."""
    def list_retention(self) -> list[RetentionPolicy]:
        """Lists the retention policies. The policies of single recordings come first.

        Returns:
            A list of `RetentionPolicy`.

        Raises:
            NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
                archive must report its capabilities within a second.
        """
    def async_list_retention(self) -> PendingOperation[list[RetentionPolicy]]:
        """Starts `list_retention`, and returns its `PendingOperation` at once."""
    def apply_retention(
        self, *, recording_id: int | None = None, dry_run: bool = False, trust_clock: bool = False
    ) -> list[RetentionOutcome]:
        """Applies the retention policies now, or reports what they would delete.

        The archive also applies the policies by itself: at least every five seconds, and when a policy changes, a
        recording enters a new segment, or a recording stops. Files are deleted after the response, one by one.

        Args:
            recording_id: Id of the recording. `None` stands for all recordings.
            dry_run: Whether to report only, and delete nothing.
            trust_clock: Whether the archive trusts the wall clock from now on. Deletion by age and the expiry of
                readers then stop waiting (`held_by` was `"CLOCK"`). Use it if the machine's time is right. It cannot be
                used with `dry_run`.

        Returns:
            A list of `RetentionOutcome`, one for each recording with data that the policies would delete. The list also
                has recordings of which all these data stay; `held_by` is then the reason.

        Raises:
            NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
                archive must report its capabilities within a second.
        """
    def async_apply_retention(
        self, *, recording_id: int | None = None, dry_run: bool = False, trust_clock: bool = False
    ) -> PendingOperation[list[RetentionOutcome]]:
        """Starts `apply_retention`, and returns its `PendingOperation` at once."""
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
    ) -> Follower:
        """Reads a recorded stream from a position in its history, joins the live stream, and follows it without gaps.

        Args:
            recording: Id of the recording, or a `Recording`. If it is not given, `channel` and `stream_id` select
                the recordings.
            channel: Text that the channels of the recordings contain.
            stream_id: Stream id of the recordings.
            position: Position of the first message in bytes, ``"earliest"`` or ``"latest"``. ``"earliest"``
                includes segments in object storage. ``"latest"`` begins with the live stream. A position in
                bytes needs `recording`. Default: the position of the reader if the archive has it, otherwise
                ``"earliest"``.
            since: Time at which to begin, instead of `position`: a `datetime` with a time zone, or a
                `numpy.datetime64`. No message that arrived at or after this time is skipped.
            reader: Name of the reader.
            commit: When the position of the reader is committed: ``"batch"`` or ``"explicit"``.
            max_age_ms: Milliseconds without a commit after which the reader expires. `None`: never.
            max_lag_bytes: Maximum number of bytes recorded after the reader's position. With more bytes, the reader
                expires. `None`: no limit.
            live_channel: Channel of the live stream. Default: the channel of the recording. If another host
                publishes the stream to the archive by unicast, there is no live stream to join, and the follower
                reads the recording.
            replay_channel: Channel of replays, with an address of this machine. Its port may be 0.
            replay_stream_id: Stream id of replays.
            on_change: Called as ``on_change(change)`` with a `RecordingChange`.
            on_live_joined: Called without arguments when the follower has joined the live stream.
            on_live_left: Called without arguments when the follower has lost the live stream.
            on_error: Called as ``on_error(error)`` with each `PersistentSubscriptionError`, even if the error does
                not end the follower.

        Returns:
            The `Follower`.

        Raises:
            InvalidArgumentError: If the arguments contradict each other, or `since` has no time zone.
            UnknownRecordingError: If the archive does not have the recording.
            ArchiveError: If the archive refuses a request. `NotSupportedByArchiveError` if `reader` or `since` is
                used with an archive of another project.

        Example:
            ```python
            with archive.follow(channel="aeron:ipc", stream_id=1001, reader="bars") as follower:
                for batch in follower.batches():
                    process(batch)
            ```
        """
    def reconnect(self) -> AeronArchive:
        """Connects another client with the same settings, for example to an archive that was restarted.

        A session with an archive ends when the archive ends, and its client closes itself. One method of the client may
        then raise `ArchiveDisconnectedError`, and all later calls raise `ArchiveClosedError`. If the archive was killed
        a moment ago, methods raise `ArchiveTimeoutError`. The new client has neither `on_signal` nor `error_handler`.
        This client stays as it is.

        Returns:
            The new `AeronArchive`.

        Raises:
            ArchiveTimeoutError: If the archive does not respond within the message timeout.
            ArchiveError: If the archive refuses the connection.
            ClientClosedError: If the Aeron client is closed.

        Example:
            ```python
            try:
                recordings = archive.list_recordings()
            except (aeron.ArchiveDisconnectedError, aeron.ArchiveClosedError):
                archive = archive.reconnect()
            ```
        """
    def async_reconnect(self) -> PendingOperation[AeronArchive]:
        """Starts `reconnect`, and returns its `PendingOperation` at once."""
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
    ) -> PersistentSubscription:
        """Adds a `PersistentSubscription` that replays a recording of this archive, and then joins its live stream.

        The subscription has its own session with the archive, with the settings of this client. If the
        credentials are a function, each connection of the subscription calls it.

        Args:
            recording_id: Id of the recording.
            live_channel: Channel of the live stream: IPC, unicast, multicast, `control-mode=dynamic` or a spy.
            live_stream_id: Stream id of the live stream, which must be the stream id of the recording.
            replay_channel: Channel of replays, with an address of this machine. Its port may be 0, and it may
                have `control-mode=response`.
            replay_stream_id: Stream id of replays.
            start_position: Position of the first message in bytes, `FROM_START`, or `FROM_LIVE`. With
                `FROM_LIVE` the subscription begins with the live stream.
            on_live_joined: Called without arguments in a poll, when the subscription has joined the live stream.
            on_live_left: Called without arguments in a poll, when the subscription has lost the live stream.
            on_error: Called in a poll as `on_error(error)` with each `PersistentSubscriptionError`. If
                `has_failed` is then `True`, the error has ended the subscription.

        Returns:
            The subscription.

        Raises:
            ArgumentTypeError: If a required argument is missing.
            InvalidArgumentError: If a channel or `start_position` is not valid.
            ConfigurationError: If a setting is not valid or contradicts another setting.
            RegistrationError: If the driver refuses the counters of the subscription; the subclass names the reason.
            DriverTimeoutError: If the driver does not respond within the driver timeout.
            ClientClosedError: If the Aeron client is closed.
        """
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
    ) -> RecordedPublisher:
        """Creates a `RecordedPublisher` that this archive records.

        The publisher has its own client of this archive's driver. The publisher also has its own session with the
        archive, with the settings of this client. If the credentials are a function, each connection of the
        publisher calls it.

        Args:
            channel: Channel of the stream.
            stream_id: Stream id of the stream and of its recording.
            recording_id: Id of the recording to extend.
            alias: Name of the stream, instead of a recording id. The publisher extends the last recording with this
                alias and stream id. If there is none, the publisher starts a recording.
            source: `"LOCAL"` if the archive is on this driver, `"REMOTE"` if the archive is on another driver.
            buffer_length: Maximum number of bytes of messages that are not recorded yet, at least 65536. Each message
                counts with 32 bytes more than its length.
            takeover_timeout: Seconds to wait at the start until another publisher of the recording has ended.
            on_reconnect: Called as `on_reconnect(position)` when the recording continues after a loss.
            on_error: Called as `on_error(error)` with each `RecordedPublisherError`. If `has_failed` is then `True`,
                the error has ended the publisher.
            driver_timeout_ms: Milliseconds to wait for the driver. Default: `AERON_DRIVER_TIMEOUT`, or `10000`.

        Returns:
            The publisher.

        Raises:
            InvalidArgumentError: If the channel is not valid.
            ConfigurationError: If a setting is not valid or contradicts another setting.
        """
    def poll_for_error(self) -> AeronError | None:
        """Polls the session once, and returns an error that no call can raise, such as an error of a replay.

        If the client has an `error_handler`, that handler gets these errors instead.

        Returns:
            The error, or `None` if there is no such error.
        """
    @property
    def archive_id(self) -> int:
        """Id of the archive; -1 if the archive is too old to report it."""
    @property
    def last_correlation_id(self) -> int:
        """Correlation id of the last request; -1 before the first request."""
    @property
    def control_session_id(self) -> int:
        """Id of the control session."""
    @property
    def client(self) -> Aeron:
        """The Aeron client that the archive's client uses."""
    @property
    def state(self) -> Literal["CONNECTED", "DISCONNECTED", "CLOSED"]:
        """State of the session: `CONNECTED`, `DISCONNECTED` or `CLOSED`.

        If the archive ends the session, the state is `DISCONNECTED` until the client closes itself.
        """
    @property
    def is_closed(self) -> bool:
        """Whether the client was closed, by the program or because its session has ended."""
    def close(self) -> None:
        """Closes the session. Idempotent.

        Outstanding requests fail with `ArchiveClosedError`. Recordings, replays and replications of the archive
        continue. `reconnect` and `recorded_publisher` can still be called.
        """
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
) -> AeronArchive:
    """Connects an Aeron client to an archive, and waits for the connection.

    Without `control_channel`, the function connects to the archive on the client's driver. For any other archive,
    `control_channel` is the channel on which the archive receives requests, and `response_channel` has an address
    of this machine that the archive can reach.

    Args:
        client: An Aeron client. Closing the archive's client does not close this client.
        control_channel: Channel of the requests. Default: `AERON_ARCHIVE_CONTROL_CHANNEL`, or `aeron:ipc`.
        control_stream_id: Stream id of the requests. Default: `AERON_ARCHIVE_CONTROL_STREAM_ID`, or `10`.
        response_channel: Channel on which the archive publishes its responses. Default:
            `AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL`. Without that variable, IPC if `control_channel` is IPC, or a
            free local port if `control_channel` has a loopback address. There is no default for an archive
            on another host.
        response_stream_id: Stream id of the responses. Default:
            `AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID`, or `20`.
        credentials: Bytes for the archive's authenticator, or a function that returns them. The function is
            first called with `None`, and again with the archive's challenge if there is one.
        message_timeout: Seconds to wait for the connection, and for each response. Default:
            `AERON_ARCHIVE_MESSAGE_TIMEOUT`, or `10`.
        client_name: Name of the client in the archive's counters. Default: `AERON_ARCHIVE_CLIENT_NAME`, or
            no name.
        control_term_buffer_length: Term length of the control streams, in bytes. Default:
            `AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH`, or 1 MiB.
        control_term_buffer_sparse: Whether the log files of the control streams are sparse. Default:
            `AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE`, or `True`.
        control_mtu_length: Maximum length of a frame of the control streams, in bytes. Default:
            `AERON_ARCHIVE_CONTROL_MTU_LENGTH`, or `1408`.
        on_signal: Called as `on_signal(signal)` with each `RecordingSignal`, on a thread of the client.
            Without this handler, `signals()` returns the signals.
        error_handler: Called as `error_handler(error)` with each error that no call can raise, on a thread
            of the client. A client without threads refuses both handlers.

    Returns:
        An `AeronArchive`.

    Raises:
        ArchiveTimeoutError: If the archive does not respond within the message timeout.
        ArchiveError: If the archive refuses the connection.
        ConfigurationError: If a setting is not valid, or a handler is given for a client without threads.
        InvalidArgumentError: If a channel or `message_timeout` is not valid.
        RegistrationError: If the driver refuses a channel; the subclass names the reason.
        ClientClosedError: If the Aeron client is closed.
        ReentrantCallError: If a handler of the Aeron client calls the function.

    Example:
        ```python
        archive = aeron.connect_archive(client)
        ```
    """

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
) -> PendingOperation[AeronArchive]:
    """Starts `connect_archive`, and returns its `PendingOperation` at once. `async with` closes its `AeronArchive`."""
