//! What may go: segments behind what was committed, and whole recordings of which nothing can be taken any more.
//!
//! The catalog says it first, then the files go, one segment at a time. Nothing goes that may still be asked for.

use aeron_archive::catalog::NULL_VALUE;
use aeron_archive::purge::{purge_recording, purge_segments};
use aeron_archive::storage::Storage;
use aeron_archive::stream::RecordedStream;

use super::archive::{PrivateArchive, Recording, State};
use super::index::{INDEX_EXTENSION, NEW_INDEX_EXTENSION};
use super::{PrivateError, SESSION_RETURN_TIMEOUT_MS};
use crate::pause::{self, Point};

/// Files that go with a segment.
pub(super) const SIDECARS: [&str; 2] = [INDEX_EXTENSION, NEW_INDEX_EXTENSION];

impl<S: Storage + Clone> PrivateArchive<S> {
    /// Takes note that recordings were taken for good up to these positions, and gives up what lies wholly behind them. Unknown
    /// recordings are passed over: they were purged before. Files go later, by [`work`](Self::work).
    ///
    /// # Errors
    /// The catalog cannot be written; the files behind are removed later all the same.
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

    /// Gives up recordings of which nothing can be taken any more, and removes the files of one segment that was given up.
    /// Answers whether there was anything to do. `subscribed_since_ms` is when the recorder's subscriptions were made; `None`
    /// while there are none.
    ///
    /// # Errors
    /// The catalog cannot be written or a file not be removed; it is tried again.
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

    /// Gives up a recording that has ended and cannot be read any more as a whole; answers how many bytes of it were left to be
    /// taken and could have been.
    ///
    /// # Errors
    /// The recording runs, or the catalog cannot be written.
    pub fn give_up(&mut self, recording_id: i64) -> Result<i64, PrivateError> {
        let recording = self.recordings.get(&recording_id);
        let left = recording.map_or(0, Recording::retained_bytes);
        self.purge_whole(recording_id)?;
        Ok(left)
    }

    /// Remembers how far a recording was taken, without giving anything up.
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
        let end = recording.published.recorded_position();
        let deletion = purge_segments(&mut self.catalog, recording_id, base, end)?;
        recording.stream = RecordedStream::new(&self.catalog.recording(recording_id)?.into())?;
        self.deletions.push_back(deletion);
        pause::at(Point::Purged);
        Ok(())
    }

    /// Whether nothing can be taken of a recording any more, nor will be.
    fn is_done(
        &self,
        recording_id: i64,
        recording: &Recording,
        now_ms: i64,
        subscribed_since_ms: Option<i64>,
    ) -> bool {
        let State::Ended {
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
        // It ended amid a message, whose rest a later recording may bring.
        let mut later = self.recordings.range(recording_id + 1..);
        let is_passed = later.any(|(_, later)| {
            later.key == recording.key && later.published.recorded_position() >= stop_position
        });
        is_passed || self.has_not_returned(recording, at_ms, now_ms, subscribed_since_ms)
    }

    /// Whether the session of a recording that ended was waited for long enough.
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
            .any(|other| other.state == State::Live && other.key == recording.key);
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
        let head = recording.published.head().unwrap_or(NULL_VALUE);
        let deletion = purge_recording(&mut self.catalog, recording_id, head)?;
        self.recordings.remove(&recording_id);
        self.deletions.push_back(deletion);
        Ok(())
    }

    fn remove_segment(&mut self) -> Result<bool, PrivateError> {
        while let Some(deletion) = self.deletions.front_mut() {
            if deletion.step(&self.storage, &SIDECARS)? {
                return Ok(true);
            }
            self.deletions.pop_front();
        }
        Ok(false)
    }
}
