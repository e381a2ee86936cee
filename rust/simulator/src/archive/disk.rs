//! [`SimulatedDisk`]: the disk of an archive, whose process ends in the middle of the operation that kills it.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::SystemTime;

use aeron_archive::memory_storage::{MemoryFile, MemoryStorage};
use aeron_archive::storage::{Access, Storage, StorageFile, SyncLevel};

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimulatedDisk(pub MemoryStorage);

/// An open file of a [`SimulatedDisk`].
#[derive(Debug)]
pub struct SimulatedFile {
    file: MemoryFile,
    disk: MemoryStorage,
}

/// The process was killed in the middle of an operation of its disk.
pub struct Killed;

/// Runs a part of a process.
///
/// # Errors
/// The process was killed. What it owned must not run any more.
pub fn run_until_killed<T>(part: impl FnOnce() -> T) -> Result<T, Killed> {
    catch_unwind(AssertUnwindSafe(part)).map_err(|cause: Box<dyn Any + Send>| {
        match cause.downcast::<Killed>() {
            Ok(killed) => *killed,
            Err(panic) => resume_unwind(panic),
        }
    })
}

/// Ends the process if the disk says so: not even an error handler of it runs.
fn unless_killed<T>(disk: &MemoryStorage, outcome: T) -> T {
    if disk.is_killed() && !std::thread::panicking() {
        resume_unwind(Box::new(Killed));
    }
    outcome
}

impl SimulatedDisk {
    /// The names of all files.
    pub fn names(&self) -> Vec<String> {
        self.0.names().unwrap_or_default()
    }

    fn opened(&self, file: io::Result<MemoryFile>) -> io::Result<SimulatedFile> {
        let disk = self.0.clone();
        unless_killed(&self.0, file).map(|file| SimulatedFile { file, disk })
    }
}

impl Storage for SimulatedDisk {
    type File = SimulatedFile;

    fn create(&self, name: &str, length: u64) -> io::Result<SimulatedFile> {
        self.opened(self.0.create(name, length))
    }

    fn open(&self, name: &str, access: Access) -> io::Result<SimulatedFile> {
        self.opened(self.0.open(name, access))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        unless_killed(&self.0, self.0.remove(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        unless_killed(&self.0, self.0.rename(from, to))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.0.names()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.0.free_bytes()
    }

    fn sync(&self) -> io::Result<()> {
        unless_killed(&self.0, Storage::sync(&self.0))
    }
}

impl StorageFile for SimulatedFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        unless_killed(&self.disk, self.file.set_length(length))
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        unless_killed(&self.disk, self.file.write_at(bytes, offset))
    }

    fn modified(&self) -> io::Result<SystemTime> {
        self.file.modified()
    }

    fn sync(&self, level: SyncLevel) -> io::Result<()> {
        unless_killed(&self.disk, self.file.sync(level))
    }
}
