//! [`PyReplayMerge`]: replays a recording, and then joins its live stream.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use aeron_archive::client::{ReplayMerge, ReplayMergeParams};
use aeron_client::{Action, Image};
use aeron_protocol::archive::NULL_VALUE;
use pyo3::prelude::*;

use super::client::PyAeronArchive;
use super::errors::from_merge;
use super::link::Link;
use crate::argument::{self, Instance};
use crate::batch::PyBatch;
use crate::channel::Channel;
use crate::errors::{from_client, raise};
use crate::fork::OfProcess;
use crate::handler::{OnFragment, PollHandler, action_of, always_continue, check_handler};
use crate::header::PyHeader;
use crate::image::PyImage;
use crate::pool::Pool;
use crate::subscription::{PySubscription, batch_limits};
use crate::with_block::with_block;

/// A merge of a recording's replay with the live stream: each message arrives once and in order.
///
/// The channel of the subscription needs `control-mode=manual` and the `session-id` of the recorded stream.
/// `replay_channel` needs the same `session-id`, so that replay and live stream arrive as one image. The
/// merge adds the replay destination first, and the live destination later. When the live stream arrives,
/// the merge removes the replay destination. IPC is not supported.
///
/// Poll the merge until `is_merged` is `True`. Then the program may poll the subscription itself. After an
/// error `has_failed` is `True`, and further polls return the remaining messages of the image.
///
/// The end of a `with` block ends the merge. If the merge is not complete, its replay is stopped.
/// Subscription and archive stay open. One thread at a time may poll the merge.
///
/// Args:
///     subscription: Subscription that receives the stream.
///     archive: Client of the archive.
///     replay_channel: Channel of the replay, with the `session-id` of the recorded stream.
///     replay_destination: Destination of the subscription for the replay. Its port may be 0.
///     live_destination: Destination of the subscription for the live stream.
///     recording_id: Id of the recording.
///     start_position: Position of the first message, in bytes. `None` stands for the start of the recording.
///     progress_timeout: Seconds without progress after which the merge fails.
///
/// Raises:
///     InvalidArgumentError: If a channel is not suitable, or a number is out of its range.
///     SubscriptionClosedError: If the subscription is closed.
///     ReentrantCallError: If a handler of the archive's client calls the constructor.
#[pyclass(frozen, weakref, module = "aeron", name = "ReplayMerge")]
pub struct PyReplayMerge {
    shared: OfProcess<SharedReplayMerge>,
    header: Py<PyHeader>,
    pool: Arc<Pool>,
    /// Keeps the subscription open.
    subscription: Py<PySubscription>,
}

/// The merge, and the state that other threads may read while a thread polls the merge.
struct SharedReplayMerge {
    merge: Mutex<ReplayMerge>,
    image: Mutex<Option<Image>>,
    is_merged: AtomicBool,
    has_failed: AtomicBool,
    is_live_added: AtomicBool,
    is_closed: AtomicBool,
    has_work: AtomicBool,
    /// Keeps the session with the archive open.
    _link: Arc<Link>,
}

impl SharedReplayMerge {
    /// Takes one step of the merge. Call it without the GIL, because handlers of the client may run.
    fn do_work(&self) -> PyResult<usize> {
        let mut merge = self.lock()?;
        let outcome = merge.do_work();
        self.is_merged.store(merge.is_merged(), Ordering::Release);
        self.has_failed.store(merge.has_failed(), Ordering::Release);
        self.has_work.store(merge.has_work(), Ordering::Release);
        self.is_live_added
            .store(merge.is_live_added(), Ordering::Release);
        if let Some(image) = merge.image() {
            // The lock of the image is released before an exception is created, because that needs the GIL.
            lock(&self.image).get_or_insert_with(|| image.clone());
        }
        outcome.map_err(|error| from_merge(&error))
    }

    /// Ends the merge. Call it without the GIL.
    fn close(&self) -> PyResult<()> {
        let mut merge = self.lock()?;
        merge.close();
        self.has_work.store(merge.has_work(), Ordering::Release);
        self.is_closed.store(true, Ordering::Release);
        Ok(())
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, ReplayMerge>> {
        match self.merge.try_lock() {
            Ok(merge) => Ok(merge),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(raise(
                "ReentrantCallError",
                "another call of this merge is under way",
            )),
        }
    }

    /// Whether the merge is over and has no command left to send. After that, a poll reads only the image.
    fn is_over(&self) -> bool {
        !self.has_work.load(Ordering::Acquire)
    }

    fn image(&self) -> Option<Image> {
        lock(&self.image).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn timeout_of(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let reason = format!("progress_timeout={seconds} is not a number of seconds from 0 on");
        raise("InvalidArgumentError", reason)
    })
}

impl PyReplayMerge {
    /// Takes one step, unless the merge is over. Returns the image, if the merge has one.
    fn advance(&self, py: Python<'_>) -> PyResult<Option<Image>> {
        let shared = self.shared.get()?;
        if !shared.is_over() {
            py.detach(|| shared.do_work())?;
        }
        Ok(shared.image())
    }

    fn poll_with(
        &self,
        handler: &Bound<'_, PyAny>,
        fragment_limit: usize,
        copy: bool,
        answer: impl for<'py> Fn(Bound<'py, PyAny>) -> PyResult<Action>,
    ) -> PyResult<usize> {
        check_handler(handler)?;
        let py = handler.py();
        let Some(image) = self.advance(py)? else {
            return Ok(0);
        };
        let subscription = self.subscription.get().inner()?;
        let poll =
            |each: &mut OnFragment<'_>| subscription.poll_image(&image, each, fragment_limit);
        PollHandler::run(handler, self.header.bind(py), copy, poll, answer)
    }
}

with_block!(PyReplayMerge);

#[pymethods]
impl PyReplayMerge {
    #[new]
    #[pyo3(signature = (
        subscription, archive, replay_channel, replay_destination, live_destination, recording_id, start_position = None, *,
        progress_timeout = 5.0
    ))]
    #[allow(
        clippy::too_many_arguments,
        reason = "the parameters are those of the real client"
    )]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = argument::subscription)] subscription: Instance<PySubscription>,
        #[pyo3(from_py_with = argument::archive)] archive: Instance<PyAeronArchive>,
        #[pyo3(from_py_with = argument::replay_channel)] replay_channel: Channel,
        #[pyo3(from_py_with = argument::replay_destination)] replay_destination: Channel,
        #[pyo3(from_py_with = argument::live_destination)] live_destination: Channel,
        #[pyo3(from_py_with = argument::recording_id)] recording_id: i64,
        #[pyo3(from_py_with = argument::start_position)] start_position: Option<i64>,
        #[pyo3(from_py_with = argument::progress_timeout)] progress_timeout: f64,
    ) -> PyResult<Self> {
        let params = ReplayMergeParams {
            replay_channel: replay_channel.0,
            replay_destination: replay_destination.0,
            live_destination: live_destination.0,
            recording_id,
            start_position: start_position.unwrap_or(NULL_VALUE),
            progress_timeout: timeout_of(progress_timeout)?,
        };
        let received = subscription.0.get().inner()?;
        let link = archive.0.get().link()?;
        let merge = py.detach(|| ReplayMerge::new(received, &link.archive, &params));
        let shared = SharedReplayMerge {
            merge: Mutex::new(merge.map_err(|error| from_merge(&error))?),
            image: Mutex::default(),
            is_merged: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            is_live_added: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            has_work: AtomicBool::new(true),
            _link: Arc::clone(link),
        };
        Ok(Self {
            shared: OfProcess::new(shared),
            header: Py::new(py, PyHeader::default())?,
            pool: Arc::default(),
            subscription: subscription.0,
        })
    }

    /// Takes one step of the merge. Never blocks.
    ///
    /// Returns:
    ///     The amount of work; 0 if the merge is complete, has failed or is closed.
    ///
    /// Raises:
    ///     ArchiveTimeoutError: If the merge makes no progress within `progress_timeout`.
    ///     ArchiveDisconnectedError: If the session with the archive has ended, or its client is closed.
    ///     ArchiveError: If the archive refuses a request or sends an error that belongs to no request, or the image is
    ///         closed before the merge is complete.
    ///     ReentrantCallError: If another poll is under way.
    fn do_work(&self, py: Python<'_>) -> PyResult<usize> {
        let shared = self.shared.get()?;
        match shared.is_over() {
            true => Ok(0),
            false => py.detach(|| shared.do_work()),
        }
    }

    /// Takes one step, then calls a handler for the fragments that are available now. Never blocks.
    ///
    /// The handler gets the fragments of long messages one by one. For whole messages pass a `FragmentAssembler`,
    /// or use `poll_batch`.
    ///
    /// Args:
    ///     handler: Called as `handler(payload, header)`, or a `FragmentAssembler`.
    ///     fragment_limit: Maximum number of fragments.
    ///     copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
    ///         returns.
    ///
    /// Returns:
    ///     The number of fragments; 0 before there is an image.
    ///
    /// Raises:
    ///     ArchiveTimeoutError: If the merge makes no progress within `progress_timeout`.
    ///     ArchiveDisconnectedError: If the session with the archive has ended, or its client is closed.
    ///     ArchiveError: If the archive refuses a request or sends an error that belongs to no request, or the image is
    ///         closed before the merge is complete.
    ///     ReentrantCallError: If another poll is under way.
    #[pyo3(signature = (handler, fragment_limit = 10, *, copy = true))]
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
    ///     ArchiveTimeoutError: If the merge makes no progress within `progress_timeout`.
    ///     ArchiveDisconnectedError: If the session with the archive has ended, or its client is closed.
    ///     ArchiveError: If the archive refuses a request or sends an error that belongs to no request, or the image is
    ///         closed before the merge is complete.
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

    /// Takes one step, then copies the whole messages that are available now into a batch. Never blocks.
    ///
    /// The batch may be empty.
    ///
    /// Args:
    ///     limit: Maximum number of messages in a batch.
    ///     max_bytes: Payload length, in bytes, at which a batch is full. The last message may end beyond it.
    ///
    /// Returns:
    ///     The batch.
    ///
    /// Raises:
    ///     ArchiveTimeoutError: If the merge makes no progress within `progress_timeout`.
    ///     ArchiveDisconnectedError: If the session with the archive has ended, or its client is closed.
    ///     ArchiveError: If the archive refuses a request or sends an error that belongs to no request, or the image is
    ///         closed before the merge is complete.
    ///     ReentrantCallError: If another poll is under way.
    #[pyo3(signature = (limit = 4096, *, max_bytes = 16_777_216))]
    fn poll_batch(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::limit)] limit: usize,
        #[pyo3(from_py_with = argument::max_bytes)] max_bytes: usize,
    ) -> PyResult<PyBatch> {
        let limits = batch_limits(limit, max_bytes)?;
        let image = self.advance(py)?;
        let subscription = self.subscription.get().inner()?;
        let mut messages = self.pool.take();
        if let Some(image) = &image {
            let polled = py.detach(|| subscription.poll_image_batch(image, &mut messages, limits));
            match polled {
                Err(error) if messages.is_empty() => return Err(from_client(&error)),
                // If messages were read before the error, they are returned, and the next poll raises the error.
                _ => {}
            }
        }
        Ok(PyBatch::new(messages, &self.pool, subscription.stream_id()))
    }

    /// The image of replay and live stream; `None` before there is an image.
    #[getter]
    fn image(&self) -> PyResult<Option<PyImage>> {
        Ok(self.shared.get()?.image().map(PyImage::new))
    }

    /// The subscription that receives the stream.
    #[getter]
    fn subscription(&self, py: Python<'_>) -> Py<PySubscription> {
        self.subscription.clone_ref(py)
    }

    /// Whether the merge is complete. The driver may not have removed the replay destination yet.
    #[getter]
    fn is_merged(&self) -> PyResult<bool> {
        Ok(self.shared.get()?.is_merged.load(Ordering::Acquire))
    }

    /// Whether an error has ended the merge.
    #[getter]
    fn has_failed(&self) -> PyResult<bool> {
        Ok(self.shared.get()?.has_failed.load(Ordering::Acquire))
    }

    /// Whether the merge has requested the live destination. The driver may not have added it yet.
    #[getter]
    fn is_live_added(&self) -> PyResult<bool> {
        Ok(self.shared.get()?.is_live_added.load(Ordering::Acquire))
    }

    /// Whether the merge was closed.
    #[getter]
    fn is_closed(&self) -> PyResult<bool> {
        Ok(self.shared.get()?.is_closed.load(Ordering::Acquire))
    }

    /// Ends the merge.
    ///
    /// If the merge is not complete, its replay destination is removed and the replay is stopped. Subscription and
    /// archive stay open. Idempotent.
    ///
    /// Raises:
    ///     ReentrantCallError: If a poll is under way.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let shared = self.shared.get()?;
        py.detach(|| shared.close())
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.subscription)?;
        visit.call(&self.header)
    }

    fn __repr__(&self) -> String {
        let shared = self.shared.anywhere();
        let is = |flag: &AtomicBool| flag.load(Ordering::Acquire);
        let state = match shared {
            _ if is(&shared.is_closed) => "closed",
            _ if is(&shared.has_failed) => "failed",
            _ if is(&shared.is_merged) => "merged",
            _ if is(&shared.is_live_added) => "joining the live stream",
            _ => "replaying",
        };
        format!("<ReplayMerge, {state}>")
    }
}

impl Drop for PyReplayMerge {
    fn drop(&mut self) {
        if let Ok(shared) = self.shared.get() {
            // The close cannot fail: if another thread polled the merge, that thread would keep the merge alive.
            let _ = Python::attach(|py| py.detach(|| shared.close()));
        }
    }
}
