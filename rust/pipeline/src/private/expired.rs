//! Removes private archives that no query has used for a day.
//!
//! A directory is removed only if its name has 32 hexadecimal digits and it has a lock file that no process holds: such
//! a directory belongs to this project. Of its files, only those with the names of an archive's files are removed.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use aeron_archive::catalog::{CATALOG_FILE, NEW_CATALOG_FILE};
use aeron_archive::index::{INDEX_EXTENSION, NEW_INDEX_EXTENSION};
use aeron_archive::mark_file::MARK_FILE;
use aeron_archive::ownership::{OwnershipLock, OwnershipLockAttempt};
use aeron_archive::segments::{SEGMENT_EXTENSION, SegmentFileName};

use super::notes::RowNotes;
use super::roots;
use super::totals::{NEW_TOTALS_FILE, TOTALS_FILE};
use super::{ARCHIVE_TTL_HOURS, LOCK_FILE, PrivateArchiveId, PrivateError};

/// Removes the unlocked archives in `directory` whose mark file was last written more than [`ARCHIVE_TTL_HOURS`] before
/// `now`. Returns their paths. Skips an archive that cannot be removed. The next query that starts tries again.
pub fn remove_expired(directory: &Path, now: SystemTime) -> Vec<PathBuf> {
    private_archives(directory)
        .filter(|path| remove_if_expired(path, now).unwrap_or(false))
        .collect()
}

/// Returns the private archives in `directory` with a free lock, in the order of their names. A free lock shows that
/// the query has ended. The second value is the size on disk in bytes. Changes nothing.
pub fn ended_archives(directory: &Path) -> Vec<(PathBuf, u64)> {
    let mut ended: Vec<_> = private_archives(directory)
        .filter(|path| matches!(OwnershipLock::look(&path.join(LOCK_FILE)), Ok((None, _))))
        .filter_map(|path| Some((allocated_bytes(&path).ok()?, path)))
        .map(|(bytes, path)| (path, bytes))
        .collect();
    ended.sort();
    ended
}

/// Returns the paths in `directory` that have the name of a private archive; returns no path if the directory cannot be
/// read.
fn private_archives(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            let name = entry.file_name();
            name.to_str().and_then(PrivateArchiveId::parse).is_some()
        })
        .map(|entry| entry.path())
}

fn allocated_bytes(archive: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(archive)? {
        bytes += entry?.metadata()?.blocks() * 512;
    }
    Ok(bytes)
}

fn remove_if_expired(path: &Path, now: SystemTime) -> Result<bool, PrivateError> {
    let found = path
        .symlink_metadata()
        .map_err(|source| PrivateError::io("look at", path, source))?;
    roots::check(path, &found)?;
    // The age is checked before the lock is taken. So the lock of a recent archive stays free for its next owner.
    if !is_expired(path, now) {
        return Ok(false);
    }
    let OwnershipLockAttempt::Acquired(_lock) = OwnershipLock::try_lock(&path.join(LOCK_FILE))?
    else {
        return Ok(false);
    };
    // Another process may have used the archive before this process had the lock.
    if !is_expired(path, now) {
        return Ok(false);
    }
    remove(path).map_err(|source| PrivateError::io("remove", path, source))
}

/// Whether the archive is too old. The age is that of the mark file, or of the lock file if there is no mark file.
fn is_expired(path: &Path, now: SystemTime) -> bool {
    let time_to_live = Duration::from_secs(ARCHIVE_TTL_HOURS as u64 * 3600);
    let modified = |name: &str| {
        path.join(name)
            .symlink_metadata()
            .and_then(|file| file.modified())
    };
    let last = modified(MARK_FILE).or_else(|_| modified(LOCK_FILE));
    last.is_ok_and(|last| now.duration_since(last).is_ok_and(|age| age > time_to_live))
}

/// Removes an archive's files, the lock file last: after a kill, the next attempt can remove the remaining files. Keeps
/// unknown files, and a directory that contains them. Returns whether the directory was removed.
fn remove(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_ours) {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(path.join(LOCK_FILE))?;
    Ok(fs::remove_dir(path).is_ok())
}

fn is_ours(name: &str) -> bool {
    let is_fixed = [
        CATALOG_FILE,
        NEW_CATALOG_FILE,
        MARK_FILE,
        TOTALS_FILE,
        NEW_TOTALS_FILE,
    ]
    .contains(&name);
    let is_error_log = name.starts_with("archive-") && name.ends_with("-error.log");
    let is_segment = SegmentFileName::parse(name).is_some_and(|file| {
        [SEGMENT_EXTENSION, INDEX_EXTENSION, NEW_INDEX_EXTENSION].contains(&file.extension)
    });
    is_fixed || is_error_log || is_segment || RowNotes::parse(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn archive(directory: &Path, name: &str) -> PathBuf {
        let path = directory.join(name);
        fs::create_dir(&path).unwrap();
        for file in [
            "archive.catalog",
            "archive-mark.dat",
            "0-0.rec",
            "0-0.idx",
            "index-0-65536.idx",
            "totals.json",
        ] {
            fs::write(path.join(file), "").unwrap();
        }
        path
    }

    fn private(directory: &Path) -> PathBuf {
        let path = archive(directory, &PrivateArchiveId::random().unwrap().to_string());
        drop(OwnershipLock::create(&path.join(LOCK_FILE)).unwrap());
        path
    }

    /// 08-31
    #[test]
    fn an_archive_is_removed_a_day_after_its_last_write_unless_it_is_locked() {
        let root = tempfile::tempdir().unwrap();
        let old = private(root.path());
        let locked = private(root.path());
        let OwnershipLockAttempt::Acquired(_lock) =
            OwnershipLock::try_lock(&locked.join(LOCK_FILE)).unwrap()
        else {
            panic!("nobody holds it")
        };
        let now = SystemTime::now();
        let ended: Vec<_> = ended_archives(root.path())
            .into_iter()
            .map(|(path, _)| path)
            .collect();
        assert_eq!(ended, std::slice::from_ref(&old));
        assert!(remove_expired(root.path(), now + DAY / 2).is_empty());
        let removed = remove_expired(root.path(), now + DAY * 2);
        assert_eq!(removed, std::slice::from_ref(&old));
        assert!(!old.exists());
        assert_eq!(fs::read_dir(&locked).unwrap().count(), 7);
    }

    /// 08-31
    #[test]
    fn unknown_files_and_archives_that_are_not_private_are_never_removed() {
        let root = tempfile::tempdir().unwrap();
        let real = archive(root.path(), "9f0c000000000000000000000000beef");
        let other_name = archive(root.path(), "aeron-archive");
        drop(OwnershipLock::create(&other_name.join(LOCK_FILE)).unwrap());
        let with_guest = private(root.path());
        fs::write(with_guest.join("notes.txt"), "mine").unwrap();
        let link = root.path().join("9f0c000000000000000000000000cafe");
        std::os::unix::fs::symlink(&with_guest, &link).unwrap();
        fs::write(root.path().join("9f0c000000000000000000000000dead"), "").unwrap();

        let removed = remove_expired(root.path(), SystemTime::now() + DAY * 2);
        assert!(removed.is_empty(), "{removed:?}");
        assert_eq!(fs::read_dir(&real).unwrap().count(), 6);
        assert_eq!(fs::read_dir(&other_name).unwrap().count(), 7);
        assert_eq!(
            fs::read_to_string(with_guest.join("notes.txt")).unwrap(),
            "mine"
        );
        assert!(link.is_symlink());
    }
}
