//! Where the driver's failures are written down: the distinct error log and the counter of errors.

use std::sync::Arc;

use aeron_agent::{EpochClock, console};
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::error_log::DistinctErrorLog;

use crate::error::DriverError;

/// Records failures; clones write to the same log, from any thread.
#[derive(Clone)]
pub struct ErrorRecorder {
    log: Arc<DistinctErrorLog<SharedBuffer>>,
    errors: AtomicCounter<SharedBuffer>,
    clock: Arc<dyn EpochClock>,
}

impl ErrorRecorder {
    /// Writes to `log` with the time of `clock`, and counts in `errors`.
    pub fn new(
        log: Arc<DistinctErrorLog<SharedBuffer>>,
        errors: AtomicCounter<SharedBuffer>,
        clock: Arc<dyn EpochClock>,
    ) -> Self {
        Self { log, errors, clock }
    }

    /// Writes a failure down, unless all it says is "try again".
    pub fn record(&self, error: &DriverError) {
        if !error.is_temporary() {
            self.note(error.entry());
        }
    }

    /// Writes down what a person should know; on stderr when the log is full.
    pub fn note(&self, text: &str) {
        self.errors.fetch_add(1);
        self.note_uncounted(text);
    }

    /// As [`note`](Self::note), for what is no failure of this driver: the counter of errors stays.
    pub fn note_uncounted(&self, text: &str) {
        if self.log.record(self.clock.time_ms(), text).is_err() {
            console::warn(text.trim_end());
        }
    }
}
