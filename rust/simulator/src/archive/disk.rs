//! [`SimulatedDisk`]: the disk of a simulated archive. A kill can end the process in the middle of a disk operation.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use aeron_archive::memory_storage::{MemoryFile, MemoryStorage, PAGE_LENGTH, StorageFault};
use aeron_archive::segments::SEGMENT_EXTENSION;
use aeron_archive::storage::{Access, Storage, StorageFile, SyncLevel};

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimulatedDisk {
    /// The files.
    pub storage: MemoryStorage,
    /// Maximum number of pages that are written of the next torn block; 0 if no block is to be torn.
    torn_pages: Arc<AtomicUsize>,
}

/// An open file of a [`SimulatedDisk`].
#[derive(Debug)]
pub struct SimulatedFile {
    file: MemoryFile,
    disk: SimulatedDisk,
    is_segment: bool,
}

/// The process was killed in the middle of a disk operation.
pub struct Killed;

/// Runs a part of a process.
///
/// # Errors
/// The process was killed. Do not run the objects of the process any more.
pub fn run_until_killed<T>(part: impl FnOnce() -> T) -> Result<T, Killed> {
    catch_unwind(AssertUnwindSafe(part)).map_err(|cause: Box<dyn Any + Send>| {
        match cause.downcast::<Killed>() {
            Ok(killed) => *killed,
            Err(panic) => resume_unwind(panic),
        }
    })
}

/// Returns `outcome`, or ends the process if the disk has killed it. Error handlers of the process do not run then.
fn unless_killed<T>(disk: &SimulatedDisk, outcome: T) -> T {
    if disk.storage.is_killed() && !std::thread::panicking() {
        resume_unwind(Box::new(Killed));
    }
    outcome
}

impl SimulatedDisk {
    /// Returns the names of all files.
    pub fn names(&self) -> Vec<String> {
        self.storage.names().unwrap_or_default()
    }

    /// Kills the process in the next write of a block that crosses the end of a page. At most `pages` pages of the
    /// block are written, but never all of them. If `pages` is 0, no block is torn.
    pub fn tear_block(&self, pages: usize) {
        self.torn_pages.store(pages, Ordering::Relaxed);
    }

    /// Kills the process in this write, if a block is to be torn and this block crosses the end of a page.
    fn tear(&self, offset: u64, length: usize) {
        let count = (offset as usize % PAGE_LENGTH + length).div_ceil(PAGE_LENGTH);
        let wanted = self.torn_pages.load(Ordering::Relaxed);
        if wanted > 0 && count > 1 {
            self.tear_block(0);
            let progress = wanted.min(count - 1);
            let step = self.storage.steps();
            self.storage.fail_at(step, StorageFault::Kill { progress });
        }
    }

    fn opened(&self, name: &str, file: io::Result<MemoryFile>) -> io::Result<SimulatedFile> {
        unless_killed(self, file).map(|file| SimulatedFile {
            file,
            disk: self.clone(),
            is_segment: name
                .rsplit_once('.')
                .is_some_and(|(_, extension)| extension == SEGMENT_EXTENSION),
        })
    }
}

impl Storage for SimulatedDisk {
    type File = SimulatedFile;

    fn create(&self, name: &str, length: u64) -> io::Result<SimulatedFile> {
        self.opened(name, self.storage.create(name, length))
    }

    fn open(&self, name: &str, access: Access) -> io::Result<SimulatedFile> {
        self.opened(name, self.storage.open(name, access))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        unless_killed(self, self.storage.remove(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        unless_killed(self, self.storage.rename(from, to))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.storage.names()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.storage.free_bytes()
    }

    fn sync(&self) -> io::Result<()> {
        unless_killed(self, Storage::sync(&self.storage))
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
        if self.is_segment {
            self.disk.tear(offset, bytes.len());
        }
        unless_killed(&self.disk, self.file.write_at(bytes, offset))
    }

    fn modified(&self) -> io::Result<SystemTime> {
        self.file.modified()
    }

    fn sync(&self, level: SyncLevel) -> io::Result<()> {
        unless_killed(&self.disk, self.file.sync(level))
    }
}
