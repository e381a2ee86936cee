//! The entries of a driver's directory. Only entries that drivers create are deleted, and symbolic links are not
//! followed.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use aeron_memory::directory::{DirectoryEntry, entry_named, is_log_name, log_directories};

use super::marker::Marker;

/// Returns the first foreign entry of the directory or of its directories for log buffers. A foreign entry is an entry
/// that drivers do not create.
///
/// A driver that closes may remove its entries at the same time. An entry that disappears is not foreign.
pub fn find_foreign(dir: &Path) -> io::Result<Option<PathBuf>> {
    let Some(entries) = list(dir)? else {
        return Ok(None);
    };
    for entry in entries {
        let entry = entry?;
        if let Some(foreign) = foreign_in(&entry)? {
            return Ok(Some(foreign));
        }
    }
    Ok(None)
}

fn foreign_in(entry: &DirEntry) -> io::Result<Option<PathBuf>> {
    // The type of the entry itself, not of the target of a symbolic link.
    let kind = entry.file_type()?;
    let path = entry.path();
    let is_drivers = match entry_named(&entry.file_name()) {
        Some(DirectoryEntry::File) => kind.is_file(),
        Some(DirectoryEntry::DriverLock) => kind.is_file() && is_missing_or_ours(&path)?,
        Some(DirectoryEntry::LogDirectory) if kind.is_dir() => return find_foreign_log(&path),
        Some(DirectoryEntry::LogDirectory) | None => false,
    };
    Ok((!is_drivers).then_some(path))
}

fn is_missing_or_ours(lock_file: &Path) -> io::Result<bool> {
    match Marker::read(lock_file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        marker => Ok(marker?.is_some()),
    }
}

/// Returns the entries of a directory; `None` if it does not exist.
fn list(directory: &Path) -> io::Result<Option<fs::ReadDir>> {
    match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        entries => entries.map(Some),
    }
}

fn find_foreign_log(directory: &Path) -> io::Result<Option<PathBuf>> {
    let Some(entries) = list(directory)? else {
        return Ok(None);
    };
    for entry in entries {
        let entry = entry?;
        if !is_log(&entry)? {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

fn is_log(entry: &DirEntry) -> io::Result<bool> {
    Ok(is_log_name(&entry.file_name()) && entry.file_type()?.is_file())
}

/// Removes the entries that drivers create, except the lock file. Other entries stay, and so do the log directories
/// that contain other entries.
pub fn remove_drivers_entries(dir: &Path) -> io::Result<()> {
    for logs in log_directories(dir) {
        remove_logs(&logs)?;
    }
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let is_file = entry.file_type()?.is_file();
        if is_file && entry_named(&entry.file_name()) == Some(DirectoryEntry::File) {
            ignore_missing(fs::remove_file(entry.path()))?;
        }
    }
    Ok(())
}

fn remove_logs(directory: &Path) -> io::Result<()> {
    match directory.symlink_metadata() {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Ok(()),
        Err(error) => return ignore_missing(Err(error)),
    }
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if is_log(&entry)? {
            ignore_missing(fs::remove_file(entry.path()))?;
        }
    }
    remove_if_empty(directory)
}

/// Removes a directory if it is empty.
pub fn remove_if_empty(directory: &Path) -> io::Result<()> {
    match fs::remove_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        result => ignore_missing(result),
    }
}

/// Turns the error for an entry that does not exist into `Ok`.
pub fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
