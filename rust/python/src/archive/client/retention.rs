//! Methods for retention policies.

use aeron_archive::client::ArchiveCall;
use aeron_archive::extensions::{RetentionPolicy, RetentionScope};
use pyo3::prelude::*;

use super::super::extensions::{PyRetentionOutcome, PyRetentionPolicy};
use super::PyAeronArchive;
use super::methods::archive_methods;
use crate::argument;
use crate::channel::Channel;
use crate::errors::raise;
use crate::operations::PyPendingOperation;
archive_methods! {
    /// Sets a retention policy, by which the archive deletes old data automatically. Without a policy, the archive
    /// never deletes data by itself. The archive applies a new policy at once.
    ///
    /// A policy is for one recording, or for all recordings that match `stream_id` and `channel`. At most one policy
    /// applies to a recording: the policy for its id, otherwise the most specific match. If neither `max_bytes` nor
    /// `max_age_ms` is given, the call removes the policy.
    ///
    /// Args:
    ///     recording_id: Id of the recording. `None` stands for all recordings that match.
    ///     stream_id: Stream id of the recordings. `None` matches all streams.
    ///     channel: Text that the original channel of the recordings contains, at most 1024 bytes. `None` matches all
    ///         channels.
    ///     max_bytes: Maximum number of bytes of all recordings of the policy together. If there are more, whole
    ///         segments are deleted, the oldest first. A stopped recording is deleted with its last segment. `None`
    ///         sets no limit.
    ///     max_age_ms: Maximum age of the data in milliseconds. A segment is deleted if all its data are older than
    ///         this. A whole recording is deleted if it stopped longer ago than this. `None` sets no limit.
    ///
    /// Returns:
    ///     `True` if a policy was replaced or removed.
    ///
    /// Raises:
    ///     InvalidArgumentError: If `recording_id` is given together with `stream_id` or `channel`.
    ///     NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
    ///         archive must report its capabilities within a second.
    ///
    /// Example:
    ///     ```python
    ///     archive.set_retention(stream_id=1001, max_bytes=10 * 2**30, max_age_ms=7 * 24 * 3_600_000)
    ///     for outcome in archive.apply_retention(dry_run=True):
    ///         print(outcome.recording_id, outcome.new_start_position, outcome.held_by)
    ///     ```
    set_retention, async_set_retention (
        *, recording_id = None, stream_id = None, channel = None, max_bytes = None, max_age_ms = None
    )
    [
        slf, recording_id: Option<i64>, stream_id: Option<i32>, channel: Option<Channel>,
        max_bytes: Option<i64>, max_age_ms: Option<i64>,
    ] {
        let scope = scope(recording_id, stream_id, channel)?;
        let policy = RetentionPolicy { scope, max_bytes, max_age_ms };
        Self::request_count(slf, ArchiveCall::set_retention(&policy))
    }

    /// Lists the retention policies. The policies of single recordings come first.
    ///
    /// Returns:
    ///     A list of `RetentionPolicy`.
    ///
    /// Raises:
    ///     NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
    ///         archive must report its capabilities within a second.
    list_retention, async_list_retention () [slf] {
        Self::list::<_, PyRetentionPolicy>(slf, ArchiveCall::list_retention)
    }

    /// Applies the retention policies now, or reports what they would delete.
    ///
    /// The archive also applies the policies by itself: at least every five seconds, and when a policy changes, a
    /// recording enters a new segment, or a recording stops. Files are deleted after the response, one by one.
    ///
    /// Args:
    ///     recording_id: Id of the recording. `None` stands for all recordings.
    ///     dry_run: Whether to report only, and delete nothing.
    ///     trust_clock: Whether the archive trusts the wall clock from now on. Deletion by age and the expiry of
    ///         readers then stop waiting (`held_by` was `"CLOCK"`). Use it if the machine's time is right. It cannot be
    ///         used with `dry_run`.
    ///
    /// Returns:
    ///     A list of `RetentionOutcome`, one for each recording with data that the policies would delete. The list also
    ///         has recordings of which all these data stay; `held_by` is then the reason.
    ///
    /// Raises:
    ///     NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
    ///         archive must report its capabilities within a second.
    apply_retention, async_apply_retention (
        *, recording_id = None, dry_run = false, trust_clock = false
    )
    [slf, recording_id: Option<i64>, dry_run: bool, trust_clock: bool] {
        if dry_run && trust_clock {
            return Err(raise(
                "InvalidArgumentError",
                "dry_run=True and trust_clock=True: a dry run changes nothing; call without dry_run to trust the clock",
            ));
        }
        let page = move |_| ArchiveCall::apply_retention(recording_id, dry_run, trust_clock);
        Self::list::<_, PyRetentionOutcome>(slf, page)
    }
}

fn scope(
    recording_id: Option<i64>,
    stream_id: Option<i32>,
    channel: Option<Channel>,
) -> PyResult<RetentionScope> {
    match recording_id {
        None => Ok(RetentionScope::Matching {
            stream_id,
            channel_fragment: channel.map_or_else(String::new, |channel| channel.0),
        }),
        Some(recording_id) if stream_id.is_none() && channel.is_none() => {
            Ok(RetentionScope::Recording(recording_id))
        }
        Some(_) => Err(raise(
            "InvalidArgumentError",
            "recording_id is given together with stream_id or channel: a policy is for one recording, or for all that match",
        )),
    }
}
