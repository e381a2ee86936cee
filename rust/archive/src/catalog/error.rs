//! [`CatalogError`]: why a catalog cannot be used, or cannot take a change.

use std::io;

use aeron_memory::cnc::SemanticVersion;

use super::{CATALOG_FILE, CATALOG_VERSION, MAX_CAPACITY, MIN_CAPACITY};
use crate::Damage;

/// Why a catalog cannot be used, or cannot take a change.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The file system refused.
    #[error("{CATALOG_FILE}: cannot {doing}: {source}")]
    Io {
        /// What was to be done.
        doing: &'static str,
        /// What the file system answered.
        source: io::Error,
    },
    /// Written by software with another layout.
    #[error("incompatible catalog file version {file}, archive software is {CATALOG_VERSION}")]
    IncompatibleVersion {
        /// The version in the file.
        file: SemanticVersion,
    },
    /// Bytes that no archive writes.
    #[error("{CATALOG_FILE} is damaged: {0}")]
    Damaged(#[from] Damage),
    /// The header would give an id a second time.
    #[error(
        "{CATALOG_FILE} is damaged: next recording id {next} is not above the last one, {last}"
    )]
    NextRecordingId {
        /// What the header says.
        next: i64,
        /// Id of the last entry.
        last: i64,
    },
    /// A capacity that no catalog can have.
    #[error("catalog capacity {capacity} is not within {MIN_CAPACITY} to {MAX_CAPACITY} bytes")]
    InvalidCapacity {
        /// What was asked for, or the length of the file.
        capacity: u64,
    },
    /// The catalog has its greatest length and no room left.
    #[error("catalog is full, max capacity reached: {MAX_CAPACITY}")]
    Full,
    /// The entry fits in no catalog, or not in what this one may still grow to.
    #[error(
        "recording is too big: total recording length is {length} bytes, available space is {available} bytes"
    )]
    TooBig {
        /// Bytes that the entry takes.
        length: u64,
        /// Bytes that it may take.
        available: u64,
    },
    /// No recording has the id: it never had one, or it is deleted or invalid.
    #[error("unknown recording id {recording_id}")]
    UnknownRecording {
        /// The id.
        recording_id: i64,
    },
    /// A recording that no reader could make sense of was to be written.
    #[error("recording cannot be catalogued: {0}")]
    InvalidRecording(Damage),
}
