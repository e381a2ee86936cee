//! Blocks of an archive's events about its recordings.

use crate::declare::layout;
use crate::{I32, I64};

layout! {
    /// A recording has started; channel and source follow.
    pub struct RecordingStartedLayout: 24 {
        /// Recording id.
        pub recording_id: I64 = 0,
        /// Position of the first byte.
        pub start_position: I64 = 8,
        /// Session id.
        pub session_id: I32 = 16,
        /// Stream id.
        pub stream_id: I32 = 20,
    }

    /// A recording has made progress.
    pub struct RecordingProgressLayout: 24 {
        /// Recording id.
        pub recording_id: I64 = 0,
        /// Position of the first byte.
        pub start_position: I64 = 8,
        /// Position after the last byte.
        pub position: I64 = 16,
    }

    /// A recording has stopped.
    pub struct RecordingStoppedLayout: 24 {
        /// Recording id.
        pub recording_id: I64 = 0,
        /// Position of the first byte.
        pub start_position: I64 = 8,
        /// Position after the last byte.
        pub stop_position: I64 = 16,
    }
}
