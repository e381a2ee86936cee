//! Log buffers: three terms of frames and their metadata, shared by publishers, the driver and subscribers.
//!
//! Publishers append frames at the tail of the active term ([`append`]), subscribers read them behind it ([`reader`]), and
//! the driver cleans what has been read ([`clean`]), releases what a dead publisher left half-done ([`unblock`]), sends
//! ([`scan`]) and receives ([`rebuild`], [`gap`]). A frame becomes visible by one release store of its length word; terms
//! are therefore all zero wherever nothing was written yet.
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
pub use reader::{CorruptLog, Cursor, Fragment};

/// Why a file or a piece of memory is not a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Neither a power of two nor within range.
    #[error("term length {0} is not a power of two from 65536 to 1073741824")]
    TermLength(i64),
    /// Neither a power of two nor within range.
    #[error("page size {0} is not a power of two from 4096 to 1073741824")]
    PageSize(i64),
    /// Not a multiple of 32 within range.
    #[error("MTU {0} is not a multiple of 32 from 64 to 65504")]
    MtuLength(i64),
    /// The memory cannot hold three terms and the metadata.
    #[error("log of {length} bytes is not a multiple of 4096 of at least {needed} bytes")]
    Length {
        /// Bytes there.
        length: usize,
        /// Bytes needed.
        needed: usize,
    },
    /// No frame can begin there.
    #[error("start position {0} is not a multiple of 32 from 0 to the end of the stream")]
    StartPosition(i64),
}
