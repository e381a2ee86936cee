//! The distinct error log and the loss report.

use crate::declare::layout;
use crate::{I32, I64};

/// Entries of the error log begin at multiples of this many bytes.
pub const ERROR_ENTRY_ALIGNMENT: usize = 8;

/// Entries of the loss report begin at multiples of this many bytes.
pub const LOSS_ENTRY_ALIGNMENT: usize = 64;

layout! {
    /// An entry of the distinct error log; its text follows.
    pub struct ErrorEntryLayout: 24 {
        /// Length with the text and without alignment; 0 ends the log.
        pub length: I32 = 0,
        /// Number of observations.
        pub observation_count: I32 = 4,
        /// Epoch milliseconds of the last observation.
        pub last_observation_ms: I64 = 8,
        /// Epoch milliseconds of the first observation.
        pub first_observation_ms: I64 = 16,
    }

    /// An entry of the loss report; channel and source follow, each with its length.
    pub struct LossEntryLayout: 40 {
        /// Number of reported gaps; 0 ends the report.
        pub observation_count: I64 = 0,
        /// Number of bytes in all reported gaps.
        pub total_bytes_lost: I64 = 8,
        /// Epoch milliseconds of the first gap.
        pub first_observation_ms: I64 = 16,
        /// Epoch milliseconds of the last gap.
        pub last_observation_ms: I64 = 24,
        /// Session id of the stream.
        pub session_id: I32 = 32,
        /// Stream id.
        pub stream_id: I32 = 36,
    }
}
