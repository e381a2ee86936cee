//! Purges committed data: segments before the committed positions, and whole recordings without further data for
//! batches.
//!
//! The catalog is updated first. Then the files are removed, one segment at a time. Data that Spark may still request
//! is never removed.

use aeron_archive::catalog::NULL_VALUE;
use aeron_archive::pause::{self, Point};
use aeron_archive::storage::Storage;
use aeron_archive::store::RecordingActivity;
use aeron_archive::stream::RecordedStream;

use super::archive::{PrivateArchive, Recording, WriterState};
use super::{PrivateError, SESSION_RETURN_TIMEOUT_MS};

/// The catalog has the new start position of a recording. The segment files before this position still exist.
const PURGED: Point = Point::new("purged");

impl<S: Storage + Clone> PrivateArchive<S> {
    /// Sets the committed positions of recordings, and abandons the segments before them. Ignores unknown recordings:
    /// they were purged earlier. [`work`](Self::work) removes the files later.
    ///
    /// # Errors
    /// The catalog cannot be written for a recording. The files of this recording stay. The next call of `commit` tries
    /// again.
    pub fn commit(
        &mut self,
        taken: impl IntoIterator<Item = (i64, i64)>,
    ) -> Result<(), PrivateError> {
        for (recording_id, position) in taken {
            self.note_committed(recording_id, position);
            self.purge_segments_of(recording_id)?;
        }
        Ok(())
    }

    /// Abandons recordings that have no more data for batches, and removes the files of one abandoned segment.
    /// Returns whether there was work. `subscribed_since_ms` is the time at which the recorder's subscriptions were
    /// made; `None` while there are no subscriptions.
    ///
    /// # Errors
    /// The catalog cannot be written or a file cannot be removed. The next call tries again.
    pub fn work(
        &mut self,
        now_ms: i64,
        subscribed_since_ms: Option<i64>,
    ) -> Result<bool, PrivateError> {
        let done: Vec<i64> = self
            .recordings
            .iter()
            .filter(|(id, recording)| self.is_done(**id, recording, now_ms, subscribed_since_ms))
            .map(|(id, _)| *id)
            .collect();
        for &recording_id in &done {
            self.purge_whole(recording_id)?;
        }
        Ok(self.remove_segment()? || !done.is_empty())
    }

    /// Abandons an ended recording that cannot be read any more. Returns the number of its bytes that are not
    /// committed.
    ///
    /// # Errors
    /// The recording does not exist or still runs, or the catalog cannot be written.
    pub fn give_up(&mut self, recording_id: i64) -> Result<i64, PrivateError> {
        let recording = self.recordings.get(&recording_id);
        let left = recording.map_or(0, Recording::retained_bytes);
        self.purge_whole(recording_id)?;
        Ok(left)
    }

    /// Stores the committed position of a recording. Removes no data.
    pub(super) fn note_committed(&mut self, recording_id: i64, position: i64) {
        if let Some(recording) = self.recordings.get(&recording_id) {
            let published = &recording.published;
            let head = published.head().unwrap_or(0);
            if position > published.committed_position() {
                published.commit(position.min(head).max(published.committed_position()));
            }
        }
    }

    fn purge_segments_of(&mut self, recording_id: i64) -> Result<(), PrivateError> {
        let Some(recording) = self.recordings.get_mut(&recording_id) else {
            return Ok(());
        };
        let stream = &recording.stream;
        let base = stream.segment_base(recording.published.committed_position());
        if base <= stream.segment_base(stream.start_position()) {
            return Ok(());
        }
        let activity = RecordingActivity {
            recorded_position: Some(recording.published.recorded_position()),
            lowest_replay_position: None,
        };
        debug_assert!(
            base <= recording.published.committed_position(),
            "recording {recording_id}: segments before {base} must not be deleted before Spark has committed them"
        );
        let deletion = self.store.purge_segments(recording_id, base, &activity)?;
        recording.stream = RecordedStream::new(&self.store.recording(recording_id)?.into())?;
        self.deletions.push_back(deletion);
        pause::at(PURGED);
        Ok(())
    }

    /// Whether a recording has no more data for a batch and cannot get more.
    fn is_done(
        &self,
        recording_id: i64,
        recording: &Recording,
        now_ms: i64,
        subscribed_since_ms: Option<i64>,
    ) -> bool {
        let WriterState::Ended {
            at_ms,
            is_end_of_stream,
        } = recording.state
        else {
            return false;
        };
        let published = &recording.published;
        let Some(head) = published.head() else {
            return true;
        };
        let is_taken = published.committed_position() >= head || published.counts().messages == 0;
        let stop_position = published.recorded_position();
        if !is_taken || stop_position == head || is_end_of_stream {
            return is_taken;
        }
        // The recording ended within a message. A later recording may contain the whole message.
        let mut later = self.recordings.range(recording_id + 1..);
        let is_passed = later.any(|(_, later)| {
            later.key == recording.key && later.published.recorded_position() >= stop_position
        });
        is_passed || self.has_not_returned(recording, at_ms, now_ms, subscribed_since_ms)
    }

    /// Whether the session of an ended recording has not come back within [`SESSION_RETURN_TIMEOUT_MS`].
    fn has_not_returned(
        &self,
        recording: &Recording,
        at_ms: i64,
        now_ms: i64,
        subscribed_since_ms: Option<i64>,
    ) -> bool {
        let is_back = self
            .recordings
            .values()
            .any(|other| other.state == WriterState::Live && other.key == recording.key);
        let Some(since) = subscribed_since_ms.filter(|_| !is_back) else {
            return false;
        };
        now_ms.saturating_sub(since.max(at_ms)) >= SESSION_RETURN_TIMEOUT_MS
    }

    fn purge_whole(&mut self, recording_id: i64) -> Result<(), PrivateError> {
        let recording = self
            .recordings
            .get(&recording_id)
            .ok_or(PrivateError::UnknownRecording { recording_id })?;
        debug_assert_ne!(
            recording.state,
            WriterState::Live,
            "recording {recording_id} must not be deleted while it is written"
        );
        let head = recording.published.head().unwrap_or(NULL_VALUE);
        let unused = RecordingActivity::default();
        let deletion = self.store.purge_recording_at(recording_id, &unused, head)?;
        self.recordings.remove(&recording_id);
        self.deletions.push_back(deletion);
        Ok(())
    }

    fn remove_segment(&mut self) -> Result<bool, PrivateError> {
        let Some(deletion) = self.deletions.front_mut() else {
            return Ok(false);
        };
        if !deletion.try_step(&mut self.store)? {
            self.deletions.pop_front();
        }
        Ok(true)
    }
}
