//! [`PyAeron`]: a client of a media driver.

use std::sync::Arc;
use std::time::Duration;

use aeron_client::{Aeron, Context, Error, HandlerMode, SubscriptionHandlers};
use pyo3::prelude::*;

use crate::argument::{self, Callable};
use crate::channel::Channel;
use crate::connection::{Connection, DriverName, find_driver};
use crate::counters::{PyCounter, PyCountersReader};
use crate::driver::PyMediaDriver;
use crate::errors::from_client;
use crate::events::ErrorReporter;
use crate::fork::OfProcess;
use crate::operations;
use crate::publication::{PyExclusivePublication, PyPublication};
use crate::subscription::PySubscription;
use crate::waiting::is_interrupted;

/// A client of a media driver. Thread-safe.
///
/// Close it, or use it as a context manager: everything that was opened through it is closed with it.
#[pyclass(frozen, module = "aeron._aeron", name = "Aeron")]
pub struct PyAeron {
    inner: OfProcess<Arc<Connection>>,
    reporter: ErrorReporter,
    max_idle_park_ns: u64,
    is_invoked: bool,
    /// Keeps an embedded driver alive for as long as its client.
    _driver: Option<Py<PyMediaDriver>>,
}

impl Drop for PyAeron {
    fn drop(&mut self) {
        if let Ok(connection) = self.inner.get() {
            // Handlers that are due now may need the GIL on their own thread.
            Python::attach(|py| py.detach(|| connection.close()));
        }
    }
}

impl PyAeron {
    #[inline]
    fn get(&self) -> PyResult<&Aeron> {
        self.inner.get().map(|connection| &connection.aeron)
    }

    /// Calls what waits for the driver, without the GIL.
    fn waiting<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&Aeron) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        let aeron = self.get()?;
        py.detach(|| f(aeron)).map_err(|error| from_client(&error))
    }

    fn image_handlers(
        &self,
        available: Option<Callable>,
        unavailable: Option<Callable>,
    ) -> SubscriptionHandlers {
        SubscriptionHandlers {
            available_image: available.map(|handler| self.reporter.image_handler(handler.0)),
            unavailable_image: unavailable.map(|handler| self.reporter.image_handler(handler.0)),
        }
    }
}

#[pymethods]
impl PyAeron {
    #[new]
    #[pyo3(signature = (
        driver = None,
        *,
        driver_timeout_ms = None,
        keepalive_interval_ns = None,
        idle_sleep_duration_ns = None,
        awaiting_sleep_duration_ns = None,
        resource_linger_duration_ns = None,
        close_linger_duration_ns = None,
        pre_touch_mapped_memory = None,
        client_name = None,
        use_conductor_agent_invoker = None,
        max_idle_park_ns = 10_000_000,
        error_handler = None,
        on_available_image = None,
        on_unavailable_image = None,
        on_available_counter = None,
        on_unavailable_counter = None,
        on_close = None,
        on_publication_error = None,
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        driver: Option<DriverName<'_>>,
        #[pyo3(from_py_with = argument::driver_timeout_ms)] driver_timeout_ms: Option<u64>,
        #[pyo3(from_py_with = argument::keepalive_interval_ns)] keepalive_interval_ns: Option<u64>,
        #[pyo3(from_py_with = argument::idle_sleep_duration_ns)] idle_sleep_duration_ns: Option<
            u64,
        >,
        #[pyo3(from_py_with = argument::awaiting_sleep_duration_ns)]
        awaiting_sleep_duration_ns: Option<u64>,
        #[pyo3(from_py_with = argument::resource_linger_duration_ns)]
        resource_linger_duration_ns: Option<u64>,
        #[pyo3(from_py_with = argument::close_linger_duration_ns)] close_linger_duration_ns: Option<
            u64,
        >,
        pre_touch_mapped_memory: Option<bool>,
        client_name: Option<String>,
        use_conductor_agent_invoker: Option<bool>,
        #[pyo3(from_py_with = argument::max_idle_park_ns)] max_idle_park_ns: u64,
        #[pyo3(from_py_with = argument::error_handler)] error_handler: Option<Callable>,
        #[pyo3(from_py_with = argument::on_available_image)] on_available_image: Option<Callable>,
        #[pyo3(from_py_with = argument::on_unavailable_image)] on_unavailable_image: Option<
            Callable,
        >,
        #[pyo3(from_py_with = argument::on_available_counter)] on_available_counter: Option<
            Callable,
        >,
        #[pyo3(from_py_with = argument::on_unavailable_counter)] on_unavailable_counter: Option<
            Callable,
        >,
        #[pyo3(from_py_with = argument::on_close)] on_close: Option<Callable>,
        #[pyo3(from_py_with = argument::on_publication_error)] on_publication_error: Option<
            Callable,
        >,
    ) -> PyResult<Self> {
        let mut context = Context::from_env().map_err(|error| from_client(&error))?;
        fn replace<T>(setting: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *setting = value;
            }
        }
        replace(&mut context.driver_timeout_ms, driver_timeout_ms);
        replace(&mut context.keepalive_interval_ns, keepalive_interval_ns);
        replace(&mut context.idle_sleep_duration_ns, idle_sleep_duration_ns);
        replace(
            &mut context.awaiting_sleep_duration_ns,
            awaiting_sleep_duration_ns,
        );
        replace(
            &mut context.resource_linger_duration_ns,
            resource_linger_duration_ns,
        );
        replace(
            &mut context.close_linger_duration_ns,
            close_linger_duration_ns,
        );
        replace(
            &mut context.pre_touch_mapped_memory,
            pre_touch_mapped_memory,
        );
        replace(&mut context.client_name, client_name);
        let embedded = find_driver(&mut context, driver)?;
        replace(
            &mut context.use_conductor_agent_invoker,
            use_conductor_agent_invoker,
        );

        let reporter = ErrorReporter::new(error_handler.map(|handler| handler.0));
        context.handler_mode = HandlerMode::Queued;
        context.interrupt_check = Some(Arc::new(is_interrupted));
        context.error_handler = reporter.error_handler();
        context.available_image_handler =
            on_available_image.map(|handler| reporter.image_handler(handler.0));
        context.unavailable_image_handler =
            on_unavailable_image.map(|handler| reporter.image_handler(handler.0));
        context.available_counter_handler =
            on_available_counter.map(|handler| reporter.counter_handler(handler.0));
        context.unavailable_counter_handler =
            on_unavailable_counter.map(|handler| reporter.counter_handler(handler.0));
        context.close_handler = on_close.map(|handler| reporter.close_handler(handler.0));
        context.publication_error_handler =
            on_publication_error.map(|handler| reporter.publication_error_handler(handler.0));

        let is_invoked = context.use_conductor_agent_invoker;
        let connection = Connection::open(py, context)?;
        Ok(Self {
            inner: OfProcess::new(connection),
            reporter,
            max_idle_park_ns,
            is_invoked,
            _driver: embedded,
        })
    }

    /// Adds a publication, sharing the one that exists on the channel and stream if there is one; waits for the driver.
    fn add_publication(
        &self,
        py: Python<'_>,
        channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
    ) -> PyResult<PyPublication> {
        let publication = self.waiting(py, |aeron| aeron.add_publication(&channel.0, stream_id))?;
        Ok(PyPublication::new(publication, self.max_idle_park_ns))
    }

    /// Adds a publication that nobody shares; waits for the driver.
    fn add_exclusive_publication(
        &self,
        py: Python<'_>,
        channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
    ) -> PyResult<PyExclusivePublication> {
        let publication = self.waiting(py, |aeron| {
            aeron.add_exclusive_publication(&channel.0, stream_id)
        })?;
        Ok(PyExclusivePublication::new(
            publication,
            self.max_idle_park_ns,
        ))
    }

    /// Adds a subscription; waits for the driver. Without handlers for its images it gets the client's.
    #[pyo3(signature = (channel, stream_id, *, on_available_image = None, on_unavailable_image = None))]
    fn add_subscription(
        &self,
        py: Python<'_>,
        channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
        #[pyo3(from_py_with = argument::on_available_image)] on_available_image: Option<Callable>,
        #[pyo3(from_py_with = argument::on_unavailable_image)] on_unavailable_image: Option<
            Callable,
        >,
    ) -> PyResult<PySubscription> {
        let has_handlers = on_available_image.is_some() || on_unavailable_image.is_some();
        let handlers = self.image_handlers(on_available_image, on_unavailable_image);
        let subscription = self.waiting(py, |aeron| match has_handlers {
            true => aeron.add_subscription_with(&channel.0, stream_id, handlers),
            false => aeron.add_subscription(&channel.0, stream_id),
        })?;
        PySubscription::new(py, subscription, self.max_idle_park_ns)
    }

    /// Adds a counter, which lives as long as the client; waits for the driver. `key` has at most 112 bytes, `label` 380.
    #[pyo3(signature = (type_id, label, key = None))]
    fn add_counter(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::type_id)] type_id: i32,
        label: &str,
        key: Option<&[u8]>,
    ) -> PyResult<PyCounter> {
        self.waiting(py, |aeron| {
            aeron.add_counter(type_id, key.unwrap_or_default(), label)
        })
        .map(PyCounter::new)
    }

    /// Adds a counter that outlives the client, or finds the one with this type and registration id.
    #[pyo3(signature = (type_id, label, registration_id, key = None))]
    fn add_static_counter(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::type_id)] type_id: i32,
        label: &str,
        #[pyo3(from_py_with = argument::registration_id)] registration_id: i64,
        key: Option<&[u8]>,
    ) -> PyResult<PyCounter> {
        self.waiting(py, |aeron| {
            aeron.add_static_counter(type_id, key.unwrap_or_default(), label, registration_id)
        })
        .map(PyCounter::new)
    }

    /// As `add_publication`, without waiting: answers a registration id for `get_publication`.
    fn async_add_publication(
        &self,
        py: Python<'_>,
        channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
    ) -> PyResult<i64> {
        self.waiting(py, |aeron| {
            aeron.async_add_publication(&channel.0, stream_id)
        })
    }

    /// The publication with this registration id, `None` until the driver has answered. Raises the driver's refusal once.
    fn get_publication(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::registration_id)] registration_id: i64,
    ) -> PyResult<Option<PyPublication>> {
        let found = self.waiting(py, |aeron| aeron.find_publication(registration_id))?;
        Ok(found.map(|publication| PyPublication::new(publication, self.max_idle_park_ns)))
    }

    /// As `add_exclusive_publication`, without waiting: answers a registration id for `get_exclusive_publication`.
    fn async_add_exclusive_publication(
        &self,
        py: Python<'_>,
        channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
    ) -> PyResult<i64> {
        self.waiting(py, |aeron| {
            aeron.async_add_exclusive_publication(&channel.0, stream_id)
        })
    }

    /// The publication with this registration id, `None` until the driver has answered. Raises the driver's refusal once.
    fn get_exclusive_publication(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::registration_id)] registration_id: i64,
    ) -> PyResult<Option<PyExclusivePublication>> {
        let found = self.waiting(py, |aeron| {
            aeron.find_exclusive_publication(registration_id)
        })?;
        Ok(
            found
                .map(|publication| PyExclusivePublication::new(publication, self.max_idle_park_ns)),
        )
    }

    /// As `add_subscription`, without waiting: answers a registration id for `get_subscription`.
    #[pyo3(signature = (channel, stream_id, *, on_available_image = None, on_unavailable_image = None))]
    fn async_add_subscription(
        &self,
        py: Python<'_>,
        channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
        #[pyo3(from_py_with = argument::on_available_image)] on_available_image: Option<Callable>,
        #[pyo3(from_py_with = argument::on_unavailable_image)] on_unavailable_image: Option<
            Callable,
        >,
    ) -> PyResult<i64> {
        let has_handlers = on_available_image.is_some() || on_unavailable_image.is_some();
        let handlers = self.image_handlers(on_available_image, on_unavailable_image);
        self.waiting(py, |aeron| match has_handlers {
            true => aeron.async_add_subscription_with(&channel.0, stream_id, handlers),
            false => aeron.async_add_subscription(&channel.0, stream_id),
        })
    }

    /// The subscription with this registration id, `None` until the driver has answered. Raises the driver's refusal once.
    fn get_subscription(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::registration_id)] registration_id: i64,
    ) -> PyResult<Option<PySubscription>> {
        let found = self.waiting(py, |aeron| aeron.find_subscription(registration_id))?;
        found
            .map(|subscription| PySubscription::new(py, subscription, self.max_idle_park_ns))
            .transpose()
    }

    /// As `add_counter`, without waiting: answers a registration id for `get_counter`.
    #[pyo3(signature = (type_id, label, key = None))]
    fn async_add_counter(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::type_id)] type_id: i32,
        label: &str,
        key: Option<&[u8]>,
    ) -> PyResult<i64> {
        self.waiting(py, |aeron| {
            aeron.async_add_counter(type_id, key.unwrap_or_default(), label)
        })
    }

    /// As `add_static_counter`, without waiting: answers a correlation id for `get_counter`.
    #[pyo3(signature = (type_id, label, registration_id, key = None))]
    fn async_add_static_counter(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::type_id)] type_id: i32,
        label: &str,
        #[pyo3(from_py_with = argument::registration_id)] registration_id: i64,
        key: Option<&[u8]>,
    ) -> PyResult<i64> {
        self.waiting(py, |aeron| {
            aeron.async_add_static_counter(type_id, key.unwrap_or_default(), label, registration_id)
        })
    }

    /// The counter that was added with this id, `None` until the driver has answered. Raises the driver's refusal once.
    fn get_counter(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::correlation_id)] correlation_id: i64,
    ) -> PyResult<Option<PyCounter>> {
        Ok(self
            .waiting(py, |aeron| aeron.find_counter(correlation_id))?
            .map(PyCounter::new))
    }

    /// Gives up a publication of either kind by its registration id, whether its add was answered or not; answers whether
    /// the id was known.
    fn async_remove_publication(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::registration_id)] registration_id: i64,
    ) -> PyResult<bool> {
        self.waiting(py, |aeron| aeron.async_remove_publication(registration_id))
    }

    /// Gives up a subscription by its registration id; as `async_remove_publication`.
    fn async_remove_subscription(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::registration_id)] registration_id: i64,
    ) -> PyResult<bool> {
        self.waiting(py, |aeron| aeron.async_remove_subscription(registration_id))
    }

    /// Gives up a counter by its registration id; as `async_remove_publication`.
    fn async_remove_counter(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::registration_id)] registration_id: i64,
    ) -> PyResult<bool> {
        self.waiting(py, |aeron| aeron.async_remove_counter(registration_id))
    }

    /// Whether the command with this id was sent and is not answered.
    fn is_command_active(
        &self,
        #[pyo3(from_py_with = argument::correlation_id)] correlation_id: i64,
    ) -> PyResult<bool> {
        Ok(self.get()?.is_command_active(correlation_id))
    }

    /// Whether any command was sent and is not answered.
    fn has_active_commands(&self) -> PyResult<bool> {
        Ok(self.get()?.has_active_commands())
    }

    /// An id that no other client, and no command, gets.
    fn next_correlation_id(&self) -> PyResult<i64> {
        Ok(self.get()?.next_correlation_id())
    }

    /// A session id that no publication uses on the stream; waits for the driver.
    fn next_session_id(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
    ) -> PyResult<i32> {
        self.waiting(py, |aeron| aeron.next_session_id(stream_id))
    }

    /// As `next_session_id`, without waiting: answers a correlation id for `poll_operation`.
    fn async_next_session_id(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
    ) -> PyResult<i64> {
        self.waiting(py, |aeron| aeron.async_next_session_id(stream_id))
    }

    /// What became of a destination command, a rejection or a request for a session id: `None` until the driver has
    /// answered, then once its value (0 but for session ids). Raises the driver's refusal once.
    fn poll_operation(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::correlation_id)] correlation_id: i64,
    ) -> PyResult<Option<i32>> {
        self.waiting(py, |aeron| aeron.poll_operation(correlation_id))
    }

    /// Adds `handler(counters_reader, registration_id, counter_id)` for counters of any client that become available;
    /// answers an id for its removal.
    fn add_available_counter_handler(
        &self,
        #[pyo3(from_py_with = argument::handler)] handler: Callable,
    ) -> PyResult<i64> {
        Ok(self
            .get()?
            .add_available_counter_handler(self.reporter.counter_handler(handler.0)))
    }

    /// Removes a handler by the id of its addition; answers whether there was one.
    fn remove_available_counter_handler(
        &self,
        #[pyo3(from_py_with = argument::handler_id)] handler_id: i64,
    ) -> PyResult<bool> {
        Ok(self.get()?.remove_available_counter_handler(handler_id))
    }

    /// As `add_available_counter_handler`, for counters that are gone.
    fn add_unavailable_counter_handler(
        &self,
        #[pyo3(from_py_with = argument::handler)] handler: Callable,
    ) -> PyResult<i64> {
        Ok(self
            .get()?
            .add_unavailable_counter_handler(self.reporter.counter_handler(handler.0)))
    }

    /// Removes a handler by the id of its addition; answers whether there was one.
    fn remove_unavailable_counter_handler(
        &self,
        #[pyo3(from_py_with = argument::handler_id)] handler_id: i64,
    ) -> PyResult<bool> {
        Ok(self.get()?.remove_unavailable_counter_handler(handler_id))
    }

    /// Adds `handler()`, called once when the client is closed, whatever closed it; answers an id for its removal.
    fn add_close_handler(
        &self,
        #[pyo3(from_py_with = argument::handler)] handler: Callable,
    ) -> PyResult<i64> {
        Ok(self
            .get()?
            .add_close_handler(self.reporter.close_handler(handler.0)))
    }

    /// Removes a handler by the id of its addition; answers whether there was one.
    fn remove_close_handler(
        &self,
        #[pyo3(from_py_with = argument::handler_id)] handler_id: i64,
    ) -> PyResult<bool> {
        Ok(self.get()?.remove_close_handler(handler_id))
    }

    /// One duty cycle of a client without threads (`use_conductor_agent_invoker`), its handlers included; answers how much
    /// was done. To be called more often than the inter-service timeout.
    fn do_work(&self) -> PyResult<usize> {
        let aeron = self.get()?;
        let work_count = aeron.do_work();
        Ok(if self.is_invoked {
            work_count + aeron.run_handlers(Duration::ZERO)
        } else {
            work_count
        })
    }

    /// Closes the client and everything it opened. Handlers that this makes due have run when it returns. Idempotent.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let connection = self.inner.get()?;
        py.detach(|| connection.close());
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

    /// Awaitable form of `add_publication`.
    fn add_publication_async<'py>(
        slf: &Bound<'py, Self>,
        channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let id = slf
            .get()
            .async_add_publication(slf.py(), channel, stream_id)?;
        added(slf, "get_publication", "async_remove_publication", id)
    }

    /// Awaitable form of `add_exclusive_publication`.
    fn add_exclusive_publication_async<'py>(
        slf: &Bound<'py, Self>,
        channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let id = slf
            .get()
            .async_add_exclusive_publication(slf.py(), channel, stream_id)?;
        added(
            slf,
            "get_exclusive_publication",
            "async_remove_publication",
            id,
        )
    }

    /// Awaitable form of `add_subscription`.
    #[pyo3(signature = (channel, stream_id, *, on_available_image = None, on_unavailable_image = None))]
    fn add_subscription_async<'py>(
        slf: &Bound<'py, Self>,
        channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
        #[pyo3(from_py_with = argument::on_available_image)] on_available_image: Option<Callable>,
        #[pyo3(from_py_with = argument::on_unavailable_image)] on_unavailable_image: Option<
            Callable,
        >,
    ) -> PyResult<Bound<'py, PyAny>> {
        let id = slf.get().async_add_subscription(
            slf.py(),
            channel,
            stream_id,
            on_available_image,
            on_unavailable_image,
        )?;
        added(slf, "get_subscription", "async_remove_subscription", id)
    }

    /// Awaitable form of `next_session_id`.
    fn next_session_id_async<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let id = self.async_next_session_id(py, stream_id)?;
        let aeron = self.get()?.clone();
        operations::value(py, move || aeron.poll_operation(id))
    }

    /// Awaitable form of `add_counter`.
    #[pyo3(signature = (type_id, label, key = None))]
    fn add_counter_async<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = argument::type_id)] type_id: i32,
        label: &str,
        key: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let id = slf.get().async_add_counter(slf.py(), type_id, label, key)?;
        added(slf, "get_counter", "async_remove_counter", id)
    }

    /// Id of the client, which its heartbeat counter carries.
    #[getter]
    fn client_id(&self) -> PyResult<i64> {
        Ok(self.get()?.client_id())
    }

    /// Whether the client is closed, by the program or by an error.
    #[getter]
    fn is_closed(&self) -> PyResult<bool> {
        Ok(self.get()?.is_closed())
    }

    /// The error that closed the client, `None` while it is open or when the program closed it.
    #[getter]
    fn close_cause(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let cause = self.get()?.close_cause();
        Ok(cause
            .0
            .map(|error| from_client(&error).into_value(py).into_any()))
    }

    /// Reads all counters of the driver and its clients.
    #[getter]
    fn counters_reader(&self) -> PyResult<PyCountersReader> {
        Ok(PyCountersReader::new(self.get()?.counters_reader().clone()))
    }

    fn __repr__(&self) -> String {
        let aeron = &self.inner.anywhere().aeron;
        format!(
            "<Aeron client {}{}>",
            aeron.client_id(),
            if aeron.is_closed() { ", closed" } else { "" }
        )
    }
}

/// Waits for what was added with this id.
fn added<'py>(
    client: &Bound<'py, PyAeron>,
    get: &str,
    remove: &str,
    id: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let arguments = (client, client.getattr(get)?, client.getattr(remove)?, id);
    client
        .py()
        .import("aeron.aio")?
        .call_method1("added", arguments)
}
