//! Events about recordings, which an archive publishes to all subscribers on the stream of recording events.

use aeron_layout::archive_message::event::{
    RecordingProgressLayout, RecordingStartedLayout, RecordingStoppedLayout,
};

use super::declare::{archive_message, archive_message_set};

archive_message! {
    /// A recording began.
    pub struct RecordingStarted<'a>(RecordingStartedLayout) = 101 {
        /// Recording id.
        pub recording_id: i64,
        /// Position of the first byte.
        pub start_position: i64,
        /// Session id of the stream.
        pub session_id: i32,
        /// Stream id.
        pub stream_id: i32,
        data {
            /// Channel as it was requested.
            channel,
            /// Source of the image: `aeron:ipc`, or address and port.
            source_identity,
        }
    }
}

archive_message! {
    /// A recording has grown.
    pub struct RecordingProgress(RecordingProgressLayout) = 102 {
        /// Recording id.
        pub recording_id: i64,
        /// Position of the first byte.
        pub start_position: i64,
        /// Position after the last byte.
        pub position: i64,
    }
}

archive_message! {
    /// A recording ended.
    pub struct RecordingStopped(RecordingStoppedLayout) = 103 {
        /// Recording id.
        pub recording_id: i64,
        /// Position of the first byte.
        pub start_position: i64,
        /// Position after the last byte.
        pub stop_position: i64,
    }
}

archive_message_set! {
    /// A message of an archive on the stream of recording events.
    pub enum RecordingEvent {
        /// A recording began.
        Started(RecordingStarted<'a>),
        /// A recording has grown.
        Progress(RecordingProgress),
        /// A recording ended.
        Stopped(RecordingStopped),
    }
}
