//! Methods that copy recordings of other archives.

use aeron_archive::client::{ArchiveCall, ReplicationParams};
use aeron_protocol::archive::{NULL_LENGTH, NULL_SESSION_ID, NULL_VALUE};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use super::super::errors::from_archive;
use super::PyAeronArchive;
use super::methods::archive_methods;
use crate::argument;
use crate::channel::Channel;
use crate::operations::PyPendingOperation;

archive_methods! {
    /// Copies a recording of another archive to this archive.
    ///
    /// The copy is a new recording, or extends the recording `dst_recording_id`.
    ///
    /// Args:
    ///     src_recording_id: Id of the recording in the other archive.
    ///     src_control_channel: Control channel of the other archive.
    ///     src_control_stream_id: Control stream id of the other archive.
    ///     stop_position: Position at which the copy ends, in bytes. `None` stands for the end of the recording.
    ///     dst_recording_id: Id of the recording to extend. `None` creates a new recording.
    ///     live_destination: Destination for the live stream. If it is set, the copy follows the live stream after
    ///         it has caught up.
    ///     replication_channel: Channel of the replay from the other archive. `None` stands for the archive's
    ///         setting.
    ///     src_response_channel: Channel of the responses of the other archive. `None` stands for a free UDP port on
    ///         the host of this archive's `control_channel`, or on `localhost`.
    ///     channel_tag_id: Channel tag of the copy's subscription. `None` stands for no tag.
    ///     subscription_tag_id: Subscription tag of the copy's subscription. `None` stands for no tag.
    ///     file_io_max_length: Maximum number of bytes that the other archive reads at once. `None` stands for the
    ///         other archive's setting.
    ///     replication_session_id: Session id of the replay. `None` stands for the session id of the recording. Not
    ///         together with `live_destination`.
    ///     encoded_credentials: Credentials for the other archive.
    ///
    /// Returns:
    ///     The id of the replication. Signals and errors of the replication have this id as their correlation id.
    ///
    /// Raises:
    ///     InvalidArgumentError: If `live_destination` and `replication_session_id` are both given.
    replicate, async_replicate (
        src_recording_id, src_control_channel, src_control_stream_id = 10, *, stop_position = None, dst_recording_id = None,
        live_destination = None, replication_channel = None, src_response_channel = None, channel_tag_id = None,
        subscription_tag_id = None, file_io_max_length = None, replication_session_id = None, encoded_credentials = None
    )
    [
        slf, src_recording_id: i64, src_control_channel: Channel, src_control_stream_id: i32, stop_position: Option<i64>,
        dst_recording_id: Option<i64>, live_destination: Option<Channel>, replication_channel: Option<Channel>,
        src_response_channel: Option<Channel>, channel_tag_id: Option<i64>, subscription_tag_id: Option<i64>,
        file_io_max_length: Option<i32>, replication_session_id: Option<i32>, encoded_credentials: Option<PyBackedBytes>,
    ] {
        let text = |channel: Option<Channel>| channel.map_or_else(String::new, |channel| channel.0);
        let params = ReplicationParams {
            stop_position: stop_position.unwrap_or(NULL_VALUE),
            dst_recording_id: dst_recording_id.unwrap_or(NULL_VALUE),
            live_destination: text(live_destination),
            replication_channel: text(replication_channel),
            src_response_channel: text(src_response_channel),
            channel_tag_id: channel_tag_id.unwrap_or(NULL_VALUE),
            subscription_tag_id: subscription_tag_id.unwrap_or(NULL_VALUE),
            file_io_max_length: file_io_max_length.unwrap_or(NULL_LENGTH),
            replication_session_id: replication_session_id.unwrap_or(NULL_SESSION_ID),
            encoded_credentials: encoded_credentials.map_or_else(Vec::new, |bytes| bytes.to_vec()),
        };
        let call = ArchiveCall::replicate(
            src_recording_id, src_control_stream_id, &src_control_channel.0, &params,
        );
        Self::request(slf, call.map_err(|error| from_archive(&error))?)
    }

    /// Stops a replication.
    ///
    /// Args:
    ///     replication_id: Id of the replication.
    stop_replication, async_stop_replication (replication_id) [slf, replication_id: i64] {
        Self::request(slf, ArchiveCall::<()>::stop_replication(replication_id))
    }

    /// Stops a replication, if there is one.
    ///
    /// Args:
    ///     replication_id: Id of the replication.
    ///
    /// Returns:
    ///     `True` if there was a replication to stop.
    try_stop_replication, async_try_stop_replication (replication_id) [slf, replication_id: i64] {
        Self::request(slf, ArchiveCall::<bool>::try_stop_replication(replication_id))
    }
}
