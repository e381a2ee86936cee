//! [`PyRecordedPublisher`]: a publisher that keeps each message until an archive has recorded it.

mod closing;
mod events;
mod offering;
mod shared;

use std::sync::Arc;
use std::time::Instant;

use aeron_archive::client::{
    ArchiveClientContext, RecordedOfferError, RecordedPublisher, RecordedPublisherError,
    RecordedPublisherStatus,
};
use aeron_client::AppendError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use self::events::{PublisherEvent, PublisherEventQueue};
use self::shared::{SharedPublisher, WaitEnd};
use super::connect::ArchiveClientSettings;
use super::credentials::GivenCredentials;
use super::errors::{from_archive, from_publisher};
use super::queued_events::QueuedEvents;
use super::recorded_publisher_options::{PublisherHandlers, PublisherOptions};
use super::single_caller::{CallInProgress, SingleCaller};
use crate::argument;
use crate::attributes::attributes;
use crate::calls::call_aio;
use crate::channel::Channel;
use crate::condition::Condition;
use crate::connection::DriverName;
use crate::driver::PyMediaDriver;
use crate::errors::{from_append, raise};
use crate::events::EventHandler;
use crate::fork::OfProcess;
use crate::waiting::{DEFAULT_MAX_IDLE_PARK_NS, WaitPolicy};

/// A publisher that keeps each message until an archive has recorded it.
///
/// After the loss of the archive, of the driver or of the recording, the publisher connects again. It extends the
/// recording at its stop position, and sends the later messages again. Each message is in the recording once and in
/// order, at the position that `offer` has returned. Messages are accepted while the buffer has room, even during a
/// loss.
///
/// The publisher has its own client of the driver and no thread: only calls make progress. Call `poll` regularly if
/// there is nothing to offer. At the end call `close`, which waits until everything is recorded. A publisher that is
/// dropped without a close does not wait.
///
/// Another process continues a recording if it passes the `recording_id`, or the `alias` that the first process has
/// used. The messages of the new process begin at `position`. The new process must offer again all messages that ended
/// after this position.
///
/// The end of a `with` block closes the publisher, and waits up to 5 seconds until everything is recorded. One thread
/// at a time may call the publisher. A second call at the same time raises `ReentrantCallError`. Attributes are
/// thread-safe. Handlers run in the calls, and may call the publisher. After a failure, each call except `close` and
/// `unrecorded` raises `RecordedPublisherError`. `unrecorded` returns the messages that are not recorded.
///
/// Args:
///     channel: Channel of the stream. A local stream over UDP gets `ssc=true` unless the channel sets `ssc`. With
///         `ssc=true`, the stream needs no subscriber other than the archive.
///     stream_id: Stream id of the stream and of its recording.
///     driver: A `MediaDriver`, the directory of a driver, or `None` for the directory that `AERON_DIR` names. Without
///         that variable, `None` stands for Aeron's default directory.
///     recording_id: Id of the recording to extend.
///     alias: Name of the stream, instead of a recording id. The publisher extends the last recording with this alias
///         and stream id. If there is none, the publisher starts a recording.
///     source: `"LOCAL"` if the archive is on this driver, `"REMOTE"` if the archive is on another driver.
///     buffer_length: Maximum number of bytes of messages that are not recorded yet, at least 65536. Each message
///         counts with 32 bytes more than its length.
///     takeover_timeout: Seconds to wait at the start until another publisher of the recording has ended. If the
///         process of that publisher was killed, its driver notices the death only after the client liveness timeout.
///     on_reconnect: Called as `on_reconnect(position)` when the recording continues after a loss.
///     on_error: Called as `on_error(error)` with each `RecordedPublisherError`. If `has_failed` is then `True`, the
///         error has ended the publisher.
///     driver_timeout_ms: Milliseconds to wait for the driver. Default: `AERON_DRIVER_TIMEOUT`, or `10000`.
///     control_channel: Channel of the requests. Default: `AERON_ARCHIVE_CONTROL_CHANNEL`, or `aeron:ipc`.
///     control_stream_id: Stream id of the requests. Default: `AERON_ARCHIVE_CONTROL_STREAM_ID`, or `10`.
///     response_channel: Channel on which the archive publishes its responses. Default:
///         `AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL`; or IPC if `control_channel` is IPC, or a free port if
///         `control_channel` has a loopback address. There is no default for an archive on another host.
///     response_stream_id: Stream id of the responses. Default:
///         `AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID`, or `20`.
///     credentials: Bytes for the archive's authenticator, or a function that returns them. The function is
///         first called with `None`, and again with the archive's challenge if there is one.
///     message_timeout: Seconds to wait for the connection, for each response, and for the recording to begin. Default:
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
///     InvalidArgumentError: If a channel or a timeout is not valid.
///     ConfigurationError: If a setting is not valid or contradicts another setting.
///
/// Example:
///     ```python
///     with aeron.RecordedPublisher("aeron:ipc", 1001, alias="trades") as publisher:
///         position = publisher.publish(b"hello", timeout=5)
///         publisher.wait_recorded(position, timeout=5)
///     ```
#[pyclass(frozen, weakref, module = "aeron", name = "RecordedPublisher")]
pub struct PyRecordedPublisher {
    shared: OfProcess<Arc<SharedPublisher>>,
    channel: String,
    stream_id: i32,
    handlers: PublisherHandlers,
    /// Keeps an embedded driver alive while the publisher exists.
    _driver: Option<Py<PyMediaDriver>>,
}

impl Drop for PyRecordedPublisher {
    fn drop(&mut self) {
        // A forked child must not close its parent's publisher.
        if !self.shared.is_foreign() {
            self.shared.anywhere().publisher.close();
        }
        self.handlers.iter().for_each(EventHandler::clear);
    }
}

impl PyRecordedPublisher {
    /// Creates a publisher with these settings of the archive's client.
    pub fn open(
        py: Python<'_>,
        driver: Option<DriverName>,
        mut options: PublisherOptions,
        archive: ArchiveClientContext,
        credentials: GivenCredentials,
    ) -> PyResult<Self> {
        let (client_settings, driver) = options.client_settings(py, driver)?;
        let client_settings = Arc::new(client_settings);
        let events = Arc::new(QueuedEvents::default());
        let mut context = options.context(archive);
        context.listener = Some(Box::new(PublisherEventQueue(Arc::clone(&events))));
        let (settings, reported) = (Arc::clone(&client_settings), Arc::clone(&events));
        let make_context = move || {
            let events = Arc::clone(&reported);
            let report = Arc::new(move |error: &aeron_client::Error| {
                events.push(PublisherEvent::Client(error.clone()));
            });
            settings.context(report)
        };
        let publisher = RecordedPublisher::connect(make_context, context)
            .map_err(|error| from_archive(&error))?;
        let shared = Arc::new(SharedPublisher {
            status: publisher.status(),
            publisher: SingleCaller::new(publisher),
            events,
            credentials: credentials.supplier,
            client_settings,
        });
        crate::exit::add_client(&shared);
        options.handlers.credentials = credentials.function;
        Ok(Self {
            shared: OfProcess::new(shared),
            channel: options.channel,
            stream_id: options.stream_id,
            handlers: options.handlers,
            _driver: driver,
        })
    }

    fn get(&self) -> PyResult<&Arc<SharedPublisher>> {
        self.shared.get()
    }

    fn status(&self) -> PyResult<&RecordedPublisherStatus> {
        self.get().map(|shared| &shared.status)
    }

    /// Runs the program's handlers for the queued events. If a handler raises, the other events stay queued for the
    /// next call.
    fn tell(&self, py: Python<'_>) -> PyResult<()> {
        let shared = self.get()?;
        if !shared.events.has_any() {
            return Ok(());
        }
        if let Some(error) = shared.credentials.take_error() {
            return Err(error);
        }
        while let Some(event) = shared.events.pop() {
            let handler = match &event {
                PublisherEvent::Reconnect(_) => &self.handlers.on_reconnect,
                PublisherEvent::Error(_) | PublisherEvent::Client(_) => &self.handlers.on_error,
            };
            let Some(function) = handler.as_ref().and_then(|handler| handler.function(py)) else {
                continue;
            };
            match event {
                PublisherEvent::Reconnect(position) => function.call1((position,))?,
                PublisherEvent::Error(error) => function.call1((from_publisher(&error),))?,
                PublisherEvent::Client(source) => {
                    let error = RecordedPublisherError::Client { source };
                    function.call1((from_publisher(&error),))?
                }
            };
        }
        Ok(())
    }

    /// Raises if the publisher has failed or is closed.
    fn check(&self) -> PyResult<()> {
        let shared = self.get()?;
        if let Some(failure) = shared.status.failure() {
            return Err(from_publisher(failure));
        }
        match shared.is_closed() {
            true => Err(refused(&AppendError::Closed.into())),
            false => Ok(()),
        }
    }

    /// Takes steps until `f` returns a value, and runs the handlers. Returns `None` if the time is up.
    fn wait<T: Send>(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        mut f: impl FnMut(&mut RecordedPublisher) -> Option<T> + Send,
    ) -> PyResult<Option<T>> {
        let shared = self.get()?;
        let begin = Instant::now();
        loop {
            let left = timeout.map(|timeout| (timeout - begin.elapsed().as_secs_f64()).max(0.0));
            let policy = WaitPolicy::new(left, DEFAULT_MAX_IDLE_PARK_NS)?;
            let end = policy.wait(py, || shared.step(&mut f))?;
            self.tell(py)?;
            match end {
                None => return Ok(None),
                Some(WaitEnd::Done(value)) => return Ok(Some(value)),
                Some(WaitEnd::Events) => {}
                Some(WaitEnd::InUse) => return Err(in_use()),
            }
        }
    }

    /// Waits until `is_done` returns `true`. Returns `false` if the time is up. Raises if the publisher fails or is
    /// closed.
    fn wait_until(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        is_done: impl Fn(&RecordedPublisherStatus) -> bool + Sync,
    ) -> PyResult<bool> {
        let status = self.status()?.clone();
        let is_over = || status.is_closed() || status.failure().is_some();
        let ended = |_: &mut RecordedPublisher| match is_done(&status) {
            true => Some(true),
            false => is_over().then_some(false),
        };
        match self.wait(py, timeout, ended)? {
            Some(true) => Ok(true),
            Some(false) => self.check().map(|()| false),
            None => Ok(false),
        }
    }
}

/// Returns the exception for a message that was not accepted.
fn refused(error: &RecordedOfferError) -> PyErr {
    match error {
        RecordedOfferError::Append(error) => from_append(*error, aeron_client::CloseCause::default),
        RecordedOfferError::Failed(failure) => from_publisher(failure),
    }
}

fn in_use() -> PyErr {
    let reason = "the recorded publisher is in use; it serves one thread at a time";
    raise("ReentrantCallError", reason)
}

attributes! {
    PyRecordedPublisher from status

    /// Recording id; `None` until the recording is found or started.
    recording_id: Option<i64>,

    /// Stream position after the last accepted message in bytes; `None` until the recording is found or started.
    ///
    /// Before the first message, the position is the end of the recording to extend.
    position: Option<i64>,

    /// Stream position up to which the messages are recorded, in bytes; `None` until the recording is found or started.
    recorded_position: Option<i64>,

    /// Number of times that the recording was extended after a loss.
    reconnects: u64,

    /// Number of messages that were sent again after a loss. A message that was sent again twice counts twice.
    offered_again: u64,
}

#[pymethods]
impl PyRecordedPublisher {
    #[new]
    #[pyo3(
        signature = (channel, stream_id, *, driver = None, **settings),
        text_signature = "(channel, stream_id, *, driver=None, recording_id=None, alias=None, source='LOCAL', buffer_length=16777216, takeover_timeout=30.0, on_reconnect=None, on_error=None, driver_timeout_ms=None, control_channel=None, control_stream_id=None, response_channel=None, response_stream_id=None, credentials=None, message_timeout=None, client_name=None, control_term_buffer_length=None, control_term_buffer_sparse=None, control_mtu_length=None)"
    )]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = argument::channel)] channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
        #[pyo3(from_py_with = argument::driver)] driver: Option<DriverName>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (options, others) = PublisherOptions::read(py, channel, stream_id, settings)?;
        let settings = ArchiveClientSettings::read(py, "RecordedPublisher", Some(&others))?;
        let (context, credentials) = settings.without_handlers()?;
        Self::open(py, driver, options, context, credentials)
    }

    /// Takes one step: connects, drops recorded messages, and sends waiting messages. Never blocks.
    ///
    /// The call also runs the handlers of the publisher. Call it regularly if there is nothing to offer.
    ///
    /// Returns:
    ///     A work count, which is 0 if there was nothing to do.
    ///
    /// Raises:
    ///     RecordedPublisherError: If the publisher has failed.
    ///     PublicationClosedError: If the publisher is closed.
    ///     ReentrantCallError: If another call is under way.
    fn poll(&self, py: Python<'_>) -> PyResult<usize> {
        let shared = self.get()?;
        self.tell(py)?;
        self.check()?;
        let outcome = shared.publisher.call(RecordedPublisher::poll);
        self.tell(py)?;
        match outcome {
            Ok(work) => Ok(work.unwrap_or(0)),
            Err(CallInProgress) => Err(in_use()),
        }
    }

    /// Waits until the archive records the stream.
    ///
    /// Args:
    ///     timeout: Seconds to wait. `None` waits without a limit.
    ///
    /// Raises:
    ///     NotConnectedError: If the archive does not record the stream within `timeout`.
    ///     RecordedPublisherError: If the publisher fails.
    ///     PublicationClosedError: If the publisher is closed.
    ///     ReentrantCallError: If another call is under way.
    #[pyo3(signature = (timeout = None))]
    fn wait_connected(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
    ) -> PyResult<()> {
        match self.wait_until(py, timeout, RecordedPublisherStatus::is_recording)? {
            true => Ok(()),
            false => Err(self.not_connected()),
        }
    }

    /// Waits until all accepted messages are recorded.
    ///
    /// Args:
    ///     timeout: Seconds to wait. `None` waits without a limit.
    ///
    /// Returns:
    ///     Whether all messages are recorded; `False` if the time is up.
    ///
    /// Raises:
    ///     RecordedPublisherError: If the publisher fails.
    ///     PublicationClosedError: If the publisher is closed.
    ///     ReentrantCallError: If another call is under way.
    #[pyo3(signature = (timeout = None))]
    fn flush(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
    ) -> PyResult<bool> {
        self.wait_until(py, timeout, |status| status.unrecorded().messages == 0)
    }

    /// Waits until all accepted messages are recorded, without blocking the event loop.
    ///
    /// Args:
    ///     timeout: Seconds to wait. `None` waits without a limit.
    ///
    /// Returns:
    ///     A coroutine that returns whether all messages are recorded; `False` if the time is up.
    ///
    /// Raises:
    ///     RecordedPublisherError: If the publisher fails.
    ///     PublicationClosedError: If the publisher is closed.
    ///     ReentrantCallError: If another call is under way.
    #[pyo3(signature = (timeout = None))]
    fn flush_async<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call_aio(slf.py(), "flushed", (slf, timeout))
    }

    /// Waits until the stream is recorded up to a position.
    ///
    /// The archive has then written the messages to the recording's files. Whether the messages survive a power failure
    /// depends on the archive's setting `file_sync_level`.
    ///
    /// Args:
    ///     position: Position in bytes, as `offer` has returned it.
    ///     timeout: Seconds to wait. `None` waits without a limit.
    ///
    /// Raises:
    ///     ArchiveTimeoutError: If the position is not recorded within `timeout`.
    ///     RecordedPublisherError: If the publisher fails.
    ///     PublicationClosedError: If the publisher is closed.
    ///     ReentrantCallError: If another call is under way.
    #[pyo3(signature = (position, timeout = None))]
    fn wait_recorded(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::position)] position: i64,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
    ) -> PyResult<()> {
        let is_recorded = move |status: &RecordedPublisherStatus| {
            status.recorded_position().is_some_and(|it| it >= position)
        };
        if self.wait_until(py, timeout, is_recorded)? {
            return Ok(());
        }
        let reached = match self.status()?.recorded_position() {
            Some(recorded) => format!("the stream is recorded up to {recorded}"),
            None => "no recording was found or started yet".to_owned(),
        };
        let reason = format!("position {position} was not recorded within the timeout: {reached}");
        Err(raise("ArchiveTimeoutError", reason))
    }

    /// A condition that is true if an offer may succeed, or would raise or run a handler. Each check takes one step of
    /// the publisher.
    #[getter(_is_ready)]
    fn is_ready(&self) -> PyResult<Condition> {
        let shared = Arc::clone(self.get()?);
        Ok(Condition::new(move || {
            shared.look(RecordedPublisher::is_ready)
        }))
    }

    /// A condition that is true if all messages are recorded, or a call would raise or run a handler. Each check
    /// takes one step of the publisher.
    #[getter(_is_flushed)]
    fn is_flushed(&self) -> PyResult<Condition> {
        let shared = Arc::clone(self.get()?);
        Ok(Condition::new(move || {
            shared.look(|publisher| publisher.status().unrecorded().messages == 0)
        }))
    }

    /// Channel that the program passed.
    #[getter]
    fn channel(&self) -> &str {
        &self.channel
    }

    /// Stream id that the program passed.
    #[getter]
    fn stream_id(&self) -> i32 {
        self.stream_id
    }

    /// Number of accepted messages that are not known to be recorded.
    #[getter]
    fn unrecorded_messages(&self) -> PyResult<usize> {
        Ok(self.status()?.unrecorded().messages)
    }

    /// Number of bytes of accepted messages that are not known to be recorded.
    #[getter]
    fn unrecorded_bytes(&self) -> PyResult<usize> {
        Ok(self.status()?.unrecorded().bytes)
    }

    /// Whether the archive records the stream, as far as the publisher knows.
    #[getter]
    fn is_connected(&self) -> PyResult<bool> {
        Ok(self.status()?.is_recording())
    }

    /// Whether an error ended the publisher.
    #[getter]
    fn has_failed(&self) -> PyResult<bool> {
        Ok(self.status()?.failure().is_some())
    }

    /// The `RecordedPublisherError` that ended the publisher, or `None`.
    #[getter]
    fn failure_reason(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let failure = self.status()?.failure().map(from_publisher);
        Ok(failure.map(|error| error.into_value(py).into_any()))
    }

    /// Whether the publisher was closed.
    #[getter]
    fn is_closed(&self) -> PyResult<bool> {
        Ok(self.get()?.is_closed())
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self._driver)?;
        self.handlers
            .iter()
            .try_for_each(|handler| handler.visit(&visit))
    }

    fn __repr__(&self) -> String {
        let shared = self.shared.anywhere();
        let state = match (shared.is_closed(), shared.status.failure()) {
            (true, _) => "closed",
            (false, Some(_)) => "failed",
            (false, None) if shared.status.is_recording() => "recorded",
            (false, None) => "not recorded",
        };
        format!(
            "<RecordedPublisher {} stream {}, recording {}, {state}>",
            self.channel,
            self.stream_id,
            shared.status.recording_id().unwrap_or(-1)
        )
    }
}

impl PyRecordedPublisher {
    /// Returns the exception for a stream that the archive did not record within a timeout.
    fn not_connected(&self) -> PyErr {
        let stream = self.stream_text();
        let what = "no archive has recorded the stream within the timeout; on_error tells why";
        raise("NotConnectedError", format!("{stream}: {what}"))
    }

    fn stream_text(&self) -> String {
        format!("{}, stream {}", self.channel, self.stream_id)
    }
}
