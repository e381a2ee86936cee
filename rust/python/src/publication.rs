//! [`PyPublication`] and [`PyExclusivePublication`]: the objects through which a program sends messages.

use std::ffi::CStr;

use aeron_client::{Error, ExclusivePublication, Publication, RefusedAttempts};
use aeron_memory::log::AppendError;
use aeron_memory::log::append::MessageBatch;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::argument::{self, Argument};
use crate::attributes::attributes;
use crate::buffers::with_bytes;
use crate::calls::call_aio;
use crate::channel::Channel;
use crate::claim::PyBufferClaim;
use crate::client::PyAeron;
use crate::condition::Condition;
use crate::errors::{from_append, from_client, from_offer};
use crate::fast::Method;
use crate::fork::OfProcess;
use crate::offer::{self, Outlet};
use crate::operations::{PyPendingOperation, nothing};
use crate::pipeline::arrow_offer::offer_arrow;
use crate::snapshot::snapshot;
use crate::source::{self, Sink};
use crate::waiting::WaitPolicy;
use crate::with_block::with_block;

snapshot! {
    /// Numbers of attempts to send that sent nothing. Immutable. Comparison and pickling use the values.
    PyRefusedAttempts("RefusedAttempts") {
        /// Attempts while no subscriber was connected.
        not_connected: u64,
        /// Attempts while subscribers had not consumed enough, or the network was too slow.
        back_pressured: u64,
        /// Attempts while the log was rotating to its next term.
        admin_action: u64,
    }

    fn __repr__(&self) -> String {
        format!(
            "RefusedAttempts(not_connected={}, back_pressured={}, admin_action={})",
            self.not_connected, self.back_pressured, self.admin_action
        )
    }
}

impl From<RefusedAttempts> for PyRefusedAttempts {
    fn from(refused: RefusedAttempts) -> Self {
        Self {
            not_connected: refused.not_connected,
            back_pressured: refused.back_pressured,
            admin_action: refused.admin_action,
        }
    }
}

/// Appends batches of messages to a publication.
struct BatchSink<'a, 'py, P> {
    py: Python<'py>,
    outlet: &'a P,
    sent_any: bool,
}

impl<P: Outlet> Sink for BatchSink<'_, '_, P> {
    fn take<M: MessageBatch + Sync>(
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
            // If messages were sent before the error, 0 makes `source::send` stop and return their number. The program
            // then resumes after these messages and gets the error.
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

Appends one message. Never blocks.

Args:
    message: Any object with the buffer protocol.
    reserved_value: A 64-bit integer, or a function that returns one for each fragment's payload. The
        function is called before any fragment is appended: if it raises, nothing is sent.

Returns:
    The stream position after the message in bytes, or one of the false constants `NOT_CONNECTED`,
    `BACK_PRESSURED` and `ADMIN_ACTION`. If `offer` returns a constant, nothing was sent, and the call may be
    repeated.

Raises:
    PublicationClosedError: If the publication, its client or its driver is closed.
    MessageTooLongError: If the message is longer than `max_message_length`.
    MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
        new one.
    ReentrantCallError: If the publication is exclusive and another thread is sending.

Example:
    ```python
    if not publication.offer(b\"hello\"):
        print(\"not sent: try again\")
    ```";

/// Defines one class of publications: the methods that all publications have, and the methods of this class only.
macro_rules! publication_class {
    ($(#[$doc:meta])* $class:ident($python:literal) wraps $publication:ident { $($own:tt)* }) => {
        $(#[$doc])*
        #[pyclass(frozen, weakref, module = "aeron", name = $python)]
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

        attributes! {
            $class from get

            /// Channel URI that the program passed.
            channel: &str,

            /// Stream id that the program passed.
            stream_id: i32,

            /// Session id, which distinguishes the publishers of a channel and stream.
            session_id: i32,

            /// Number of drivers that had the publication before the current one.
            ///
            /// A client with `reconnect` gives its publications to the next driver. Positions and, unless the channel
            /// has one, the session id begin again with each driver.
            generation: u64,

            /// Registration id of the publication in the driver.
            registration_id: i64,

            /// Registration id of the first publication that shares this log.
            original_registration_id: i64,

            /// Whether this publication created its log; `False` if it shares a log that existed before.
            is_original: bool,

            /// Id of the stream's first term.
            initial_term_id: i32,

            /// Length of a term, in bytes.
            term_buffer_length: usize,

            /// Base-two logarithm of the term length.
            position_bits_to_shift: u32,

            /// Maximum length of a message, in bytes.
            max_message_length: usize,

            /// Maximum length of the payload of one frame, in bytes. It is also the maximum length of a claim.
            max_payload_length: usize,

            /// Largest position that the stream can reach, in bytes.
            max_possible_position: i64,

            /// Counter id of the position limit.
            position_limit_id: i32,

            /// Whether a subscriber receives the stream; `False` if the publication is closed.
            is_connected: bool,

            /// Whether the publication or its client is closed.
            is_closed: bool,

            /// Counter id of the channel's status; -1 for channels without a status (IPC).
            channel_status_id: i32,

            /// Status of the channel, a value of `ChannelStatus`.
            ///
            /// 1 is active, 0 initialising, -1 errored or closed, 2 closing. An open IPC publication is always active.
            channel_status: i64,

            /// Addresses from which the channel sends while it is active; empty for IPC.
            local_socket_addresses: Vec<String>,
        }

        with_block!($class);

        #[pymethods]
        impl $class {
            /// General form of `offer`, for calls in any form. `offer` passes calls with keywords to this method.
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

            /// Appends one message that consists of several parts. Never blocks.
            ///
            /// Args:
            ///     parts: The parts in order: an iterable of objects with the buffer protocol.
            ///
            /// Returns:
            ///     The stream position after the message in bytes, or one of the false constants that `offer` returns.
            ///
            /// Raises:
            ///     PublicationClosedError: If the publication, its client or its driver is closed.
            ///     MessageTooLongError: If the message is longer than `max_message_length`.
            ///     MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
            ///         new one.
            ///     ReentrantCallError: If the publication is exclusive and another thread is sending.
            fn offer_parts(&self, parts: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                offer::offer_parts(parts.py(), self.get()?, parts)
            }

            /// Appends as many messages as there is room for. Never blocks.
            ///
            /// Args:
            ///     messages: A list of buffers, a two-dimensional array, an array of records, an Arrow array, or one
            ///         buffer with `offsets`.
            ///     offsets: Offsets of the messages in the buffer `messages`, and the offset of the last message's end,
            ///         in bytes.
            ///     start: Index of the first message to send.
            ///
            /// Returns:
            ///     The number of messages that were appended. Resume at `start` plus that number.
            ///
            /// Raises:
            ///     PublicationClosedError: If the publication, its client or its driver is closed.
            ///     MessageTooLongError: If a message is longer than `max_message_length`.
            ///     MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
            ///         new one.
            ///     ReentrantCallError: If the publication is exclusive and another thread is sending.
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

            /// Appends the rows of a table or record batch, or the values of an array.
            ///
            /// The data may be of any library with the Arrow C interface: pyarrow, Polars, pandas, DuckDB. Rows have
            /// the column `value` of bytes or text. Their column `reserved_value` of integers is optional. Dictionaries
            /// and views are converted.
            ///
            /// Args:
            ///     data: An object with the Arrow C data or stream interface. A stream is read as a whole in each call.
            ///         If it can be read only once, pass `timeout=None`.
            ///     start: Index of the first message to send.
            ///     timeout: Seconds to wait for room. `None` waits without a limit, and 0 does not wait.
            ///
            /// Returns:
            ///     The number of rows that were appended. Resume at `start` plus that number.
            ///
            /// Raises:
            ///     PublicationClosedError: If the publication, its client or its driver is closed.
            ///     MessageTooLongError: If a message is longer than `max_message_length`.
            ///     MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
            ///         new one.
            ///     ReentrantCallError: If the publication is exclusive and another thread is sending.
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
                let patience = WaitPolicy::new(timeout, self.max_idle_park_ns)?;
                offer_arrow(self.get()?, data, start, patience)
            }

            /// Appends one message, and waits for a subscriber and for room.
            ///
            /// Args:
            ///     message: Any object with the buffer protocol.
            ///     timeout: Seconds to wait. `None` waits without a limit.
            ///
            /// Returns:
            ///     The stream position after the message, in bytes.
            ///
            /// Raises:
            ///     NotConnectedError: If no subscriber connects within `timeout`.
            ///     BackPressureTimeoutError: If the subscribers do not make room within `timeout`.
            ///     PublicationClosedError: If the publication, its client or its driver is closed.
            ///     MessageTooLongError: If a message is longer than `max_message_length`.
            ///     MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
            ///         new one.
            ///     ReentrantCallError: If the publication is exclusive and another thread is sending.
            #[pyo3(signature = (message, timeout = None))]
            fn publish(&self, message: &Bound<'_, PyAny>, #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>) -> PyResult<i64> {
                let patience = WaitPolicy::new(timeout, self.max_idle_park_ns)?;
                offer::publish(message.py(), self.get()?, message, patience)
            }

            /// Claims a frame in the log, so that the program can write the message in place. Never blocks.
            ///
            /// Args:
            ///     length: Length of the payload, in bytes.
            ///     direct: Whether the memoryview of the claim is the log's memory itself. If `False`, it is a buffer
            ///         that the commit copies into the log; see `BufferClaim`.
            ///
            /// Returns:
            ///     A `BufferClaim`, or one of the false constants that `offer` returns.
            ///
            /// Raises:
            ///     PublicationClosedError: If the publication, its client or its driver is closed.
            ///     MessageTooLongError: If `length` is greater than `max_payload_length`.
            ///     MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
            ///         new one.
            ///     ReentrantCallError: If the publication is exclusive and another thread is sending.
            ///
            /// Example:
            ///     ```python
            ///     claim = publication.try_claim(5)
            ///     if claim:
            ///         with claim as view:
            ///             view[:] = b"hello"
            ///     ```
            #[pyo3(signature = (length, *, direct = false))]
            fn try_claim(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = argument::length)] length: usize,
                #[pyo3(from_py_with = argument::direct)] direct: bool,
            ) -> PyResult<Py<PyAny>> {
                offer::try_claim(py, self.get()?, length, direct)
            }

            /// Claims a frame in the log, and waits for a subscriber and for room.
            ///
            /// Args:
            ///     length: Length of the payload, in bytes.
            ///     timeout: Seconds to wait. `None` waits without a limit.
            ///     direct: Whether the memoryview of the claim is the log's memory itself. If `False`, it is a buffer
            ///         that the commit copies into the log; see `BufferClaim`.
            ///
            /// Returns:
            ///     A `BufferClaim`.
            ///
            /// Raises:
            ///     NotConnectedError: If no subscriber connects within `timeout`.
            ///     BackPressureTimeoutError: If the subscribers do not make room within `timeout`.
            ///     PublicationClosedError: If the publication, its client or its driver is closed.
            ///     MessageTooLongError: If `length` is greater than `max_payload_length`.
            ///     MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
            ///         new one.
            ///     ReentrantCallError: If the publication is exclusive and another thread is sending.
            #[pyo3(signature = (length, timeout = None, *, direct = false))]
            fn claim(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = argument::length)] length: usize,
                #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
                #[pyo3(from_py_with = argument::direct)] direct: bool,
            ) -> PyResult<PyBufferClaim> {
                let patience = WaitPolicy::new(timeout, self.max_idle_park_ns)?;
                offer::claim(py, self.get()?, length, patience, direct)
            }

            /// Appends one message, and waits for a subscriber and for room without blocking the event loop.
            ///
            /// Args:
            ///     message: Any object with the buffer protocol.
            ///
            /// Returns:
            ///     A coroutine that returns the stream position after the message, in bytes.
            ///
            /// Raises:
            ///     PublicationClosedError: If the publication, its client or its driver is closed.
            ///     MessageTooLongError: If a message is longer than `max_message_length`.
            ///     MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
            ///         new one.
            ///     ReentrantCallError: If the publication is exclusive and another thread is sending.
            fn offer_async<'py>(
                slf: &Bound<'py, Self>,
                message: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                call_aio(slf.py(), "offer", (slf, message))
            }

            /// Appends all messages from index `start` on without blocking the event loop.
            ///
            /// Args:
            ///     messages: A list of buffers, a two-dimensional array, an array of records, an Arrow array, or one
            ///         buffer with `offsets`.
            ///     offsets: Offsets of the messages in the buffer `messages`, and the offset of the last message's end,
            ///         in bytes.
            ///     start: Index of the first message to send.
            ///
            /// Returns:
            ///     A coroutine that returns the number of messages. If the coroutine is cancelled or fails, the
            ///     attribute `sent` of the exception is the number of messages that were sent.
            ///
            /// Raises:
            ///     PublicationClosedError: If the publication, its client or its driver is closed.
            ///     MessageTooLongError: If a message is longer than `max_message_length`.
            ///     MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
            ///         new one.
            ///     ReentrantCallError: If the publication is exclusive and another thread is sending.
            #[pyo3(signature = (messages, *, offsets = None, start = 0))]
            fn offer_batch_async<'py>(
                slf: &Bound<'py, Self>,
                messages: &Bound<'py, PyAny>,
                offsets: Option<&Bound<'py, PyAny>>,
                #[pyo3(from_py_with = argument::start)] start: usize,
            ) -> PyResult<Bound<'py, PyAny>> {
                call_aio(slf.py(), "offer_batch", (slf, messages, offsets, start))
            }

            /// A condition that is true if an offer may succeed, or would raise.
            #[getter(_is_ready)]
            fn is_ready(&self) -> PyResult<Condition> {
                let publication = self.get()?.clone();
                Ok(Condition::new(move || {
                    publication.available_window().is_ok_and(|window| window > 0) || publication.is_closed()
                }))
            }

            /// Waits for a subscriber.
            ///
            /// Args:
            ///     timeout: Seconds to wait. `None` waits without a limit.
            ///
            /// Raises:
            ///     NotConnectedError: If no subscriber connects within `timeout`.
            ///     PublicationClosedError: If the publication, its client or its driver is closed.
            #[pyo3(signature = (timeout = None))]
            fn wait_connected(&self, py: Python<'_>, #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>) -> PyResult<()> {
                offer::wait_connected(py, self.get()?, WaitPolicy::new(timeout, self.max_idle_park_ns)?)
            }

            /// Waits for a subscriber without blocking the event loop.
            ///
            /// Args:
            ///     timeout: Seconds to wait. `None` waits without a limit.
            ///
            /// Returns:
            ///     A coroutine that returns `None`.
            ///
            /// Raises:
            ///     NotConnectedError: If no subscriber connects within `timeout`.
            ///     PublicationClosedError: If the publication, its client or its driver is closed.
            #[pyo3(signature = (timeout = None))]
            fn wait_connected_async<'py>(
                slf: &Bound<'py, Self>,
                #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
            ) -> PyResult<Bound<'py, PyAny>> {
                call_aio(slf.py(), "connected", (slf, timeout))
            }

            /// Claims a frame in the log, and waits for a subscriber and for room without blocking the event loop.
            ///
            /// Args:
            ///     length: Length of the payload, in bytes.
            ///     timeout: Seconds to wait. `None` waits without a limit.
            ///     direct: Whether the memoryview of the claim is the log's memory itself. If `False`, it is a buffer
            ///         that the commit copies into the log; see `BufferClaim`.
            ///
            /// Returns:
            ///     A coroutine that returns a `BufferClaim`.
            ///
            /// Raises:
            ///     NotConnectedError: If no subscriber connects within `timeout`.
            ///     BackPressureTimeoutError: If the subscribers do not make room within `timeout`.
            ///     PublicationClosedError: If the publication, its client or its driver is closed.
            ///     MessageTooLongError: If `length` is greater than `max_payload_length`.
            ///     MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
            ///         new one.
            ///     ReentrantCallError: If the publication is exclusive and another thread is sending.
            #[pyo3(signature = (length, timeout = None, *, direct = false))]
            fn claim_async<'py>(
                slf: &Bound<'py, Self>,
                #[pyo3(from_py_with = argument::length)] length: usize,
                #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
                #[pyo3(from_py_with = argument::direct)] direct: bool,
            ) -> PyResult<Bound<'py, PyAny>> {
                call_aio(slf.py(), "claim", (slf, length, timeout, direct))
            }

            /// A condition that is true if a subscriber is connected, or the publication is closed.
            #[getter(_is_connected_or_closed)]
            fn is_connected_or_closed(&self) -> PyResult<Condition> {
                let publication = self.get()?.clone();
                Ok(Condition::new(move || publication.is_connected() || publication.is_closed()))
            }

            /// Waits until everything published before the call has left the publisher.
            ///
            /// Over UDP, data has left the publisher when the driver has sent it. Subscribers may not have received it
            /// yet. Over IPC, data has left the publisher when every subscriber has consumed it.
            ///
            /// Args:
            ///     timeout: Seconds to wait. `None` waits without a limit.
            ///
            /// Returns:
            ///     `True` if the data has left, `False` if the time is up.
            ///
            /// Raises:
            ///     PublicationClosedError: If the publication, its client or its driver is closed.
            #[pyo3(signature = (timeout = None))]
            fn flush(&self, py: Python<'_>, #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>) -> PyResult<bool> {
                offer::flush(py, self.get()?, WaitPolicy::new(timeout, self.max_idle_park_ns)?)
            }

            /// Closes the publication without waiting for the driver. Any thread may call it. Idempotent.
            fn close(&self, py: Python<'_>) -> PyResult<()> {
                let publication = self.get()?;
                py.detach(|| publication.close());
                Ok(())
            }

            /// Closes the publication and ends its stream at once, for all publications that share its log.
            fn revoke(&self, py: Python<'_>) -> PyResult<()> {
                let publication = self.get()?;
                py.detach(|| publication.revoke());
                Ok(())
            }

            /// Stream position after the last message, in bytes.
            ///
            /// Raises `PublicationClosedError` if the publication is closed.
            #[getter]
            fn position(&self) -> PyResult<i64> {
                self.open(self.get()?.position())
            }

            /// Position up to which the driver permits messages to be appended, in bytes.
            ///
            /// Raises `PublicationClosedError` if the publication is closed.
            #[getter]
            fn position_limit(&self) -> PyResult<i64> {
                self.open(self.get()?.position_limit())
            }

            /// Numbers of attempts to send that sent nothing, since the publication was added. A call that retries,
            /// such as `publish`, counts each of its attempts.
            #[getter]
            fn refused(&self) -> PyResult<PyRefusedAttempts> {
                Ok(self.get()?.refused().into())
            }

            /// Number of bytes between the position and the position limit; 0 or less if there is no room.
            ///
            /// Raises `PublicationClosedError` if the publication is closed.
            #[getter]
            fn available_window(&self) -> PyResult<i64> {
                self.open(self.get()?.available_window())
            }

            /// Adds a destination to a channel with `control-mode=manual`, and waits for the driver.
            ///
            /// Args:
            ///     channel: Channel of the destination, such as `aeron:udp?endpoint=host:port`.
            ///
            /// Returns:
            ///     The id of the destination.
            ///
            /// Raises:
            ///     RegistrationError: If the driver refuses the request; the subclass names the reason.
            ///     DriverTimeoutError: If the driver does not respond within the driver timeout.
            ///     PublicationClosedError: If the publication, its client or its driver is closed.
            fn add_destination(&self, py: Python<'_>, #[pyo3(from_py_with = argument::channel)] channel: Channel) -> PyResult<i64> {
                waiting(py, self.get()?, |publication| publication.add_destination(&channel.0))
            }

            /// Removes a destination, and waits for the driver.
            ///
            /// Args:
            ///     destination: Channel with which the destination was added, or its id.
            ///
            /// Raises:
            ///     RegistrationError: If the driver refuses the request; the subclass names the reason.
            ///     DriverTimeoutError: If the driver does not respond within the driver timeout.
            ///     PublicationClosedError: If the publication, its client or its driver is closed.
            fn remove_destination(&self, py: Python<'_>, #[pyo3(from_py_with = argument::destination)] destination: DestinationName) -> PyResult<()> {
                waiting(py, self.get()?, |publication| match &destination {
                    DestinationName::Id(id) => publication.remove_destination_by_id(*id),
                    DestinationName::Channel(channel) => publication.remove_destination(&channel.0),
                })
            }

            /// Starts `add_destination`, and returns its `PendingOperation` at once.
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

            /// Starts `remove_destination`, and returns its `PendingOperation` at once. It cannot be cancelled.
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

/// The destination to remove: its id or its channel.
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
    /// A publication that clients of the same driver share. Any number of threads may send at the same time.
    ///
    /// These methods wait: `publish`, `claim`, `flush`, `wait_connected`, `add_destination`, `remove_destination`, and
    /// `offer_arrow` with a `timeout`. No other method blocks. Thread-safe.
    ///
    /// Example:
    ///     ```python
    ///     publication = client.add_publication("aeron:ipc", 1001)
    ///     publication.publish(b"hello", timeout=5)
    ///     ```
    PyPublication("Publication") wraps Publication {}
}

publication_class! {
    /// A publication that is the only writer of its log. Sending is faster than with `Publication`.
    ///
    /// One thread at a time may be inside a sending method. In a second thread, a sending method raises
    /// `ReentrantCallError`. All other methods are thread-safe.
    ///
    /// These methods wait: `publish`, `claim`, `flush`, `wait_connected`, `add_destination`, `remove_destination`, and
    /// `offer_arrow` with a `timeout`. No other method blocks.
    ///
    /// Example:
    ///     ```python
    ///     publication = client.add_exclusive_publication("aeron:ipc", 1001)
    ///     publication.publish(b"hello", timeout=5)
    ///     ```
    PyExclusivePublication("ExclusivePublication") wraps ExclusivePublication {
        /// Appends a frame that subscribers skip. Never blocks.
        ///
        /// Args:
        ///     length: Length of the frame's payload, in bytes.
        ///
        /// Returns:
        ///     The stream position after the frame in bytes, or one of the false constants that `offer` returns.
        ///
        /// Raises:
        ///     PublicationClosedError: If the publication, its client or its driver is closed.
        ///     MessageTooLongError: If `length` is greater than `max_message_length`.
        ///     MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
        ///         new one.
        ///     ReentrantCallError: If another thread is sending.
        fn append_padding(&self, py: Python<'_>, #[pyo3(from_py_with = argument::length)] length: usize) -> PyResult<Py<PyAny>> {
            let publication = self.get()?;
            offer::answer(py, publication, publication.append_padding(length))
        }

        /// Appends whole frames that continue the stream. Never blocks.
        ///
        /// `block_poll` passes such frames to its handler, for instance.
        ///
        /// Args:
        ///     block: The frames, with their headers: any object with the buffer protocol.
        ///
        /// Returns:
        ///     The stream position after the frames in bytes, or one of the false constants that `offer` returns.
        ///
        /// Raises:
        ///     InvalidArgumentError: If the frames do not continue the stream, or do not fit into the active term.
        ///     PublicationClosedError: If the publication, its client or its driver is closed.
        ///     MaxPositionExceededError: If the stream is at its largest position. Close the publication and add a
        ///         new one.
        ///     ReentrantCallError: If another thread is sending.
        fn offer_block(&self, block: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
            let publication = self.get()?;
            let outcome = with_bytes(block, "block", |bytes| publication.offer_block(bytes))?;
            offer::answer(block.py(), publication, outcome)
        }

        /// Id of the active term.
        ///
        /// Raises `ReentrantCallError` if another thread is sending.
        #[getter]
        fn term_id(&self) -> PyResult<i32> {
            self.get()?.term_id().map_err(|error| from_offer(error, aeron_client::CloseCause::default))
        }

        /// Offset of the next frame in the active term, in bytes.
        ///
        /// Raises `ReentrantCallError` if another thread is sending.
        #[getter]
        fn term_offset(&self) -> PyResult<usize> {
            self.get()?.term_offset().map_err(|error| from_offer(error, aeron_client::CloseCause::default))
        }
    }
}
