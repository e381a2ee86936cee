//! Descriptors that an archive sends to one client.

use aeron_layout::archive_message::extension::{
    CopiedRangeLayout, ReaderLayout, RecordingInfoLayout, RetentionLayout, RetentionStepLayout,
    TimePositionLayout,
};

use super::super::codes::RetentionHolder;
use super::super::declare::{archive_message, archive_message_set};

archive_message! {
    /// A named reader.
    pub struct ReaderDescriptor<'a>(ReaderLayout) = 20_100 {
        /// Id of the control session.
        pub control_session_id: i64,
        /// Correlation id of the request.
        pub correlation_id: i64,
        /// Recording id.
        pub recording_id: i64,
        /// Committed position.
        pub position: i64,
        /// Time of the last commit in milliseconds since the epoch.
        pub committed_ms: i64,
        /// Maximum time without a commit, in milliseconds. After this time the reader expires; -1 for no limit.
        pub max_age_ms: i64,
        /// Maximum number of bytes recorded after the reader's position. Above this number the reader expires; -1 for
        /// no limit.
        pub max_lag: i64,
        data {
            /// Name.
            name,
        }
    }
}

archive_message! {
    /// A retention policy.
    pub struct RetentionDescriptor<'a>(RetentionLayout) = 20_101 {
        /// Id of the control session.
        pub control_session_id: i64,
        /// Correlation id of the request.
        pub correlation_id: i64,
        /// Recording id, or -1 for all recordings that match stream and channel.
        pub recording_id: i64,
        /// Maximum number of bytes; -1 for no limit.
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

archive_message! {
    /// A part of a recording that retention deletes, or would delete.
    pub struct RetentionStep<'a>(RetentionStepLayout) = 20_102 {
        /// Id of the control session.
        pub control_session_id: i64,
        /// Correlation id of the request.
        pub correlation_id: i64,
        /// Recording id.
        pub recording_id: i64,
        /// Start position before the deletion.
        pub start_position: i64,
        /// Start position after the deletion; the stop position if the whole recording is deleted.
        pub new_start_position: i64,
        /// Start position after the deletion, if nothing prevented a part of it.
        pub allowed_position: i64,
        /// Whether the whole recording is deleted.
        pub is_purge: bool,
        /// If `new_start_position` is less than `allowed_position`: the reason.
        pub held_by: RetentionHolder,
        data {
            /// Name of the reader that prevents the deletion; empty for other reasons.
            reader,
        }
    }
}

archive_message! {
    /// Name, metadata and link of a recording.
    pub struct RecordingInfo<'a>(RecordingInfoLayout) = 20_103 {
        /// Id of the control session.
        pub control_session_id: i64,
        /// Correlation id of the request.
        pub correlation_id: i64,
        /// Recording id.
        pub recording_id: i64,
        /// Id of the recording of the same stream that this recording continues after a gap; -1 if there is none.
        pub predecessor_id: i64,
        /// Position at which the predecessor ends; -1 if there is no predecessor.
        pub gap_from: i64,
        /// Position at which this recording begins. -1 if the predecessor has another session, or if there is no
        /// predecessor.
        pub gap_to: i64,
        data {
            /// Name; may be empty.
            name,
            /// Metadata; may be empty.
            metadata,
        }
    }
}

archive_message! {
    /// A position that was found by time.
    pub struct TimePosition(TimePositionLayout) = 20_104 {
        /// Id of the control session.
        pub control_session_id: i64,
        /// Correlation id of the request.
        pub correlation_id: i64,
        /// Recording id.
        pub recording_id: i64,
        /// The position, between two messages.
        pub position: i64,
        /// Arrival time of the first message after the position, in microseconds since the epoch. -1 if the time is not
        /// known, or if there is no such message.
        pub timestamp_us: i64,
        /// Whether the position is only the boundary of a segment, because the index lacks the time.
        pub is_approximate: bool,
    }
}

archive_message! {
    /// The parts of a recording that are on the disk and in object storage.
    pub struct CopiedRangeDescriptor(CopiedRangeLayout) = 20_106 {
        /// Control session.
        pub control_session_id: i64,
        /// Correlation id of the request.
        pub correlation_id: i64,
        /// The recording.
        pub recording_id: i64,
        /// First position that can be read. If it is before `local_start_position`, the data between both positions is
        /// in object storage.
        pub start_position: i64,
        /// Start position in the catalog.
        pub local_start_position: i64,
        /// Position up to which all segments from `start_position` on have copies in object storage.
        pub copied_position: i64,
    }
}

archive_message_set! {
    /// A descriptor that this project adds to the archive's control protocol.
    pub enum ExtensionResponse {
        /// A named reader.
        Reader(ReaderDescriptor<'a>),
        /// A retention policy.
        Retention(RetentionDescriptor<'a>),
        /// A part of a recording that retention deletes.
        RetentionStep(RetentionStep<'a>),
        /// Name, metadata and link of a recording.
        RecordingInfo(RecordingInfo<'a>),
        /// A position by time.
        TimePosition(TimePosition),
        /// Parts of a recording on the disk and in object storage.
        CopiedRange(CopiedRangeDescriptor),
    }
}

impl ExtensionResponse<'_> {
    /// Returns the control session and the correlation id of the request.
    #[must_use]
    pub const fn ids(&self) -> (i64, i64) {
        match self {
            Self::Reader(message) => (message.control_session_id, message.correlation_id),
            Self::Retention(message) => (message.control_session_id, message.correlation_id),
            Self::RetentionStep(message) => (message.control_session_id, message.correlation_id),
            Self::RecordingInfo(message) => (message.control_session_id, message.correlation_id),
            Self::TimePosition(message) => (message.control_session_id, message.correlation_id),
            Self::CopiedRange(message) => (message.control_session_id, message.correlation_id),
        }
    }
}
