//! [`PrivateError`]: why a private archive cannot be used.

use std::io;
use std::path::{Path, PathBuf};

use aeron_archive::catalog::CatalogError;
use aeron_archive::mark_file::MarkFileError;
use aeron_archive::ownership::LockError;
use aeron_archive::purge::PurgeError;
use aeron_archive::reader::ReadError;
use aeron_archive::recorder::RecorderError;
use aeron_archive::recovery::RecoveryError;
use aeron_archive::stream::StreamError;

use super::index::IndexError;
use super::{LockDamage, PrivateArchiveId};

/// Why a private archive cannot be used. Each text is one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateError {
    /// The directory in which archives are made is not one to trust.
    #[error("option archiveDir: {} {reason}", path.display())]
    Root {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
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
    /// An archive that was to be read is in use.
    #[error("archive {} is in use by process {owner}: stop its query first, or read a copy", path.display())]
    ReadInUse {
        /// The archive's directory.
        path: PathBuf,
        /// Pid of its owner, or `unknown`.
        owner: String,
    },
    /// The directory holds the archive of another checkpoint.
    #[error("{} holds the private archive {id}, which is another one", path.display())]
    OtherArchive {
        /// The directory.
        path: PathBuf,
        /// The archive in it.
        id: PrivateArchiveId,
    },
    /// An archive of somebody else was started on the directory.
    #[error(
        "private archive {} is in use by an archive of process {pid}, which writes its mark file",
        path.display()
    )]
    Foreign {
        /// The archive's directory.
        path: PathBuf,
        /// Pid in the mark file.
        pid: i64,
    },
    /// There is no such archive.
    #[error("no private archive at {}", path.display())]
    Missing {
        /// The archive's directory.
        path: PathBuf,
    },
    /// The directory holds no private archive: it has no lock file.
    #[error("{} has no private.lock: it is no private archive, and nothing is written to it", path.display())]
    NotPrivate {
        /// The directory.
        path: PathBuf,
    },
    /// The lock file is damaged.
    #[error("{} is damaged: {damage}", path.display())]
    LockDamaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        damage: LockDamage,
    },
    /// A worker does not see the archive that its task was planned on.
    #[error(
        "this executor (host {executor}) cannot see the private archive {path} on host {host}: run executors on the Spark driver's machine; other machines need an archive server, not in this version"
    )]
    NotVisible {
        /// The worker's machine.
        executor: String,
        /// The archive's directory.
        path: String,
        /// The archive's machine.
        host: String,
    },
    /// The file system refuses.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was to be done.
        doing: &'static str,
        /// With which file or directory.
        path: PathBuf,
        /// What the file system answers.
        source: io::Error,
    },
    /// More images than can be recorded at once.
    #[error(
        "{limit} recordings run already, stream {stream_id} session {session_id} is one too many"
    )]
    TooManyRecordings {
        /// Most recordings at once.
        limit: usize,
        /// Stream of the image.
        stream_id: i32,
        /// Session of the image.
        session_id: i32,
    },
    /// A block does not go on where the recording ends.
    #[error(
        "recording {recording_id}: a block begins at position {position}, but {recorded_position} is recorded"
    )]
    Gap {
        /// The recording.
        recording_id: i64,
        /// Where the block begins.
        position: i64,
        /// Where the recording ends.
        recorded_position: i64,
    },
    /// The archive has no such recording.
    #[error("unknown recording {recording_id}")]
    UnknownRecording {
        /// The id.
        recording_id: i64,
    },
    /// An index file cannot be written.
    #[error("index of recording {recording_id} cannot be written at position {position}: {source}")]
    IndexWrite {
        /// The recording.
        recording_id: i64,
        /// Recorded position.
        position: i64,
        /// What the file system answers.
        source: io::Error,
    },
    /// An index file cannot be used.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The mark file cannot be used.
    #[error(transparent)]
    MarkFile(#[from] MarkFileError),
    /// The catalog cannot be used.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A recording cannot be purged.
    #[error(transparent)]
    Purge(#[from] PurgeError),
    /// A recording cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A recording cannot be written.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The end of a recording cannot be found.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// The catalog describes a recording that cannot be.
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
