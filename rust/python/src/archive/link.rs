//! [`Link`]: a session with an archive, and the thread that keeps it alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use aeron_archive::client::{AeronArchive, ArchiveClientError, ArchiveSessionState};
use pyo3::prelude::*;

use super::errors::from_archive;
use super::recording::PyRecordingSignal;
use crate::events::{ErrorReporter, attach};
use crate::exit::Closable;

/// Interval at which the thread polls the session. The archive sends a ping once per second, and a poll replies to it.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_millis(100);
/// Interval at which the thread polls the session if there is a handler for signals or errors.
const HANDLER_INTERVAL: Duration = Duration::from_millis(5);

/// Maximum number of consecutive polls. With more, the handlers and the other threads would wait too long.
const MAX_POLLS: usize = 100;

/// Calls the program's handler of signals.
pub type OnSignal = Box<dyn Fn(PyRecordingSignal) + Send>;

/// The program's handlers.
#[derive(Default)]
pub struct Notices {
    pub on_signal: Option<OnSignal>,
    /// Set if the program has an error handler.
    pub errors: Option<ErrorReporter>,
}

/// A session with an archive. Every object that needs the session has a reference to the link. Dropping the last
/// reference ends the session.
pub struct Link {
    pub archive: AeronArchive,
    is_stopped: Arc<AtomicBool>,
    /// The thread that polls the session; `None` if the client has no threads.
    pump: Option<Thread>,
}

impl Link {
    /// Starts the thread, unless the client has no threads. Such a client has no handlers.
    pub fn open(archive: AeronArchive, is_invoked: bool, notices: Notices) -> PyResult<Arc<Self>> {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let pump = match is_invoked {
            true => None,
            false => Some(start_pump(&archive, &is_stopped, notices)?),
        };
        let link = Arc::new(Self {
            archive,
            is_stopped,
            pump,
        });
        crate::exit::add_client(&link);
        Ok(link)
    }

    /// Closes the session. No call of a handler begins after the close, but an earlier call may still run. Call this
    /// method without the GIL.
    pub fn close(&self) {
        self.is_stopped.store(true, Ordering::Release);
        if let Some(pump) = &self.pump {
            pump.unpark();
        }
        // The close can fail only inside a native handler of the session, and this session has no native handlers.
        let _ = self.archive.close();
    }

    /// Whether the program has closed the session.
    pub fn is_closed_by_program(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Whether the session can be used.
    pub fn is_connected(&self) -> bool {
        matches!(self.archive.state(), Ok(ArchiveSessionState::Connected))
    }

    /// Whether the session was closed, by the program or because it ended.
    pub fn is_closed(&self) -> bool {
        matches!(self.archive.state(), Ok(ArchiveSessionState::Closed))
    }
}

impl Closable for Link {
    fn close_at_exit(&self) {
        self.close();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

fn start_pump(
    archive: &AeronArchive,
    is_stopped: &Arc<AtomicBool>,
    notices: Notices,
) -> std::io::Result<Thread> {
    let (archive, is_stopped) = (archive.clone(), Arc::clone(is_stopped));
    let interval = match notices.on_signal.is_some() || notices.errors.is_some() {
        true => HANDLER_INTERVAL,
        false => KEEP_ALIVE_INTERVAL,
    };
    let pump = thread::Builder::new()
        .name("aeron-archive".to_owned())
        .spawn(move || {
            while !is_stopped.load(Ordering::Acquire)
                && poll(&archive, &notices, &is_stopped).is_ok()
            {
                thread::park_timeout(interval);
            }
        })?;
    Ok(pump.thread().clone())
}

/// Polls the session, and calls the handlers for new signals and errors. Fails after the session has ended.
fn poll(
    archive: &AeronArchive,
    notices: &Notices,
    is_stopped: &AtomicBool,
) -> Result<(), ArchiveClientError> {
    let polled = poll_everything(archive);
    if let Some(on_signal) = &notices.on_signal {
        while let Some(signal) = archive.take_recording_signal()? {
            if is_stopped.load(Ordering::Acquire) {
                return Ok(());
            }
            on_signal(PyRecordingSignal::from(&signal));
        }
    }
    let Some(reporter) = &notices.errors else {
        return polled;
    };
    let outcome = polled.and_then(|()| report_errors(archive, reporter, is_stopped));
    if let Err(error) = &outcome {
        report(reporter, error, is_stopped);
    }
    outcome
}

/// Polls the session until a poll has no work, at most [`MAX_POLLS`] times. One poll reads a limited number of
/// fragments.
fn poll_everything(archive: &AeronArchive) -> Result<(), ArchiveClientError> {
    for _ in 0..MAX_POLLS {
        if archive.poll()? == 0 {
            break;
        }
    }
    Ok(())
}

/// Reports the errors that no call can raise.
fn report_errors(
    archive: &AeronArchive,
    reporter: &ErrorReporter,
    is_stopped: &AtomicBool,
) -> Result<(), ArchiveClientError> {
    while let Some(error) = archive.poll_for_error_response()? {
        report(reporter, &error, is_stopped);
    }
    Ok(())
}

/// Reports the error unless the program has closed the session.
fn report(reporter: &ErrorReporter, error: &ArchiveClientError, is_stopped: &AtomicBool) {
    attach(|py| {
        // The thread may have waited for the GIL while the program closed the session. The program's handler is gone
        // then, and `sys.unraisablehook` would show an error that nobody is interested in.
        if !is_stopped.load(Ordering::Acquire) {
            reporter.report(py, from_archive(error));
        }
    });
}
