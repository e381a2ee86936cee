//! Requests that start, extend and stop recordings.

use aeron_layout::archive_message::request::{
    ExtendRecording2Layout, ExtendRecordingLayout, RecordingRequestLayout, StartRecording2Layout,
    StartRecordingLayout, StopRecordingLayout, SubscriptionRequestLayout,
};

use super::super::SourceLocation;
use super::super::declare::session_request;

session_request! {
    /// Records a stream: each image of the stream becomes a recording. The result is the id of the archive's
    /// subscription.
    pub struct StartRecordingRequest<'a>(StartRecordingLayout) = 4 {
        /// Id of the stream to record.
        pub stream_id: i32,
        /// Whether the archive records through a spy on its own driver.
        pub source_location: SourceLocation,
        data {
            /// Channel to record.
            channel,
        }
    }
}

session_request! {
    /// Like [`StartRecordingRequest`], with a subscription that may end by itself.
    pub struct StartRecordingRequest2<'a>(StartRecording2Layout) = 63 {
        /// Id of the stream to record.
        pub stream_id: i32,
        /// Whether the archive records through a spy on its own driver.
        pub source_location: SourceLocation,
        /// Whether the subscription is closed when the first of its recordings ends.
        pub auto_stop: bool,
        data {
            /// Channel to record.
            channel,
        }
    }
}

session_request! {
    /// Stops all recordings of the subscription with this channel and stream. The result is 0.
    pub struct StopRecordingRequest<'a>(StopRecordingLayout) = 5 {
        /// Id of the stream that is recorded.
        pub stream_id: i32,
        data {
            /// Channel that is recorded.
            channel,
        }
    }
}

session_request! {
    /// Stops all recordings of a subscription. The result is 0.
    pub struct StopRecordingSubscriptionRequest(SubscriptionRequestLayout) = 14 {
        /// Id of the archive's subscription, from the response to the start of the recording.
        pub subscription_id: i64,
    }
}

session_request! {
    /// Stops one recording. The result is 1 if the recording was active, otherwise 0.
    pub struct StopRecordingByIdentityRequest(RecordingRequestLayout) = 65 {
        /// Recording id.
        pub recording_id: i64,
    }
}

session_request! {
    /// Continues a recording with the images of a stream. The result is the id of the archive's subscription.
    pub struct ExtendRecordingRequest<'a>(ExtendRecordingLayout) = 11 {
        /// Recording id.
        pub recording_id: i64,
        /// Id of the stream to record.
        pub stream_id: i32,
        /// Whether the archive records through a spy on its own driver.
        pub source_location: SourceLocation,
        data {
            /// Channel to record.
            channel,
        }
    }
}

session_request! {
    /// Like [`ExtendRecordingRequest`], with a subscription that may end by itself.
    pub struct ExtendRecordingRequest2<'a>(ExtendRecording2Layout) = 64 {
        /// Recording id.
        pub recording_id: i64,
        /// Id of the stream to record.
        pub stream_id: i32,
        /// Whether the archive records through a spy on its own driver.
        pub source_location: SourceLocation,
        /// Whether the subscription is closed when the first of its recordings ends.
        pub auto_stop: bool,
        data {
            /// Channel to record.
            channel,
        }
    }
}
