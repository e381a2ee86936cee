//! Methods that list recordings and return their positions.

use std::sync::Arc;

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::client::ArchiveCall;
use aeron_archive::segments::segment_base;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use super::super::link::Link;
use super::super::recording::{PyRecording, PyRecordingSubscription};
use super::super::time::EpochMicroseconds;
use super::PyAeronArchive;
use super::methods::archive_methods;
use crate::argument;
use crate::channel::Channel;
use crate::operations::{Owned, PyPendingOperation};

/// The filter of a listing of recordings.
struct RecordingFilter {
    channel: Option<String>,
    stream_id: Option<i32>,
    since_us: Option<i64>,
    until_us: Option<i64>,
    limit: usize,
}

impl RecordingFilter {
    /// Creates the call that lists the recordings. The archive itself can only filter by channel and stream together,
    /// and not by time.
    fn call(&self, from_recording_id: i64) -> ArchiveCall<Vec<RecordingDescriptor>> {
        let limit = i32::try_from(self.limit).unwrap_or(i32::MAX);
        let has_times = self.since_us.is_some() || self.until_us.is_some();
        match (&self.channel, self.stream_id) {
            _ if has_times => ArchiveCall::list_recordings(from_recording_id, i32::MAX),
            (Some(channel), Some(stream_id)) => {
                ArchiveCall::list_recordings_for_uri(from_recording_id, limit, channel, stream_id)
            }
            (None, None) => ArchiveCall::list_recordings(from_recording_id, limit),
            _ => ArchiveCall::list_recordings(from_recording_id, i32::MAX),
        }
    }

    /// Returns whether a listed recording is wanted. The channel is compared as the archive compares it.
    fn matches(&self, recording: &RecordingDescriptor) -> bool {
        self.stream_id.is_none_or(|id| id == recording.stream_id)
            && self
                .channel
                .as_ref()
                .is_none_or(|channel| recording.original_channel.contains(channel.as_str()))
            && self.has_time(recording)
    }

    /// Returns whether the recording was active at some time from `since_us` to `until_us`.
    fn has_time(&self, recording: &RecordingDescriptor) -> bool {
        let start_us = recording.start_timestamp_ms.saturating_mul(1_000);
        // The stop time is rounded down to milliseconds: the recording may have stopped up to 999 us later.
        let stop_us = recording
            .ended_ms()
            .saturating_mul(1_000)
            .saturating_add(999);
        self.until_us.is_none_or(|until_us| start_us < until_us)
            && self
                .since_us
                .is_none_or(|since_us| recording.is_unfinished() || stop_us >= since_us)
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

archive_methods! {
    /// Lists recordings in the order of their ids.
    ///
    /// Args:
    ///     channel: Text that the original channel of a recording contains. `None` lists all channels.
    ///     stream_id: Stream id of the recordings. `None` lists all streams.
    ///     from_recording_id: Lowest recording id to list.
    ///     limit: Maximum number of results. `None` stands for no limit.
    ///     since: List only recordings that were active at or after this time, according to their timestamps. The time
    ///         is a datetime with a time zone, or a `numpy.datetime64`, which is in UTC.
    ///     until: List only recordings that began before this time.
    ///
    /// Returns:
    ///     `Recordings`, a tuple with `to_arrow()`.
    ///
    /// Raises:
    ///     InvalidArgumentError: If a datetime has no time zone.
    list_recordings, async_list_recordings (
        *, channel = None, stream_id = None, from_recording_id = 0, limit = None, since = None, until = None
    )
    [
        slf, channel: Option<Channel>, stream_id: Option<i32>, from_recording_id: i64, limit: Option<usize>,
        since: Option<EpochMicroseconds>, until: Option<EpochMicroseconds>,
    ] {
        let wanted = RecordingFilter {
            channel: channel.map(|channel| channel.0),
            stream_id,
            since_us: since.map(|time| time.0),
            until_us: until.map(|time| time.0),
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
    ///     channel: Text that the original channel of the recording contains.
    ///     stream_id: Stream id.
    ///     session_id: Session id of the publisher.
    ///     min_recording_id: Lowest recording id to consider.
    ///
    /// Returns:
    ///     The recording id, or `None` if there is no such recording.
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
    get_max_recorded_position, async_get_max_recorded_position (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::max_recorded_position(recording_id))
    }
    ---

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
        segment_base(
            position,
            start_position,
            term_buffer_length,
            segment_file_length,
        )
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
