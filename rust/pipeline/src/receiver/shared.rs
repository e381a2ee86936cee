//! What the receiver's thread and the threads that plan share. The thread takes the lock only when something changes that is not
//! a position, and to wake somebody who waits.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{OpenedArchive, Statistics};
use crate::live::LiveError;
use crate::private::RecordingInfo;

/// Lines for the log that are kept until somebody takes them.
const MAX_LINES: usize = 100;

/// What goes wrong with a receiver that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What it is.
    pub error: LiveError,
    /// Whether it is said at once; otherwise only when everything that is recorded was delivered.
    pub is_urgent: bool,
}

/// How far a receiver has come.
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
    fault: Option<Fault>,
    lines: Vec<String>,
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
        std::mem::take(&mut self.lock().lines)
    }

    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }
}

/// For the receiver's thread.
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

    pub fn add_line(&self, line: String) {
        self.change(|state| {
            if state.lines.len() < MAX_LINES {
                state.lines.push(line);
            }
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
