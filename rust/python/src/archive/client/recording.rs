//! Methods that record streams.

use std::sync::Arc;

use aeron_archive::channel::ON_FAILURE;
use aeron_archive::client::{AeronArchive, ArchiveCall};
use aeron_archive::server::OnFailure;
use aeron_protocol::archive::SourceLocation;
use aeron_protocol::uri::{ChannelUri, UriError};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::super::errors::from_archive;
use super::super::link::Link;
use super::super::recorded::{PublicationStream, WaitRecorded};
use super::super::recording::{PyRecording, Source};
use super::PyAeronArchive;
use super::methods::archive_methods;
use crate::argument::{self, Argument, wrong_type};
use crate::channel::Channel;
use crate::errors::raise;
use crate::operations::PyPendingOperation;
use crate::publication::{PyExclusivePublication, PyPublication};

const LOCAL: Source = Source(SourceLocation::Local);

/// How the archive treats the rest of a stream after its recording has failed: `block` or `release`.
pub struct FailureTreatment(OnFailure);

impl Argument for FailureTreatment {
    fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let text = value.cast::<PyString>().ok();
        let treatment = text.and_then(|text| OnFailure::from_name(&text.to_string_lossy()));
        treatment
            .map(Self)
            .ok_or_else(|| wrong_type(value, name, "\"block\" or \"release\""))
    }
}

/// Returns the channel of a recording request with the parameter that chooses the treatment of a failure.
fn with_on_failure(channel: Channel, on_failure: Option<FailureTreatment>) -> PyResult<String> {
    let Some(FailureTreatment(on_failure)) = on_failure else {
        return Ok(channel.0);
    };
    let mut channel = ChannelUri::parse(&channel.0).map_err(invalid_channel)?;
    channel
        .put(ON_FAILURE, on_failure.name())
        .map_err(invalid_channel)?;
    Ok(channel.to_string())
}

fn invalid_channel(error: UriError) -> PyErr {
    raise("InvalidChannelError", error.to_string())
}

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

/// Returns the stream of a concurrent or exclusive publication; `None` for any other object.
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
    ///     RegistrationError: If the driver refuses the publication; the subclass names the reason.
    ///     DriverTimeoutError: If the driver does not respond within the driver timeout.
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
    ///     RegistrationError: If the driver refuses the publication; the subclass names the reason.
    ///     DriverTimeoutError: If the driver does not respond within the driver timeout.
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
    ///     auto_stop: Whether the archive closes its subscription when the first recording of the
    ///         subscription ends.
    ///     on_failure: How the archive treats the rest of a stream after its recording has failed, for example because
    ///         the disk is full. `"block"`: the archive stops reading, so the publisher is blocked and no data are
    ///         lost. `"release"`: the archive reads and drops the rest. `None`: the setting `recording_on_failure` of
    ///         the archive. Aeron's own archive ignores this argument, and blocks.
    ///
    /// Returns:
    ///     The id of the archive's subscription. `stop_recording` accepts it.
    start_recording, async_start_recording (
        channel, stream_id, *, source = LOCAL, auto_stop = false, on_failure = None
    )
    as "($self, channel, stream_id, *, source='LOCAL', auto_stop=False, on_failure=None)"
    [slf, channel: Channel, stream_id: i32, source: Source, auto_stop: bool, on_failure: Option<FailureTreatment>] {
        let channel = with_on_failure(channel, on_failure)?;
        Self::request(slf, ArchiveCall::start_recording(&channel, stream_id, source.0, auto_stop))
    }

    /// Extends a recording with a stream that begins where the recording ends.
    ///
    /// The archive checks this when the stream arrives. If the stream does not continue the recording, `poll_for_error`
    /// or the `error_handler` gets the error.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     channel: A channel URI, such as `aeron:ipc`, or a `ChannelUriBuilder`.
    ///     stream_id: Stream id.
    ///     source: `"LOCAL"` if the archive's driver publishes the stream, `"REMOTE"` if another driver does.
    ///     auto_stop: Whether the archive closes its subscription when the first recording of the
    ///         subscription ends.
    ///     on_failure: How the archive treats the rest of a stream after its recording has failed, for example because
    ///         the disk is full. `"block"`: the archive stops reading, so the publisher is blocked and no data are
    ///         lost. `"release"`: the archive reads and drops the rest. `None`: the setting `recording_on_failure` of
    ///         the archive. Aeron's own archive ignores this argument, and blocks.
    ///
    /// Returns:
    ///     The id of the archive's subscription. `stop_recording` accepts it.
    extend_recording, async_extend_recording (
        recording_id, channel, stream_id, *, source = LOCAL, auto_stop = false, on_failure = None
    )
    as "($self, recording_id, channel, stream_id, *, source='LOCAL', auto_stop=False, on_failure=None)"
    [
        slf, recording_id: i64, channel: Channel, stream_id: i32, source: Source, auto_stop: bool,
        on_failure: Option<FailureTreatment>
    ] {
        let channel = with_on_failure(channel, on_failure)?;
        let call = ArchiveCall::extend_recording(recording_id, &channel, stream_id, source.0, auto_stop);
        Self::request(slf, call)
    }

    /// Stops the recording of a stream.
    ///
    /// Args:
    ///     recorded: A recorded publication, the id of the archive's subscription, or the channel that
    ///         `start_recording` or `extend_recording` got.
    ///     stream_id: Stream id. Required if `recorded` is a channel.
    ///
    /// Raises:
    ///     InvalidArgumentError: If `recorded` is a channel and `stream_id` is missing.
    stop_recording, async_stop_recording (recorded, stream_id = None)
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
    ///     recorded: A recorded publication, the id of the archive's subscription, or the channel that
    ///         `start_recording` or `extend_recording` got.
    ///     stream_id: Stream id. Required if `recorded` is a channel.
    ///
    /// Returns:
    ///     `True` if there was a recording to stop.
    ///
    /// Raises:
    ///     InvalidArgumentError: If `recorded` is a channel and `stream_id` is missing.
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
    try_stop_recording_by_identity, async_try_stop_recording_by_identity (recording_id)
    [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::try_stop_recording_by_identity(recording_id))
    }
    ---

    /// Waits until the archive has recorded a publication up to a position.
    ///
    /// The archive has then written the data to the recording's files. Whether the data survives a power failure
    /// depends on the archive's setting `file_sync_level`. If there is no recording, or it stops before the position,
    /// the call waits until `timeout`.
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
    ///     InvalidArgumentError: If the recording is deleted during the wait.
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

    /// Starts `wait_recorded`, and returns its `PendingOperation` at once.
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
        let begin = |link: &Arc<Link>| Ok(WaitRecorded::begin(link, stream, position));
        Self::pending(slf, &what, begin, |py, _, _, descriptor| {
            PyRecording::from(descriptor).into_py_any(py)
        })
    }
}

/// Returns whether the error is a timeout of an operation.
fn is_timeout(py: Python<'_>, error: &PyErr) -> bool {
    let name = error.get_type(py).name();
    name.is_ok_and(|name| name == "OperationTimeoutError")
}
