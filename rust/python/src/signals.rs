//! Signals that arrive while a thread waits without the GIL.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// Interval at which a wait without the GIL checks for signals.
pub const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// State of one thread that checks for signals while the thread waits inside the client.
#[derive(Default)]
struct Signals {
    last_look: Cell<Option<Instant>>,
    raised: RefCell<Option<PyErr>>,
}

thread_local! {
    static SIGNALS: Signals = Signals::default();
}

/// Whether a signal handler has raised an exception. [`interruption`] then returns that exception.
///
/// Waits inside the client call this function without the GIL. The function acquires the GIL at most every 50 ms.
pub fn is_interrupted() -> bool {
    SIGNALS.with(|signals| {
        let now = Instant::now();
        let last_look = signals.last_look.get();
        if last_look.is_some_and(|last_look| now - last_look < SIGNAL_INTERVAL) {
            return false;
        }
        signals.last_look.set(Some(now));
        let outcome = Python::try_attach(|py| py.check_signals());
        let raised = outcome.and_then(Result::err);
        let is_interrupted = raised.is_some();
        signals.raised.replace(raised);
        is_interrupted
    })
}

/// Returns the exception that ended a wait of this thread.
pub fn interruption() -> PyErr {
    let raised = SIGNALS.with(|signals| signals.raised.take());
    raised.unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
}
