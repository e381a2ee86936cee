//! Computes the data that a policy allows to delete, without regard to readers and replays.

use std::collections::BTreeSet;

use super::{DoubtedAges, RecordingExtent};
use crate::extensions::RetentionPolicy;

/// Maximum number of segments of a recording that one evaluation deletes. Later evaluations delete
/// the others.
pub const MAX_SEGMENTS: usize = 16 * 1024;

/// The part of one recording that a policy allows to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Recording id.
    pub recording_id: i64,
    /// Start position after the deletion; the stop position if the whole recording is deleted.
    pub new_start_position: i64,
    /// Whether the whole recording is deleted.
    pub is_purge: bool,
}

/// The part of one recording that the evaluation has marked for deletion so far.
struct Marked<'a> {
    extent: &'a RecordingExtent,
    /// Number of segments that are marked.
    segments: usize,
    is_purge: bool,
}

/// Returns the number of bytes by which the recordings of a policy exceed its `max_bytes`.
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
        // All segments are younger than the start of the recording.
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

/// Computes the data that a policy allows to delete. `extents` are the extents of all recordings of
/// the policy. The result has the recordings from which data may be deleted, in the same order.
///
/// * `max_age_ms`: allows to delete segments at the start of a recording if their newest byte is
///   older than this age. Also allows to delete recordings that stopped longer ago than this age.
/// * `max_bytes`: allows to delete the oldest segment of all recordings, until all recordings
///   together have at most this number of bytes. The time of the last segment of a stopped recording
///   is the time of the stop, and deleting this segment deletes the recording. If the other
///   recordings of the policy have no bytes left, this segment is kept.
///
/// If the time of a segment was not read, the segment does not count as old.
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

/// Computes the same as [`removals`] while the clock is not trusted. Each removal is what the policy would delete if
/// the clock was right, with the part of it that may be deleted without regard to ages.
pub fn doubted_removals(
    policy: &RetentionPolicy,
    extents: &[RecordingExtent],
    now_ms: i64,
) -> Vec<(Removal, Option<DoubtedAges>)> {
    let without_age = RetentionPolicy {
        max_age_ms: None,
        ..policy.clone()
    };
    let allowed = removals(&without_age, extents, now_ms);
    let wanted = removals(policy, extents, now_ms);
    debug_assert!(
        extents.is_sorted_by(|one, next| one.recording_id < next.recording_id),
        "the extents must be in the order of their ids, because removals are found by binary search"
    );
    let of = |removals: &[Removal], id| {
        let found = removals.binary_search_by_key(&id, |removal| removal.recording_id);
        found.ok().map(|at| removals[at])
    };
    let doubted = |extent: &RecordingExtent| {
        let id = extent.recording_id;
        let (allowed, wanted) = (of(&allowed, id), of(&wanted, id));
        // If old data were deleted, other recordings could keep more bytes. So both parts may be the larger one.
        let rank = |removal: &Removal| (removal.is_purge, removal.new_start_position);
        let removal = allowed.into_iter().chain(wanted).max_by_key(rank)?;
        let ages = DoubtedAges {
            new_start_position: allowed.map_or(extent.first_base, |it| it.new_start_position),
            is_purge: allowed.is_some_and(|it| it.is_purge),
        };
        Some((removal, Some(ages)))
    };
    extents.iter().filter_map(doubted).collect()
}

fn mark_by_bytes(marked: &mut [Marked<'_>], max_bytes: i64) {
    let bytes = marked.iter().map(Marked::remaining_bytes);
    let mut total = bytes.fold(0, i64::saturating_add);
    // For each recording, the time of its first remaining segment. The oldest time comes first.
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
            // These are the last bytes of the policy: the other recordings have no bytes left.
            return;
        }
        mark.take_next();
        total -= before - mark.remaining_bytes();
        debug_assert!(
            total >= 0,
            "the recordings of a policy cannot have {total} bytes after a removal"
        );
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
        debug_assert!(
            !self.is_purge,
            "recording {} is already marked as a whole, so no further segment can be marked",
            self.extent.recording_id
        );
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
        debug_assert!(
            !self.is_purge || extent.stop_timestamp_ms.is_some(),
            "recording {} is active, so it must not be deleted as a whole",
            extent.recording_id
        );
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

/// Returns whether `time_ms` is longer ago than the maximum age of the policy.
fn is_old(policy: &RetentionPolicy, time_ms: i64, now_ms: i64) -> bool {
    policy
        .max_age_ms
        .is_some_and(|max_age_ms| now_ms.saturating_sub(time_ms) > max_age_ms)
}
