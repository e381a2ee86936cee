//! Appends to a log: one message, a claimed frame that the caller fills, or a batch of messages.
//!
//! Any number of publishers in any number of processes may share a log through [`ConcurrentAppender`]. An
//! [`ExclusiveAppender`] is the only writer of its log. Both appenders first advance the tail of the active term, which
//! claims the bytes. Then they write the frames, and store the positive length word last. A message that does not fit
//! into the remaining bytes of the term is not split. These bytes become padding, the log rotates to its next term, and
//! the caller tries again ([`AppendError::AdminAction`]).
//!
//! The caller passes the position limit that the driver sets for publishers. A message may begin below the limit and
//! end above it.

mod batch;
mod block;
mod claim;
mod concurrent;
mod exclusive;
mod fill;
mod source;
mod writer;

pub use batch::{Appended, FixedLengthMessages, MessageBatch};
pub use claim::{Claim, ClaimedFrame};
pub use concurrent::ConcurrentAppender;
pub use exclusive::ExclusiveAppender;
pub use fill::{BlockSpace, FillBlockError, FilledBlock};
pub use source::{MessageSource, Parts};

use super::buffers::LogBuffers;
use super::frame::{Framing, HEADER_LENGTH, aligned_length};
use super::reader::CorruptLog;
use crate::words::Words;

/// Reason why nothing was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The position limit is reached, and there is no subscriber. Normal until the first subscriber connects.
    #[error("not connected: no subscriber receives the stream")]
    NotConnected,
    /// The position limit is reached: subscribers read too slowly. Try again.
    #[error("back pressured: subscribers have not consumed enough")]
    BackPressured,
    /// The log is being rotated to its next term. Try again at once.
    #[error("admin action: the log is rotating to its next term, try again")]
    AdminAction,
    /// The publication is closed.
    #[error("publication is closed")]
    Closed,
    /// The stream has used up its 2^31 terms. Close the publication and create a new one.
    #[error("maximum position exceeded: close the publication and add a new one")]
    MaxPositionExceeded,
    /// The message, claim or padding exceeds its maximum length.
    #[error("length {length} exceeds the maximum of {max} bytes")]
    TooLong {
        /// Requested length in bytes.
        length: usize,
        /// Maximum length in bytes.
        max: usize,
    },
    /// The block does not consist of frames that continue this stream at its position.
    #[error("block rejected: {0}")]
    InvalidBlock(InvalidBlock),
    /// The log's memory has a value that no publisher or driver writes.
    #[error(transparent)]
    Corrupt(#[from] CorruptLog),
}

/// Reason why a block of frames is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBlock {
    /// The block does not fit into the term.
    #[error("{length} bytes do not fit into the {remaining} that remain in the term")]
    TooLong {
        /// Length of the block in bytes.
        length: usize,
        /// Number of bytes left in the term.
        remaining: usize,
    },
    /// A field of the first header of the block differs from the value that comes next in the stream.
    #[error("its first frame has {field} {found}, expected {expected}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Value in the block.
        found: i32,
        /// Expected value.
        expected: i32,
    },
    /// The lengths of the frames do not add up to the length of the block. From `fill_block`, it can also mean that the
    /// first header does not continue the stream.
    #[error("its frames do not fill the block exactly: the frame at {0} has a wrong length")]
    Frames(usize),
}

impl AppendError {
    /// Returns the number that other Aeron clients return: -1 to -5, or -6 for an error of the arguments or the log.
    pub fn code(self) -> i64 {
        match self {
            Self::NotConnected => -1,
            Self::BackPressured => -2,
            Self::AdminAction => -3,
            Self::Closed => -4,
            Self::MaxPositionExceeded => -5,
            Self::TooLong { .. } | Self::InvalidBlock(_) | Self::Corrupt(_) => -6,
        }
    }
}

/// Reason why an append stopped, in one byte. If the rare paths returned a larger type, the compiler would return it
/// through memory, and then also the result of the common path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AppendStop {
    NotConnected,
    BackPressured,
    AdminAction,
    MaxPositionExceeded,
    MisalignedTail,
}

impl AppendStop {
    /// Returns the error for this reason. `tail` is the tail offset that was found in the term that begins at
    /// `term_begin`.
    #[inline(always)]
    fn error(self, term_begin: i64, tail: usize) -> AppendError {
        match self {
            Self::NotConnected => AppendError::NotConnected,
            Self::BackPressured => AppendError::BackPressured,
            Self::AdminAction => AppendError::AdminAction,
            Self::MaxPositionExceeded => AppendError::MaxPositionExceeded,
            Self::MisalignedTail => CorruptLog::misaligned_tail(term_begin, tail).into(),
        }
    }
}

/// Returns the reason why nothing can be appended at `position`, which is at the limit.
#[cold]
#[inline(never)]
fn at_limit<W: Words>(log: &LogBuffers<W>, position: i64, length: usize) -> AppendStop {
    let framed = aligned_length(length.min(isize::MAX as usize) + HEADER_LENGTH) as i64;
    if position.saturating_add(framed) >= log.positions().max_position() {
        AppendStop::MaxPositionExceeded
    } else if log.metadata().is_connected() {
        AppendStop::BackPressured
    } else {
        AppendStop::NotConnected
    }
}

/// Returns the number of bytes that a message uses in the log, or an error if the message cannot be sent.
#[inline(always)]
fn framed_length(framing: Framing, length: usize) -> Result<usize, AppendError> {
    framing.framed_length(length).ok_or(AppendError::TooLong {
        length,
        max: framing.max_message_length(),
    })
}
