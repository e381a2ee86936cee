//! [`SpaceLedger`]: the allocated bytes of all logs, and the bytes that are reserved for logs but not yet allocated.
//!
//! The free space of the file system excludes only allocated bytes. If checks used only the free space, the same
//! bytes could be granted to two logs. SIGBUS would then kill the publisher of one of the two logs.

use std::collections::HashMap;

use crate::log_storage::LogId;

/// The existing logs and their bytes.
#[derive(Debug, Default)]
pub(super) struct SpaceLedger {
    logs: HashMap<LogId, LogSpace>,
    /// Number of bytes that are reserved for all logs and not yet allocated.
    held: u64,
    /// Number of bytes that are allocated for images or granted to images.
    image_bytes: u64,
}

/// The bytes of one log.
#[derive(Clone, Copy, Debug)]
struct LogSpace {
    length: usize,
    allocated: usize,
    /// Number of bytes that will be allocated.
    granted: usize,
    /// Number of bytes after the granted bytes that are reserved for the log. The number may exceed the rest of the
    /// log.
    promised: usize,
}

impl LogSpace {
    /// Returns the number of bytes that are reserved for this log and not allocated.
    fn held(&self) -> u64 {
        (self.granted + self.promised.min(self.rest())) as u64
    }

    fn rest(&self) -> usize {
        self.length.saturating_sub(self.allocated + self.granted)
    }
}

impl SpaceLedger {
    /// Adds a log of `length` bytes, of which `allocated` are allocated.
    pub(super) fn add(&mut self, log: LogId, length: usize, allocated: usize) {
        debug_assert!(
            allocated <= length,
            "{allocated} bytes of a log of {length} bytes are allocated"
        );
        let space = LogSpace {
            length,
            allocated,
            granted: 0,
            promised: 0,
        };
        self.logs.insert(log, space);
        self.image_bytes += image_bytes(log, allocated);
    }

    /// Removes a log. Returns its length.
    pub(super) fn remove(&mut self, log: LogId) -> Option<usize> {
        let space = self.logs.remove(&log)?;
        self.held -= space.held();
        self.image_bytes -= image_bytes(log, space.allocated + space.granted);
        debug_assert!(
            !self.logs.is_empty() || (self.held == 0 && self.image_bytes == 0),
            "without logs, {} bytes are reserved and images have {} bytes",
            self.held,
            self.image_bytes
        );
        Some(space.length)
    }

    /// Returns the number of bytes of a log that are neither allocated nor granted; `None` if the log does not exist.
    pub(super) fn rest(&self, log: LogId) -> Option<usize> {
        self.logs.get(&log).map(LogSpace::rest)
    }

    /// Returns whether all bytes that were granted to a log are allocated.
    pub(super) fn is_granted_part_allocated(&self, log: LogId) -> bool {
        self.logs.get(&log).is_some_and(|space| space.granted == 0)
    }

    pub(super) fn logs(&self) -> Vec<LogId> {
        self.logs.keys().copied().collect()
    }

    /// Grants `length` more bytes to a log, and promises the `promise` bytes after the granted bytes.
    pub(super) fn grant(&mut self, log: LogId, length: usize, promise: usize) {
        self.image_bytes += image_bytes(log, length);
        self.change(log, |space| {
            space.granted += length;
            space.promised = promise;
        });
    }

    /// Records that `length` of the bytes granted to a log are allocated.
    pub(super) fn on_allocated(&mut self, log: LogId, length: usize) {
        self.change(log, |space| {
            let length = length.min(space.granted);
            space.granted -= length;
            space.allocated += length;
        });
    }

    /// Revokes the bytes that were granted to a log but are not allocated.
    ///
    /// The promise is not revoked, because publishers may rely on it.
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

    /// Returns the number of bytes that `log` may use: the `usable` free bytes of the file system without the bytes
    /// that are reserved for other logs.
    pub(super) fn free_for(&self, log: LogId, usable: u64) -> u64 {
        let own = self.logs.get(&log).map_or(0, LogSpace::held);
        usable.saturating_sub(self.held - own)
    }

    /// Returns the number of bytes that are reserved for logs and not allocated.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// Returns the number of bytes that are allocated for images or granted to images.
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
