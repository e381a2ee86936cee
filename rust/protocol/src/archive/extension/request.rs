//! Requests of a client.

use aeron_layout::archive_message::extension::{
    ApplyRetentionLayout, CommitReaderLayout, FindPositionLayout, ListByNameLayout,
    ReplayAtRateLayout, SetRetentionLayout,
};
use aeron_layout::archive_message::request::{RecordingRequestLayout, SessionRequestLayout};

use super::super::codes::TimeEdge;
use super::super::declare::{archive_request_set, session_request};

session_request! {
    /// Requests the [`Capabilities`](super::Capabilities) of the archive.
    pub struct CapabilitiesRequest(SessionRequestLayout) = 20_000 {}
}

session_request! {
    /// Creates a named reader of a recording, or stores the position of the reader. The result is the position.
    pub struct CommitReaderRequest<'a>(CommitReaderLayout) = 20_001 {
        /// Recording id.
        pub recording_id: i64,
        /// Position up to which the reader has processed the recording.
        pub position: i64,
        /// Maximum time without a commit, in milliseconds. After this time the reader expires; -1 for no limit.
        pub max_age_ms: i64,
        /// Maximum number of bytes recorded after the reader's position. Above this number the reader expires; -1 for
        /// no limit.
        pub max_lag: i64,
        data {
            /// Name of the reader.
            name,
        }
    }
}

session_request! {
    /// Removes a named reader. The result is 1, or 0 if there is no such reader.
    pub struct RemoveReaderRequest<'a>(RecordingRequestLayout) = 20_002 {
        /// Recording id.
        pub recording_id: i64,
        data {
            /// Name of the reader.
            name,
        }
    }
}

session_request! {
    /// Lists named readers by recording and name.
    pub struct ListReadersRequest<'a>(ListByNameLayout) = 20_003 {
        /// Recording id, or -1 for all recordings.
        pub recording_id: i64,
        /// Index of the first reader.
        pub from_index: i32,
        /// Maximum number of readers, at most [`MAX_LISTED`](super::MAX_LISTED).
        pub count: i32,
        data {
            /// Name of the readers; empty for all.
            name,
        }
    }
}

session_request! {
    /// Sets the retention policy of a recording, or of all recordings with a stream and a part of the channel. If both
    /// limits are -1, removes the policy. The result is 1 if a policy was replaced or removed, otherwise 0.
    pub struct SetRetentionRequest<'a>(SetRetentionLayout) = 20_004 {
        /// Recording id, or -1 for all recordings that match stream and channel.
        pub recording_id: i64,
        /// Maximum total number of bytes of the recordings to which the policy applies; -1 for no limit.
        pub max_bytes: i64,
        /// Maximum age in milliseconds; -1 for no limit.
        pub max_age_ms: i64,
        /// Whether only recordings of `stream_id` match.
        pub apply_stream_id: bool,
        /// Stream id.
        pub stream_id: i32,
        data {
            /// Text that the channel contains; empty for all channels.
            channel,
        }
    }
}

session_request! {
    /// Lists retention policies. The archive ignores `recording_id` and `name`.
    pub struct ListRetentionRequest<'a>(ListByNameLayout) = 20_005 {
        /// Unused, -1.
        pub recording_id: i64,
        /// Index of the first policy.
        pub from_index: i32,
        /// Maximum number of policies, at most [`MAX_LISTED`](super::MAX_LISTED).
        pub count: i32,
        data {
            /// Unused, empty.
            name,
        }
    }
}

session_request! {
    /// Applies the retention policies now, or reports the data that they would delete. Lists the affected recordings.
    pub struct ApplyRetentionRequest(ApplyRetentionLayout) = 20_006 {
        /// Recording id, or -1 for all recordings.
        pub recording_id: i64,
        /// Whether the archive only reports and deletes nothing.
        pub dry_run: bool,
        /// Whether the archive trusts the wall clock from now on: deletion by age and the expiry of readers stop
        /// waiting.
        pub trust_clock: bool,
    }
}

session_request! {
    /// Replaces the name of a recording.
    pub struct SetRecordingNameRequest<'a>(RecordingRequestLayout) = 20_007 {
        /// Recording id.
        pub recording_id: i64,
        data {
            /// Name, unique in the archive; empty for none.
            name,
        }
    }
}

session_request! {
    /// Replaces the metadata of a recording.
    pub struct SetRecordingMetadataRequest<'a>(RecordingRequestLayout) = 20_008 {
        /// Recording id.
        pub recording_id: i64,
        data {
            /// Any bytes; empty for none.
            metadata,
        }
    }
}

session_request! {
    /// Lists the recordings that have a name, metadata or a link.
    pub struct ListRecordingInfoRequest<'a>(ListByNameLayout) = 20_009 {
        /// Recording id, or -1 for all recordings.
        pub recording_id: i64,
        /// Index of the first recording.
        pub from_index: i32,
        /// Maximum number of recordings, at most [`MAX_LISTED`](super::MAX_LISTED).
        pub count: i32,
        data {
            /// Name of the recording; empty for all.
            name,
        }
    }
}

session_request! {
    /// Finds a position by time. Responds with a [`TimePosition`](super::TimePosition).
    pub struct FindPositionRequest(FindPositionLayout) = 20_010 {
        /// Recording id.
        pub recording_id: i64,
        /// Time in microseconds since the epoch.
        pub timestamp_us: i64,
        /// Whether a range begins or ends at the position.
        pub edge: TimeEdge,
        /// Unused, 0.
        pub reserved: i32,
    }
}

session_request! {
    /// Publishes a recording like [`ReplayRequest`](super::super::ReplayRequest), at a limited rate or at the recorded
    /// speed.
    pub struct ReplayAtRateRequest<'a>(ReplayAtRateLayout) = 20_011 {
        /// Recording id.
        pub recording_id: i64,
        /// Position of the first frame; [`NULL_VALUE`](super::super::NULL_VALUE) for the start of the recording.
        pub position: i64,
        /// Same meaning as in a [`ReplayRequest`](super::super::ReplayRequest).
        pub length: i64,
        /// Same meaning as in a [`ReplayRequest`](super::super::ReplayRequest).
        pub replay_token: i64,
        /// Maximum number of bytes of the stream for each second; -1 for no limit.
        pub max_bytes_per_second: i64,
        /// Replay speed: [`SPEED_UNIT`](super::SPEED_UNIT) is the recorded speed; -1 if the replay ignores the recorded
        /// speed.
        pub speed_millionths: i64,
        /// Stream id of the replay.
        pub replay_stream_id: i32,
        /// Same meaning as in a [`ReplayRequest`](super::super::ReplayRequest).
        pub file_io_max_length: i32,
        data {
            /// Channel of the replay.
            replay_channel,
        }
    }
}

session_request! {
    /// Lists recordings with copies in object storage.
    pub struct ListCopiedRangesRequest<'a>(ListByNameLayout) = 20_012 {
        /// Recording id, or -1 for all recordings.
        pub recording_id: i64,
        /// Index of the first recording.
        pub from_index: i32,
        /// Maximum number of recordings, at most [`MAX_LISTED`](super::MAX_LISTED).
        pub count: i32,
        data {
            /// Not used; empty.
            name,
        }
    }
}

archive_request_set! {
    /// A request that this project adds to the archive's control protocol.
    pub enum ExtensionRequest {
        /// Request the capabilities.
        Capabilities(CapabilitiesRequest): read,
        /// Create a named reader, or store its position.
        CommitReader(CommitReaderRequest<'a>): read,
        /// Remove a named reader.
        RemoveReader(RemoveReaderRequest<'a>): read,
        /// List named readers.
        ListReaders(ListReadersRequest<'a>): read,
        /// Set a retention policy.
        SetRetention(SetRetentionRequest<'a>): admin,
        /// List retention policies.
        ListRetention(ListRetentionRequest<'a>): read,
        /// Apply the retention policies.
        ApplyRetention(ApplyRetentionRequest): admin,
        /// Set the name of a recording.
        SetRecordingName(SetRecordingNameRequest<'a>): record,
        /// Set the metadata of a recording.
        SetRecordingMetadata(SetRecordingMetadataRequest<'a>): record,
        /// List names, metadata and links of recordings.
        ListRecordingInfo(ListRecordingInfoRequest<'a>): read,
        /// Find a position by time.
        FindPosition(FindPositionRequest): read,
        /// Replay at a rate.
        ReplayAtRate(ReplayAtRateRequest<'a>): read,
        /// List recordings with copies in object storage.
        ListCopiedRanges(ListCopiedRangesRequest<'a>): read,
    }
}
