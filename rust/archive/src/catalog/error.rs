//! [`CatalogError`]: why a catalog cannot be used or changed.

use std::io;

use aeron_memory::cnc::SemanticVersion;

use super::{CATALOG_FILE, CATALOG_VERSION, MAX_CAPACITY, MIN_CAPACITY};
use crate::Damage;

/// Why a catalog cannot be used or changed.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The file system returned an error.
    #[error("{CATALOG_FILE}: cannot {doing}: {source}")]
    Io {
        /// Operation that failed.
        doing: &'static str,
        /// Error of the file system.
        source: io::Error,
    },
    /// The file was written with another major version of the layout.
    #[error("incompatible catalog file version {file}, archive software is {CATALOG_VERSION}")]
    IncompatibleVersion {
        /// The version in the file.
        file: SemanticVersion,
    },
    /// The file has bytes that no archive writes.
    #[error("{CATALOG_FILE} is damaged: {0}")]
    Damaged(#[from] Damage),
    /// The next recording id in the header is already used by an entry.
    #[error(
        "{CATALOG_FILE} is damaged: next recording id {next} is not above the last one, {last}"
    )]
    NextRecordingId {
        /// Next recording id in the header.
        next: i64,
        /// Id of the last entry.
        last: i64,
    },
    /// The requested capacity, or the length of the file, is outside of the allowed range.
    #[error("catalog capacity {capacity} is not within {MIN_CAPACITY} to {MAX_CAPACITY} bytes")]
    InvalidCapacity {
        /// The requested capacity, or the length of the file, in bytes.
        capacity: u64,
    },
    /// The catalog has its maximum length, and no further entry fits.
    #[error("catalog is full, max capacity reached: {MAX_CAPACITY}")]
    Full,
    /// The entry is longer than the maximum length of an entry, or does not fit below the catalog's
    /// maximum length.
    #[error(
        "recording is too big: total recording length is {length} bytes, available space is {available} bytes"
    )]
    TooBig {
        /// Bytes that the entry needs.
        length: u64,
        /// Bytes that are available.
        available: u64,
    },
    /// No recording has the id: it never existed, or it is deleted or invalid.
    #[error("unknown recording id {recording_id}")]
    UnknownRecording {
        /// Recording id.
        recording_id: i64,
    },
    /// The descriptor fails [`RecordingDescriptor::check`](super::RecordingDescriptor::check), so it was not written.
    #[error("recording cannot be catalogued: {0}")]
    InvalidRecording(Damage),
}
