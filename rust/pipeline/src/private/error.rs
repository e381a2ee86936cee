//! [`PrivateError`]: the error of a private archive.

use std::io;
use std::path::{Path, PathBuf};

use aeron_archive::index::IndexError;
use aeron_archive::mark_file::MarkFileError;
use aeron_archive::ownership::LockError;
use aeron_archive::reader::ReadError;
use aeron_archive::recorder::RecorderError;
use aeron_archive::recovery::RecoveryError;
use aeron_archive::store::StoreError;
use aeron_archive::stream::StreamError;

use super::{LockDamage, PrivateArchiveId};

/// Reason why a private archive cannot be used. Each text is one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateError {
    /// The directory for archives is not safe: see `reason`.
    #[error("option archiveDir: {} {reason}", path.display())]
    Root {
        /// The directory.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// Another living process owns the archive.
    #[error(
        "private archive {} is in use by process {owner}: another query runs on a copy of this checkpoint",
        path.display()
    )]
    InUse {
        /// The archive's directory.
        path: PathBuf,
        /// Pid of its owner, or `unknown`.
        owner: String,
    },
    /// A living process owns the archive that a batch query should read.
    #[error("archive {} is in use by process {owner}: stop its query first, or read a copy", path.display())]
    ReadInUse {
        /// The archive's directory.
        path: PathBuf,
        /// Pid of its owner, or `unknown`.
        owner: String,
    },
    /// The directory holds the archive of another checkpoint.
    #[error("{} holds another private archive: {id}", path.display())]
    OtherArchive {
        /// The directory.
        path: PathBuf,
        /// The archive in it.
        id: PrivateArchiveId,
    },
    /// A process outside this project has started an archive in the directory.
    #[error(
        "private archive {} is in use: an archive of process {pid} writes its mark file",
        path.display()
    )]
    Foreign {
        /// The archive's directory.
        path: PathBuf,
        /// Pid in the mark file.
        pid: i64,
    },
    /// The archive does not exist.
    #[error("no private archive at {}", path.display())]
    Missing {
        /// The archive's directory.
        path: PathBuf,
    },
    /// The directory does not hold a private archive: it has no lock file.
    #[error("{} has no private.lock: it is not a private archive, and nothing is written to it", path.display())]
    NotPrivate {
        /// The directory.
        path: PathBuf,
    },
    /// The lock file is damaged.
    #[error("{} is damaged: {damage}", path.display())]
    LockDamaged {
        /// The file.
        path: PathBuf,
        /// Reason.
        damage: LockDamage,
    },
    /// A worker cannot see the archive for which its task was planned.
    #[error(
        "this executor (host {executor}) cannot see the private archive {path} on host {host}: run executors on the Spark driver's machine; workers on other machines read a running archive, by archive.controlChannel"
    )]
    NotVisible {
        /// Host name of the worker's machine.
        executor: String,
        /// The archive's directory.
        path: String,
        /// Host name of the archive's machine.
        host: String,
    },
    /// A file-system operation failed.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// Path of the file or directory.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The maximum number of concurrent recordings is reached. The image is not recorded.
    #[error(
        "{limit} recordings run already, the maximum: stream {stream_id} session {session_id} is not recorded"
    )]
    TooManyRecordings {
        /// Maximum number of concurrent recordings.
        limit: usize,
        /// Stream of the image.
        stream_id: i32,
        /// Session of the image.
        session_id: i32,
    },
    /// A block does not begin at the end of the recording.
    #[error(
        "recording {recording_id}: a block begins at position {position}, but {recorded_position} is recorded"
    )]
    Gap {
        /// Recording id.
        recording_id: i64,
        /// Position at which the block begins.
        position: i64,
        /// Position at which the recording ends.
        recorded_position: i64,
    },
    /// The archive has no such recording.
    #[error("unknown recording {recording_id}")]
    UnknownRecording {
        /// Recording id.
        recording_id: i64,
    },
    /// An index file cannot be used.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The mark file cannot be used.
    #[error(transparent)]
    MarkFile(#[from] MarkFileError),
    /// The archive's catalog or recordings cannot be opened or changed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A recording cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A recording cannot be written.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The end of a recording cannot be found.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// The catalog describes an impossible recording.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

impl PrivateError {
    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            doing,
            path: path.to_owned(),
            source,
        }
    }

    pub(super) fn root(path: &Path, reason: impl Into<String>) -> Self {
        Self::Root {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

impl From<LockError> for PrivateError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Io {
                doing,
                path,
                source,
            } => Self::Io {
                doing,
                path,
                source,
            },
            LockError::Damaged { path, damage } => Self::LockDamaged { path, damage },
        }
    }
}
