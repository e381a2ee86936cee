//! The method that creates a `Follower`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::PyAeronArchive;

#[pymethods]
impl PyAeronArchive {
    /// Reads a recorded stream from a position in its history, joins the live stream, and follows it without gaps.
    ///
    /// Args:
    ///     recording: Id of the recording, or a `Recording`. If it is not given, `channel` and `stream_id` select
    ///         the recordings.
    ///     channel: Text that the channels of the recordings contain.
    ///     stream_id: Stream id of the recordings.
    ///     position: Position of the first message in bytes, ``"earliest"`` or ``"latest"``. ``"earliest"``
    ///         includes segments in object storage. ``"latest"`` begins with the live stream. A position in
    ///         bytes needs `recording`. Default: the position of the reader if the archive has it, otherwise
    ///         ``"earliest"``.
    ///     since: Time at which to begin, instead of `position`: a `datetime` with a time zone, or a
    ///         `numpy.datetime64`. No message that arrived at or after this time is skipped.
    ///     reader: Name of the reader.
    ///     commit: When the position of the reader is committed: ``"batch"`` or ``"explicit"``.
    ///     max_age_ms: Milliseconds without a commit after which the reader expires. `None`: never.
    ///     max_lag_bytes: Maximum number of bytes recorded after the reader's position. With more bytes, the reader
    ///         expires. `None`: no limit.
    ///     live_channel: Channel of the live stream. Default: the channel of the recording. If another host
    ///         publishes the stream to the archive by unicast, there is no live stream to join, and the follower
    ///         reads the recording.
    ///     replay_channel: Channel of replays, with an address of this machine. Its port may be 0.
    ///     replay_stream_id: Stream id of replays.
    ///     on_change: Called as ``on_change(change)`` with a `RecordingChange`.
    ///     on_live_joined: Called without arguments when the follower has joined the live stream.
    ///     on_live_left: Called without arguments when the follower has lost the live stream.
    ///     on_error: Called as ``on_error(error)`` with each `PersistentSubscriptionError`, even if the error does
    ///         not end the follower.
    ///
    /// Returns:
    ///     The `Follower`.
    ///
    /// Raises:
    ///     InvalidArgumentError: If the arguments contradict each other, or `since` has no time zone.
    ///     UnknownRecordingError: If the archive does not have the recording.
    ///     ArchiveError: If the archive refuses a request. `NotSupportedByArchiveError` if `reader` or `since` is
    ///         used with an archive of another project.
    ///
    /// Example:
    ///     ```python
    ///     with archive.follow(channel="aeron:ipc", stream_id=1001, reader="bars") as follower:
    ///         for batch in follower.batches():
    ///             process(batch)
    ///     ```
    #[pyo3(
        signature = (*recording, **options),
        text_signature = "($self, recording=None, *, channel=None, stream_id=None, position=None, since=None, reader=None, commit='batch', max_age_ms=None, max_lag_bytes=None, live_channel=None, replay_channel='aeron:ipc', replay_stream_id=100, on_change=None, on_live_joined=None, on_live_left=None, on_error=None)"
    )]
    fn follow<'py>(
        slf: &Bound<'py, Self>,
        recording: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let follower = slf.py().import("aeron.follow")?.getattr("Follower")?;
        let mut arguments = vec![slf.as_any().clone()];
        arguments.extend(recording.iter());
        follower.call(PyTuple::new(slf.py(), arguments)?, options)
    }
}
