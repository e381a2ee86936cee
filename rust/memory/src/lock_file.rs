//! [`LockFile`]: a file that is locked (`flock`) while its owner runs.
//!
//! The kernel releases the lock when the owner ends for any reason. The lock belongs to the file, not to a process id.
//! So the lock also works between different pid namespaces that share a file system.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::fs::{FlockOperation, flock};

use crate::regular::{Links, open_regular};

/// Maximum number of locks for which [`LockFile::give_up_in_forked_children`] takes effect.
const MAX_NOT_INHERITED: usize = 64;
const NO_DESCRIPTOR: i32 = -1;

/// Descriptors that a forked child closes.
static NOT_INHERITED: [AtomicI32; MAX_NOT_INHERITED] =
    [const { AtomicI32::new(NO_DESCRIPTOR) }; MAX_NOT_INHERITED];

/// A lock that this process holds. Dropping it releases the lock, unless a forked child has inherited it.
#[derive(Debug)]
pub struct LockFile {
    file: File,
    path: PathBuf,
}

/// Result of [`LockFile::try_lock`].
#[derive(Debug)]
pub enum LockAttempt {
    /// This process now holds the lock.
    Acquired(LockFile),
    /// Another owner holds the lock. The file is open, to read the owner's data.
    Held(File),
    /// The file does not exist, or its owner has just removed it.
    Missing,
}

impl LockFile {
    /// Creates the file for its user alone (mode 0600) and locks it.
    ///
    /// # Errors
    /// `AlreadyExists` if the file exists; `WouldBlock` if another owner locked the new file first, or has removed it
    /// since.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let path = path.to_owned();
        let ours = Self { file, path };
        match ours.is_in_place() {
            true => Ok(ours),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Locks the existing file if it is not locked. Does not follow symbolic links.
    ///
    /// # Errors
    /// The file cannot be opened or locked.
    pub fn try_lock(path: &Path) -> io::Result<LockAttempt> {
        let Some(file) = open(path, true)? else {
            return Ok(LockAttempt::Missing);
        };
        if !lock(&file, FlockOperation::NonBlockingLockExclusive)? {
            return Ok(LockAttempt::Held(file));
        }
        let path = path.to_owned();
        let ours = Self { file, path };
        // The previous owner may have removed the file before it released the lock.
        Ok(match ours.is_in_place() {
            true => LockAttempt::Acquired(ours),
            false => LockAttempt::Missing,
        })
    }

    /// Returns whether a living owner holds the lock, together with the file, open for reading. Returns `None` if the
    /// file does not exist.
    ///
    /// The check takes a shared lock for a moment, so two checks at the same time do not disturb each other.
    ///
    /// # Errors
    /// The file cannot be opened or locked.
    pub fn look(path: &Path) -> io::Result<Option<(bool, File)>> {
        let Some(file) = open(path, false)? else {
            return Ok(None);
        };
        let is_held = !lock(&file, FlockOperation::NonBlockingLockShared)?;
        if !is_held {
            flock(&file, FlockOperation::Unlock)?;
        }
        Ok(Some((is_held, file)))
    }

    /// Returns the file, for data that the owner writes into it.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether the path still names the locked file. Another process may have removed or replaced it.
    pub fn is_in_place(&self) -> bool {
        let identity = |file: fs::Metadata| (file.dev(), file.ino());
        let there = self.path.symlink_metadata().map(identity);
        let ours = self.file.metadata().map(identity);
        matches!((there, ours), (Ok(there), Ok(ours)) if there == ours)
    }

    /// Releases the lock at once, even if a forked child has inherited it. Call it in the process that took the lock.
    pub fn unlock(self) {
        self.end_not_inherited();
        let _ = flock(&self.file, FlockOperation::Unlock);
    }

    /// Makes forked children close their copy of the lock, so that the lock does not outlive this process.
    ///
    /// Takes effect if the process calls [`close_in_forked_child`] in its children. The child must not use or drop its
    /// copy of the `LockFile`.
    pub fn give_up_in_forked_children(&self) {
        let descriptor = self.file.as_raw_fd();
        for slot in &NOT_INHERITED {
            let taken = slot.compare_exchange(
                NO_DESCRIPTOR,
                descriptor,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if taken.is_ok() {
                return;
            }
        }
    }

    fn end_not_inherited(&self) {
        let descriptor = self.file.as_raw_fd();
        for slot in &NOT_INHERITED {
            let _ = slot.compare_exchange(
                descriptor,
                NO_DESCRIPTOR,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        self.end_not_inherited();
    }
}

/// Closes the descriptors of locks that a forked child must not keep. Call it from a `pthread_atfork` handler in the
/// child. It uses only atomics and `close`, which are both allowed between fork and exec.
pub fn close_in_forked_child() {
    for slot in &NOT_INHERITED {
        let descriptor = slot.swap(NO_DESCRIPTOR, Ordering::AcqRel);
        if descriptor != NO_DESCRIPTOR {
            // SAFETY: the descriptor was open in the parent, so this process owns a copy; the child does not use or
            // drop its `LockFile`.
            unsafe { libc::close(descriptor) };
        }
    }
}

/// Opens the file with close-on-exec, the default of the standard library, so that a started program does not keep the
/// lock.
fn open(path: &Path, for_writing: bool) -> io::Result<Option<File>> {
    match open_regular(path, for_writing, Links::Refused) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn lock(file: &File, operation: FlockOperation) -> io::Result<bool> {
    match flock(file, operation) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_until_its_release_and_a_check_does_not_take_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        assert!(matches!(
            LockFile::try_lock(&path).unwrap(),
            LockAttempt::Missing
        ));
        assert!(LockFile::look(&path).unwrap().is_none());
        let ours = LockFile::create(&path).unwrap();
        assert!(matches!(
            LockFile::try_lock(&path).unwrap(),
            LockAttempt::Held(_)
        ));
        assert!(LockFile::look(&path).unwrap().unwrap().0);
        ours.unlock();
        let (is_held, _file) = LockFile::look(&path).unwrap().unwrap();
        assert!(!is_held);
        assert!(matches!(
            LockFile::try_lock(&path).unwrap(),
            LockAttempt::Acquired(_)
        ));
    }

    #[test]
    fn a_lock_of_a_moved_file_is_not_in_place_and_a_symbolic_link_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let ours = LockFile::create(&path).unwrap();
        assert!(ours.is_in_place());
        fs::rename(&path, directory.path().join("elsewhere")).unwrap();
        assert!(!ours.is_in_place());
        std::os::unix::fs::symlink(directory.path().join("elsewhere"), &path).unwrap();
        assert!(LockFile::try_lock(&path).is_err());
    }
}
