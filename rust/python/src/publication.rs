//! [`PyPublication`] and [`PyExclusivePublication`]: what a program sends through.

use std::ffi::CStr;

use aeron_client::{Error, ExclusivePublication, Publication};
use aeron_memory::log::AppendError;
use aeron_memory::log::append::Messages;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::argument::{self, Argument};
use crate::buffers::with_bytes;
use crate::channel::Channel;
use crate::claim::PyBufferClaim;
use crate::client::PyAeron;
use crate::condition::Condition;
use crate::errors::{from_append, from_client, from_offer};
use crate::fast::Method;
use crate::fork::OfProcess;
use crate::offer::{self, Outlet};
use crate::operations::{PyPendingOperation, nothing};
use crate::pipeline::offer_arrow;
use crate::source::{self, Sink};
use crate::waiting::Patience;

/// Sends batches into a publication.
struct BatchSink<'a, 'py, P> {
    py: Python<'py>,
    outlet: &'a P,
    sent_any: bool,
}

impl<P: Outlet> Sink for BatchSink<'_, '_, P> {
    fn take<M: Messages + Sync>(
        &mut self,
        messages: &M,
        first: usize,
        length: usize,
    ) -> PyResult<usize> {
        match offer::offer_batch(self.py, self.outlet, messages, first, length) {
            Ok(sent) => {
                self.sent_any |= sent > 0;
                Ok(sent)
            }
            // What was sent is answered first; the caller resumes there and gets the error.
            Err(_) if self.sent_any => Ok(0),
            Err(error) => Err(error),
        }
    }
}

fn waiting<P: Sync, R: Send>(
    py: Python<'_>,
    publication: &P,
    f: impl FnOnce(&P) -> Result<R, Error> + Send,
) -> PyResult<R> {
    py.detach(|| f(publication))
        .map_err(|error| from_client(&error))
}

const OFFER_DOC: &CStr = c"offer($self, message, *, reserved_value=None)
--

Appends one message: anything with the buffer protocol. Returns the stream position after the message, or one of the false
constants `NOT_CONNECTED`, `BACK_PRESSURED` and `ADMIN_ACTION`. Never blocks.

`reserved_value` is an integer, or a function that returns one for each fragment's payload. The function is called once for
each fragment, before any fragment is appended: if it raises, nothing is sent.";

/// A class for one kind of publication: what both have, and methods of its own.
macro_rules! publication_class {
    ($(#[$doc:meta])* $class:ident($python:literal) wraps $publication:ident { $($own:tt)* }) => {
        $(#[$doc])*
        #[pyclass(frozen, weakref, module = "aeron._aeron", name = $python)]
        pub struct $class {
            inner: OfProcess<$publication>,
            max_idle_park_ns: u64,
            /// Keeps the client open as long as the publication is in use.
            client: Py<PyAeron>,
        }

        impl $class {
            pub fn new(publication: $publication, client: &Bound<'_, PyAeron>) -> Self {
                Self {
                    inner: OfProcess::new(publication),
                    max_idle_park_ns: client.get().max_idle_park_ns(),
                    client: client.clone().unbind(),
                }
            }

            #[inline]
            fn get(&self) -> PyResult<&$publication> {
                self.inner.get()
            }

            fn open(&self, value: Result<i64, AppendError>) -> PyResult<i64> {
                value.map_err(|error| from_append(error, || self.inner.anywhere().close_cause()))
            }
        }

        impl Method for $class {
            const METHOD: &'static CStr = c"offer";
            const DESCRIPTION: &'static CStr = OFFER_DOC;
            const GENERAL: &'static CStr = c"_offer";
            const TAKES_TWO: bool = false;

            #[inline]
            fn call(&self, message: &Bound<'_, PyAny>, _: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
                offer::offer(message.py(), self.get()?, message)
            }
        }

        #[pymethods]
        impl $class {
            /// `offer` in its general form.
            #[pyo3(name = "_offer", signature = (message, *, reserved_value = None))]
            fn offer_in_general(
                &self,
                message: &Bound<'_, PyAny>,
                reserved_value: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Py<PyAny>> {
                match reserved_value {
                    None => offer::offer(message.py(), self.get()?, message),
                    Some(value) => offer::offer_reserved(message.py(), self.get()?, message, value),
                }
            }

            /// Sends one message that is given in several parts; answers as `offer`.
            fn offer_parts(&self, parts: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                offer::offer_parts(parts.py(), self.get()?, parts)
            }

            /// Sends many messages; answers how many were appended, and the caller resumes there.
            #[pyo3(signature = (messages, *, offsets = None, start = 0))]
            fn offer_batch(
                &self,
                messages: &Bound<'_, PyAny>,
                offsets: Option<&Bound<'_, PyAny>>,
                #[pyo3(from_py_with = argument::start)] start: usize,
            ) -> PyResult<usize> {
                let mut sink = BatchSink { py: messages.py(), outlet: self.get()?, sent_any: false };
                source::send(messages, offsets, start, &mut sink)
            }

            /// Sends the rows of an Arrow record batch (columns `value` and, if there, `reserved_value`), or the values of an array,
            /// from `start` on, for up to `timeout` seconds; answers how many were appended, and the caller resumes there.
            #[pyo3(
                signature = (data, *, start = 0, timeout = Some(0.0)),
                text_signature = "($self, data, *, start=0, timeout=0.0)"
            )]
            fn offer_arrow(
                &self,
                data: &Bound<'_, PyAny>,
                #[pyo3(from_py_with = argument::start)] start: usize,
                #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
            ) -> PyResult<usize> {
                let patience = Patience::new(timeout, self.max_idle_park_ns)?;
                offer_arrow(self.get()?, data, start, patience)
            }

            /// Sends, waiting up to `timeout` seconds (`None`: for ever) for a subscriber and for room; answers the position.
            #[pyo3(signature = (message, timeout = None))]
            fn publish(&self, message: &Bound<'_, PyAny>, #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>) -> PyResult<i64> {
                let patience = Patience::new(timeout, self.max_idle_park_ns)?;
                offer::publish(message.py(), self.get()?, message, patience)
            }

            /// Claims a frame with a payload of `length` bytes. Returns a `BufferClaim`, or as `offer`.
            ///
            /// The claim's view is private memory that the commit copies into the log. With `direct` it is the log itself:
            /// see `BufferClaim`.
            #[pyo3(signature = (length, *, direct = false))]
            fn try_claim(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = argument::length)] length: usize,
                #[pyo3(from_py_with = argument::direct)] direct: bool,
            ) -> PyResult<Py<PyAny>> {
                offer::try_claim(py, self.get()?, length, direct)
            }

            /// As `try_claim`, waiting up to `timeout` seconds (`None`: without a limit) for a subscriber and for room.
            #[pyo3(signature = (length, timeout = None, *, direct = false))]
            fn claim(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = argument::length)] length: usize,
                #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
                #[pyo3(from_py_with = argument::direct)] direct: bool,
            ) -> PyResult<PyBufferClaim> {
                let patience = Patience::new(timeout, self.max_idle_park_ns)?;
                offer::claim(py, self.get()?, length, patience, direct)
            }

            /// Sends without blocking the event loop; answers the position.
            fn offer_async<'py>(
                slf: &Bound<'py, Self>,
                message: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                slf.py().import("aeron.aio")?.call_method1("offer", (slf, message))
            }

            /// Sends all messages from index `start` on without blocking the event loop: a coroutine that returns how many there
            /// were. If it is cancelled or fails, the exception's attribute `sent` says how many were sent.
            #[pyo3(signature = (messages, *, offsets = None, start = 0))]
            fn offer_batch_async<'py>(
                slf: &Bound<'py, Self>,
                messages: &Bound<'py, PyAny>,
                offsets: Option<&Bound<'py, PyAny>>,
                #[pyo3(from_py_with = argument::start)] start: usize,
            ) -> PyResult<Bound<'py, PyAny>> {
                slf.py()
                    .import("aeron.aio")?
                    .call_method1("offer_batch", (slf, messages, offsets, start))
            }

            /// Whether an offer may succeed, or would raise.
            #[getter(_is_ready)]
            fn is_ready(&self) -> PyResult<Condition> {
                let publication = self.get()?.clone();
                Ok(Condition::new(move || {
                    publication.available_window().is_ok_and(|window| window > 0) || publication.is_closed()
                }))
            }

            /// Waits up to `timeout` seconds (`None`: for ever) for a subscriber.
            #[pyo3(signature = (timeout = None))]
            fn wait_connected(&self, py: Python<'_>, #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>) -> PyResult<()> {
                offer::wait_connected(py, self.get()?, Patience::new(timeout, self.max_idle_park_ns)?)
            }

            /// As `wait_connected`, without blocking the event loop: a coroutine.
            #[pyo3(signature = (timeout = None))]
            fn wait_connected_async<'py>(
                slf: &Bound<'py, Self>,
                #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
            ) -> PyResult<Bound<'py, PyAny>> {
                slf.py().import("aeron.aio")?.call_method1("connected", (slf, timeout))
            }

            /// As `claim`, without blocking the event loop: a coroutine.
            #[pyo3(signature = (length, timeout = None, *, direct = false))]
            fn claim_async<'py>(
                slf: &Bound<'py, Self>,
                #[pyo3(from_py_with = argument::length)] length: usize,
                #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
                #[pyo3(from_py_with = argument::direct)] direct: bool,
            ) -> PyResult<Bound<'py, PyAny>> {
                slf.py()
                    .import("aeron.aio")?
                    .call_method1("claim", (slf, length, timeout, direct))
            }

            /// Whether a subscriber is connected, or the publication is closed.
            #[getter(_is_connected_or_closed)]
            fn is_connected_or_closed(&self) -> PyResult<Condition> {
                let publication = self.get()?.clone();
                Ok(Condition::new(move || publication.is_connected() || publication.is_closed()))
            }

            /// Waits up to `timeout` seconds (`None`: for ever) until everything published before the call has left the publisher;
            /// returns whether it has.
            ///
            /// Over UDP that is when the driver's sender has sent it, which says nothing of receipt; over IPC when every subscriber
            /// has consumed it. Raises `PublicationClosedError` if the publication is closed, or its driver died.
            #[pyo3(signature = (timeout = None))]
            fn flush(&self, py: Python<'_>, #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>) -> PyResult<bool> {
                offer::flush(py, self.get()?, Patience::new(timeout, self.max_idle_park_ns)?)
            }

            /// Closes the publication without waiting for the driver. From any thread; idempotent.
            fn close(&self, py: Python<'_>) -> PyResult<()> {
                let publication = self.get()?;
                py.detach(|| publication.close());
                Ok(())
            }

            /// Closes the publication and ends its stream at once, for everyone who shares it.
            fn revoke(&self, py: Python<'_>) -> PyResult<()> {
                let publication = self.get()?;
                py.detach(|| publication.revoke());
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

            /// Channel URI as it was given.
            #[getter]
            fn channel(&self) -> PyResult<&str> {
                Ok(self.get()?.channel())
            }

            /// Stream id as it was given.
            #[getter]
            fn stream_id(&self) -> PyResult<i32> {
                Ok(self.get()?.stream_id())
            }

            /// Tells the streams of a channel and stream id apart.
            #[getter]
            fn session_id(&self) -> PyResult<i32> {
                Ok(self.get()?.session_id())
            }

            /// Names this publication to the driver.
            #[getter]
            fn registration_id(&self) -> PyResult<i64> {
                Ok(self.get()?.registration_id())
            }

            /// Registration id of the first add of a shared publication.
            #[getter]
            fn original_registration_id(&self) -> PyResult<i64> {
                Ok(self.get()?.original_registration_id())
            }

            /// Whether this add made the publication, rather than sharing one that existed.
            #[getter]
            fn is_original(&self) -> PyResult<bool> {
                Ok(self.get()?.is_original())
            }

            /// Id of the stream's first term.
            #[getter]
            fn initial_term_id(&self) -> PyResult<i32> {
                Ok(self.get()?.initial_term_id())
            }

            /// Length of a term, in bytes.
            #[getter]
            fn term_buffer_length(&self) -> PyResult<usize> {
                Ok(self.get()?.term_buffer_length())
            }

            /// Base-two logarithm of the term length.
            #[getter]
            fn position_bits_to_shift(&self) -> PyResult<u32> {
                Ok(self.get()?.position_bits_to_shift())
            }

            /// Largest message, in bytes.
            #[getter]
            fn max_message_length(&self) -> PyResult<usize> {
                Ok(self.get()?.max_message_length())
            }

            /// Largest payload of one frame, in bytes: the most that can be claimed.
            #[getter]
            fn max_payload_length(&self) -> PyResult<usize> {
                Ok(self.get()?.max_payload_length())
            }

            /// Position at which the stream ends.
            #[getter]
            fn max_possible_position(&self) -> PyResult<i64> {
                Ok(self.get()?.max_possible_position())
            }

            /// Position up to which the stream is written. Raises once closed.
            #[getter]
            fn position(&self) -> PyResult<i64> {
                self.open(self.get()?.position())
            }

            /// Position up to which the driver lets the stream grow. Raises once closed.
            #[getter]
            fn position_limit(&self) -> PyResult<i64> {
                self.open(self.get()?.position_limit())
            }

            /// Counter id of the position limit.
            #[getter]
            fn position_limit_id(&self) -> PyResult<i32> {
                Ok(self.get()?.position_limit_id())
            }

            /// Bytes that may be offered before the limit, 0 or less when there are none. Raises once closed.
            #[getter]
            fn available_window(&self) -> PyResult<i64> {
                self.open(self.get()?.available_window())
            }

            /// Whether anybody receives the stream; `False` once closed.
            #[getter]
            fn is_connected(&self) -> PyResult<bool> {
                Ok(self.get()?.is_connected())
            }

            /// Whether the publication, or its client, is closed.
            #[getter]
            fn is_closed(&self) -> PyResult<bool> {
                Ok(self.get()?.is_closed())
            }

            /// Counter id of the channel's status; -1 where the channel has none (IPC).
            #[getter]
            fn channel_status_id(&self) -> PyResult<i32> {
                Ok(self.get()?.channel_status_id())
            }

            /// Status of the channel, a value of `ChannelStatus`: 1 active (always for IPC), 0 initialising, -1 errored or closed, 2 closing.
            #[getter]
            fn channel_status(&self) -> PyResult<i64> {
                Ok(self.get()?.channel_status())
            }

            /// Addresses that the channel sends from, while it is active; none for IPC.
            #[getter]
            fn local_socket_addresses(&self) -> PyResult<Vec<String>> {
                Ok(self.get()?.local_socket_addresses())
            }

            /// Adds a destination to send to to a channel with `control-mode=manual`, and waits for the driver. Returns its id.
            fn add_destination(&self, py: Python<'_>, #[pyo3(from_py_with = argument::channel)] channel: Channel) -> PyResult<i64> {
                waiting(py, self.get()?, |publication| publication.add_destination(&channel.0))
            }

            /// Removes a destination, named by its channel or its id, and waits for the driver.
            fn remove_destination(&self, py: Python<'_>, #[pyo3(from_py_with = argument::destination)] destination: DestinationName) -> PyResult<()> {
                waiting(py, self.get()?, |publication| match &destination {
                    DestinationName::Id(id) => publication.remove_destination_by_id(*id),
                    DestinationName::Channel(channel) => publication.remove_destination(&channel.0),
                })
            }

            /// As `add_destination`, without waiting: returns a `PendingOperation`.
            fn async_add_destination(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = argument::channel)] channel: Channel,
            ) -> PyResult<PyPendingOperation> {
                let operation = waiting(py, self.get()?, |publication| {
                    publication.async_add_destination(&channel.0)
                })?;
                let what = format!("add_destination {}", channel.0);
                let convert = |client: &Bound<'_, PyAeron>, id: i64| {
                    Ok(id.into_pyobject(client.py())?.into_any().unbind())
                };
                Ok(PyPendingOperation::new(what, operation, self.client.bind(py), convert))
            }

            /// As `remove_destination`, without waiting: returns a `PendingOperation`, which cannot be cancelled.
            fn async_remove_destination(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = argument::destination)] destination: DestinationName,
            ) -> PyResult<PyPendingOperation> {
                let operation = waiting(py, self.get()?, |publication| match &destination {
                    DestinationName::Id(id) => publication.async_remove_destination_by_id(*id),
                    DestinationName::Channel(channel) => publication.async_remove_destination(&channel.0),
                })?;
                let what = "remove_destination".to_owned();
                Ok(PyPendingOperation::new(what, operation, self.client.bind(py), nothing))
            }

            fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
                visit.call(&self.client)
            }

            fn __repr__(&self) -> String {
                let publication = self.inner.anywhere();
                let state = if publication.is_closed() { "closed" } else { "open" };
                format!(
                    "<{} {} stream {} session {}, {state}>",
                    $python,
                    publication.channel(),
                    publication.stream_id(),
                    publication.session_id()
                )
            }

            $($own)*
        }
    };
}

/// How a destination is named for its removal.
enum DestinationName {
    Id(i64),
    Channel(Channel),
}

impl Argument for DestinationName {
    fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        match value.cast::<PyInt>() {
            Ok(id) => i64::convert(id, name).map(Self::Id),
            Err(_) => Channel::convert(value, name).map(Self::Channel),
        }
    }
}

publication_class! {
    /// A publication that any number of threads may use at once, and that clients of the same driver share.
    ///
    /// Sending never blocks; `publish` and `claim` wait.
    PyPublication("Publication") wraps Publication {}
}

publication_class! {
    /// A publication that is the only writer of its stream, and faster for it.
    ///
    /// It serves one thread at a time: a second thread inside a sending method gets `ReentrantCallError`. Everything else may
    /// be called from any thread. Sending never blocks; `publish` and `claim` wait.
    PyExclusivePublication("ExclusivePublication") wraps ExclusivePublication {
        /// Appends a frame of `length` payload bytes that subscribers skip; answers the position, or as `offer`.
        fn append_padding(&self, py: Python<'_>, #[pyo3(from_py_with = argument::length)] length: usize) -> PyResult<Py<PyAny>> {
            let publication = self.get()?;
            offer::answer(py, publication, publication.append_padding(length))
        }

        /// Appends ready-made frames that continue the stream; answers the position, or as `offer`.
        fn offer_block(&self, block: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
            let publication = self.get()?;
            let outcome = with_bytes(block, "block", |bytes| publication.offer_block(bytes))?;
            offer::answer(block.py(), publication, outcome)
        }

        /// Id of the active term.
        #[getter]
        fn term_id(&self) -> PyResult<i32> {
            self.get()?.term_id().map_err(|error| from_offer(error, aeron_client::CloseCause::default))
        }

        /// Where the next frame begins in the active term, in bytes.
        #[getter]
        fn term_offset(&self) -> PyResult<usize> {
            self.get()?.term_offset().map_err(|error| from_offer(error, aeron_client::CloseCause::default))
        }
    }
}
