//! [`StoreError`]: why a store refuses an operation, with the codes and texts of Aeron's archive.

use std::io;

use aeron_protocol::archive::ArchiveErrorCode;

use crate::catalog::CatalogError;
use crate::frame::FrameFault;
use crate::index::IndexError;
use crate::recorder::RecorderError;
use crate::recovery::RecoveryError;
use crate::storage::SyncLevel;
use crate::stream::StreamError;

/// Why a store refuses an operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The segment length of the options is not valid.
    #[error("segment length {segment_length} is not a power of two from 65536 to 1073741824")]
    SegmentLength {
        /// Length in bytes.
        segment_length: i32,
    },
    /// Blocks would be forced to the disk, but not the catalog, which has their end positions.
    #[error(
        "catalog file sync level {} is below file sync level {}: raise it",
        *catalog as u8,
        *file as u8
    )]
    SyncLevels {
        /// Level of the catalog.
        catalog: SyncLevel,
        /// Level of segment files.
        file: SyncLevel,
    },
    /// The directory has segment files, but no catalog.
    #[error(
        "{name} is missing, but its directory has {segments} segment files: restore the catalog from a backup, or run \
         `aeron archive rebuild-catalog` on the directory"
    )]
    LostCatalog {
        /// Path of the catalog.
        name: String,
        /// Number of segment files.
        segments: usize,
    },
    /// The recording never existed, or it is deleted or invalid.
    #[error("unknown recording id: {recording_id}")]
    UnknownRecording {
        /// Recording id.
        recording_id: i64,
    },
    /// The catalog entry of the recording has impossible values, or does not fit its segment files.
    #[error(
        "recording {recording_id} cannot be served: {fault}: its files are kept, and `aeron archive verify` checks them"
    )]
    Unserved {
        /// Recording id.
        recording_id: i64,
        /// Reason.
        fault: String,
    },
    /// The request has another stream id than the recording to be extended.
    #[error(
        "cannot extend recording {recording_id} with streamId={stream_id} for existing streamId={recorded}"
    )]
    OtherStream {
        /// Recording id.
        recording_id: i64,
        /// Stream id of the request.
        stream_id: i32,
        /// Stream id of the recording.
        recorded: i32,
    },
    /// The recording to be extended is active.
    #[error("cannot extend active recording {recording_id}")]
    ExtendsActive {
        /// Recording id.
        recording_id: i64,
    },
    /// The end of the recording to be extended is being deleted.
    #[error("cannot extend recording {recording_id} due to an outstanding delete operation")]
    ExtendsDeleted {
        /// Recording id.
        recording_id: i64,
    },
    /// The recording to be truncated is active.
    #[error("cannot truncate active recording")]
    TruncatesActive {
        /// Recording id.
        recording_id: i64,
    },
    /// The recording to be purged is active.
    #[error("cannot purge active recording {recording_id}")]
    PurgesActive {
        /// Recording id.
        recording_id: i64,
    },
    /// The recording to be purged is being replayed.
    #[error("cannot purge recording with active replay {recording_id}")]
    PurgesReplayed {
        /// Recording id.
        recording_id: i64,
    },
    /// The position for a truncation is not in the recording, or not aligned.
    #[error("invalid position {position}: start={start} stop={stop} alignment=32")]
    InvalidPosition {
        /// Position of the request.
        position: i64,
        /// Start position.
        start: i64,
        /// Stop position.
        stop: i64,
    },
    /// No frame begins at the position for a truncation.
    #[error("{position} position not aligned to a data header")]
    NotADataHeader {
        /// Position of the request.
        position: i64,
    },
    /// The new start is not the first position of a segment.
    #[error("invalid segment start: newStartPosition={new_start}")]
    NotASegmentBase {
        /// Position of the request.
        new_start: i64,
    },
    /// The new start is not after the first segment, so no segment would be detached.
    #[error("invalid detach: newStartPosition={new_start} lowerBound={lower_bound}")]
    DetachesNothing {
        /// Position of the request.
        new_start: i64,
        /// Lowest start position that detaches a segment.
        lower_bound: i64,
    },
    /// The new start is after the segment with the end of the recording. This segment must stay.
    #[error("invalid detach: in use, newStartPosition={new_start} upperBound={upper_bound}")]
    DetachesEnd {
        /// Position of the request.
        new_start: i64,
        /// Highest start position for which the segment with the end of the recording stays.
        upper_bound: i64,
    },
    /// A replay reads a segment that was to be detached.
    #[error(
        "invalid detach: replay in progress - newStartPosition={new_start} upperBound={upper_bound}"
    )]
    DetachesReplayed {
        /// Position of the request.
        new_start: i64,
        /// Base of the segment that the replay reads.
        upper_bound: i64,
    },
    /// Files of the recording are being deleted.
    #[error("another delete operation in progress for recording id: {recording_id}")]
    DeleteInProgress {
        /// Recording id.
        recording_id: i64,
    },
    /// A segment file cannot be deleted.
    #[error("unable to delete segment file: {name}: {source}")]
    Delete {
        /// Name of the file.
        name: String,
        /// Error of the file system.
        source: io::Error,
    },
    /// The file to be attached does not have the length of the recording's segments.
    #[error("fileLength={file_length} not equal to segmentLength={segment_length}: {name}")]
    SegmentFileLength {
        /// Name of the file.
        name: String,
        /// Length of the file in bytes.
        file_length: u64,
        /// Length of the recording's segments in bytes.
        segment_length: i64,
    },
    /// The first frame of the file to be attached does not belong to the recording.
    #[error("{}: position {position} of {name}", describe(.fault))]
    ForeignSegmentFile {
        /// Name of the file.
        name: String,
        /// Position of the frame.
        position: i64,
        /// Fault of the frame.
        fault: FrameFault,
    },
    /// The file to be attached has no frame in its first term.
    #[error("fragment not found in first term of segment {name}")]
    EmptySegmentFile {
        /// Name of the file.
        name: String,
    },
    /// The two recordings of a migration do not fit together.
    #[error("invalid migrate: {reason}")]
    Migrate {
        /// Reason.
        reason: String,
    },
    /// The source of a migration is active.
    #[error("recording {recording_id} is still active")]
    MigratesActive {
        /// Recording id.
        recording_id: i64,
    },
    /// An earlier migration from or to the recording was not finished.
    #[error(
        "migration of the segments of recording {recording_id} has failed midway: start the archive again to finish it"
    )]
    HalfMigrated {
        /// Recording id.
        recording_id: i64,
    },
    /// The file of a segment to be moved is missing.
    #[error("missing src segment file {name}")]
    MissingSegmentFile {
        /// Path of the file.
        name: String,
    },
    /// A file with the new name of a segment exists already.
    #[error("preexisting dst segment file {name}")]
    PreexistingSegmentFile {
        /// Path of the file.
        name: String,
    },
    /// An image does not continue the recording.
    #[error(
        "cannot extend recording {recording_id} image.{image_field}={image} != rec.{recorded_field}={recorded}"
    )]
    InvalidExtension {
        /// Recording id.
        recording_id: i64,
        /// The field of the image, as Aeron's archive names it.
        image_field: &'static str,
        /// Value of the image's field.
        image: i64,
        /// The field of the recording, as Aeron's archive names it.
        recorded_field: &'static str,
        /// Value of the recording's field.
        recorded: i64,
    },
    /// A file with the name of a segment that is to be recorded exists already.
    #[error(
        "segment file already exists: {name}: it may be the only copy of its data, so keep a copy, and then run `aeron \
         archive delete-orphans`"
    )]
    SegmentFileExists {
        /// Name of the file.
        name: String,
    },
    /// The file system has too little space. The text is Aeron's: its comparison sign is the wrong
    /// way round.
    #[error("low storage threshold={threshold} <= usableSpace={usable}")]
    LowSpace {
        /// A recording begins only if more than this number of bytes is free.
        threshold: u64,
        /// Number of free bytes.
        usable: u64,
    },
    /// The catalog cannot be used or changed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The term length, segment length or start position in the catalog entry is not valid.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The search for the end of a recording failed.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// A segment file cannot be created or opened for recording.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The index of a recording cannot be repaired.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The file system returns an error.
    #[error("{name}: cannot {doing}: {source}")]
    Storage {
        /// Name of the file; `.` is the directory.
        name: String,
        /// The operation that failed.
        doing: &'static str,
        /// Error of the file system.
        source: io::Error,
    },
}

impl StoreError {
    /// Returns the code of the error in the archive's control protocol.
    #[must_use]
    pub fn archive_error_code(&self) -> ArchiveErrorCode {
        match self {
            Self::UnknownRecording { .. } | Self::OtherStream { .. } => {
                ArchiveErrorCode::UnknownRecording
            }
            Self::ExtendsActive { .. }
            | Self::TruncatesActive { .. }
            | Self::PurgesActive { .. }
            | Self::PurgesReplayed { .. } => ArchiveErrorCode::ActiveRecording,
            Self::InvalidPosition { .. } => ArchiveErrorCode::InvalidPosition,
            Self::InvalidExtension { .. } => ArchiveErrorCode::InvalidExtension,
            Self::LowSpace { .. } => ArchiveErrorCode::StorageSpace,
            Self::Recorder(error) => error.archive_error_code(),
            Self::Storage { source, .. } if has_no_room(source) => ArchiveErrorCode::StorageSpace,
            _ => ArchiveErrorCode::Generic,
        }
    }

    pub(crate) fn storage(name: &str, doing: &'static str, source: io::Error) -> Self {
        Self::Storage {
            name: name.to_owned(),
            doing,
            source,
        }
    }
}

impl RecorderError {
    /// Returns the code of the error in the archive's control protocol.
    #[must_use]
    pub fn archive_error_code(&self) -> ArchiveErrorCode {
        match self {
            Self::Full { .. } => ArchiveErrorCode::StorageSpace,
            Self::Create { source, .. }
            | Self::Open { source, .. }
            | Self::Write { source, .. }
                if has_no_room(source) =>
            {
                ArchiveErrorCode::StorageSpace
            }
            _ => ArchiveErrorCode::Generic,
        }
    }
}

/// Returns whether the error means that a file cannot grow: the file system is full, or a limit of the user or of the
/// process is reached.
fn has_no_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Returns a text about a frame of another recording. If Aeron's archive has a text for the fault,
/// returns Aeron's text.
fn describe(fault: &FrameFault) -> String {
    match fault {
        FrameFault::Field {
            field,
            found,
            expected,
        } => format!("{field} does not match: actual={found} expected={expected}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 07-60
    #[test]
    fn a_write_that_fails_because_a_file_cannot_grow_has_the_code_storage_space() {
        use io::ErrorKind::{FileTooLarge, PermissionDenied, QuotaExceeded, StorageFull};
        let code = |kind: io::ErrorKind| {
            let recorder = RecorderError::Write {
                name: "0-0.rec".to_owned(),
                position: 0,
                source: kind.into(),
            };
            let store = StoreError::storage("archive.catalog", "grow", kind.into());
            assert_eq!(recorder.archive_error_code(), store.archive_error_code());
            store.archive_error_code()
        };
        for kind in [StorageFull, QuotaExceeded, FileTooLarge] {
            assert_eq!(code(kind), ArchiveErrorCode::StorageSpace);
        }
        assert_eq!(code(PermissionDenied), ArchiveErrorCode::Generic);
    }
}
