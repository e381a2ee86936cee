//! [`OwnedDirectory`]: one living owner for each archive directory, and the takeover of a dead owner's directory.
//!
//! For archives of this software, the lock decides: it is free at once after any kind of death. For Aeron's own archive
//! and tools, the mark file is written as Aeron specifies: they see a live directory as active. This archive also
//! refuses a directory whose mark file is active. There is one exception. If the lock file names the dead owner of the
//! mark file, the directory is taken over at once, however recent the last heartbeat is.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::lock::{LockError, LockOwner, LockRecord, OwnershipLock, OwnershipLockAttempt};
use super::{DirectoryId, LockNonce, boot_id};
use crate::mark_file::{
    self, ACTIVITY_TIMEOUT_MS, LINK_FILE, MARK_FILE, MarkFile, MarkFileError, MarkFileState, Owner,
};
use crate::storage::{Directory, Storage, StorageFile};

/// Name of the lock file in the directory of an archive.
pub const ARCHIVE_LOCK_FILE: &str = "archive.lock";

/// An archive directory that this process owns. If it is dropped without [`release`](Self::release), it looks like the
/// directory of a killed owner.
#[derive(Debug)]
pub struct OwnedDirectory {
    // Fields are dropped in this order: the lock must be released last.
    mark_file: MarkFile<File>,
    lock: OwnershipLock,
}

/// A request for an archive directory.
#[derive(Debug, Clone, Copy)]
pub struct OwnershipRequest<'a> {
    /// Directory of catalog and recordings, which exists.
    pub directory: &'a Path,
    /// Directory of the mark file, which exists; often the same.
    pub mark_file_directory: &'a Path,
    /// Whether everything in the directory is removed, after it is certain that no process uses it.
    pub is_emptied: bool,
    /// Owner to be written into the mark file. Its process id and start time are also in the lock file.
    pub owner: &'a Owner,
    /// Length of the error log in the mark file, in bytes.
    pub error_buffer_length: usize,
    /// Current time, in milliseconds since the epoch.
    pub now_ms: i64,
}

/// Why this process cannot own an archive directory.
#[derive(Debug, thiserror::Error)]
pub enum OwnershipError {
    /// A living archive of this software owns the directory.
    #[error(
        "active mark file detected: {} is in use by process {owner}: stop that archive first, or use another directory",
        path.display()
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// Pid of its owner, or `unknown`.
        owner: String,
    },
    /// The last heartbeat in the mark file is recent, and its owner is not known to be dead.
    #[error(
        "active mark file detected: process {pid} wrote {} {age_ms} ms ago: stop that archive, or wait until {ACTIVITY_TIMEOUT_MS} ms after its end",
        path.display()
    )]
    Active {
        /// Path of the mark file.
        path: PathBuf,
        /// Pid in the mark file.
        pid: i64,
        /// Age of the last heartbeat, in milliseconds.
        age_ms: i64,
    },
    /// The lock file cannot be used.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The mark file cannot be used.
    #[error(transparent)]
    MarkFile(#[from] MarkFileError),
    /// The file system returns an error.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// File or directory of the operation.
        path: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
}

impl OwnedDirectory {
    /// Takes ownership of a directory that no process uses. Saves the errors of the previous owner beside the mark
    /// file. Never waits.
    ///
    /// # Errors
    /// The directory is in use, its files are damaged, or the file system returns an error.
    pub fn take(request: &OwnershipRequest<'_>) -> Result<Self, OwnershipError> {
        let found = lock(request.directory)?;
        let checked = check_unused(
            &[request.directory, request.mark_file_directory],
            request.directory,
            found.record.as_ref(),
            request.now_ms,
        );
        if checked.is_err() && found.is_new {
            // The directory belongs to an archive of other software, which has no lock file.
            let _ = fs::remove_file(request.directory.join(ARCHIVE_LOCK_FILE));
        }
        checked?;
        if request.is_emptied {
            empty(request.directory)?;
        }
        Self::establish(found, request)
    }

    /// Marks the archive as ready in the mark file.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn ready(&mut self, now_ms: i64) -> Result<(), OwnershipError> {
        Ok(self.mark_file.ready(now_ms)?)
    }

    /// Ends the ownership: the mark file is marked as ended, and the lock is released.
    ///
    /// # Errors
    /// The file system returns an error; the lock is released nevertheless.
    pub fn release(self) -> Result<(), OwnershipError> {
        Ok(self.mark_file.close()?)
    }

    /// Returns the mark file, and the lock, which must live until the mark file is closed.
    pub fn into_parts(self) -> (MarkFile<File>, OwnershipLock) {
        (self.mark_file, self.lock)
    }

    /// Writes the mark file, then the lock file. If the process is killed in between, the next start is refused for 10
    /// s.
    fn establish(found: FoundLock, request: &OwnershipRequest<'_>) -> Result<Self, OwnershipError> {
        let io = |doing, source| io_error(doing, request.directory, source);
        let boot_id = boot_id().map_err(|source| io("find the machine of", source))?;
        let (directory_id, nonce) = match found.record {
            Some(record) => (record.directory_id, record.nonce),
            None => DirectoryId::random()
                .and_then(|id| Ok((id, LockNonce::random()?)))
                .map_err(|source| io("make an id for", source))?,
        };
        let marked = Directory::new(request.mark_file_directory);
        let mark_file = MarkFile::take_with_error_buffer(
            &marked,
            request.owner,
            request.error_buffer_length,
            request.now_ms,
        )?;
        link(request)?;
        let owner = owner_of(request.owner);
        found.lock.write(&LockRecord {
            directory_id,
            nonce,
            boot_id,
            owner,
        })?;
        Ok(Self {
            mark_file,
            lock: found.lock,
        })
    }
}

/// Ownership of an archive directory while a tool changes its files. No archive runs in it, and the mark file is not
/// changed.
#[derive(Debug)]
pub struct Maintenance {
    _lock: OwnershipLock,
    /// Lock file that was created for the maintenance, because the directory had none.
    new_lock_file: Option<PathBuf>,
}

impl Maintenance {
    /// Takes ownership of a directory that no archive uses, until the value is dropped. Never waits.
    ///
    /// # Errors
    /// The directory is in use, its mark file or lock file is damaged, or the file system returns an error.
    pub fn begin(directory: &Path, now_ms: i64) -> Result<Self, OwnershipError> {
        let found = lock(directory)?;
        let maintenance = Self {
            new_lock_file: found.is_new.then(|| directory.join(ARCHIVE_LOCK_FILE)),
            _lock: found.lock,
        };
        check_unused(&[directory], directory, found.record.as_ref(), now_ms)?;
        Ok(maintenance)
    }
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        if let Some(path) = &self.new_lock_file {
            // The directory belongs to an archive of other software, which has no lock file. If the removal fails, the
            // file does no harm.
            let _ = fs::remove_file(path);
        }
    }
}

/// A lock that this process has taken.
struct FoundLock {
    lock: OwnershipLock,
    record: Option<LockRecord>,
    /// Whether the lock file was created now.
    is_new: bool,
}

fn lock(directory: &Path) -> Result<FoundLock, OwnershipError> {
    let path = directory.join(ARCHIVE_LOCK_FILE);
    match OwnershipLock::try_lock(&path)? {
        OwnershipLockAttempt::Acquired(lock) => Ok(FoundLock {
            record: lock.record()?,
            lock,
            is_new: false,
        }),
        OwnershipLockAttempt::Missing => Ok(FoundLock {
            lock: OwnershipLock::create(&path)?,
            record: None,
            is_new: true,
        }),
        OwnershipLockAttempt::Held(pid) => Err(OwnershipError::InUse {
            path: directory.to_owned(),
            owner: pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string()),
        }),
    }
}

/// Checks each mark file that may belong to `directory`: in the requested directory, in `directory`, and where the link
/// file points.
fn check_unused(
    mark_file_directories: &[&Path],
    directory: &Path,
    record: Option<&LockRecord>,
    now_ms: i64,
) -> Result<(), OwnershipError> {
    let linked = mark_file::read_link(&Directory::new(directory))?;
    let linked = linked.as_deref().map(Path::new);
    for directory in mark_file_directories.iter().copied().chain(linked) {
        let Some(state) = mark_file::read(&Directory::new(directory))? else {
            continue;
        };
        if state.is_active(now_ms) && !is_of_dead_owner(&state, record) {
            return Err(OwnershipError::Active {
                path: directory.join(MARK_FILE),
                pid: state.owner.pid,
                age_ms: now_ms.saturating_sub(state.activity_timestamp_ms),
            });
        }
    }
    Ok(())
}

/// Returns whether the mark file was written by the last owner in the lock file. That owner is dead: this process holds
/// the lock.
fn is_of_dead_owner(state: &MarkFileState, record: Option<&LockRecord>) -> bool {
    record.is_some_and(|record| record.owner == owner_of(&state.owner))
}

fn owner_of(owner: &Owner) -> LockOwner {
    LockOwner {
        pid: owner.pid,
        start_timestamp_ms: owner.start_timestamp_ms,
    }
}

/// Removes everything in a directory except the lock file.
fn empty(directory: &Path) -> Result<(), OwnershipError> {
    let remove_entries = || -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_name() == ARCHIVE_LOCK_FILE {
                continue;
            }
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    };
    remove_entries().map_err(|source| io_error("empty", directory, source))
}

/// Writes the link file with the directory of the mark file, or removes the link file of an earlier owner.
fn link(request: &OwnershipRequest<'_>) -> Result<(), OwnershipError> {
    let path = request.directory.join(LINK_FILE);
    let archive = Directory::new(request.directory);
    let written = || -> io::Result<()> {
        match archive.remove(LINK_FILE) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if request.directory == request.mark_file_directory {
            return Ok(());
        }
        let target = request.mark_file_directory.as_os_str().as_encoded_bytes();
        archive.create(LINK_FILE, 0)?.write_all_at(target, 0)
    };
    written().map_err(|source| io_error("write", &path, source))
}

fn io_error(doing: &'static str, path: &Path, source: io::Error) -> OwnershipError {
    OwnershipError::Io {
        doing,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_700_000_000_000;

    struct World {
        directory: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            Self {
                directory: tempfile::tempdir().unwrap(),
            }
        }

        fn path(&self) -> &Path {
            self.directory.path()
        }

        fn mark(&self) -> MarkFileState {
            mark_file::read(&Directory::new(self.path()))
                .unwrap()
                .unwrap()
        }

        fn names(&self) -> Vec<String> {
            let mut names = Directory::new(self.path()).names().unwrap();
            names.sort();
            names
        }

        fn take(&self, pid: i64, now_ms: i64) -> Result<OwnedDirectory, OwnershipError> {
            self.take_with(pid, now_ms, self.path(), false)
        }

        fn take_with(
            &self,
            pid: i64,
            now_ms: i64,
            mark_file_directory: &Path,
            is_emptied: bool,
        ) -> Result<OwnedDirectory, OwnershipError> {
            OwnedDirectory::take(&OwnershipRequest {
                directory: self.path(),
                mark_file_directory,
                is_emptied,
                owner: &Owner::without_server(pid, now_ms, "/dev/shm/aeron".into()),
                error_buffer_length: mark_file::ERROR_BUFFER_LENGTH,
                now_ms,
            })
        }

        /// Writes the mark file of an archive that has no lock file. Its last heartbeat is at `NOW_MS` if it is ready.
        fn foreign_mark(&self, is_ready: bool) {
            let owner = Owner::without_server(4711, NOW_MS, String::new());
            let mut mark = MarkFile::take(&Directory::new(self.path()), &owner, NOW_MS).unwrap();
            if is_ready {
                mark.ready(NOW_MS).unwrap();
            }
        }
    }

    /// 07-72, 07-73
    #[test]
    fn an_owner_that_ended_leaves_the_directory_to_the_next_at_once() {
        let world = World::new();
        let mut first = world.take(1, NOW_MS).unwrap();
        first.ready(NOW_MS).unwrap();
        assert!(world.mark().is_active(NOW_MS));
        first.release().unwrap();
        assert_eq!(world.mark().activity_timestamp_ms, -1);
        world.take(2, NOW_MS + 1).unwrap();
        assert_eq!(world.mark().owner.pid, 2);
    }

    /// 07-73
    #[test]
    fn a_second_start_while_the_owner_lives_is_refused_with_its_pid() {
        let world = World::new();
        let _first = world.take(1234, NOW_MS).unwrap();
        let error = world.take(2, NOW_MS + 60_000).unwrap_err().to_string();
        assert!(error.starts_with("active mark file detected: "), "{error}");
        assert!(error.contains("is in use by process 1234"), "{error}");
    }

    #[test]
    fn the_directory_of_a_killed_owner_is_taken_over_at_once() {
        let world = World::new();
        let mut first = world.take(1, NOW_MS).unwrap();
        first.ready(NOW_MS).unwrap();
        drop(first);
        assert!(world.mark().is_active(NOW_MS + 1));
        world.take(2, NOW_MS + 1).unwrap();
    }

    /// 07-73
    #[test]
    fn the_young_mark_file_of_another_archive_is_refused_and_its_directory_left_as_it_was() {
        let world = World::new();
        world.foreign_mark(true);
        let before = world.names();
        let error = world.take(2, NOW_MS + 9_999).unwrap_err().to_string();
        assert!(
            error.starts_with("active mark file detected: process 4711 wrote "),
            "{error}"
        );
        assert!(error.contains(" 9999 ms ago"), "{error}");
        assert_eq!(world.names(), before);
        world.take(2, NOW_MS + 10_000).unwrap();
    }

    #[test]
    fn an_archive_that_ran_in_our_directory_later_is_detected() {
        let world = World::new();
        drop(world.take(1, NOW_MS - 60_000).unwrap());
        world.foreign_mark(true);
        assert!(matches!(
            world.take(2, NOW_MS + 5_000),
            Err(OwnershipError::Active { pid: 4711, .. })
        ));
    }

    /// Section 22: a start that was killed before it was ready.
    #[test]
    fn a_mark_file_of_version_0_blocks_while_it_is_young_and_not_for_ever() {
        let world = World::new();
        world.foreign_mark(false);
        assert!(world.take(2, NOW_MS + 5_000).is_err());
        world.take(2, NOW_MS + 10_000).unwrap();
    }

    /// 07-74
    #[test]
    fn a_link_file_names_the_directory_of_the_mark_file_and_is_removed_without_one() {
        let world = World::new();
        let elsewhere = tempfile::tempdir().unwrap();
        let owned = world.take_with(1, NOW_MS, elsewhere.path(), false);
        owned.unwrap().release().unwrap();
        assert_eq!(world.names(), [LINK_FILE, ARCHIVE_LOCK_FILE]);
        let link = fs::read(world.path().join(LINK_FILE)).unwrap();
        assert_eq!(link, elsewhere.path().as_os_str().as_encoded_bytes());
        world.take(2, NOW_MS).unwrap().release().unwrap();
        assert_eq!(world.names(), [MARK_FILE, ARCHIVE_LOCK_FILE]);
    }

    #[test]
    fn a_mark_file_elsewhere_that_is_active_blocks_a_start_without_it() {
        let world = World::new();
        let elsewhere = World::new();
        elsewhere.foreign_mark(true);
        fs::write(
            world.path().join(LINK_FILE),
            elsewhere.path().as_os_str().as_encoded_bytes(),
        )
        .unwrap();
        assert!(matches!(
            world.take(2, NOW_MS + 1),
            Err(OwnershipError::Active { pid: 4711, .. })
        ));
    }

    #[test]
    fn a_directory_is_emptied_only_if_no_process_uses_it() {
        let world = World::new();
        fs::write(world.path().join("0-0.rec"), "theirs").unwrap();
        fs::create_dir(world.path().join("more")).unwrap();
        world.foreign_mark(true);
        let empty = |now_ms| world.take_with(2, now_ms, world.path(), true);
        assert!(empty(NOW_MS + 1).is_err());
        assert!(world.path().join("0-0.rec").exists());
        let owned = empty(NOW_MS + 10_000).unwrap();
        assert_eq!(world.names(), [MARK_FILE, ARCHIVE_LOCK_FILE]);
        drop(owned);
    }

    /// 07-75
    #[test]
    fn maintenance_keeps_archives_away_and_leaves_the_files_as_they_were() {
        let world = World::new();
        world.foreign_mark(true);
        let young = Maintenance::begin(world.path(), NOW_MS + 1);
        assert!(matches!(young, Err(OwnershipError::Active { .. })));
        let begun = Maintenance::begin(world.path(), NOW_MS + 10_000).unwrap();
        let second = world.take(2, NOW_MS + 10_000);
        assert!(matches!(second, Err(OwnershipError::InUse { .. })));
        drop(begun);
        assert_eq!(world.names(), [MARK_FILE]);

        let owned = world.take(1, NOW_MS + 10_000).unwrap();
        let held = Maintenance::begin(world.path(), NOW_MS + 10_001);
        assert!(matches!(held, Err(OwnershipError::InUse { .. })));
        // Simulates a kill of the owner. The lock file names the owner, so the next owner need not wait.
        drop(owned);
        drop(Maintenance::begin(world.path(), NOW_MS + 10_001).unwrap());
        assert_eq!(world.names(), [MARK_FILE, ARCHIVE_LOCK_FILE]);
    }

    #[test]
    fn errors_of_the_owner_before_are_saved() {
        let world = World::new();
        let (mut mark_file, lock) = world.take(1, NOW_MS).unwrap().into_parts();
        mark_file.record_error(NOW_MS, "disk on fire").unwrap();
        mark_file.close().unwrap();
        drop(lock);
        drop(world.take(2, NOW_MS + 1).unwrap());
        let names = world.names();
        let report = names.iter().find(|name| name.ends_with("-error.log"));
        let text = fs::read_to_string(world.path().join(report.unwrap())).unwrap();
        assert!(text.contains("disk on fire"), "{text}");
    }
}
