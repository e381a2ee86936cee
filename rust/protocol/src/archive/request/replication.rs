//! Requests that start and stop replications: copies of recordings from other archives.

use aeron_layout::archive_message::request::{
    Replicate2Layout, ReplicateLayout, StopReplicationLayout, TaggedReplicateLayout,
};

use super::super::declare::session_request;
use super::super::{NULL_LENGTH, NULL_SESSION_ID};

session_request! {
    /// Copies a recording of another archive, with all parameters. The result is the replication id. Later messages
    /// about the replication have this id as their correlation id.
    pub struct ReplicateRequest2<'a>(Replicate2Layout) = 66 {
        /// Id of the recording in the source archive.
        pub src_recording_id: i64,
        /// Id of the recording in this archive that is extended; -1 for a new recording.
        pub dst_recording_id: i64,
        /// Position at which the replication stops; -1 for the end of the source.
        pub stop_position: i64,
        /// Tag of the channel; -1 if the channel has no tag.
        pub channel_tag_id: i64,
        /// Tag of the subscription; -1 if the subscription has no tag.
        pub subscription_tag_id: i64,
        /// Stream id of the source archive's control requests.
        pub src_control_stream_id: i32,
        /// Maximum length of a read from a segment file at the source in bytes; [`NULL_LENGTH`] for the setting of the
        /// source.
        pub file_io_max_length: i32 = NULL_LENGTH since 7,
        /// Session id of the replay at the source; [`NULL_SESSION_ID`] for the session id of the source recording.
        pub replication_session_id: i32 = NULL_SESSION_ID since 8,
        data {
            /// Channel of the source archive's control requests.
            src_control_channel,
            /// Channel of the live stream with which the replication merges; empty for no merge.
            live_destination,
            /// Channel over which the source replays; empty for the archive's setting.
            replication_channel,
            /// Credentials for the source archive.
            encoded_credentials since 8,
            /// Channel of the source's responses; empty for the archive's setting.
            src_response_channel since 10,
        }
    }
}

session_request! {
    /// Copies a recording of another archive. Sent by old clients; equals [`ReplicateRequest2`] with all other fields
    /// unset.
    pub struct ReplicateRequest<'a>(ReplicateLayout) = 50 {
        /// Id of the recording in the source archive.
        pub src_recording_id: i64,
        /// Id of the recording in this archive that is extended; -1 for a new recording.
        pub dst_recording_id: i64,
        /// Stream id of the source archive's control requests.
        pub src_control_stream_id: i32,
        data {
            /// Channel of the source archive's control requests.
            src_control_channel,
            /// Channel of the live stream with which the replication merges; empty for no merge.
            live_destination,
        }
    }
}

session_request! {
    /// Copies a recording of another archive, with tags. Sent by old clients; equals [`ReplicateRequest2`] with all
    /// other fields unset.
    pub struct TaggedReplicateRequest<'a>(TaggedReplicateLayout) = 62 {
        /// Id of the recording in the source archive.
        pub src_recording_id: i64,
        /// Id of the recording in this archive that is extended; -1 for a new recording.
        pub dst_recording_id: i64,
        /// Tag of the channel; -1 if the channel has no tag.
        pub channel_tag_id: i64,
        /// Tag of the subscription; -1 if the subscription has no tag.
        pub subscription_tag_id: i64,
        /// Stream id of the source archive's control requests.
        pub src_control_stream_id: i32,
        data {
            /// Channel of the source archive's control requests.
            src_control_channel,
            /// Channel of the live stream with which the replication merges; empty for no merge.
            live_destination,
        }
    }
}

session_request! {
    /// Stops a replication. The result is 0.
    pub struct StopReplicationRequest(StopReplicationLayout) = 51 {
        /// Replication id from the response to the start of the replication.
        pub replication_id: i64,
    }
}
