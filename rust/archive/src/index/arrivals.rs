//! [`SegmentArrivals`]: the arrival times in the index of one segment. The times never decrease,
//! and some may be lost.

use std::io;
use std::ops::Range;

use super::{ENTRY_LENGTH, IndexEntry, IndexFile, Progress};
use crate::storage::StorageFile;

/// Number of entries that one read returns in the search for an entry with a time.
const ENTRIES_PER_READ: u64 = 64;

/// The entries of an index up to the end of the recording. A damaged entry counts as an entry
/// without a time.
#[derive(Debug)]
pub(super) struct SegmentArrivals<'a, F> {
    file: &'a IndexFile<F>,
    count: u64,
    end: i64,
    /// Progress of the messages at the end of the last entry.
    progress: Progress,
}

/// An entry with an arrival time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Number of the entry.
    pub number: u64,
    /// Time in microseconds since the epoch.
    pub time_us: i64,
}

impl<'a, F: StorageFile> SegmentArrivals<'a, F> {
    /// Opens the entries of an index up to the last entry with an end at or before `limit`. `begin` is the first
    /// position of the recording in the segment.
    pub fn of(file: &'a IndexFile<F>, begin: i64, limit: i64) -> io::Result<Self> {
        let last = file.last_entry(limit)?;
        Ok(Self {
            file,
            count: last.map_or(0, |(number, _)| number + 1),
            end: last.map_or(begin, |(_, entry)| entry.end_position),
            progress: last.map_or(file.header().progress, |(_, entry)| entry.progress),
        })
    }

    /// Returns the number of entries.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the position after the last entry.
    pub fn end(&self) -> i64 {
        self.end
    }

    /// Returns the progress of the messages at the end of the last entry.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Returns the end of the last complete message before the entry `number`, or the start of the first message if no
    /// message is complete. If the entry before `number` is damaged, the end of an earlier message may be returned.
    /// Returns `None` if no message has begun before the entry.
    pub fn head_before(&self, number: u64) -> io::Result<Option<i64>> {
        let header = self.file.header().progress.head;
        Ok(self.head_of((0..number).rev())?.unwrap_or(header))
    }

    /// Like [`head_before`](Self::head_before). But if the entry before `number` is damaged, the
    /// end of a later message may be returned. Also returns `None` if no later entry is valid.
    pub fn head_before_or_later(&self, number: u64) -> io::Result<Option<i64>> {
        match number.checked_sub(1) {
            Some(before) => Ok(self.head_of(before..self.count)?.flatten()),
            None => Ok(self.file.header().progress.head),
        }
    }

    /// Returns the head of the first entry that is not damaged.
    fn head_of(&self, mut numbers: impl Iterator<Item = u64>) -> io::Result<Option<Option<i64>>> {
        let head = |number| {
            let entry = self.file.entry(number).transpose()?;
            Some(entry.map(|entry| entry.progress.head))
        };
        numbers.find_map(head).transpose()
    }

    /// Returns the last entry with a time.
    pub fn last(&self) -> io::Result<Option<Arrival>> {
        let mut end = self.count;
        while end > 0 {
            let first = end.saturating_sub(ENTRIES_PER_READ);
            let known = self.known(first..end)?;
            if let Some(last) = known.last() {
                return Ok(Some(*last));
            }
            end = first;
        }
        Ok(None)
    }

    /// Returns the first entry from `number` on with a time.
    pub fn next(&self, number: u64) -> io::Result<Option<Arrival>> {
        let mut first = number;
        while first < self.count {
            let end = self.count.min(first + ENTRIES_PER_READ);
            if let Some(next) = self.known(first..end)?.first() {
                return Ok(Some(*next));
            }
            first = end;
        }
        Ok(None)
    }

    /// Returns the number of the first entry with a time of at least `time_us`. An entry without a
    /// time has the time of the next entry with a time. The time of `last` must not be before
    /// `time_us`.
    pub fn count_before(&self, time_us: i64, last: Arrival) -> io::Result<u64> {
        let (mut low, mut high) = (0, last.number);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.next(middle)?.unwrap_or(last) {
                next if next.time_us < time_us => low = next.number + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// Returns those entries of a range that have a time.
    fn known(&self, range: Range<u64>) -> io::Result<Vec<Arrival>> {
        let mut bytes = vec![0; (range.end - range.start) as usize * ENTRY_LENGTH];
        let count = self.file.read(range.start, &mut bytes)?;
        let (slots, _) = bytes[..count * ENTRY_LENGTH].as_chunks::<ENTRY_LENGTH>();
        let times = slots
            .iter()
            .map(|slot| IndexEntry::decode(slot)?.arrival_us);
        let known = (range.start..).zip(times);
        Ok(known
            .filter_map(|(number, time_us)| {
                let time_us = time_us?;
                Some(Arrival { number, time_us })
            })
            .collect())
    }
}
