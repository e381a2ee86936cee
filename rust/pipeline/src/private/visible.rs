//! Reading an archive without owning it: a worker that reads a piece of a live one, and a batch read of a dead one.
//!
//! Nothing is written, recovered or locked.

use std::io;
use std::path::Path;

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::mark_file;
use aeron_archive::recovery;
use aeron_archive::storage::{Directory, Storage};
use aeron_archive::stream::RecordedStream;

use super::PrivateError;
use super::index::{IndexError, indexed_end};
use super::lock::{LOCK_FILE, LockFile, LockRecord};
use crate::machine;
use crate::partition::ArchiveLocation;

/// The archive directory that a partition names, if this process sees the very same one: on the same boot of the same machine,
/// and with the same nonce.
///
/// # Errors
/// [`PrivateError::NotVisible`] names both machines and the path.
pub fn visible(location: &ArchiveLocation) -> Result<Directory, PrivateError> {
    let path = Path::new(&location.path);
    let is_here = machine::boot_id().is_ok_and(|boot_id| boot_id == location.boot_id);
    let is_same = match &location.nonce {
        Some(nonce) => LockRecord::read(path)
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

/// What the lock file of the archive at `path` says, if it is a private one. Refuses an archive that is in use.
///
/// # Errors
/// [`PrivateError::InUse`] when its owner lives, by the lock of a private archive and by the mark file of another; the files are
/// damaged, or the file system refuses.
pub fn check_unused(path: &Path, now_ms: i64) -> Result<Option<LockRecord>, PrivateError> {
    let in_use = |pid: Option<i64>| PrivateError::ReadInUse {
        path: path.to_owned(),
        owner: pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string()),
    };
    if path.join(LOCK_FILE).symlink_metadata().is_ok() {
        return match LockFile::look(path)? {
            (Some(pid), _) => Err(in_use(pid)),
            (None, record) => Ok(record),
        };
    }
    match mark_file::read(&Directory::new(path))? {
        Some(mark) if mark.is_active(now_ms) => Err(in_use(Some(mark.owner.pid))),
        _ => Ok(None),
    }
}

/// Where a recording that exists ends: as its catalog entry says, or as its files do. Changes nothing.
///
/// # Errors
/// The files are damaged or missing, or the file system refuses.
pub fn end_of_recording<S: Storage>(
    storage: &S,
    descriptor: &RecordingDescriptor,
) -> Result<i64, PrivateError> {
    if !descriptor.is_unfinished() {
        return Ok(descriptor.stop_position);
    }
    let stream = RecordedStream::new(&descriptor.into())?;
    let indexed = indexed_end(storage, &stream).map_err(index_error)?;
    let known = indexed.unwrap_or(descriptor.start_position);
    let end = recovery::find_end(storage, &stream, known)?;
    Ok(end.position)
}

fn index_error(source: io::Error) -> PrivateError {
    PrivateError::Index(IndexError::Storage {
        name: "the index".to_owned(),
        source,
    })
}
