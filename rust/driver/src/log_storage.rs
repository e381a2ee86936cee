//! Where log buffers live: the only thing about a log that is not plain memory.
//!
//! The native resource agent owns the storage; the conductor sees only the memory it hands out. [`MappedLogs`] keeps logs in
//! files below the driver's directory, [`HeapLogs`] keeps them on the heap for simulation and tests.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::directory::publication_log;
use aeron_memory::mapped::{Allocation, MappedFile};

/// Creates, extends and removes logs. A log is named by the registration id of its publication.
pub trait LogStorage: Send {
    /// Bytes that can still be allocated for logs.
    fn usable_space(&self) -> io::Result<u64>;

    /// Creates a log of `length` zero bytes; of a sparse one nothing is allocated yet. Fails when it exists.
    fn create(
        &mut self,
        registration_id: i64,
        length: usize,
        sparse: bool,
    ) -> io::Result<SharedBuffer>;

    /// Allocates a part of a sparse log, so that stores to it cannot fail.
    fn allocate(&mut self, registration_id: i64, offset: usize, length: usize) -> io::Result<()>;

    /// Removes a log; its memory lives on until the last reference to it is gone.
    fn remove(&mut self, registration_id: i64) -> io::Result<()>;
}

/// Logs in files below the driver's directory.
#[derive(Debug)]
pub struct MappedLogs {
    dir: PathBuf,
    files: HashMap<i64, MappedFile>,
}

impl MappedLogs {
    /// Logs below `dir`, which has a directory for publications.
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

    fn create(
        &mut self,
        registration_id: i64,
        length: usize,
        sparse: bool,
    ) -> io::Result<SharedBuffer> {
        let path = publication_log(&self.dir, registration_id);
        let allocation = if sparse {
            Allocation::Sparse
        } else {
            Allocation::Populated
        };
        let file = MappedFile::create(&path, length, allocation)?;
        let memory = file.buffer().clone();
        self.files.insert(registration_id, file);
        Ok(memory)
    }

    fn allocate(&mut self, registration_id: i64, offset: usize, length: usize) -> io::Result<()> {
        match self.files.get(&registration_id) {
            Some(file) => file.allocate(offset, length),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn remove(&mut self, registration_id: i64) -> io::Result<()> {
        std::fs::remove_file(publication_log(&self.dir, registration_id))?;
        self.files.remove(&registration_id);
        Ok(())
    }
}

/// Logs on the heap, of which only so many bytes may be allocated.
#[derive(Debug)]
pub struct HeapLogs {
    usable: u64,
    logs: HashMap<i64, usize>,
}

impl HeapLogs {
    /// Storage with room for `usable` bytes.
    pub fn new(usable: u64) -> Self {
        HeapLogs {
            usable,
            logs: HashMap::new(),
        }
    }

    /// Registration ids of the logs there are, in no order.
    pub fn registration_ids(&self) -> impl Iterator<Item = i64> + '_ {
        self.logs.keys().copied()
    }

    fn take(&mut self, registration_id: i64, length: usize) -> io::Result<()> {
        self.usable = self
            .usable
            .checked_sub(length as u64)
            .ok_or(io::ErrorKind::StorageFull)?;
        *self.logs.entry(registration_id).or_default() += length;
        Ok(())
    }
}

impl LogStorage for HeapLogs {
    fn usable_space(&self) -> io::Result<u64> {
        Ok(self.usable)
    }

    fn create(
        &mut self,
        registration_id: i64,
        length: usize,
        sparse: bool,
    ) -> io::Result<SharedBuffer> {
        if self.logs.contains_key(&registration_id) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.take(registration_id, if sparse { 0 } else { length })?;
        Ok(SharedBuffer::heap(length))
    }

    fn allocate(&mut self, registration_id: i64, _offset: usize, length: usize) -> io::Result<()> {
        self.take(registration_id, length)
    }

    fn remove(&mut self, registration_id: i64) -> io::Result<()> {
        let allocated = self
            .logs
            .remove(&registration_id)
            .ok_or(io::ErrorKind::NotFound)?;
        self.usable += allocated as u64;
        Ok(())
    }
}
