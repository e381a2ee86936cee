//! Sessions that come back. Decides where the new recording begins, and copies frames from the earlier recording.
//!
//! An image joins at the position of its driver's slowest subscriber. This position may be before the end of the
//! earlier recording, and within a message. Then the new recording begins at the head of the earlier one. So the
//! earlier recording delivers the messages before this head and the new recording delivers the later ones: no message
//! is lost or delivered twice.

use std::collections::{HashMap, HashSet};

use aeron_archive::catalog::{CatalogEntry, RecordingState};
use aeron_archive::reader::RecordingReader;
use aeron_archive::storage::Storage;
use aeron_archive::stream::RecordedStream;

use super::archive::{PrivateArchive, WriterState};
use super::session::{EarlierRecording, SessionKey};
use super::{MAX_BLOCK_LENGTH, PrivateError, RecordingWriter};

impl<S: Storage + Clone> PrivateArchive<S> {
    /// Returns the head of the session's ended recording with the greatest stop position; `None` if the session is
    /// unknown.
    pub fn recorded_head(&self, key: &SessionKey) -> Option<i64> {
        self.earlier(key).map(|earlier| earlier.head)
    }

    /// Returns the session's ended recording that has a head and the greatest stop position. The values of a purged
    /// recording come from its catalog entry.
    pub(super) fn earlier(&self, key: &SessionKey) -> Option<EarlierRecording> {
        let entries = self.store.entries().iter();
        entries
            .filter(|entry| SessionKey::of_recording(&entry.descriptor) == *key)
            .filter_map(|entry| self.ended(entry))
            .max_by_key(EarlierRecording::rank)
    }

    /// Returns, for each session, the id of the ended recording with the greatest stop position.
    pub(super) fn furthest_of_sessions(&self) -> HashSet<i64> {
        let mut furthest: HashMap<SessionKey, EarlierRecording> = HashMap::new();
        for entry in self.store.entries() {
            if let Some(ended) = self.ended(entry) {
                let key = SessionKey::of_recording(&entry.descriptor);
                let best = furthest.entry(key).or_insert(ended);
                if ended.rank() > best.rank() {
                    *best = ended;
                }
            }
        }
        furthest.values().map(|ended| ended.recording_id).collect()
    }

    /// Returns the positions of a recording if it has ended and has a head.
    fn ended(&self, entry: &CatalogEntry) -> Option<EarlierRecording> {
        let descriptor = &entry.descriptor;
        if descriptor.is_unfinished() {
            return None;
        }
        let recording_id = descriptor.recording_id;
        let stop_position = descriptor.stop_position;
        let head = match entry.state {
            RecordingState::Deleted => stop_position,
            RecordingState::Valid => self.ended_head(recording_id)?,
            RecordingState::Invalid => return None,
        };
        Some(EarlierRecording {
            recording_id,
            head,
            stop_position,
        })
    }

    fn ended_head(&self, recording_id: i64) -> Option<i64> {
        let recording = self.recordings.get(&recording_id)?;
        match recording.state {
            WriterState::Live => None,
            WriterState::Ended { .. } => recording.published.head(),
        }
    }

    /// Copies the frames of the recording with the id `earlier` from the writer's position up to `to`.
    pub(super) fn copy(
        &self,
        earlier: i64,
        to: i64,
        writer: &mut RecordingWriter<S>,
        now_us: i64,
    ) -> Result<(), PrivateError> {
        let from = writer.recorded_position();
        let earlier = RecordedStream::new(&self.store.recording(earlier)?.into())?;
        let mut reader = RecordingReader::new(self.storage().clone(), earlier, from, to)?;
        let mut block = Vec::new();
        let mut begin = from;
        while let Some(frame) = reader.next_frame()? {
            let position = frame.position();
            // A block never mixes padding with data and never crosses the end of a segment.
            let is_new = frame.is_padding()
                || block.len() + frame.bytes().len() > MAX_BLOCK_LENGTH
                || earlier.segment_base(position) != earlier.segment_base(begin);
            if is_new && !block.is_empty() {
                writer.append(begin, &block, now_us)?;
                block.clear();
            }
            if block.is_empty() {
                begin = position;
            }
            block.extend_from_slice(frame.bytes());
            if frame.is_padding() {
                writer.append(begin, &block, now_us)?;
                block.clear();
            }
        }
        writer.append(begin, &block, now_us)
    }
}
