//! [`PyImage`]: one session, as one subscription reads it.

use std::sync::Arc;

use aeron_client::{Action, Block, Error, Image, SharedBuffer};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::argument::{self, check_callable};
use crate::attributes::attributes;
use crate::calls::call;
use crate::ended::{Polled, unless_ended};
use crate::errors::{because, from_client, raise};
use crate::fork::OfProcess;
use crate::handler::{OnFragment, PollHandler, action_of, always_continue};
use crate::header::PyHeader;
use crate::operations::{Owned, PyPendingOperation};
use crate::waiting::DEFAULT_MAX_IDLE_PARK_NS;

/// The stream of one publisher in one subscription.
///
/// One thread at a time may poll the image, directly or through its subscription. All other methods are
/// thread-safe. A closed image keeps its last values, and polling it returns 0. If the driver or the client
/// ended, every poll raises `SubscriptionClosedError`.
#[pyclass(frozen, weakref, module = "aeron", name = "Image")]
pub struct PyImage {
    inner: OfProcess<Image>,
}

impl PyImage {
    pub fn new(image: Image) -> Self {
        Self {
            inner: OfProcess::new(image),
        }
    }

    fn get(&self) -> PyResult<&Image> {
        self.inner.get()
    }

    /// Calls `handler` with the available fragments that begin before `limit_position`, if there is such a limit.
    fn poll_with<'py>(
        &self,
        handler: &Bound<'py, PyAny>,
        limit_position: Option<i64>,
        fragment_limit: usize,
        copy: bool,
        answer: impl Fn(Bound<'py, PyAny>) -> PyResult<Action>,
    ) -> PyResult<usize> {
        let (image, header) = (self.get()?, Bound::new(handler.py(), PyHeader::default())?);
        let poll = |each: &mut OnFragment<'_>| match limit_position {
            Some(position) => image.bounded_controlled_poll(each, position, fragment_limit),
            None => image.controlled_poll(each, fragment_limit),
        };
        let count = PollHandler::run(handler, &header, copy, poll, answer)?;
        unless_ended(self.get()?, count)
    }
}

attributes! {
    PyImage from get

    /// Session id, which distinguishes the publishers of a channel and stream.
    session_id: i32,

    /// Stream id of the subscription.
    stream_id: i32,

    /// Id of the image: for IPC, the registration id of the publication; else an id that the driver chose.
    correlation_id: i64,

    /// Registration id of the subscription of the image.
    subscription_registration_id: i64,

    /// Source of the stream: `aeron:ipc`, or the address and port of the sender.
    source_identity: &str,

    /// Counter id of the subscriber's position.
    subscriber_position_id: i32,

    /// Id of the stream's first term.
    initial_term_id: i32,

    /// Length of a term, in bytes.
    term_buffer_length: usize,

    /// Base-two logarithm of the term length.
    position_bits_to_shift: u32,

    /// Length of the longest frame of the stream, in bytes.
    mtu_length: usize,

    /// Position at which the subscription joined the stream, in bytes.
    join_position: i64,

    /// Position up to which the subscription has consumed the stream, in bytes.
    ///
    /// A closed image keeps its last position.
    position: i64,

    /// Whether the stream ended or was lost, or the subscription or its client is closed.
    is_closed: bool,

    /// Whether the publisher ended the stream, and the subscription has consumed all of it.
    is_end_of_stream: bool,

    /// Position at which the stream ended, in bytes; 2**63 - 1 before its end.
    end_of_stream_position: i64,

    /// Number of transports on which the stream is received; 0 for IPC and for a closed image.
    active_transport_count: i32,

    /// Whether the publisher revoked the stream.
    is_publication_revoked: bool,
}

#[pymethods]
impl PyImage {
    /// Calls a handler for the fragments of this image that are available now. Never blocks.
    ///
    /// Args:
    ///     handler: Called as `handler(payload, header)`, or a `FragmentAssembler`.
    ///     fragment_limit: Maximum number of fragments.
    ///     copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
    ///         returns.
    ///
    /// Returns:
    ///     The number of fragments.
    ///
    /// Raises:
    ///     SubscriptionClosedError: If the driver or the client ended.
    ///     ReentrantCallError: If another poll is under way.
    #[pyo3(signature = (handler, fragment_limit = 10, *, copy = true))]
    fn poll(
        &self,
        handler: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::fragment_limit)] fragment_limit: usize,
        #[pyo3(from_py_with = argument::copy)] copy: bool,
    ) -> PyResult<usize> {
        self.poll_with(handler, None, fragment_limit, copy, always_continue)
    }

    /// Polls as `poll` does, with a handler that decides whether each fragment is consumed.
    ///
    /// Args:
    ///     handler: Called as `handler(payload, header)`; returns an `Action`, or `None` for `Action.CONTINUE`.
    ///     fragment_limit: Maximum number of fragments.
    ///     copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
    ///         returns.
    ///
    /// Returns:
    ///     The number of fragments.
    ///
    /// Raises:
    ///     SubscriptionClosedError: If the driver or the client ended.
    ///     ReentrantCallError: If another poll is under way.
    #[pyo3(signature = (handler, fragment_limit = 10, *, copy = true))]
    fn controlled_poll(
        &self,
        handler: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::fragment_limit)] fragment_limit: usize,
        #[pyo3(from_py_with = argument::copy)] copy: bool,
    ) -> PyResult<usize> {
        self.poll_with(handler, None, fragment_limit, copy, action_of)
    }

    /// Polls as `poll` does, up to a position.
    ///
    /// Args:
    ///     handler: Called as `handler(payload, header)`, or a `FragmentAssembler`.
    ///     limit_position: Position in bytes: only fragments that begin before this position are polled.
    ///     fragment_limit: Maximum number of fragments.
    ///     copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
    ///         returns.
    ///
    /// Returns:
    ///     The number of fragments.
    ///
    /// Raises:
    ///     SubscriptionClosedError: If the driver or the client ended.
    ///     ReentrantCallError: If another poll is under way.
    #[pyo3(signature = (handler, limit_position, fragment_limit = 10, *, copy = true))]
    fn bounded_poll(
        &self,
        handler: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::limit_position)] limit_position: i64,
        #[pyo3(from_py_with = argument::fragment_limit)] fragment_limit: usize,
        #[pyo3(from_py_with = argument::copy)] copy: bool,
    ) -> PyResult<usize> {
        self.poll_with(
            handler,
            Some(limit_position),
            fragment_limit,
            copy,
            always_continue,
        )
    }

    /// Polls as `controlled_poll` does, up to a position.
    ///
    /// Args:
    ///     handler: Called as `handler(payload, header)`; returns an `Action`, or `None` for `Action.CONTINUE`.
    ///     limit_position: Position in bytes: only fragments that begin before this position are polled.
    ///     fragment_limit: Maximum number of fragments.
    ///     copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
    ///         returns.
    ///
    /// Returns:
    ///     The number of fragments.
    ///
    /// Raises:
    ///     SubscriptionClosedError: If the driver or the client ended.
    ///     ReentrantCallError: If another poll is under way.
    #[pyo3(signature = (handler, limit_position, fragment_limit = 10, *, copy = true))]
    fn bounded_controlled_poll(
        &self,
        handler: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::limit_position)] limit_position: i64,
        #[pyo3(from_py_with = argument::fragment_limit)] fragment_limit: usize,
        #[pyo3(from_py_with = argument::copy)] copy: bool,
    ) -> PyResult<usize> {
        self.poll_with(
            handler,
            Some(limit_position),
            fragment_limit,
            copy,
            action_of,
        )
    }

    /// Calls a handler with one block of whole frames, if frames are available. Never blocks.
    ///
    /// Args:
    ///     handler: Called as `handler(block, session_id, term_id)`, where `block` is `bytes` of frames with
    ///         their headers.
    ///     block_length_limit: Maximum length of a block, in bytes.
    ///
    /// Returns:
    ///     The number of bytes that the handler got.
    ///
    /// Raises:
    ///     SubscriptionClosedError: If the driver or the client ended.
    ///     ReentrantCallError: If another poll is under way.
    fn block_poll(
        &self,
        handler: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::block_length_limit)] block_length_limit: usize,
    ) -> PyResult<usize> {
        let poll = |image: &Image, each: &mut OnBlock<'_>| {
            image.block_poll(|block| each(None, block), block_length_limit)
        };
        poll_blocks(&self.inner, handler, poll)
    }

    /// Calls a handler with one block of whole frames, and the block's offset in the log file. Never blocks.
    ///
    /// Args:
    ///     handler: Called as `handler(file_offset, block, session_id, term_id)`. `file_offset` is the offset
    ///         of the block in the log file, in bytes.
    ///     block_length_limit: Maximum length of a block, in bytes.
    ///
    /// Returns:
    ///     The number of bytes that the handler got.
    ///
    /// Raises:
    ///     SubscriptionClosedError: If the driver or the client ended.
    ///     ReentrantCallError: If another poll is under way.
    fn raw_poll(
        &self,
        handler: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::block_length_limit)] block_length_limit: usize,
    ) -> PyResult<usize> {
        let poll = |image: &Image, each: &mut OnBlock<'_>| {
            image.raw_poll(
                |offset, block| each(Some(offset), block),
                block_length_limit,
            )
        };
        poll_blocks(&self.inner, handler, poll)
    }

    /// Asks the driver to reject the image, and waits for the driver. The publisher gets the reason.
    ///
    /// Args:
    ///     reason: Text for the publisher, up to 1023 bytes.
    ///
    /// Raises:
    ///     RegistrationError: If the driver refuses the request; the subclass names the reason.
    ///     DriverTimeoutError: If the driver does not respond within the driver timeout.
    ///     ImageClosedError: If the image is closed.
    ///     AeronError: If the subscription is a spy.
    fn reject(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::reason)] reason: String,
    ) -> PyResult<()> {
        let image = self.get()?;
        py.detach(|| image.reject(&reason))
            .map_err(|error| rejection_error(image, &error))
    }

    /// Starts `reject`, and returns its `PendingOperation` at once. It cannot be cancelled.
    fn async_reject(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::reason)] reason: String,
    ) -> PyResult<PyPendingOperation> {
        let image = self.get()?;
        let operation = py
            .detach(|| image.async_reject(&reason))
            .map_err(|error| rejection_error(image, &error))?;
        let what = format!("reject of session {}", image.session_id());
        let park_ns = DEFAULT_MAX_IDLE_PARK_NS;
        let nothing = |py: Python<'_>, _: &Owned, ()| Ok(py.None());
        let handlers = Vec::new();
        Ok(PyPendingOperation::with_handlers(
            what, operation, park_ns, handlers, nothing,
        ))
    }

    fn __repr__(&self) -> String {
        let image = self.inner.anywhere();
        let state = if image.is_closed() { "closed" } else { "open" };
        format!(
            "<Image of session {} from {}, {state}>",
            image.session_id(),
            image.source_identity()
        )
    }
}

/// Returns the exception for a rejection that failed. If the image is closed, the text names the image.
fn rejection_error(image: &Image, error: &Error) -> PyErr {
    let Error::ResourceClosed { cause, .. } = error else {
        return from_client(error);
    };
    let reason = format!(
        "the image of session {} from {} is closed: there is nothing left to reject",
        image.session_id(),
        image.source_identity()
    );
    because(raise("ImageClosedError", reason), cause)
}

fn bytes_of<'py>(
    py: Python<'py>,
    block: &Block<'_, SharedBuffer>,
) -> PyResult<Bound<'py, PyBytes>> {
    use aeron_memory::words::Words;
    PyBytes::new_with(py, block.length(), |bytes| {
        block.term().copy_out(block.offset(), bytes);
        Ok(())
    })
}

/// The function that a poll calls with each block. For a raw poll, the first argument is the offset of the block in the
/// log file.
pub type OnBlock<'a> = dyn FnMut(Option<u64>, &Block<'_, SharedBuffer>) + 'a;

/// Calls `poll` with a function that passes each block to `handler`. After an exception of the handler, that function
/// ignores the other blocks. Returns the number of bytes.
pub fn poll_blocks<P: Polled>(
    polled: &OfProcess<P>,
    handler: &Bound<'_, PyAny>,
    poll: impl FnOnce(&P, &mut OnBlock<'_>) -> aeron_client::Result<usize>,
) -> PyResult<usize> {
    check_callable(handler, "handler")?;
    let mut outcome = Ok(());
    let length = poll(polled.get()?, &mut |file_offset, block| {
        if outcome.is_ok() {
            outcome = call_with_block(handler, file_offset, block);
        }
    });
    outcome?;
    let length = length.map_err(|error| from_client(&error))?;
    unless_ended(polled.get()?, length)
}

/// Calls `handler(block, session_id, term_id)` or `handler(file_offset, block, session_id, term_id)`.
fn call_with_block(
    handler: &Bound<'_, PyAny>,
    file_offset: Option<u64>,
    block: &Block<'_, SharedBuffer>,
) -> PyResult<()> {
    let bytes = bytes_of(handler.py(), block)?;
    let (session_id, term_id) = (block.session_id(), block.term_id());
    let result = match file_offset {
        None => call(handler, (bytes, session_id, term_id)),
        Some(offset) => call(handler, (offset, bytes, session_id, term_id)),
    };
    result.map(drop)
}

/// Returns images as a list.
pub fn list_of(py: Python<'_>, images: &Arc<[Image]>) -> PyResult<Vec<Py<PyImage>>> {
    images
        .iter()
        .map(|image| Py::new(py, PyImage::new(image.clone())))
        .collect()
}
