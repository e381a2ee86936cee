//! [`DriverDirectory`]: locks a directory for one driver, and releases the lock when the driver closes.
//!
//! A driver of this implementation holds a lock file in its directory until it ends. The directory of a killed driver
//! is therefore free at once, and the directory of an active driver is never deleted. Other implementations, such as
//! the C driver, have no lock file; their CnC file shows whether they are active. Only files that drivers create are
//! deleted; a directory with any other entry is refused.

mod abandoned;
mod entries;
mod liveness;
mod marker;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aeron_agent::console;
use aeron_memory::cnc::CncFile;
use aeron_memory::directory::{cnc_file, create_directories, driver_lock_file};
use aeron_memory::lock_file::{LockAttempt, LockFile};

pub use abandoned::{LeftDirectory, left_directories, remove_abandoned};
use marker::Marker;

use crate::config::Context;
use crate::start_error::StartError;

/// Maximum wait for a lock that a tool may hold while it reads the directory.
const LOOK_TIME: Duration = Duration::from_millis(50);
/// Time during which the creation of the directory and its lock file is retried while other drivers start and close in
/// the same directory. [`LOOK_TIME`] would be too short, because a process on a busy machine may pause for longer.
const CREATION_TIME: Duration = Duration::from_secs(5);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A directory that one driver of this process has locked. Dropping the value closes the directory.
#[derive(Debug)]
pub struct DriverDirectory {
    path: PathBuf,
    /// `None` once the directory is closed.
    lock: Option<LockFile>,
    is_removed_on_close: bool,
}

impl DriverDirectory {
    /// Locks the directory for a driver, removes old files, and creates the directories for log buffers.
    ///
    /// # Errors
    /// A driver is active in the directory, the directory contains a foreign entry, or the file system reports an
    /// error.
    pub fn take(context: &Context) -> Result<Self, StartError> {
        let dir = &context.dir;
        check_entries(context)?;
        let existing = existing_lock(context)?;
        // If an earlier driver of this implementation left its lock file, the free lock shows that the earlier driver
        // is dead. Otherwise, the CnC file decides. It is checked before the new driver writes a file.
        let was_ours = existing.is_some();
        let cnc = liveness::find_cnc(context, was_ours)?;
        if let Some(cnc) = &cnc {
            check_cnc(context, cnc, was_ours)?;
        }
        let lock = match existing {
            Some(lock) => lock,
            None => create_lock(context)?,
        };
        let directory = Self {
            path: dir.clone(),
            lock: Some(lock),
            is_removed_on_close: context.dir_delete_on_shutdown,
        };
        directory.make_ready(context)?;
        Ok(directory)
    }

    fn make_ready(&self, context: &Context) -> Result<(), StartError> {
        let lock = self.lock.as_ref().expect("the directory was just taken");
        lock.give_up_in_forked_children();
        let marker = match context.is_dir_private {
            true => Marker::Embedded,
            false => Marker::Named,
        };
        let dir = &self.path;
        marker
            .write(lock.file())
            .map_err(|error| StartError::io(&error, "failed to write the lock file of", dir))?;
        entries::remove_drivers_entries(dir)
            .map_err(|error| StartError::io(&error, "failed to remove old files of", dir))?;
        create_directories(dir).map_err(|error| StartError::io(&error, "failed to create", dir))
    }

    /// Removes the driver's files and the directory if the configuration asks for it, then releases the lock.
    ///
    /// A second call does nothing.
    ///
    /// If the lock file was removed or replaced, removes no file, because another driver may use the directory.
    ///
    /// # Errors
    /// The files cannot be removed.
    pub fn close(&mut self) -> io::Result<()> {
        let Some(lock) = self.lock.take() else {
            return Ok(());
        };
        let result = match self.is_removed_on_close && lock.is_in_place() {
            true => remove(&self.path),
            false => Ok(()),
        };
        lock.unlock();
        result
    }
}

impl Drop for DriverDirectory {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            console::warn(format_args!(
                "failed to remove {}: {error}",
                self.path.display()
            ));
        }
    }
}

/// Removes a driver's files, the lock file last, and then the directory if it is empty. The caller holds the lock.
fn remove(dir: &Path) -> io::Result<()> {
    entries::remove_drivers_entries(dir)?;
    entries::ignore_missing(fs::remove_file(driver_lock_file(dir)))?;
    entries::remove_if_empty(dir)
}

/// Returns an error if the path is not a directory, or if it contains an entry that drivers do not create.
fn check_entries(context: &Context) -> Result<(), StartError> {
    let dir = &context.dir;
    match dir.symlink_metadata() {
        Ok(found) if found.is_symlink() => return Err(StartError::LinkedDirectory(dir.clone())),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StartError::io(&error, "failed to look at", dir)),
    }
    if context.dir_warn_if_exists {
        console::warn(format_args!("WARNING: {} exists", dir.display()));
    }
    let foreign = entries::find_foreign(dir)
        .map_err(|error| StartError::io(&error, "failed to list", dir))?;
    match foreign {
        Some(entry) => Err(StartError::ForeignEntry(entry)),
        None => Ok(()),
    }
}

/// Checks that the driver of the CnC file is dead, unless `is_dead` is set. Saves the errors of this driver, unless
/// `dir_delete_on_start` is set.
fn check_cnc(context: &Context, cnc: &CncFile, is_dead: bool) -> Result<(), StartError> {
    if context.dir_warn_if_exists {
        liveness::print_heartbeat_age(cnc);
    }
    if !is_dead {
        liveness::check_dead(context, cnc)?;
    }
    match context.dir_delete_on_start {
        true => Ok(()),
        false => liveness::save_errors(&context.dir, cnc),
    }
}

/// Locks the lock file of an earlier driver of this implementation. Returns `None` if there is no such lock file.
fn existing_lock(context: &Context) -> Result<Option<LockFile>, StartError> {
    let dir = &context.dir;
    let path = driver_lock_file(dir);
    let deadline = Instant::now() + LOOK_TIME;
    loop {
        match LockFile::try_lock(&path) {
            Ok(LockAttempt::Acquired(lock)) => return Ok(Some(lock)),
            Ok(LockAttempt::Missing) => return Ok(None),
            Ok(LockAttempt::Held(_)) if Instant::now() >= deadline => {
                if context.dir_warn_if_exists {
                    liveness::print_live_heartbeat_age(dir);
                }
                return Err(StartError::ActiveDriver(cnc_file(dir)));
            }
            Ok(LockAttempt::Held(_)) => std::thread::sleep(LOCK_POLL_INTERVAL),
            Err(error) => return Err(StartError::io(&error, "failed to lock", &path)),
        }
    }
}

/// Creates the directory, if it does not exist, and locks a new lock file in the directory.
///
/// Retries for up to [`CREATION_TIME`]. Meanwhile, another driver may remove the directory or start in it, and a tool
/// may hold the lock of the new file.
fn create_lock(context: &Context) -> Result<LockFile, StartError> {
    let dir = &context.dir;
    let path = driver_lock_file(dir);
    let deadline = Instant::now() + CREATION_TIME;
    loop {
        let may_retry = Instant::now() < deadline;
        match fs::create_dir_all(dir) {
            // The directory existed at first, and was removed before the standard library checked it.
            Err(error) if may_retry && error.kind() == io::ErrorKind::AlreadyExists => {
                std::thread::sleep(LOCK_POLL_INTERVAL);
                continue;
            }
            result => {
                result.map_err(|error| StartError::io(&error, "failed to create", dir))?;
            }
        }
        let error = match LockFile::create(&path) {
            Ok(lock) => return Ok(lock),
            Err(error) => error,
        };
        match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::WouldBlock => {
                if let Some(lock) = existing_lock(context)? {
                    return Ok(lock);
                }
            }
            io::ErrorKind::NotFound if may_retry => std::thread::sleep(LOCK_POLL_INTERVAL),
            _ => return Err(StartError::io(&error, "failed to create", &path)),
        }
    }
}

#[cfg(test)]
mod tests;
