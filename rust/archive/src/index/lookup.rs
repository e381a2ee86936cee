//! [`Index`]: converts between positions and message counts.
//!
//! The index has the counts at the end of every indexed block. For a position within such a block,
//! the frames of the block are scanned.

use std::io;

use crate::reader::{ReadError, RecordingReader};
use crate::segments::sidecar_name;
use crate::storage::{Access, Storage};
use crate::stream::RecordedStream;

use super::{Counts, HeadTracker, INDEX_EXTENSION, IndexFile, Progress};

/// Finds counts and cuts in a recording. The recording may be active. Each call opens the files
/// that it needs.
#[derive(Debug)]
pub struct Index<S> {
    storage: S,
    stream: RecordedStream,
}

/// A position between two messages at which a range of whole messages ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Position of the cut.
    pub position: i64,
    /// Counts of the messages from the start of the range to this position.
    pub counts: Counts,
}

/// Why a lookup fails.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// An index file is missing or damaged. The next opening of the archive repairs the index.
    #[error("{name} is missing or damaged: restart the query, which writes it again")]
    Damaged {
        /// Name of the file.
        name: String,
    },
    /// The file system returns an error.
    #[error("{name}: {source}")]
    Storage {
        /// Name of the file.
        name: String,
        /// Error of the file system.
        source: io::Error,
    },
    /// A segment cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// A position with known counts.
#[derive(Debug, Clone, Copy)]
struct Milestone {
    position: i64,
    progress: Progress,
}

impl<S: Storage> Index<S> {
    /// Creates the index of a recording. The start position of `stream` is the current start position
    /// of the recording.
    pub fn new(storage: S, stream: RecordedStream) -> Self {
        Self { storage, stream }
    }

    /// Counts the messages in a range. `from` and `to` are ends of messages, or the start of the recording.
    ///
    /// # Errors
    /// [`IndexError`] if an index file or a segment cannot be used.
    pub fn count(&self, from: i64, to: i64) -> Result<Counts, IndexError> {
        if from >= to {
            return Ok(Counts::default());
        }
        let index = self.since(from);
        Ok(index.counts_at(to)? - index.counts_at(from)?)
    }

    /// Returns the longest range of whole messages from `from` on, up to `to`, whose counts `fits` accepts.
    ///
    /// The range is empty if the first message does not fit. The same conditions for `from` and
    /// `to` apply as in [`count`](Self::count).
    ///
    /// # Errors
    /// [`IndexError`] if an index file or a segment cannot be used.
    pub fn cut(
        &self,
        from: i64,
        to: i64,
        fits: impl Fn(Counts) -> bool,
    ) -> Result<Cut, IndexError> {
        let mut cut = Cut {
            position: from,
            counts: Counts::default(),
        };
        if from >= to {
            return Ok(cut);
        }
        let index = self.since(from);
        let before = index.counts_at(from)?;
        let is_within = |milestone: &Milestone| {
            let head = milestone.progress.head.unwrap_or(from);
            head <= from || (head <= to && fits(milestone.progress.counts - before))
        };
        let last = index.last_milestone(to, is_within)?;
        let mut extend = |progress: Progress| {
            let counts = progress.counts - before;
            let Some(position) = progress.head.filter(|_| counts.messages > 0) else {
                return true;
            };
            if fits(counts) {
                cut = Cut { position, counts };
            }
            fits(counts)
        };
        extend(last.progress);
        index.scan(last, to, extend)?;
        Ok(cut)
    }

    /// Returns the end and the counts of the first message after `from`; `None` if there is no message up to `to`.
    ///
    /// # Errors
    /// [`IndexError`] if an index file or a segment cannot be used.
    pub fn first_message(&self, from: i64, to: i64) -> Result<Option<Cut>, IndexError> {
        let mut first = None;
        if from >= to {
            return Ok(first);
        }
        let index = self.since(from);
        let before = index.counts_at(from)?;
        let last = index.last_milestone(to, |milestone| {
            milestone.progress.head.unwrap_or(from) <= from
        })?;
        index.scan(last, to, |progress| {
            let counts = progress.counts - before;
            if counts.messages < 1 {
                return true;
            }
            first = progress.head.map(|position| Cut { position, counts });
            false
        })?;
        Ok(first)
    }

    /// Returns the number of the first entry that ends after `position`. The number counts from 0 in the index file of
    /// the segment that contains `position`.
    ///
    /// # Errors
    /// [`IndexError`] if an index file or a segment cannot be used.
    pub fn entry_number(&self, position: i64) -> Result<u64, IndexError> {
        let base = self.stream.segment_base(position);
        let Some(file) = self.open(base)? else {
            return Ok(0);
        };
        self.partition_point(base, &file, |milestone| milestone.position <= position)
    }

    /// Returns the part of the index that begins with the segment of `from`. Earlier segments may
    /// be purged at any time, so their files are not used.
    fn since(&self, from: i64) -> Index<&S> {
        Index {
            storage: &self.storage,
            stream: self.stream.purged_to(from),
        }
    }

    /// Returns the counts of complete messages up to `position`.
    fn counts_at(&self, position: i64) -> Result<Counts, IndexError> {
        let last = self.last_milestone(position, |milestone| {
            milestone.progress.head.is_none_or(|head| head <= position)
        })?;
        let mut counts = last.progress.counts;
        if last.progress.head != Some(position) {
            self.scan(last, position, |progress| {
                counts = progress.counts;
                true
            })?;
        }
        Ok(counts)
    }

    /// Returns the last milestone up to `to` for which `is_within` is true. `is_within` must be
    /// true for all milestones up to some position, and false for all later milestones.
    fn last_milestone(
        &self,
        to: i64,
        is_within: impl Fn(&Milestone) -> bool,
    ) -> Result<Milestone, IndexError> {
        let is_within = |milestone: &Milestone| milestone.position <= to && is_within(milestone);
        let first = self.stream.segment_base(self.stream.start_position());
        let segment_length = self.stream.segment_length();
        // The start of each segment is a milestone. The result is in the last segment for which
        // `is_within` is true at the start.
        let (mut low, mut high) = (0, (self.stream.segment_base(to) - first) / segment_length);
        while low < high {
            let middle = low + (high - low + 1) / 2;
            let base = first + middle * segment_length;
            let file = self.open(base)?;
            // If the last segment is full, the next segment may not exist yet.
            let is_low = file.is_some_and(|file| is_within(&self.begin_of(&file)));
            if is_low {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        let base = first + low * segment_length;
        let file = self.open(base)?.ok_or_else(|| self.damaged(base))?;
        let number = self.partition_point(base, &file, is_within)?;
        match number.checked_sub(1) {
            Some(number) => self.milestone(base, &file, number),
            None => Ok(self.begin_of(&file)),
        }
    }

    /// Returns the number of entries for which the condition is true. The condition must be true for the first entries,
    /// and false for all other entries.
    fn partition_point(
        &self,
        base: i64,
        file: &IndexFile<S::File>,
        is_within: impl Fn(&Milestone) -> bool,
    ) -> Result<u64, IndexError> {
        let (mut low, mut high) = (0, file.entry_count());
        while low < high {
            let middle = low + (high - low) / 2;
            if is_within(&self.milestone(base, file, middle)?) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    fn milestone(
        &self,
        base: i64,
        file: &IndexFile<S::File>,
        number: u64,
    ) -> Result<Milestone, IndexError> {
        let entry = file
            .entry(number)
            .map_err(|source| self.storage_error(base, source))?;
        let entry = entry.ok_or_else(|| self.damaged(base))?;
        Ok(Milestone {
            position: entry.end_position,
            progress: entry.progress,
        })
    }

    fn begin_of(&self, file: &IndexFile<S::File>) -> Milestone {
        let header = file.header();
        Milestone {
            position: header.base_position.max(self.stream.start_position()),
            progress: header.progress,
        }
    }

    /// Scans the messages from a milestone up to `to`. Calls `on_message` with the progress after each complete
    /// message, until it returns false.
    fn scan(
        &self,
        from: Milestone,
        to: i64,
        mut on_message: impl FnMut(Progress) -> bool,
    ) -> Result<(), IndexError> {
        if from.position >= to {
            return Ok(());
        }
        let mut tracker = HeadTracker::new(from.progress);
        let mut reader = RecordingReader::new(&self.storage, self.stream, from.position, to)?;
        while let Some(frame) = reader.next_frame()? {
            tracker.take(&frame);
            if frame.is_end() && !on_message(tracker.progress()) {
                break;
            }
        }
        Ok(())
    }

    fn open(&self, base: i64) -> Result<Option<IndexFile<S::File>>, IndexError> {
        IndexFile::open(
            &self.storage,
            self.stream.recording_id(),
            base,
            Access::Read,
        )
        .map_err(|source| self.storage_error(base, source))
    }

    fn name(&self, base: i64) -> String {
        sidecar_name(self.stream.recording_id(), base, INDEX_EXTENSION)
    }

    fn damaged(&self, base: i64) -> IndexError {
        IndexError::Damaged {
            name: self.name(base),
        }
    }

    fn storage_error(&self, base: i64, source: io::Error) -> IndexError {
        IndexError::Storage {
            name: self.name(base),
            source,
        }
    }
}
