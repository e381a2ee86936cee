//! The bytes that logs take of the file system, and the bytes that were granted to them and are not allocated yet.
//!
//! The file system only knows what is allocated. A check that looked at its free space alone would give the same bytes to two
//! logs, and the publisher of one of them would die of SIGBUS.

use std::collections::HashMap;

use crate::log_storage::LogId;

/// The logs that exist, with their bytes.
#[derive(Debug, Default)]
pub(super) struct SpaceLedger {
    logs: HashMap<LogId, LogSpace>,
    /// Bytes granted to all logs that are not allocated yet.
    granted: u64,
    /// Bytes that images have, or that were granted to them.
    image_bytes: u64,
}

/// The bytes of one log.
#[derive(Clone, Copy, Debug)]
struct LogSpace {
    length: usize,
    allocated: usize,
    granted: usize,
}

impl SpaceLedger {
    /// Enters a log of `length` bytes, of which `allocated` are allocated.
    pub(super) fn add(&mut self, log: LogId, length: usize, allocated: usize) {
        let space = LogSpace {
            length,
            allocated,
            granted: 0,
        };
        self.logs.insert(log, space);
        self.image_bytes += image_bytes(log, allocated);
    }

    /// Removes a log; returns its length.
    pub(super) fn remove(&mut self, log: LogId) -> Option<usize> {
        let space = self.logs.remove(&log)?;
        self.granted -= space.granted as u64;
        self.image_bytes -= image_bytes(log, space.allocated + space.granted);
        Some(space.length)
    }

    pub(super) fn contains(&self, log: LogId) -> bool {
        self.logs.contains_key(&log)
    }

    pub(super) fn logs(&self) -> Vec<LogId> {
        self.logs.keys().copied().collect()
    }

    /// Grants `length` more bytes to a log.
    pub(super) fn grant(&mut self, log: LogId, length: usize) {
        if let Some(space) = self.logs.get_mut(&log) {
            space.granted += length;
            self.granted += length as u64;
            self.image_bytes += image_bytes(log, length);
        }
    }

    /// `length` of the bytes that were granted to a log are allocated now.
    pub(super) fn on_allocated(&mut self, log: LogId, length: usize) {
        if let Some(space) = self.logs.get_mut(&log) {
            let length = length.min(space.granted);
            space.granted -= length;
            space.allocated += length;
            self.granted -= length as u64;
        }
    }

    /// Takes back what was granted to a log and is not allocated.
    pub(super) fn revoke(&mut self, log: LogId) {
        if let Some(space) = self.logs.get_mut(&log) {
            let granted = std::mem::take(&mut space.granted);
            self.granted -= granted as u64;
            self.image_bytes -= image_bytes(log, granted);
        }
    }

    /// Of `usable` free bytes of the file system, those that no log was granted.
    pub(super) fn free(&self, usable: u64) -> u64 {
        usable.saturating_sub(self.granted)
    }

    /// Bytes that images have, or that were granted to them.
    pub(super) fn image_bytes(&self) -> u64 {
        self.image_bytes
    }
}

fn image_bytes(log: LogId, length: usize) -> u64 {
    match log {
        LogId::Image(_) => length as u64,
        LogId::Publication(_) => 0,
    }
}
