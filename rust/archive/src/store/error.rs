//! [`StoreError`]: why a store refuses, with the codes and texts of Aeron's archive.

use std::io;

use aeron_protocol::archive::ArchiveErrorCode;

use crate::catalog::CatalogError;
use crate::frame::FrameFault;
use crate::purge::PurgeError;
use crate::recorder::RecorderError;
use crate::recovery::RecoveryError;
use crate::storage::SyncLevel;
use crate::stream::StreamError;

/// Why a store refuses.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The segment length of the options is impossible.
    #[error("segment length {segment_length} is not a power of two from 65536 to 1073741824")]
    SegmentLength {
        /// Length in bytes.
        segment_length: i32,
    },
    /// Blocks would be forced to the disk, and the catalog that says where they end would not.
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
    /// The recording never existed, or it is deleted or invalid.
    #[error("unknown recording id: {recording_id}")]
    UnknownRecording {
        /// The id.
        recording_id: i64,
    },
    /// Another stream was to be recorded after the end of a recording.
    #[error(
        "cannot extend recording {recording_id} with streamId={stream_id} for existing streamId={recorded}"
    )]
    OtherStream {
        /// The recording.
        recording_id: i64,
        /// Stream of the request.
        stream_id: i32,
        /// Stream of the recording.
        recorded: i32,
    },
    /// A recording that is being recorded was to be extended.
    #[error("cannot extend active recording {recording_id}")]
    ExtendsActive {
        /// The recording.
        recording_id: i64,
    },
    /// The end of a recording that was to be extended is being deleted.
    #[error("cannot extend recording {recording_id} due to an outstanding delete operation")]
    ExtendsDeleted {
        /// The recording.
        recording_id: i64,
    },
    /// A recording that is being recorded was to be truncated.
    #[error("cannot truncate active recording")]
    TruncatesActive {
        /// The recording.
        recording_id: i64,
    },
    /// A recording that is being recorded was to be purged.
    #[error("cannot purge active recording {recording_id}")]
    PurgesActive {
        /// The recording.
        recording_id: i64,
    },
    /// A recording that is being replayed was to be purged.
    #[error("cannot purge recording with active replay {recording_id}")]
    PurgesReplayed {
        /// The recording.
        recording_id: i64,
    },
    /// A recording was to be truncated to a position that is not in it, or not aligned.
    #[error("invalid position {position}: start={start} stop={stop} alignment=32")]
    InvalidPosition {
        /// Position of the request.
        position: i64,
        /// Start position.
        start: i64,
        /// Stop position.
        stop: i64,
    },
    /// A recording was to be truncated to a position at which no frame begins.
    #[error("{position} position not aligned to a data header")]
    NotADataHeader {
        /// Position of the request.
        position: i64,
    },
    /// A new start position is impossible.
    #[error(transparent)]
    NewStart(#[from] PurgeError),
    /// A replay reads what was to be detached.
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
        /// The recording.
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
    /// A file that was to be attached has another length than the recording's segments.
    #[error("fileLength={file_length} not equal to segmentLength={segment_length}: {name}")]
    SegmentFileLength {
        /// Name of the file.
        name: String,
        /// Length of the file in bytes.
        file_length: u64,
        /// Length of the recording's segments in bytes.
        segment_length: i64,
    },
    /// The first frame of a file that was to be attached is not of the recording.
    #[error("{}: position {position} of {name}", describe(.fault))]
    ForeignSegmentFile {
        /// Name of the file.
        name: String,
        /// Position of the frame.
        position: i64,
        /// What is wrong with the frame.
        fault: FrameFault,
    },
    /// A file that was to be attached has no frame in its first term.
    #[error("fragment not found in first term of segment {name}")]
    EmptySegmentFile {
        /// Name of the file.
        name: String,
    },
    /// Two recordings of which one was to take the segments of the other do not fit together.
    #[error("invalid migrate: {reason}")]
    Migrate {
        /// What does not fit.
        reason: String,
    },
    /// A recording whose segments were to be moved is recorded.
    #[error("recording {recording_id} is still active")]
    MigratesActive {
        /// The recording.
        recording_id: i64,
    },
    /// A migration to or from the recording could not be finished.
    #[error(
        "migration of the segments of recording {recording_id} has failed midway: start the archive again to finish it"
    )]
    HalfMigrated {
        /// The recording.
        recording_id: i64,
    },
    /// A segment that was to be moved has no file.
    #[error("missing src segment file {name}")]
    MissingSegmentFile {
        /// Name of the file.
        name: String,
    },
    /// A file has the name that a segment was to get.
    #[error("preexisting dst segment file {name}: remove it, if it holds nothing of a recording")]
    PreexistingSegmentFile {
        /// Name of the file.
        name: String,
    },
    /// An image does not continue the recording.
    #[error(
        "cannot extend recording {recording_id} image.{image_field}={image} != rec.{recorded_field}={recorded}"
    )]
    InvalidExtension {
        /// The recording.
        recording_id: i64,
        /// The field of the image, as Aeron's archive names it.
        image_field: &'static str,
        /// Its value.
        image: i64,
        /// The field of the recording, as Aeron's archive names it.
        recorded_field: &'static str,
        /// Its value.
        recorded: i64,
    },
    /// A segment file is in the way of what will be recorded.
    #[error(
        "segment file already exists: {name}: remove it, or run `ArchiveTool delete-orphaned-segments`"
    )]
    SegmentFileExists {
        /// Name of the file.
        name: String,
    },
    /// The file system has too little space. The text is Aeron's, which has the relation reversed.
    #[error("low storage threshold={threshold} <= usableSpace={usable}")]
    LowSpace {
        /// Most bytes with which no recording begins.
        threshold: u64,
        /// Bytes that are free.
        usable: u64,
    },
    /// The catalog cannot be used, or cannot take a change.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The catalog describes a stream that cannot exist.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The end of a recording cannot be found.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// A segment file cannot be created or opened for recording.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The file system refuses.
    #[error("{name}: cannot {doing}: {source}")]
    Storage {
        /// Name of the file; of the directory, `.`.
        name: String,
        /// The operation that failed.
        doing: &'static str,
        /// Error of the file system.
        source: io::Error,
    },
}

impl StoreError {
    /// Code of the error in the archive's control protocol.
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

    pub(super) fn storage(name: &str, doing: &'static str, source: io::Error) -> Self {
        Self::Storage {
            name: name.to_owned(),
            doing,
            source,
        }
    }
}

impl RecorderError {
    /// Code of the error in the archive's control protocol.
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

/// Whether a file cannot grow: the file system is full, or a limit of the user or of the process is reached.
fn has_no_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Describes a frame that is not of a recording, in the words of Aeron's archive where it has some.
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
    fn a_file_that_cannot_grow_is_a_lack_of_space_whatever_the_limit() {
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
