//! [`ToolError`]: why a command of `ArchiveTool` fails.

use std::io;

use aeron_memory::cnc::SemanticVersion;

use crate::catalog::{CATALOG_FILE, CATALOG_VERSION, CatalogError, RecordingState};
use crate::index::FindPositionError;
use crate::reader::ReadError;
use crate::recovery::RecoveryError;
use crate::store::StoreError;
use crate::stream::StreamError;

/// Why a command on the files of an archive fails.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The catalog has the layout of an archive before version 3.
    #[error(
        "incompatible catalog file version {file}, archive software is {CATALOG_VERSION}: migrate the archive with Aeron's own tool, \
         io.aeron.archive.ArchiveTool <archive-dir> migrate"
    )]
    OldCatalog {
        /// Version in the file.
        file: SemanticVersion,
    },
    /// A rebuild would replace a catalog.
    #[error(
        "{CATALOG_FILE} exists, and a rebuild never replaces a catalog: if it is damaged beyond repair, move it to another \
         directory"
    )]
    CatalogExists,
    /// The catalog cannot be used.
    #[error(transparent)]
    Catalog(CatalogError),
    /// The catalog has no entry with this id. Or the recording is deleted, and the command needs a
    /// recording that exists.
    #[error("no recording found with recordingId: {recording_id}")]
    UnknownRecording {
        /// Recording id.
        recording_id: i64,
    },
    /// A migration of segments is unfinished. Only an archive can decide to which of the migration's two recordings a
    /// segment file belongs.
    #[error(
        "(recordingId={recording_id}) a migration of its segments was interrupted, see {note}: start the archive \
         once to finish the migration; if its source or its destination is INVALID, first mark that recording as valid"
    )]
    HalfMigrated {
        /// Recording id.
        recording_id: i64,
        /// Name of the migration's note file.
        note: String,
    },
    /// The recording to be marked is deleted.
    #[error("(recordingId={recording_id}) state transition DELETED -> {to} is not allowed")]
    Deleted {
        /// Recording id.
        recording_id: i64,
        /// Name of the requested state.
        to: &'static str,
    },
    /// The entry of a recording has values that no recording can have.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The search for a position by time failed.
    #[error(transparent)]
    FindPosition(#[from] FindPositionError),
    /// The frames of a recording cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The end of a recording cannot be found, or the bytes after it cannot be removed.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// [`compact`](super::ArchiveFiles::compact) could not list or delete segment files, or
    /// [`delete_orphan`](super::ArchiveFiles::delete_orphan) could not delete a segment file.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A segment file or its index cannot be read or written, or the archive directory cannot be listed.
    #[error("{name}: {source}")]
    Storage {
        /// Name of the segment file, also if its index has the error; `.` for the directory.
        name: String,
        /// Error of the file system.
        source: io::Error,
    },
    /// The caller stopped the work.
    #[error("interrupted")]
    Interrupted,
}

impl From<CatalogError> for ToolError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::IncompatibleVersion { file }
                if file.major() < CATALOG_VERSION.major() =>
            {
                Self::OldCatalog { file }
            }
            CatalogError::UnknownRecording { recording_id } => {
                Self::UnknownRecording { recording_id }
            }
            error => Self::Catalog(error),
        }
    }
}

impl ToolError {
    pub(super) fn storage(name: String, source: io::Error) -> Self {
        Self::Storage { name, source }
    }
}

impl RecordingState {
    /// Returns the name of the state, as Aeron's tools print it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Invalid => "INVALID",
            Self::Valid => "VALID",
            Self::Deleted => "DELETED",
        }
    }
}
