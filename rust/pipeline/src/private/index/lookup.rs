//! [`Index`]: from positions to counts of messages, and back.
//!
//! Counts are known at the end of every block. What lies between is found by scanning at most one block.

use std::io;

use aeron_archive::reader::{ReadError, RecordingReader};
use aeron_archive::segments::sidecar_name;
use aeron_archive::storage::{Access, Storage};
use aeron_archive::stream::RecordedStream;

use super::super::heads::{Counts, HeadTracker, Progress};
use super::{INDEX_EXTENSION, IndexFile};

/// Finds counts and cuts in a recording, live or ended. Opens what it needs for each answer.
#[derive(Debug)]
pub struct Index<S> {
    storage: S,
    stream: RecordedStream,
}

/// A range of whole messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Where it ends.
    pub position: i64,
    /// The messages in it.
    pub counts: Counts,
}

/// Why nothing is found.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// An index file is missing or damaged. Opening the archive anew makes it whole.
    #[error("{name} is missing or damaged; restart the query and it is made anew")]
    Damaged {
        /// The file.
        name: String,
    },
    /// The file system refuses.
    #[error("{name}: {source}")]
    Storage {
        /// The file.
        name: String,
        /// What it answers.
        source: io::Error,
    },
    /// A segment cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// A place at which counts are known.
#[derive(Debug, Clone, Copy)]
struct Milestone {
    position: i64,
    progress: Progress,
}

impl<S: Storage> Index<S> {
    /// The index of a recording; its start position is where the recording starts by now.
    pub fn new(storage: S, stream: RecordedStream) -> Self {
        Self { storage, stream }
    }

    /// The messages in a range. `from` and `to` are ends of messages, or where the recording starts.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn count(&self, from: i64, to: i64) -> Result<Counts, IndexError> {
        if from >= to {
            return Ok(Counts::default());
        }
        let index = self.since(from);
        Ok(index.counts_at(to)? - index.counts_at(from)?)
    }

    /// The longest range of whole messages from `from` on and up to `to` that `fits`: a bound on the messages in it. Empty when
    /// the first message does not fit. `from` and `to` are as for [`count`](Self::count).
    ///
    /// # Errors
    /// [`IndexError`].
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

    /// End of the first message behind `from`, and what it carries; `None` when there is none up to `to`.
    ///
    /// # Errors
    /// [`IndexError`].
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

    /// Number of the entry at which to begin for arrival times behind `position`, in the index of the segment that holds it.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn entry_number(&self, position: i64) -> Result<u64, IndexError> {
        let base = self.stream.segment_base(position);
        let Some(file) = self.open(base)? else {
            return Ok(0);
        };
        self.partition_point(base, &file, |milestone| milestone.position <= position)
    }

    /// The index from the segment that holds `from` on, which nothing removes while the range is asked for. What is before it
    /// may be purged at any moment.
    fn since(&self, from: i64) -> Index<&S> {
        Index {
            storage: &self.storage,
            stream: self.stream.purged_to(from),
        }
    }

    /// Complete messages up to `position`.
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

    /// The last milestone at or before `to` that `is_within`. Milestones up to one are within and all behind it are not.
    fn last_milestone(
        &self,
        to: i64,
        is_within: impl Fn(&Milestone) -> bool,
    ) -> Result<Milestone, IndexError> {
        let is_within = |milestone: &Milestone| milestone.position <= to && is_within(milestone);
        let first = self.stream.segment_base(self.stream.start_position());
        let segment_length = self.stream.segment_length();
        // The segment's own begin is a milestone: the last segment whose begin is within holds the answer.
        let (mut low, mut high) = (0, (self.stream.segment_base(to) - first) / segment_length);
        while low < high {
            let middle = low + (high - low + 1) / 2;
            let base = first + middle * segment_length;
            let file = self.open(base)?;
            // At the very end of a full segment the next one may not have been made.
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

    /// How many entries are within, the first ones.
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

    /// Follows the messages from a milestone up to `to`; hands the progress with each complete one to `on_message` until that
    /// answers false.
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
