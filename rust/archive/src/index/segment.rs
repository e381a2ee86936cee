//! [`SegmentIndex`]: the index that a recorder writes beside its segments.
//!
//! In the sparse form, an entry is written for a block if 64 KiB or 1 ms have passed since the last entry, or if the
//! block fills the segment. An entry is also written if the last frame of a block is whole but may look torn. Such an
//! entry is a [proof](super::IndexProof) that the frame is whole. In the dense form, an entry is written for every
//! block. In both forms, the entry is written after the block and before the block is acknowledged. An entry costs
//! one small write. Most blocks of an archive server need no entry.

use std::fmt;
use std::io;
use std::sync::Arc;

use aeron_agent::EpochClock;

use super::entry::{ENTRY_INTERVAL_BYTES, ENTRY_INTERVAL_US};
use super::file::session_field;
use super::moves::remove_index;
use super::repair::{State, repair_last};
use super::{
    HeadTracker, INDEX_EXTENSION, IndexEntry, IndexError, IndexFile, IndexForm, IndexHeader,
    IndexRecorder, IndexWriter,
};
use crate::frame::CheckedFrame;
use crate::recovery::has_empty_page;
use crate::segments::sidecar_name;
use crate::storage::{Access, Storage, SyncLevel};
use crate::stream::RecordedStream;

/// The wall clock for arrival times.
#[derive(Clone)]
pub struct ArrivalClock(Arc<dyn EpochClock>);

/// The index of a recording. Only the recording thread uses it.
#[derive(Debug)]
pub struct SegmentIndex<S: Storage> {
    storage: S,
    stream: RecordedStream,
    form: IndexForm,
    recorder: IndexRecorder,
    clock: ArrivalClock,
    writer: IndexWriter<S::File>,
    base: i64,
    tracker: HeadTracker,
    /// End of the last entry that the index tried to write, even if the write failed.
    indexed_position: i64,
    /// The latest arrival time of an entry, in microseconds since the epoch.
    arrival_us: i64,
    /// The entry to write next. It covers the recorded blocks that have no entry yet.
    pending: Option<IndexEntry>,
}

/// The frames that are appended and not yet published.
#[derive(Debug, Clone, Copy)]
pub struct BlockFrames {
    tracker: HeadTracker,
    /// Position of the last frame.
    last_frame: i64,
    /// Whether the last frame may look torn.
    is_doubtful: bool,
}

impl ArrivalClock {
    /// Creates the clock from an epoch clock.
    pub fn new(clock: Arc<dyn EpochClock>) -> Self {
        Self(clock)
    }

    fn now_us(&self) -> i64 {
        self.0.time_us()
    }
}

impl fmt::Debug for ArrivalClock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ArrivalClock")
    }
}

impl BlockFrames {
    /// Processes the next frame.
    #[inline]
    pub fn take(&mut self, frame: &CheckedFrame<'_>) {
        self.tracker.take(frame);
        self.last_frame = frame.position();
    }

    /// Checks the last frame of a block that begins at `begin`.
    pub fn finish_block(&mut self, begin: i64, block: &[u8]) {
        let last = (self.last_frame - begin) as usize;
        let frame = block.get(last..).unwrap_or_default();
        self.is_doubtful = has_empty_page(self.last_frame, frame);
    }
}

impl<S: Storage> SegmentIndex<S> {
    /// Creates the index of a recording whose first segment was just created.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn create(
        storage: S,
        stream: RecordedStream,
        form: IndexForm,
        recorder: IndexRecorder,
        clock: ArrivalClock,
    ) -> Result<Self, IndexError> {
        let start = stream.start_position();
        let base = stream.segment_base(start);
        let tracker = HeadTracker::default();
        let writer = create(&storage, &stream, form, base, &tracker, &recorder)
            .map_err(|source| error(&stream, base, source))?;
        Ok(Self {
            storage,
            stream,
            form,
            recorder,
            clock,
            writer,
            base,
            tracker,
            indexed_position: start,
            arrival_us: 0,
            pending: None,
        })
    }

    /// Continues the index of a recording at `recorder.begin_position`, the end of the recording. If `is_trusted`,
    /// repairs the index of the last segment. Otherwise the index of the last segment is written again.
    ///
    /// # Errors
    /// The file system returns an error, or the segment cannot be read.
    pub fn reopen(
        storage: S,
        stream: RecordedStream,
        form: IndexForm,
        mut recorder: IndexRecorder,
        clock: ArrivalClock,
        is_trusted: bool,
    ) -> Result<Self, IndexError> {
        let position = recorder.begin_position;
        let base = stream.segment_base(position);
        if position > base {
            let before = session_field(&storage, &stream, base, is_trusted)
                .map_err(|source| error(&stream, base, source))?;
            recorder.session_field = recorder.session_field.after(before);
        }
        let State {
            progress,
            arrival_us,
        } = repair_last(&storage, &stream, position, form, &recorder, is_trusted)?;
        let writer = reopen(&storage, &stream, form, base, &recorder)
            .map_err(|source| error(&stream, base, source))?;
        Ok(Self {
            storage,
            stream,
            form,
            recorder,
            clock,
            writer,
            base,
            tracker: HeadTracker::new(progress),
            indexed_position: position,
            // A damaged index may contain any time.
            arrival_us: arrival_us.unwrap_or(0).max(0),
            pending: None,
        })
    }

    /// Returns the state after the blocks that were passed to [`note`](Self::note). The caller adds the frames of the
    /// next block.
    pub fn frames(&self) -> BlockFrames {
        BlockFrames {
            tracker: self.tracker,
            last_frame: 0,
            is_doubtful: false,
        }
    }

    /// Returns the tracker of the messages in the blocks that were passed to [`note`](Self::note).
    pub fn tracker(&self) -> &HeadTracker {
        &self.tracker
    }

    /// Returns the current time of the index's clock, in microseconds since the epoch.
    pub fn now_us(&self) -> i64 {
        self.clock.now_us()
    }

    /// Returns whether the recording must not continue without its index.
    pub fn is_required(&self) -> bool {
        self.form == IndexForm::Dense
    }

    /// Writes the entries that are due for appended blocks up to `end_position`. The blocks are already forced to the
    /// disk. `now_us` is the arrival time of the blocks in microseconds since the epoch.
    ///
    /// # Errors
    /// The entry of a frame that may look torn, or an entry of the dense form, cannot be written. Then the blocks must
    /// be undone. If any other entry cannot be written, only an arrival time is lost, and no error is returned.
    pub fn note(&mut self, frames: &BlockFrames, end_position: i64, now_us: i64) -> io::Result<()> {
        // The times must not decrease, even if the clock was set back: a search by time relies on their order.
        let pending_us = self.pending.and_then(|pending| pending.arrival_us);
        let now_us = now_us.max(self.arrival_us).max(pending_us.unwrap_or(0));
        let segment_end = self.base + self.stream.segment_length();
        debug_assert!(
            end_position > self.indexed_position && end_position <= segment_end,
            "recording {}: an index entry at {end_position} must be after {} and within the segment that ends at \
             {segment_end}",
            self.stream.recording_id(),
            self.indexed_position
        );
        debug_assert!(
            self.pending
                .is_none_or(|pending| pending.end_position < end_position),
            "recording {}: the block up to {end_position} must follow the block that waits for its entry",
            self.stream.recording_id()
        );
        let entry = IndexEntry {
            end_position,
            progress: frames.tracker.progress(),
            arrival_us: Some(now_us),
        };
        // After a pause, the entry of the blocks before the pause is written first, so that they keep their own time.
        self.write_if_overdue(now_us);
        let is_due = end_position - self.indexed_position >= ENTRY_INTERVAL_BYTES
            || now_us - self.arrival_us >= ENTRY_INTERVAL_US
            || end_position == self.base + self.stream.segment_length();
        if frames.is_doubtful || self.is_required() {
            let last = (self.indexed_position, self.arrival_us);
            if let Err(error) = self.write(&entry) {
                // The block is undone. The entry of the blocks before it may still be written at the end.
                (self.indexed_position, self.arrival_us) = last;
                return Err(error);
            }
            self.pending = None;
            if let Err(error) = self.writer.sync(self.recorder.sync_level) {
                // An error of `undo` is ignored: the error of `sync` is more useful. The recording ends, and its end is
                // stored in the catalog.
                let _ = self.writer.undo();
                return Err(error);
            }
        } else {
            let is_written = is_due && self.write(&entry).is_ok();
            self.pending = (!is_written).then_some(entry);
        }
        self.tracker = frames.tracker;
        Ok(())
    }

    /// Writes the entry of the last blocks if no block has followed for 1 ms. A recorder without
    /// new data calls this function. Then readers find the arrival time of all recorded messages.
    pub fn note_pause(&mut self) {
        if self.pending.is_some() {
            self.write_if_overdue(self.clock.now_us());
        }
    }

    fn write_if_overdue(&mut self, now_us: i64) {
        let is_overdue = |pending: &IndexEntry| {
            now_us - pending.arrival_us.unwrap_or(now_us) >= ENTRY_INTERVAL_US
        };
        if let Some(pending) = self.pending.filter(is_overdue) {
            let _ = self.write(&pending);
            self.pending = None;
        }
    }

    /// Creates the index of the segment at `base`, which was just created.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn begin_segment(&mut self, base: i64) -> io::Result<()> {
        debug_assert_eq!(
            base,
            self.base + self.stream.segment_length(),
            "recording {}: the index must continue with the next segment",
            self.stream.recording_id()
        );
        // The last entry of the segment could not be written. If it fails again, only an arrival time is lost.
        // In the next index, the entry would make the whole index invalid.
        if let Some(pending) = self.pending.take() {
            let _ = self.write(&pending);
        }
        self.base = base;
        self.recorder.begin_position = base;
        self.writer = create(
            &self.storage,
            &self.stream,
            self.form,
            base,
            &self.tracker,
            &self.recorder,
        )?;
        Ok(())
    }

    /// Deletes the index of the segment for which [`begin_segment`](Self::begin_segment) has failed.
    ///
    /// An index without entries would prove that frames of the segment were never acknowledged. So
    /// the recording may continue only if the deletion survives a loss of power.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn discard(self) -> io::Result<()> {
        remove_index(&self.storage, self.stream.recording_id(), self.base)?;
        match self.recorder.sync_level {
            SyncLevel::None => Ok(()),
            _ => self.storage.sync(),
        }
    }

    /// Writes the entry of the last blocks, at the end of the recording.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn finish(&mut self) -> io::Result<()> {
        match self.pending.take() {
            Some(pending) => self.write(&pending),
            None => Ok(()),
        }
    }

    /// Returns the name of the current index file.
    pub fn name(&self) -> String {
        sidecar_name(self.stream.recording_id(), self.base, INDEX_EXTENSION)
    }

    fn write(&mut self, entry: &IndexEntry) -> io::Result<()> {
        debug_assert!(
            entry.end_position >= self.indexed_position,
            "recording {}: an index entry at {} is after an entry at {}",
            self.stream.recording_id(),
            entry.end_position,
            self.indexed_position
        );
        debug_assert!(
            entry
                .arrival_us
                .is_none_or(|arrival_us| arrival_us >= self.arrival_us),
            "recording {}: arrival times in an index must not decrease from {} to {:?}",
            self.stream.recording_id(),
            self.arrival_us,
            entry.arrival_us
        );
        // Both fields are set even if the write fails. Otherwise each block would try to write an entry while the disk
        // is full.
        self.indexed_position = entry.end_position;
        self.arrival_us = self.arrival_us.max(entry.arrival_us.unwrap_or(0));
        self.writer.append(entry)
    }
}

/// Creates the index of a segment. At sync levels above [`SyncLevel::None`], the index survives a
/// loss of power.
fn create<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    form: IndexForm,
    base: i64,
    tracker: &HeadTracker,
    recorder: &IndexRecorder,
) -> io::Result<IndexWriter<S::File>> {
    let header = IndexHeader {
        recording_id: stream.recording_id(),
        base_position: base,
        progress: tracker.progress(),
        form,
    };
    let name = sidecar_name(header.recording_id, base, INDEX_EXTENSION);
    // An archive of other software deletes only segments. So an existing file belongs to a deleted
    // segment that had the same name.
    remove_index(storage, header.recording_id, base)?;
    let writer = IndexWriter::create_as(storage, &name, &header, Some(recorder))?;
    if recorder.sync_level > SyncLevel::None {
        writer.sync(recorder.sync_level)?;
        storage.sync()?;
    }
    Ok(writer)
}

/// Opens the index of a segment for its next recorder.
fn reopen<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    form: IndexForm,
    base: i64,
    recorder: &IndexRecorder,
) -> io::Result<IndexWriter<S::File>> {
    let file = IndexFile::open(storage, stream.recording_id(), base, Access::Write)?
        .ok_or(io::ErrorKind::NotFound)?;
    let mut writer = IndexWriter::behind(file);
    if form == IndexForm::Sparse {
        writer.set_recorder(recorder)?;
    }
    if recorder.sync_level > SyncLevel::None {
        writer.sync(recorder.sync_level)?;
        storage.sync()?;
    }
    Ok(writer)
}

fn error(stream: &RecordedStream, base: i64, source: io::Error) -> IndexError {
    IndexError::Storage {
        name: sidecar_name(stream.recording_id(), base, INDEX_EXTENSION),
        source,
    }
}
