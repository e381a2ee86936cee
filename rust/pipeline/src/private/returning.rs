//! Sessions that come back: where the new recording begins, and what it takes over from the earlier one.
//!
//! An image joins where the slowest subscriber of its driver stands, which may lie below what was recorded, and amid a message.
//! The earlier recording gives the messages up to its head, the new one those behind it: none is lost or given twice.

use std::collections::{HashMap, HashSet};

use aeron_archive::catalog::{CatalogEntry, RecordingState};
use aeron_archive::reader::RecordingReader;
use aeron_archive::storage::Storage;
use aeron_archive::stream::RecordedStream;

use super::archive::{PrivateArchive, State};
use super::session::{Earlier, SessionKey};
use super::{MAX_BLOCK_LENGTH, PrivateError, RecordingWriter};

impl<S: Storage + Clone> PrivateArchive<S> {
    /// How far a session was recorded in whole messages, by the recording that ended furthest; `None` if nothing is known of it.
    pub fn recorded_head(&self, key: &SessionKey) -> Option<i64> {
        self.earlier(key).map(|earlier| earlier.head)
    }

    /// The recording of this session that ended furthest, of those with a head. One that is purged says where by its entry.
    pub(super) fn earlier(&self, key: &SessionKey) -> Option<Earlier> {
        let entries = self.catalog.entries().iter();
        entries
            .filter(|entry| SessionKey::of_recording(&entry.descriptor) == *key)
            .filter_map(|entry| self.ended(entry))
            .max_by_key(Earlier::rank)
    }

    /// Of every session the recording that ended furthest.
    pub(super) fn furthest_of_sessions(&self) -> HashSet<i64> {
        let mut furthest: HashMap<SessionKey, Earlier> = HashMap::new();
        for entry in self.catalog.entries() {
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

    /// Where a recording ended, if it did and has a head.
    fn ended(&self, entry: &CatalogEntry) -> Option<Earlier> {
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
        Some(Earlier {
            recording_id,
            head,
            stop_position,
        })
    }

    fn ended_head(&self, recording_id: i64) -> Option<i64> {
        let recording = self.recordings.get(&recording_id)?;
        match recording.state {
            State::Live => None,
            State::Ended { .. } => recording.published.head(),
        }
    }

    /// Records the frames of an earlier recording from where the writer stands up to `to`.
    pub(super) fn copy(
        &self,
        earlier: &RecordedStream,
        to: i64,
        writer: &mut RecordingWriter<S>,
        now_us: i64,
    ) -> Result<(), PrivateError> {
        let from = writer.recorded_position();
        let mut reader = RecordingReader::new(self.storage.clone(), *earlier, from, to)?;
        let mut block = Vec::new();
        let mut begin = from;
        while let Some(frame) = reader.next_frame()? {
            let position = frame.position();
            // A block has neither padding beside data in it nor a segment's end.
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
