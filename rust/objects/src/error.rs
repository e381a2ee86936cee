//! [`ObjectError`]: a reason why a copy, a fetch or a manifest failed.

use std::io;
use std::time::Duration;

/// A reason why an operation on object storage failed. No text contains credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The storage returned an error.
    #[error("{object}: {source}")]
    Store {
        /// The object.
        object: String,
        /// Error of the storage.
        source: object_store::Error,
    },
    /// The storage did not respond in time.
    #[error(
        "{object}: no response within {timeout:?}; check the storage, or raise aeron.archive.objects.timeout"
    )]
    Timeout {
        /// The object.
        object: String,
        /// The time limit.
        timeout: Duration,
    },
    /// The object has another length or checksum than the segment that was copied.
    #[error(
        "{object} is damaged: {length} bytes with CRC-32C {crc32c:08x}, expected {expected_length} bytes with CRC-32C {expected_crc32c:08x}"
    )]
    Damaged {
        /// The object.
        object: String,
        /// Number of bytes that were read.
        length: u64,
        /// Checksum of these bytes.
        crc32c: u32,
        /// Length of the segment that was copied, in bytes.
        expected_length: u64,
        /// Checksum of the segment that was copied.
        expected_crc32c: u32,
    },
    /// A local file cannot be read or written.
    #[error("{file}: {source}")]
    File {
        /// Name of the file.
        file: String,
        /// Error of the file system.
        source: io::Error,
    },
    /// The local file changed while it was copied.
    #[error("{file} changed while it was copied")]
    Changed {
        /// Name of the file.
        file: String,
    },
    /// The disk has no room for a fetched segment.
    #[error(
        "segment {base} of recording {recording_id} is not fetched: it and the other fetches need {needed_bytes} bytes, {free_bytes} bytes of the disk are free, and aeron.archive.low.storage.space.threshold={low_bytes} must stay free: delete files to make room on the disk"
    )]
    NoRoom {
        /// Recording id.
        recording_id: i64,
        /// Position of the segment's first byte.
        base: i64,
        /// Sum of the lengths of this segment and of the segments that are being fetched.
        needed_bytes: u64,
        /// Bytes of the disk that are free.
        free_bytes: u64,
        /// Bytes of the disk that must stay free.
        low_bytes: u64,
    },
    /// The manifest does not name the segment.
    #[error("segment {base} of recording {recording_id} has no copy in object storage")]
    NotCopied {
        /// Recording id.
        recording_id: i64,
        /// Position of the segment's first byte.
        base: i64,
    },
}

impl ObjectError {
    /// Returns whether the operation failed because a local file does not exist.
    #[must_use]
    pub fn is_missing_file(&self) -> bool {
        matches!(self, Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    pub(crate) fn file(name: &str) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self::File {
            file: name.to_owned(),
            source,
        }
    }
}
