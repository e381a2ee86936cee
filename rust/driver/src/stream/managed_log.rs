//! [`ManagedLog`]: the driver's view of a log. It knows which pages are allocated, which part is clean, and which
//! positions are possible.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::clean::clean;
use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_memory::log::position::PARTITION_COUNT;
use aeron_memory::log::{LogBuffers, LogMetadata};

use super::pages::Pages;

/// Number of terms in a log. A stream uses the terms in turn. One pass over all terms is a lap.
const LAP: i64 = PARTITION_COUNT as i64;

/// A log, its allocated pages, and the position up to which it is clean.
#[derive(Debug)]
pub struct ManagedLog {
    log: LogBuffers<SharedBuffer>,
    pub pages: Pages,
    start_position: i64,
    clean_position: i64,
}

impl ManagedLog {
    /// Creates a clean log with its first frame at `start_position`.
    pub fn new(log: LogBuffers<SharedBuffer>, pages: Pages, start_position: i64) -> Self {
        Self {
            log,
            pages,
            start_position,
            clean_position: start_position,
        }
    }

    pub fn log(&self) -> &LogBuffers<SharedBuffer> {
        &self.log
    }

    pub fn metadata(&self) -> &LogMetadata<SharedBuffer> {
        self.log.metadata()
    }

    pub fn term_length(&self) -> i64 {
        self.log.term_length() as i64
    }

    /// Returns the position up to which publishers may write.
    ///
    /// The memory after this position may still contain data of the previous lap.
    pub fn clean_limit(&self) -> i64 {
        self.log.positions().term_begin(self.clean_position) + LAP * self.term_length()
    }

    /// Cleans the log up to `target`, but at most the rest of one term and a part of the next term.
    pub fn clean_to(&mut self, target: i64) {
        let target = target.min(self.pages.end());
        // Only an invalid position of a subscriber can move the target by more than a lap at once. Even then, cleaning
        // one lap cleans the whole log.
        let lap = LAP * self.term_length();
        self.clean_position = self.clean_position.max(target.saturating_sub(lap));
        for _ in 0..2 {
            self.clean_position = clean(&self.log, self.clean_position, target);
        }
    }

    /// Clamps `position`, a value from another process, to the range from the start position to `end`. Then rounds it
    /// down to a multiple of the frame alignment.
    pub fn sanitize(&self, position: i64, end: i64) -> i64 {
        let bounded = position.clamp(self.start_position, end.max(self.start_position));
        bounded & !(FRAME_ALIGNMENT as i64 - 1)
    }
}
