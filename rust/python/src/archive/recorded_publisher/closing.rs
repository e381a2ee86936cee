//! Methods that close a recorded publisher, and return the messages that are not recorded.

use aeron_archive::client::Unrecorded;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::super::errors::from_publisher;
use super::super::single_caller::CallInProgress;
use super::{PyRecordedPublisher, in_use};
use crate::argument;
use crate::calls::call_aio;
use crate::errors::raise;
use crate::events::EventHandler;

#[pymethods]
impl PyRecordedPublisher {
    /// Returns the messages that are not known to be recorded, in order.
    ///
    /// After a failure or a close, the program can save these messages. If the archive was lost, the archive may have
    /// recorded some of these messages.
    ///
    /// Returns:
    ///     The messages.
    ///
    /// Raises:
    ///     ReentrantCallError: If another call is under way.
    fn unrecorded<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        match self.get()?.publisher.call(|it| it.unrecorded()) {
            Ok(Some(messages)) => Ok(messages
                .iter()
                .map(|message| PyBytes::new(py, message))
                .collect()),
            Ok(None) | Err(CallInProgress) => Err(in_use()),
        }
    }

    /// Waits until all messages are recorded, and closes the publisher. Idempotent.
    ///
    /// The publication, the session with the archive and the client are closed even if messages are not
    /// recorded.
    ///
    /// Args:
    ///     timeout: Seconds to wait. `None` waits without a limit, 0 does not wait.
    ///
    /// Raises:
    ///     UnrecordedMessagesError: If messages are not known to be recorded. `unrecorded` still returns them.
    ///     ReentrantCallError: If another call is under way.
    #[pyo3(signature = (timeout = Some(5.0)), text_signature = "($self, timeout=5.0)")]
    fn close(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
    ) -> PyResult<()> {
        match self.close_within(py, timeout)? {
            None => Ok(()),
            Some(unrecorded) => Err(self.unrecorded_error(py, unrecorded)?),
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Closes the publisher as `close` does. If the `with` block has raised, its exception gets a note about
    /// unrecorded messages.
    fn __exit__(
        &self,
        py: Python<'_>,
        _type: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if error.is_none() {
            return self.close(py, Some(5.0));
        }
        if let Some(unrecorded) = self.close_within(py, Some(5.0))? {
            error.call_method1("add_note", (self.unrecorded_text(unrecorded),))?;
        }
        Ok(())
    }

    fn __aenter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        call_aio(slf.py(), "enter", (slf,))
    }

    /// Closes the publisher as `close` does, on another thread.
    fn __aexit__<'py>(
        slf: &Bound<'py, Self>,
        kind: &Bound<'py, PyAny>,
        error: &Bound<'py, PyAny>,
        traceback: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call_aio(slf.py(), "leave_recorded", (slf, kind, error, traceback))
    }
}

impl PyRecordedPublisher {
    /// Returns the exception for messages that are not recorded.
    fn unrecorded_error(&self, py: Python<'_>, unrecorded: Unrecorded) -> PyResult<PyErr> {
        let status = self.status()?;
        let raised = raise("UnrecordedMessagesError", self.unrecorded_text(unrecorded));
        raised.set_cause(py, status.failure().map(from_publisher));
        let value = raised.value(py);
        value.setattr("messages", unrecorded.messages)?;
        value.setattr("bytes", unrecorded.bytes)?;
        value.setattr("position", status.position())?;
        value.setattr("recorded_position", status.recorded_position())?;
        Ok(raised)
    }

    fn unrecorded_text(&self, unrecorded: Unrecorded) -> String {
        let status = &self.shared.anywhere().status;
        format!(
            "{} messages ({} bytes) of stream {} are not known to be recorded: recording {} is at position {}, and the last message ends at {}; unrecorded() returns them",
            unrecorded.messages,
            unrecorded.bytes,
            self.stream_id,
            status.recording_id().unwrap_or(-1),
            status.recorded_position().unwrap_or(-1),
            status.position().unwrap_or(-1),
        )
    }

    /// Waits until everything is recorded, and closes the publisher. Returns how much is not recorded.
    fn close_within(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Unrecorded>> {
        let shared = self.get()?;
        if shared.is_closed() {
            return Ok(None);
        }
        let waited = self.wait(py, timeout, |_| {
            (shared.is_recorded() || shared.is_over()).then_some(())
        });
        py.detach(|| shared.publisher.close());
        let told = waited.and_then(|_| self.tell(py));
        self.handlers.iter().for_each(EventHandler::clear);
        told?;
        let unrecorded = shared.status.unrecorded();
        Ok((unrecorded.messages > 0).then_some(unrecorded))
    }
}
