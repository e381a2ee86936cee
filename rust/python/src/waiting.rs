//! Waits of Python calls: they spin for a short time with the GIL, then wait without the GIL, and check for signals.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use aeron_agent::{BackoffIdleStrategy, IdleStrategy};
use pyo3::prelude::*;

use crate::errors::raise;
use crate::signals::SIGNAL_INTERVAL;

/// Time for which a wait spins before it releases the GIL. Releasing and acquiring the GIL takes about as long as this
/// spin if other threads wait for the GIL.
const SPIN: Duration = Duration::from_micros(10);
/// Default of the maximum time of one park, in nanoseconds, in a wait that has found nothing for a second.
pub const DEFAULT_MAX_IDLE_PARK_NS: u64 = 10_000_000;

/// The maximum duration and the idling of a wait.
#[derive(Clone, Copy)]
pub struct WaitPolicy {
    /// Maximum duration of the wait; `None` for no limit.
    timeout: Option<Duration>,
    max_idle_park_ns: u64,
}

impl WaitPolicy {
    /// `timeout` is in seconds. `None` and infinity wait without a limit.
    pub fn new(timeout: Option<f64>, max_idle_park_ns: u64) -> PyResult<Self> {
        let timeout = timeout
            .filter(|timeout| *timeout != f64::INFINITY)
            .map(duration)
            .transpose()?;
        Ok(Self {
            timeout,
            max_idle_park_ns,
        })
    }

    /// Calls `poll` until it returns a value. Returns `None` if the time is up.
    pub fn wait<T: Send>(
        self,
        py: Python<'_>,
        mut poll: impl FnMut() -> Option<T> + Send,
    ) -> PyResult<Option<T>> {
        let start = Instant::now();
        loop {
            if let Some(value) = poll() {
                return Ok(Some(value));
            }
            let waited = start.elapsed();
            if self.timeout.is_some_and(|timeout| waited >= timeout) {
                return Ok(None);
            }
            if waited >= SPIN {
                break;
            }
            std::hint::spin_loop();
        }
        self.wait_detached(py, start, poll)
    }

    /// As [`wait`](Self::wait), but releases the GIL at once. Use this method for a `poll` that takes long or waits for
    /// locks.
    pub fn wait_without_gil<T: Send>(
        self,
        py: Python<'_>,
        poll: impl FnMut() -> Option<T> + Send,
    ) -> PyResult<Option<T>> {
        self.wait_detached(py, Instant::now(), poll)
    }

    fn wait_detached<T: Send>(
        self,
        py: Python<'_>,
        start: Instant,
        mut poll: impl FnMut() -> Option<T> + Send,
    ) -> PyResult<Option<T>> {
        let deadline = self.timeout.and_then(|timeout| start.checked_add(timeout));
        let mut idle = BackoffIdleStrategy::default().with_max_idle_park(self.max_idle_park_ns);
        loop {
            let look_up = Instant::now() + SIGNAL_INTERVAL;
            let outcome = py.detach(|| {
                loop {
                    if let Some(value) = poll() {
                        return Some(Some(value));
                    }
                    let now = Instant::now();
                    if deadline.is_some_and(|deadline| now >= deadline) {
                        return Some(None);
                    }
                    if now >= look_up {
                        return None;
                    }
                    idle.idle_once();
                }
            });
            if let Some(outcome) = outcome {
                // A successful poll may have consumed messages, so its result is returned even if a signal arrived. The
                // interpreter handles the signal directly after the call.
                return Ok(outcome);
            }
            py.check_signals()?;
        }
    }
}

/// Calls the blocking function `f` on a separate thread, so that a signal can end the wait. After a signal, the result
/// of `f` is dropped.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    name: &str,
    f: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    interruptible_with(py, name, f, SIGNAL_INTERVAL, || {})
}

/// As [`interruptible`], but checks for signals every `interval`, and calls `work` before each check.
pub fn interruptible_with<T: Send + 'static>(
    py: Python<'_>,
    name: &str,
    f: impl FnOnce() -> T + Send + 'static,
    interval: Duration,
    mut work: impl FnMut() + Send,
) -> PyResult<T> {
    let (answer, mut answered) = sync_channel(1);
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            // An error means that a signal has ended the wait, so the result is not needed.
            let _ = answer.send(f());
        })?;
    loop {
        let answered = &mut answered;
        match py.detach(move || answered.recv_timeout(interval)) {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Timeout) => {
                py.detach(&mut work);
                py.check_signals()?;
            }
            Err(RecvTimeoutError::Disconnected) => {
                let reason = format!("{name} ended without an answer");
                return Err(raise("AeronError", reason));
            }
        }
    }
}

/// Converts seconds to a duration. Raises for negative and infinite numbers and NaN.
pub fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        raise(
            "InvalidArgumentError",
            format!(
                "timeout={seconds} is not a number of seconds from 0 on: pass None to wait without a limit"
            ),
        )
    })
}
