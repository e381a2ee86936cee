//! [`Slices`]: the queue of log parts that the native resource agent allocates. The agent allocates one slice of each
//! part in turn.

use std::collections::VecDeque;

use crate::log_storage::LogId;
use crate::stream::PageRequest;

/// Maximum length of a slice in bytes. The allocation of a slice takes well below a millisecond. Meanwhile, all other
/// work of the thread waits.
const SLICE_LENGTH: usize = 1024 * 1024;

/// Parts that are not completely allocated, in the order of their turns. A long part does not delay a short part.
#[derive(Debug, Default)]
pub(super) struct Slices(VecDeque<(LogId, PageRequest)>);

impl Slices {
    /// Adds a part of a log. One slice of each waiting part is allocated before the first slice of the new part.
    pub(super) fn push(&mut self, log: LogId, pages: PageRequest) {
        debug_assert!(
            pages.length > 0,
            "an empty part of {log:?} is waiting for its allocation"
        );
        self.0.push_back((log, pages));
    }

    /// Removes and returns the next slice. Moves the rest of the slice's part to the end of the queue.
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

    /// Returns the number of parts that are not completely allocated.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Removes the parts of a log.
    pub(super) fn forget(&mut self, log: LogId) {
        self.0.retain(|(other, _)| *other != log);
    }
}
