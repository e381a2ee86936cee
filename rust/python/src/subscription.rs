//! [`PySubscription`]: the object through which a program receives messages.

use std::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aeron_client::{Action, BatchLimits, Block, Error, Image, SharedBuffer, Subscription};
use pyo3::prelude::*;

use crate::archive::replay::Replay;
use crate::argument;
use crate::attributes::attributes;
use crate::batch::PyBatch;
use crate::buffers::LARGE_COPY_LENGTH;
use crate::calls::call_aio;
use crate::channel::Channel;
use crate::client::PyAeron;
use crate::condition::Condition;
use crate::ended::unless_ended;
use crate::errors::{because, from_client, raise};
use crate::events::EventHandler;
use crate::fast::Method;
use crate::fork::OfProcess;
use crate::handler::{OnFragment, PollHandler, action_of, always_continue};
use crate::header::PyHeader;
use crate::image::{OnBlock, PyImage, list_of, poll_blocks};
use crate::operations::{PyPendingOperation, nothing};
use crate::pool::Pool;
use crate::waiting::WaitPolicy;
use crate::with_block::with_block;

/// Default maximum number of fragments of a poll.
const DEFAULT_FRAGMENT_LIMIT: usize = 10;
/// Default maximum number of messages in a batch.
const DEFAULT_BATCH_LIMIT: usize = 4096;
/// Default limit of the payload in a batch, in bytes. A batch that has reached the limit gets no further message.
const DEFAULT_MAX_BYTES: usize = 16 << 20;

/// A subscription to a channel and stream, with an image for each publisher.
///
/// One thread at a time may poll the subscription. A second poll at the same time, even in a handler, raises
/// `ReentrantCallError`. All other methods are thread-safe. A closed subscription has no images, and
/// polling it returns 0. If the driver or the client ended, every poll raises `SubscriptionClosedError`.
/// The text of the error contains the last position of each image. If a peer has damaged the log of an image, a
/// poll raises `CorruptLogError` once, and the image is closed.
///
/// Example:
///     ```python
///     subscription = client.add_subscription("aeron:ipc", 1001)
///     for batch in subscription.batches(timeout=1):
///         for payload in batch:
///             print(bytes(payload))
///     ```
#[pyclass(frozen, weakref, module = "aeron", name = "Subscription")]
pub struct PySubscription {
    inner: OfProcess<Subscription>,
    header: Py<PyHeader>,
    pool: Arc<Pool>,
    max_idle_park_ns: u64,
    /// Keeps the client open as long as the subscription is in use.
    client: Py<PyAeron>,
    /// The handlers of the subscription. `__traverse__` shows them to the garbage collector.
    handlers: Vec<EventHandler>,
    /// The replay of an archive that the subscription receives, if there is one. The inner value is `None` after the
    /// close.
    replay: Option<OfProcess<Mutex<Option<Arc<Replay>>>>>,
}

impl Drop for PySubscription {
    fn drop(&mut self) {
        // Without this, native code would still call the handlers of a subscription that the program did not close.
        self.handlers.iter().for_each(EventHandler::clear);
    }
}

impl PySubscription {
    pub fn new(
        subscription: Subscription,
        client: &Bound<'_, PyAeron>,
        handlers: Vec<EventHandler>,
    ) -> PyResult<Self> {
        Ok(Self {
            inner: OfProcess::new(subscription),
            header: Py::new(client.py(), PyHeader::default())?,
            pool: Arc::default(),
            max_idle_park_ns: client.get().max_idle_park_ns(),
            client: client.clone().unbind(),
            handlers,
            replay: None,
        })
    }

    /// Creates a subscription that receives a replay. The subscription ends when the replay ends. Closing the
    /// subscription stops the replay.
    pub fn of_replay(
        subscription: Subscription,
        client: &Bound<'_, PyAeron>,
        replay: Replay,
    ) -> PyResult<Self> {
        let mut this = Self::new(subscription, client, Vec::new())?;
        this.replay = Some(OfProcess::new(Mutex::new(Some(Arc::new(replay)))));
        Ok(this)
    }

    /// Returns the native subscription.
    pub fn inner(&self) -> PyResult<&Subscription> {
        self.get()
    }

    /// Returns the replay that the subscription receives, if there is one.
    fn replay(&self) -> Option<Arc<Replay>> {
        self.lock_replay()?.clone()
    }

    fn lock_replay(&self) -> Option<MutexGuard<'_, Option<Arc<Replay>>>> {
        let replay = self.replay.as_ref()?.anywhere().lock();
        Some(replay.unwrap_or_else(PoisonError::into_inner))
    }

    #[inline]
    fn get(&self) -> PyResult<&Subscription> {
        self.inner.get()
    }

    /// Calls `handler` with the available fragments. Returns the number of fragments.
    fn poll_with<'py>(
        &self,
        handler: &Bound<'py, PyAny>,
        fragment_limit: usize,
        copy: bool,
        answer: impl Fn(Bound<'py, PyAny>) -> PyResult<Action>,
    ) -> PyResult<usize> {
        let (subscription, header) = (self.get()?, self.header.bind(handler.py()));
        let poll = |each: &mut OnFragment<'_>| subscription.controlled_poll(each, fragment_limit);
        let count = PollHandler::run(handler, header, copy, poll, answer)?;
        unless_ended(self.get()?, count)
    }

    /// Returns a batch of the available messages. If there are none, waits for the first message as `patience` says; if
    /// `patience` is `None`, does not wait.
    fn next_batch(
        &self,
        py: Python<'_>,
        limits: BatchLimits,
        patience: Option<WaitPolicy>,
    ) -> PyResult<PyBatch> {
        let subscription = self.get()?;
        let replay = self.replay();
        let is_ended =
            || subscription.is_closed() || replay.as_deref().is_some_and(Replay::is_ended);
        let mut messages = self.pool.take();
        // The first poll may run with the GIL, so it copies only a limited number of bytes. If there are more messages,
        // a second poll below copies them without the GIL.
        let small = BatchLimits {
            bytes: limits.bytes.min(LARGE_COPY_LENGTH),
            ..limits
        };
        let mut poll = |limits| subscription.poll_batch(&mut messages, limits);
        let outcome = match patience {
            None => poll(small).map(Some),
            Some(patience) => patience
                .wait(py, || match poll(small) {
                    Ok(0) if !is_ended() => None,
                    outcome => Some(outcome),
                })?
                .transpose(),
        };
        let rest = match outcome {
            Ok(Some(count))
                if messages.data().len() >= small.bytes && small.bytes < limits.bytes =>
            {
                let rest = BatchLimits {
                    messages: limits.messages - count,
                    ..limits
                };
                py.detach(|| subscription.poll_batch(&mut messages, rest))
                    .map(drop)
            }
            outcome => outcome.map(drop),
        };
        // If messages were read before the error, they are returned, and the next poll raises the error.
        match rest {
            Err(error) if messages.is_empty() => Err(from_client(&error)),
            _ => {
                unless_ended(self.get()?, messages.len())?;
                if let (Some(replay), true) = (&replay, messages.is_empty()) {
                    replay.check_complete()?;
                }
                Ok(PyBatch::new(messages, &self.pool, subscription.stream_id()))
            }
        }
    }
}

impl Method for PySubscription {
    const METHOD: &'static CStr = c"poll";
    const DESCRIPTION: &'static CStr = c"poll($self, handler, fragment_limit=10, *, copy=True)
--

Calls a handler for the fragments of all images that are available now. Never blocks.

Args:
    handler: Called as `handler(payload, header)`, or a `FragmentAssembler`.
    fragment_limit: Maximum number of fragments.
    copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
        returns.

Returns:
    The number of fragments.

Raises:
    SubscriptionClosedError: If the driver or the client ended.
    ReentrantCallError: If another poll is under way.

Example:
    ```python
    subscription.poll(lambda payload, header: print(payload, header.position))
    ```";
    const GENERAL: &'static CStr = c"_poll";
    const TAKES_TWO: bool = true;

    #[inline]
    fn call(
        &self,
        handler: &Bound<'_, PyAny>,
        fragment_limit: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let limit = fragment_limit.map_or(Ok(DEFAULT_FRAGMENT_LIMIT), argument::fragment_limit)?;
        let count = self.poll(handler, limit, true)?;
        Ok(count.into_pyobject(handler.py())?.into_any().unbind())
    }
}

/// Returns the limits of a batch. Raises if a limit is 0, because a batch takes at least one message.
pub fn batch_limits(messages: usize, bytes: usize) -> PyResult<BatchLimits> {
    if messages == 0 || bytes == 0 {
        return Err(raise(
            "InvalidArgumentError",
            "a batch has a limit of at least one message and one byte",
        ));
    }
    Ok(BatchLimits { messages, bytes })
}

attributes! {
    PySubscription from get

    /// Channel URI that the program passed.
    channel: &str,

    /// Stream id that the program passed.
    stream_id: i32,

    /// Registration id of the subscription in the driver.
    registration_id: i64,

    /// Whether the subscription or its client is closed.
    is_closed: bool,

    /// Whether any image is open.
    is_connected: bool,

    /// Whether no publisher is connected.
    has_no_images: bool,

    /// Number of connected publishers.
    image_count: usize,

    /// Counter id of the channel's status; -1 for channels without a status (IPC and spies).
    channel_status_id: i32,

    /// Status of the channel, a value of `ChannelStatus`.
    ///
    /// 1 is active, 0 initialising, -1 errored or closed, 2 closing. An open subscription to IPC, or of a spy, is
    /// always active.
    channel_status: i64,

    /// Addresses on which the channel receives while it is active; empty for IPC and spies.
    local_socket_addresses: Vec<String>,

    /// The first address on which the channel receives, or `None`.
    resolved_endpoint: Option<String>,
}

with_block!(PySubscription);

#[pymethods]
impl PySubscription {
    /// General form of `poll`, for calls in any form. `poll` passes calls with keywords to this method.
    #[pyo3(name = "_poll", signature = (handler, fragment_limit = DEFAULT_FRAGMENT_LIMIT, *, copy = true))]
    fn poll(
        &self,
        handler: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::fragment_limit)] fragment_limit: usize,
        #[pyo3(from_py_with = argument::copy)] copy: bool,
    ) -> PyResult<usize> {
        self.poll_with(handler, fragment_limit, copy, always_continue)
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
        self.poll_with(handler, fragment_limit, copy, action_of)
    }

    /// Calls a handler with one block of whole frames of each image that has frames. Never blocks.
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
        let poll = |subscription: &Subscription, each: &mut OnBlock<'_>| {
            let each = |block: &Block<'_, SharedBuffer>| each(None, block);
            subscription.block_poll(each, block_length_limit)
        };
        poll_blocks(&self.inner, handler, poll)
    }

    /// Calls a handler with one block of whole frames of each image, and with the offset of the block in the log
    /// file. Never blocks.
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
        let poll = |subscription: &Subscription, each: &mut OnBlock<'_>| {
            let each =
                |_: &Image, offset, block: &Block<'_, SharedBuffer>| each(Some(offset), block);
            subscription.raw_poll(each, block_length_limit)
        };
        poll_blocks(&self.inner, handler, poll)
    }

    /// Copies the whole messages that are available now into a batch, which may be empty. Never blocks.
    ///
    /// Args:
    ///     limit: Maximum number of messages in a batch.
    ///     max_bytes: Payload length, in bytes, at which a batch is full. The last message may end beyond it.
    ///
    /// Returns:
    ///     The batch.
    ///
    /// Raises:
    ///     SubscriptionClosedError: If the driver or the client ended.
    ///     ArchiveError: If the replay of an archive ended before it was complete.
    ///     ReentrantCallError: If another poll is under way.
    ///     MemoryError: If there is no memory for the first message. In this case, nothing was consumed. If
    ///         there is no memory for a later message, the batch ends before that message.
    #[pyo3(signature = (limit = 4096, *, max_bytes = 16_777_216))]
    fn poll_batch(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::limit)] limit: usize,
        #[pyo3(from_py_with = argument::max_bytes)] max_bytes: usize,
    ) -> PyResult<PyBatch> {
        self.next_batch(py, batch_limits(limit, max_bytes)?, None)
    }

    /// Iterates over batches of messages as they arrive, for use in a `for` loop.
    ///
    /// The iterator ends if the subscription is closed, nothing arrives for `timeout` seconds, or the replay of
    /// an archive is complete.
    ///
    /// Args:
    ///     limit: Maximum number of messages in a batch.
    ///     timeout: Seconds to wait for a next batch. `None` waits without a limit.
    ///     max_bytes: Payload length, in bytes, at which a batch is full. The last message may end beyond it.
    ///
    /// Returns:
    ///     An iterator of batches that are not empty.
    ///
    /// Raises:
    ///     SubscriptionClosedError: If the driver or the client ended.
    ///     ArchiveError: If the replay of an archive ended before it was complete.
    ///     ReentrantCallError: If another poll is under way.
    #[pyo3(signature = (limit = 4096, *, timeout = None, max_bytes = 16_777_216))]
    fn batches(
        slf: Py<Self>,
        #[pyo3(from_py_with = argument::limit)] limit: usize,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
        #[pyo3(from_py_with = argument::max_bytes)] max_bytes: usize,
    ) -> PyResult<PyBatches> {
        let patience = WaitPolicy::new(timeout, slf.get().max_idle_park_ns)?;
        Ok(PyBatches {
            subscription: slf,
            limits: batch_limits(limit, max_bytes)?,
            patience,
        })
    }

    /// Polls as `poll_batch` does, and first spins for up to `spin_ns` nanoseconds until there is a message. Returns
    /// `None` if there is no message.
    #[pyo3(name = "_look", signature = (limit = 4096, max_bytes = 16_777_216, spin_ns = 0))]
    fn look(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::limit)] limit: usize,
        #[pyo3(from_py_with = argument::max_bytes)] max_bytes: usize,
        #[pyo3(from_py_with = argument::spin_ns)] spin_ns: u64,
    ) -> PyResult<Option<PyBatch>> {
        let limits = batch_limits(limit, max_bytes)?;
        let subscription = self.get()?;
        let deadline = (spin_ns > 0).then(|| Instant::now() + Duration::from_nanos(spin_ns));
        while !subscription.is_readable() {
            if deadline.is_none_or(|deadline| Instant::now() >= deadline)
                || subscription.is_closed()
            {
                unless_ended(self.get()?, 0)?;
                return Ok(None);
            }
            std::hint::spin_loop();
        }
        let batch = self.next_batch(py, limits, None)?;
        Ok((!batch.is_empty()).then_some(batch))
    }

    /// Whether iterators must end: the program has closed the subscription, or the replay is complete. Raises if the
    /// subscription ended with its client, or the replay ended before it was complete.
    #[getter(_is_over)]
    fn is_over(&self) -> PyResult<bool> {
        let is_closed = self.get()?.is_closed();
        unless_ended(self.get()?, 0)?;
        let Some(replay) = self.replay() else {
            return Ok(is_closed);
        };
        replay.check_complete()?;
        Ok(is_closed || replay.is_ended())
    }

    /// A condition that is true if a poll would find a message, the subscription is closed, or its replay has ended.
    /// Checking the condition consumes no message.
    #[getter(_is_ready)]
    fn is_ready(&self) -> PyResult<Condition> {
        let (subscription, replay) = (self.get()?.clone(), self.replay());
        let is_ready = move || {
            subscription.is_readable()
                || subscription.is_closed()
                || replay.as_deref().is_some_and(Replay::is_ended)
        };
        Ok(Condition::new(is_ready))
    }

    /// Iterates over batches of messages as they arrive, for use in an `async for` loop.
    ///
    /// The iterator ends if the subscription is closed, or the replay of an archive is complete. A cancelled
    /// wait loses no message and does not end the iterator.
    ///
    /// Args:
    ///     limit: Maximum number of messages in a batch.
    ///     max_bytes: Payload length, in bytes, at which a batch is full. The last message may end beyond it.
    ///
    /// Returns:
    ///     An asynchronous iterator of batches that are not empty.
    ///
    /// Raises:
    ///     SubscriptionClosedError: If the driver or the client ended.
    ///     ArchiveError: If the replay of an archive ended before it was complete.
    ///     ReentrantCallError: If another poll is under way.
    #[pyo3(signature = (limit = 4096, *, max_bytes = 16_777_216))]
    fn batches_async<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = argument::limit)] limit: usize,
        #[pyo3(from_py_with = argument::max_bytes)] max_bytes: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        batch_limits(limit, max_bytes)?;
        call_aio(slf.py(), "AsyncBatches", (slf, limit, max_bytes))
    }

    /// Allows `async for batch in subscription`.
    fn __aiter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::batches_async(slf, DEFAULT_BATCH_LIMIT, DEFAULT_MAX_BYTES)
    }

    /// Waits for a publisher.
    ///
    /// Args:
    ///     timeout: Seconds to wait. `None` waits without a limit.
    ///
    /// Raises:
    ///     NotConnectedError: If no publisher connects within `timeout`.
    ///     SubscriptionClosedError: If the subscription, its client or its driver is closed.
    #[pyo3(signature = (timeout = None))]
    fn wait_connected(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
    ) -> PyResult<()> {
        let subscription = self.get()?;
        let patience = WaitPolicy::new(timeout, self.max_idle_park_ns)?;
        let is_over = || (subscription.is_connected() || subscription.is_closed()).then_some(());
        let (channel, stream_id) = (subscription.channel(), subscription.stream_id());
        if patience.wait(py, is_over)?.is_none() {
            let what = "no publisher connected within the timeout; is one running on the same channel and stream?";
            return Err(raise(
                "NotConnectedError",
                format!("{channel}, stream {stream_id}: {what}"),
            ));
        }
        if subscription.is_closed() {
            let closed = raise("SubscriptionClosedError", "the subscription is closed");
            return Err(because(closed, &subscription.close_cause()));
        }
        Ok(())
    }

    /// Closes the subscription and its images without waiting for the driver.
    ///
    /// Any thread may call `close`, even in a handler. Idempotent.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let subscription = self.get()?;
        py.detach(|| {
            // The lock is released first, because dropping the replay stops it, which may take long.
            let replay = self.lock_replay().and_then(|mut replay| replay.take());
            drop(replay);
            subscription.close();
        });
        Ok(())
    }

    /// The images, as a list.
    #[getter]
    fn images(&self, py: Python<'_>) -> PyResult<Vec<Py<PyImage>>> {
        list_of(py, &self.get()?.images())
    }

    /// Returns an image by its index in `images`.
    ///
    /// Args:
    ///     index: Index of the image, from 0.
    ///
    /// Returns:
    ///     The image.
    ///
    /// Raises:
    ///     IndexRangeError: If the index is not less than `image_count`.
    fn image_at_index(
        &self,
        #[pyo3(from_py_with = argument::index)] index: usize,
    ) -> PyResult<PyImage> {
        let image = self.get()?.image_at(index);
        let count = || {
            self.get()
                .map(Subscription::image_count)
                .unwrap_or_default()
        };
        image.map(PyImage::new).ok_or_else(|| {
            raise(
                "IndexRangeError",
                format!("no image {index}: the subscription has {}", count()),
            )
        })
    }

    /// Finds the image of a session.
    ///
    /// Args:
    ///     session_id: Session id of the publisher.
    ///
    /// Returns:
    ///     The image, or `None`.
    fn image_by_session_id(
        &self,
        #[pyo3(from_py_with = argument::session_id)] session_id: i32,
    ) -> PyResult<Option<PyImage>> {
        Ok(self
            .get()?
            .image_by_session_id(session_id)
            .map(PyImage::new))
    }

    /// Returns the channel, with the bound port in place of an endpoint's port 0.
    ///
    /// Returns:
    ///     The channel; `None` if its port is 0 and no port is bound yet.
    fn try_resolve_channel_endpoint_port(&self) -> PyResult<Option<String>> {
        Ok(self.get()?.try_resolve_channel_endpoint_port())
    }

    /// Adds a destination to a channel with `control-mode=manual`, and waits for the driver.
    ///
    /// Args:
    ///     channel: Channel of the destination, such as `aeron:udp?endpoint=host:port`.
    ///
    /// Raises:
    ///     RegistrationError: If the driver refuses the request; the subclass names the reason.
    ///     DriverTimeoutError: If the driver does not respond within the driver timeout.
    ///     SubscriptionClosedError: If the subscription, its client or its driver is closed.
    fn add_destination(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::channel)] channel: Channel,
    ) -> PyResult<()> {
        self.waiting(py, |subscription| subscription.add_destination(&channel.0))
    }

    /// Removes a destination, and waits for the driver.
    ///
    /// Args:
    ///     channel: Channel with which the destination was added.
    ///
    /// Raises:
    ///     RegistrationError: If the driver refuses the request; the subclass names the reason.
    ///     DriverTimeoutError: If the driver does not respond within the driver timeout.
    ///     SubscriptionClosedError: If the subscription, its client or its driver is closed.
    fn remove_destination(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::channel)] channel: Channel,
    ) -> PyResult<()> {
        self.waiting(py, |subscription| {
            subscription.remove_destination(&channel.0)
        })
    }

    /// Starts `add_destination`, and returns its `PendingOperation` at once.
    fn async_add_destination(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::channel)] channel: Channel,
    ) -> PyResult<PyPendingOperation> {
        let operation = self.waiting(py, |subscription| {
            subscription.async_add_destination(&channel.0)
        })?;
        let what = format!("add_destination {}", channel.0);
        let client = self.client.bind(py);
        Ok(PyPendingOperation::new(what, operation, client, nothing))
    }

    /// Starts `remove_destination`, and returns its `PendingOperation` at once. It cannot be cancelled.
    fn async_remove_destination(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::channel)] channel: Channel,
    ) -> PyResult<PyPendingOperation> {
        let operation = self.waiting(py, |subscription| {
            subscription.async_remove_destination(&channel.0)
        })?;
        let what = format!("remove_destination {}", channel.0);
        let client = self.client.bind(py);
        Ok(PyPendingOperation::new(what, operation, client, nothing))
    }

    /// Waits for a publisher without blocking the event loop.
    ///
    /// Args:
    ///     timeout: Seconds to wait. `None` waits without a limit.
    ///
    /// Returns:
    ///     A coroutine that returns `None`.
    ///
    /// Raises:
    ///     NotConnectedError: If no publisher connects within `timeout`.
    ///     SubscriptionClosedError: If the subscription, its client or its driver is closed.
    #[pyo3(signature = (timeout = None))]
    fn wait_connected_async<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call_aio(slf.py(), "connected", (slf, timeout))
    }

    /// A condition that is true if a publisher is connected, or the subscription is closed.
    #[getter(_is_connected_or_closed)]
    fn is_connected_or_closed(&self) -> PyResult<Condition> {
        let subscription = self.get()?.clone();
        let is_over = move || subscription.is_connected() || subscription.is_closed();
        Ok(Condition::new(is_over))
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.client)?;
        self.handlers
            .iter()
            .try_for_each(|handler| handler.visit(&visit))
    }

    fn __repr__(&self) -> String {
        let subscription = self.inner.anywhere();
        let state = if subscription.is_closed() {
            "closed"
        } else {
            "open"
        };
        format!(
            "<Subscription {} stream {}, {state}>",
            subscription.channel(),
            subscription.stream_id()
        )
    }
}

impl PySubscription {
    fn waiting<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&Subscription) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        let subscription = self.get()?;
        py.detach(|| f(subscription))
            .map_err(|error| from_client(&error))
    }
}

/// An iterator over batches, which `Subscription.batches` returns.
///
/// One thread at a time may use it: it is not thread-safe.
#[pyclass(frozen, module = "aeron", name = "Batches")]
pub struct PyBatches {
    subscription: Py<PySubscription>,
    limits: BatchLimits,
    patience: WaitPolicy,
}

#[pymethods]
impl PyBatches {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.subscription)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let subscription = self.subscription.get().__repr__();
        let limit = self.limits.messages;
        let _ = py;
        format!("<Batches of up to {limit} messages of {subscription}>")
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyBatch>> {
        let batch = self
            .subscription
            .get()
            .next_batch(py, self.limits, Some(self.patience))?;
        Ok((!batch.is_empty()).then_some(batch))
    }
}
