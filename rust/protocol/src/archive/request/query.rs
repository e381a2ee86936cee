//! Requests for data about recordings and subscriptions.

use aeron_layout::archive_message::request::{
    FindLastMatchingRecordingLayout, ListRecordingSubscriptionsLayout, ListRecordingsForUriLayout,
    ListRecordingsLayout, RecordingRequestLayout,
};

use super::super::declare::session_request;

session_request! {
    /// Requests descriptors of recordings in the order of their ids.
    pub struct ListRecordingsRequest(ListRecordingsLayout) = 8 {
        /// Minimum recording id.
        pub from_recording_id: i64,
        /// Maximum number of descriptors.
        pub record_count: i32,
    }
}

session_request! {
    /// Requests descriptors of recordings of one stream in the order of their ids.
    pub struct ListRecordingsForUriRequest<'a>(ListRecordingsForUriLayout) = 9 {
        /// Minimum recording id.
        pub from_recording_id: i64,
        /// Maximum number of descriptors.
        pub record_count: i32,
        /// Stream id of the recordings.
        pub stream_id: i32,
        data {
            /// Text that the original channel of the recordings contains.
            channel,
        }
    }
}

session_request! {
    /// Requests the descriptor of one recording.
    pub struct ListRecordingRequest(RecordingRequestLayout) = 10 {
        /// Recording id.
        pub recording_id: i64,
    }
}

session_request! {
    /// Requests the newest recording of a session and stream. The result is the recording id, or -1 if there is no such
    /// recording.
    pub struct FindLastMatchingRecordingRequest<'a>(FindLastMatchingRecordingLayout) = 16 {
        /// Minimum recording id.
        pub min_recording_id: i64,
        /// Session id of the recording.
        pub session_id: i32,
        /// Stream id of the recording.
        pub stream_id: i32,
        data {
            /// Text that the original channel of the recording contains.
            channel,
        }
    }
}

session_request! {
    /// Requests descriptors of the archive's subscriptions.
    pub struct ListRecordingSubscriptionsRequest<'a>(ListRecordingSubscriptionsLayout) = 17 {
        /// Index of the first subscription to list.
        pub pseudo_index: i32,
        /// Maximum number of descriptors.
        pub subscription_count: i32,
        /// Whether only subscriptions of `stream_id` match.
        pub apply_stream_id: bool,
        /// Stream id of the subscriptions.
        pub stream_id: i32,
        data {
            /// Text that the channel of the subscriptions contains.
            channel,
        }
    }
}

session_request! {
    /// Requests the start position of a recording.
    pub struct StartPositionRequest(RecordingRequestLayout) = 52 {
        /// Recording id.
        pub recording_id: i64,
    }
}

session_request! {
    /// Requests the current position of an active recording. The result is -1 if the recording is not active.
    pub struct RecordingPositionRequest(RecordingRequestLayout) = 12 {
        /// Recording id.
        pub recording_id: i64,
    }
}

session_request! {
    /// Requests the stop position of a recording. The result is -1 while the recording is active.
    pub struct StopPositionRequest(RecordingRequestLayout) = 15 {
        /// Recording id.
        pub recording_id: i64,
    }
}

session_request! {
    /// Requests the current position of an active recording, or the stop position of an ended recording.
    pub struct MaxRecordedPositionRequest(RecordingRequestLayout) = 67 {
        /// Recording id.
        pub recording_id: i64,
    }
}
