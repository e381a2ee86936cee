//! [`DirectoryLock`]: ensures that each private archive has at most one living owner.
//!
//! [`OwnedDirectory`] takes the directory and never waits. [`DirectoryLock`] waits for the lock, because the process of
//! a stopped query may still be closing. It also watches a recent mark file of an unknown owner until the file is old.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aeron_agent::clock::EpochClock;
use aeron_archive::mark_file::{ACTIVITY_TIMEOUT_MS, ERROR_BUFFER_LENGTH, MarkFileState, Owner};
use aeron_archive::ownership::{
    ExpectedDirectory, OwnedDirectory, OwnershipError, OwnershipPolicy, OwnershipRequest,
};

use super::{LOCK_FILE, LockRecord, PrivateArchiveId, PrivateError};

/// Maximum wait for the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to watch a recent mark file of an unknown owner.
const WATCH_TIME: Duration = Duration::from_millis(ACTIVITY_TIMEOUT_MS as u64);
/// Interval at which the lock or the mark file is checked during a wait.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// The lock of a private archive's directory. This process holds the lock. If the value is dropped without
/// [`release`](Self::release), the lock is free, and the archive is in the same state as after a kill of its owner.
#[derive(Debug)]
pub struct DirectoryLock {
    owned: OwnedDirectory,
    path: PathBuf,
}

/// A request for the lock of an archive's directory, with the functions that the wait needs.
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
    pub fn create(path: &Path, request: &LockRequest<'_>) -> Result<Self, PrivateError> {
        let expected = ExpectedDirectory::New(request.id);
        let taken = Self::take(path, expected, &Wait::default(), request);
        taken.map_err(|error| refusal(path, error))
    }

    /// Takes over the archive of a dead owner. Waits up to 5 s for the lock. Watches a recent mark file of an unknown
    /// owner for 10 s.
    ///
    /// # Errors
    /// The archive is in use or not private, its files are damaged, a file-system operation failed, or the wait was
    /// ended.
    pub fn acquire(path: &Path, request: &mut LockRequest<'_>) -> Result<Self, PrivateError> {
        let expected = ExpectedDirectory::Existing(request.id);
        let mut wait = Wait::default();
        loop {
            match Self::take(path, expected, &wait, request) {
                Ok(lock) => return Ok(lock),
                Err(error) if wait.is_worth_it(&error, request.clock.time_ms()) => {}
                Err(error) => return Err(refusal(path, error)),
            }
            (request.pause)(LOOK_INTERVAL)?;
        }
    }

    fn take(
        path: &Path,
        expected: ExpectedDirectory,
        wait: &Wait,
        request: &LockRequest<'_>,
    ) -> Result<Self, OwnershipError> {
        let now_ms = request.clock.time_ms();
        let pid = i64::from(std::process::id());
        let mut owned = OwnedDirectory::take(&OwnershipRequest {
            policy: OwnershipPolicy {
                lock_file: LOCK_FILE,
                expected,
                is_dead: &|mark| wait.shows_dead(mark),
            },
            directory: path,
            mark_file_directory: path,
            is_emptied: false,
            owner: &Owner::without_server(pid, now_ms, request.aeron_directory.to_owned()),
            error_buffer_length: ERROR_BUFFER_LENGTH,
            now_ms,
        })?;
        owned.ready(now_ms)?;
        Ok(Self {
            owned,
            path: path.to_owned(),
        })
    }

    /// Returns the archive's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the contents of the lock file: the nonce and boot id by which workers identify the archive.
    pub fn record(&self) -> &LockRecord {
        self.owned.record()
    }

    /// Updates the mark file's activity timestamp, once a second. Call it in every duty cycle.
    ///
    /// # Errors
    /// A file-system operation failed.
    pub fn heartbeat(&mut self, now_ms: i64) -> Result<(), PrivateError> {
        let updated = self.owned.heartbeat(now_ms);
        updated.map_err(|error| refusal(&self.path, error))
    }

    /// Writes an error to the mark file's error log, from which Aeron's tools read it.
    ///
    /// # Errors
    /// The error log is full, or a file-system operation failed.
    pub fn record_error(&mut self, now_ms: i64, text: &str) -> Result<(), PrivateError> {
        let recorded = self.owned.record_error(now_ms, text);
        recorded.map_err(|error| refusal(&self.path, error))
    }

    /// Releases the directory: the mark file shows that its owner has ended, and the lock is free.
    ///
    /// # Errors
    /// A file-system operation failed; the lock is free in that case too.
    pub fn release(self) -> Result<(), PrivateError> {
        let released = self.owned.release();
        released.map_err(|error| refusal(&self.path, error))
    }
}

/// State of the wait for a directory.
#[derive(Default)]
struct Wait {
    /// Time for which another process held the lock.
    held: Duration,
    /// Last heartbeat of an unknown owner, in epoch milliseconds, and the time for which it did not change.
    watched: Option<(i64, Duration)>,
}

impl Wait {
    /// Returns whether to try again after [`LOOK_INTERVAL`], because the next attempt may succeed.
    fn is_worth_it(&mut self, error: &OwnershipError, now_ms: i64) -> bool {
        match error {
            OwnershipError::InUse { .. } => {
                let is_early = self.held < LOCK_TIMEOUT;
                self.held += LOOK_INTERVAL;
                is_early
            }
            OwnershipError::Active { age_ms, .. } => self.watch(now_ms.saturating_sub(*age_ms)),
            _ => false,
        }
    }

    /// Returns whether the heartbeat of the unknown owner is still the first one that was seen. If so, the owner may be
    /// dead.
    fn watch(&mut self, heartbeat_ms: i64) -> bool {
        let (watched_ms, time) = self.watched.unwrap_or((heartbeat_ms, Duration::ZERO));
        self.watched = Some((watched_ms, time + LOOK_INTERVAL));
        watched_ms == heartbeat_ms
    }

    /// Whether the unknown owner of a recent mark file is dead: it was killed before it was ready, or its heartbeat has
    /// not changed.
    fn shows_dead(&self, mark: &MarkFileState) -> bool {
        let is_old =
            |(heartbeat_ms, time)| heartbeat_ms == mark.activity_timestamp_ms && time >= WATCH_TIME;
        mark.version.0 == 0 || self.watched.is_some_and(is_old)
    }
}

/// Returns the reason why the archive at `path` cannot be used.
fn refusal(path: &Path, error: OwnershipError) -> PrivateError {
    match error {
        OwnershipError::InUse { path, owner } => PrivateError::InUse { path, owner },
        OwnershipError::Active { pid, .. } => PrivateError::Foreign {
            path: path.to_owned(),
            pid,
        },
        OwnershipError::NoLockFile { path } => without_lock_file(path),
        OwnershipError::OtherDirectory { path, id } => PrivateError::OtherArchive { path, id },
        OwnershipError::Lock(error) => error.into(),
        OwnershipError::MarkFile(error) => error.into(),
        OwnershipError::Io {
            doing,
            path,
            source,
        } => PrivateError::Io {
            doing,
            path,
            source,
        },
    }
}

/// Returns the error for a directory without a lock file: the archive is missing, or it is not private.
fn without_lock_file(path: PathBuf) -> PrivateError {
    match std::fs::read_dir(&path).map(|mut entries| entries.next().is_none()) {
        Ok(false) => PrivateError::NotPrivate { path },
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            PrivateError::io("list", &path, error)
        }
        _ => PrivateError::Missing { path },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine;
    use aeron_agent::clock::CachedEpochClock;
    use aeron_archive::mark_file::{self, MarkFile};
    use aeron_archive::ownership::OwnershipLock;
    use aeron_archive::storage::Directory;
    use std::cell::Cell;

    const NOW_MS: i64 = 1_700_000_000_000;

    /// A directory, a clock that advances only in pauses, and the total time of the pauses in the last call.
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
            self.with(|| (), |path, request| DirectoryLock::create(path, request))
                .unwrap()
        }

        fn take(&self) -> Result<DirectoryLock, PrivateError> {
            self.with(|| (), DirectoryLock::acquire)
        }
    }

    #[test]
    fn an_archive_with_an_ended_owner_is_taken_at_once_and_keeps_its_nonce() {
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

    /// 08-28: if an earlier version was killed during a takeover, it left such a mark file.
    #[test]
    fn the_recent_mark_file_of_an_unknown_owner_is_watched_for_ten_seconds_once() {
        let world = World::new();
        drop(world.create());
        let killed = Owner::without_server(77, NOW_MS + 10, String::new());
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
        let killed = Owner::without_server(77, NOW_MS, String::new());
        drop(MarkFile::take(&Directory::new(world.path()), &killed, NOW_MS).unwrap());
        world.take().unwrap();
        assert_eq!(world.waited.get(), Duration::ZERO);
    }

    /// 08-28
    #[test]
    fn a_second_query_is_refused_after_five_seconds_with_the_pid_of_the_owner() {
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
    fn the_next_owner_waits_for_an_owner_that_is_closing() {
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
    fn a_directory_with_the_living_archive_of_another_program_is_refused() {
        let world = World::new();
        drop(world.create());
        let foreign = Owner::without_server(4711, NOW_MS + 50, String::new());
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
    fn a_mark_file_of_another_version_is_refused_with_the_version() {
        let world = World::new();
        drop(world.create());
        let path = world.path().join("archive-mark.dat");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[10] = 9;
        std::fs::write(&path, bytes).unwrap();
        let error = world.take().unwrap_err().to_string();
        assert!(error.contains("mark file version 9.1.0"), "{error}");
    }

    /// A kill between the creation of the lock file and that of the mark file leaves an empty lock file.
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
