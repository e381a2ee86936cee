//! [`PyAeronArchive`]: a client of an archive.

use std::sync::Arc;

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::client::{
    AeronArchive, ArchiveCall, ArchiveOperation, NULL_COUNTER_ID, ReplayParams, ReplicationParams,
    Result, SessionState, StartedReplay,
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
use super::recorded::{RecordedStream, WaitRecorded};
use super::recording::{PyRecording, PyRecordingSubscription};
use super::replay::Replay;
use super::signals::PyRecordingSignals;
use crate::argument::{self, Argument, wrong_type};
use crate::channel::Channel;
use crate::client::PyAeron;
use crate::errors::raise;
use crate::events::Handler;
use crate::fork::OfProcess;
use crate::operations::{Owned, PyPendingOperation};
use crate::publication::{PyExclusivePublication, PyPublication};
use crate::subscription::PySubscription;
use crate::waiting::Patience;

/// A client of an archive, which `connect_archive` returns.
///
/// Each method sends a request and waits for the response, up to the message timeout. Its `async_` form returns a `PendingOperation`
/// instead, for `await` or `result(timeout)`. Refusals of the archive are `ArchiveError`s with a `code` and a `correlation_id`.
///
/// A thread of the client keeps the session alive while the program makes no calls. In a program that runs the client's conductor itself
/// (`use_conductor_agent_invoker`, or a driver in mode INVOKER) there is no such thread: call `poll` at least once in a few seconds.
///
/// A context manager that closes the session; recordings, replays and replications of the archive go on. Thread-safe.
#[pyclass(frozen, weakref, module = "aeron._aeron", name = "AeronArchive")]
pub struct PyAeronArchive {
    link: OfProcess<Arc<Link>>,
    client: Py<PyAeron>,
    /// Its handlers, for the garbage collector.
    handlers: Vec<Handler>,
    credentials: Arc<Credentials>,
    has_signal_handler: bool,
    max_idle_park_ns: u64,
}

impl Drop for PyAeronArchive {
    fn drop(&mut self) {
        // The program did not close the client. Native code no longer calls its handlers.
        self.handlers.iter().for_each(Handler::clear);
    }
}

impl PyAeronArchive {
    pub fn new(
        link: Arc<Link>,
        client: &Bound<'_, PyAeron>,
        handlers: Vec<Handler>,
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

    /// The session, which stays open as long as the link.
    pub fn link(&self) -> PyResult<&Arc<Link>> {
        self.link.get()
    }

    fn get(&self) -> PyResult<&AeronArchive> {
        self.link.get().map(|link| &link.archive)
    }

    /// Begins what the archive has to finish. `convert` makes the Python object of the result.
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

/// Where a stream that is recorded comes from: `LOCAL` or `REMOTE`.
struct Source(SourceLocation);

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
/// Channel of replays, if nobody names one: that of an archive on the client's driver.
pub const REPLAY_CHANNEL: &str = "aeron:ipc";
/// Stream of replays, if nobody names one; the session id keeps them apart.
pub const REPLAY_STREAM_ID: i32 = 100;

/// What names a recording that is to be stopped: a publication, a channel, or the id of the archive's subscription.
enum Recorded {
    Subscription(i64),
    Stream(String, i32),
}

impl Recorded {
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

/// The stream of a publication of either kind; `None` for another object.
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

/// What a listing of recordings is limited to.
struct Wanted {
    channel: Option<String>,
    stream_id: Option<i32>,
    limit: usize,
}

impl Wanted {
    /// Asks for the recordings; the archive itself can only look for channel and stream together.
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

    /// Makes the Python object of what the archive listed.
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

/// Methods in pairs: one that waits, and its `async_` form.
macro_rules! archive_methods {
    (
        $(
            $(#[doc = $doc:literal])+
            $name:ident, $async_name:ident $signature:tt $(as $text:literal)? [$slf:ident $(, $arg:ident: $type:ty)* $(,)?] $body:block
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

                #[doc = concat!("As `", stringify!($name), "`, without waiting: returns a `PendingOperation`.")]
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
    /// Adds a publication and records it from its first byte on. Raises `InvalidArgumentError` if the client has the publication
    /// already.
    add_recorded_publication, async_add_recorded_publication (channel, stream_id)
    [slf, channel: Channel, stream_id: i32] {
        let begin = |link: &Arc<Link>| link.archive.async_add_recorded_publication(&channel.0, stream_id);
        Self::pending(slf, "add recorded publication", begin, |py, owned, _, publication| {
            PyPublication::new(publication, owned.client(py)?).into_py_any(py)
        })
    }

    /// Adds an exclusive publication and records it from its first byte on.
    add_recorded_exclusive_publication, async_add_recorded_exclusive_publication (channel, stream_id)
    [slf, channel: Channel, stream_id: i32] {
        let begin = |link: &Arc<Link>| {
            link.archive.async_add_recorded_exclusive_publication(&channel.0, stream_id)
        };
        Self::pending(slf, "add recorded exclusive publication", begin, |py, owned, _, publication| {
            PyExclusivePublication::new(publication, owned.client(py)?).into_py_any(py)
        })
    }

    /// Records a channel and stream: each image of it becomes a recording. Returns the id of the archive's subscription.
    ///
    /// `source` is `"LOCAL"` if the archive's driver publishes the stream, `"REMOTE"` if another driver does. With `auto_stop` the archive
    /// closes its subscription when the first of its recordings ends.
    start_recording, async_start_recording (channel, stream_id, *, source = LOCAL, auto_stop = false)
    as "($self, channel, stream_id, *, source='LOCAL', auto_stop=False)"
    [slf, channel: Channel, stream_id: i32, source: Source, auto_stop: bool] {
        Self::request(slf, ArchiveCall::start_recording(&channel.0, stream_id, source.0, auto_stop))
    }

    /// Continues a recording with a stream that begins where the recording ends. Returns the id of the archive's subscription.
    extend_recording, async_extend_recording (recording_id, channel, stream_id, *, source = LOCAL, auto_stop = false)
    as "($self, recording_id, channel, stream_id, *, source='LOCAL', auto_stop=False)"
    [slf, recording_id: i64, channel: Channel, stream_id: i32, source: Source, auto_stop: bool] {
        let call = ArchiveCall::extend_recording(recording_id, &channel.0, stream_id, source.0, auto_stop);
        Self::request(slf, call)
    }

    /// Stops recording a publication, the subscription with an id that `start_recording` returned, or a channel with its stream id.
    stop_recording, async_stop_recording (recorded, stream_id = None)
    [slf, recorded: Py<PyAny>, stream_id: Option<i32>] {
        match Recorded::read(recorded.bind(slf.py()), stream_id)? {
            Recorded::Subscription(id) => {
                Self::request(slf, ArchiveCall::<()>::stop_recording_subscription(id))
            }
            Recorded::Stream(channel, stream_id) => {
                Self::request(slf, ArchiveCall::<()>::stop_recording(&channel, stream_id))
            }
        }
    }

    /// As `stop_recording`. Returns whether there was something to stop.
    try_stop_recording, async_try_stop_recording (recorded, stream_id = None)
    [slf, recorded: Py<PyAny>, stream_id: Option<i32>] {
        match Recorded::read(recorded.bind(slf.py()), stream_id)? {
            Recorded::Subscription(id) => {
                Self::request(slf, ArchiveCall::<bool>::try_stop_recording_subscription(id))
            }
            Recorded::Stream(channel, stream_id) => {
                Self::request(slf, ArchiveCall::<bool>::try_stop_recording(&channel, stream_id))
            }
        }
    }

    /// Stops one recording. Returns whether the recording was active.
    try_stop_recording_by_identity, async_try_stop_recording_by_identity (recording_id)
    [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::try_stop_recording_by_identity(recording_id))
    }

    /// Replays a recording and returns the `Subscription` that receives it: its batches end at the end of the replay, and closing it
    /// stops the replay.
    ///
    /// `position` is that of the first message, the start of the recording if it is not given. `length` is a number of bytes,
    /// `REPLAY_ALL_AND_STOP`, or `REPLAY_ALL_AND_FOLLOW`, which follows a recording while it is active. An archive on another host
    /// replays to `channel`, on an address of this machine; its port may be 0.
    ///
    /// A replay that ends before its stream does raises `ArchiveError`.
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

    /// Replays a recording on a channel and stream to which the program subscribes. Returns the id of the replay, whose low 32 bits are
    /// the session id of the stream.
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

    /// Stops a replay by its id. An unknown id is no error.
    stop_replay, async_stop_replay (replay_session_id) [slf, replay_session_id: i64] {
        Self::request(slf, ArchiveCall::stop_replay(replay_session_id))
    }

    /// Stops all replays of a recording, `None` those of all recordings, of all clients.
    stop_all_replays, async_stop_all_replays (recording_id = None) [slf, recording_id: Option<i64>] {
        Self::request(slf, ArchiveCall::stop_all_replays(recording_id.unwrap_or(NULL_VALUE)))
    }

    /// Lists recordings in the order of their ids: those whose stripped channel contains `channel`, and those of a stream. Returns
    /// `Recordings`, a tuple with `to_arrow()`.
    list_recordings, async_list_recordings (*, channel = None, stream_id = None, from_recording_id = 0, limit = None)
    [slf, channel: Option<Channel>, stream_id: Option<i32>, from_recording_id: i64, limit: Option<usize>] {
        let wanted = Wanted {
            channel: channel.map(|channel| channel.0),
            stream_id,
            limit: limit.unwrap_or(usize::MAX),
        };
        let call = wanted.call(from_recording_id);
        let begin = |link: &Arc<Link>| link.archive.begin(call);
        Self::pending(slf, "list recordings", begin, |py, _, _, listed| wanted.recordings(py, listed))
    }

    /// Looks up one recording. Returns `None` if the archive does not have it.
    list_recording, async_list_recording (recording_id) [slf, recording_id: i64] {
        let begin = |link: &Arc<Link>| link.archive.begin(ArchiveCall::list_recording(recording_id));
        Self::pending(slf, "list recording", begin, optional_recording)
    }

    /// Lists the subscriptions by which the archive records and whose channel contains `channel`, of a stream if `stream_id` is given.
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

    /// Finds the newest recording of a session and stream whose stripped channel contains `channel`, with an id of at least
    /// `min_recording_id`. Returns its id, or `None`.
    find_last_matching_recording, async_find_last_matching_recording (channel, stream_id, session_id, *, min_recording_id = 0)
    [slf, channel: Channel, stream_id: i32, session_id: i32, min_recording_id: i64] {
        let call = ArchiveCall::find_last_matching_recording(min_recording_id, &channel.0, stream_id, session_id);
        Self::request(slf, call)
    }

    /// Position of the first byte of a recording.
    get_start_position, async_get_start_position (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::start_position(recording_id))
    }

    /// Position up to which an active recording has come, `None` if the recording is not active.
    get_recording_position, async_get_recording_position (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::recording_position(recording_id))
    }

    /// Position at which a recording ended, `None` while it is active.
    get_stop_position, async_get_stop_position (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::stop_position(recording_id))
    }

    /// Position up to which a recording has come, active or not.
    get_max_recorded_position, async_get_max_recorded_position (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::max_recorded_position(recording_id))
    }

    /// Cuts the end of a recording that is not active. Returns the number of files that are deleted; a signal `DELETE` tells when they
    /// are.
    truncate_recording, async_truncate_recording (recording_id, position) [slf, recording_id: i64, position: i64] {
        Self::request(slf, ArchiveCall::truncate_recording(recording_id, position))
    }

    /// Deletes a recording that is neither recorded nor replayed. Returns the number of files that are deleted; a signal `DELETE` tells
    /// when they are.
    purge_recording, async_purge_recording (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::purge_recording(recording_id))
    }

    /// Moves the start of a recording to the base of a segment and keeps the files before it.
    detach_segments, async_detach_segments (recording_id, new_start_position)
    [slf, recording_id: i64, new_start_position: i64] {
        Self::request(slf, ArchiveCall::detach_segments(recording_id, new_start_position))
    }

    /// Deletes the files before the start of a recording. Returns their number; a signal `DELETE` tells when they are deleted.
    delete_detached_segments, async_delete_detached_segments (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::delete_detached_segments(recording_id))
    }

    /// Moves the start of a recording to the base of a segment and deletes the files before it. Returns their number; a signal `DELETE`
    /// tells when they are deleted.
    purge_segments, async_purge_segments (recording_id, new_start_position)
    [slf, recording_id: i64, new_start_position: i64] {
        Self::request(slf, ArchiveCall::purge_segments(recording_id, new_start_position))
    }

    /// Moves the start of a recording back to the first of the files before it. Returns the number of files.
    attach_segments, async_attach_segments (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::attach_segments(recording_id))
    }

    /// Moves all segments of one recording to another that it continues, or that continues it. Returns the number of segments.
    migrate_segments, async_migrate_segments (src_recording_id, dst_recording_id)
    [slf, src_recording_id: i64, dst_recording_id: i64] {
        Self::request(slf, ArchiveCall::migrate_segments(src_recording_id, dst_recording_id))
    }

    /// Replaces the channel of a recording.
    update_channel, async_update_channel (recording_id, channel) [slf, recording_id: i64, channel: Channel] {
        Self::request(slf, ArchiveCall::update_channel(recording_id, &channel.0))
    }

    /// Copies a recording of another archive to this one. Returns the id of the replication, which its signals and errors carry as their
    /// correlation id.
    ///
    /// The copy is a new recording, or extends `dst_recording_id`. With `live_destination` the replication merges with the live stream.
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
    stop_replication, async_stop_replication (replication_id) [slf, replication_id: i64] {
        Self::request(slf, ArchiveCall::<()>::stop_replication(replication_id))
    }

    /// As `stop_replication`. Returns whether there was such a replication.
    try_stop_replication, async_try_stop_replication (replication_id) [slf, replication_id: i64] {
        Self::request(slf, ArchiveCall::<bool>::try_stop_replication(replication_id))
    }
    ---

    /// Adds a `PersistentSubscription` to a recording of this archive: replayed first, and then live.
    ///
    /// The subscription has a session of its own with the archive, made with the settings of this client. A function that returns
    /// credentials is called for each connection of the subscription too. Keywords are those of `aeron.PersistentSubscription`, without
    /// the settings of the archive's client.
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
    /// Waits up to `timeout` seconds (`None`: without a limit) until the archive has recorded a publication up to `position`. Returns the
    /// `Recording`.
    ///
    /// Raises `ArchiveTimeoutError` if it takes longer. What is recorded was written to the archive's file; whether it survives a power failure depends on `file_sync_level`.
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

    /// As `wait_recorded`, without waiting: returns a `PendingOperation`.
    fn async_wait_recorded(
        slf: &Bound<'_, Self>,
        publication: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::position)] position: i64,
    ) -> PyResult<PyPendingOperation> {
        let Some(stream) = session_of(publication)? else {
            return Err(wrong_type(publication, "publication", "a publication"));
        };
        let stream = RecordedStream {
            session_id: stream.session_id,
            stream_id: stream.stream_id,
        };
        let what = format!("recording session {} up to {position}", stream.session_id);
        let begin = |link: &Arc<Link>| Ok(WaitRecorded::new(link, stream, position));
        Self::pending(slf, &what, begin, |py, _, _, descriptor| {
            PyRecording::from(descriptor).into_py_any(py)
        })
    }

    /// Position of the first byte of the segment file that holds `position`. Lengths are in bytes.
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

    /// Signals of recordings as they arrive, until none came for `timeout` seconds (`None`: without a limit) or the client is closed. Up
    /// to 1024 signals wait; if more come, the oldest is lost.
    #[pyo3(signature = (timeout = None))]
    fn signals(&self, #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>) -> PyResult<PyRecordingSignals> {
        if self.has_signal_handler {
            let reason = "on_signal takes the signals: connect without it to iterate over them";
            return Err(raise("InvalidArgumentError", reason));
        }
        let patience = Patience::new(timeout, self.max_idle_park_ns)?;
        Ok(PyRecordingSignals::new(self.link.get()?, patience))
    }

    /// Polls the session once. Needed only in a program that runs the client's conductor itself.
    fn poll(&self, py: Python<'_>) -> PyResult<()> {
        let archive = self.get()?;
        let polled = py.detach(|| archive.poll());
        polled.map(drop).map_err(|error| from_archive(&error))
    }

    /// Polls once and returns an error that no call was waiting for, such as that of a replay that nobody receives, or `None`.
    fn poll_for_error(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let archive = self.get()?;
        let polled = py.detach(|| archive.poll_for_error_response());
        let error = polled.map_err(|error| from_archive(&error))?;
        Ok(error.map(|error| from_archive(&error).into_value(py).into_any()))
    }

    /// Id of the archive, -1 if the archive is too old to tell it.
    #[getter]
    fn archive_id(&self) -> PyResult<i64> {
        Ok(self.get()?.archive_id())
    }

    /// Correlation id of the last request, -1 before the first.
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

    /// The Aeron client.
    #[getter]
    fn client(&self, py: Python<'_>) -> Py<PyAeron> {
        self.client.clone_ref(py)
    }

    /// `CONNECTED`, `DISCONNECTED` after the archive has ended the session, or `CLOSED`.
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<&'static str> {
        let archive = self.get()?;
        let state = py.detach(|| archive.state());
        Ok(match state.map_err(|error| from_archive(&error))? {
            SessionState::Connected => "CONNECTED",
            SessionState::Disconnected => "DISCONNECTED",
            SessionState::Closed => "CLOSED",
        })
    }

    /// Whether the client is closed.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> PyResult<bool> {
        let link = self.link.get()?;
        Ok(py.detach(|| link.is_closed()))
    }

    /// Closes the session, and fails what is outstanding. Recordings, replays and replications go on. Idempotent.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let link = self.link.get()?;
        py.detach(|| link.close());
        self.handlers.iter().for_each(Handler::clear);
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

/// Whether an operation was not finished within its time.
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
