//! Requests that change existing recordings.

use aeron_layout::archive_message::request::{
    MigrateSegmentsLayout, NewStartPositionLayout, RecordingRequestLayout, TruncateRecordingLayout,
};

use super::super::declare::session_request;

session_request! {
    /// Cuts the end of a recording. The result is the number of files that are deleted.
    pub struct TruncateRecordingRequest(TruncateRecordingLayout) = 13 {
        /// The recording.
        pub recording_id: i64,
        /// New stop position; a frame ends or a segment begins there.
        pub position: i64,
    }
}

session_request! {
    /// Deletes a recording. The result is the number of files that are deleted.
    pub struct PurgeRecordingRequest(RecordingRequestLayout) = 104 {
        /// The recording.
        pub recording_id: i64,
    }
}

session_request! {
    /// Moves the start of a recording and keeps the files before the new start. The result is 0.
    pub struct DetachSegmentsRequest(NewStartPositionLayout) = 53 {
        /// The recording.
        pub recording_id: i64,
        /// New start position; a segment begins there.
        pub new_start_position: i64,
    }
}

session_request! {
    /// Deletes the files before the start of a recording. The result is the number of deleted files.
    pub struct DeleteDetachedSegmentsRequest(RecordingRequestLayout) = 54 {
        /// The recording.
        pub recording_id: i64,
    }
}

session_request! {
    /// Moves the start of a recording and deletes the files before the new start. The result is the number of deleted
    /// files.
    pub struct PurgeSegmentsRequest(NewStartPositionLayout) = 55 {
        /// The recording.
        pub recording_id: i64,
        /// New start position; a segment begins there.
        pub new_start_position: i64,
    }
}

session_request! {
    /// Moves the start of a recording back to its first detached file. The result is the number of attached files.
    pub struct AttachSegmentsRequest(RecordingRequestLayout) = 56 {
        /// The recording.
        pub recording_id: i64,
    }
}

session_request! {
    /// Moves all segments of one recording to another. The result is the number of segments.
    pub struct MigrateSegmentsRequest(MigrateSegmentsLayout) = 57 {
        /// Recording that loses its segments.
        pub src_recording_id: i64,
        /// Recording that gets the segments.
        pub dst_recording_id: i64,
    }
}

session_request! {
    /// Replaces the channel of a recording. The result is 0. Since version 13 of the schema.
    pub struct UpdateChannelRequest<'a>(RecordingRequestLayout) = 107 {
        /// The recording.
        pub recording_id: i64,
        data {
            /// The new channel.
            channel,
        }
    }
}
