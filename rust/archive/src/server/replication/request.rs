//! [`ReplicationRequest`]: the source, the destination and the end of a replication. [`ReplicationSettings`]: what
//! a request does not set.

/// Settings of replications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct ReplicationSettings {
    /// Id of the archive, which is sent to the source archives.
    pub archive_id: i64,
    /// Channel of replays from source archives, if a request does not set a channel.
    pub replication_channel: String,
    /// Channel of responses from source archives, if a request does not set a channel.
    pub response_channel: String,
    /// Time limit for a step, in nanoseconds.
    pub message_timeout_ns: i64,
    /// Term length of control channels, in bytes.
    pub control_term_length: u32,
    /// Whether the logs of control channels are sparse.
    pub is_control_term_sparse: bool,
    /// Longest frame of control channels, in bytes.
    pub control_mtu_length: u32,
}

/// A request to copy a recording of another archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct ReplicationRequest {
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
    /// Returns whether the destinations of the recording's subscription are added by commands. This
    /// is so if the request has a live destination or a tag.
    pub fn has_manual_destinations(&self) -> bool {
        self.live_destination.is_some()
            || self.channel_tag_id.is_some()
            || self.subscription_tag_id.is_some()
    }
}
