//! [`ReplicationRequest`]: the source, the destination and the end of a replication.

use aeron_protocol::archive::{
    NULL_LENGTH, NULL_SESSION_ID, NULL_VALUE, ReplicateRequest, ReplicateRequest2, RequestIds,
    TaggedReplicateRequest,
};

use crate::server::ArchiveError;

/// A request to copy a recording of another archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct ReplicationRequest {
    /// Control session id and correlation id of the request. All messages about the replication go to this control
    /// session.
    pub requester: RequestIds,
    /// Id of the recording in the source archive.
    pub source_recording_id: i64,
    /// Id of the recording of this archive that is extended; `None` for a new recording.
    pub destination_recording_id: Option<i64>,
    /// Position at which the replication stops; `None` for the end of the source recording.
    pub stop_position: Option<i64>,
    /// Channel tag of the subscription that records the replay; `None` for no tag.
    pub channel_tag_id: Option<i64>,
    /// Subscription tag of the subscription that records the replay; `None` for no tag.
    pub subscription_tag_id: Option<i64>,
    /// Channel of the source archive's control requests.
    pub control_channel: String,
    /// Stream id of the source archive's control requests.
    pub control_stream_id: i32,
    /// Channel of the live stream with which the replication merges; `None` if it does not merge.
    pub live_destination: Option<String>,
    /// Channel of the replay from the source; `None` for the archive's setting.
    pub replication_channel: Option<String>,
    /// Channel of the source's responses; `None` for the archive's setting.
    pub response_channel: Option<String>,
    /// Credentials for the source archive.
    pub encoded_credentials: Vec<u8>,
    /// Longest read of a segment file at the source, in bytes.
    pub file_io_max_length: i32,
    /// Session id of the replay; `None` for the session id of the source recording.
    pub session_id: Option<i32>,
}

impl ReplicationRequest {
    /// Decodes a request with all parameters.
    ///
    /// # Errors
    /// A channel is not UTF-8.
    pub fn of(
        requester: RequestIds,
        request: &ReplicateRequest2<'_>,
    ) -> Result<Self, ArchiveError> {
        Ok(Self {
            requester,
            source_recording_id: request.src_recording_id,
            destination_recording_id: set(request.dst_recording_id),
            stop_position: set(request.stop_position),
            channel_tag_id: set(request.channel_tag_id),
            subscription_tag_id: set(request.subscription_tag_id),
            control_channel: text("srcControlChannel", request.src_control_channel)?,
            control_stream_id: request.src_control_stream_id,
            live_destination: channel("liveDestination", request.live_destination)?,
            replication_channel: channel("replicationChannel", request.replication_channel)?,
            response_channel: channel("srcResponseChannel", request.src_response_channel)?,
            encoded_credentials: request.encoded_credentials.to_vec(),
            file_io_max_length: request.file_io_max_length,
            session_id: (request.replication_session_id != NULL_SESSION_ID)
                .then_some(request.replication_session_id),
        })
    }

    /// Decodes a request of an old client.
    ///
    /// # Errors
    /// A channel is not UTF-8.
    pub fn of_old(
        requester: RequestIds,
        request: &ReplicateRequest<'_>,
    ) -> Result<Self, ArchiveError> {
        Self::of(
            requester,
            &ReplicateRequest2 {
                control_session_id: request.control_session_id,
                correlation_id: request.correlation_id,
                src_recording_id: request.src_recording_id,
                dst_recording_id: request.dst_recording_id,
                stop_position: NULL_VALUE,
                channel_tag_id: NULL_VALUE,
                subscription_tag_id: NULL_VALUE,
                src_control_stream_id: request.src_control_stream_id,
                file_io_max_length: NULL_LENGTH,
                replication_session_id: NULL_SESSION_ID,
                src_control_channel: request.src_control_channel,
                live_destination: request.live_destination,
                replication_channel: &[],
                encoded_credentials: &[],
                src_response_channel: &[],
            },
        )
    }

    /// Decodes a request with tags from an old client.
    ///
    /// # Errors
    /// A channel is not UTF-8.
    pub fn of_tagged(
        requester: RequestIds,
        request: &TaggedReplicateRequest<'_>,
    ) -> Result<Self, ArchiveError> {
        let mut tagged = Self::of_old(
            requester,
            &ReplicateRequest {
                control_session_id: request.control_session_id,
                correlation_id: request.correlation_id,
                src_recording_id: request.src_recording_id,
                dst_recording_id: request.dst_recording_id,
                src_control_stream_id: request.src_control_stream_id,
                src_control_channel: request.src_control_channel,
                live_destination: request.live_destination,
            },
        )?;
        tagged.channel_tag_id = set(request.channel_tag_id);
        tagged.subscription_tag_id = set(request.subscription_tag_id);
        Ok(tagged)
    }

    /// Returns whether the destinations of the recording's subscription are added by commands. This
    /// is so if the request has a live destination or a tag.
    pub fn has_manual_destinations(&self) -> bool {
        self.live_destination.is_some()
            || self.channel_tag_id.is_some()
            || self.subscription_tag_id.is_some()
    }
}

fn set(value: i64) -> Option<i64> {
    (value != NULL_VALUE).then_some(value)
}

fn channel(field: &str, bytes: &[u8]) -> Result<Option<String>, ArchiveError> {
    match bytes.is_empty() {
        true => Ok(None),
        false => text(field, bytes).map(Some),
    }
}

fn text(field: &str, bytes: &[u8]) -> Result<String, ArchiveError> {
    String::from_utf8(bytes.to_vec())
        .map_err(|error| ArchiveError::generic(format!("{field} is not text: {error}")))
}
