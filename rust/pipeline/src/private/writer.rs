//! [`RecordingWriter`]: records one image, block by block, with its index.
//!
//! For each block, the frames are written first, then the index entry; then the positions are stored for other threads.
//! So all data below a published position is in the page cache, and survives the end of the process.

use std::io;
use std::sync::Arc;

use aeron_archive::index::{
    ENTRY_LENGTH, HeadTracker, IndexEntry, IndexForm, IndexHeader, IndexWriter,
};
use aeron_archive::pause::{self, Point};
use aeron_archive::recorder::{RecorderError, RecorderSession};
use aeron_archive::storage::{Storage, SyncLevel};
use aeron_memory::log::frame::{HEADER_LENGTH, MAX_MESSAGE_LENGTH, MAX_MTU_LENGTH};

use super::published::Published;
use super::{MAX_BLOCK_LENGTH, PrivateError};

/// Records one image. Owned by the thread that polls the image.
#[derive(Debug)]
pub struct RecordingWriter<S: Storage> {
    storage: S,
    session: RecorderSession<S>,
    index: IndexWriter<S::File>,
    tracker: HeadTracker,
    published: Arc<Published>,
    arrival_us: i64,
    /// Length of the longest possible message of the stream, with its headers.
    max_framed_length: i64,
    /// Head of the session's earlier recording, until the number of missed bytes is known.
    missed_since: Option<i64>,
}

impl<S: Storage + Clone> RecordingWriter<S> {
    /// Starts a recording: creates the first index file and the first segment.
    pub(super) fn create(
        storage: S,
        stream: aeron_archive::stream::RecordedStream,
        mtu_length: i32,
        missed_since: Option<i64>,
    ) -> Result<Self, PrivateError> {
        let start = stream.start_position();
        let tracker = HeadTracker::default();
        let header = IndexHeader {
            recording_id: stream.recording_id(),
            base_position: stream.segment_base(start),
            progress: tracker.progress(),
            form: IndexForm::Dense,
        };
        let index = IndexWriter::create(&storage, &header)
            .map_err(|source| index_error(&storage, header.recording_id, start, source))?;
        let session = RecorderSession::create(storage.clone(), stream, SyncLevel::None)?;
        let payload =
            usize::try_from(mtu_length).map_or(0, |mtu| mtu.saturating_sub(HEADER_LENGTH));
        let fragments = MAX_MESSAGE_LENGTH.div_ceil(payload.clamp(HEADER_LENGTH, MAX_MTU_LENGTH));
        Ok(Self {
            storage,
            session,
            index,
            tracker,
            published: Arc::new(Published::new(start, start, tracker.progress())),
            arrival_us: 0,
            max_framed_length: (MAX_MESSAGE_LENGTH + fragments * HEADER_LENGTH) as i64,
            missed_since,
        })
    }

    /// Returns the recording id.
    pub fn recording_id(&self) -> i64 {
        self.session.stream().recording_id()
    }

    /// Returns the end of the recorded data.
    pub fn recorded_position(&self) -> i64 {
        self.session.recorded_position()
    }

    /// Returns the end of the last complete message. If no message is complete, returns the start of the first message,
    /// or `None` if no message has begun.
    pub fn head(&self) -> Option<i64> {
        self.tracker.progress().head
    }

    /// Returns the positions and counts that other threads read.
    pub fn published(&self) -> &Arc<Published> {
        &self.published
    }

    /// Records a block that was polled at `position` at the time `now_us`, in microseconds since the epoch. The block
    /// has whole data frames, or one padding frame. Skips frames that are already recorded: the image of a session that
    /// came back may begin below the recorded position.
    ///
    /// # Errors
    /// The block cannot be written, is damaged, or does not begin at the end of the recording: nothing of the block is
    /// recorded. The next segment cannot be created: the block is recorded. In both cases end the recording, because
    /// nothing more can be recorded.
    pub fn append(&mut self, position: i64, block: &[u8], now_us: i64) -> Result<(), PrivateError> {
        let block = self.beyond_recorded(position, block)?;
        if block.is_empty() {
            return Ok(());
        }
        let mut tracker = self.tracker;
        let end_position = self.session.append(block, |frame| tracker.take(frame))?;
        pause::at(Point::APPENDED);
        self.arrival_us = self.arrival_us.max(now_us);
        let progress = tracker.progress();
        let entry = IndexEntry {
            end_position,
            progress,
            arrival_us: Some(self.arrival_us),
        };
        if let Err(source) = self.append_entry(&entry) {
            self.session.undo()?;
            return Err(index_error(
                &self.storage,
                self.recording_id(),
                self.recorded_position(),
                source,
            ));
        }
        pause::at(Point::INDEXED);
        self.tracker = tracker;
        let published = self.session.publish();
        self.published.store(end_position, progress);
        published?;
        Ok(())
    }

    /// Returns the maximum length of the next block; 0 while the recording must wait.
    ///
    /// `has_room` is false if the archive retains the maximum number of bytes. Then the recording waits until Spark has
    /// committed more messages. There is one exception: if Spark has committed all complete messages, the recording
    /// continues up to the end of the message that has begun. Otherwise neither side could continue.
    pub fn block_limit(&self, has_room: bool) -> usize {
        let is_next = self
            .head()
            .is_none_or(|head| head <= self.published.committed_position());
        let is_begun = self
            .tracker
            .unfinished_begin()
            .is_some_and(|begin| self.recorded_position() - begin < self.max_framed_length);
        if has_room || (is_next && is_begun) {
            MAX_BLOCK_LENGTH
        } else {
            0
        }
    }

    /// Returns the number of bytes of the session that were missed between its earlier recording and this one. Returns
    /// it once, after the first message has begun; `None` if nothing was missed.
    pub fn take_gap(&mut self) -> Option<i64> {
        let first = self.tracker.first_begin()?;
        let gap = first - self.missed_since.take()?;
        (gap > 0).then_some(gap)
    }

    /// Returns the head of the earlier recording if the stream after it was missed and [`take_gap`](Self::take_gap) has
    /// not returned the length yet.
    pub fn missed_since(&self) -> Option<i64> {
        self.missed_since
    }

    /// Returns the part of a block that is not recorded yet.
    fn beyond_recorded<'b>(
        &self,
        position: i64,
        block: &'b [u8],
    ) -> Result<&'b [u8], PrivateError> {
        let recorded_position = self.recorded_position();
        let mut rest = block;
        let mut begin = position;
        for frame in self.session.stream().rules().frames(position, block) {
            // If the frame is damaged, appending it reports the damage.
            let Ok(frame) = frame else { break };
            if begin >= recorded_position {
                break;
            }
            // A padding block may contain only the header, or more.
            let covered = (frame.end_position() - begin) as usize;
            rest = &rest[covered.min(rest.len())..];
            begin = frame.end_position();
        }
        if rest.is_empty() || begin == recorded_position {
            return Ok(rest);
        }
        Err(PrivateError::Gap {
            recording_id: self.recording_id(),
            position: begin,
            recorded_position,
        })
    }

    /// Writes an entry. If the segment is full, also creates the next index: an index is created before its segment.
    fn append_entry(&mut self, entry: &IndexEntry) -> io::Result<()> {
        self.index.append(entry)?;
        let Some(base_position) = self.session.next_segment() else {
            return Ok(());
        };
        let header = IndexHeader {
            recording_id: self.recording_id(),
            base_position,
            progress: entry.progress,
            form: IndexForm::Dense,
        };
        match IndexWriter::create(&self.storage, &header) {
            Ok(next) => {
                self.index = next;
                Ok(())
            }
            Err(error) => {
                // The first error is more useful; an entry beyond the end is dropped when the archive is opened.
                let _ = self.index.undo();
                Err(error)
            }
        }
    }
}

fn index_error<S: Storage>(
    storage: &S,
    recording_id: i64,
    position: i64,
    source: io::Error,
) -> PrivateError {
    if source.kind() != io::ErrorKind::StorageFull {
        return PrivateError::IndexWrite {
            recording_id,
            position,
            source,
        };
    }
    PrivateError::Recorder(RecorderError::Full {
        name: format!("the index of recording {recording_id}"),
        position,
        needed: ENTRY_LENGTH,
        free: storage.free_bytes().unwrap_or(0),
    })
}
