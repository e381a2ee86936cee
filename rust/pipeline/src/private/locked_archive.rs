//! Opens the private archive that an offset names: finds or creates, locks and recovers the archive. Also removes old
//! archives from the roots.

use std::time::SystemTime;

use aeron_archive::storage::Directory;

use super::directory_lock::{DirectoryLock, LockRequest};
use super::expired::remove_expired;
use super::open::{KnownRecording, OpenReport};
use super::roots::{ArchiveRoots, make_archive};
use super::{PrivateArchive, PrivateError};

/// A private archive that this process owns, ready to record.
#[derive(Debug)]
pub struct LockedArchive {
    /// The archive's lock and mark file.
    pub lock: DirectoryLock,
    /// The archive's recordings.
    pub archive: PrivateArchive<Directory>,
    /// Losses that the recovery found, and lines for the application's log about the opening.
    pub report: OpenReport,
}

impl LockedArchive {
    /// Opens the archive with the id `request.id` in any of `roots`. If the archive does not exist and `known` is
    /// empty, creates the archive.
    ///
    /// # Errors
    /// [`PrivateError::Missing`] if the archive is missing and `known` is not empty. Other errors: the archive is in
    /// use or damaged, a root is refused, or a file-system operation failed.
    pub fn open(
        roots: &ArchiveRoots,
        known: &[KnownRecording],
        max_retained_bytes: u64,
        request: &mut LockRequest<'_>,
    ) -> Result<Self, PrivateError> {
        let mut lines = Vec::new();
        let found = roots.find(request.id)?;
        let taken = match &found {
            Some(path) => DirectoryLock::acquire(path, request),
            None => Err(PrivateError::Missing {
                path: roots.preferred_path(request.id),
            }),
        };
        let lock = match taken {
            // The archive was never created, or its creator was killed while the directory was empty.
            Err(PrivateError::Missing { .. }) if known.is_empty() => {
                let path = match found {
                    Some(path) => path,
                    None => {
                        let selected = roots.select(max_retained_bytes)?;
                        lines.push(selected.line);
                        make_archive(&selected.directory, request.id)?
                    }
                };
                DirectoryLock::create(&path, request)?
            }
            taken => taken?,
        };
        let storage = Directory::new(lock.path());
        let now_ms = request.clock.time_ms();
        match PrivateArchive::open(storage, known, max_retained_bytes, now_ms) {
            Ok((archive, mut report)) => {
                lines.append(&mut report.lines);
                let expired = roots
                    .existing()
                    .flat_map(|directory| remove_expired(directory, SystemTime::now()));
                lines.extend(expired.map(|path| {
                    format!(
                        "removed {}, the private archive of an old query",
                        path.display()
                    )
                }));
                report.lines = lines;
                Ok(Self {
                    lock,
                    archive,
                    report,
                })
            }
            Err(error) => {
                // The first error is returned because it is more useful. If the release fails, the next owner takes
                // over the archive in the same way as after a kill.
                let _ = lock.release();
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private::PrivateArchiveId;
    use aeron_agent::clock::SystemEpochClock;
    use std::fs::{self, FileTimes};
    use std::path::Path;
    use std::time::Duration;

    const BOUND: u64 = 32 << 20;

    fn open(
        directory: &Path,
        id: PrivateArchiveId,
        known: &[KnownRecording],
    ) -> Result<LockedArchive, PrivateError> {
        let roots = ArchiveRoots::new(Some(directory)).unwrap();
        let mut pause = |_| panic!("no wait is necessary");
        let mut request = LockRequest {
            id,
            aeron_directory: "/dev/shm/aeron",
            clock: &SystemEpochClock,
            pause: &mut pause,
        };
        LockedArchive::open(&roots, known, BOUND, &mut request)
    }

    fn known() -> KnownRecording {
        KnownRecording {
            recording_id: 0,
            committed: 0,
            told: 64,
        }
    }

    #[test]
    fn an_archive_is_created_once_and_found_by_later_opens() {
        let root = tempfile::tempdir().unwrap();
        let id = PrivateArchiveId::random().unwrap();
        let first = open(root.path(), id, &[]).unwrap();
        assert_eq!(first.lock.path(), root.path().join(id.to_string()));
        assert!(first.report.lines[0].contains(&root.path().display().to_string()));
        let nonce = first.lock.record().nonce;
        // Simulates a kill.
        drop(first);
        let second = open(root.path(), id, &[]).unwrap();
        assert_eq!(second.lock.record().nonce, nonce);
        assert_eq!(second.report.lines, [""; 0]);
    }

    #[test]
    fn a_missing_archive_is_created_again_only_if_no_batch_has_used_it() {
        let root = tempfile::tempdir().unwrap();
        let id = PrivateArchiveId::random().unwrap();
        let error = open(root.path(), id, &[known()]).unwrap_err();
        assert!(matches!(error, PrivateError::Missing { .. }), "{error}");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    /// The creator was killed after it had created the directory, the lock file or the mark file.
    #[test]
    fn an_archive_whose_creation_was_killed_is_completed() {
        let root = tempfile::tempdir().unwrap();
        for files in [
            &[][..],
            &["private.lock"],
            &["private.lock", "archive-mark.dat"],
        ] {
            let id = PrivateArchiveId::random().unwrap();
            let path = root.path().join(id.to_string());
            fs::create_dir(&path).unwrap();
            for file in files {
                fs::write(path.join(file), "").unwrap();
            }
            let owned = open(root.path(), id, &[]).unwrap();
            assert_eq!(owned.archive.recordings().count(), 0);
        }
    }

    /// 08-31
    #[test]
    fn opening_an_archive_removes_old_archives_of_the_roots() {
        let root = tempfile::tempdir().unwrap();
        let old = open(root.path(), PrivateArchiveId::random().unwrap(), &[]).unwrap();
        let path = old.lock.path().to_owned();
        old.lock.release().unwrap();
        let mark = fs::File::options()
            .write(true)
            .open(path.join("archive-mark.dat"))
            .unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(25 * 3600);
        mark.set_times(FileTimes::new().set_modified(long_ago))
            .unwrap();
        let new = open(root.path(), PrivateArchiveId::random().unwrap(), &[]).unwrap();
        assert!(!path.exists());
        assert!(
            new.report
                .lines
                .iter()
                .any(|line| line.contains("old query"))
        );
    }

    #[test]
    fn an_archive_that_cannot_be_opened_is_unlocked() {
        let root = tempfile::tempdir().unwrap();
        let id = PrivateArchiveId::random().unwrap();
        let path = open(root.path(), id, &[]).unwrap().lock.path().to_owned();
        let catalog = path.join("archive.catalog");
        let bytes = fs::read(&catalog).unwrap();
        fs::write(&catalog, b"no catalog").unwrap();
        let error = open(root.path(), id, &[]).unwrap_err();
        assert!(error.to_string().contains("catalog"), "{error}");
        fs::write(&catalog, bytes).unwrap();
        open(root.path(), id, &[]).unwrap();
    }
}
