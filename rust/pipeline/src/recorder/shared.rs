//! State that the recorder's thread and the planning threads share. The recorder's thread stores positions without the
//! lock. It takes the lock only for other changes and to wake a waiting thread.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aeron_memory::Waiters;

use super::{OpenedArchive, Statistics};
use crate::error::{LiveCode, LiveError};
use crate::private::{RecordingGap, RecordingInfo};

/// Maximum number of pending log lines.
const MAX_LINES: usize = 1000;

/// An error that the query reports. The recorder continues after the error, unless it panicked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecorderFault {
    /// The error.
    pub error: LiveError,
    /// Whether the query reports the error at once. If `false`, the query first delivers all recorded data.
    pub is_urgent: bool,
}

/// State of a recorder.
#[derive(Debug, Default)]
pub(super) enum Phase {
    #[default]
    Opening,
    Open(OpenedArchive),
    Ended(LiveError),
}

#[derive(Debug, Default)]
pub(super) struct RecorderState {
    pub phase: Phase,
    pub recordings: Arc<[RecordingInfo]>,
    pub gaps: Arc<[RecordingGap]>,
    fault: Option<RecorderFault>,
    lines: Vec<String>,
    last_line: String,
    /// Number of log lines that were dropped because too many were pending.
    dropped_lines: usize,
}

#[derive(Debug, Default)]
pub(super) struct SharedRecorder {
    state: Mutex<RecorderState>,
    changed: Condvar,
    /// The threads that wait for data.
    waiters: Waiters,
    is_stopping: Arc<AtomicBool>,
    pub statistics: Statistics,
}

/// Reports a panic of the recorder's thread. Without the report, threads that wait for data would wait for ever.
pub(super) struct PanicReport<'a>(pub &'a SharedRecorder);

impl Drop for PanicReport<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let text = "the recorder of this query panicked because of a bug in aeron (stderr of its process has the details): restart the query";
        let error = LiveError::new(LiveCode::Archive, text);
        self.0.set_fault(RecorderFault {
            error: error.clone(),
            is_urgent: true,
        });
        self.0.change(|state| state.phase = Phase::Ended(error));
    }
}

/// Functions for the planning threads.
impl SharedRecorder {
    fn lock(&self) -> MutexGuard<'_, RecorderState> {
        // A panic cannot leave the state inconsistent: each change is a single step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn wait(
        &self,
        timeout: Duration,
        is_done: impl Fn(&RecorderState) -> bool,
    ) -> MutexGuard<'_, RecorderState> {
        let state = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(state, timeout, |state| !is_done(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub fn wait_for_data(&self, timeout: Duration, is_due: impl Fn(&[RecordingInfo]) -> bool) {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        self.waiters.register();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let is_over = state.fault.is_some() || matches!(state.phase, Phase::Ended(_));
            if is_over || left.is_zero() || is_due(&state.recordings) {
                break;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.waiters.remove();
    }

    pub fn recordings(&self) -> Arc<[RecordingInfo]> {
        Arc::clone(&self.lock().recordings)
    }

    pub fn gaps(&self) -> Arc<[RecordingGap]> {
        Arc::clone(&self.lock().gaps)
    }

    /// Returns the directory of the archive; empty before the archive is open.
    pub fn path(&self) -> PathBuf {
        match &self.lock().phase {
            Phase::Open(opened) => PathBuf::from(&opened.location.path),
            Phase::Opening | Phase::Ended(_) => PathBuf::new(),
        }
    }

    pub fn fault(&self) -> Option<RecorderFault> {
        self.lock().fault.clone()
    }

    pub fn take_lines(&self) -> Vec<String> {
        let mut state = self.lock();
        let mut lines = std::mem::take(&mut state.lines);
        let dropped = std::mem::take(&mut state.dropped_lines);
        if dropped > 0 {
            lines.push(format!(
                "{dropped} more lines were dropped: at most {MAX_LINES} are kept between two batches"
            ));
        }
        lines
    }

    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }
}

/// Functions for the recorder's thread.
impl SharedRecorder {
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_stopping)
    }

    pub fn change(&self, change: impl FnOnce(&mut RecorderState)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Stores a fault if there is none. An urgent fault replaces an earlier fault that is not urgent.
    pub fn set_fault(&self, fault: RecorderFault) {
        self.change(|state| {
            let is_worse = |known: &RecorderFault| fault.is_urgent && !known.is_urgent;
            if state.fault.as_ref().is_none_or(is_worse) {
                state.fault = Some(fault);
            }
        });
    }

    /// Adds a line for the log, unless the line equals the last one. So repeated attempts with the same error are
    /// logged once.
    pub fn add_line(&self, line: String) {
        self.change(|state| {
            if state.last_line == line {
                return;
            }
            if state.lines.len() == MAX_LINES {
                state.dropped_lines += 1;
                return;
            }
            state.last_line.clone_from(&line);
            state.lines.push(line);
        });
    }

    /// Wakes the threads that wait for data. Call it after the positions are stored.
    pub fn wake(&self) {
        if self.waiters.is_any() {
            drop(self.lock());
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_recorder_is_an_urgent_fault_and_ends_the_recorder() {
        let shared = SharedRecorder::default();
        drop(PanicReport(&shared));
        assert_eq!(shared.fault(), None);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _words = PanicReport(&shared);
            panic!("a defect");
        }));
        assert!(ended.is_err());
        let fault = shared.fault().unwrap();
        assert!(fault.is_urgent);
        let phase = &shared.wait(Duration::ZERO, |_| true).phase;
        assert!(matches!(phase, Phase::Ended(error) if *error == fault.error));
    }

    #[test]
    fn a_repeated_log_line_is_kept_once() {
        let shared = SharedRecorder::default();
        let say = |line: &str| shared.add_line(line.to_owned());
        say("cannot remove it");
        say("cannot remove it");
        assert_eq!(shared.take_lines(), ["cannot remove it"]);
        say("cannot remove it");
        say("connected again");
        say("cannot remove it");
        assert_eq!(shared.take_lines(), ["connected again", "cannot remove it"]);
    }
}
