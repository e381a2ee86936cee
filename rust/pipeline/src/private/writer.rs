//! [`RecordingWriter`]: records one image, block by block, with its index.
//!
//! For each block, the frames are written first and the index entry second. Then the positions are stored for other
//! threads. So all data below a published position is in the page cache and is not lost if the process ends.

use std::sync::Arc;

use aeron_archive::index::HeadTracker;
use aeron_archive::recorder::RecorderSession;
use aeron_archive::storage::Storage;
use aeron_archive::stream::RecordedStream;
use aeron_memory::log::frame::{HEADER_LENGTH, MAX_MESSAGE_LENGTH, MAX_MTU_LENGTH};

use super::published::Published;
use super::{MAX_BLOCK_LENGTH, PrivateError};

/// Records one image. Owned by the thread that polls the image.
#[derive(Debug)]
pub struct RecordingWriter<S: Storage> {
    session: RecorderSession<S>,
    published: Arc<Published>,
    /// Length in bytes of the longest possible message of the stream, with its headers.
    max_framed_length: i64,
    /// Head of the session's earlier recording, until the number of missed bytes is known.
    missed_since: Option<i64>,
}

impl<S: Storage> RecordingWriter<S> {
    /// Creates the writer of a recording that has begun.
    pub(super) fn new(
        session: RecorderSession<S>,
        mtu_length: i32,
        missed_since: Option<i64>,
    ) -> Self {
        let payload =
            usize::try_from(mtu_length).map_or(0, |mtu| mtu.saturating_sub(HEADER_LENGTH));
        let fragments = MAX_MESSAGE_LENGTH.div_ceil(payload.clamp(HEADER_LENGTH, MAX_MTU_LENGTH));
        let start = session.recorded_position();
        let progress = HeadTracker::default().progress();
        Self {
            session,
            published: Arc::new(Published::new(start, start, progress)),
            max_framed_length: (MAX_MESSAGE_LENGTH + fragments * HEADER_LENGTH) as i64,
            missed_since,
        }
    }

    /// Returns the recording id.
    pub fn recording_id(&self) -> i64 {
        self.stream().recording_id()
    }

    pub(super) fn stream(&self) -> &RecordedStream {
        self.session.stream()
    }

    /// Returns the end of the recorded data.
    pub fn recorded_position(&self) -> i64 {
        self.session.recorded_position()
    }

    /// Returns the end of the last complete message. If no message is complete, returns the start of the first message,
    /// or `None` if no message has begun.
    pub fn head(&self) -> Option<i64> {
        self.tracker().progress().head
    }

    /// Returns the positions and counts that other threads read.
    pub fn published(&self) -> &Arc<Published> {
        &self.published
    }

    /// Records a block that was polled at `position` at the time `now_us`, in microseconds since the epoch. The block
    /// has whole data frames, or one padding frame. Skips frames that are already recorded, because the image of a
    /// session that came back may begin below the recorded position.
    ///
    /// # Errors
    /// If the block cannot be written, is damaged, or does not begin at the end of the recording, nothing of the block
    /// is recorded. If the next segment or its index cannot be created, the block is recorded. In both cases, end the
    /// recording, because no further block can be recorded.
    pub fn append(&mut self, position: i64, block: &[u8], now_us: i64) -> Result<(), PrivateError> {
        let block = self.beyond_recorded(position, block)?;
        if block.is_empty() {
            return Ok(());
        }
        self.session.append(block, |_| {})?;
        let published = self.session.publish_at(now_us);
        debug_assert!(
            published.is_err()
                || self.session.appended_position() == self.session.recorded_position(),
            "recording {}: all appended bytes up to {} must be recorded, not only those up to {}",
            self.recording_id(),
            self.session.appended_position(),
            self.session.recorded_position()
        );
        // The positions are stored even after an error, because the block may be recorded.
        let progress = self.tracker().progress();
        self.published.store(self.recorded_position(), progress);
        published?;
        Ok(())
    }

    /// Returns the maximum length of the next block in bytes. Returns 0 while the recording must wait.
    ///
    /// `has_room` is false if the archive retains the maximum number of bytes. Then the recording waits until Spark has
    /// committed more messages. There is one exception: if Spark has committed all complete messages, the recording
    /// continues up to the end of the message that has begun. Without this exception, the recording would wait for
    /// Spark and Spark would wait for the message.
    pub fn block_limit(&self, has_room: bool) -> usize {
        let is_next = || {
            self.head()
                .is_none_or(|head| head <= self.published.committed_position())
        };
        let is_begun = || {
            self.tracker()
                .unfinished_begin()
                .is_some_and(|begin| self.recorded_position() - begin < self.max_framed_length)
        };
        if has_room || (is_next() && is_begun()) {
            MAX_BLOCK_LENGTH
        } else {
            0
        }
    }

    /// Returns the number of bytes of the session that were missed between its earlier recording and this one. Only the
    /// first call after the first message has begun returns the number. Other calls, and calls if nothing was missed,
    /// return `None`.
    pub fn take_gap(&mut self) -> Option<i64> {
        self.missed_since?;
        let first = self.tracker().first_begin()?;
        let gap = first - self.missed_since.take()?;
        (gap > 0).then_some(gap)
    }

    /// Returns the head of the earlier recording if bytes between this head and the start of this recording were
    /// missed, and [`take_gap`](Self::take_gap) has not returned their number yet.
    pub fn missed_since(&self) -> Option<i64> {
        self.missed_since
    }

    /// Returns the tracker of the recorded messages. The session always has an index, and the index has the tracker.
    fn tracker(&self) -> HeadTracker {
        self.session.tracker().copied().unwrap_or_default()
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
        for frame in self.stream().rules().frames(position, block) {
            // If the frame is damaged, the later append of the block reports the damage.
            let Ok(frame) = frame else { break };
            if begin >= recorded_position {
                break;
            }
            // A padding block may contain only a part of the padding, at least its header.
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
}
