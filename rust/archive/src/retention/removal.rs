//! Computes what a policy alone allows to delete.

use std::collections::BTreeSet;

use super::RecordingExtent;
use crate::extensions::RetentionPolicy;

/// Maximum number of segments of a recording that are deleted at once. Later evaluations delete the others.
pub const MAX_SEGMENTS: usize = 16 * 1024;

/// The part of one recording that a policy allows to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The recording.
    pub recording_id: i64,
    /// Start position after the deletion; the stop position if the whole recording is deleted.
    pub new_start_position: i64,
    /// Whether the whole recording is deleted.
    pub is_purge: bool,
}

/// Progress of the evaluation in one recording.
struct Marked<'a> {
    extent: &'a RecordingExtent,
    /// Number of segments that are deleted.
    segments: usize,
    is_purge: bool,
}

/// Returns the number of bytes above the limit of a policy, in the recordings of the policy.
pub fn excess_bytes<'a>(
    policy: &RetentionPolicy,
    extents: impl IntoIterator<Item = &'a RecordingExtent>,
) -> i64 {
    let Some(max_bytes) = policy.max_bytes else {
        return 0;
    };
    let bytes = extents.into_iter().map(RecordingExtent::bytes);
    let total = bytes.fold(0, i64::saturating_add);
    (total - max_bytes).max(0)
}

/// Returns whether [`removals`] needs the time of a further segment of a recording. `excess_bytes` is the result of the
/// function [`excess_bytes`] for all recordings of the policy.
pub fn needs_segment_time(
    policy: &RetentionPolicy,
    extent: &RecordingExtent,
    excess_bytes: i64,
    now_ms: i64,
) -> bool {
    let known = extent.segment_times_ms.len();
    let is_needed_for_bytes = || (known as i64) * extent.segment_length < excess_bytes;
    let is_needed_for_age = || {
        // Everything is younger than the begin of the recording.
        is_old(policy, extent.start_timestamp_ms, now_ms)
            && !is_stopped_and_old(policy, extent, now_ms)
            && extent
                .segment_times_ms
                .iter()
                .all(|time_ms| is_old(policy, *time_ms, now_ms))
    };
    known < extent.sealed_segments().min(MAX_SEGMENTS)
        && (is_needed_for_bytes() || is_needed_for_age())
}

/// Computes what a policy allows to delete. `extents` are all recordings of the policy. The result has only recordings
/// of which something may be deleted, in the same order.
///
/// * `max_age_ms`: segments at the start of a recording whose newest byte is older, and recordings that stopped before
///   that time.
/// * `max_bytes`: while all recordings together are longer, the oldest segment of all. The last segment of a stopped
///   recording has the time at which the recording stopped; it is deleted with the whole recording. The last bytes of
///   the policy are not deleted.
///
/// The time of a segment that was not read is not old.
pub fn removals(
    policy: &RetentionPolicy,
    extents: &[RecordingExtent],
    now_ms: i64,
) -> Vec<Removal> {
    let mut marked: Vec<Marked<'_>> = extents
        .iter()
        .map(|extent| Marked::by_age(policy, extent, now_ms))
        .collect();
    if let Some(max_bytes) = policy.max_bytes {
        mark_by_bytes(&mut marked, max_bytes);
    }
    marked.iter().filter_map(Marked::removal).collect()
}

fn mark_by_bytes(marked: &mut [Marked<'_>], max_bytes: i64) {
    let bytes = marked.iter().map(Marked::remaining_bytes);
    let mut total = bytes.fold(0, i64::saturating_add);
    // The heads of all recordings, the oldest first.
    let mut heads: BTreeSet<(i64, usize)> = marked
        .iter()
        .enumerate()
        .filter_map(|(at, mark)| Some((mark.next_time_ms()?, at)))
        .collect();
    while total > max_bytes {
        let Some((_, at)) = heads.pop_first() else {
            return;
        };
        let mark = &mut marked[at];
        let before = mark.remaining_bytes();
        if mark.is_last() && before == total {
            // The last bytes of the policy. Other recordings have no bytes.
            return;
        }
        mark.take_next();
        total -= before - mark.remaining_bytes();
        heads.extend(mark.next_time_ms().map(|time_ms| (time_ms, at)));
    }
}

impl<'a> Marked<'a> {
    fn by_age(policy: &RetentionPolicy, extent: &'a RecordingExtent, now_ms: i64) -> Self {
        let is_purge = is_stopped_and_old(policy, extent, now_ms);
        let times = extent
            .segment_times_ms
            .iter()
            .take(extent.sealed_segments());
        let old = times.take_while(|time_ms| is_old(policy, **time_ms, now_ms));
        Self {
            extent,
            segments: old.count(),
            is_purge,
        }
    }

    fn remaining_bytes(&self) -> i64 {
        match self.is_purge {
            true => 0,
            false => self.extent.bytes() - self.segments as i64 * self.extent.segment_length,
        }
    }

    /// Returns whether only the segment with the end of the recording is left.
    fn is_last(&self) -> bool {
        self.segments == self.extent.sealed_segments()
    }

    /// Returns the time of the segment that can be deleted next.
    fn next_time_ms(&self) -> Option<i64> {
        match self.is_last() {
            _ if self.remaining_bytes() == 0 => None,
            true => self.extent.stop_timestamp_ms,
            false => self.extent.segment_times_ms.get(self.segments).copied(),
        }
    }

    fn take_next(&mut self) {
        match self.is_last() {
            true => self.is_purge = true,
            false => self.segments += 1,
        }
    }

    fn removal(&self) -> Option<Removal> {
        let extent = self.extent;
        let new_start_position = match self.is_purge {
            true => extent.end_position,
            false => extent.segment_base(self.segments),
        };
        (self.is_purge || self.segments > 0).then_some(Removal {
            recording_id: extent.recording_id,
            new_start_position,
            is_purge: self.is_purge,
        })
    }
}

fn is_stopped_and_old(policy: &RetentionPolicy, extent: &RecordingExtent, now_ms: i64) -> bool {
    extent
        .stop_timestamp_ms
        .is_some_and(|time_ms| is_old(policy, time_ms, now_ms))
}

/// Returns whether a time is before the maximum age of the policy.
fn is_old(policy: &RetentionPolicy, time_ms: i64, now_ms: i64) -> bool {
    policy
        .max_age_ms
        .is_some_and(|max_age_ms| now_ms.saturating_sub(time_ms) > max_age_ms)
}
