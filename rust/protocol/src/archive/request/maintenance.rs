//! Requests that change existing recordings.

use aeron_layout::archive_message::request::{
    MigrateSegmentsLayout, NewStartPositionLayout, RecordingRequestLayout, TruncateRecordingLayout,
};

use super::super::declare::session_request;

session_request! {
    /// Truncates the end of a recording. The result is the number of files that are deleted.
    pub struct TruncateRecordingRequest(TruncateRecordingLayout) = 13 {
        /// Recording id.
        pub recording_id: i64,
        /// New stop position, at which a frame ends or a segment begins.
        pub position: i64,
    }
}

session_request! {
    /// Deletes a recording. The result is the number of files that are deleted.
    pub struct PurgeRecordingRequest(RecordingRequestLayout) = 104 {
        /// Recording id.
        pub recording_id: i64,
    }
}

session_request! {
    /// Moves the start of a recording and keeps the files before the new start. The result is 0.
    pub struct DetachSegmentsRequest(NewStartPositionLayout) = 53 {
        /// Recording id.
        pub recording_id: i64,
        /// New start position, at which a segment begins.
        pub new_start_position: i64,
    }
}

session_request! {
    /// Deletes the files before the start of a recording. The result is the number of deleted files.
    pub struct DeleteDetachedSegmentsRequest(RecordingRequestLayout) = 54 {
        /// Recording id.
        pub recording_id: i64,
    }
}

session_request! {
    /// Moves the start of a recording and deletes the files before the new start. The result is the number of deleted
    /// files.
    pub struct PurgeSegmentsRequest(NewStartPositionLayout) = 55 {
        /// Recording id.
        pub recording_id: i64,
        /// New start position, at which a segment begins.
        pub new_start_position: i64,
    }
}

session_request! {
    /// Moves the start of a recording back to its first detached file. The result is the number of attached files.
    pub struct AttachSegmentsRequest(RecordingRequestLayout) = 56 {
        /// Recording id.
        pub recording_id: i64,
    }
}

session_request! {
    /// Moves all segments of one recording to another. The result is the number of segments.
    pub struct MigrateSegmentsRequest(MigrateSegmentsLayout) = 57 {
        /// Id of the recording that loses its segments.
        pub src_recording_id: i64,
        /// Id of the recording that gets the segments.
        pub dst_recording_id: i64,
    }
}

session_request! {
    /// Replaces the channel of a recording. The result is 0. Since version 13 of the schema.
    pub struct UpdateChannelRequest<'a>(RecordingRequestLayout) = 107 {
        /// Recording id.
        pub recording_id: i64,
        data {
            /// The new channel.
            channel,
        }
    }
}
