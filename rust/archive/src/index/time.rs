//! [`TimeSearch`]: finds a position of a recording by time.
//!
//! # The rule
//!
//! The time of a message is the arrival time of the index entry in which the message ends. An edge
//! of a range of time is the position before the first message at or after the given time. This
//! applies to the begin of a range ([`TimeEdge::Since`]) and to its end ([`TimeEdge::Until`]). So
//! adjacent ranges of time share no message and lose no message.
//!
//! * **The clock was set back.** Later messages may have earlier times. They still belong to the
//!   range that begins with the *first* message at or after the given time. So a range that begins
//!   at a time has all messages that arrived at or after that time.
//! * **Times are lost.** For an entry without a time, the time of the next entry with a time is used. The
//!   true time may be earlier. So such entries at an edge belong to both adjacent ranges.
//! * **Entries are lost.** The times of their messages are lost too, so the same applies to these messages. The result
//!   is approximate if they are at the edge.
//! * **A segment has no index.** Then only an upper bound of the times is known: the time of the last write to the
//!   file, or the stop time of the recording if that is earlier. If a range begins in such a segment, it begins at the
//!   start of the segment. If a range ends in such a segment, it ends at the end of the segment. The result is
//!   approximate. If an archive directory was copied, its files may have the time of the copy. So a range may begin too
//!   early but not too late, and [`TimeEdge::Until`] ignores files that were written after the recording stopped.
//!
//! The search begins with the first segment, because any segment may have the first message of the
//! range. From the segments before the edge, only the last time is read.

use std::io;

use aeron_protocol::archive::TimeEdge;

use super::arrivals::{Arrival, SegmentArrivals};
use super::entry::{ENTRY_INTERVAL_US, MAX_UNINDEXED_BYTES};
use super::repair::epoch_us;
use super::{HeadTracker, IndexFile, IndexForm};
use crate::catalog::RecordingDescriptor;
use crate::reader::RecordingReader;
use crate::storage::{Access, Storage, StorageFile};
use crate::stream::{RecordedStream, StreamError};

/// Maximum difference between the arrival time of the last bytes and the modification time of their
/// file, in microseconds. Some file systems store only whole seconds.
const COARSE_TIME_US: i64 = 2_000_000;

/// A position of a recording that was found by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundPosition {
    /// The position, between two messages.
    pub position: i64,
    /// Arrival time of the first message after the position, in microseconds since the epoch.
    /// `None` if there is no such message, or if its time is not known.
    pub arrival_us: Option<i64>,
    /// Whether the position is approximate: the messages at the edge have no index entries, so all
    /// their bytes in a segment were taken as one unit.
    pub is_approximate: bool,
}

/// Why a position cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum FindPositionError {
    /// The entry of the catalog is not valid.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The file system returns an error.
    #[error("cannot search the index of recording {recording_id}: {source}")]
    Storage {
        /// Recording id.
        recording_id: i64,
        /// Error of the file system.
        source: io::Error,
    },
}

/// A search for a position by time. Each step reads the files of one segment.
#[derive(Clone, Debug)]
pub struct TimeSearch {
    recording: SearchedRecording,
    edge: TimeEdge,
    time_us: i64,
    /// Base of the next segment to search.
    base: i64,
    /// All messages before this position arrived before the given time, or their times are not
    /// known.
    reached: i64,
    /// The messages without a time between the last message with a time and `reached`.
    unknown: Option<UnknownTimes>,
}

/// Data of the recording from its catalog entry.
#[derive(Clone, Debug)]
struct SearchedRecording {
    descriptor: RecordingDescriptor,
    stream: RecordedStream,
    end_position: i64,
}

/// Messages whose times are not known.
#[derive(Clone, Copy, Debug)]
struct UnknownTimes {
    /// Position of the first of these messages.
    from: i64,
    /// Whether these messages have no index.
    is_approximate: bool,
}

/// Finds a position of a recording by time. No archive needs to run in the directory. `end_position` is the end of
/// the recording, or the recorded position if the recording is active. `time_us` is in microseconds since the epoch.
///
/// # Errors
/// [`FindPositionError`] if the catalog entry is not valid, or if the file system returns an error.
pub fn find_position<S: Storage>(
    storage: &S,
    recording: &RecordingDescriptor,
    end_position: i64,
    edge: TimeEdge,
    time_us: i64,
) -> Result<FoundPosition, FindPositionError> {
    let mut search = TimeSearch::new(recording, end_position, edge, time_us)?;
    loop {
        if let Some(found) = search.step(storage)? {
            return Ok(found);
        }
    }
}

/// Returns the latest arrival time in the index of a recording that ends at `end_position`, in milliseconds since the
/// epoch. Returns `None` if the last two segments have no index with a time, or if the file system returns an error.
pub(crate) fn last_arrival_ms<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    end_position: i64,
) -> Option<i64> {
    let last = stream.segment_base(end_position);
    // The last segment may have no entry yet.
    let bases = [last, last - stream.segment_length()];
    let begin = stream.segment_base(stream.start_position());
    let last_us = |base: &i64| {
        let file = IndexFile::open(storage, stream.recording_id(), *base, Access::Read).ok()??;
        let arrivals = SegmentArrivals::of(&file, *base, end_position).ok()?;
        Some(arrivals.last().ok()??.time_us)
    };
    let last_us = bases
        .iter()
        .filter(|base| **base >= begin)
        .find_map(last_us);
    last_us.map(|time_us| time_us.div_euclid(1_000))
}

impl TimeSearch {
    /// Creates a search. The arguments are the same as those of [`find_position`]. No file is
    /// opened yet.
    ///
    /// # Errors
    /// A value of the catalog entry is not valid.
    pub fn new(
        recording: &RecordingDescriptor,
        end_position: i64,
        edge: TimeEdge,
        time_us: i64,
    ) -> Result<Self, StreamError> {
        let stream = RecordedStream::of_recording(recording)?;
        let start = stream.start_position();
        Ok(Self {
            recording: SearchedRecording {
                descriptor: recording.clone(),
                stream,
                end_position: end_position.max(start),
            },
            edge,
            time_us,
            base: stream.segment_base(start),
            reached: start,
            unknown: None,
        })
    }

    /// Returns the recording id.
    #[must_use]
    pub fn recording_id(&self) -> i64 {
        self.recording.descriptor.recording_id
    }

    /// Returns the position at which the search began: the start of the recording at that time.
    #[must_use]
    pub fn start_position(&self) -> i64 {
        self.recording.stream.start_position()
    }

    /// Searches the next segment. Returns the position, or `None` if the search is not finished.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn step<S: Storage>(
        &mut self,
        storage: &S,
    ) -> Result<Option<FoundPosition>, FindPositionError> {
        let found = self
            .search_segment(storage)
            .map_err(|source| FindPositionError::Storage {
                recording_id: self.recording_id(),
                source,
            })?;
        self.base += self.recording.stream.segment_length();
        let is_last = self.base >= self.recording.end_position;
        Ok(found.or_else(|| is_last.then(|| self.position_at_end())))
    }

    fn search_segment<S: Storage>(&mut self, storage: &S) -> io::Result<Option<FoundPosition>> {
        let id = self.recording_id();
        let file = IndexFile::open(storage, id, self.base, Access::Read)?;
        let file = file.filter(|file| self.recording.has_written(file));
        if let Some(file) = &file {
            let arrivals = SegmentArrivals::of(file, self.begin(), self.limit())?;
            if let Some(found) = self.search_entries(&arrivals)? {
                return Ok(Some(found));
            }
            let rest = self.limit() - arrivals.end();
            if rest > 0 && rest <= MAX_UNINDEXED_BYTES && self.is_being_written() {
                self.pass_rest(storage, &arrivals)?;
                return Ok(None);
            }
            if rest == 0 {
                return Ok(None);
            }
        }
        // The entries of a segment with an index are lost only after a failure. A loss of power may also set the time
        // of the segment file back, so this time is no bound then.
        let written_us = match file {
            Some(_) => None,
            None => self.written_us(storage)?,
        };
        Ok(self.search_bytes(written_us))
    }

    /// Searches the segment by its index. If the edge is not in the segment, moves `reached` to
    /// the end of the indexed messages.
    fn search_entries<F: StorageFile>(
        &mut self,
        arrivals: &SegmentArrivals<'_, F>,
    ) -> io::Result<Option<FoundPosition>> {
        let last = arrivals.last()?;
        if let Some(last) = last.filter(|last| last.time_us >= self.time_us) {
            return self.search_edge(arrivals, last);
        }
        let first_unknown = last.map_or(0, |last| last.number + 1);
        if last.is_some() {
            self.unknown = None;
        }
        if first_unknown < arrivals.count() {
            let from = self.position_before(arrivals, first_unknown)?;
            self.add_unknown(from, false);
        }
        self.reached = self.position_before(arrivals, arrivals.count())?;
        Ok(None)
    }

    /// Moves `reached` to the end of the last messages of an active recording, which have no entry yet.
    /// These messages arrived within a millisecond after the last entry. If that millisecond may
    /// end after the given time, `reached` stays, and the messages belong to the range.
    fn pass_rest<S: Storage>(
        &mut self,
        storage: &S,
        arrivals: &SegmentArrivals<'_, S::File>,
    ) -> io::Result<()> {
        let last = arrivals.last()?.map(|last| last.time_us);
        let is_before = |last_us: i64| last_us.saturating_add(ENTRY_INTERVAL_US) < self.time_us;
        if self.unknown.is_none() && last.is_some_and(is_before) {
            let stream = self.recording.stream;
            let mut tracker = HeadTracker::new(arrivals.progress());
            let reader = RecordingReader::new(storage, stream, arrivals.end(), self.limit());
            // If an error occurs, the bytes that were not read belong to the range.
            if let Ok(mut reader) = reader {
                while let Ok(Some(frame)) = reader.next_frame() {
                    tracker.take(&frame);
                }
            }
            self.reached = self.reached.max(tracker.progress().head.unwrap_or(0));
        }
        Ok(())
    }

    /// Finds the edge in the segment. The time of the entry `last` is not before the given time.
    fn search_edge<F: StorageFile>(
        &mut self,
        arrivals: &SegmentArrivals<'_, F>,
        last: Arrival,
    ) -> io::Result<Option<FoundPosition>> {
        let count = arrivals.count_before(self.time_us, last)?;
        let next = arrivals.next(count)?.unwrap_or(last);
        if count > 0 {
            self.unknown = None;
        }
        if count < next.number {
            let from = self.position_before(arrivals, count)?;
            self.add_unknown(from, false);
        }
        self.reached = self.position_before(arrivals, next.number)?;
        Ok(Some(self.found(Some(next.time_us))))
    }

    /// Returns the time of the last write to the segment, in microseconds since the epoch. Returns `None` if the file
    /// does not exist.
    fn written_us<S: Storage>(&self, storage: &S) -> io::Result<Option<i64>> {
        let name = self.recording.stream.segment_name(self.base);
        match storage.open(&name, Access::Read) {
            Ok(file) => Ok(Some(epoch_us(file.modified()?))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Searches the bytes from `reached` to the end of the segment, which have no index. `written_us` is the time of
    /// the last write to the segment, if this time is known.
    fn search_bytes(&mut self, written_us: Option<i64>) -> Option<FoundPosition> {
        let from = self.reached.max(self.begin());
        let is_before = |bound_us: i64| bound_us.saturating_add(COARSE_TIME_US) < self.time_us;
        let stop_us = self.recording.stop_us();
        let is_start_after = from == self.recording.stream.start_position()
            && self.recording.start_us() >= self.time_us;
        let are_all_before = [written_us, stop_us].into_iter().flatten().any(is_before);
        if is_start_after {
            self.reached = from;
            return Some(self.found(None));
        }
        self.reached = self.limit();
        if are_all_before {
            self.unknown = None;
            return None;
        }
        self.add_unknown(from, true);
        let is_found = match (self.edge, written_us) {
            (_, None) => false,
            (TimeEdge::Since, Some(_)) => true,
            (TimeEdge::Until, Some(written_us)) => {
                let is_copied =
                    stop_us.is_some_and(|stop| written_us > stop.saturating_add(COARSE_TIME_US));
                !is_copied && written_us.saturating_sub(COARSE_TIME_US) >= self.time_us
            }
        };
        is_found.then(|| self.approximate())
    }

    /// Returns the position of the edge if no message at or after the given time was found.
    fn position_at_end(&mut self) -> FoundPosition {
        if self.edge == TimeEdge::Until {
            self.reached = self.recording.end_position;
        }
        self.found(None)
    }

    fn approximate(&self) -> FoundPosition {
        FoundPosition {
            is_approximate: true,
            ..self.found(None)
        }
    }

    /// Returns the position of the edge. `arrival_us` is the time of the first message after the edge that has a
    /// time.
    fn found(&self, arrival_us: Option<i64>) -> FoundPosition {
        let is_approximate = self.unknown.is_some_and(|unknown| unknown.is_approximate);
        let unknown = self.unknown.filter(|_| self.edge == TimeEdge::Since);
        FoundPosition {
            position: unknown.map_or(self.reached, |unknown| unknown.from),
            arrival_us: arrival_us.filter(|_| unknown.is_none()),
            is_approximate,
        }
    }

    fn add_unknown(&mut self, from: i64, is_approximate: bool) {
        let unknown = self.unknown.get_or_insert(UnknownTimes {
            from,
            is_approximate,
        });
        unknown.is_approximate |= is_approximate;
    }

    /// Returns the end of the last complete message before an entry. If entries are damaged, the
    /// result is earlier for the begin of a range, and later for the end of a range.
    fn position_before<F: StorageFile>(
        &self,
        arrivals: &SegmentArrivals<'_, F>,
        number: u64,
    ) -> io::Result<i64> {
        let head = match self.edge {
            TimeEdge::Since => arrivals.head_before(number)?,
            TimeEdge::Until => arrivals.head_before_or_later(number)?,
        };
        let start = self.recording.stream.start_position();
        let position = head.unwrap_or_else(|| self.begin());
        Ok(position.clamp(start, self.limit()))
    }

    /// Returns the first position of the segment.
    fn begin(&self) -> i64 {
        self.base.max(self.recording.stream.start_position())
    }

    /// Returns the end of the segment or of the recording.
    fn limit(&self) -> i64 {
        let end = self.base + self.recording.stream.segment_length();
        end.min(self.recording.end_position)
    }

    /// Returns whether the segment is the last segment of an active recording.
    fn is_being_written(&self) -> bool {
        self.recording.descriptor.is_unfinished() && self.limit() == self.recording.end_position
    }
}

impl SearchedRecording {
    /// Returns whether the index belongs to the current bytes of the recording. If another archive
    /// has continued the recording, the index of the last segment may have entries for bytes that
    /// were overwritten.
    fn has_written<F: StorageFile>(&self, file: &IndexFile<F>) -> bool {
        let last = self.stream.segment_base(self.end_position);
        let header = file.header();
        header.form == IndexForm::Dense
            || header.base_position < last
            || file
                .recorder()
                .is_some_and(|recorder| recorder.is_last_of(&self.descriptor, self.end_position))
    }

    fn start_us(&self) -> i64 {
        self.descriptor.start_timestamp_ms.saturating_mul(1_000)
    }

    /// Returns the time at which the recording stopped; `None` while it is active.
    fn stop_us(&self) -> Option<i64> {
        let is_stopped = !self.descriptor.is_unfinished();
        // The timestamp has whole milliseconds, so the recording may have stopped up to 999 µs later.
        is_stopped.then(|| {
            self.descriptor
                .ended_ms()
                .saturating_mul(1_000)
                .saturating_add(999)
        })
    }
}
