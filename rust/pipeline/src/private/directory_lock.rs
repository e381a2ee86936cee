//! [`DirectoryLock`]: ensures one living owner for each private archive, and takes over the archive of a dead owner.
//!
//! For processes of this project, the file lock decides; it is free at once when its owner dies. For all other tools,
//! the mark file follows Aeron's rules exactly: Aeron's own archive and tools see a live directory as active. The
//! holder of the lock may take over the recent mark file of a dead owner that it can identify. Any other recent mark
//! file is watched until it is old.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aeron_agent::clock::EpochClock;
use aeron_archive::mark_file::{self, ACTIVITY_TIMEOUT_MS, MarkFile, MarkFileState};
use aeron_archive::ownership::{OwnershipLock, OwnershipLockAttempt};
use aeron_archive::pause::{self, Point};
use aeron_archive::storage::Directory;

use super::{LOCK_FILE, LockNonce, LockOwner, LockRecord, PrivateArchiveId, PrivateError};
use crate::machine;

/// Maximum wait for the lock: the process of a stopped query may still be closing.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to watch a recent mark file of an unknown owner.
const WATCH_TIME: Duration = Duration::from_millis(ACTIVITY_TIMEOUT_MS as u64);
/// Interval at which the lock or the mark file is checked during a wait.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// The lock of a private archive's directory, held by this process. If it is dropped without
/// [`release`](Self::release), the archive is in the same state as after a kill of its owner: the lock is free.
#[derive(Debug)]
pub struct DirectoryLock {
    // Fields are dropped in this order, so the lock is freed last.
    mark: MarkFile<File>,
    record: LockRecord,
    path: PathBuf,
    _lock: OwnershipLock,
}

/// A request for the lock of an archive's directory, with the functions to wait for it.
pub struct LockRequest<'a> {
    /// Id of the archive.
    pub id: PrivateArchiveId,
    /// Directory of the media driver, for tools that read the mark file.
    pub aeron_directory: &'a str,
    /// Clock for the mark file's times.
    pub clock: &'a dyn EpochClock,
    /// Waits for the given time. An error ends the wait.
    pub pause: &'a mut dyn FnMut(Duration) -> Result<(), PrivateError>,
}

impl DirectoryLock {
    /// Creates and locks the lock file of a new archive in an empty directory.
    ///
    /// # Errors
    /// Another process holds the lock, or a file-system operation failed.
    pub fn create(path: &Path, request: &mut LockRequest<'_>) -> Result<Self, PrivateError> {
        let lock = OwnershipLock::create(&path.join(LOCK_FILE))?;
        let nonce = LockNonce::random()
            .map_err(|source| PrivateError::io("make a nonce for", path, source))?;
        Self::establish(lock, path, nonce, request)
    }

    /// Takes over the archive of a dead owner. Waits up to 5 s for the lock, and 10 s if a kill left a recent mark file
    /// of an unknown owner.
    ///
    /// # Errors
    /// The archive is in use or not private, its files are damaged, a file-system operation failed, or the wait was
    /// ended.
    pub fn acquire(path: &Path, request: &mut LockRequest<'_>) -> Result<Self, PrivateError> {
        let lock = wait_for_lock(path, request)?;
        let record = lock.record()?;
        if let Some(record) = &record
            && record.directory_id != request.id
        {
            return Err(PrivateError::OtherArchive {
                path: path.to_owned(),
                id: record.directory_id,
            });
        }
        let storage = Directory::new(path);
        if let Some(mark) = mark_file::read(&storage)? {
            let dead_owner = record.as_ref().map(|record| record.owner);
            wait_for_mark_file(path, &storage, &mark, dead_owner, request)?;
        }
        let nonce = match &record {
            Some(record) => record.nonce,
            None => LockNonce::random()
                .map_err(|source| PrivateError::io("make a nonce for", path, source))?,
        };
        Self::establish(lock, path, nonce, request)
    }

    /// Writes the mark file, then the lock file. A kill between the two makes the next owner wait once.
    fn establish(
        lock: OwnershipLock,
        path: &Path,
        nonce: LockNonce,
        request: &LockRequest<'_>,
    ) -> Result<Self, PrivateError> {
        let now_ms = request.clock.time_ms();
        let owner = LockOwner {
            pid: i64::from(std::process::id()),
            start_timestamp_ms: now_ms,
        };
        let marked = mark_file::Owner::without_server(
            owner.pid,
            owner.start_timestamp_ms,
            request.aeron_directory.to_owned(),
        );
        let mut mark = MarkFile::take(&Directory::new(path), &marked, now_ms)?;
        mark.ready(now_ms)?;
        pause::at(Point::TAKEN_OVER);
        let boot_id = machine::boot_id()
            .map_err(|source| PrivateError::io("find the machine of", path, source))?;
        let record = LockRecord {
            directory_id: request.id,
            nonce,
            boot_id,
            owner,
        };
        lock.write(&record)?;
        Ok(Self {
            mark,
            record,
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Returns the archive's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the contents of the lock file: the nonce and boot id by which workers identify the archive.
    pub fn record(&self) -> &LockRecord {
        &self.record
    }

    /// Updates the mark file's activity timestamp, once a second. Call it in every duty cycle.
    ///
    /// # Errors
    /// A file-system operation failed.
    pub fn heartbeat(&mut self, now_ms: i64) -> Result<(), PrivateError> {
        Ok(self.mark.heartbeat(now_ms)?)
    }

    /// Writes an error to the mark file's error log, where tools read it.
    ///
    /// # Errors
    /// The error log is full, or a file-system operation failed.
    pub fn record_error(&mut self, now_ms: i64, text: &str) -> Result<(), PrivateError> {
        Ok(self.mark.record_error(now_ms, text)?)
    }

    /// Releases the directory: the mark file shows that its owner has ended, and the lock is free.
    ///
    /// # Errors
    /// A file-system operation failed; the lock is free in that case too.
    pub fn release(self) -> Result<(), PrivateError> {
        Ok(self.mark.close()?)
    }
}

fn wait_for_lock(
    path: &Path,
    request: &mut LockRequest<'_>,
) -> Result<OwnershipLock, PrivateError> {
    let mut waited = Duration::ZERO;
    loop {
        match OwnershipLock::try_lock(&path.join(LOCK_FILE))? {
            OwnershipLockAttempt::Acquired(lock) => return Ok(lock),
            OwnershipLockAttempt::Missing => return Err(without_lock_file(path)),
            OwnershipLockAttempt::Held(pid) if waited >= LOCK_TIMEOUT => {
                return Err(PrivateError::InUse {
                    path: path.to_owned(),
                    owner: pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string()),
                });
            }
            OwnershipLockAttempt::Held(_) => {}
        }
        (request.pause)(LOOK_INTERVAL)?;
        waited += LOOK_INTERVAL;
    }
}

/// Returns the error for a directory without a lock file: the archive is missing, or it is not private.
fn without_lock_file(path: &Path) -> PrivateError {
    let path = path.to_owned();
    match std::fs::read_dir(&path).map(|mut entries| entries.next().is_none()) {
        Ok(false) => PrivateError::NotPrivate { path },
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            PrivateError::io("list", &path, error)
        }
        _ => PrivateError::Missing { path },
    }
}

/// Waits until the mark file shows a dead owner.
fn wait_for_mark_file(
    path: &Path,
    storage: &Directory,
    mark: &MarkFileState,
    dead_owner: Option<LockOwner>,
    request: &mut LockRequest<'_>,
) -> Result<(), PrivateError> {
    let marked = LockOwner {
        pid: mark.owner.pid,
        start_timestamp_ms: mark.owner.start_timestamp_ms,
    };
    let is_unfinished = mark.version.0 == 0;
    if is_unfinished || !mark.is_active(request.clock.time_ms()) || dead_owner == Some(marked) {
        return Ok(());
    }
    let mut watched = Duration::ZERO;
    while watched < WATCH_TIME {
        (request.pause)(LOOK_INTERVAL)?;
        watched += LOOK_INTERVAL;
        let now = mark_file::read(storage)?;
        if now.as_ref().map(|now| now.activity_timestamp_ms) != Some(mark.activity_timestamp_ms) {
            return Err(PrivateError::Foreign {
                path: path.to_owned(),
                pid: now.map_or(marked.pid, |now| now.owner.pid),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use aeron_agent::clock::CachedEpochClock;
    use std::cell::Cell;

    const NOW_MS: i64 = 1_700_000_000_000;

    /// A directory, a clock that advances only in pauses, and an action to run during a pause.
    struct World {
        directory: tempfile::TempDir,
        clock: CachedEpochClock,
        waited: Cell<Duration>,
    }

    fn id() -> PrivateArchiveId {
        PrivateArchiveId::parse("9f0c000000000000000000000000beef").unwrap()
    }

    impl World {
        fn new() -> Self {
            let world = Self {
                directory: tempfile::tempdir().unwrap(),
                clock: CachedEpochClock::default(),
                waited: Cell::default(),
            };
            world.clock.update(NOW_MS);
            world
        }

        fn path(&self) -> &Path {
            self.directory.path()
        }

        fn with<T>(
            &self,
            mut meanwhile: impl FnMut(),
            act: impl FnOnce(&Path, &mut LockRequest<'_>) -> T,
        ) -> T {
            self.waited.set(Duration::ZERO);
            let mut pause = |time: Duration| {
                self.waited.set(self.waited.get() + time);
                self.clock
                    .update(self.clock.time_ms() + time.as_millis() as i64);
                meanwhile();
                Ok(())
            };
            let mut request = LockRequest {
                id: id(),
                aeron_directory: "/dev/shm/aeron",
                clock: &self.clock,
                pause: &mut pause,
            };
            act(self.path(), &mut request)
        }

        fn create(&self) -> DirectoryLock {
            self.with(|| (), DirectoryLock::create).unwrap()
        }

        fn take(&self) -> Result<DirectoryLock, PrivateError> {
            self.with(|| (), DirectoryLock::acquire)
        }
    }

    #[test]
    fn an_archive_that_ended_is_taken_at_once_and_keeps_its_nonce() {
        let world = World::new();
        let first = world.create();
        let nonce = first.record().nonce;
        first.release().unwrap();
        let second = world.take().unwrap();
        assert_eq!(second.record().nonce, nonce);
        assert_eq!(world.waited.get(), Duration::ZERO);
        assert_eq!(second.record().boot_id, machine::boot_id().unwrap());
    }

    /// 08-28, 08-18
    #[test]
    fn a_restart_right_after_a_kill_does_not_wait() {
        let world = World::new();
        drop(world.create());
        world.clock.update(NOW_MS + 1_000);
        let mut second = world.take().unwrap();
        assert_eq!(world.waited.get(), Duration::ZERO);
        second.heartbeat(NOW_MS + 2_500).unwrap();
        let mark = mark_file::read(&Directory::new(world.path()))
            .unwrap()
            .unwrap();
        assert_eq!(mark.activity_timestamp_ms, NOW_MS + 2_500);
        assert_eq!(mark.owner.start_timestamp_ms, NOW_MS + 1_000);
        assert_eq!(mark.owner.pid, i64::from(std::process::id()));
        second.release().unwrap();
        let mark = mark_file::read(&Directory::new(world.path()))
            .unwrap()
            .unwrap();
        assert_eq!(mark.activity_timestamp_ms, -1);
    }

    /// 08-28: after a kill between the mark file and the lock file of a takeover, the next owner waits once.
    #[test]
    fn a_kill_inside_the_takeover_makes_the_next_owner_wait_ten_seconds_once() {
        let world = World::new();
        drop(world.create());
        let killed = mark_file::Owner::without_server(77, NOW_MS + 10, String::new());
        let storage = Directory::new(world.path());
        let mut mark = MarkFile::take(&storage, &killed, NOW_MS + 10).unwrap();
        mark.ready(NOW_MS + 10).unwrap();
        drop(world.take().unwrap());
        assert_eq!(world.waited.get(), WATCH_TIME);
        drop(world.take().unwrap());
        assert_eq!(world.waited.get(), Duration::ZERO);
    }

    /// 08-18
    #[test]
    fn the_mark_file_of_an_owner_that_was_killed_before_it_was_ready_does_not_delay_the_next_owner()
    {
        let world = World::new();
        drop(world.create());
        let killed = mark_file::Owner::without_server(77, NOW_MS, String::new());
        drop(MarkFile::take(&Directory::new(world.path()), &killed, NOW_MS).unwrap());
        world.take().unwrap();
        assert_eq!(world.waited.get(), Duration::ZERO);
    }

    /// 08-28
    #[test]
    fn a_second_query_is_refused_with_the_pid_after_five_seconds() {
        let world = World::new();
        let _first = world.create();
        let error = world.take().unwrap_err().to_string();
        assert_eq!(world.waited.get(), LOCK_TIMEOUT);
        let pid = std::process::id();
        assert!(
            error.contains(&format!(
                "is in use by process {pid}: another query runs on a copy of this checkpoint"
            )),
            "{error}"
        );
    }

    #[test]
    fn an_owner_that_is_still_closing_is_waited_for() {
        let world = World::new();
        let mut first = Some(world.create());
        let looks = Cell::new(0);
        let close = || {
            looks.set(looks.get() + 1);
            if looks.get() == 20 {
                first.take().unwrap().release().unwrap();
            }
        };
        world.with(close, DirectoryLock::acquire).unwrap();
        assert_eq!(world.waited.get(), Duration::from_secs(1));
    }

    /// 08-28
    #[test]
    fn a_living_foreign_archive_on_the_directory_is_refused() {
        let world = World::new();
        drop(world.create());
        let foreign = mark_file::Owner::without_server(4711, NOW_MS + 50, String::new());
        let mut mark =
            MarkFile::take(&Directory::new(world.path()), &foreign, NOW_MS + 50).unwrap();
        mark.ready(NOW_MS + 50).unwrap();
        let beat = || mark.heartbeat(world.clock.time_ms()).unwrap();
        let error = world.with(beat, DirectoryLock::acquire).unwrap_err();
        assert!(
            matches!(error, PrivateError::Foreign { pid: 4711, .. }),
            "{error}"
        );
    }

    /// 08-28, 08-31
    #[test]
    fn a_directory_without_a_lock_file_is_never_opened_for_writing() {
        let world = World::new();
        assert!(matches!(
            world.take().unwrap_err(),
            PrivateError::Missing { .. }
        ));
        std::fs::write(world.path().join("archive.catalog"), "theirs").unwrap();
        let error = world.take().unwrap_err();
        assert!(matches!(error, PrivateError::NotPrivate { .. }), "{error}");
        assert_eq!(std::fs::read_dir(world.path()).unwrap().count(), 1);
    }

    /// 08-27
    #[test]
    fn a_mark_file_of_another_layout_is_refused_by_name() {
        let world = World::new();
        drop(world.create());
        let path = world.path().join("archive-mark.dat");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[10] = 9;
        std::fs::write(&path, bytes).unwrap();
        let error = world.take().unwrap_err().to_string();
        assert!(error.contains("mark file version 9.1.0"), "{error}");
    }

    /// A kill between the two files of a new archive leaves an empty lock file.
    #[test]
    fn an_archive_whose_first_owner_was_killed_at_once_can_be_taken() {
        let world = World::new();
        drop(OwnershipLock::create(&world.path().join(LOCK_FILE)).unwrap());
        drop(world.take().unwrap());
        assert_eq!(world.waited.get(), Duration::ZERO);
    }

    #[test]
    fn the_archive_of_another_checkpoint_is_refused() {
        let world = World::new();
        drop(world.create());
        let path = world.path().to_owned();
        let error = world
            .with(
                || (),
                |_, request| {
                    request.id = PrivateArchiveId::random().unwrap();
                    DirectoryLock::acquire(&path, request)
                },
            )
            .unwrap_err();
        assert!(
            matches!(error, PrivateError::OtherArchive { .. }),
            "{error}"
        );
    }

    #[test]
    fn the_pause_function_can_end_the_wait() {
        let world = World::new();
        let _first = world.create();
        let mut pause = |_| {
            Err(PrivateError::Missing {
                path: "/stopped".into(),
            })
        };
        let mut request = LockRequest {
            id: id(),
            aeron_directory: "",
            clock: &world.clock,
            pause: &mut pause,
        };
        let error = DirectoryLock::acquire(world.path(), &mut request).unwrap_err();
        assert!(error.to_string().contains("/stopped"));
    }
}
