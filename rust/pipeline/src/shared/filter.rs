//! [`RowFilter`]: conditions on the columns of rows, by which a batch read leaves out ranges without a matching row.

use super::messages::ArchiveView;
use super::range::SharedRange;
use super::recordings::SharedRecording;
use super::times::{SegmentTimes, arrival_times};
use crate::error::LiveError;

/// Values of a column, as inclusive ranges. The default has all values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValueRanges(Option<Vec<(i64, i64)>>);

/// Conditions on rows. A row matches if it fulfils all of them. A range is left out only if it has no matching row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowFilter {
    /// Recording ids.
    pub recording_id: ValueRanges,
    /// Stream ids.
    pub stream_id: ValueRanges,
    /// Session ids.
    pub session_id: ValueRanges,
    /// Positions of rows. The position of a row is the one after its message.
    pub position: ValueRanges,
    /// Arrival times in microseconds since the epoch.
    pub timestamp_us: ValueRanges,
}

impl ValueRanges {
    /// Returns the values in any of the ranges, each of which has a first and a last value.
    pub fn new(ranges: Vec<(i64, i64)>) -> Self {
        Self(Some(ranges))
    }

    fn has_all(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether a value from `first` to `last` is among the values.
    fn has_any_of(&self, first: i64, last: i64) -> bool {
        let overlaps = |&(low, high): &(i64, i64)| low.max(first) <= high.min(last);
        self.0
            .as_ref()
            .is_none_or(|ranges| ranges.iter().any(overlaps))
    }

    fn has(&self, value: i64) -> bool {
        self.has_any_of(value, value)
    }

    /// Returns the lowest and the highest value.
    fn bounds(&self) -> (i64, i64) {
        let Some(ranges) = &self.0 else {
            return (i64::MIN, i64::MAX);
        };
        let low = ranges.iter().map(|range| range.0).min();
        let high = ranges.iter().map(|range| range.1).max();
        (low.unwrap_or(i64::MAX), high.unwrap_or(i64::MIN))
    }
}

impl RowFilter {
    /// Returns whether a recording may have matching rows.
    pub(super) fn selects(&self, recording: &SharedRecording) -> bool {
        let descriptor = &recording.descriptor;
        self.recording_id.has(recording.id())
            && self.stream_id.has(descriptor.stream_id.into())
            && self.session_id.has(descriptor.session_id.into())
    }

    /// Returns the parts of a range that may have matching rows: whole segments, and at both ends whole terms. Reads
    /// the index of a segment if there is a condition on the arrival time.
    ///
    /// # Errors
    /// An index cannot be read.
    pub(super) fn parts<'a>(
        &self,
        archive: &ArchiveView,
        range: SharedRange<'a>,
    ) -> Result<Vec<SharedRange<'a>>, LiveError> {
        let mut parts: Vec<SharedRange<'a>> = Vec::new();
        let Some(range) = self.within_positions(range) else {
            return Ok(parts);
        };
        if self.position.has_all() && self.timestamp_us.has_all() {
            return Ok(vec![range]);
        }
        for part in range.by_segments() {
            // A row has the position after its message.
            let is_selected = self.position.has_any_of(part.from + 1, part.to)
                && self.may_have_times(archive, &part)?;
            match parts.last_mut() {
                _ if !is_selected => {}
                Some(last) if last.to == part.from => last.to = part.to,
                _ => parts.push(part),
            }
        }
        Ok(parts)
    }

    /// Returns the part of a range between the lowest and the highest position of the filter, rounded to terms. A term
    /// begins with a message.
    fn within_positions<'a>(&self, range: SharedRange<'a>) -> Option<SharedRange<'a>> {
        let (low, high) = self.position.bounds();
        if low > range.to || high <= range.from {
            return None;
        }
        let recording = range.recording;
        let positions = recording.stream.positions();
        let from = match low > range.from {
            true => range.from.max(recording.term_begin(low - 1)),
            false => range.from,
        };
        let to = match high < range.to {
            true => {
                let end = positions.term_begin(high - 1) + positions.term_length() as i64;
                range.to.min(end)
            }
            false => range.to,
        };
        Some(SharedRange {
            recording,
            from,
            to,
        })
    }

    fn may_have_times(
        &self,
        archive: &ArchiveView,
        part: &SharedRange<'_>,
    ) -> Result<bool, LiveError> {
        let (Some(directory), false) = (&archive.directory, self.timestamp_us.has_all()) else {
            return Ok(true);
        };
        let times = arrival_times(directory, part.recording, part.from)?;
        Ok(times.is_none_or(|times| self.may_have_times_of(&times, part.to)))
    }

    /// Returns whether messages that end at or before `to` in a segment with these times may fulfil the condition on
    /// the arrival time.
    fn may_have_times_of(&self, times: &SegmentTimes, to: i64) -> bool {
        to > times.indexed_end || self.timestamp_us.has_any_of(times.earliest, times.latest)
    }
}

#[cfg(test)]
mod tests {
    use aeron_archive::index::{IndexEntry, Progress};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Messages of an active recording may be planned before the index has their entries. The index has them when
        /// a reader reads the messages, so the messages have times then.
        #[test]
        fn a_segment_is_left_out_only_if_no_message_in_it_has_a_wanted_time(
            blocks in prop::collection::vec((1..100_i64, prop::option::weighted(0.8, 0..20_i64)), 1..8),
            indexed in 0..8_usize,
            read in 1..8_usize,
            wanted in (0..20_i64, 0..20_i64),
        ) {
            let timestamp_us = ValueRanges::new(vec![wanted]);
            let mut end_position = 0;
            let entries: Vec<_> = blocks.iter().map(|&(length, arrival_us)| {
                end_position += length * 32;
                IndexEntry { end_position, arrival_us, progress: Progress::default() }
            }).collect();
            let read = &entries[..read.min(entries.len())];
            let to = read.last().unwrap().end_position;
            let times = entries.iter().take(indexed).fold(None, SegmentTimes::with);
            let is_wanted = |entry: &IndexEntry| entry.arrival_us.is_some_and(|time| timestamp_us.has(time));
            let filter = RowFilter { timestamp_us: timestamp_us.clone(), ..RowFilter::default() };
            let is_selected = times.is_none_or(|times| filter.may_have_times_of(&times, to));
            prop_assert!(is_selected || !read.iter().any(is_wanted));
            let is_known = indexed >= read.len() && read.iter().any(|entry| entry.arrival_us.is_some());
            let all_times = entries.iter().take(indexed).filter_map(|entry| entry.arrival_us);
            let are_outside = all_times.clone().all(|time| time < wanted.0) || all_times.clone().all(|time| time > wanted.1);
            prop_assert!(!(is_known && are_outside && is_selected), "a segment without a wanted time is read");
        }
    }

    #[test]
    fn a_value_in_one_of_the_ranges_is_among_the_values() {
        let values = ValueRanges::new(vec![(1, 3), (7, 7)]);
        assert!([1, 3, 7].into_iter().all(|value| values.has(value)));
        assert!([0, 4, 6, 8].into_iter().all(|value| !values.has(value)));
        assert!(values.has_any_of(4, 9) && !values.has_any_of(4, 6));
        assert_eq!(values.bounds(), (1, 7));
    }

    #[test]
    fn the_default_has_all_values_and_an_empty_list_of_ranges_has_none() {
        assert!(ValueRanges::default().has(i64::MIN));
        assert_eq!(ValueRanges::default().bounds(), (i64::MIN, i64::MAX));
        let none = ValueRanges::new(Vec::new());
        assert!(!none.has(0) && !none.has_any_of(i64::MIN, i64::MAX));
        assert_eq!(none.bounds(), (i64::MAX, i64::MIN));
        assert!(!ValueRanges::new(vec![(5, 2)]).has_any_of(0, 9));
    }
}
