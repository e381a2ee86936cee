//! [`PyAeron`]: a client of a media driver.
//!
//! This file imports no class that a client creates, because all of these classes refer to the client.

mod handlers;
mod resources;
pub mod settings;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aeron_client::{Aeron, Error};
use pyo3::prelude::*;

use crate::argument;
use crate::calls::call_aio;
use crate::connection::{ClientConnection, DriverName};
use crate::driver::PyMediaDriver;
use crate::errors::from_client;
use crate::events::{ErrorReporter, EventHandler};
use crate::fork::OfProcess;
use crate::with_block::with_block;

/// A client of a media driver.
///
/// The constructor, also known as `aeron.connect`, waits for the driver. In a coroutine write `async with
/// aeron.async_connect(driver) as client:` instead. `async with aeron.connect(driver)` works too, but
/// `connect` blocks the event loop until the driver responds.
///
/// The end of a `with` block closes the client, and everything that was opened through the client. The client
/// stays open as long as a publication, a subscription, a counter or a pending operation refers to it.
/// Closing the client releases its handlers. If a client is dropped without being closed, its handlers are no
/// longer called. Thread-safe.
///
/// One thread of the client calls the handlers, such as `on_available_image`. In a handler, a method that waits for
/// the driver raises `ReentrantCallError`: use the method with the prefix `async_`.
///
/// Args:
///     driver: A `MediaDriver`, the directory of a driver, or `None` for the directory that `AERON_DIR` names. Without
///         that variable, `None` stands for Aeron's default directory.
///     driver_timeout_ms: Milliseconds to wait for the driver. Default: `AERON_DRIVER_TIMEOUT`, or `10000`.
///     keepalive_interval_ns: Nanoseconds between keepalives. Default: `500000000`.
///     idle_sleep_duration_ns: Sleep of the conductor between two duty cycles, in nanoseconds. Default:
///         `AERON_CLIENT_IDLE_SLEEP_DURATION`, or `16000000`.
///     awaiting_sleep_duration_ns: Sleep between two checks in a call that waits for the driver, in
///         nanoseconds. Default: `1000000`.
///     resource_linger_duration_ns: Nanoseconds for which the memory of an ended image stays mapped. Default:
///         `AERON_CLIENT_RESOURCE_LINGER_DURATION`, or `3000000000`.
///     close_linger_duration_ns: Nanoseconds that a closing client waits before it unmaps memory. Default:
///         `0`.
///     pre_touch_mapped_memory: Whether all pages of a log are touched when it is mapped. Default:
///         `AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY`, or `False`.
///     client_name: Name of the client in the counters. Default: `AERON_CLIENT_NAME`, or no name.
///     use_conductor_agent_invoker: Whether the client has no threads, and the program calls `do_work`.
///         Default: `False`.
///     reconnect: Whether and how the client connects again after it has lost its driver: `True`, or a `Reconnect`.
///         Default: `False`. The client is then closed for good, as in Aeron.
///     max_idle_park_ns: Longest park of a waiting call, in nanoseconds, after a second without a result. Default:
///         `10000000`.
///     error_handler: Called as `error_handler(error)` with errors that no call can raise. Default:
///         `sys.unraisablehook` shows them.
///     on_available_image: Called as `on_available_image(image)` with each new image of a subscription that
///         has no handlers of its own.
///     on_unavailable_image: Called as `on_unavailable_image(image)` with each ended image of a subscription
///         that has no handlers of its own.
///     on_available_counter: Called as `on_available_counter(counters_reader, registration_id,
///         counter_id)` with each new counter of any client.
///     on_unavailable_counter: Called as `on_unavailable_counter(counters_reader, registration_id,
///         counter_id)` with each freed counter of any client.
///     on_close: Called without arguments when the client is closed.
///     on_publication_error: Called as `on_publication_error(frame)` with each `PublicationErrorFrame`.
///     on_disconnect: Called as `on_disconnect(error)` when a client with `reconnect` has lost its driver.
///     on_reconnect: Called as `on_reconnect(report)` with a `ReconnectReport` when the client has connected again and
///         the driver has all its resources.
///
/// Raises:
///     DriverTimeoutError: If no driver responds within the driver timeout.
///     ConfigurationError: If a setting is not valid, or the driver has another version.
///     DriverError: If the directory of the driver cannot be used.
///
/// Example:
///     ```python
///     with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
///         publication = client.add_publication("aeron:ipc", 1001)
///     ```
#[pyclass(frozen, weakref, module = "aeron", name = "Aeron")]
pub struct PyAeron {
    inner: OfProcess<Arc<ClientConnection>>,
    reporter: ErrorReporter,
    /// The handlers of the client itself. `__traverse__` shows them to the garbage collector.
    handlers: Mutex<Vec<EventHandler>>,
    max_idle_park_ns: u64,
    is_invoked: bool,
    /// Directory of the driver.
    aeron_dir: PathBuf,
    /// The embedded driver, if there is one. This reference keeps the driver alive while the client exists.
    driver: Option<Py<PyMediaDriver>>,
}

impl Drop for PyAeron {
    fn drop(&mut self) {
        // Without this, native code would still call the handlers of a client that the program did not close.
        let handlers = self.handlers.get_mut();
        let handlers = handlers.unwrap_or_else(PoisonError::into_inner);
        handlers.iter().for_each(EventHandler::clear);
        if let Ok(connection) = self.inner.get() {
            // `close` waits for handlers that are due. These handlers may need the GIL on another thread.
            Python::attach(|py| py.detach(|| connection.close()));
        }
    }
}

impl PyAeron {
    #[inline]
    fn get(&self) -> PyResult<&Aeron> {
        self.inner.get().map(|connection| &connection.aeron)
    }

    /// Longest park of a waiting call, in nanoseconds, after a second without a result.
    pub fn max_idle_park_ns(&self) -> u64 {
        self.max_idle_park_ns
    }

    /// Returns the driver, for another client.
    pub fn driver(&self, py: Python<'_>) -> DriverName {
        match &self.driver {
            Some(driver) => DriverName::Embedded(driver.clone_ref(py)),
            None => DriverName::Directory(self.aeron_dir.clone()),
        }
    }

    /// Returns the client. Raises `ForkedError` in a forked child.
    pub fn aeron(&self) -> PyResult<&Aeron> {
        self.get()
    }

    /// Whether the program runs the client's conductor.
    pub fn is_invoked(&self) -> bool {
        self.is_invoked
    }

    /// Calls `f`, which may wait for the driver or for a lock, without the GIL.
    fn waiting<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&Aeron) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        let aeron = self.get()?;
        py.detach(|| f(aeron)).map_err(|error| from_client(&error))
    }
}

with_block!(PyAeron);

#[pymethods]
impl PyAeron {
    /// Returns whether a command was sent and has no response yet.
    ///
    /// Args:
    ///     correlation_id: Correlation id of the command.
    ///
    /// Returns:
    ///     `True` if the response is outstanding.
    fn is_command_active(
        &self,
        #[pyo3(from_py_with = argument::correlation_id)] correlation_id: i64,
    ) -> PyResult<bool> {
        Ok(self.get()?.is_command_active(correlation_id))
    }

    /// Returns whether any command of this client has no response yet.
    ///
    /// Returns:
    ///     `True` if a response is outstanding.
    fn has_active_commands(&self) -> PyResult<bool> {
        Ok(self.get()?.has_active_commands())
    }

    /// Reserves an id that is unique among all clients and commands of the driver.
    ///
    /// Returns:
    ///     The id.
    fn next_correlation_id(&self) -> PyResult<i64> {
        Ok(self.get()?.next_correlation_id())
    }

    /// Runs one duty cycle of a client without threads (`use_conductor_agent_invoker`), and its handlers.
    ///
    /// The time between two calls must be shorter than the driver's client liveness timeout, else the client
    /// closes with an error. If another thread is inside a duty cycle, the call waits for the end of that
    /// duty cycle. A call from a handler runs no other handlers.
    ///
    /// Returns:
    ///     The amount of work; 0 if there was no work.
    fn do_work(&self) -> PyResult<usize> {
        let aeron = self.get()?;
        let work_count = aeron.do_work();
        Ok(if self.is_invoked {
            work_count + aeron.run_handlers(Duration::ZERO)
        } else {
            work_count
        })
    }

    /// Closes the client and everything that was opened through it. Idempotent.
    ///
    /// `close` calls handlers, such as `on_close`, and waits until they have returned. There is one exception: if these
    /// handlers wait for the thread that called `close`, they run after `close` has returned.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let connection = self.inner.get()?;
        py.detach(|| connection.close());
        self.reporter.clear();
        Ok(())
    }

    fn __aenter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        call_aio(slf.py(), "enter", (slf,))
    }

    fn __aexit__<'py>(
        slf: &Bound<'py, Self>,
        _type: &Bound<'py, PyAny>,
        _error: &Bound<'py, PyAny>,
        _traceback: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call_aio(slf.py(), "leave", (slf,))
    }

    /// Id of the client. The key of the client's heartbeat counter contains this id.
    #[getter]
    fn client_id(&self) -> PyResult<i64> {
        Ok(self.get()?.client_id())
    }

    /// Directory of the driver.
    #[getter]
    fn aeron_dir(&self) -> PyResult<String> {
        Ok(self.aeron_dir.display().to_string())
    }

    /// Reads the state of the driver, as `aeron.metrics.snapshot` does.
    ///
    /// Returns:
    ///     The state, of which this client is a part.
    ///
    /// Raises:
    ///     DriverTimeoutError: If there is no complete file of a driver.
    ///     DriverError: If the file has another version or is damaged.
    ///     OSError: If the loss report cannot be read.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let module = py.import("aeron.metrics")?;
        module.call_method1("snapshot", (self.aeron_dir()?,))
    }

    /// Whether the client has a driver. Only a client with `reconnect` can be open without one.
    #[getter]
    fn has_driver(&self, py: Python<'_>) -> PyResult<bool> {
        self.waiting(py, |aeron| Ok(aeron.has_driver()))
    }

    /// Whether the client was closed, by the program or by an error.
    #[getter]
    fn is_closed(&self) -> PyResult<bool> {
        Ok(self.get()?.is_closed())
    }

    /// The error that closed the client; `None` while it is open, or if the program closed it.
    #[getter]
    fn close_cause(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let cause = self.get()?.close_cause();
        Ok(cause
            .0
            .map(|error| from_client(&error).into_value(py).into_any()))
    }

    fn __repr__(&self) -> String {
        let aeron = &self.inner.anywhere().aeron;
        format!(
            "<Aeron client {}{}>",
            aeron.client_id(),
            if aeron.is_closed() { ", closed" } else { "" }
        )
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        let Ok(handlers) = self.handlers.try_lock() else {
            return Ok(());
        };
        handlers
            .iter()
            .try_for_each(|handler| handler.visit(&visit))
    }
}
