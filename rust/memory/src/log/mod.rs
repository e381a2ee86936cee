//! Log buffers: three terms of frames and their metadata, shared by publishers, the driver and subscribers.
//!
//! Publishers append frames at the tail of the active term ([`append`]), and subscribers read them ([`reader`]). The
//! driver cleans bytes that have been read ([`clean`]), and completes the unfinished work of a dead publisher
//! ([`unblock`]). It also sends ([`scan`]) and receives ([`rebuild`], [`gap`]). One release store of the length word
//! makes a frame visible, and readers stop at a length word of 0. Therefore all unwritten bytes of a term must be zero.
//!
//! Offsets and lengths are bytes in `usize`, positions are `i64`, term ids are `i32` and wrap.

pub mod append;
pub mod buffers;
pub mod clean;
pub mod description;
pub mod frame;
pub mod gap;
pub mod metadata;
pub mod position;
pub mod reader;
pub mod rebuild;
pub mod scan;
pub mod unblock;

mod rotation;

pub use append::{AppendError, Claim, ConcurrentAppender, ExclusiveAppender};
pub use buffers::LogBuffers;
pub use description::{LogDescription, LogType};
pub use frame::Framing;
pub use metadata::LogMetadata;
pub use position::{Positions, RawTail};
pub use reader::{CorruptLog, Cursor, LogFragment};

/// Reason why a file or memory is not a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The term length is not a power of two, or out of range.
    #[error("term length {0} is not a power of two from 65536 to 1073741824")]
    TermLength(i64),
    /// The page size is not a power of two, or out of range.
    #[error("page size {0} is not a power of two from 4096 to 1073741824")]
    PageSize(i64),
    /// The MTU is not a multiple of 32, or out of range.
    #[error("MTU {0} is not a multiple of 32 from 64 to 65504")]
    MtuLength(i64),
    /// The memory cannot hold three terms and the metadata, or its length is not a multiple of 4096 bytes.
    #[error("log of {length} bytes: the length must be a multiple of 4096, and at least {needed}")]
    Length {
        /// Length of the memory in bytes.
        length: usize,
        /// Required length in bytes.
        needed: usize,
    },
    /// No frame can begin at this position.
    #[error("start position {0} is not a multiple of 32 from 0 to the end of the stream")]
    StartPosition(i64),
}
