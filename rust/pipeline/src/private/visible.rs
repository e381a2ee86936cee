//! Reads an archive without owning it. A worker reads a piece of a live archive this way, and a batch query reads an
//! archive whose owner has ended.
//!
//! The functions write, recover and lock nothing.

use std::io;
use std::path::Path;

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::client::RecordingPositionKey;
use aeron_archive::index::{IndexError, indexed_end, written_end};
use aeron_archive::mark_file::{self, Owner};
use aeron_archive::ownership::OwnershipLock;
use aeron_archive::recovery;
use aeron_archive::storage::{Directory, Storage};
use aeron_archive::stream::RecordedStream;
use aeron_memory::cnc::{Cnc, Reader};
use aeron_memory::directory::cnc_file;
use aeron_memory::mapped::MappedFile;

use super::open::recorded_position;
use super::{LOCK_FILE, LockRecord, PrivateError};
use crate::machine;
use crate::partition::ArchiveLocation;

/// Returns the archive directory that a partition names if this process sees the same directory. The boot id of the
/// machine and the nonce must match.
///
/// # Errors
/// [`PrivateError::NotVisible`] names both machines and the path.
pub fn visible(location: &ArchiveLocation) -> Result<Directory, PrivateError> {
    let path = Path::new(&location.path);
    let is_here = machine::boot_id().is_ok_and(|boot_id| boot_id == location.boot_id);
    let is_same = match &location.nonce {
        Some(nonce) => LockRecord::read(&path.join(LOCK_FILE))
            .ok()
            .flatten()
            .is_some_and(|record| record.nonce.to_string() == *nonce),
        None => path.is_dir(),
    };
    if is_here && is_same {
        return Ok(Directory::new(path));
    }
    Err(PrivateError::NotVisible {
        executor: machine::host_name(),
        path: location.path.clone(),
        host: location.host.clone(),
    })
}

/// The process that may write an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArchiveOwner {
    /// No living process owns the archive. The value is the contents of the lock file, if the archive is private.
    Nobody(Option<LockRecord>),
    /// A living query owns the private archive. Its process id is `None` if the lock file does not show it.
    Query(Option<i64>),
    /// The mark file shows a living archive server.
    Server(Owner),
}

impl ArchiveOwner {
    /// Reads the lock file of the archive at `path` if the archive is private, and its mark file otherwise.
    ///
    /// # Errors
    /// The files are damaged, or a file-system operation failed.
    pub fn of(path: &Path, now_ms: i64) -> Result<Self, PrivateError> {
        let lock_file = path.join(LOCK_FILE);
        if lock_file.symlink_metadata().is_ok() {
            return Ok(match OwnershipLock::look(&lock_file)? {
                (Some(pid), _) => Self::Query(pid),
                (None, record) => Self::Nobody(record),
            });
        }
        let archive = Directory::new(path);
        // An archive server may keep its mark file in another directory.
        let marked = mark_file::read_link(&archive)?.map_or(archive, Directory::new);
        Ok(match mark_file::read(&marked)? {
            Some(mark) if mark.is_active(now_ms) => Self::Server(mark.owner),
            _ => Self::Nobody(None),
        })
    }
}

/// Reads the lock file of the archive at `path`, if the archive is private. Refuses an archive that is in use.
///
/// # Errors
/// [`PrivateError::ReadInUse`] if the archive's owner is alive. In a private archive the lock shows whether the owner
/// is alive, in any other archive the mark file. Other errors: the files are damaged, or a file-system operation
/// failed.
pub fn check_unused(path: &Path, now_ms: i64) -> Result<Option<LockRecord>, PrivateError> {
    let pid = match ArchiveOwner::of(path, now_ms)? {
        ArchiveOwner::Nobody(lock) => return Ok(lock),
        ArchiveOwner::Query(pid) => pid,
        ArchiveOwner::Server(owner) => Some(owner.pid),
    };
    Err(PrivateError::ReadInUse {
        path: path.to_owned(),
        owner: pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string()),
    })
}

/// Returns the end of a recording: the stop position of its catalog entry. If the entry has no stop position, returns
/// the end that the recording's files show. Changes nothing.
///
/// # Errors
/// The files are damaged or missing, or a file-system operation failed.
pub fn end_of_recording<S: Storage>(
    storage: &S,
    descriptor: &RecordingDescriptor,
) -> Result<i64, PrivateError> {
    if !descriptor.is_unfinished() {
        return Ok(descriptor.stop_position);
    }
    let stream = RecordedStream::new(&descriptor.into())?;
    let known = recorded_position(storage, &stream, descriptor.start_position)?;
    let end = recovery::find_end(storage, &stream, known)?;
    Ok(end.position)
}

/// Returns the position up to which an active recording can be read while its owner writes it. Returns `None` if no
/// file and no counter shows the position.
///
/// # Errors
/// The files are damaged, or a file-system operation failed.
pub fn end_of_active<S: Storage>(
    storage: &S,
    descriptor: &RecordingDescriptor,
    owner: &ArchiveOwner,
) -> Result<Option<i64>, PrivateError> {
    let stream = RecordedStream::of_recording(descriptor)?;
    match owner {
        ArchiveOwner::Nobody(_) => Ok(None),
        // In a private archive, the index has an entry for each block before the block is published.
        ArchiveOwner::Query(_) => indexed_end(storage, &stream).map_err(index_error),
        ArchiveOwner::Server(server) => match counted_position(server, descriptor.recording_id) {
            Some(position) => Ok(Some(position.max(descriptor.start_position))),
            None => written_end(storage, descriptor, &stream).map_err(index_error),
        },
    }
}

/// Returns the recorded position from the archive server's counter in the CnC file of its driver. Returns `None` if
/// this process cannot read the file or the recording has just stopped.
fn counted_position(server: &Owner, recording_id: i64) -> Option<i64> {
    let path = cnc_file(Path::new(&server.aeron_directory));
    let file = MappedFile::open_private(&path).ok()?;
    let cnc = Cnc::open(file.buffer().clone(), Reader::Tool).ok()?;
    let counters = cnc.counters();
    let archive_id = Some(server.archive_id);
    let id = RecordingPositionKey::find_by_recording(counters, recording_id, archive_id)?;
    let position = counters.value(id)?;
    // The driver may have reused the counter for another recording before the value was read.
    RecordingPositionKey::is_active(counters, id, recording_id).then_some(position)
}

fn index_error(source: io::Error) -> PrivateError {
    PrivateError::Index(IndexError::Storage {
        name: "the index".to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private::{DirectoryLock, LockNonce, LockRequest, PrivateArchiveId};
    use aeron_agent::clock::SystemEpochClock;
    use aeron_archive::mark_file::{MarkFile, Owner};

    const NOW_MS: i64 = 1_700_000_000_000;

    fn own(path: &Path) -> DirectoryLock {
        let request = LockRequest {
            id: PrivateArchiveId::random().unwrap(),
            aeron_directory: "",
            clock: &SystemEpochClock,
            pause: &mut |_| Ok(()),
        };
        DirectoryLock::create(path, &request).unwrap()
    }

    /// 08-54
    #[test]
    fn a_worker_with_another_boot_id_path_or_nonce_gets_an_error_with_both_hosts_and_the_path() {
        let directory = tempfile::tempdir().unwrap();
        let lock = own(directory.path());
        let here = ArchiveLocation {
            path: directory.path().display().to_string(),
            nonce: Some(lock.record().nonce.to_string()),
            boot_id: lock.record().boot_id.clone(),
            host: "planner".to_owned(),
        };
        assert_eq!(visible(&here).unwrap().path(), directory.path());
        let mut others = vec![here.clone(); 3];
        others[0].boot_id = "another".to_owned();
        others[1].path += "-elsewhere";
        others[2].nonce = Some(LockNonce::random().unwrap().to_string());
        for other in others {
            let error = visible(&other).unwrap_err().to_string();
            let expected = format!(
                "this executor (host {}) cannot see the private archive {} on host planner: run executors on the Spark driver's machine; workers on other machines read a running archive, by archive.controlChannel",
                machine::host_name(),
                other.path
            );
            assert_eq!(error, expected);
        }
    }

    /// 08-58
    #[test]
    fn only_an_archive_without_a_living_owner_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let lock = own(path);
        let record = lock.record().clone();
        let error = check_unused(path, NOW_MS).unwrap_err().to_string();
        assert!(
            error.contains(&format!("in use by process {}", std::process::id())),
            "{error}"
        );
        drop(lock);
        assert_eq!(check_unused(path, NOW_MS).unwrap(), Some(record));
    }

    /// 08-58
    #[test]
    fn without_a_lock_file_the_mark_file_shows_whether_the_owner_is_alive() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert_eq!(check_unused(path, NOW_MS).unwrap(), None);
        let owner = Owner::without_server(4711, NOW_MS, String::new());
        let mut mark = MarkFile::take(&Directory::new(path), &owner, NOW_MS).unwrap();
        mark.ready(NOW_MS).unwrap();
        let error = check_unused(path, NOW_MS + 9_999).unwrap_err().to_string();
        assert!(error.contains("in use by process 4711"), "{error}");
        assert_eq!(check_unused(path, NOW_MS + 10_000).unwrap(), None);
        mark.close().unwrap();
        assert_eq!(check_unused(path, NOW_MS).unwrap(), None);
    }

    /// 08-58
    #[test]
    fn a_mark_file_in_another_directory_shows_whether_the_owner_is_alive() {
        let (archive, marks) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let owner = Owner::without_server(4711, NOW_MS, String::new());
        let _mark = MarkFile::take(&Directory::new(marks.path()), &owner, NOW_MS).unwrap();
        let link = archive.path().join(mark_file::LINK_FILE);
        std::fs::write(link, marks.path().to_str().unwrap()).unwrap();
        let error = check_unused(archive.path(), NOW_MS)
            .unwrap_err()
            .to_string();
        assert!(error.contains("in use by process 4711"), "{error}");
    }
}
