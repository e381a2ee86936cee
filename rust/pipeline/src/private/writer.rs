//! [`RecordingWriter`]: records one image, block by block, with its index.
//!
//! Per block: the frames are written, then the index entry, then the positions are stored for others to see. So whatever anybody
//! was told of is in the page cache, and outlives the process.

use std::io;
use std::sync::Arc;

use aeron_archive::recorder::{RecorderError, RecorderSession};
use aeron_archive::storage::{Storage, SyncLevel};
use aeron_memory::log::frame::{HEADER_LENGTH, MAX_MESSAGE_LENGTH, MAX_MTU_LENGTH};

use super::heads::HeadTracker;
use super::index::{ENTRY_LENGTH, IndexEntry, IndexHeader, IndexWriter};
use super::published::Published;
use super::{MAX_BLOCK_LENGTH, PrivateError};
use crate::pause::{self, Point};

/// Records one image. For the thread that polls it.
#[derive(Debug)]
pub struct RecordingWriter<S: Storage> {
    storage: S,
    session: RecorderSession<S>,
    index: IndexWriter<S::File>,
    tracker: HeadTracker,
    published: Arc<Published>,
    arrival_us: i64,
    /// Longest message of the stream, with its headers.
    max_framed_length: i64,
    /// Head of the earlier recording of the session, until it is known how much was missed since.
    missed_since: Option<i64>,
}

impl<S: Storage + Clone> RecordingWriter<S> {
    /// Begins a recording: makes the first index file and the first segment.
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

    /// The recording.
    pub fn recording_id(&self) -> i64 {
        self.session.stream().recording_id()
    }

    /// End of what is recorded.
    pub fn recorded_position(&self) -> i64 {
        self.session.recorded_position()
    }

    /// End of the last complete message; before one is complete, the begin of the first; before that `None`.
    pub fn head(&self) -> Option<i64> {
        self.tracker.progress().head
    }

    /// Positions and counts, for other threads.
    pub fn published(&self) -> &Arc<Published> {
        &self.published
    }

    /// Records a block that was polled at `position` at the time `now_us`, in microseconds since the epoch: whole frames of data,
    /// or one frame of padding. What the recording has already is passed over; a session that came back may begin below it.
    ///
    /// # Errors
    /// The block cannot be written or is damaged, or does not go on where the recording ends. Nothing of it is recorded then, and
    /// nothing more can be: the recording is to be ended.
    pub fn append(&mut self, position: i64, block: &[u8], now_us: i64) -> Result<(), PrivateError> {
        let block = self.beyond_recorded(position, block)?;
        if block.is_empty() {
            return Ok(());
        }
        let mut tracker = self.tracker;
        let end_position = self.session.append(block, |frame| tracker.take(frame))?;
        pause::at(Point::Appended);
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
        pause::at(Point::Indexed);
        self.tracker = tracker;
        let published = self.session.publish();
        self.published.store(end_position, progress);
        published?;
        Ok(())
    }

    /// How many bytes the next block may have; 0 while the recording has to wait. `has_room` says whether the archive may retain
    /// more. Without room a recording goes on only to the end of a message that has begun and is the first one not yet taken,
    /// because nothing could be taken before.
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

    /// Bytes of the session that were missed between its earlier recording and this one; answered once, when the first message
    /// has begun. `None` where nothing was missed.
    pub fn take_gap(&mut self) -> Option<i64> {
        let first = self.tracker.first_begin()?;
        let gap = first - self.missed_since.take()?;
        (gap > 0).then_some(gap)
    }

    /// Head of the earlier recording, if the stream was missed from there on and [`take_gap`](Self::take_gap) has not told how much.
    pub fn missed_since(&self) -> Option<i64> {
        self.missed_since
    }

    /// The part of a block that is not recorded yet.
    fn beyond_recorded<'b>(
        &self,
        position: i64,
        block: &'b [u8],
    ) -> Result<&'b [u8], PrivateError> {
        let recorded_position = self.recorded_position();
        let mut rest = block;
        let mut begin = position;
        for frame in self.session.stream().rules().frames(position, block) {
            // Damage is found when the frame is appended, if it is.
            let Ok(frame) = frame else { break };
            if begin >= recorded_position {
                break;
            }
            // Of padding a block may have the header alone, or more.
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

    /// Writes an entry, and the begin of the next index if the segment is full: an index is made before its segment.
    fn append_entry(&mut self, entry: &IndexEntry) -> io::Result<()> {
        self.index.append(entry)?;
        let Some(base_position) = self.session.next_segment() else {
            return Ok(());
        };
        let header = IndexHeader {
            recording_id: self.recording_id(),
            base_position,
            progress: entry.progress,
        };
        match IndexWriter::create(&self.storage, &header) {
            Ok(next) => {
                self.index = next;
                Ok(())
            }
            Err(error) => {
                // The first error tells more; an entry beyond the end is dropped when the archive is opened.
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
