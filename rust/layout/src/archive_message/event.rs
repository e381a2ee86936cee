//! Blocks of an archive's events about its recordings.

use crate::declare::layout;
use crate::{I32, I64};

layout! {
    /// Start of a recording; channel and source follow.
    pub struct RecordingStartedLayout: 24 {
        /// The recording.
        pub recording_id: I64 = 0,
        /// Position of the first byte.
        pub start_position: I64 = 8,
        /// Session.
        pub session_id: I32 = 16,
        /// Stream.
        pub stream_id: I32 = 20,
    }

    /// Progress of a recording.
    pub struct RecordingProgressLayout: 24 {
        /// The recording.
        pub recording_id: I64 = 0,
        /// Position of the first byte.
        pub start_position: I64 = 8,
        /// Position after the last byte.
        pub position: I64 = 16,
    }

    /// End of a recording.
    pub struct RecordingStoppedLayout: 24 {
        /// The recording.
        pub recording_id: I64 = 0,
        /// Position of the first byte.
        pub start_position: I64 = 8,
        /// Position after the last byte.
        pub stop_position: I64 = 16,
    }
}
