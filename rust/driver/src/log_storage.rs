//! [`LogStorage`]: creates, allocates and removes the memory of log buffers.
//!
//! The native resource agent owns the storage; the conductor only sees the memory of each log. [`MappedLogs`] keeps
//! logs in files below the driver's directory. [`HeapLogs`] keeps logs on the heap, for the simulator and for tests.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::directory::{image_log, publication_log};
use aeron_memory::mapped::{Allocation, MappedFile};

/// Identifies a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogId {
    /// The log of the publication with this registration id.
    Publication(i64),
    /// The log of the image with this correlation id.
    Image(i64),
}

impl LogId {
    /// Returns the file of the log below a driver's directory.
    pub fn path(self, dir: &Path) -> PathBuf {
        match self {
            LogId::Publication(id) => publication_log(dir, id),
            LogId::Image(id) => image_log(dir, id),
        }
    }
}

/// Creates, allocates and removes logs.
pub trait LogStorage: Send {
    /// Returns the number of bytes that can still be allocated for logs.
    fn usable_space(&self) -> io::Result<u64>;

    /// Creates a log of `length` zero bytes, without allocating them. Fails if the log exists.
    fn create(&mut self, log: LogId, length: usize) -> io::Result<SharedBuffer>;

    /// Allocates a part of a log, so that stores to it cannot fail.
    fn allocate(&mut self, log: LogId, offset: usize, length: usize) -> io::Result<()>;

    /// Allocates a part of a log that is still unwritten. Unlike [`allocate`](Self::allocate), this works even on file
    /// systems that allocate only on writes.
    fn allocate_new(&mut self, log: LogId, offset: usize, length: usize) -> io::Result<()> {
        self.allocate(log, offset, length)
    }

    /// Removes a log. The memory of the log lives until the last reference to the memory is dropped.
    ///
    /// If the log does not exist, [`MappedLogs`] does nothing, and [`HeapLogs`] returns an error.
    fn remove(&mut self, log: LogId) -> io::Result<()>;
}

/// Stores logs in files below the driver's directory.
#[derive(Debug)]
pub struct MappedLogs {
    dir: PathBuf,
    files: HashMap<LogId, MappedFile>,
}

impl MappedLogs {
    /// Creates a storage below `dir`, which has a directory for publications and one for images.
    pub fn new(dir: PathBuf) -> Self {
        MappedLogs {
            dir,
            files: HashMap::new(),
        }
    }
}

impl LogStorage for MappedLogs {
    fn usable_space(&self) -> io::Result<u64> {
        let file_system = rustix::fs::statvfs(&self.dir)?;
        Ok(file_system.f_bavail.saturating_mul(file_system.f_frsize))
    }

    fn create(&mut self, log: LogId, length: usize) -> io::Result<SharedBuffer> {
        let file = MappedFile::create(&log.path(&self.dir), length, Allocation::Sparse)?;
        let memory = file.buffer().clone();
        self.files.insert(log, file);
        Ok(memory)
    }

    fn allocate(&mut self, log: LogId, offset: usize, length: usize) -> io::Result<()> {
        match self.files.get(&log) {
            Some(file) => file.allocate(offset, length),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn allocate_new(&mut self, log: LogId, offset: usize, length: usize) -> io::Result<()> {
        match self.files.get(&log) {
            Some(file) => file.allocate_new(offset, length),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn remove(&mut self, log: LogId) -> io::Result<()> {
        match std::fs::remove_file(log.path(&self.dir)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => self.files.remove(&log),
        };
        Ok(())
    }
}

/// Stores logs on the heap and allocates only a limited number of bytes.
///
/// Clones share the logs, so that test clients can open them.
#[derive(Clone, Debug)]
pub struct HeapLogs(Arc<Mutex<Heap>>);

#[derive(Debug)]
struct Heap {
    usable: u64,
    logs: HashMap<LogId, HeapLog>,
}

#[derive(Debug)]
struct HeapLog {
    memory: SharedBuffer,
    /// Indexes of the allocated pages.
    pages: HashSet<usize>,
}

const HEAP_PAGE_LENGTH: usize = 4096;

impl HeapLogs {
    /// Creates a storage with room for `usable` bytes.
    pub fn new(usable: u64) -> Self {
        Self(Arc::new(Mutex::new(Heap {
            usable,
            logs: HashMap::new(),
        })))
    }

    /// Returns the memory of a log that was created and not removed.
    pub fn memory(&self, log: LogId) -> Option<SharedBuffer> {
        self.heap().logs.get(&log).map(|log| log.memory.clone())
    }

    /// Returns the number of logs.
    pub fn count(&self) -> usize {
        self.heap().logs.len()
    }

    /// Sets the free space to `usable` bytes. Allocated bytes are not part of the free space.
    pub fn set_usable_space(&self, usable: u64) {
        self.heap().usable = usable;
    }

    /// Returns the bytes that can still be allocated.
    pub fn usable_space_left(&self) -> u64 {
        self.heap().usable
    }

    fn heap(&self) -> MutexGuard<'_, Heap> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heap {
    fn allocate(&mut self, log: LogId, offset: usize, length: usize) -> io::Result<()> {
        let log = self.logs.get_mut(&log).ok_or(io::ErrorKind::NotFound)?;
        let pages = offset / HEAP_PAGE_LENGTH..(offset + length).div_ceil(HEAP_PAGE_LENGTH);
        let new = pages
            .filter(|page| !log.pages.contains(page))
            .collect::<Vec<_>>();
        let needed = (new.len() * HEAP_PAGE_LENGTH) as u64;
        self.usable = self
            .usable
            .checked_sub(needed)
            .ok_or(io::ErrorKind::StorageFull)?;
        log.pages.extend(new);
        Ok(())
    }
}

impl LogStorage for HeapLogs {
    fn usable_space(&self) -> io::Result<u64> {
        Ok(self.heap().usable)
    }

    fn create(&mut self, log: LogId, length: usize) -> io::Result<SharedBuffer> {
        let mut heap = self.heap();
        if heap.logs.contains_key(&log) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let memory = SharedBuffer::heap(length);
        let pages = HashSet::new();
        heap.logs.insert(
            log,
            HeapLog {
                memory: memory.clone(),
                pages,
            },
        );
        Ok(memory)
    }

    fn allocate(&mut self, log: LogId, offset: usize, length: usize) -> io::Result<()> {
        self.heap().allocate(log, offset, length)
    }

    fn remove(&mut self, log: LogId) -> io::Result<()> {
        let mut heap = self.heap();
        let log = heap.logs.remove(&log).ok_or(io::ErrorKind::NotFound)?;
        heap.usable += (log.pages.len() * HEAP_PAGE_LENGTH) as u64;
        Ok(())
    }
}
