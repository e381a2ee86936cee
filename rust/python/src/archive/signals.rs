//! [`PyRecordingSignals`]: an iterator over signals of recordings.

use std::sync::Arc;

use aeron_archive::client::ArchiveClientError;
use aeron_client::{CloseCause, Error};
use pyo3::prelude::*;

use super::errors::from_archive;
use super::link::Link;
use super::recording::PyRecordingSignal;
use crate::fork::OfProcess;
use crate::waiting::WaitPolicy;

/// An iterator over recording signals, which `AeronArchive.signals` returns.
///
/// Thread-safe: if several threads use it, each signal goes to one of them.
#[pyclass(frozen, module = "aeron", name = "RecordingSignals")]
pub struct PyRecordingSignals {
    link: OfProcess<Arc<Link>>,
    patience: WaitPolicy,
}

impl PyRecordingSignals {
    pub fn new(link: &Arc<Link>, patience: WaitPolicy) -> Self {
        Self {
            link: OfProcess::new(Arc::clone(link)),
            patience,
        }
    }
}

#[pymethods]
impl PyRecordingSignals {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyRecordingSignal>> {
        let link = self.link.get()?;
        let poll = || {
            // The signals are taken before an error is raised. Otherwise the signals before the end of the session
            // would be lost.
            let polled = link.archive.poll_for_recording_signals();
            match (link.archive.take_recording_signal(), polled) {
                (Ok(Some(signal)), _) => Some(Ok(Some(signal))),
                (Err(error), _) => Some(Err(error)),
                (Ok(None), Err(error)) => Some(end_of_iterator(link, error).map(|()| None)),
                (Ok(None), Ok(_)) => None,
            }
        };
        let signal = self.patience.wait_without_gil(py, poll)?;
        let signal = signal
            .transpose()
            .map_err(|error| from_archive(&error))?
            .flatten();
        Ok(signal.as_ref().map(PyRecordingSignal::from))
    }
}

/// Returns the error that the iterator raises after a poll has failed with `polled`. Returns `Ok` if the program has
/// closed the client of the archive or the Aeron client.
///
/// The poll that notices the end of the session fails with the cause, and later polls fail with another error. The
/// thread of the client polls too. So the outcome depends on the cause in the session, and not on `polled`.
fn end_of_iterator(link: &Link, polled: ArchiveClientError) -> Result<(), ArchiveClientError> {
    if link.is_closed_by_program() {
        return Ok(());
    }
    match link.archive.end()?.unwrap_or(polled) {
        ArchiveClientError::Client(Error::ClientClosed(CloseCause(None))) => Ok(()),
        error => Err(error),
    }
}
