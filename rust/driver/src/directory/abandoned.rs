//! Finds and removes directories of embedded drivers that were killed.
//!
//! The lock decides whether a driver is active. Without a lock file, the heartbeat decides. A process id cannot decide,
//! because it has no meaning in another container that shares the file system.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use aeron_agent::{EpochClock, SystemEpochClock};
use aeron_memory::cnc::{CncFile, Reader};
use aeron_memory::directory::{cnc_file, driver_lock_file};
use aeron_memory::lock_file::{LockAttempt, LockFile};

use super::entries;
use super::marker::Marker;

/// Aeron's default driver timeout: a driver with an older heartbeat is assumed to be dead.
const DRIVER_TIMEOUT_MS: i64 = 10_000;

/// A directory without an active driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftDirectory {
    /// Path of the directory.
    pub path: PathBuf,
    /// Bytes that the files of the directory use on disk.
    pub bytes: u64,
    /// Whether the next embedded driver removes the directory. It does so if an embedded driver of this implementation
    /// created the directory, according to the lock file, and if the directory contains only files of a driver.
    pub is_removed_next: bool,
}

/// Removes this user's directories `<default>-...` that belong to killed embedded drivers. Returns the removed
/// directories.
///
/// The lock file of such a directory has the marker of an embedded driver, and no process holds the lock. A directory
/// with an entry that drivers do not create stays. A directory that cannot be removed is skipped: the next driver tries
/// again.
pub fn remove_abandoned(default: &Path) -> Vec<PathBuf> {
    candidates(default)
        .into_iter()
        .filter(|path| remove_if_abandoned(path).unwrap_or(false))
        .collect()
}

fn remove_if_abandoned(path: &Path) -> io::Result<bool> {
    let LockAttempt::Acquired(lock) = LockFile::try_lock(&driver_lock_file(path))? else {
        return Ok(false);
    };
    let is_embedded = Marker::read_file(lock.file())? == Some(Marker::Embedded);
    if !is_embedded || entries::find_foreign(path)?.is_some() {
        return Ok(false);
    }
    super::remove(path)?;
    Ok(!path.exists())
}

/// Returns this user's directories `<default>-...` that a driver left and no active driver uses, sorted by name.
/// Changes nothing.
pub fn left_directories(default: &Path) -> Vec<LeftDirectory> {
    let mut left: Vec<_> = candidates(default)
        .into_iter()
        .filter_map(|path| look_at(path).ok().flatten())
        .collect();
    left.sort_by(|a, b| a.path.cmp(&b.path));
    left
}

fn look_at(path: PathBuf) -> io::Result<Option<LeftDirectory>> {
    let is_embedded = match LockFile::look(&driver_lock_file(&path))? {
        Some((true, _)) => return Ok(None),
        Some((false, file)) => Marker::read_file(&file)? == Some(Marker::Embedded),
        None if has_live_driver(&path) => return Ok(None),
        None => false,
    };
    if !is_embedded && !cnc_file(&path).is_file() && !is_bare(&path)? {
        return Ok(None);
    }
    let is_removed_next = is_embedded && entries::find_foreign(&path)?.is_none();
    let bytes = allocated_bytes(&path)?;
    Ok(Some(LeftDirectory {
        path,
        bytes,
        is_removed_next,
    }))
}

/// Returns whether the directory is empty or only contains an empty lock file.
///
/// A driver that is killed before it writes its marker leaves such a directory. Without a marker, the
/// directory may belong to another program, so no driver removes it.
fn is_bare(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let lock_file = driver_lock_file(path);
        if entry?.path() != lock_file || Marker::read(&lock_file)? != Some(Marker::Empty) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether the heartbeat shows an active driver. Used for drivers of another implementation, which have no lock
/// file.
fn has_live_driver(path: &Path) -> bool {
    CncFile::map(&cnc_file(path), Reader::Tool).is_ok_and(|cnc| {
        cnc.is_ok_and(|cnc| cnc.is_active(SystemEpochClock.time_ms(), DRIVER_TIMEOUT_MS))
    })
}

fn allocated_bytes(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let found = entry?;
        let metadata = found.metadata()?;
        bytes += match metadata.is_dir() {
            true => allocated_bytes(&found.path())?,
            false => metadata.blocks() * 512,
        };
    }
    Ok(bytes)
}

/// Returns this user's directories beside `default` with names that begin with the name of `default` and a hyphen.
fn candidates(default: &Path) -> Vec<PathBuf> {
    let (Some(parent), Some(name)) = (default.parent(), default.file_name()) else {
        return Vec::new();
    };
    let mut prefix = OsString::from(name);
    prefix.push("-");
    let user_id = rustix::process::geteuid().as_raw();
    let Ok(entries) = fs::read_dir(parent) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let is_named_so = name
                .as_encoded_bytes()
                .starts_with(prefix.as_encoded_bytes());
            // Uses the metadata of the entry itself: a symbolic link is not a directory.
            let is_ours = entry
                .metadata()
                .is_ok_and(|found| found.is_dir() && found.uid() == user_id);
            is_named_so && is_ours
        })
        .map(|entry| entry.path())
        .collect()
}
