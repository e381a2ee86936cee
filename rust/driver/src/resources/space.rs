//! The bytes that logs take of the file system, and the bytes that they hold without having them allocated.
//!
//! The file system only knows what is allocated. A check that looked at its free space alone would give the same bytes to two
//! logs, and the publisher of one of them would die of SIGBUS.

use std::collections::HashMap;

use crate::log_storage::LogId;

/// The logs that exist, with their bytes.
#[derive(Debug, Default)]
pub(super) struct SpaceLedger {
    logs: HashMap<LogId, LogSpace>,
    /// Bytes that all logs hold and that are not allocated.
    held: u64,
    /// Bytes that images have, or that were granted to them.
    image_bytes: u64,
}

/// The bytes of one log.
#[derive(Clone, Copy, Debug)]
struct LogSpace {
    length: usize,
    allocated: usize,
    /// Bytes that will be allocated.
    granted: usize,
    /// Bytes after those that stay free for the log, as far as it has so many left.
    promised: usize,
}

impl LogSpace {
    /// Bytes that nobody else gets, and that are not allocated.
    fn held(&self) -> u64 {
        (self.granted + self.promised.min(self.rest())) as u64
    }

    fn rest(&self) -> usize {
        self.length.saturating_sub(self.allocated + self.granted)
    }
}

impl SpaceLedger {
    /// Enters a log of `length` bytes, of which `allocated` are allocated.
    pub(super) fn add(&mut self, log: LogId, length: usize, allocated: usize) {
        let space = LogSpace {
            length,
            allocated,
            granted: 0,
            promised: 0,
        };
        self.logs.insert(log, space);
        self.image_bytes += image_bytes(log, allocated);
    }

    /// Removes a log; returns its length.
    pub(super) fn remove(&mut self, log: LogId) -> Option<usize> {
        let space = self.logs.remove(&log)?;
        self.held -= space.held();
        self.image_bytes -= image_bytes(log, space.allocated + space.granted);
        Some(space.length)
    }

    /// Bytes of a log that are neither allocated nor granted; none if the log does not exist.
    pub(super) fn rest(&self, log: LogId) -> Option<usize> {
        self.logs.get(&log).map(LogSpace::rest)
    }

    /// Whether every byte that was granted to a log is allocated.
    pub(super) fn is_granted_part_allocated(&self, log: LogId) -> bool {
        self.logs.get(&log).is_some_and(|space| space.granted == 0)
    }

    pub(super) fn logs(&self) -> Vec<LogId> {
        self.logs.keys().copied().collect()
    }

    /// Grants `length` more bytes to a log, and promises it others after them.
    pub(super) fn grant(&mut self, log: LogId, length: usize, promise: usize) {
        self.image_bytes += image_bytes(log, length);
        self.change(log, |space| {
            space.granted += length;
            space.promised = promise;
        });
    }

    /// `length` of the bytes that were granted to a log are allocated now.
    pub(super) fn on_allocated(&mut self, log: LogId, length: usize) {
        self.change(log, |space| {
            let length = length.min(space.granted);
            space.granted -= length;
            space.allocated += length;
        });
    }

    /// Takes back the bytes that were granted to a log and are not allocated. Publishers may rely on the promise, so it stays.
    pub(super) fn revoke(&mut self, log: LogId) {
        let granted = self.logs.get(&log).map_or(0, |space| space.granted);
        self.image_bytes -= image_bytes(log, granted);
        self.change(log, |space| space.granted = 0);
    }

    fn change(&mut self, log: LogId, change: impl FnOnce(&mut LogSpace)) {
        if let Some(space) = self.logs.get_mut(&log) {
            self.held -= space.held();
            change(space);
            self.held += space.held();
        }
    }

    /// Of `usable` free bytes of the file system, those that logs other than `log` do not hold.
    pub(super) fn free_for(&self, log: LogId, usable: u64) -> u64 {
        let own = self.logs.get(&log).map_or(0, LogSpace::held);
        usable.saturating_sub(self.held - own)
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
