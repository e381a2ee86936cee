//! The parts of logs that are being allocated, in slices that take turns.

use std::collections::VecDeque;

use crate::log_storage::LogId;
use crate::stream::PageRequest;

/// Longest slice, in bytes; it takes well below a millisecond, for which everything else on the thread waits.
const SLICE_LENGTH: usize = 1024 * 1024;

/// Requests that are not allocated in full, in the order of their turns. A long one does not delay a short one.
#[derive(Debug, Default)]
pub(super) struct Slices(VecDeque<(LogId, PageRequest)>);

impl Slices {
    /// Adds a part of a log; its first slice comes after one slice of each part that waits.
    pub(super) fn push(&mut self, log: LogId, pages: PageRequest) {
        self.0.push_back((log, pages));
    }

    /// Takes the next slice. The rest of its part goes to the end of the line.
    pub(super) fn pop(&mut self) -> Option<(LogId, PageRequest)> {
        let (log, pages) = self.0.pop_front()?;
        let slice = PageRequest {
            offset: pages.offset,
            length: pages.length.min(SLICE_LENGTH),
        };
        if slice.length < pages.length {
            let rest = PageRequest {
                offset: pages.offset + slice.length,
                length: pages.length - slice.length,
            };
            self.0.push_back((log, rest));
        }
        Some((log, slice))
    }

    /// The number of parts that are not allocated in full.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Drops the parts of a log.
    pub(super) fn forget(&mut self, log: LogId) {
        self.0.retain(|(other, _)| *other != log);
    }
}
