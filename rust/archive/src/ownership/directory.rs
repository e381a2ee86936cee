//! [`OwnedDirectory`]: one living owner for each archive directory, and the takeover of a dead owner's directory.
//!
//! Between archives of this software, the lock decides: the kernel releases it when the owner dies.
//! Aeron's own archive and tools only look at the mark file, so the owner writes it as Aeron
//! specifies. This archive also refuses a directory with an active mark file, with one exception.
//! If the lock file names the dead owner of the mark file, the directory is taken over at once,
//! even if the last heartbeat is recent.
//!
//! An archive server and the private archive of a Spark query own their directories in the same way. An
//! [`OwnershipPolicy`] contains the differences.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::lock::{LockError, LockOwner, LockRecord, OwnershipLock, OwnershipLockAttempt};
use super::{DirectoryId, LockNonce, boot_id};
use crate::mark_file::{
    self, ACTIVITY_TIMEOUT_MS, LINK_FILE, MARK_FILE, MarkFile, MarkFileError, MarkFileState, Owner,
};
use crate::pause::{self, Point};
use crate::storage::{Directory, Storage, StorageFile};

/// Name of the lock file in the directory of an archive server.
pub const ARCHIVE_LOCK_FILE: &str = "archive.lock";

/// An archive directory that this process owns. If this value is dropped without
/// [`release`](Self::release), the directory stays like the directory of a killed owner.
#[derive(Debug)]
pub struct OwnedDirectory {
    // Fields are dropped in this order: the lock must be released last.
    mark_file: MarkFile<File>,
    record: LockRecord,
    lock: OwnershipLock,
}

/// A request for an archive directory.
#[derive(Clone, Copy)]
pub struct OwnershipRequest<'a> {
    /// The rules for this kind of archive.
    pub policy: OwnershipPolicy<'a>,
    /// Directory of catalog and recordings. It must exist.
    pub directory: &'a Path,
    /// Directory of the mark file. It must exist, and is often the same directory.
    pub mark_file_directory: &'a Path,
    /// Whether all files in the directory except the lock file are removed, after it is certain that
    /// no process uses the directory.
    pub is_emptied: bool,
    /// Owner to be written into the mark file. Its process id and start time are also in the lock file.
    pub owner: &'a Owner,
    /// Length of the error log in the mark file, in bytes.
    pub error_buffer_length: usize,
    /// Current time, in milliseconds since the epoch.
    pub now_ms: i64,
}

/// The rules of ownership that differ between kinds of archives.
#[derive(Clone, Copy)]
pub struct OwnershipPolicy<'a> {
    /// Name of the lock file.
    pub lock_file: &'a str,
    /// The directory that is expected.
    pub expected: ExpectedDirectory,
    /// Returns whether an owner is dead although its mark file is active. It is called only for an
    /// owner that the lock file does not name.
    pub is_dead: &'a dyn Fn(&MarkFileState) -> bool,
}

/// The directory that a process expects to own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedDirectory {
    /// Any directory. If the directory has no lock file, a lock file with a random id is created.
    Any,
    /// A directory without a lock file. A lock file with this id is created.
    New(DirectoryId),
    /// A directory that has this id in its lock file. If the first owner was killed before it wrote an
    /// id, this id is written into the lock file.
    Existing(DirectoryId),
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
        /// Pid of the directory's owner, or `unknown`.
        owner: String,
    },
    /// The last heartbeat in the mark file is recent, and the owner in the mark file is not known
    /// to be dead.
    #[error(
        "active mark file detected: process {pid} wrote {} {}",
        path.display(),
        age_and_advice(*age_ms)
    )]
    Active {
        /// Path of the mark file.
        path: PathBuf,
        /// Pid in the mark file.
        pid: i64,
        /// Age of the last heartbeat, in milliseconds; negative if the heartbeat is in the future.
        age_ms: i64,
    },
    /// The directory has no lock file, and an existing directory is expected.
    #[error("{} has no lock file", path.display())]
    NoLockFile {
        /// The directory.
        path: PathBuf,
    },
    /// The id in the lock file is not the expected id.
    #[error("{} is the directory of another archive: {id}", path.display())]
    OtherDirectory {
        /// The directory.
        path: PathBuf,
        /// Id in the lock file of the directory.
        id: DirectoryId,
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

impl OwnershipPolicy<'static> {
    /// The rules for the directory of an archive server.
    pub const SERVER: Self = Self {
        lock_file: ARCHIVE_LOCK_FILE,
        expected: ExpectedDirectory::Any,
        is_dead: &|_| false,
    };
}

impl OwnedDirectory {
    /// Takes ownership of a directory that no process uses. Saves the errors of the previous owner beside the mark
    /// file. Never waits.
    ///
    /// # Errors
    /// The directory is in use, its files are damaged, or the file system returns an error.
    pub fn take(request: &OwnershipRequest<'_>) -> Result<Self, OwnershipError> {
        let policy = &request.policy;
        let found = lock(request.directory, policy)?;
        let checked = check_unused(
            &[request.directory, request.mark_file_directory],
            request.directory,
            policy,
            found.record.as_ref(),
            request.now_ms,
        );
        if checked.is_err() && found.is_new {
            // The directory belongs to an archive of other software, which uses no lock file. So
            // the new lock file is removed.
            let _ = fs::remove_file(request.directory.join(policy.lock_file));
        }
        checked?;
        if request.is_emptied {
            empty(request.directory, policy.lock_file)?;
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

    /// Returns the content of the lock file.
    pub fn record(&self) -> &LockRecord {
        &self.record
    }

    /// Writes the current time into the mark file, at most once a second. Call it in every duty cycle.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn heartbeat(&mut self, now_ms: i64) -> Result<(), OwnershipError> {
        Ok(self.mark_file.heartbeat(now_ms)?)
    }

    /// Writes an error of the archive or its data to the error log in the mark file.
    ///
    /// # Errors
    /// The error log is full, or the file system returns an error.
    pub fn record_error(&mut self, now_ms: i64, text: &str) -> Result<(), OwnershipError> {
        Ok(self.mark_file.record_error(now_ms, text)?)
    }

    /// Writes an error that a client has caused to the error log in the mark file.
    ///
    /// # Errors
    /// The clients' part of the error log is full, or the file system returns an error.
    pub fn record_client_error(&mut self, now_ms: i64, text: &str) -> Result<(), OwnershipError> {
        Ok(self.mark_file.record_client_error(now_ms, text)?)
    }

    /// Writes the mark file, and then the lock file. If the process is killed between the two
    /// writes, the lock file does not name the owner in the mark file.
    fn establish(found: FoundLock, request: &OwnershipRequest<'_>) -> Result<Self, OwnershipError> {
        let io = |doing, source| io_error(doing, request.directory, source);
        let boot_id = boot_id().map_err(|source| io("read the boot id for", source))?;
        let (directory_id, nonce) = match found.record {
            Some(record) => (record.directory_id, record.nonce),
            None => {
                new_ids(request.policy.expected).map_err(|source| io("make an id for", source))?
            }
        };
        let marked = Directory::new(request.mark_file_directory);
        let mark_file = MarkFile::take_with_error_buffer(
            &marked,
            request.owner,
            request.error_buffer_length,
            request.now_ms,
        )?;
        pause::at(Point::TAKEN_OVER);
        let record = LockRecord {
            directory_id,
            nonce,
            boot_id,
            owner: owner_of(request.owner),
        };
        let owned = Self {
            mark_file,
            record,
            lock: found.lock,
        };
        let written = link(request).and_then(|()| Ok(owned.lock.write(&owned.record)?));
        match written {
            Ok(()) => Ok(owned),
            Err(error) => {
                // The first error is more useful.
                let _ = owned.release();
                Err(error)
            }
        }
    }
}

/// Ownership of an archive directory while a tool changes its files. Meanwhile no archive can start
/// in the directory. The mark file is not changed.
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
        let policy = OwnershipPolicy::SERVER;
        let found = lock(directory, &policy)?;
        let maintenance = Self {
            new_lock_file: found.is_new.then(|| directory.join(ARCHIVE_LOCK_FILE)),
            _lock: found.lock,
        };
        let record = found.record.as_ref();
        check_unused(&[directory], directory, &policy, record, now_ms)?;
        Ok(maintenance)
    }
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        if let Some(path) = &self.new_lock_file {
            // The directory belongs to an archive of other software, which uses no lock file. If
            // the removal fails, the file has no effect.
            let _ = fs::remove_file(path);
        }
    }
}

/// A lock that this process has taken.
struct FoundLock {
    lock: OwnershipLock,
    record: Option<LockRecord>,
    /// Whether this process has created the lock file.
    is_new: bool,
}

fn lock(directory: &Path, policy: &OwnershipPolicy<'_>) -> Result<FoundLock, OwnershipError> {
    let path = directory.join(policy.lock_file);
    if let ExpectedDirectory::New(_) = policy.expected {
        return create_lock(&path);
    }
    match OwnershipLock::try_lock(&path)? {
        OwnershipLockAttempt::Acquired(lock) => {
            let record = lock.record()?;
            check_id(directory, policy.expected, record.as_ref())?;
            Ok(FoundLock {
                record,
                lock,
                is_new: false,
            })
        }
        OwnershipLockAttempt::Missing => match policy.expected {
            ExpectedDirectory::Existing(_) => Err(OwnershipError::NoLockFile {
                path: directory.to_owned(),
            }),
            _ => create_lock(&path),
        },
        OwnershipLockAttempt::Held(pid) => Err(OwnershipError::InUse {
            path: directory.to_owned(),
            owner: pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string()),
        }),
    }
}

fn create_lock(path: &Path) -> Result<FoundLock, OwnershipError> {
    Ok(FoundLock {
        lock: OwnershipLock::create(path)?,
        record: None,
        is_new: true,
    })
}

fn check_id(
    directory: &Path,
    expected: ExpectedDirectory,
    record: Option<&LockRecord>,
) -> Result<(), OwnershipError> {
    match (expected, record) {
        (ExpectedDirectory::Existing(id), Some(record)) if record.directory_id != id => {
            Err(OwnershipError::OtherDirectory {
                path: directory.to_owned(),
                id: record.directory_id,
            })
        }
        _ => Ok(()),
    }
}

/// Creates the id and the nonce of a new lock file.
fn new_ids(expected: ExpectedDirectory) -> io::Result<(DirectoryId, LockNonce)> {
    let id = match expected {
        ExpectedDirectory::Any => DirectoryId::random()?,
        ExpectedDirectory::New(id) | ExpectedDirectory::Existing(id) => id,
    };
    Ok((id, LockNonce::random()?))
}

/// Checks each mark file that may belong to `directory`: in the given directories, and in the
/// directory that the link file names.
fn check_unused(
    mark_file_directories: &[&Path],
    directory: &Path,
    policy: &OwnershipPolicy<'_>,
    record: Option<&LockRecord>,
    now_ms: i64,
) -> Result<(), OwnershipError> {
    let linked = mark_file::read_link(&Directory::new(directory))?;
    let linked = linked.as_deref().map(Path::new);
    for directory in mark_file_directories.iter().copied().chain(linked) {
        let Some(state) = mark_file::read(&Directory::new(directory))? else {
            continue;
        };
        let is_dead = is_of_dead_owner(&state, record) || (policy.is_dead)(&state);
        if state.is_active(now_ms) && !is_dead {
            return Err(OwnershipError::Active {
                path: directory.join(MARK_FILE),
                pid: state.owner.pid,
                age_ms: now_ms.saturating_sub(state.activity_timestamp_ms),
            });
        }
    }
    Ok(())
}

/// Describes the age of a heartbeat, and what the user can do.
fn age_and_advice(age_ms: i64) -> String {
    match age_ms {
        0.. => format!(
            "{age_ms} ms ago: stop that archive, or wait until {ACTIVITY_TIMEOUT_MS} ms after its end"
        ),
        _ => format!(
            "{} ms in the future, so the clock of this machine was set back: correct the clock. If no archive runs in the directory, remove the mark file, which has no recorded data",
            age_ms.saturating_neg()
        ),
    }
}

/// Returns whether the mark file was written by the last owner in the lock file. That owner is
/// dead, because this process holds the lock.
fn is_of_dead_owner(state: &MarkFileState, record: Option<&LockRecord>) -> bool {
    record.is_some_and(|record| record.owner == owner_of(&state.owner))
}

fn owner_of(owner: &Owner) -> LockOwner {
    LockOwner {
        pid: owner.pid,
        start_timestamp_ms: owner.start_timestamp_ms,
    }
}

/// Removes all files and directories in a directory except the lock file.
fn empty(directory: &Path, lock_file: &str) -> Result<(), OwnershipError> {
    let remove_entries = || -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_name() == lock_file {
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
                policy: OwnershipPolicy::SERVER,
                directory: self.path(),
                mark_file_directory,
                is_emptied,
                owner: &Owner::without_server(pid, now_ms, "/dev/shm/aeron".into()),
                error_buffer_length: mark_file::ERROR_BUFFER_LENGTH,
                now_ms,
            })
        }

        /// Writes the mark file of an archive without a lock file. Its last heartbeat is at `NOW_MS`.
        /// If `is_ready` is false, the mark file has version 0.
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
    fn a_directory_can_be_taken_at_once_after_its_owner_has_ended() {
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
    fn the_error_of_a_second_start_has_the_pid_of_the_living_owner() {
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
    fn a_start_is_refused_and_changes_no_file_while_a_foreign_heartbeat_is_recent() {
        let world = World::new();
        world.foreign_mark(true);
        let before = world.names();
        let error = world.take(2, NOW_MS + 9_999).unwrap_err().to_string();
        assert!(
            error.starts_with("active mark file detected: process 4711 wrote "),
            "{error}"
        );
        assert!(error.contains(" 9999 ms ago"), "{error}");
        // A heartbeat in the future may be that of a running archive.
        let error = world.take(2, NOW_MS - 3_600_000).unwrap_err().to_string();
        let expected = " 3600000 ms in the future, so the clock of this machine was set back";
        assert!(error.contains(expected), "{error}");
        assert_eq!(world.names(), before);
        world.take(2, NOW_MS + 10_000).unwrap();
    }

    #[test]
    fn a_foreign_archive_that_used_the_directory_after_our_owner_is_detected() {
        let world = World::new();
        drop(world.take(1, NOW_MS - 60_000).unwrap());
        world.foreign_mark(true);
        assert!(matches!(
            world.take(2, NOW_MS + 5_000),
            Err(OwnershipError::Active { pid: 4711, .. })
        ));
    }

    /// Document 07, section 22: a start that was killed before it was ready.
    #[test]
    fn a_mark_file_of_version_0_blocks_a_start_for_ten_seconds() {
        let world = World::new();
        world.foreign_mark(false);
        assert!(world.take(2, NOW_MS + 5_000).is_err());
        world.take(2, NOW_MS + 10_000).unwrap();
    }

    /// 07-74
    #[test]
    fn the_link_file_exists_only_while_the_mark_file_is_in_another_directory() {
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
    fn an_active_mark_file_in_the_directory_of_the_link_file_blocks_a_start() {
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
    fn maintenance_excludes_archives_and_changes_no_file() {
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
    fn errors_of_the_previous_owner_are_saved() {
        let world = World::new();
        let mut owned = world.take(1, NOW_MS).unwrap();
        owned.record_error(NOW_MS, "disk on fire").unwrap();
        owned.release().unwrap();
        drop(world.take(2, NOW_MS + 1).unwrap());
        let names = world.names();
        let report = names.iter().find(|name| name.ends_with("-error.log"));
        let text = fs::read_to_string(world.path().join(report.unwrap())).unwrap();
        assert!(text.contains("disk on fire"), "{text}");
    }
}
