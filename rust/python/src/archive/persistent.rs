//! [`PyPersistentSubscription`]: reads a recorded stream without gaps, first from a replay and then live.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aeron_archive::client::{
    ArchiveClientContext, NO_JOIN_DIFFERENCE, PersistentSubscription, PersistentSubscriptionError,
    PersistentSubscriptionListener, PersistentSubscriptionStatus,
};
use aeron_client::{Action, Batch as Messages, BatchLimits, TryPollError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::connect::ArchiveClientSettings;
use super::credentials::{Credentials, GivenCredentials};
use super::errors::{from_archive, from_persistent};
use super::persistent_options::{Handlers, Options};
use super::queued_events::QueuedEvents;
use super::single_caller::{CallInProgress, Called, SingleCaller};
use crate::argument::{self, Instance};
use crate::batch::PyBatch;
use crate::buffers::LARGE_COPY_LENGTH;
use crate::calls::call_aio;
use crate::client::PyAeron;
use crate::condition::Condition;
use crate::errors::{from_client, raise};
use crate::events::EventHandler;
use crate::exit::Closable;
use crate::fork::OfProcess;
use crate::handler::{OnFragment, PollHandler, action_of, always_continue};
use crate::header::PyHeader;
use crate::pool::Pool;
use crate::subscription::batch_limits;
use crate::waiting::WaitPolicy;
use crate::with_block::with_block;

/// A subscription to a recorded stream, without gaps: it replays the recording, and then joins the live stream.
///
/// Each message of the recording arrives once and in order. If the live stream is lost, a replay continues from
/// the last position until the subscription joins the live stream again. If the archive is lost during a replay,
/// the replay continues when the archive is available again. If a message cannot be delivered, the subscription
/// fails and does not skip the message.
///
/// The subscription works only during polls: poll it, or iterate over its batches, all the time. Handlers
/// and batches get whole messages. If the live stream has several publishers, only the messages of the first
/// publisher arrive. To choose a publisher, set `session-id` in the live channel.
///
/// The end of a `with` block closes the subscription. One thread at a time may poll the subscription. A second
/// poll at the same time, even in a handler, raises `ReentrantCallError`. All other methods are thread-safe.
/// After a failure every poll raises `PersistentSubscriptionError`.
///
/// Args:
///     client: An Aeron client. Closing the subscription does not close the client.
///     recording_id: Id of the stream's recording.
///     live_channel: Channel of the live stream: IPC, unicast, multicast, `control-mode=dynamic` or a spy.
///     live_stream_id: Stream id of the live stream, which must be the stream id of the recording.
///     replay_channel: Channel of replays, with an address of this machine. Its port may be 0, and it may
///         have `control-mode=response`.
///     replay_stream_id: Stream id of replays.
///     start_position: Position of the first message in bytes, `FROM_START`, or `FROM_LIVE`. With
///         `FROM_LIVE` the subscription begins with the live stream.
///     on_live_joined: Called without arguments in a poll, when the subscription has joined the live stream.
///     on_live_left: Called without arguments in a poll, when the subscription has lost the live stream.
///     on_error: Called in a poll as `on_error(error)` with each `PersistentSubscriptionError`. If
///         `has_failed` is then `True`, the error has ended the subscription.
///     control_channel: Channel of the requests. Default: `AERON_ARCHIVE_CONTROL_CHANNEL`, or `aeron:ipc`.
///     control_stream_id: Stream id of the requests. Default: `AERON_ARCHIVE_CONTROL_STREAM_ID`, or `10`.
///     response_channel: Channel on which the archive publishes its responses. Default:
///         `AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL`. Without that variable, IPC if `control_channel` is IPC, or a
///         free local port if `control_channel` has a loopback address. There is no default for an archive
///         on another host.
///     response_stream_id: Stream id of the responses. Default:
///         `AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID`, or `20`.
///     credentials: Bytes for the archive's authenticator, or a function that returns them. The function is
///         first called with `None`, and again with the archive's challenge if there is one.
///     message_timeout: Seconds to wait for the connection, for each response, and for images. Default:
///         `AERON_ARCHIVE_MESSAGE_TIMEOUT`, or `10`.
///     client_name: Name of the client in the archive's counters. Default: `AERON_ARCHIVE_CLIENT_NAME`, or
///         no name.
///     control_term_buffer_length: Term length of the control streams, in bytes. Default:
///         `AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH`, or 1 MiB.
///     control_term_buffer_sparse: Whether the log files of the control streams are sparse. Default:
///         `AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE`, or `True`.
///     control_mtu_length: Maximum length of a frame of the control streams, in bytes. Default:
///         `AERON_ARCHIVE_CONTROL_MTU_LENGTH`, or `1408`.
///
/// Raises:
///     ArgumentTypeError: If a required argument is missing.
///     InvalidArgumentError: If a channel, `start_position` or `message_timeout` is not valid.
///     ConfigurationError: If a setting is not valid or contradicts another setting.
///     RegistrationError: If the driver refuses the counters of the subscription; the subclass names the reason.
///     DriverTimeoutError: If the driver does not respond within the driver timeout.
///     ClientClosedError: If the Aeron client is closed.
#[pyclass(frozen, weakref, module = "aeron", name = "PersistentSubscription")]
pub struct PyPersistentSubscription {
    shared: OfProcess<Arc<SharedPersistentSubscription>>,
    header: Py<PyHeader>,
    pool: Arc<Pool>,
    live_stream_id: i32,
    recording_id: i64,
    max_idle_park_ns: u64,
    /// Keeps the client open as long as the subscription is in use.
    client: Py<PyAeron>,
    handlers: Handlers,
}

/// The state that the Python object shares with native threads. Such a thread checks whether a poll would find
/// a message, an event or the end.
struct SharedPersistentSubscription {
    subscription: SingleCaller<PersistentSubscription>,
    status: PersistentSubscriptionStatus,
    events: Arc<QueuedEvents<Event>>,
    credentials: Arc<Credentials>,
}

impl Called for PersistentSubscription {
    type Status = PersistentSubscriptionStatus;

    fn status(&self) -> Self::Status {
        self.status()
    }

    fn is_closed(status: &Self::Status) -> bool {
        status.is_closed()
    }

    fn close(&mut self) {
        self.close();
    }
}

/// An event for a handler of the program. The program's next poll calls the handler.
enum Event {
    LiveJoined,
    LiveLeft,
    Error(PersistentSubscriptionError),
}

/// Listener of a native subscription. The listener runs without the GIL, so it queues the events until the program
/// polls.
struct EventQueue(Arc<QueuedEvents<Event>>);

impl PersistentSubscriptionListener for EventQueue {
    fn on_live_joined(&mut self) {
        self.0.push(Event::LiveJoined);
    }

    fn on_live_left(&mut self) {
        self.0.push(Event::LiveLeft);
    }

    fn on_error(&mut self, error: &PersistentSubscriptionError) {
        self.0.push(Event::Error(error.clone()));
    }
}

impl SharedPersistentSubscription {
    fn is_closed(&self) -> bool {
        self.subscription.is_closed()
    }

    fn is_over(&self) -> bool {
        self.is_closed() || self.status.has_failed()
    }

    /// Takes one step of the subscription. Returns whether a poll would find a message, an event or the end.
    fn look(&self) -> bool {
        let has_new_messages = || self.is_over() || self.events.has_any();
        // An error counts like a message: the program has to poll, because the next poll returns the same error.
        let look = |subscription: &mut PersistentSubscription| subscription.look().unwrap_or(true);
        has_new_messages()
            || matches!(self.subscription.with(look), Ok(Some(true)))
            || has_new_messages()
    }

    /// Takes one step of the subscription, and copies messages to `messages`. Returns `None` if there is no message, no
    /// event and no end.
    fn poll_batch(
        &self,
        messages: &mut Messages,
        limits: BatchLimits,
    ) -> Option<Result<aeron_client::Result<usize>, CallInProgress>> {
        let polled = self.subscription.call(|it| it.poll_batch(messages, limits));
        match polled.map(|polled| polled.unwrap_or(Ok(0))) {
            Ok(Ok(0)) if !self.is_over() && !self.events.has_any() => None,
            outcome => Some(outcome),
        }
    }
}

impl Closable for SharedPersistentSubscription {
    fn close_at_exit(&self) {
        self.subscription.close();
    }
}

impl Drop for PyPersistentSubscription {
    fn drop(&mut self) {
        // Closes the subscription if the program did not. A forked child must not close its parent's subscription.
        if !self.shared.is_foreign() {
            self.shared.anywhere().subscription.close();
        }
        self.handlers.iter().for_each(EventHandler::clear);
    }
}

impl PyPersistentSubscription {
    /// Adds a subscription with these settings of the archive's client.
    pub fn open(
        client: &Bound<'_, PyAeron>,
        mut options: Options,
        archive: ArchiveClientContext,
        credentials: GivenCredentials,
    ) -> PyResult<Self> {
        let (py, park_ns) = (client.py(), client.get().max_idle_park_ns());
        let mut context = options.context(archive)?;
        let events = Arc::new(QueuedEvents::default());
        context.listener = Some(Box::new(EventQueue(Arc::clone(&events))));
        let (live_stream_id, recording_id) = (context.live_stream_id, context.recording_id);
        let aeron = client.get().aeron()?;
        let subscription = py.detach(|| PersistentSubscription::new(aeron, context));
        let subscription = subscription.map_err(|error| from_archive(&error))?;
        let shared = Arc::new(SharedPersistentSubscription {
            status: subscription.status(),
            subscription: SingleCaller::new(subscription),
            events,
            credentials: credentials.supplier,
        });
        crate::exit::add_client(&shared);
        options.handlers.credentials = credentials.function;
        Ok(Self {
            shared: OfProcess::new(shared),
            header: Py::new(py, PyHeader::default())?,
            pool: Arc::default(),
            live_stream_id,
            recording_id,
            max_idle_park_ns: park_ns,
            client: client.clone().unbind(),
            handlers: options.handlers,
        })
    }

    fn get(&self) -> PyResult<&Arc<SharedPersistentSubscription>> {
        self.shared.get()
    }

    /// Calls the program's handlers for the queued events. If a handler raises, the other events stay queued for the
    /// next poll.
    fn tell(&self, py: Python<'_>) -> PyResult<()> {
        let shared = self.get()?;
        if let Some(error) = shared.credentials.take_error() {
            return Err(error);
        }
        while let Some(event) = shared.events.pop() {
            let handler = match &event {
                Event::LiveJoined => &self.handlers.on_live_joined,
                Event::LiveLeft => &self.handlers.on_live_left,
                Event::Error(_) => &self.handlers.on_error,
            };
            let Some(function) = handler.as_ref().and_then(|handler| handler.function(py)) else {
                continue;
            };
            match event {
                Event::LiveJoined | Event::LiveLeft => function.call0()?,
                Event::Error(error) => function.call1((from_persistent(&error),))?,
            };
        }
        Ok(())
    }

    /// Raises the error that ended the subscription, if there is one.
    fn check(&self) -> PyResult<()> {
        let failure = self.get()?.status.failure_reason().map(from_persistent);
        failure.map_or(Ok(()), Err)
    }

    /// Calls `handler` with the available messages. Returns the number of consumed messages.
    fn poll_with<'py>(
        &self,
        handler: &Bound<'py, PyAny>,
        fragment_limit: usize,
        copy: bool,
        answer: impl Fn(Bound<'py, PyAny>) -> PyResult<Action>,
    ) -> PyResult<usize> {
        let (shared, py) = (self.get()?, handler.py());
        self.tell(py)?;
        let mut count = 0;
        let poll = |each: &mut OnFragment<'_>| {
            let mut counted = |message: aeron_client::Fragment<'_>| {
                let action = each(message)?;
                count += usize::from(action != Action::Abort);
                Ok(action)
            };
            match shared
                .subscription
                .call(|it| it.poll(&mut counted, fragment_limit))
            {
                Ok(None) => Ok(0),
                Ok(Some(polled)) => polled.map(|_| count),
                Err(CallInProgress) => Err(TryPollError::Handler(in_use())),
            }
        };
        let count = PollHandler::run(handler, self.header.bind(py), copy, poll, answer)?;
        self.tell(py)?;
        if count == 0 {
            self.check()?;
        }
        Ok(count)
    }

    /// Returns a batch of the available messages. If there are none, waits for the first message up to `timeout`; if
    /// `timeout` is `None`, does not wait. The batch is empty if no message arrived in time, or the subscription is
    /// closed.
    fn next_batch(
        &self,
        py: Python<'_>,
        limits: BatchLimits,
        timeout: Option<Wait>,
    ) -> PyResult<PyBatch> {
        let shared = self.get()?;
        let mut messages = self.pool.take();
        // A poll may run with the GIL, so it copies only a limited number of bytes.
        let limits = BatchLimits {
            bytes: limits.bytes.min(LARGE_COPY_LENGTH),
            ..limits
        };
        let deadline = timeout.and_then(Wait::deadline);
        loop {
            self.tell(py)?;
            let mut poll = || shared.poll_batch(&mut messages, limits);
            let outcome = match timeout {
                None => poll(),
                Some(_) => self.patience(deadline)?.wait(py, poll)?,
            };
            match outcome {
                Some(Err(CallInProgress)) => return Err(in_use()),
                Some(Ok(Err(error))) if messages.is_empty() => return Err(from_client(&error)),
                _ => {}
            }
            if messages.is_empty() {
                self.tell(py)?;
                self.check()?;
            }
            let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if !messages.is_empty() || timeout.is_none() || shared.is_closed() || is_late() {
                return Ok(PyBatch::new(messages, &self.pool, self.live_stream_id));
            }
        }
    }

    fn patience(&self, deadline: Option<Instant>) -> PyResult<WaitPolicy> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        WaitPolicy::new(left.map(|left| left.as_secs_f64()), self.max_idle_park_ns)
    }
}

/// The timeout of a wait for a batch.
#[derive(Clone, Copy)]
struct Wait {
    /// Maximum duration of the wait; `None` for no limit.
    timeout: Option<Duration>,
}

impl Wait {
    fn new(timeout: Option<f64>) -> PyResult<Self> {
        let limited = timeout.filter(|timeout| *timeout != f64::INFINITY);
        Ok(Self {
            timeout: limited.map(crate::waiting::duration).transpose()?,
        })
    }

    fn deadline(self) -> Option<Instant> {
        Instant::now().checked_add(self.timeout?)
    }
}

fn in_use() -> PyErr {
    let reason = "the persistent subscription is being polled; it serves one thread at a time";
    raise("ReentrantCallError", reason)
}

with_block!(PyPersistentSubscription);

#[pymethods]
impl PyPersistentSubscription {
    #[new]
    #[pyo3(
        signature = (client, **settings),
        text_signature = "(client, *, recording_id, live_channel, live_stream_id, replay_channel='aeron:ipc', replay_stream_id=100, start_position=-2, on_live_joined=None, on_live_left=None, on_error=None, control_channel=None, control_stream_id=None, response_channel=None, response_stream_id=None, credentials=None, message_timeout=None, client_name=None, control_term_buffer_length=None, control_term_buffer_sparse=None, control_mtu_length=None)"
    )]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = argument::client)] client: Instance<PyAeron>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (options, others) = Options::read(py, settings)?;
        let settings = ArchiveClientSettings::read(py, "PersistentSubscription", Some(&others))?;
        let (context, credentials) = settings.without_handlers()?;
        Self::open(client.0.bind(py), options, context, credentials)
    }

    /// Takes one step, and calls a handler with the messages that are available now.
    ///
    /// The poll also calls the handlers of the subscription, such as `on_live_joined`.
    ///
    /// The position in the header is the position in the recording. For messages that began in a replay, the
    /// session id is the session id of the replay.
    ///
    /// Args:
    ///     handler: Called as `handler(payload, header)`, or a `FragmentAssembler`.
    ///     fragment_limit: Maximum number of fragments.
    ///     copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
    ///         returns.
    ///
    /// Returns:
    ///     The number of messages.
    ///
    /// Raises:
    ///     PersistentSubscriptionError: If the subscription has failed.
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

    /// Polls as `poll` does, with a handler that decides whether each message is consumed.
    ///
    /// After `Action.ABORT`, a later poll delivers the whole message again.
    ///
    /// Args:
    ///     handler: Called as `handler(payload, header)`; returns an `Action`, or `None` for `Action.CONTINUE`.
    ///     fragment_limit: Maximum number of fragments.
    ///     copy: Whether `payload` is `bytes`. `False` passes a memoryview, which is valid until the handler
    ///         returns.
    ///
    /// Returns:
    ///     The number of messages.
    ///
    /// Raises:
    ///     PersistentSubscriptionError: If the subscription has failed.
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

    /// Takes one step, and copies the messages that are available now into a batch, which may be empty.
    ///
    /// The stream id of the batch is the stream id of the live stream, even if its messages are from a replay.
    ///
    /// Args:
    ///     limit: Maximum number of messages in a batch.
    ///     max_bytes: Payload length, in bytes, at which a batch is full. The last message may end beyond it.
    ///         Values above 1 MiB count as 1 MiB.
    ///
    /// Returns:
    ///     The batch.
    ///
    /// Raises:
    ///     PersistentSubscriptionError: If the subscription has failed.
    ///     ReentrantCallError: If another poll is under way.
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
    /// The iterator ends if the subscription is closed, or nothing arrives for `timeout` seconds.
    ///
    /// Args:
    ///     limit: Maximum number of messages in a batch.
    ///     timeout: Seconds to wait for a next batch. `None` waits without a limit.
    ///     max_bytes: Payload length, in bytes, at which a batch is full. The last message may end beyond it.
    ///         Values above 1 MiB count as 1 MiB.
    ///
    /// Returns:
    ///     An iterator of batches that are not empty.
    ///
    /// Raises:
    ///     PersistentSubscriptionError: If the subscription has failed.
    ///     ReentrantCallError: If another poll is under way.
    #[pyo3(signature = (limit = 4096, *, timeout = None, max_bytes = 16_777_216))]
    fn batches(
        slf: Py<Self>,
        #[pyo3(from_py_with = argument::limit)] limit: usize,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
        #[pyo3(from_py_with = argument::max_bytes)] max_bytes: usize,
    ) -> PyResult<PyPersistentBatches> {
        Ok(PyPersistentBatches {
            subscription: slf,
            limits: batch_limits(limit, max_bytes)?,
            wait: Wait::new(timeout)?,
        })
    }

    /// Iterates over batches of messages as they arrive, for use in an `async for` loop.
    ///
    /// The iterator ends when the subscription is closed. A cancelled wait loses no message and does not end
    /// the iterator.
    ///
    /// Args:
    ///     limit: Maximum number of messages in a batch.
    ///     max_bytes: Payload length, in bytes, at which a batch is full. The last message may end beyond it.
    ///         Values above 1 MiB count as 1 MiB.
    ///
    /// Returns:
    ///     An asynchronous iterator of batches that are not empty.
    ///
    /// Raises:
    ///     PersistentSubscriptionError: If the subscription has failed.
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
        Self::batches_async(slf, 4096, 16 << 20)
    }

    /// Polls as `poll_batch` does, and spins for up to `spin_ns` nanoseconds until there is a message. Returns `None`
    /// if there is no message.
    #[pyo3(name = "_look", signature = (limit = 4096, max_bytes = 16_777_216, spin_ns = 0))]
    fn look(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::limit)] limit: usize,
        #[pyo3(from_py_with = argument::max_bytes)] max_bytes: usize,
        #[pyo3(from_py_with = argument::spin_ns)] spin_ns: u64,
    ) -> PyResult<Option<PyBatch>> {
        let limits = batch_limits(limit, max_bytes)?;
        let deadline = Instant::now() + Duration::from_nanos(spin_ns);
        loop {
            let batch = self.next_batch(py, limits, None)?;
            if !batch.is_empty() {
                return Ok(Some(batch));
            }
            if self.get()?.is_closed() || Instant::now() >= deadline {
                return Ok(None);
            }
            std::hint::spin_loop();
        }
    }

    /// Whether iterators must end, because the subscription is closed. Raises if the subscription has failed.
    #[getter(_is_over)]
    fn is_over(&self) -> PyResult<bool> {
        self.check()?;
        Ok(self.get()?.is_closed())
    }

    /// A condition that is true if a poll would find a message or an event, or if the subscription is closed or has
    /// failed. Each check takes one step of the subscription, and consumes no message.
    #[getter(_is_ready)]
    fn is_ready(&self) -> PyResult<Condition> {
        let shared = Arc::clone(self.get()?);
        Ok(Condition::new(move || shared.look()))
    }

    /// Whether messages come from the live stream.
    #[getter]
    fn is_live(&self) -> PyResult<bool> {
        Ok(self.get()?.status.is_live())
    }

    /// Whether messages come from a replay.
    #[getter]
    fn is_replaying(&self) -> PyResult<bool> {
        Ok(self.get()?.status.is_replaying())
    }

    /// Whether an error ended the subscription.
    #[getter]
    fn has_failed(&self) -> PyResult<bool> {
        Ok(self.get()?.status.has_failed())
    }

    /// The `PersistentSubscriptionError` that ended the subscription, or `None`.
    #[getter]
    fn failure_reason(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let failure = self.get()?.status.failure_reason().map(from_persistent);
        Ok(failure.map(|error| error.into_value(py).into_any()))
    }

    /// Aeron's name of the subscription's state: `AWAIT_LIVE`, `REPLAY`, `LIVE`, `FAILED` and others.
    #[getter]
    fn state(&self) -> PyResult<&'static str> {
        Ok(self.get()?.status.state().name())
    }

    /// Distance from the replay to the live stream at the time when the live stream was found, in bytes.
    ///
    /// The distance is the position of the live stream minus the position of the replay. `None` before the live
    /// stream is found.
    #[getter]
    fn join_difference(&self) -> PyResult<Option<i64>> {
        let difference = self.get()?.status.join_difference();
        Ok((difference != NO_JOIN_DIFFERENCE).then_some(difference))
    }

    /// Whether the subscription was closed.
    #[getter]
    fn is_closed(&self) -> PyResult<bool> {
        Ok(self.get()?.is_closed())
    }

    /// Stops a replay, and closes the streams, the session with the archive and the counters. Idempotent.
    ///
    /// Any thread may call `close`, even in a handler. If a poll runs, the subscription closes at the end of the
    /// poll.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let shared = self.get()?;
        py.detach(|| shared.subscription.close());
        self.handlers.iter().for_each(EventHandler::clear);
        Ok(())
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.client)?;
        visit.call(&self.header)?;
        self.handlers
            .iter()
            .try_for_each(|handler| handler.visit(&visit))
    }

    fn __repr__(&self) -> String {
        let shared = self.shared.anywhere();
        let state = match shared.is_closed() {
            true => "closed",
            false => shared.status.state().name(),
        };
        format!(
            "<PersistentSubscription of recording {}, live stream {}, {state}>",
            self.recording_id, self.live_stream_id
        )
    }
}

/// An iterator over batches, which `PersistentSubscription.batches` returns.
///
/// One thread at a time may use it: it is not thread-safe.
#[pyclass(frozen, module = "aeron", name = "PersistentBatches")]
pub struct PyPersistentBatches {
    subscription: Py<PyPersistentSubscription>,
    limits: BatchLimits,
    wait: Wait,
}

#[pymethods]
impl PyPersistentBatches {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyBatch>> {
        let subscription = self.subscription.get();
        let batch = subscription.next_batch(py, self.limits, Some(self.wait))?;
        Ok((!batch.is_empty()).then_some(batch))
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.subscription)
    }

    fn __repr__(&self) -> String {
        format!(
            "<PersistentBatches of up to {} messages of {}>",
            self.limits.messages,
            self.subscription.get().__repr__()
        )
    }
}
