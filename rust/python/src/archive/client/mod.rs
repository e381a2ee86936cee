//! [`PyAeronArchive`]: a client of an archive. Each group of its methods has its own file.

mod follow;
mod info;
mod maintenance;
mod methods;
mod query;
mod readers;
mod reconnect;
mod recorded_publisher;
mod recording;
mod replay;
mod replication;
mod retention;
mod time;

use std::sync::Arc;

use aeron_archive::client::{
    AeronArchive, ArchiveCall, ArchiveClientContext, ArchiveOperation, ArchiveSessionState,
    ExtensionPage, Result,
};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use super::credentials::{Credentials, GivenCredentials};
use super::errors::from_archive;
use super::link::Link;
use super::signals::PyRecordingSignals;
use crate::argument;
use crate::client::PyAeron;
use crate::errors::raise;
use crate::events::EventHandler;
use crate::fork::OfProcess;
use crate::operations::{Owned, PyPendingOperation};
use crate::waiting::WaitPolicy;
use crate::with_block::with_block;

/// A client of an archive, which `connect_archive` returns. Thread-safe.
///
/// A method that sends a request waits for the response, up to the message timeout. The method of the same
/// name with the prefix `async_` returns a `PendingOperation` at once, for `await` or `result(timeout)`. It has the
/// same arguments, except a timeout, and the same result and errors.
///
/// A thread of the client keeps the session alive while the program makes no calls. The client has no such
/// thread if `use_conductor_agent_invoker` is set, or if its embedded driver has the mode `INVOKER`. The
/// program must then call `poll` every few seconds.
///
/// The client closes itself if the archive ends the session or no longer runs, or if the Aeron client is closed. One
/// call may then raise `ArchiveDisconnectedError` or `ClientClosedError`. All later calls raise `ArchiveClosedError`.
/// `reconnect` connects again.
///
/// In a handler of the Aeron client, methods that wait raise `ReentrantCallError`.
///
/// The end of a `with` block closes the session. Recordings, replays and replications of the archive
/// continue.
///
/// Raises:
///     ArchiveError: By every method that sends a request, if the archive refuses it. The subclass names the reason.
///         The error has a `code` and a `correlation_id`.
///     ArchiveTimeoutError: By every such method, if the archive does not respond within the message timeout.
///     ArchiveDisconnectedError: By every such method and by `poll`, if the archive ended the session.
///     ArchiveClosedError: By every such method and by `poll`, if the client of the archive is closed.
///
/// Example:
///     ```python
///     archive = aeron.connect_archive(client)
///     publication = archive.add_recorded_publication("aeron:ipc", 1001)
///     for recording in archive.list_recordings():
///         print(recording.recording_id, recording.stop_position)
///     ```
#[pyclass(frozen, weakref, module = "aeron", name = "AeronArchive")]
pub struct PyAeronArchive {
    link: OfProcess<Arc<Link>>,
    client: Py<PyAeron>,
    /// The handlers of the program. `__traverse__` shows them to the garbage collector.
    handlers: Vec<EventHandler>,
    credentials: Arc<Credentials>,
    has_signal_handler: bool,
    max_idle_park_ns: u64,
}

impl Drop for PyAeronArchive {
    fn drop(&mut self) {
        // Without this, native code would still call the handlers of a client that the program did not close.
        self.handlers.iter().for_each(EventHandler::clear);
    }
}

impl PyAeronArchive {
    pub fn new(
        link: Arc<Link>,
        client: &Bound<'_, PyAeron>,
        handlers: Vec<EventHandler>,
        credentials: Arc<Credentials>,
        has_signal_handler: bool,
    ) -> Self {
        Self {
            link: OfProcess::new(link),
            client: client.clone().unbind(),
            handlers,
            credentials,
            has_signal_handler,
            max_idle_park_ns: client.get().max_idle_park_ns(),
        }
    }

    /// Returns the link, which keeps the session open.
    pub fn link(&self) -> PyResult<&Arc<Link>> {
        self.link.get()
    }

    fn get(&self) -> PyResult<&AeronArchive> {
        self.link.get().map(|link| &link.archive)
    }

    /// Returns the settings for another connection to the same archive.
    fn settings_for_another(
        &self,
        py: Python<'_>,
    ) -> PyResult<(ArchiveClientContext, GivenCredentials)> {
        let mut context = self.get()?.context().clone();
        let credentials = self.credentials.for_another(py)?;
        if let Some(credentials) = &credentials {
            context.credentials = Arc::clone(&credentials.supplier) as _;
        }
        Ok((context, credentials.unwrap_or_default()))
    }

    /// Starts an operation of the archive. `convert` creates the Python object of the result.
    fn pending<T: Clone + Send + 'static>(
        slf: &Bound<'_, Self>,
        what: &str,
        begin: impl FnOnce(&Arc<Link>) -> Result<ArchiveOperation<T>> + Send,
        convert: impl FnOnce(Python<'_>, &Owned, &Arc<Link>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<PyPendingOperation> {
        let this = slf.get();
        let link = this.link.get()?;
        let operation = slf.py().detach(|| begin(link));
        let operation = operation.map_err(|error| from_archive(&error))?;
        // The operation keeps the session alive until its result is taken.
        let link = Arc::clone(link);
        let convert = move |py: Python<'_>, owned: &Owned, result: Result<T>| {
            convert(
                py,
                owned,
                &link,
                result.map_err(|error| from_archive(&error))?,
            )
        };
        let (what, park_ns) = (what.to_owned(), this.max_idle_park_ns);
        let operation =
            PyPendingOperation::of_result(what, operation, park_ns, Vec::new(), convert);
        Ok(operation.of(this.client.bind(slf.py())))
    }

    /// Sends a request whose result is a plain value.
    fn request<T>(slf: &Bound<'_, Self>, call: ArchiveCall<T>) -> PyResult<PyPendingOperation>
    where
        T: Clone + Send + 'static + for<'py> IntoPyObject<'py>,
    {
        let name = call.name();
        let begin = |link: &Arc<Link>| link.archive.begin(call);
        Self::pending(slf, name, begin, |py, _, _, value: T| value.into_py_any(py))
    }

    /// Sends a request for a count. The result is `True` if the count is greater than 0.
    fn request_count(
        slf: &Bound<'_, Self>,
        call: ArchiveCall<i64>,
    ) -> PyResult<PyPendingOperation> {
        let name = call.name();
        let begin = |link: &Arc<Link>| link.archive.begin(call);
        Self::pending(slf, name, begin, |py, _, _, count: i64| {
            (count > 0).into_py_any(py)
        })
    }

    /// Requests all pages of a list. The result is a list of `P`.
    fn list<D, P>(
        slf: &Bound<'_, Self>,
        page: impl Fn(i32) -> ArchiveCall<ExtensionPage<D>> + Send + 'static,
    ) -> PyResult<PyPendingOperation>
    where
        D: Clone + Send + 'static,
        P: From<D> + for<'py> IntoPyObject<'py>,
    {
        let name = page(0).name();
        let begin = |link: &Arc<Link>| link.archive.list(page);
        Self::pending(slf, name, begin, |py, _, _, entries: Vec<D>| {
            let entries = entries.into_iter().map(P::from);
            entries.collect::<Vec<_>>().into_py_any(py)
        })
    }
}

with_block!(PyAeronArchive);

#[pymethods]
impl PyAeronArchive {
    /// Iterates over signals of recordings as they arrive.
    ///
    /// The client keeps up to 1024 signals. If more arrive, the oldest signal is lost.
    ///
    /// The iterator ends if no signal arrives for `timeout` seconds, or if the program closes this client or the Aeron
    /// client. If the archive ends the session, the iterator returns the signals that the client has received, and then
    /// raises `ArchiveDisconnectedError`.
    ///
    /// Args:
    ///     timeout: Seconds to wait for each signal. `None` waits without a limit.
    ///
    /// Returns:
    ///     An iterator of `RecordingSignal`.
    ///
    /// Raises:
    ///     InvalidArgumentError: If the client has a signal handler (`on_signal`).
    ///     ArchiveDisconnectedError: Raised by the iterator if the archive ended the session.
    ///     ClientClosedError: Raised by the iterator if an error closed the Aeron client.
    #[pyo3(signature = (timeout = None))]
    fn signals(
        &self,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
    ) -> PyResult<PyRecordingSignals> {
        if self.has_signal_handler {
            let reason =
                "on_signal takes the signals: to iterate over them, connect without on_signal";
            return Err(raise("InvalidArgumentError", reason));
        }
        let patience = WaitPolicy::new(timeout, self.max_idle_park_ns)?;
        Ok(PyRecordingSignals::new(self.link.get()?, patience))
    }

    /// Polls the session once. Needed only if the client has no threads.
    fn poll(&self, py: Python<'_>) -> PyResult<()> {
        let archive = self.get()?;
        let polled = py.detach(|| archive.poll());
        polled.map(drop).map_err(|error| from_archive(&error))
    }

    /// Polls the session once, and returns an error that no call can raise, such as an error of a replay.
    ///
    /// If the client has an `error_handler`, that handler gets these errors instead.
    ///
    /// Returns:
    ///     The error, or `None` if there is no such error.
    fn poll_for_error(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let archive = self.get()?;
        let polled = py.detach(|| archive.poll_for_error_response());
        let error = polled.map_err(|error| from_archive(&error))?;
        Ok(error.map(|error| from_archive(&error).into_value(py).into_any()))
    }

    /// Id of the archive; -1 if the archive is too old to report it.
    #[getter]
    fn archive_id(&self) -> PyResult<i64> {
        Ok(self.get()?.archive_id())
    }

    /// Correlation id of the last request; -1 before the first request.
    #[getter]
    fn last_correlation_id(&self, py: Python<'_>) -> PyResult<i64> {
        let archive = self.get()?;
        let id = py.detach(|| archive.last_correlation_id());
        id.map_err(|error| from_archive(&error))
    }

    /// Id of the control session.
    #[getter]
    fn control_session_id(&self) -> PyResult<i64> {
        Ok(self.get()?.control_session_id())
    }

    /// The Aeron client that the archive's client uses.
    #[getter]
    fn client(&self, py: Python<'_>) -> Py<PyAeron> {
        self.client.clone_ref(py)
    }

    /// State of the session: `CONNECTED`, `DISCONNECTED` or `CLOSED`.
    ///
    /// If the archive ends the session, the state is `DISCONNECTED` until the client closes itself.
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<&'static str> {
        let archive = self.get()?;
        let state = py.detach(|| archive.state());
        Ok(match state.map_err(|error| from_archive(&error))? {
            ArchiveSessionState::Connected => "CONNECTED",
            ArchiveSessionState::Disconnected => "DISCONNECTED",
            ArchiveSessionState::Closed => "CLOSED",
        })
    }

    /// Whether the client was closed, by the program or because its session has ended.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> PyResult<bool> {
        let link = self.link.get()?;
        Ok(py.detach(|| link.is_closed()))
    }

    /// Closes the session. Idempotent.
    ///
    /// Outstanding requests fail with `ArchiveClosedError`. Recordings, replays and replications of the archive
    /// continue. `reconnect` and `recorded_publisher` can still be called.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let link = self.link.get()?;
        py.detach(|| link.close());
        // Later connections of `reconnect`, of followers and of recorded publishers call the credentials function.
        let is_notice = |handler: &&EventHandler| !self.credentials.is_function(handler);
        let notices = self.handlers.iter().filter(is_notice);
        notices.for_each(EventHandler::clear);
        Ok(())
    }

    fn __traverse__(
        &self,
        visit: pyo3::PyVisit<'_>,
    ) -> std::result::Result<(), pyo3::PyTraverseError> {
        visit.call(&self.client)?;
        self.handlers
            .iter()
            .try_for_each(|handler| handler.visit(&visit))
    }

    fn __repr__(&self) -> String {
        let archive = &self.link.anywhere().archive;
        format!(
            "<AeronArchive of archive {}, control session {}>",
            archive.archive_id(),
            archive.control_session_id()
        )
    }
}
