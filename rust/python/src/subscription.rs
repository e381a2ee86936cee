//! [`PySubscription`]: what a program receives through.

use std::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aeron_client::{BatchLimits, Block, Error, Image, SharedBuffer, Subscription};
use pyo3::prelude::*;

use crate::archive::Replay;
use crate::argument::{self, check_callable};
use crate::batch::{Batch, Pool};
use crate::buffers::LARGE_COPY_LENGTH;
use crate::channel::Channel;
use crate::client::PyAeron;
use crate::condition::Condition;
use crate::ended::unless_ended;
use crate::errors::{because, from_client, raise};
use crate::events::Handler;
use crate::fast::Method;
use crate::fork::OfProcess;
use crate::handler::{Handler as PollHandler, OnFragment, Payload, action_of, always_continue};
use crate::header::PyHeader;
use crate::image::{PyImage, call_with_block, call_with_raw_block, finish_block_poll, list_of};
use crate::operations::{PyPendingOperation, nothing};
use crate::waiting::Patience;

/// Fragments that a poll hands out at most, if the caller does not say.
const DEFAULT_FRAGMENT_LIMIT: usize = 10;
/// Messages in a batch, if the caller does not say.
const DEFAULT_BATCH_LIMIT: usize = 4096;
/// Bytes of payload at which a batch takes no further message, if the caller does not say.
const DEFAULT_MAX_BYTES: usize = 16 << 20;

/// A subscription to a channel and stream, with an image for each publisher.
///
/// It is polled by one thread at a time: a second poll meanwhile, also from inside a handler, raises `ReentrantCallError`.
/// Everything else may be called from any thread. A closed subscription has no images, and polling it returns 0. If the driver or
/// the client died, every poll raises `SubscriptionClosedError`, which names the last position of each image.
#[pyclass(frozen, weakref, module = "aeron._aeron", name = "Subscription")]
pub struct PySubscription {
    inner: OfProcess<Subscription>,
    header: Py<PyHeader>,
    pool: Arc<Pool>,
    max_idle_park_ns: u64,
    /// Keeps the client open as long as the subscription is in use.
    client: Py<PyAeron>,
    /// Its handlers, for the garbage collector.
    handlers: Vec<Handler>,
    /// The replay of an archive that the subscription receives, if it receives one; the inner is `None` once it was closed.
    replay: Option<OfProcess<Mutex<Option<Arc<Replay>>>>>,
}

impl Drop for PySubscription {
    fn drop(&mut self) {
        // The program did not close the subscription. Native code no longer calls its handlers.
        self.handlers.iter().for_each(Handler::clear);
    }
}

impl PySubscription {
    pub fn new(
        subscription: Subscription,
        client: &Bound<'_, PyAeron>,
        handlers: Vec<Handler>,
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

    /// A subscription that receives a replay: it ends when the replay does, and stops the replay when it is closed.
    pub fn of_replay(
        subscription: Subscription,
        client: &Bound<'_, PyAeron>,
        replay: Replay,
    ) -> PyResult<Self> {
        let mut this = Self::new(subscription, client, Vec::new())?;
        this.replay = Some(OfProcess::new(Mutex::new(Some(Arc::new(replay)))));
        Ok(this)
    }

    /// The native subscription.
    pub fn inner(&self) -> PyResult<&Subscription> {
        self.get()
    }

    /// The replay that the subscription receives.
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

    /// A batch of what is there now, or of what comes first while `patience` lasts.
    fn next_batch(
        &self,
        py: Python<'_>,
        limits: BatchLimits,
        patience: Option<Patience>,
    ) -> PyResult<Batch> {
        let subscription = self.get()?;
        let replay = self.replay();
        let is_ended =
            || subscription.is_closed() || replay.as_deref().is_some_and(Replay::is_ended);
        let mut messages = self.pool.take();
        // What is copied with the GIL stays below the length at which it is worth releasing it.
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
        // What was read before an error was found is not lost: the error comes with the next poll.
        match rest {
            Err(error) if messages.is_empty() => Err(from_client(&error)),
            _ => {
                unless_ended(self.get()?, messages.len())?;
                if let (Some(replay), true) = (&replay, messages.is_empty()) {
                    replay.check_complete()?;
                }
                Ok(Batch::new(messages, &self.pool, subscription.stream_id()))
            }
        }
    }
}

impl Method for PySubscription {
    const METHOD: &'static CStr = c"poll";
    const DESCRIPTION: &'static CStr = c"poll($self, handler, fragment_limit=10, *, copy=True)
--

Hands at most `fragment_limit` fragments of all images to `handler(payload, header)`; answers how many.";
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

/// Limits of a batch, which takes at least one message.
pub fn batch_limits(messages: usize, bytes: usize) -> PyResult<BatchLimits> {
    if messages == 0 || bytes == 0 {
        return Err(raise(
            "InvalidArgumentError",
            "a batch has a limit of at least one message and one byte",
        ));
    }
    Ok(BatchLimits { messages, bytes })
}

#[pymethods]
impl PySubscription {
    /// `poll` in its general form.
    #[pyo3(name = "_poll", signature = (handler, fragment_limit = DEFAULT_FRAGMENT_LIMIT, *, copy = true))]
    fn poll(
        &self,
        handler: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::fragment_limit)] fragment_limit: usize,
        #[pyo3(from_py_with = argument::copy)] copy: bool,
    ) -> PyResult<usize> {
        let (subscription, header) = (self.get()?, self.header.bind(handler.py()));
        let poll = |each: &mut OnFragment<'_>| subscription.controlled_poll(each, fragment_limit);
        let count = PollHandler::run(handler, header, Payload::new(copy), poll, always_continue)?;
        unless_ended(self.get()?, count)
    }

    /// As `poll`, the handler answering an `Action` after each fragment.
    #[pyo3(signature = (handler, fragment_limit = 10, *, copy = true))]
    fn controlled_poll(
        &self,
        handler: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::fragment_limit)] fragment_limit: usize,
        #[pyo3(from_py_with = argument::copy)] copy: bool,
    ) -> PyResult<usize> {
        let (subscription, header) = (self.get()?, self.header.bind(handler.py()));
        let poll = |each: &mut OnFragment<'_>| subscription.controlled_poll(each, fragment_limit);
        let count = PollHandler::run(handler, header, Payload::new(copy), poll, action_of)?;
        unless_ended(self.get()?, count)
    }

    /// Hands a block of whole frames of each image to `handler(block, session_id, term_id)`; answers the bytes.
    fn block_poll(
        &self,
        handler: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::block_length_limit)] block_length_limit: usize,
    ) -> PyResult<usize> {
        check_callable(handler, "handler")?;
        let mut outcome = Ok(());
        let poll = |block: &Block<'_, SharedBuffer>| {
            if outcome.is_ok() {
                outcome = call_with_block(handler, block);
            }
        };
        let length = self.get()?.block_poll(poll, block_length_limit);
        unless_ended(self.get()?, finish_block_poll(length, outcome)?)
    }

    /// As `block_poll`, calling `handler(file_offset, block, session_id, term_id)` with the block's offset in its log's file.
    fn raw_poll(
        &self,
        handler: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::block_length_limit)] block_length_limit: usize,
    ) -> PyResult<usize> {
        check_callable(handler, "handler")?;
        let mut outcome = Ok(());
        let poll = |_: &Image, file_offset, block: &Block<'_, SharedBuffer>| {
            if outcome.is_ok() {
                outcome = call_with_raw_block(handler, file_offset, block);
            }
        };
        let length = self.get()?.raw_poll(poll, block_length_limit);
        unless_ended(self.get()?, finish_block_poll(length, outcome)?)
    }

    /// Copies at most `limit` whole messages that are there now into a batch, which may be empty. No message is begun once
    /// the batch has `max_bytes`.
    ///
    /// Raises `MemoryError` if there is no memory for the first message. Then nothing was consumed, and the same messages come
    /// with the next poll. If memory ends later, the batch holds the messages before.
    #[pyo3(signature = (limit = 4096, *, max_bytes = 16_777_216))]
    fn poll_batch(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::limit)] limit: usize,
        #[pyo3(from_py_with = argument::max_bytes)] max_bytes: usize,
    ) -> PyResult<Batch> {
        self.next_batch(py, batch_limits(limit, max_bytes)?, None)
    }

    /// Batches of what arrives, until the subscription is closed, nothing came for `timeout` seconds (`None`: for ever), or the replay
    /// of an archive that it receives is at its end. Raises `SubscriptionClosedError` if the driver or the client died.
    #[pyo3(signature = (limit = 4096, *, timeout = None, max_bytes = 16_777_216))]
    fn batches(
        slf: Py<Self>,
        #[pyo3(from_py_with = argument::limit)] limit: usize,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
        #[pyo3(from_py_with = argument::max_bytes)] max_bytes: usize,
    ) -> PyResult<PyBatches> {
        let patience = Patience::new(timeout, slf.get().max_idle_park_ns)?;
        Ok(PyBatches {
            subscription: slf,
            limits: batch_limits(limit, max_bytes)?,
            patience,
        })
    }

    /// As `poll_batch`, looking for `spin_ns` nanoseconds; `None` when there is nothing.
    #[pyo3(name = "_look", signature = (limit = 4096, max_bytes = 16_777_216, spin_ns = 0))]
    fn look(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::limit)] limit: usize,
        #[pyo3(from_py_with = argument::max_bytes)] max_bytes: usize,
        #[pyo3(from_py_with = argument::spin_ns)] spin_ns: u64,
    ) -> PyResult<Option<Batch>> {
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

    /// Whether the owner closed the subscription, so that an iterator ends; raises if it ended with its client.
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

    /// Whether a poll would find anything, or the subscription is closed. Consumes nothing.
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

    /// Batches as they arrive, for `async for`, until the subscription is closed, or the replay of an archive is at its end. A wait that is cancelled loses no message and
    /// does not end the iterator. Raises `SubscriptionClosedError` if the driver
    /// or the client died.
    #[pyo3(signature = (limit = 4096, *, max_bytes = 16_777_216))]
    fn batches_async<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = argument::limit)] limit: usize,
        #[pyo3(from_py_with = argument::max_bytes)] max_bytes: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        batch_limits(limit, max_bytes)?;
        slf.py()
            .import("aeron.aio")?
            .call_method1("AsyncBatches", (slf, limit, max_bytes))
    }

    /// `async for batch in subscription`.
    fn __aiter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::batches_async(slf, DEFAULT_BATCH_LIMIT, DEFAULT_MAX_BYTES)
    }

    /// Waits up to `timeout` seconds (`None`: for ever) for a publisher.
    #[pyo3(signature = (timeout = None))]
    fn wait_connected(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
    ) -> PyResult<()> {
        let subscription = self.get()?;
        let patience = Patience::new(timeout, self.max_idle_park_ns)?;
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

    /// Closes the subscription and its images without waiting for the driver. From any thread, handlers included; idempotent.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let subscription = self.get()?;
        py.detach(|| {
            // Dropped without the lock: dropping it stops the replay.
            let replay = self.lock_replay().and_then(|mut replay| replay.take());
            drop(replay);
            subscription.close();
        });
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

    /// Names this subscription to the driver.
    #[getter]
    fn registration_id(&self) -> PyResult<i64> {
        Ok(self.get()?.registration_id())
    }

    /// Whether the subscription, or its client, is closed.
    #[getter]
    fn is_closed(&self) -> PyResult<bool> {
        Ok(self.get()?.is_closed())
    }

    /// Whether any image is open.
    #[getter]
    fn is_connected(&self) -> PyResult<bool> {
        Ok(self.get()?.is_connected())
    }

    /// Whether no publisher is connected.
    #[getter]
    fn has_no_images(&self) -> PyResult<bool> {
        Ok(self.get()?.has_no_images())
    }

    /// How many publishers are connected.
    #[getter]
    fn image_count(&self) -> PyResult<usize> {
        Ok(self.get()?.image_count())
    }

    /// The images as they are now.
    #[getter]
    fn images(&self, py: Python<'_>) -> PyResult<Vec<Py<PyImage>>> {
        list_of(py, &self.get()?.images())
    }

    /// The image at this place of the list; `IndexError` beyond it.
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

    /// The first image of this session, or `None`.
    fn image_by_session_id(
        &self,
        #[pyo3(from_py_with = argument::session_id)] session_id: i32,
    ) -> PyResult<Option<PyImage>> {
        Ok(self
            .get()?
            .image_by_session_id(session_id)
            .map(PyImage::new))
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

    /// Addresses that the channel receives on, while it is active; none for IPC.
    #[getter]
    fn local_socket_addresses(&self) -> PyResult<Vec<String>> {
        Ok(self.get()?.local_socket_addresses())
    }

    /// The first address that the channel receives on, or `None`.
    #[getter]
    fn resolved_endpoint(&self) -> PyResult<Option<String>> {
        Ok(self.get()?.resolved_endpoint())
    }

    /// The channel with the bound address in place of an endpoint with port 0, `None` until it is known.
    fn try_resolve_channel_endpoint_port(&self) -> PyResult<Option<String>> {
        Ok(self.get()?.try_resolve_channel_endpoint_port())
    }

    /// Adds a destination to receive from to a channel with `control-mode=manual`, and waits for the driver.
    fn add_destination(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::channel)] channel: Channel,
    ) -> PyResult<()> {
        self.waiting(py, |subscription| subscription.add_destination(&channel.0))
    }

    /// Removes a destination, named as it was added, and waits for the driver.
    fn remove_destination(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::channel)] channel: Channel,
    ) -> PyResult<()> {
        self.waiting(py, |subscription| {
            subscription.remove_destination(&channel.0)
        })
    }

    /// As `add_destination`, without waiting: returns a `PendingOperation`.
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

    /// As `remove_destination`, without waiting: returns a `PendingOperation`, which cannot be cancelled.
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

    /// As `wait_connected`, without blocking the event loop: a coroutine.
    #[pyo3(signature = (timeout = None))]
    fn wait_connected_async<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("aeron.aio")?
            .call_method1("connected", (slf, timeout))
    }

    /// Whether a publisher is connected, or the subscription is closed.
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

/// Batches as they arrive: what `Subscription.batches` answers. Serves one thread at a time.
#[pyclass(frozen, module = "aeron._aeron", name = "Batches")]
pub struct PyBatches {
    subscription: Py<PySubscription>,
    limits: BatchLimits,
    patience: Patience,
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

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let batch = self
            .subscription
            .get()
            .next_batch(py, self.limits, Some(self.patience))?;
        Ok((!batch.is_empty()).then_some(batch))
    }
}
