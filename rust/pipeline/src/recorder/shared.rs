//! State that the recorder's thread and the planning threads share. The thread takes the lock only when something changes that is not
//! a position, and to wake somebody who waits.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{OpenedArchive, Statistics};
use crate::error::{LiveCode, LiveError};
use crate::private::{Gap, RecordingInfo};

/// Lines for the log that are kept until somebody takes them.
const MAX_LINES: usize = 1000;

/// An error after which the recorder still runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What it is.
    pub error: LiveError,
    /// Whether it is said at once; otherwise only when everything that is recorded was delivered.
    pub is_urgent: bool,
}

/// How far a recorder has come.
#[derive(Debug, Default)]
pub(super) enum Phase {
    #[default]
    Opening,
    Open(OpenedArchive),
    Ended(LiveError),
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub phase: Phase,
    pub recordings: Arc<[RecordingInfo]>,
    pub gaps: Arc<[Gap]>,
    fault: Option<Fault>,
    lines: Vec<String>,
    last_line: String,
    /// Lines that had no room.
    dropped_lines: usize,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Somebody waits for data.
    is_awaited: AtomicBool,
    is_stopping: Arc<AtomicBool>,
    pub statistics: Statistics,
}

/// Says so if a panic ends the recorder's thread: who waits for data would wait for ever.
pub(super) struct LastWords<'a>(pub &'a Shared);

impl Drop for LastWords<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let text = "the receiver of this query ended by a defect of aeron's, which its process has printed; restart the query";
        let error = LiveError::new(LiveCode::Archive, text);
        self.0.set_fault(Fault {
            error: error.clone(),
            is_urgent: true,
        });
        self.0.change(|state| state.phase = Phase::Ended(error));
    }
}

/// For the planning threads.
impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every holder leaves the state whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn wait(
        &self,
        timeout: Duration,
        is_done: impl Fn(&State) -> bool,
    ) -> MutexGuard<'_, State> {
        let state = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(state, timeout, |state| !is_done(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub fn wait_for_data(&self, timeout: Duration, is_due: impl Fn(&[RecordingInfo]) -> bool) {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        loop {
            self.is_awaited.store(true, Ordering::SeqCst);
            let left = deadline.saturating_duration_since(Instant::now());
            let is_over = state.fault.is_some() || matches!(state.phase, Phase::Ended(_));
            if is_over || left.is_zero() || is_due(&state.recordings) {
                break;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.is_awaited.store(false, Ordering::SeqCst);
    }

    pub fn recordings(&self) -> Arc<[RecordingInfo]> {
        Arc::clone(&self.lock().recordings)
    }

    pub fn gaps(&self) -> Arc<[Gap]> {
        Arc::clone(&self.lock().gaps)
    }

    /// Directory of the archive; empty before it is open.
    pub fn path(&self) -> PathBuf {
        match &self.lock().phase {
            Phase::Open(opened) => PathBuf::from(&opened.location.path),
            Phase::Opening | Phase::Ended(_) => PathBuf::new(),
        }
    }

    pub fn fault(&self) -> Option<Fault> {
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

/// For the recorder's thread.
impl Shared {
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_stopping)
    }

    pub fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// The first fault is the one that is told, unless a later one is urgent.
    pub fn set_fault(&self, fault: Fault) {
        self.change(|state| {
            let is_worse = |known: &Fault| fault.is_urgent && !known.is_urgent;
            if state.fault.as_ref().is_none_or(is_worse) {
                state.fault = Some(fault);
            }
        });
    }

    /// A line for the log. What is tried over and over, and fails the same way, is said once.
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

    /// Wakes who waits for data. Positions were stored before.
    pub fn wake(&self) {
        if self.is_awaited.load(Ordering::SeqCst) {
            drop(self.lock());
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorder_that_panics_does_not_go_in_silence() {
        let shared = Shared::default();
        drop(LastWords(&shared));
        assert_eq!(shared.fault(), None);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _words = LastWords(&shared);
            panic!("a defect");
        }));
        assert!(ended.is_err());
        let fault = shared.fault().unwrap();
        assert!(fault.is_urgent);
        let phase = &shared.wait(Duration::ZERO, |_| true).phase;
        assert!(matches!(phase, Phase::Ended(error) if *error == fault.error));
    }

    #[test]
    fn a_line_that_is_said_again_and_again_is_kept_once() {
        let shared = Shared::default();
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
