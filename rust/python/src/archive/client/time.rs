//! Methods that find positions by time.

use std::sync::Arc;

use aeron_archive::client::{ArchiveCall, TimedPosition};
use aeron_protocol::archive::TimeEdge;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use super::super::link::Link;
use super::super::time::{EpochMicroseconds, PyFoundPosition};
use super::PyAeronArchive;
use super::methods::archive_methods;
use crate::argument;
use crate::errors::raise;
use crate::operations::PyPendingOperation;

archive_methods! {
    /// Finds the position of a recording at which a range of time begins or ends.
    ///
    /// A range that begins at a time has all messages that arrived at or after this time. A range that ends at this
    /// time ends at the same position, so that adjacent ranges share no message. Exception: if arrival times are lost,
    /// or a segment has no index, both ranges have the messages with unknown times.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     since: Start of a range: a datetime with a time zone, or a `numpy.datetime64`, which is in UTC.
    ///     until: End of a range, instead of `since`.
    ///
    /// Returns:
    ///     The `FoundPosition`. If the recording has no index, the position is the start or end of a segment, and
    ///     `is_approximate` is `True`.
    ///
    /// Raises:
    ///     InvalidArgumentError: If not exactly one of `since` and `until` is given, or a datetime has no time zone.
    ///     NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
    ///         archive must report its capabilities within a second.
    ///
    /// Example:
    ///     ```python
    ///     noon = datetime(2026, 11, 26, 12, tzinfo=UTC)
    ///     begin = archive.find_position(recording.recording_id, since=noon).position
    ///     ```
    find_position, async_find_position (recording_id, *, since = None, until = None)
    [slf, recording_id: i64, since: Option<EpochMicroseconds>, until: Option<EpochMicroseconds>] {
        let (edge, time) = match (since, until) {
            (Some(since), None) => (TimeEdge::Since, since),
            (None, Some(until)) => (TimeEdge::Until, until),
            _ => {
                let reason = "find_position needs either since or until: pass one of them";
                return Err(raise("InvalidArgumentError", reason));
            }
        };
        let begin = |link: &Arc<Link>| link.archive.begin(ArchiveCall::find_position(recording_id, edge, time.0));
        Self::pending(slf, "find position", begin, |py, _, _, found: TimedPosition| {
            PyFoundPosition::from(found).into_py_any(py)
        })
    }
}
