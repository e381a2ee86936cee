//! Records the driver's failures in the distinct error log and in the counter of errors.

use std::sync::Arc;

use aeron_agent::{EpochClock, console};
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::error_log::DistinctErrorLog;

use crate::error::DriverError;

/// Records failures. Clones write to the same log and may be used from any thread.
#[derive(Clone)]
pub struct ErrorRecorder {
    log: Arc<DistinctErrorLog<SharedBuffer>>,
    errors: AtomicCounter<SharedBuffer>,
    clock: Arc<dyn EpochClock>,
}

impl ErrorRecorder {
    /// Creates a recorder that writes to `log` with the time of `clock`, and counts in `errors`.
    pub fn new(
        log: Arc<DistinctErrorLog<SharedBuffer>>,
        errors: AtomicCounter<SharedBuffer>,
        clock: Arc<dyn EpochClock>,
    ) -> Self {
        Self { log, errors, clock }
    }

    /// Records a failure, unless it is temporary.
    pub fn record(&self, error: &DriverError) {
        if !error.is_temporary() {
            self.note(error.entry());
        }
    }

    /// Records a text for the operator and increments the error counter. If the log is full, prints the text to stderr.
    pub fn note(&self, text: &str) {
        self.errors.fetch_add(1);
        self.note_uncounted(text);
    }

    /// Records a text like [`note`](Self::note), but does not increment the error counter, because the driver did not
    /// fail.
    pub fn note_uncounted(&self, text: &str) {
        if self.log.record(self.clock.time_ms(), text).is_err() {
            console::warn(text.trim_end());
        }
    }
}
