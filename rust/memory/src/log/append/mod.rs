//! Appending to a log: one message, a claim to be filled in place, or a batch of messages.
//!
//! [`ConcurrentAppender`] may be shared by any number of publishers in any number of processes, [`ExclusiveAppender`] is
//! the only writer of its log. Both first advance the tail of the active term, which makes the bytes theirs, and then write
//! frames whose length word turns positive last. A message that does not fit into the rest of the term is not split: the
//! rest becomes padding, the log rotates to its next term, and the caller tries again ([`AppendError::AdminAction`]).
//!
//! The caller hands in the position limit that the driver gives to publishers. A message may begin below the limit and end
//! beyond it.

mod batch;
mod block;
mod claim;
mod concurrent;
mod exclusive;
mod source;
mod writer;

pub use batch::{Appended, Messages, Records};
pub use claim::{Claim, ClaimedFrame};
pub use concurrent::ConcurrentAppender;
pub use exclusive::ExclusiveAppender;
pub use source::{Parts, Source};

use super::buffers::LogBuffers;
use super::frame::{Framing, HEADER_LENGTH, aligned_length};
use super::reader::CorruptLog;
use crate::words::Words;

/// Why nothing was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// At the limit, and nobody receives the stream. Normal until the first subscriber is there.
    #[error("not connected: no subscriber receives the stream")]
    NotConnected,
    /// At the limit: subscribers are too far behind. Try again.
    #[error("back pressured: subscribers have not consumed enough")]
    BackPressured,
    /// The log is being rotated to its next term. Try again at once.
    #[error("admin action: the log is rotating to its next term, try again")]
    AdminAction,
    /// The publication is closed.
    #[error("publication is closed")]
    Closed,
    /// The stream has used up its 2^31 terms. Close the publication and make a new one.
    #[error("maximum position exceeded: close the publication and add a new one")]
    MaxPositionExceeded,
    /// The message, claim or padding is longer than it may be.
    #[error("length {length} exceeds the maximum of {max} bytes")]
    TooLong {
        /// Bytes asked for.
        length: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// The block is not a row of frames of this stream that continues at its position.
    #[error("block rejected: {0}")]
    InvalidBlock(InvalidBlock),
    /// The log's memory holds what no publisher or driver writes.
    #[error(transparent)]
    Corrupt(#[from] CorruptLog),
}

/// What is wrong with a block of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBlock {
    /// It does not fit into the term.
    #[error("{length} bytes do not fit into the {remaining} that remain in the term")]
    TooLong {
        /// Bytes of the block.
        length: usize,
        /// Bytes left.
        remaining: usize,
    },
    /// A field of its first header differs from what comes next in the stream.
    #[error("its first frame has {field} {found}, expected {expected}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Value in the block.
        found: i32,
        /// Value needed.
        expected: i32,
    },
    /// Its frames do not add up to its length.
    #[error("its frames do not fill it exactly: the one at {0} has a wrong length")]
    Frames(usize),
}

impl AppendError {
    /// The number that other Aeron clients return for this: -1 to -5, or -6 for an error of the arguments or the log.
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

/// Why an append stopped, as one byte: what the rare paths answer. A larger answer would come back through memory, and
/// the compiler would keep the answer of the common path in memory as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    NotConnected,
    BackPressured,
    AdminAction,
    MaxPositionExceeded,
    MisalignedTail,
}

impl Stop {
    /// As the error to answer; the tail is what was found at the offset `tail` of the term that begins at `term_begin`.
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

/// Why nothing can be appended at `position`, which is at the limit.
#[cold]
#[inline(never)]
fn at_limit<W: Words>(log: &LogBuffers<W>, position: i64, length: usize) -> Stop {
    let framed = aligned_length(length.min(isize::MAX as usize) + HEADER_LENGTH) as i64;
    if position.saturating_add(framed) >= log.positions().max_position() {
        Stop::MaxPositionExceeded
    } else if log.metadata().is_connected() {
        Stop::BackPressured
    } else {
        Stop::NotConnected
    }
}

/// Bytes of log that a message takes, if it may be sent at all.
#[inline(always)]
fn framed_length(framing: Framing, length: usize) -> Result<usize, AppendError> {
    framing.framed_length(length).ok_or(AppendError::TooLong {
        length,
        max: framing.max_message_length(),
    })
}
