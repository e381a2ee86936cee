//! [`RowReadError`]: the reason why rows cannot be read.

use std::io;

use aeron_memory::log::frame::MAX_MESSAGE_LENGTH;
use arrow_schema::ArrowError;

use super::malformed::Malformed;

/// Reason why rows cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RowReadError<E> {
    /// The frames cannot be read.
    #[error(transparent)]
    Frames(E),
    /// A message is malformed, and the mode is `FailFast`.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A message is longer than any message may be: the recording is damaged.
    #[error(
        "recording {recording_id}: the message that begins at position {position} has no end within {MAX_MESSAGE_LENGTH} bytes"
    )]
    TooLong {
        /// Recording id.
        recording_id: i64,
        /// Position at which the message begins.
        position: i64,
    },
    /// Arrival times cannot be read.
    #[error("recording {recording_id}: its arrival times cannot be read: {source}")]
    Arrivals {
        /// Recording id.
        recording_id: i64,
        /// Reason.
        source: io::Error,
    },
    /// A column that is not nullable has a null: the arrival time of a message, or the channel, is unknown.
    #[error("recording {recording_id}: {source}")]
    Columns {
        /// Recording id.
        recording_id: i64,
        /// Error with the name of the column.
        source: ArrowError,
    },
}
