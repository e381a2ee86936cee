//! [`PyAeronArchive`]: a client of an archive.

use std::sync::Arc;

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::client::{
    AeronArchive, ArchiveCall, ArchiveOperation, ArchiveSessionState, NULL_COUNTER_ID,
    ReplayParams, ReplicationParams, Result, StartedReplay,
};
use aeron_protocol::archive::{
    NULL_LENGTH, NULL_SESSION_ID, NULL_VALUE, REPLAY_ALL_AND_FOLLOW, SourceLocation,
};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyString};

use super::connect::Credentials;
use super::errors::from_archive;
use super::link::Link;
use super::operation::{ArchiveTask, ConvertOf, Task};
use super::persistent::PyPersistentSubscription;
use super::persistent_options::Options;
use super::recorded::{PublicationStream, WaitRecorded};
use super::recorded_publisher::PyRecordedPublisher;
use super::recorded_publisher_options::PublisherOptions;
use super::recording::{PyRecording, PyRecordingSubscription};
use super::replay::Replay;
use super::signals::PyRecordingSignals;
use crate::argument::{self, Argument, wrong_type};
use crate::channel::Channel;
use crate::client::PyAeron;
use crate::errors::raise;
use crate::events::EventHandler;
use crate::fork::OfProcess;
use crate::operations::{Owned, PyPendingOperation};
use crate::publication::{PyExclusivePublication, PyPublication};
use crate::subscription::PySubscription;
use crate::waiting::WaitPolicy;

/// A client of an archive, which `connect_archive` returns. Thread-safe.
///
/// A method that sends a request waits for the response, up to the message timeout. The method with the
/// prefix `async_` returns a `PendingOperation` instead, for `await` or `result(timeout)`. If the archive
/// refuses a request, the method raises an `ArchiveError` with a `code` and a `correlation_id`.
///
/// A thread of the client keeps the session alive while the program makes no calls. A client without threads
/// (`use_conductor_agent_invoker`, or a driver in mode `INVOKER`) has no such thread. Then call `poll` every
/// few seconds.
///
/// A context manager that closes the session. Recordings, replays and replications of the archive continue.
///
/// Example:
///     ```python
///     archive = aeron.connect_archive(client)
///     publication = archive.add_recorded_publication("aeron:ipc", 1001)
///     for recording in archive.list_recordings():
///         print(recording.recording_id, recording.stop_position)
///     ```
#[pyclass(frozen, weakref, module = "aeron", name = "AeronArchive")]
pub struct PyAeronArchive {
    link: OfProcess<Arc<Link>>,
    client: Py<PyAeron>,
    /// The handlers of the program. `__traverse__` shows them to the garbage collector.
    handlers: Vec<EventHandler>,
    credentials: Arc<Credentials>,
    has_signal_handler: bool,
    max_idle_park_ns: u64,
}

impl Drop for PyAeronArchive {
    fn drop(&mut self) {
        // If the program did not close the client, this makes sure that native code no longer calls its handlers.
        self.handlers.iter().for_each(EventHandler::clear);
    }
}

impl PyAeronArchive {
    pub fn new(
        link: Arc<Link>,
        client: &Bound<'_, PyAeron>,
        handlers: Vec<EventHandler>,
        credentials: Arc<Credentials>,
        has_signal_handler: bool,
    ) -> Self {
        Self {
            link: OfProcess::new(link),
            client: client.clone().unbind(),
            handlers,
            credentials,
            has_signal_handler,
            max_idle_park_ns: client.get().max_idle_park_ns(),
        }
    }

    /// Returns the link, which keeps the session open.
    pub fn link(&self) -> PyResult<&Arc<Link>> {
        self.link.get()
    }

    fn get(&self) -> PyResult<&AeronArchive> {
        self.link.get().map(|link| &link.archive)
    }

    /// Starts an operation of the archive. `convert` creates the Python object of the result.
    fn pending<T: Send + 'static, K: Task<T> + 'static>(
        slf: &Bound<'_, Self>,
        what: &str,
        begin: impl FnOnce(&Arc<Link>) -> Result<K> + Send,
        convert: impl FnOnce(Python<'_>, &Owned, &Arc<Link>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<PyPendingOperation> {
        let this = slf.get();
        let link = this.link.get()?;
        let task = slf.py().detach(|| begin(link));
        let task = task.map_err(|error| from_archive(&error))?;
        let operation = Box::new(ArchiveTask::new(task, link, ConvertOf::new(convert)));
        let park_ns = this.max_idle_park_ns;
        let what = what.to_owned();
        let operation = PyPendingOperation::of_kind(what, operation, park_ns, Vec::new());
        Ok(operation.of(this.client.bind(slf.py())))
    }

    /// Sends a request whose result is a plain value.
    fn request<T>(slf: &Bound<'_, Self>, call: ArchiveCall<T>) -> PyResult<PyPendingOperation>
    where
        T: Clone + Send + 'static + for<'py> IntoPyObject<'py>,
    {
        let name = call.name();
        let begin = |link: &Arc<Link>| link.archive.begin(call);
        Self::pending(slf, name, begin, |py, _, _, value: T| value.into_py_any(py))
    }
}

/// The source of a stream to record: `LOCAL` or `REMOTE`.
pub struct Source(pub SourceLocation);

impl Argument for Source {
    fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let text = value.cast::<PyString>().ok();
        match text
            .map(|text| text.to_string_lossy().to_uppercase())
            .as_deref()
        {
            Some("LOCAL") => Ok(Self(SourceLocation::Local)),
            Some("REMOTE") => Ok(Self(SourceLocation::Remote)),
            _ => Err(wrong_type(value, name, "\"LOCAL\" or \"REMOTE\"")),
        }
    }
}

const LOCAL: Source = Source(SourceLocation::Local);
/// Default channel of replays. It fits an archive on the client's driver.
pub const REPLAY_CHANNEL: &str = "aeron:ipc";
/// Default stream id of all replays. Each replay has its own session id.
pub const REPLAY_STREAM_ID: i32 = 100;

/// The recording to stop: the id of the archive's subscription, or a channel and stream id.
enum RecordingToStop {
    Subscription(i64),
    Stream(String, i32),
}

impl RecordingToStop {
    fn read(recorded: &Bound<'_, PyAny>, stream_id: Option<i32>) -> PyResult<Self> {
        if let Some(stream) = session_of(recorded)? {
            let channel = AeronArchive::session_channel(&stream.channel, stream.session_id);
            let channel = channel.map_err(|error| from_archive(&error))?;
            return Ok(Self::Stream(channel, stream.stream_id));
        }
        if let Ok(subscription_id) = recorded.extract() {
            return Ok(Self::Subscription(subscription_id));
        }
        let channel = Channel::convert(recorded, "recorded").map_err(|_| {
            let kind =
                "a recorded publication, the id of a subscription of the archive, or a channel";
            wrong_type(recorded, "recorded", kind)
        })?;
        match stream_id {
            Some(stream_id) => Ok(Self::Stream(channel.0, stream_id)),
            None => Err(raise(
                "InvalidArgumentError",
                "stream_id is not given: it belongs to a channel",
            )),
        }
    }
}

/// The stream of a publication.
struct PublishedStream {
    channel: String,
    stream_id: i32,
    session_id: i32,
}

/// Returns the stream of a publication of either kind; `None` for any other object.
fn session_of(publication: &Bound<'_, PyAny>) -> PyResult<Option<PublishedStream>> {
    if !publication.is_instance_of::<PyPublication>()
        && !publication.is_instance_of::<PyExclusivePublication>()
    {
        return Ok(None);
    }
    Ok(Some(PublishedStream {
        channel: publication.getattr("channel")?.extract()?,
        stream_id: publication.getattr("stream_id")?.extract()?,
        session_id: publication.getattr("session_id")?.extract()?,
    }))
}

/// The filter of a listing of recordings.
struct RecordingFilter {
    channel: Option<String>,
    stream_id: Option<i32>,
    limit: usize,
}

impl RecordingFilter {
    /// Creates the call that lists the recordings. The archive itself can only filter by channel and stream together.
    fn call(&self, from_recording_id: i64) -> ArchiveCall<Vec<RecordingDescriptor>> {
        let limit = i32::try_from(self.limit).unwrap_or(i32::MAX);
        match (&self.channel, self.stream_id) {
            (Some(channel), Some(stream_id)) => {
                ArchiveCall::list_recordings_for_uri(from_recording_id, limit, channel, stream_id)
            }
            (None, None) => ArchiveCall::list_recordings(from_recording_id, limit),
            _ => ArchiveCall::list_recordings(from_recording_id, i32::MAX),
        }
    }

    fn matches(&self, recording: &RecordingDescriptor) -> bool {
        self.stream_id.is_none_or(|id| id == recording.stream_id)
            && self
                .channel
                .as_ref()
                .is_none_or(|channel| recording.stripped_channel.contains(channel.as_str()))
    }

    /// Creates the Python object for the listed recordings.
    fn recordings(self, py: Python<'_>, listed: Vec<RecordingDescriptor>) -> PyResult<Py<PyAny>> {
        let wanted = listed
            .into_iter()
            .filter(|recording| self.matches(recording));
        let recordings: Vec<PyRecording> = wanted.take(self.limit).map(PyRecording::from).collect();
        let class = py.import("aeron.recordings")?.getattr("Recordings")?;
        Ok(class.call1((recordings,))?.unbind())
    }
}

fn optional_recording(
    py: Python<'_>,
    _: &Owned,
    _: &Arc<Link>,
    found: Option<RecordingDescriptor>,
) -> PyResult<Py<PyAny>> {
    found.map(PyRecording::from).into_py_any(py)
}

fn replay_subscription(
    py: Python<'_>,
    owned: &Owned,
    link: &Arc<Link>,
    started: StartedReplay,
) -> PyResult<Py<PyAny>> {
    let replay = Replay::new(link, &started);
    let client = owned.client(py)?;
    PySubscription::of_replay(started.subscription, client, replay)?.into_py_any(py)
}

/// Defines methods in pairs: a method that waits, and a method with the prefix `async_` that does not. Methods without
/// a result have `-> None`.
macro_rules! archive_methods {
    (
        $(
            $(#[doc = $doc:literal])+
            $name:ident, $async_name:ident $signature:tt $(-> $nothing:ident)? $(as $text:literal)? [$slf:ident $(, $arg:ident: $type:ty)* $(,)?] $body:block
        )*
        ---
        $($own:tt)*
    ) => {
        #[pymethods]
        impl PyAeronArchive {
            $(
                $(#[doc = $doc])+
                #[allow(clippy::too_many_arguments, reason = "they are the fields of the request")]
                #[pyo3(signature = $signature $(, text_signature = $text)?)]
                fn $name(
                    slf: &Bound<'_, Self>,
                    $(#[pyo3(from_py_with = argument::$arg)] $arg: $type,)*
                ) -> PyResult<Py<PyAny>> {
                    Self::$async_name(slf, $($arg),*)?.wait(slf.py(), None)
                }

                #[doc = concat!("Starts `", stringify!($name), "` without waiting for the archive.")]
                #[doc = ""]
                #[doc = "Returns a `PendingOperation` at once. Its result and errors are those of the method without `async_`:"]
                #[doc = ""]
                $(#[doc = $doc])+
                $(
                    #[doc = ""]
                    #[doc = "Returns:"]
                    #[doc = concat!("    A `PendingOperation` whose result is `", stringify!($nothing), "`.")]
                )?
                #[allow(clippy::too_many_arguments, reason = "they are the fields of the request")]
                #[pyo3(signature = $signature $(, text_signature = $text)?)]
                fn $async_name(
                    $slf: &Bound<'_, Self>,
                    $(#[pyo3(from_py_with = argument::$arg)] $arg: $type,)*
                ) -> PyResult<PyPendingOperation> $body
            )*

            $($own)*
        }
    };
}

archive_methods! {
    /// Adds a publication, and records it from the first byte on.
    ///
    /// Args:
    ///     channel: A channel URI, such as `aeron:ipc`, or a `ChannelUriBuilder`.
    ///     stream_id: Stream id.
    ///
    /// Returns:
    ///     The publication.
    ///
    /// Raises:
    ///     InvalidArgumentError: If the client already has the publication.
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    add_recorded_publication, async_add_recorded_publication (channel, stream_id)
    [slf, channel: Channel, stream_id: i32] {
        let begin = |link: &Arc<Link>| link.archive.async_add_recorded_publication(&channel.0, stream_id);
        Self::pending(slf, "add recorded publication", begin, |py, owned, _, publication| {
            PyPublication::new(publication, owned.client(py)?).into_py_any(py)
        })
    }

    /// Adds an exclusive publication, and records it from the first byte on.
    ///
    /// Args:
    ///     channel: A channel URI, such as `aeron:ipc`, or a `ChannelUriBuilder`.
    ///     stream_id: Stream id.
    ///
    /// Returns:
    ///     The publication.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    add_recorded_exclusive_publication, async_add_recorded_exclusive_publication (channel, stream_id)
    [slf, channel: Channel, stream_id: i32] {
        let begin = |link: &Arc<Link>| {
            link.archive.async_add_recorded_exclusive_publication(&channel.0, stream_id)
        };
        Self::pending(slf, "add recorded exclusive publication", begin, |py, owned, _, publication| {
            PyExclusivePublication::new(publication, owned.client(py)?).into_py_any(py)
        })
    }

    /// Starts to record a channel and stream. Each image of the stream becomes a recording.
    ///
    /// Args:
    ///     channel: A channel URI, such as `aeron:ipc`, or a `ChannelUriBuilder`.
    ///     stream_id: Stream id.
    ///     source: `"LOCAL"` if the archive's driver publishes the stream, `"REMOTE"` if another driver does.
    ///     auto_stop: Whether the archive closes the subscription when the first recording of it ends.
    ///
    /// Returns:
    ///     The id of the archive's subscription. `stop_recording` accepts it.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    start_recording, async_start_recording (channel, stream_id, *, source = LOCAL, auto_stop = false)
    as "($self, channel, stream_id, *, source='LOCAL', auto_stop=False)"
    [slf, channel: Channel, stream_id: i32, source: Source, auto_stop: bool] {
        Self::request(slf, ArchiveCall::start_recording(&channel.0, stream_id, source.0, auto_stop))
    }

    /// Extends a recording with a stream that begins where the recording ends.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     channel: A channel URI, such as `aeron:ipc`, or a `ChannelUriBuilder`.
    ///     stream_id: Stream id.
    ///     source: `"LOCAL"` if the archive's driver publishes the stream, `"REMOTE"` if another driver does.
    ///     auto_stop: Whether the archive closes the subscription when the first recording of it ends.
    ///
    /// Returns:
    ///     The id of the archive's subscription. `stop_recording` accepts it.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    extend_recording, async_extend_recording (recording_id, channel, stream_id, *, source = LOCAL, auto_stop = false)
    as "($self, recording_id, channel, stream_id, *, source='LOCAL', auto_stop=False)"
    [slf, recording_id: i64, channel: Channel, stream_id: i32, source: Source, auto_stop: bool] {
        let call = ArchiveCall::extend_recording(recording_id, &channel.0, stream_id, source.0, auto_stop);
        Self::request(slf, call)
    }

    /// Stops the recording of a stream.
    ///
    /// Args:
    ///     recorded: A recorded publication, the id of the archive's subscription, or the channel of the request.
    ///     stream_id: Stream id. Required if `recorded` is a channel.
    ///
    /// Raises:
    ///     InvalidArgumentError: If `recorded` is a channel and `stream_id` is missing.
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    stop_recording, async_stop_recording (recorded, stream_id = None) -> None
    [slf, recorded: Py<PyAny>, stream_id: Option<i32>] {
        match RecordingToStop::read(recorded.bind(slf.py()), stream_id)? {
            RecordingToStop::Subscription(id) => {
                Self::request(slf, ArchiveCall::<()>::stop_recording_subscription(id))
            }
            RecordingToStop::Stream(channel, stream_id) => {
                Self::request(slf, ArchiveCall::<()>::stop_recording(&channel, stream_id))
            }
        }
    }

    /// Stops the recording of a stream, if there is one.
    ///
    /// Args:
    ///     recorded: A recorded publication, the id of the archive's subscription, or the channel of the request.
    ///     stream_id: Stream id. Required if `recorded` is a channel.
    ///
    /// Returns:
    ///     `True` if there was a recording to stop.
    ///
    /// Raises:
    ///     InvalidArgumentError: If `recorded` is a channel and `stream_id` is missing.
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    try_stop_recording, async_try_stop_recording (recorded, stream_id = None)
    [slf, recorded: Py<PyAny>, stream_id: Option<i32>] {
        match RecordingToStop::read(recorded.bind(slf.py()), stream_id)? {
            RecordingToStop::Subscription(id) => {
                Self::request(slf, ArchiveCall::<bool>::try_stop_recording_subscription(id))
            }
            RecordingToStop::Stream(channel, stream_id) => {
                Self::request(slf, ArchiveCall::<bool>::try_stop_recording(&channel, stream_id))
            }
        }
    }

    /// Stops one recording, if the recording is active.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///
    /// Returns:
    ///     `True` if the recording was active.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    try_stop_recording_by_identity, async_try_stop_recording_by_identity (recording_id)
    [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::try_stop_recording_by_identity(recording_id))
    }

    /// Replays a recording to a new subscription.
    ///
    /// An iteration over the subscription's batches ends at the end of the replay. If the replay ends too early,
    /// the iteration raises `ArchiveError`. Closing the subscription stops the replay.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     channel: Channel of the replay. Its port may be 0. For an archive on another host, the channel must
    ///         have an address of this machine.
    ///     stream_id: Stream id of the replay.
    ///     position: Position of the first message, in bytes. `None` stands for the start of the recording.
    ///     length: Number of bytes to replay. `REPLAY_ALL_AND_FOLLOW` replays to the end and follows an active
    ///         recording. `REPLAY_ALL_AND_STOP` stops at the recorded position at the start of the replay.
    ///     bounding_limit_counter_id: Id of a counter. The replay does not go beyond the counter's value.
    ///     file_io_max_length: Maximum length of a read of the archive, in bytes. `None` stands for the archive's
    ///         setting.
    ///
    /// Returns:
    ///     The `Subscription`.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    ///
    /// Example:
    ///     ```python
    ///     for batch in archive.replay(recording_id).batches():
    ///         print(len(batch))
    ///     ```
    replay, async_replay (
        recording_id, channel = Channel(REPLAY_CHANNEL.into()), stream_id = REPLAY_STREAM_ID, *, position = None,
        length = REPLAY_ALL_AND_FOLLOW, bounding_limit_counter_id = None, file_io_max_length = None
    )
    as "($self, recording_id, channel='aeron:ipc', stream_id=100, *, position=None, length=-1, bounding_limit_counter_id=None, file_io_max_length=None)"
    [
        slf, recording_id: i64, channel: Channel, stream_id: i32, position: Option<i64>, length: i64,
        bounding_limit_counter_id: Option<i32>, file_io_max_length: Option<i32>,
    ] {
        let params = replay_params(position, length, bounding_limit_counter_id, file_io_max_length);
        let begin = |link: &Arc<Link>| -> Result<ArchiveOperation<StartedReplay>> {
            link.archive.async_replay_with_id(recording_id, &channel.0, stream_id, &params)
        };
        Self::pending(slf, "replay", begin, replay_subscription)
    }

    /// Replays a recording to a channel and stream. The program adds the subscription itself.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     channel: Channel of the replay.
    ///     stream_id: Stream id of the replay.
    ///     position: Position of the first message, in bytes. `None` stands for the start of the recording.
    ///     length: Number of bytes to replay. `REPLAY_ALL_AND_FOLLOW` replays to the end and follows an active
    ///         recording. `REPLAY_ALL_AND_STOP` stops at the recorded position at the start of the replay.
    ///     bounding_limit_counter_id: Id of a counter. The replay does not go beyond the counter's value.
    ///     file_io_max_length: Maximum length of a read of the archive, in bytes. `None` stands for the archive's
    ///         setting.
    ///
    /// Returns:
    ///     The id of the replay. Its low 32 bits are the session id of the replayed stream.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    start_replay, async_start_replay (
        recording_id, channel, stream_id, *, position = None, length = REPLAY_ALL_AND_FOLLOW,
        bounding_limit_counter_id = None, file_io_max_length = None
    )
    as "($self, recording_id, channel, stream_id, *, position=None, length=-1, bounding_limit_counter_id=None, file_io_max_length=None)"
    [
        slf, recording_id: i64, channel: Channel, stream_id: i32, position: Option<i64>, length: i64,
        bounding_limit_counter_id: Option<i32>, file_io_max_length: Option<i32>,
    ] {
        let params = replay_params(position, length, bounding_limit_counter_id, file_io_max_length);
        let begin = |link: &Arc<Link>| {
            link.archive.async_start_replay(recording_id, &channel.0, stream_id, &params)
        };
        Self::pending(slf, "start replay", begin, |py, _, _, id: i64| id.into_py_any(py))
    }

    /// Stops a replay. An unknown id is not an error.
    ///
    /// Args:
    ///     replay_session_id: Id of the replay, which `start_replay` returned.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    stop_replay, async_stop_replay (replay_session_id) -> None [slf, replay_session_id: i64] {
        Self::request(slf, ArchiveCall::stop_replay(replay_session_id))
    }

    /// Stops all replays of a recording, also those of other clients.
    ///
    /// Args:
    ///     recording_id: Id of the recording. `None` stops the replays of all recordings.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    stop_all_replays, async_stop_all_replays (recording_id = None) -> None [slf, recording_id: Option<i64>] {
        Self::request(slf, ArchiveCall::stop_all_replays(recording_id.unwrap_or(NULL_VALUE)))
    }

    /// Lists recordings in the order of their ids.
    ///
    /// Args:
    ///     channel: Text that the stripped channel of a recording contains. `None` lists all channels.
    ///     stream_id: Stream id of the recordings. `None` lists all streams.
    ///     from_recording_id: Lowest recording id to list.
    ///     limit: Maximum number of results. `None` stands for no limit.
    ///
    /// Returns:
    ///     `Recordings`, a tuple with `to_arrow()`.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    list_recordings, async_list_recordings (*, channel = None, stream_id = None, from_recording_id = 0, limit = None)
    [slf, channel: Option<Channel>, stream_id: Option<i32>, from_recording_id: i64, limit: Option<usize>] {
        let wanted = RecordingFilter {
            channel: channel.map(|channel| channel.0),
            stream_id,
            limit: limit.unwrap_or(usize::MAX),
        };
        let call = wanted.call(from_recording_id);
        let begin = |link: &Arc<Link>| link.archive.begin(call);
        Self::pending(slf, "list recordings", begin, |py, _, _, listed| wanted.recordings(py, listed))
    }

    /// Looks up one recording by its id.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///
    /// Returns:
    ///     The recording, or `None` if the archive does not have it.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    list_recording, async_list_recording (recording_id) [slf, recording_id: i64] {
        let begin = |link: &Arc<Link>| link.archive.begin(ArchiveCall::list_recording(recording_id));
        Self::pending(slf, "list recording", begin, optional_recording)
    }

    /// Lists the subscriptions with which the archive records.
    ///
    /// Args:
    ///     channel: Text that the channel of a subscription contains. `None` lists all channels.
    ///     stream_id: Stream id of the subscriptions. `None` lists all streams.
    ///     from_index: Index of the first subscription.
    ///     limit: Maximum number of results. `None` stands for no limit.
    ///
    /// Returns:
    ///     A list of `RecordingSubscription`.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    list_recording_subscriptions, async_list_recording_subscriptions (
        *, channel = None, stream_id = None, from_index = 0, limit = None
    )
    [slf, channel: Option<Channel>, stream_id: Option<i32>, from_index: i32, limit: Option<usize>] {
        let channel = channel.map_or_else(String::new, |channel| channel.0);
        let limit = limit.map_or(i32::MAX, |limit| i32::try_from(limit).unwrap_or(i32::MAX));
        let call = ArchiveCall::list_recording_subscriptions(from_index, limit, &channel, stream_id);
        let begin = |link: &Arc<Link>| link.archive.begin(call);
        Self::pending(slf, "list recording subscriptions", begin, |py, _, _, listed: Vec<_>| {
            let listed = listed.into_iter().map(PyRecordingSubscription::from);
            listed.collect::<Vec<_>>().into_py_any(py)
        })
    }

    /// Finds the newest recording of a session and stream.
    ///
    /// Args:
    ///     channel: Text that the stripped channel of the recording contains.
    ///     stream_id: Stream id.
    ///     session_id: Session id of the publisher.
    ///     min_recording_id: Lowest recording id to consider.
    ///
    /// Returns:
    ///     The recording id, or `None` if there is no such recording.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    find_last_matching_recording, async_find_last_matching_recording (channel, stream_id, session_id, *, min_recording_id = 0)
    [slf, channel: Channel, stream_id: i32, session_id: i32, min_recording_id: i64] {
        let call = ArchiveCall::find_last_matching_recording(min_recording_id, &channel.0, stream_id, session_id);
        Self::request(slf, call)
    }

    /// Returns the position of the first byte of a recording.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///
    /// Returns:
    ///     The position, in bytes.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    get_start_position, async_get_start_position (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::start_position(recording_id))
    }

    /// Returns the recorded position of an active recording.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///
    /// Returns:
    ///     The position in bytes; `None` if the recording is not active.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    get_recording_position, async_get_recording_position (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::recording_position(recording_id))
    }

    /// Returns the position at which a recording ended.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///
    /// Returns:
    ///     The position in bytes; `None` if the recording is active.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    get_stop_position, async_get_stop_position (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::stop_position(recording_id))
    }

    /// Returns the recorded position of an active recording, or the stop position of any other recording.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///
    /// Returns:
    ///     The position, in bytes.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    get_max_recorded_position, async_get_max_recorded_position (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::max_recorded_position(recording_id))
    }

    /// Truncates a recording that is not active.
    ///
    /// The archive sends the signal `DELETE` after it has deleted the files.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     position: New stop position, in bytes. A frame must begin there.
    ///
    /// Returns:
    ///     The number of files to delete.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    truncate_recording, async_truncate_recording (recording_id, position) [slf, recording_id: i64, position: i64] {
        Self::request(slf, ArchiveCall::truncate_recording(recording_id, position))
    }

    /// Deletes a recording that is neither active nor being replayed.
    ///
    /// The archive sends the signal `DELETE` after it has deleted the files.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///
    /// Returns:
    ///     The number of files to delete.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    purge_recording, async_purge_recording (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::purge_recording(recording_id))
    }

    /// Moves the start of a recording to the start of a segment, and keeps the files before the new start.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     new_start_position: New start position, in bytes. A segment must begin there.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    detach_segments, async_detach_segments (recording_id, new_start_position) -> None
    [slf, recording_id: i64, new_start_position: i64] {
        Self::request(slf, ArchiveCall::detach_segments(recording_id, new_start_position))
    }

    /// Deletes the files before the start of a recording.
    ///
    /// The archive sends the signal `DELETE` after it has deleted the files.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///
    /// Returns:
    ///     The number of files to delete.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    delete_detached_segments, async_delete_detached_segments (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::delete_detached_segments(recording_id))
    }

    /// Moves the start of a recording to the start of a segment, and deletes the files before the new start.
    ///
    /// The archive sends the signal `DELETE` after it has deleted the files.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     new_start_position: New start position, in bytes. A segment must begin there.
    ///
    /// Returns:
    ///     The number of files to delete.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    purge_segments, async_purge_segments (recording_id, new_start_position)
    [slf, recording_id: i64, new_start_position: i64] {
        Self::request(slf, ArchiveCall::purge_segments(recording_id, new_start_position))
    }

    /// Moves the start of a recording back over the detached files before it.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///
    /// Returns:
    ///     The number of attached files.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    attach_segments, async_attach_segments (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::attach_segments(recording_id))
    }

    /// Moves all segments of one recording to an adjacent recording of the same stream.
    ///
    /// Two recordings are adjacent if one begins where the other ends, at the start of a segment. The first
    /// recording is empty afterwards.
    ///
    /// Args:
    ///     src_recording_id: Id of the recording that loses its segments.
    ///     dst_recording_id: Id of the recording that gets the segments.
    ///
    /// Returns:
    ///     The number of moved segments.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    migrate_segments, async_migrate_segments (src_recording_id, dst_recording_id)
    [slf, src_recording_id: i64, dst_recording_id: i64] {
        Self::request(slf, ArchiveCall::migrate_segments(src_recording_id, dst_recording_id))
    }

    /// Replaces the channel of a recording.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     channel: The new channel.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    update_channel, async_update_channel (recording_id, channel) -> None [slf, recording_id: i64, channel: Channel] {
        Self::request(slf, ArchiveCall::update_channel(recording_id, &channel.0))
    }

    /// Copies a recording of another archive to this one.
    ///
    /// The copy is a new recording, or extends the recording `dst_recording_id`.
    ///
    /// Args:
    ///     src_recording_id: Id of the recording in the other archive.
    ///     src_control_channel: Control channel of the other archive.
    ///     src_control_stream_id: Control stream id of the other archive.
    ///     stop_position: Position at which the copy ends, in bytes. `None` stands for the end of the recording.
    ///     dst_recording_id: Id of the recording to extend. `None` creates a new recording.
    ///     live_destination: Destination for the live stream. If it is set, the copy follows the live stream after
    ///         it has caught up.
    ///     replication_channel: Channel of the replay from the other archive. `None` stands for the archive's
    ///         setting.
    ///     src_response_channel: Channel of the responses of the other archive. `None` stands for the archive's
    ///         setting.
    ///     channel_tag_id: Channel tag of the copy's subscription. `None` stands for no tag.
    ///     subscription_tag_id: Subscription tag of the copy's subscription. `None` stands for no tag.
    ///     file_io_max_length: Maximum length of a read of the other archive, in bytes. `None` stands for the
    ///         other archive's setting.
    ///     replication_session_id: Session id of the replay. `None` stands for the session id of the recording.
    ///     encoded_credentials: Credentials for the other archive.
    ///
    /// Returns:
    ///     The id of the replication. Signals and errors of the replication have it as their correlation id.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    replicate, async_replicate (
        src_recording_id, src_control_channel, src_control_stream_id = 10, *, stop_position = None, dst_recording_id = None,
        live_destination = None, replication_channel = None, src_response_channel = None, channel_tag_id = None,
        subscription_tag_id = None, file_io_max_length = None, replication_session_id = None, encoded_credentials = None
    )
    [
        slf, src_recording_id: i64, src_control_channel: Channel, src_control_stream_id: i32, stop_position: Option<i64>,
        dst_recording_id: Option<i64>, live_destination: Option<Channel>, replication_channel: Option<Channel>,
        src_response_channel: Option<Channel>, channel_tag_id: Option<i64>, subscription_tag_id: Option<i64>,
        file_io_max_length: Option<i32>, replication_session_id: Option<i32>, encoded_credentials: Option<PyBackedBytes>,
    ] {
        let text = |channel: Option<Channel>| channel.map_or_else(String::new, |channel| channel.0);
        let params = ReplicationParams {
            stop_position: stop_position.unwrap_or(NULL_VALUE),
            dst_recording_id: dst_recording_id.unwrap_or(NULL_VALUE),
            live_destination: text(live_destination),
            replication_channel: text(replication_channel),
            src_response_channel: text(src_response_channel),
            channel_tag_id: channel_tag_id.unwrap_or(NULL_VALUE),
            subscription_tag_id: subscription_tag_id.unwrap_or(NULL_VALUE),
            file_io_max_length: file_io_max_length.unwrap_or(NULL_LENGTH),
            replication_session_id: replication_session_id.unwrap_or(NULL_SESSION_ID),
            encoded_credentials: encoded_credentials.map_or_else(Vec::new, |bytes| bytes.to_vec()),
        };
        let call = ArchiveCall::replicate(
            src_recording_id, src_control_stream_id, &src_control_channel.0, &params,
        );
        Self::request(slf, call.map_err(|error| from_archive(&error))?)
    }

    /// Stops a replication.
    ///
    /// Args:
    ///     replication_id: Id of the replication.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    stop_replication, async_stop_replication (replication_id) -> None [slf, replication_id: i64] {
        Self::request(slf, ArchiveCall::<()>::stop_replication(replication_id))
    }

    /// Stops a replication, if there is one.
    ///
    /// Args:
    ///     replication_id: Id of the replication.
    ///
    /// Returns:
    ///     `True` if there was a replication to stop.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    try_stop_replication, async_try_stop_replication (replication_id) [slf, replication_id: i64] {
        Self::request(slf, ArchiveCall::<bool>::try_stop_replication(replication_id))
    }
    ---

    /// Adds a `PersistentSubscription` that replays a recording of this archive, and then joins its live stream.
    ///
    /// The subscription has its own session with the archive, with the settings of this client. If the
    /// credentials are a function, each connection of the subscription calls it.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
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
    ///
    /// Returns:
    ///     The subscription.
    ///
    /// Raises:
    ///     ConfigurationError: If a setting is missing or contradicts another one.
    ///     ArchiveClosedError: If the client of the archive is closed.
    #[pyo3(
        signature = (**settings),
        text_signature = "($self, *, recording_id, live_channel, live_stream_id, replay_channel='aeron:ipc', replay_stream_id=100, start_position=-2, on_live_joined=None, on_live_left=None, on_error=None)"
    )]
    fn persistent_subscription(
        &self,
        py: Python<'_>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyPersistentSubscription> {
        let (options, others) = Options::read(py, settings)?;
        if let Some((name, _)) = others.iter().next() {
            let reason = format!(
                "persistent_subscription has no setting {name}; help(aeron.PersistentSubscription) lists all"
            );
            return Err(raise("ArgumentTypeError", reason));
        }
        let mut context = self.get()?.context().clone();
        let credentials = self.credentials.for_another(py)?;
        if let Some(credentials) = &credentials {
            context.credentials = Arc::clone(&credentials.supplier) as _;
        }
        let credentials = credentials.unwrap_or_default();
        PyPersistentSubscription::open(self.client.bind(py), options, context, credentials)
    }

    /// Creates a `RecordedPublisher` that this archive records.
    ///
    /// The publisher has its own client of this archive's driver, and its own session with the archive with the
    /// settings of this client. If the credentials are a function, each connection of the publisher calls it.
    ///
    /// Args:
    ///     channel: Channel of the stream.
    ///     stream_id: Stream id of the stream and of its recording.
    ///     recording_id: Id of the recording that is extended.
    ///     alias: Name of the stream, instead of a recording id. The publisher extends the last recording with this
    ///         alias and stream id, or starts one.
    ///     source: `"LOCAL"` if the archive is on this driver, `"REMOTE"` if it is on another one.
    ///     buffer_length: Maximum number of bytes of messages that are not recorded yet. Each message also uses 32
    ///         bytes.
    ///     takeover_timeout: Seconds to wait at the start for the end of another publisher of the recording.
    ///     on_reconnect: Called as `on_reconnect(position)` when the recording goes on after a loss.
    ///     on_error: Called as `on_error(error)` with each `RecordedPublisherError`. If `has_failed` is then `True`,
    ///         the error has ended the publisher.
    ///     driver_timeout_ms: Milliseconds to wait for the driver. Default: `AERON_DRIVER_TIMEOUT`, or `10000`.
    ///
    /// Returns:
    ///     The publisher.
    ///
    /// Raises:
    ///     ConfigurationError: If a setting is not valid or contradicts another one.
    ///     ArchiveClosedError: If the client of the archive is closed.
    #[pyo3(
        signature = (channel, stream_id, **settings),
        text_signature = "($self, channel, stream_id, *, recording_id=None, alias=None, source='LOCAL', buffer_length=16777216, takeover_timeout=30.0, on_reconnect=None, on_error=None, driver_timeout_ms=None)"
    )]
    fn recorded_publisher(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::channel)] channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyRecordedPublisher> {
        let (options, others) = PublisherOptions::read(py, channel, stream_id, settings)?;
        if let Some((name, _)) = others.iter().next() {
            let reason = format!(
                "recorded_publisher has no setting {name}; help(aeron.RecordedPublisher) lists all"
            );
            return Err(raise("ArgumentTypeError", reason));
        }
        let mut context = self.get()?.context().clone();
        let credentials = self.credentials.for_another(py)?;
        if let Some(credentials) = &credentials {
            context.credentials = Arc::clone(&credentials.supplier) as _;
        }
        let driver = self.client.get().driver(py);
        let credentials = credentials.unwrap_or_default();
        PyRecordedPublisher::open(py, Some(driver), options, context, credentials)
    }

    /// Waits until the archive has recorded a publication up to a position.
    ///
    /// The archive has then written the data to the recording's files. Whether the data survives a power failure
    /// depends on the archive's setting `file_sync_level`.
    ///
    /// Args:
    ///     publication: A recorded publication of this client.
    ///     position: Position in bytes, such as `publication.position`.
    ///     timeout: Seconds to wait. `None` waits without a limit.
    ///
    /// Returns:
    ///     The `Recording`.
    ///
    /// Raises:
    ///     ArchiveTimeoutError: If the archive has not recorded the position within `timeout`, or does not respond
    ///         within the message timeout.
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    #[pyo3(signature = (publication, position, timeout = None))]
    fn wait_recorded(
        slf: &Bound<'_, Self>,
        publication: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::position)] position: i64,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        let operation = Self::async_wait_recorded(slf, publication, position)?;
        let outcome = operation.wait(slf.py(), timeout);
        outcome.map_err(|error| match is_timeout(slf.py(), &error) {
            true => raise(
                "ArchiveTimeoutError",
                format!(
                    "the stream is not recorded up to {position} after {} s: wait longer, or see whether its recording has stopped",
                    timeout.unwrap_or_default()
                ),
            ),
            false => error,
        })
    }

    /// Starts `wait_recorded` without waiting for the archive.
    ///
    /// Args:
    ///     publication: A recorded publication of this client.
    ///     position: Position in bytes, such as `publication.position`.
    ///
    /// Returns:
    ///     A `PendingOperation` whose result is the `Recording`.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    fn async_wait_recorded(
        slf: &Bound<'_, Self>,
        publication: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::position)] position: i64,
    ) -> PyResult<PyPendingOperation> {
        let Some(stream) = session_of(publication)? else {
            return Err(wrong_type(publication, "publication", "a publication"));
        };
        let stream = PublicationStream {
            session_id: stream.session_id,
            stream_id: stream.stream_id,
        };
        let what = format!("recording session {} up to {position}", stream.session_id);
        let begin = |link: &Arc<Link>| Ok(WaitRecorded::new(link, stream, position));
        Self::pending(slf, &what, begin, |py, _, _, descriptor| {
            PyRecording::from(descriptor).into_py_any(py)
        })
    }

    /// Returns the position of the first byte of the segment file that contains a position.
    ///
    /// Args:
    ///     start_position: Start position of the recording, in bytes.
    ///     position: Position in the segment file, in bytes.
    ///     term_buffer_length: Length of a term, in bytes.
    ///     segment_file_length: Length of a segment file, in bytes.
    ///
    /// Returns:
    ///     The position of the segment file's first byte, in bytes.
    #[staticmethod]
    fn segment_file_base_position(
        #[pyo3(from_py_with = argument::start_position)] start_position: i64,
        #[pyo3(from_py_with = argument::position)] position: i64,
        #[pyo3(from_py_with = argument::term_buffer_length)] term_buffer_length: i32,
        #[pyo3(from_py_with = argument::segment_file_length)] segment_file_length: i32,
    ) -> i64 {
        AeronArchive::segment_file_base_position(
            start_position,
            position,
            term_buffer_length,
            segment_file_length,
        )
    }

    /// Iterates over signals of recordings as they arrive.
    ///
    /// The client keeps up to 1024 signals. If more arrive, the oldest signal is lost.
    ///
    /// The iterator ends if no signal arrives for `timeout` seconds, or the client is closed.
    ///
    /// Args:
    ///     timeout: Seconds to wait for each signal. `None` waits without a limit.
    ///
    /// Returns:
    ///     An iterator of `RecordingSignal`.
    ///
    /// Raises:
    ///     InvalidArgumentError: If the client has a signal handler (`on_signal`).
    #[pyo3(signature = (timeout = None))]
    fn signals(&self, #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>) -> PyResult<PyRecordingSignals> {
        if self.has_signal_handler {
            let reason = "on_signal takes the signals: connect without it to iterate over them";
            return Err(raise("InvalidArgumentError", reason));
        }
        let patience = WaitPolicy::new(timeout, self.max_idle_park_ns)?;
        Ok(PyRecordingSignals::new(self.link.get()?, patience))
    }

    /// Polls the session once. Only a program whose client has no threads must call it.
    ///
    /// Raises:
    ///     ArchiveError: If the archive refuses the request; the subclass names the reason.
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveDisconnectedError: If the archive ended the session.
    ///     ArchiveClosedError: If the client of the archive is closed.
    fn poll(&self, py: Python<'_>) -> PyResult<()> {
        let archive = self.get()?;
        let polled = py.detach(|| archive.poll());
        polled.map(drop).map_err(|error| from_archive(&error))
    }

    /// Polls the session once, and returns an error for which no call waits, such as an error of a replay.
    ///
    /// Returns:
    ///     The error, or `None` if there is no such error.
    ///
    /// Raises:
    ///     ArchiveClosedError: If the client of the archive is closed.
    fn poll_for_error(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let archive = self.get()?;
        let polled = py.detach(|| archive.poll_for_error_response());
        let error = polled.map_err(|error| from_archive(&error))?;
        Ok(error.map(|error| from_archive(&error).into_value(py).into_any()))
    }

    /// Id of the archive; -1 if the archive is too old to report it.
    #[getter]
    fn archive_id(&self) -> PyResult<i64> {
        Ok(self.get()?.archive_id())
    }

    /// Correlation id of the last request; -1 before the first request.
    #[getter]
    fn last_correlation_id(&self, py: Python<'_>) -> PyResult<i64> {
        let archive = self.get()?;
        let id = py.detach(|| archive.last_correlation_id());
        id.map_err(|error| from_archive(&error))
    }

    /// Id of the control session.
    #[getter]
    fn control_session_id(&self) -> PyResult<i64> {
        Ok(self.get()?.control_session_id())
    }

    /// The Aeron client that the archive's client uses.
    #[getter]
    fn client(&self, py: Python<'_>) -> Py<PyAeron> {
        self.client.clone_ref(py)
    }

    /// State of the session: `CONNECTED`, `DISCONNECTED` if the archive has ended the session, or `CLOSED`.
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<&'static str> {
        let archive = self.get()?;
        let state = py.detach(|| archive.state());
        Ok(match state.map_err(|error| from_archive(&error))? {
            ArchiveSessionState::Connected => "CONNECTED",
            ArchiveSessionState::Disconnected => "DISCONNECTED",
            ArchiveSessionState::Closed => "CLOSED",
        })
    }

    /// Whether the client was closed.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> PyResult<bool> {
        let link = self.link.get()?;
        Ok(py.detach(|| link.is_closed()))
    }

    /// Closes the session. Idempotent.
    ///
    /// Outstanding requests fail. Recordings, replays and replications of the archive continue.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let link = self.link.get()?;
        py.detach(|| link.close());
        self.handlers.iter().for_each(EventHandler::clear);
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

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> std::result::Result<(), pyo3::PyTraverseError> {
        visit.call(&self.client)?;
        self.handlers
            .iter()
            .try_for_each(|handler| handler.visit(&visit))
    }

    fn __repr__(&self) -> String {
        let archive = &self.link.anywhere().archive;
        format!(
            "<AeronArchive of archive {}, control session {}>",
            archive.archive_id(),
            archive.control_session_id()
        )
    }
}

/// Whether the error says that an operation was not over within the timeout.
fn is_timeout(py: Python<'_>, error: &PyErr) -> bool {
    let name = error.get_type(py).name();
    name.is_ok_and(|name| name == "OperationTimeoutError")
}

fn replay_params(
    position: Option<i64>,
    length: i64,
    bounding_limit_counter_id: Option<i32>,
    file_io_max_length: Option<i32>,
) -> ReplayParams {
    ReplayParams {
        position: position.unwrap_or(NULL_VALUE),
        length,
        bounding_limit_counter_id: bounding_limit_counter_id.unwrap_or(NULL_COUNTER_ID),
        file_io_max_length: file_io_max_length.unwrap_or(NULL_LENGTH),
        ..ReplayParams::default()
    }
}
