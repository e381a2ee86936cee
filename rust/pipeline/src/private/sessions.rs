//! Sessions that come back: where the new recording begins, and what it takes over from the earlier one.
//!
//! An image joins where the slowest subscriber of its driver stands, which may lie below what was recorded, and amid a message.
//! The earlier recording gives the messages up to its head, the new one those behind it: none is lost or given twice.

use std::collections::{HashMap, HashSet};

use aeron_archive::catalog::{CatalogEntry, RecordingDescriptor, RecordingState};
use aeron_archive::reader::RecordingReader;
use aeron_archive::storage::Storage;
use aeron_archive::stream::RecordedStream;
use serde::{Deserialize, Serialize};

use super::archive::{ImageDescription, PrivateArchive, State};
use super::{MAX_BLOCK_LENGTH, PrivateError, RecordingWriter};

/// What makes two images the same session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionKey {
    channel: String,
    /// Stream id.
    pub stream_id: i32,
    /// Session id.
    pub session_id: i32,
    source_identity: String,
    initial_term_id: i32,
    term_length: i32,
}

/// The recording of a session that goes furthest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Earlier {
    pub recording_id: i64,
    /// End of its last complete message, or the begin of its first.
    pub head: i64,
    pub stop_position: i64,
}

/// Where a recording begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    pub position: i64,
    /// Recording to copy the frames from that lie between `position` and the join position.
    pub copy_from: Option<i64>,
    /// Head of the earlier recording if the stream was missed from there on.
    pub missed_since: Option<i64>,
}

impl Earlier {
    /// The greater, the further; of equal ones the later.
    fn rank(&self) -> (i64, i64) {
        (self.stop_position, self.recording_id)
    }
}

impl SessionKey {
    /// The session of an image.
    pub fn of_image(image: &ImageDescription) -> Self {
        Self {
            channel: image.original_channel.clone(),
            stream_id: image.stream_id,
            session_id: image.session_id,
            source_identity: image.source_identity.clone(),
            initial_term_id: image.initial_term_id,
            term_length: image.term_length,
        }
    }

    pub(super) fn of_recording(descriptor: &RecordingDescriptor) -> Self {
        Self {
            channel: descriptor.original_channel.clone(),
            stream_id: descriptor.stream_id,
            session_id: descriptor.session_id,
            source_identity: descriptor.source_identity.clone(),
            initial_term_id: descriptor.initial_term_id,
            term_length: descriptor.term_length,
        }
    }
}

impl Start {
    pub fn of(join_position: i64, earlier: Option<Earlier>) -> Self {
        let here = Self {
            position: join_position,
            copy_from: None,
            missed_since: None,
        };
        match earlier {
            Some(earlier) if join_position <= earlier.head => Self {
                position: earlier.head,
                ..here
            },
            Some(earlier) if join_position <= earlier.stop_position => Self {
                position: earlier.head,
                copy_from: Some(earlier.recording_id),
                ..here
            },
            Some(earlier) => Self {
                missed_since: Some(earlier.head),
                ..here
            },
            None => here,
        }
    }
}

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
