//! Records the driver's failures in the distinct error log and in the counter of errors.

use std::sync::Arc;

use aeron_agent::logging::is_installed;
use aeron_agent::{AgentError, EpochClock, console};
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::error_log::DistinctErrorLog;
use log::Level;

use crate::error::DriverError;

/// Name of the driver's logger.
pub const TARGET: &str = "aeron.driver";

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

    /// Records a failure that a client has caused and is told. So its level in the log is lower: a program that handles
    /// the refusal must not print it too.
    pub fn record_refusal(&self, error: &DriverError) {
        if !error.is_temporary() {
            self.errors.fetch_add(1);
            self.record_text(error.entry());
            log::info!(target: TARGET, "{}", error.entry());
        }
    }

    /// Records a text for the operator and increments the error counter. Also logs it.
    pub fn note(&self, text: &str) {
        self.errors.fetch_add(1);
        self.record_text(text);
        // Aeron counts some warnings as errors.
        let level = match text.starts_with("WARNING") {
            true => Level::Warn,
            false => Level::Error,
        };
        log::log!(target: TARGET, level, "{text}");
    }

    /// Records the error of an agent. The error log also gets the backtrace of a panic.
    pub fn note_agent_error(&self, error: &AgentError) {
        let Some(panicked) = error.panicked() else {
            return self.note(&format!("{error}\n"));
        };
        self.errors.fetch_add(1);
        self.record_text(&format!("{}\n", panicked.evidence()));
        log::error!(target: TARGET, "{error}");
    }

    /// Records a text like [`note`](Self::note), but does not increment the error counter, because the driver did not
    /// fail.
    pub fn note_uncounted(&self, text: &str) {
        self.record_text(text);
        log::warn!(target: TARGET, "{text}");
    }

    /// Records a panic of a thread that is no agent. The text is only for the error log: the standard error output has
    /// it already. The counters may have been freed.
    pub fn note_panic(&self, report: &str) {
        self.record_text(&format!("{report}\n"));
    }

    /// Records a text. If the log is full and no logger is installed, prints the text to stderr.
    fn record_text(&self, text: &str) {
        let is_recorded = self.log.record(self.clock.time_ms(), text).is_ok();
        if !is_recorded && !is_installed() {
            console::warn(text.trim_end());
        }
    }
}
