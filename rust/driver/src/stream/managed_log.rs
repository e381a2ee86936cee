//! A log as the driver looks after it: which of its pages exist, what of it is clean, and which positions it can have.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::clean::clean;
use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_memory::log::position::PARTITION_COUNT;
use aeron_memory::log::{LogBuffers, LogMetadata};

use super::pages::Pages;

/// Terms of a log; positions go round and round over them.
const LAP: i64 = PARTITION_COUNT as i64;

/// A log with its pages, clean up to some position.
#[derive(Debug)]
pub struct ManagedLog {
    log: LogBuffers<SharedBuffer>,
    pub pages: Pages,
    start_position: i64,
    clean_position: i64,
}

impl ManagedLog {
    /// A log whose first frame goes to `start_position`, and that is all clean.
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

    /// Nobody may write into a term that still holds what was written three terms ago: this is where that term begins.
    pub fn clean_limit(&self) -> i64 {
        self.log.positions().term_begin(self.clean_position) + LAP * self.term_length()
    }

    /// Cleans up to `target`, at most the rest of one term and a part of the next.
    pub fn clean_to(&mut self, target: i64) {
        let target = target.min(self.pages.end());
        // Only a subscriber that writes nonsense jumps over a whole lap; one lap cleans everything.
        let lap = LAP * self.term_length();
        self.clean_position = self.clean_position.max(target.saturating_sub(lap));
        for _ in 0..2 {
            self.clean_position = clean(&self.log, self.clean_position, target);
        }
    }

    /// A position that another process wrote, held to what a position of this stream can be while it ends at `end`.
    pub fn sanitize(&self, position: i64, end: i64) -> i64 {
        let bounded = position.clamp(self.start_position, end.max(self.start_position));
        bounded & !(FRAME_ALIGNMENT as i64 - 1)
    }
}
