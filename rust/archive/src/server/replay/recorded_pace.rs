//! [`RecordedPace`]: makes a replay send the frames of a recording at the intervals at which they
//! arrived.
//!
//! The index has the arrival times. All frames of an index entry are sent when the entry is due. An
//! entry without a time is due together with the previous entry. If the clock was set back, an
//! entry is due together with the earlier entry that has the latest time.
//!
//! The last frames of an active recording may have no entry yet. They arrived within a millisecond after the last
//! entry.

use std::collections::VecDeque;
use std::fmt;
use std::io;

use aeron_protocol::archive::extension::SPEED_UNIT;

use crate::index::{ENTRY_INTERVAL_US, ENTRY_LENGTH, IndexEntry, IndexFile, MAX_UNINDEXED_BYTES};
use crate::storage::{Access, Storage, StorageFile};
use crate::stream::RecordedStream;

/// Number of entries that one read returns.
const ENTRIES_PER_READ: usize = 256;

/// The recorded pace of a replay.
#[derive(Debug)]
pub(super) struct RecordedPace<F> {
    speed_millionths: i64,
    /// The index of the segment of the next entry, and the number of the first entry that was not read.
    index: Option<(IndexFile<F>, u64)>,
    base: i64,
    /// Entries that were read and are not due yet.
    entries: VecDeque<IndexEntry>,
    /// Arrival time of the first frame with a time, and the time at which it was sent.
    begin: Option<PaceBegin>,
    /// The latest arrival time of all entries that were due so far, in microseconds since the
    /// epoch.
    latest_us: i64,
    /// Frames that begin before this position are due.
    position: i64,
}

#[derive(Debug, Clone, Copy)]
struct PaceBegin {
    arrival_us: i64,
    sent_ns: i64,
}

/// Why a recording cannot be sent at its recorded pace.
#[derive(Debug)]
pub(super) enum PaceFault {
    /// The index has no arrival times from a position on.
    NoTimes {
        /// Position from which on arrival times are missing.
        position: i64,
    },
    /// The index cannot be read.
    Storage(io::Error),
}

impl fmt::Display for PaceFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTimes { position } => write!(
                formatter,
                "the index has no arrival times at position={position}: replay without a speed"
            ),
            Self::Storage(error) => write!(formatter, "cannot read the index: {error}"),
        }
    }
}

impl From<io::Error> for PaceFault {
    fn from(error: io::Error) -> Self {
        Self::Storage(error)
    }
}

impl<F: StorageFile> RecordedPace<F> {
    /// Creates the pace of a replay that begins at `position`.
    pub fn new(speed_millionths: i64, position: i64) -> Self {
        Self {
            speed_millionths,
            index: None,
            base: 0,
            entries: VecDeque::new(),
            begin: None,
            latest_us: i64::MIN,
            position,
        }
    }

    /// Opens the index of the first segment.
    ///
    /// # Errors
    /// The index does not exist or cannot be read, or it has entries and none of them has a time.
    pub fn open<S: Storage<File = F>>(
        &mut self,
        storage: &S,
        stream: &RecordedStream,
    ) -> Result<(), PaceFault> {
        self.base = stream.segment_base(self.position);
        let is_open = self.open_segment(storage, stream)?;
        let has_times = |file: &IndexFile<F>| -> io::Result<bool> {
            Ok(file.entry_count() == 0 || file.has_times()?)
        };
        match &self.index {
            Some((file, _)) if is_open && has_times(file)? => Ok(()),
            _ => Err(self.no_times()),
        }
    }

    /// Returns the position before which frames are due. Frames before `sent` were sent, and frames
    /// before `stop` are recorded. Reads at most a part of one index file.
    ///
    /// # Errors
    /// The recorder should have written an entry for the next frames, but the index does not have this entry. Or the
    /// index cannot be read.
    pub fn position<S: Storage<File = F>>(
        &mut self,
        storage: &S,
        stream: &RecordedStream,
        (sent, stop): (i64, i64),
        now_ns: i64,
    ) -> Result<i64, PaceFault> {
        self.take_due(now_ns);
        if self.entries.is_empty() && self.position <= sent && self.position < stop {
            self.read_more(storage, stream, stop, now_ns)?;
            self.take_due(now_ns);
        }
        Ok(self.position)
    }

    /// Removes the entries that are due.
    fn take_due(&mut self, now_ns: i64) {
        while let Some(entry) = self.entries.front() {
            let arrival_us = entry
                .arrival_us
                .unwrap_or(self.latest_us)
                .max(self.latest_us);
            let is_known = arrival_us != i64::MIN;
            if is_known && self.begin.is_none() {
                self.begin = Some(PaceBegin {
                    arrival_us,
                    sent_ns: now_ns,
                });
            }
            if is_known && !self.is_due(arrival_us, now_ns) {
                return;
            }
            self.latest_us = arrival_us;
            self.position = self.position.max(entry.end_position);
            self.entries.pop_front();
        }
    }

    fn is_due(&self, arrival_us: i64, now_ns: i64) -> bool {
        self.begin.is_none_or(|begin| {
            let interval_us = arrival_us.saturating_sub(begin.arrival_us);
            let due_ns = begin
                .sent_ns
                .saturating_add(replay_ns(interval_us, self.speed_millionths));
            now_ns >= due_ns
        })
    }

    fn read_more<S: Storage<File = F>>(
        &mut self,
        storage: &S,
        stream: &RecordedStream,
        stop: i64,
        now_ns: i64,
    ) -> Result<(), PaceFault> {
        let end = self.base + stream.segment_length();
        if self.position >= end {
            self.base = end;
            self.index = None;
        }
        if self.index.is_none() && !self.open_segment(storage, stream)? {
            // The recorder creates the index of a segment before it acknowledges the first frame.
            // So the index was deleted.
            return Err(self.no_times());
        }
        if self.read_entries()? {
            return Ok(());
        }
        let rest_end = stop.min(self.base + stream.segment_length());
        if rest_end - self.position > MAX_UNINDEXED_BYTES {
            return Err(self.no_times());
        }
        let rest_us = self.latest_us.saturating_add(ENTRY_INTERVAL_US);
        if self.latest_us == i64::MIN || self.is_due(rest_us, now_ns) {
            self.position = rest_end;
        }
        Ok(())
    }

    /// Reads the next entries of the index. Returns whether at least one valid entry was read.
    fn read_entries(&mut self) -> io::Result<bool> {
        let Some((file, number)) = &mut self.index else {
            return Ok(false);
        };
        let mut bytes = [0; ENTRIES_PER_READ * ENTRY_LENGTH];
        let count = file.read(*number, &mut bytes)?;
        let (slots, _) = bytes[..count * ENTRY_LENGTH].as_chunks::<ENTRY_LENGTH>();
        let mut valid = 0;
        for (at, slot) in slots.iter().enumerate() {
            if let Some(entry) = IndexEntry::decode(slot) {
                valid = at + 1;
                if entry.end_position > self.position {
                    self.entries.push_back(entry);
                }
            }
        }
        // Invalid entries at the end are read again later, because the recorder may be writing them now.
        *number += valid as u64;
        Ok(valid > 0)
    }

    /// Opens the index of the current segment. Returns whether the index exists.
    fn open_segment<S: Storage<File = F>>(
        &mut self,
        storage: &S,
        stream: &RecordedStream,
    ) -> io::Result<bool> {
        let id = stream.recording_id();
        let file = IndexFile::open(storage, id, self.base, Access::Read)?;
        self.index = file.map(|file| (file, 0));
        Ok(self.index.is_some())
    }

    const fn no_times(&self) -> PaceFault {
        PaceFault::NoTimes {
            position: self.position,
        }
    }
}

/// Converts an interval of a recording in microseconds to the interval of the replay in
/// nanoseconds.
fn replay_ns(interval_us: i64, speed_millionths: i64) -> i64 {
    let recorded_ns = i128::from(interval_us) * 1_000;
    let ns = recorded_ns * i128::from(SPEED_UNIT) / i128::from(speed_millionths.max(1));
    i64::try_from(ns).unwrap_or(i64::MAX)
}
