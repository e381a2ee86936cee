//! [`PyAeron`]: a client of a media driver.

mod settings;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aeron_client::{Aeron, Error, PendingOperation, SubscriptionHandlers};
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;

use self::settings::Settings;
use crate::argument::{self, Callable};
use crate::channel::Channel;
use crate::connection::{ClientConnection, DriverName};
use crate::counters::{PyCounter, PyCountersReader};
use crate::driver::PyMediaDriver;
use crate::errors::from_client;
use crate::events::{ErrorReporter, EventHandler, clone_all};
use crate::fork::OfProcess;
use crate::operations::{Owned, PyPendingOperation};
use crate::publication::{PyExclusivePublication, PyPublication};
use crate::subscription::PySubscription;

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

/// Starts `connect`, and returns its `PendingOperation` at once. `async with` closes the client.
///
/// Example:
///     ```python
///     async with aeron.async_connect(driver) as client:
///         publication = await client.async_add_publication("aeron:ipc", 1001)
///     ```
#[pyfunction]
#[pyo3(
    signature = (driver = None, **settings),
    text_signature = "(driver=None, **settings)"
)]
pub fn async_connect(
    py: Python<'_>,
    #[pyo3(from_py_with = argument::driver)] driver: Option<DriverName>,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyPendingOperation> {
    Settings::read(py, driver, settings)?.connect()
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

    /// Sends a command, without waiting for the driver. `convert` creates the Python object of the result.
    fn pending<T: Clone + Send + 'static>(
        slf: &Bound<'_, Self>,
        what: String,
        send: impl FnOnce(&Aeron) -> Result<PendingOperation<T>, Error> + Send,
        convert: impl FnOnce(&Bound<'_, PyAeron>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<PyPendingOperation> {
        let operation = slf.get().waiting(slf.py(), send)?;
        Ok(PyPendingOperation::new(what, operation, slf, convert))
    }

    fn image_handlers(&self, handlers: &ImageHandlers) -> SubscriptionHandlers {
        let native = |handler: &Option<EventHandler>| {
            let handler = handler.as_ref()?;
            Some(self.reporter.image_handler(handler))
        };
        SubscriptionHandlers {
            available_image: native(&handlers.available),
            unavailable_image: native(&handlers.unavailable),
        }
    }

    /// Creates a handler that the client owns. Also drops the client's handlers that native code has released.
    fn keep(&self, py: Python<'_>, handler: Callable) -> PyResult<EventHandler> {
        let handler = EventHandler::new(py, handler.0)?;
        let kept = handler.clone_ref(py);
        let mut handlers = self.handlers.lock().unwrap_or_else(PoisonError::into_inner);
        let (set, gone) = handlers
            .drain(..)
            .chain([kept])
            .partition(EventHandler::is_set);
        *handlers = set;
        // Python objects are dropped without the lock, because a finalizer may call this client.
        drop(handlers);
        drop::<Vec<_>>(gone);
        Ok(handler)
    }
}

/// The image handlers of one subscription.
struct ImageHandlers {
    available: Option<EventHandler>,
    unavailable: Option<EventHandler>,
}

impl ImageHandlers {
    fn new(
        py: Python<'_>,
        available: Option<Callable>,
        unavailable: Option<Callable>,
    ) -> PyResult<Self> {
        let handler = |callable: Callable| EventHandler::new(py, callable.0);
        Ok(Self {
            available: available.map(handler).transpose()?,
            unavailable: unavailable.map(handler).transpose()?,
        })
    }

    /// Returns the handlers as a list, for the object that owns them.
    fn all(self) -> Vec<EventHandler> {
        [self.available, self.unavailable]
            .into_iter()
            .flatten()
            .collect()
    }
}

#[pymethods]
impl PyAeron {
    #[new]
    #[pyo3(
        signature = (driver = None, **settings),
        text_signature = "(driver=None, *, driver_timeout_ms=None, keepalive_interval_ns=None, idle_sleep_duration_ns=None, awaiting_sleep_duration_ns=None, resource_linger_duration_ns=None, close_linger_duration_ns=None, pre_touch_mapped_memory=None, client_name=None, use_conductor_agent_invoker=None, reconnect=False, max_idle_park_ns=10000000, error_handler=None, on_available_image=None, on_unavailable_image=None, on_available_counter=None, on_unavailable_counter=None, on_close=None, on_publication_error=None, on_disconnect=None, on_reconnect=None)"
    )]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = argument::driver)] driver: Option<DriverName>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Self>> {
        let client = Settings::read(py, driver, settings)?
            .connect()?
            .wait(py, None)?;
        Ok(client.cast_bound::<Self>(py)?.clone().unbind())
    }

    /// Adds a publication, and waits for the driver. Publications with the same channel and stream id share one log.
    ///
    /// Args:
    ///     channel: A channel URI, such as `aeron:ipc`, or a `ChannelUriBuilder`.
    ///     stream_id: Stream id.
    ///
    /// Returns:
    ///     The publication.
    ///
    /// Raises:
    ///     InvalidArgumentError: If the channel is not ASCII, or is longer than 4095 bytes.
    ///     RegistrationError: If the driver refuses the request; the subclass names the reason.
    ///     DriverTimeoutError: If the driver does not respond within the driver timeout.
    ///     ClientClosedError: If the client is closed.
    ///
    /// Example:
    ///     ```python
    ///     publication = client.add_publication("aeron:udp?endpoint=localhost:20121", 1001)
    ///     ```
    fn add_publication(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = argument::channel)] channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
    ) -> PyResult<PyPublication> {
        let publication = slf.get().waiting(slf.py(), |aeron| {
            aeron.add_publication(&channel.0, stream_id)
        })?;
        Ok(PyPublication::new(publication, slf))
    }

    /// Starts `add_publication`, and returns its `PendingOperation` at once.
    fn async_add_publication(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = argument::channel)] channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
    ) -> PyResult<PyPendingOperation> {
        let what = format!("add_publication {} stream {stream_id}", channel.0);
        let send = |aeron: &Aeron| aeron.async_add_publication(&channel.0, stream_id);
        Self::pending(slf, what, send, |client, publication| {
            object(client, PyPublication::new(publication, client))
        })
    }

    /// Adds a publication that is the only writer of its log, and waits for the driver.
    ///
    /// Args:
    ///     channel: A channel URI, such as `aeron:ipc`, or a `ChannelUriBuilder`.
    ///     stream_id: Stream id.
    ///
    /// Returns:
    ///     The publication.
    ///
    /// Raises:
    ///     InvalidArgumentError: If the channel is not ASCII, or is longer than 4095 bytes.
    ///     RegistrationError: If the driver refuses the request; the subclass names the reason.
    ///     DriverTimeoutError: If the driver does not respond within the driver timeout.
    ///     ClientClosedError: If the client is closed.
    fn add_exclusive_publication(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = argument::channel)] channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
    ) -> PyResult<PyExclusivePublication> {
        let publication = slf.get().waiting(slf.py(), |aeron| {
            aeron.add_exclusive_publication(&channel.0, stream_id)
        })?;
        Ok(PyExclusivePublication::new(publication, slf))
    }

    /// Starts `add_exclusive_publication`, and returns its `PendingOperation` at once.
    fn async_add_exclusive_publication(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = argument::channel)] channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
    ) -> PyResult<PyPendingOperation> {
        let what = format!("add_exclusive_publication {} stream {stream_id}", channel.0);
        let send = |aeron: &Aeron| aeron.async_add_exclusive_publication(&channel.0, stream_id);
        Self::pending(slf, what, send, |client, publication| {
            object(client, PyExclusivePublication::new(publication, client))
        })
    }

    /// Adds a subscription, and waits for the driver.
    ///
    /// Args:
    ///     channel: A channel URI, such as `aeron:ipc`, or a `ChannelUriBuilder`.
    ///     stream_id: Stream id.
    ///     on_available_image: Called as `on_available_image(image)` with each new image. If both handlers are
    ///         `None`, the handlers of the client are called instead.
    ///     on_unavailable_image: Called as `on_unavailable_image(image)` with each image that ended.
    ///
    /// Returns:
    ///     The subscription.
    ///
    /// Raises:
    ///     InvalidArgumentError: If the channel is not ASCII, or is longer than 4095 bytes.
    ///     RegistrationError: If the driver refuses the request; the subclass names the reason.
    ///     DriverTimeoutError: If the driver does not respond within the driver timeout.
    ///     ClientClosedError: If the client is closed.
    #[pyo3(signature = (channel, stream_id, *, on_available_image = None, on_unavailable_image = None))]
    fn add_subscription(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = argument::channel)] channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
        #[pyo3(from_py_with = argument::on_available_image)] on_available_image: Option<Callable>,
        #[pyo3(from_py_with = argument::on_unavailable_image)] on_unavailable_image: Option<
            Callable,
        >,
    ) -> PyResult<PySubscription> {
        let handlers = ImageHandlers::new(slf.py(), on_available_image, on_unavailable_image)?;
        let native = slf.get().image_handlers(&handlers);
        let handlers = handlers.all();
        let subscription = slf
            .get()
            .waiting(slf.py(), |aeron| match handlers.is_empty() {
                true => aeron.add_subscription(&channel.0, stream_id),
                false => aeron.add_subscription_with(&channel.0, stream_id, native),
            })?;
        PySubscription::new(subscription, slf, handlers)
    }

    /// Starts `add_subscription`, and returns its `PendingOperation` at once.
    #[pyo3(signature = (channel, stream_id, *, on_available_image = None, on_unavailable_image = None))]
    fn async_add_subscription(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = argument::channel)] channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
        #[pyo3(from_py_with = argument::on_available_image)] on_available_image: Option<Callable>,
        #[pyo3(from_py_with = argument::on_unavailable_image)] on_unavailable_image: Option<
            Callable,
        >,
    ) -> PyResult<PyPendingOperation> {
        let handlers = ImageHandlers::new(slf.py(), on_available_image, on_unavailable_image)?;
        let native = slf.get().image_handlers(&handlers);
        let handlers = handlers.all();
        let operation = slf
            .get()
            .waiting(slf.py(), |aeron| match handlers.is_empty() {
                true => aeron.async_add_subscription(&channel.0, stream_id),
                false => aeron.async_add_subscription_with(&channel.0, stream_id, native),
            })?;
        let what = format!("add_subscription {} stream {stream_id}", channel.0);
        let convert = |py: Python<'_>, owned: &Owned, subscription| {
            let handlers = clone_all(py, owned.handlers());
            let subscription = PySubscription::new(subscription, owned.client(py)?, handlers)?;
            Ok(Py::new(py, subscription)?.into_any())
        };
        let park_ns = slf.get().max_idle_park_ns;
        let operation =
            PyPendingOperation::with_handlers(what, operation, park_ns, handlers, convert);
        Ok(operation.of(slf))
    }

    /// Adds a counter that is freed when the client closes, and waits for the driver.
    ///
    /// Args:
    ///     type_id: Type of the counter. Counters of programs have types from 1000 on.
    ///     label: Label of the counter, up to 380 bytes.
    ///     key: Key of the counter, up to 112 bytes.
    ///
    /// Returns:
    ///     The counter.
    ///
    /// Raises:
    ///     InvalidArgumentError: If `label` or `key` is too long.
    ///     RegistrationError: If the driver refuses the request; the subclass names the reason.
    ///     DriverTimeoutError: If the driver does not respond within the driver timeout.
    ///     ClientClosedError: If the client is closed.
    #[pyo3(signature = (type_id, label, key = None))]
    fn add_counter(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = argument::type_id)] type_id: i32,
        #[pyo3(from_py_with = argument::label)] label: String,
        #[pyo3(from_py_with = argument::key)] key: Option<PyBackedBytes>,
    ) -> PyResult<PyCounter> {
        let counter = slf.get().waiting(slf.py(), |aeron| {
            aeron.add_counter(type_id, bytes_of(&key), &label)
        })?;
        Ok(PyCounter::new(counter, slf))
    }

    /// Starts `add_counter`, and returns its `PendingOperation` at once.
    #[pyo3(signature = (type_id, label, key = None))]
    fn async_add_counter(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = argument::type_id)] type_id: i32,
        #[pyo3(from_py_with = argument::label)] label: String,
        #[pyo3(from_py_with = argument::key)] key: Option<PyBackedBytes>,
    ) -> PyResult<PyPendingOperation> {
        let what = format!("add_counter {label:?}");
        let send = |aeron: &Aeron| aeron.async_add_counter(type_id, bytes_of(&key), &label);
        Self::pending(slf, what, send, counter_of)
    }

    /// Adds a static counter, which outlives the client, and waits for the driver.
    ///
    /// If the driver already has a static counter with the same type and registration id, the call
    /// returns that counter.
    ///
    /// Args:
    ///     type_id: Type of the counter. Counters of programs have types from 1000 on.
    ///     label: Label of the counter, up to 380 bytes.
    ///     registration_id: Registration id of the counter, an integer that the program chooses.
    ///     key: Key of the counter, up to 112 bytes.
    ///
    /// Returns:
    ///     The counter.
    ///
    /// Raises:
    ///     InvalidArgumentError: If `label` or `key` is too long.
    ///     RegistrationError: If the driver refuses the request; the subclass names the reason.
    ///     DriverTimeoutError: If the driver does not respond within the driver timeout.
    ///     ClientClosedError: If the client is closed.
    #[pyo3(signature = (type_id, label, registration_id, key = None))]
    fn add_static_counter(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = argument::type_id)] type_id: i32,
        #[pyo3(from_py_with = argument::label)] label: String,
        #[pyo3(from_py_with = argument::registration_id)] registration_id: i64,
        #[pyo3(from_py_with = argument::key)] key: Option<PyBackedBytes>,
    ) -> PyResult<PyCounter> {
        let counter = slf.get().waiting(slf.py(), |aeron| {
            aeron.add_static_counter(type_id, bytes_of(&key), &label, registration_id)
        })?;
        Ok(PyCounter::new(counter, slf))
    }

    /// Starts `add_static_counter`, and returns its `PendingOperation` at once. It cannot be cancelled.
    #[pyo3(signature = (type_id, label, registration_id, key = None))]
    fn async_add_static_counter(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = argument::type_id)] type_id: i32,
        #[pyo3(from_py_with = argument::label)] label: String,
        #[pyo3(from_py_with = argument::registration_id)] registration_id: i64,
        #[pyo3(from_py_with = argument::key)] key: Option<PyBackedBytes>,
    ) -> PyResult<PyPendingOperation> {
        let what = format!("add_static_counter {label:?}");
        let send = |aeron: &Aeron| {
            aeron.async_add_static_counter(type_id, bytes_of(&key), &label, registration_id)
        };
        Self::pending(slf, what, send, counter_of)
    }

    /// Removes a concurrent or exclusive publication by its registration id, without waiting for
    /// the driver.
    ///
    /// Args:
    ///     registration_id: Registration id of the publication.
    ///
    /// Returns:
    ///     A `PendingOperation` whose result is `True` if the client had the publication.
    ///
    /// Raises:
    ///     ClientClosedError: If the client is closed.
    fn async_remove_publication(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = argument::registration_id)] registration_id: i64,
    ) -> PyResult<PyPendingOperation> {
        removal(slf, registration_id, Aeron::async_remove_publication)
    }

    /// Removes a subscription by its registration id, without waiting for the driver.
    ///
    /// Args:
    ///     registration_id: Registration id of the subscription.
    ///
    /// Returns:
    ///     A `PendingOperation` whose result is `True` if the client had the subscription.
    ///
    /// Raises:
    ///     ClientClosedError: If the client is closed.
    fn async_remove_subscription(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = argument::registration_id)] registration_id: i64,
    ) -> PyResult<PyPendingOperation> {
        removal(slf, registration_id, Aeron::async_remove_subscription)
    }

    /// Removes a counter by its registration id, without waiting for the driver.
    ///
    /// Args:
    ///     registration_id: Registration id of the counter.
    ///
    /// Returns:
    ///     A `PendingOperation` whose result is `True` if the client had the counter.
    ///
    /// Raises:
    ///     ClientClosedError: If the client is closed.
    fn async_remove_counter(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = argument::registration_id)] registration_id: i64,
    ) -> PyResult<PyPendingOperation> {
        removal(slf, registration_id, Aeron::async_remove_counter)
    }

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

    /// Reserves a session id that no publication of the stream has. Waits for the driver.
    ///
    /// Args:
    ///     stream_id: Stream id.
    ///
    /// Returns:
    ///     The session id.
    ///
    /// Raises:
    ///     RegistrationError: If the driver refuses the request; the subclass names the reason.
    ///     DriverTimeoutError: If the driver does not respond within the driver timeout.
    ///     ClientClosedError: If the client is closed.
    fn next_session_id(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
    ) -> PyResult<i32> {
        self.waiting(py, |aeron| aeron.next_session_id(stream_id))
    }

    /// Starts `next_session_id`, and returns its `PendingOperation` at once.
    fn async_next_session_id(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
    ) -> PyResult<PyPendingOperation> {
        let what = format!("next_session_id of stream {stream_id}");
        let send = |aeron: &Aeron| aeron.async_next_session_id(stream_id);
        Self::pending(slf, what, send, |client, id| {
            Ok(id.into_pyobject(client.py())?.into_any().unbind())
        })
    }

    /// Adds a handler that is called for each new counter of any client.
    ///
    /// Args:
    ///     handler: Called as `handler(counters_reader, registration_id, counter_id)` on the client's
    ///         handler thread.
    ///
    /// Returns:
    ///     An id for the removal of the handler.
    fn add_available_counter_handler(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::handler)] handler: Callable,
    ) -> PyResult<i64> {
        let aeron = self.get()?;
        let handler = self.keep(py, handler)?;
        Ok(aeron.add_available_counter_handler(self.reporter.counter_handler(&handler)))
    }

    /// Removes a handler that `add_available_counter_handler` added.
    ///
    /// Args:
    ///     handler_id: Id that `add_available_counter_handler` returned.
    ///
    /// Returns:
    ///     `True` if the client had the handler.
    fn remove_available_counter_handler(
        &self,
        #[pyo3(from_py_with = argument::handler_id)] handler_id: i64,
    ) -> PyResult<bool> {
        Ok(self.get()?.remove_available_counter_handler(handler_id))
    }

    /// Adds a handler that is called for each freed counter of any client.
    ///
    /// Args:
    ///     handler: Called as `handler(counters_reader, registration_id, counter_id)` on the client's
    ///         handler thread.
    ///
    /// Returns:
    ///     An id for the removal of the handler.
    fn add_unavailable_counter_handler(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::handler)] handler: Callable,
    ) -> PyResult<i64> {
        let aeron = self.get()?;
        let handler = self.keep(py, handler)?;
        Ok(aeron.add_unavailable_counter_handler(self.reporter.counter_handler(&handler)))
    }

    /// Removes a handler that `add_unavailable_counter_handler` added.
    ///
    /// Args:
    ///     handler_id: Id that `add_unavailable_counter_handler` returned.
    ///
    /// Returns:
    ///     `True` if the client had the handler.
    fn remove_unavailable_counter_handler(
        &self,
        #[pyo3(from_py_with = argument::handler_id)] handler_id: i64,
    ) -> PyResult<bool> {
        Ok(self.get()?.remove_unavailable_counter_handler(handler_id))
    }

    /// Adds a handler that is called once when the client is closed, by the program or by an error.
    ///
    /// Args:
    ///     handler: Called without arguments.
    ///
    /// Returns:
    ///     An id for the removal of the handler.
    fn add_close_handler(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::handler)] handler: Callable,
    ) -> PyResult<i64> {
        let aeron = self.get()?;
        let handler = self.keep(py, handler)?;
        Ok(aeron.add_close_handler(self.reporter.close_handler(&handler)))
    }

    /// Removes a handler that `add_close_handler` added.
    ///
    /// Args:
    ///     handler_id: Id that `add_close_handler` returned.
    ///
    /// Returns:
    ///     `True` if the client had the handler.
    fn remove_close_handler(
        &self,
        #[pyo3(from_py_with = argument::handler_id)] handler_id: i64,
    ) -> PyResult<bool> {
        Ok(self.get()?.remove_close_handler(handler_id))
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

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _type: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __aenter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("aeron.aio")?.call_method1("enter", (slf,))
    }

    fn __aexit__<'py>(
        slf: &Bound<'py, Self>,
        _type: &Bound<'py, PyAny>,
        _error: &Bound<'py, PyAny>,
        _traceback: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("aeron.aio")?.call_method1("leave", (slf,))
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

    /// A reader of all counters of the driver and its clients. After a reconnection, get another one.
    #[getter]
    fn counters_reader(&self) -> PyResult<PyCountersReader> {
        Ok(PyCountersReader::new(self.get()?.counters_reader()))
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

fn bytes_of(bytes: &Option<PyBackedBytes>) -> &[u8] {
    bytes.as_deref().unwrap_or_default()
}

/// Creates the Python object of a resource.
fn object<T: Into<PyClassInitializer<R>>, R: PyClass>(
    client: &Bound<'_, PyAeron>,
    resource: T,
) -> PyResult<Py<PyAny>> {
    Ok(Py::new(client.py(), resource)?.into_any())
}

fn counter_of(client: &Bound<'_, PyAeron>, counter: aeron_client::Counter) -> PyResult<Py<PyAny>> {
    object(client, PyCounter::new(counter, client))
}

fn removal(
    client: &Bound<'_, PyAeron>,
    registration_id: i64,
    remove: impl FnOnce(&Aeron, i64) -> Result<PendingOperation<bool>, Error> + Send,
) -> PyResult<PyPendingOperation> {
    let what = format!("removal of {registration_id}");
    let send = |aeron: &Aeron| remove(aeron, registration_id);
    PyAeron::pending(client, what, send, |client, was_there| {
        let was_there = was_there.into_pyobject(client.py())?.to_owned();
        Ok(was_there.into_any().unbind())
    })
}
