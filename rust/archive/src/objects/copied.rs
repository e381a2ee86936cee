//! [`CopiedSegments`]: the segments of one recording that have copies in object storage.

use std::collections::BTreeMap;

use crate::catalog::RecordingDescriptor;

/// A verified copy of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentCopy {
    /// Position of the segment's first byte.
    pub base: i64,
    /// First position with data: the base, except in the first segment of a recording.
    pub from: i64,
    /// Time at which the copied file was modified, in nanoseconds since the epoch. If the file has another time now,
    /// its bytes may differ from the copy. `None` if the time is not known.
    pub modified_ns: Option<i64>,
}

/// The parts of a recording that are on the disk and in object storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedRange {
    /// The recording.
    pub recording_id: i64,
    /// First position that can be read. It is in object storage, if it is before the local start position.
    pub start_position: i64,
    /// Start position in the catalog: first position of the local files.
    pub local_start_position: i64,
    /// Position up to which all segments have verified copies, from the start position on.
    pub copied_position: i64,
}

/// The copies of one recording's segments in object storage, by base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopiedSegments {
    by_base: BTreeMap<i64, SegmentCopy>,
}

impl CopiedSegments {
    /// Adds a copy, or replaces the copy with the same base.
    pub fn insert(&mut self, copy: SegmentCopy) {
        self.by_base.insert(copy.base, copy);
    }

    /// Returns the copy with this base.
    #[must_use]
    pub fn get(&self, base: i64) -> Option<&SegmentCopy> {
        self.by_base.get(&base)
    }

    /// Removes the copy with this base.
    pub fn remove(&mut self, base: i64) {
        self.by_base.remove(&base);
    }

    /// Removes the copies that reach beyond `position`.
    pub fn truncate(&mut self, position: i64, segment_length: i64) {
        self.by_base
            .retain(|base, _| base.saturating_add(segment_length) <= position);
    }

    /// Returns the first position from which all segments before `first_base` have copies; `None` if the last segment
    /// before `first_base` has no copy.
    #[must_use]
    pub fn start_before(&self, first_base: i64, segment_length: i64) -> Option<i64> {
        let mut expected = first_base;
        let mut start = None;
        for (base, copy) in self.by_base.range(..first_base).rev() {
            expected -= segment_length;
            if *base != expected {
                break;
            }
            start = Some(copy.from);
        }
        start
    }

    /// Returns the base of the first segment from `first_base` on, and before `end_base`, that has no copy; `end_base`
    /// if all these segments have copies.
    #[must_use]
    pub fn first_missing(&self, first_base: i64, end_base: i64, segment_length: i64) -> i64 {
        let mut expected = first_base;
        for base in self.by_base.range(first_base..).map(|(base, _)| *base) {
            if base != expected || expected >= end_base {
                break;
            }
            expected += segment_length;
        }
        expected.min(end_base)
    }

    /// Returns the parts of a recording that are on the disk and in object storage. Returns `None` if neither its first
    /// local segment nor the segment before it has a copy.
    #[must_use]
    pub fn range(&self, recording: &RecordingDescriptor) -> Option<CopiedRange> {
        let first = recording.first_segment_base();
        let length = i64::from(recording.segment_length);
        let before = self.start_before(first, length);
        let copied_position = self.first_missing(first, i64::MAX, length);
        (before.is_some() || copied_position > first).then_some(CopiedRange {
            recording_id: recording.recording_id,
            start_position: before.unwrap_or(recording.start_position),
            local_start_position: recording.start_position,
            copied_position,
        })
    }

    /// Returns all copies, by ascending base.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &SegmentCopy> {
        self.by_base.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LENGTH: i64 = 64;

    fn copied(bases: impl IntoIterator<Item = i64>) -> CopiedSegments {
        let mut copied = CopiedSegments::default();
        for base in bases {
            copied.insert(SegmentCopy {
                base,
                from: base,
                modified_ns: None,
            });
        }
        copied
    }

    proptest! {
        #[test]
        fn a_gap_between_copies_is_never_crossed(
            numbers in prop::collection::btree_set(0_i64..20, 0..20),
            first in 0_i64..20,
            end in 0_i64..20,
        ) {
            let copied = copied(numbers.iter().map(|number| number * LENGTH));
            let has = |number: &i64| numbers.contains(number);
            let before = (0..first).rev().take_while(has).last();
            prop_assert_eq!(copied.start_before(first * LENGTH, LENGTH), before.map(|number| number * LENGTH));
            if first <= end {
                let missing = (first..end).find(|number| !has(number)).unwrap_or(end);
                prop_assert_eq!(copied.first_missing(first * LENGTH, end * LENGTH, LENGTH), missing * LENGTH);
            }
        }

        #[test]
        fn no_copy_reaches_beyond_a_truncation(
            numbers in prop::collection::btree_set(0_i64..20, 0..20),
            position in 0_i64..1_400,
        ) {
            let mut copied = copied(numbers.iter().map(|number| number * LENGTH));
            copied.truncate(position, LENGTH);
            let left: Vec<_> = copied.iter().map(|copy| copy.base).collect();
            let expected: Vec<_> =
                numbers.iter().map(|number| number * LENGTH).filter(|base| base + LENGTH <= position).collect();
            prop_assert_eq!(left, expected);
        }
    }

    #[test]
    fn the_first_segment_may_begin_with_a_part_without_data() {
        let mut copied = copied([LENGTH]);
        copied.insert(SegmentCopy {
            base: 0,
            from: 32,
            modified_ns: None,
        });
        assert_eq!(copied.start_before(2 * LENGTH, LENGTH), Some(32));
        assert_eq!(copied.start_before(0, LENGTH), None);
    }
}
