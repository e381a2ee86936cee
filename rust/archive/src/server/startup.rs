//! The order in which an archive starts, and the state of its directories after a failed start.
//!
//! An archive creates its directories, finds its id, takes ownership of the directories, and only then creates counters
//! and opens the catalog. From [`OwnedArchiveDirectory::take`] to [`OwnedArchiveDirectory::ready`], the mark file has
//! version 0, so clients and tools wait. If a step in this time fails, the mark file is marked as ended and gets its
//! version. Otherwise the next start would wait, and Aeron's archive would refuse the directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aeron_protocol::archive::NULL_VALUE;

use super::ArchiveError;
use super::context::{ArchiveConfigurationError, ArchiveContext};
use super::retention::RetentionFileError;
use super::users::UsersFileError;
use crate::mark_file::Owner;
use crate::ownership::{OwnedDirectory, OwnershipError, OwnershipPolicy, OwnershipRequest};
use crate::store::StoreError;

/// Interval of the polls for the driver's CnC file.
const DRIVER_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A reason why an archive does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveStartError {
    /// A setting is missing or not valid.
    #[error(transparent)]
    Configuration(#[from] ArchiveConfigurationError),
    /// A directory cannot be created.
    #[error("cannot create the directory {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
    /// The archive directory is in use or damaged.
    #[error(transparent)]
    Ownership(#[from] OwnershipError),
    /// The driver serves an archive with the same id.
    #[error(
        "found existing archive for archiveId={archive_id}: choose another aeron.archive.id, or wait until the driver has noticed the end of that archive"
    )]
    ArchiveIdInUse {
        /// Id of the archive.
        archive_id: i64,
    },
    /// The recordings cannot be opened: an option is not valid, a file is damaged, or the file system returns an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The driver does not serve the archive.
    #[error(transparent)]
    Client(#[from] aeron_client::Error),
    /// The channel of a control stream is not valid.
    #[error("control channel: {0}")]
    ControlChannel(#[from] ArchiveError),
    /// The users file cannot be used.
    #[error(transparent)]
    Users(#[from] UsersFileError),
    /// The file of retention policies cannot be used.
    #[error(transparent)]
    Retention(#[from] RetentionFileError),
    /// Object storage cannot be used.
    #[error("object storage: {reason}")]
    Objects {
        /// The reason, and the remedy.
        reason: String,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread: {source}")]
    Thread {
        /// Error of the system.
        source: io::Error,
    },
}

/// The directories of an archive, as canonical paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArchiveDirectories {
    /// Directory of catalog and recordings.
    pub archive: PathBuf,
    /// Directory of the mark file.
    pub mark_file: PathBuf,
}

/// Returns the id of the archive: the configured id, or a unique id from the driver. Waits for the
/// driver's CnC file.
///
/// # Errors
/// No driver starts within the driver timeout, or its CnC file cannot be used.
pub(super) fn archive_id(context: &ArchiveContext) -> Result<i64, ArchiveStartError> {
    if context.archive_id != NULL_VALUE {
        return Ok(context.archive_id);
    }
    let deadline = Instant::now() + Duration::from_millis(context.driver_timeout_ms as u64);
    loop {
        match aeron_client::next_correlation_id(&context.aeron_dir) {
            Err(aeron_client::Error::DriverTimeout(_)) if Instant::now() < deadline => {
                std::thread::sleep(DRIVER_POLL_INTERVAL);
            }
            result => return Ok(result?),
        }
    }
}

/// The archive directories during a start. If this value is dropped before the archive is ready,
/// the ownership is released, and the mark file looks like after a regular end.
#[derive(Debug)]
pub(super) struct OwnedArchiveDirectory {
    /// The owned directory; `None` after the archive is ready.
    owned: Option<OwnedDirectory>,
}

impl ArchiveDirectories {
    /// Creates the missing directories.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn make(context: &ArchiveContext) -> Result<Self, ArchiveStartError> {
        Ok(Self {
            archive: made(&context.archive_dir)?,
            mark_file: made(context.mark_file_dir())?,
        })
    }
}

impl OwnedArchiveDirectory {
    /// Takes ownership of the directories, unless a living archive uses them, and writes the owner
    /// into the lock file and the mark file. If `archive_dir_delete_on_start` is set, also deletes
    /// the content of the archive directory.
    ///
    /// # Errors
    /// Another archive uses a directory, a file is damaged, or the file system returns an error.
    pub fn take(
        context: &ArchiveContext,
        directories: &ArchiveDirectories,
        archive_id: i64,
        now_ms: i64,
    ) -> Result<Self, ArchiveStartError> {
        let owner = owner(context, archive_id, now_ms);
        let owned = OwnedDirectory::take(&OwnershipRequest {
            policy: OwnershipPolicy::SERVER,
            directory: &directories.archive,
            mark_file_directory: &directories.mark_file,
            is_emptied: context.archive_dir_delete_on_start,
            owner: &owner,
            error_buffer_length: context.error_buffer_length,
            now_ms,
        })?;
        Ok(Self { owned: Some(owned) })
    }

    /// Marks the archive as ready.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn ready(mut self, now_ms: i64) -> Result<OwnedDirectory, ArchiveStartError> {
        let owned = self.owned.as_mut().expect("only `ready` takes it");
        owned.ready(now_ms)?;
        Ok(self.owned.take().expect("it was there"))
    }
}

impl Drop for OwnedArchiveDirectory {
    fn drop(&mut self) {
        if let Some(owned) = self.owned.take() {
            // The start has failed, and the caller reports its error. After the release, the next start need not wait.
            let _ = owned.release();
        }
    }
}

fn made(path: &Path) -> Result<PathBuf, ArchiveStartError> {
    fs::create_dir_all(path)
        .and_then(|()| path.canonicalize())
        .map_err(|source| ArchiveStartError::Directory {
            path: path.to_owned(),
            source,
        })
}

/// Returns the owner for the mark file. Earlier steps have checked the channels, and that the path
/// of the driver's directory is UTF-8.
fn owner(context: &ArchiveContext, archive_id: i64, now_ms: i64) -> Owner {
    let channel_if = |is_used, channel: &String| match is_used {
        true => channel.clone(),
        false => String::new(),
    };
    Owner {
        pid: i64::from(std::process::id()),
        start_timestamp_ms: now_ms,
        archive_id,
        control_stream_id: context.control_stream_id,
        local_control_stream_id: context.local_control_stream_id,
        events_stream_id: context.recording_events_stream_id,
        control_channel: channel_if(context.control_channel_enabled, &context.control_channel),
        local_control_channel: context.local_control_channel.clone(),
        events_channel: context.recording_events_channel.clone(),
        aeron_directory: context.aeron_dir.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark_file::{self, MARK_FILE_VERSION, MarkFileState};
    use crate::storage::Directory;

    const NOW_MS: i64 = 1_700_000_000_000;

    struct World {
        directory: tempfile::TempDir,
        context: ArchiveContext,
    }

    impl World {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let context = ArchiveContext {
                archive_dir: directory.path().join("deep/archive"),
                mark_file_dir: Some(directory.path().join("mark")),
                control_channel: "aeron:udp?endpoint=localhost:8010".into(),
                ..ArchiveContext::default()
            };
            Self { directory, context }
        }

        fn take(&self, now_ms: i64) -> Result<OwnedArchiveDirectory, ArchiveStartError> {
            let directories = ArchiveDirectories::make(&self.context)?;
            OwnedArchiveDirectory::take(&self.context, &directories, 7, now_ms)
        }

        fn mark(&self) -> MarkFileState {
            let directory = Directory::new(self.directory.path().join("mark"));
            mark_file::read(&directory).unwrap().unwrap()
        }
    }

    /// 07-71, 07-74
    #[test]
    fn the_mark_file_of_a_ready_archive_has_its_settings() {
        let world = World::new();
        let owned = world.take(NOW_MS).unwrap().ready(NOW_MS + 5).unwrap();
        let mark = world.mark();
        assert_eq!(mark.version, MARK_FILE_VERSION);
        assert_eq!(mark.activity_timestamp_ms, NOW_MS + 5);
        let expected = Owner {
            pid: i64::from(std::process::id()),
            start_timestamp_ms: NOW_MS,
            archive_id: 7,
            control_stream_id: 10,
            local_control_stream_id: 10,
            events_stream_id: 30,
            control_channel: "aeron:udp?endpoint=localhost:8010".into(),
            local_control_channel: "aeron:ipc?term-length=64k".into(),
            events_channel: String::new(),
            aeron_directory: world.context.aeron_dir.display().to_string(),
        };
        assert_eq!(mark.owner, expected);
        drop(owned);
    }

    /// 07-71, 07-75, 07-76
    #[test]
    fn the_error_log_has_the_configured_length_and_is_cleared_at_each_start() {
        let mut world = World::new();
        world.context.error_buffer_length = (2 << 20) + 100;
        let mut owned = world.take(NOW_MS).unwrap().ready(NOW_MS).unwrap();
        let long = "x".repeat(3 << 19);
        owned.record_error(NOW_MS, &long).unwrap();
        owned.release().unwrap();
        assert_eq!(world.mark().error_buffer_length, (2 << 20) + 100);
        let path = world.directory.path().join("mark/archive-mark.dat");
        let expected = (8192 + (2 << 20) + 100_u64).next_multiple_of(4096);
        assert_eq!(fs::metadata(&path).unwrap().len(), expected);
        world.context.error_buffer_length = 1 << 20;
        drop(world.take(NOW_MS + 1).unwrap().ready(NOW_MS + 1).unwrap());
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 8192 + (1 << 20));
        assert!(bytes[8192..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn after_a_failed_start_the_mark_file_is_ended_and_the_next_start_succeeds() {
        let world = World::new();
        drop(world.take(NOW_MS).unwrap());
        assert_eq!(world.mark().activity_timestamp_ms, -1);
        assert_eq!(world.mark().version, MARK_FILE_VERSION);
        world.take(NOW_MS + 1).unwrap();
    }

    /// 07-73
    #[test]
    fn a_start_in_a_directory_of_a_running_archive_is_refused() {
        let world = World::new();
        let _first = world.take(NOW_MS).unwrap().ready(NOW_MS).unwrap();
        let error = world.take(NOW_MS + 1).unwrap_err();
        assert!(matches!(error, ArchiveStartError::Ownership(_)), "{error}");
    }

    #[test]
    fn the_error_of_a_directory_that_cannot_be_created_has_its_path() {
        let world = World::new();
        std::fs::write(world.directory.path().join("deep"), "a file").unwrap();
        let error = world.take(NOW_MS).unwrap_err().to_string();
        assert!(error.starts_with("cannot create the directory "), "{error}");
        assert!(error.contains("deep/archive"), "{error}");
    }
}
