//! Methods that add and remove publications, subscriptions and counters.

use aeron_client::{Aeron, Error, PendingOperation, SubscriptionHandlers};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use super::PyAeron;
use super::handlers::image_handler;
use crate::argument::{self, Callable};
use crate::channel::Channel;
use crate::counters::{PyCounter, PyCountersReader};
use crate::events::{EventHandler, clone_all};
use crate::operations::{Owned, PyPendingOperation};
use crate::publication::{PyExclusivePublication, PyPublication};
use crate::subscription::PySubscription;

/// Defines methods in pairs: a method that adds a resource and waits for the driver, and a method with the prefix
/// `async_` that returns a `PendingOperation`. The arguments of the native method are in braces.
macro_rules! resource_methods {
    (
        $(
            $(#[doc = $doc:literal])+
            $name:ident, $async_name:ident $signature:tt [$($arg:ident: $type:ty),*] -> $class:ident
            { $($native:expr),* } as $what:expr; $($more:literal)?
        )*
    ) => {
        #[pymethods]
        impl PyAeron {$(
            $(#[doc = $doc])+
            #[pyo3(signature = $signature)]
            fn $name(
                slf: &Bound<'_, Self>,
                $(#[pyo3(from_py_with = argument::$arg)] $arg: $type,)*
            ) -> PyResult<$class> {
                let resource = slf.get().waiting(slf.py(), |aeron| aeron.$name($($native),*))?;
                Ok($class::new(resource, slf))
            }

            #[doc = concat!("Starts `", stringify!($name), "`, and returns its `PendingOperation` at once." $(, $more)?)]
            #[pyo3(signature = $signature)]
            fn $async_name(
                slf: &Bound<'_, Self>,
                $(#[pyo3(from_py_with = argument::$arg)] $arg: $type,)*
            ) -> PyResult<PyPendingOperation> {
                let what = $what;
                let send = |aeron: &Aeron| aeron.$async_name($($native),*);
                Self::pending(slf, what, send, |client, resource| {
                    Ok(Py::new(client.py(), $class::new(resource, client))?.into_any())
                })
            }
        )*}
    };
}

resource_methods! {
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
    add_publication, async_add_publication (channel, stream_id) [channel: Channel, stream_id: i32] -> PyPublication
    { &channel.0, stream_id } as format!("add_publication {} stream {stream_id}", channel.0);

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
    add_exclusive_publication, async_add_exclusive_publication (channel, stream_id)
    [channel: Channel, stream_id: i32] -> PyExclusivePublication
    { &channel.0, stream_id } as format!("add_exclusive_publication {} stream {stream_id}", channel.0);

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
    add_counter, async_add_counter (type_id, label, key = None)
    [type_id: i32, label: String, key: Option<PyBackedBytes>] -> PyCounter
    { type_id, bytes_of(&key), &label } as format!("add_counter {label:?}");

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
    add_static_counter, async_add_static_counter (type_id, label, registration_id, key = None)
    [type_id: i32, label: String, registration_id: i64, key: Option<PyBackedBytes>] -> PyCounter
    { type_id, bytes_of(&key), &label, registration_id } as format!("add_static_counter {label:?}");
    " It cannot be cancelled."
}

#[pymethods]
impl PyAeron {
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
        let (handlers, native) =
            slf.get()
                .image_handlers(slf.py(), on_available_image, on_unavailable_image)?;
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
        let (handlers, native) =
            slf.get()
                .image_handlers(slf.py(), on_available_image, on_unavailable_image)?;
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

    /// A reader of all counters of the driver and its clients. After a reconnection, get another one.
    #[getter]
    fn counters_reader(&self) -> PyResult<PyCountersReader> {
        Ok(PyCountersReader::new(self.get()?.counters_reader()))
    }
}

impl PyAeron {
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

    /// Returns the image handlers of one subscription: as a list for the object that owns them, and in their native
    /// form.
    fn image_handlers(
        &self,
        py: Python<'_>,
        available: Option<Callable>,
        unavailable: Option<Callable>,
    ) -> PyResult<(Vec<EventHandler>, SubscriptionHandlers)> {
        let mut owned = Vec::new();
        let mut native = |callable: Option<Callable>| {
            let Some(callable) = callable else {
                return Ok(None);
            };
            let handler = EventHandler::new(py, callable.0)?;
            let native = image_handler(&self.reporter, &handler);
            owned.push(handler);
            PyResult::Ok(Some(native))
        };
        let native = SubscriptionHandlers {
            available_image: native(available)?,
            unavailable_image: native(unavailable)?,
        };
        Ok((owned, native))
    }
}

fn bytes_of(bytes: &Option<PyBackedBytes>) -> &[u8] {
    bytes.as_deref().unwrap_or_default()
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
