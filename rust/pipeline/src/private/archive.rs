//! [`PrivateArchive`]: the recordings of one query. A recording begins when its image becomes available, before the
//! first block, and exists until it is purged.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::index::Index;
use aeron_archive::storage::Storage;
use aeron_archive::store::{ArchiveStore, DeleteOperation, NewRecording};
use aeron_archive::stream::RecordedStream;

use super::published::Published;
use super::session::{ImageDescription, SessionKey, Start};
use super::{MAX_LIVE_RECORDINGS, PrivateError, RecordingWriter};

/// The recordings of one query. Owned by the recorder's thread.
#[derive(Debug)]
pub struct PrivateArchive<S: Storage> {
    pub(super) store: ArchiveStore<S>,
    /// Existing recordings, by id.
    pub(super) recordings: BTreeMap<i64, Recording>,
    /// Files to delete, in the order of deletion.
    pub(super) deletions: VecDeque<DeleteOperation>,
    max_retained_bytes: u64,
}

/// The planner's view of a recording.
#[derive(Debug, Clone)]
pub struct RecordingInfo {
    /// The recorded stream. Its start position is the first position that is not purged.
    pub stream: RecordedStream,
    /// Stream id.
    pub stream_id: i32,
    /// Session id.
    pub session_id: i32,
    /// Positions of the recording, updated by its writer.
    pub published: Arc<Published>,
    /// Whether a writer still writes the recording.
    pub is_live: bool,
}

/// A recording that exists.
#[derive(Debug)]
pub(super) struct Recording {
    pub key: SessionKey,
    pub stream: RecordedStream,
    pub published: Arc<Published>,
    pub state: WriterState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriterState {
    /// A writer still writes the recording.
    Live,
    /// The recording has ended.
    Ended {
        /// Time of the end, in epoch milliseconds.
        at_ms: i64,
        /// Whether the stream itself has ended. If so, no later recording can complete its last message.
        is_end_of_stream: bool,
    },
}

impl Recording {
    /// Returns the number of bytes that are not committed.
    pub(super) fn retained_bytes(&self) -> i64 {
        let end = match self.state {
            WriterState::Live => self.published.recorded_position(),
            WriterState::Ended { .. } => self.published.head().unwrap_or(0),
        };
        (end - self.published.committed_position()).max(0)
    }
}

impl<S: Storage + Clone> PrivateArchive<S> {
    pub(super) fn new(store: ArchiveStore<S>, max_retained_bytes: u64) -> Self {
        Self {
            store,
            recordings: BTreeMap::new(),
            deletions: VecDeque::new(),
            max_retained_bytes,
        }
    }

    /// Returns the storage that holds the files.
    pub fn storage(&self) -> &S {
        self.store.storage()
    }

    /// Returns the catalog's descriptor of an existing recording.
    pub fn descriptor(&self, recording_id: i64) -> Option<&RecordingDescriptor> {
        self.store.recording(recording_id).ok()
    }

    /// Returns the existing recordings, by id.
    pub fn recordings(&self) -> impl Iterator<Item = RecordingInfo> {
        self.recordings.values().map(|recording| RecordingInfo {
            stream: recording.stream,
            stream_id: recording.key.stream_id,
            session_id: recording.key.session_id,
            published: recording.published.clone(),
            is_live: recording.state == WriterState::Live,
        })
    }

    /// Whether the catalog has an entry for any recording. Entries of deleted recordings count too.
    pub fn has_recorded(&self) -> bool {
        !self.store.entries().is_empty()
    }

    /// Returns the index of an existing recording.
    pub fn index(&self, recording_id: i64) -> Option<Index<S>> {
        let recording = self.recordings.get(&recording_id)?;
        Some(Index::new(self.storage().clone(), recording.stream))
    }

    /// Returns the number of bytes of all recordings that are recorded and not committed. In an ended recording, only
    /// bytes up to the head count, because no batch can contain the bytes after it.
    pub fn retained_bytes(&self) -> u64 {
        let retained = self.recordings.values().map(Recording::retained_bytes);
        retained.sum::<i64>() as u64
    }

    /// Whether more bytes may be retained. [`RecordingWriter::block_limit`] needs this value.
    pub fn has_room(&self) -> bool {
        self.retained_bytes() < self.max_retained_bytes
    }

    /// Starts the recording of an image, at `now_us` in microseconds since the epoch. If the session has an earlier
    /// recording and the image joins at or before its end, the new recording begins at the head of the earlier one.
    /// Frames between this head and the join position are copied from the earlier recording.
    ///
    /// # Errors
    /// Too many recordings run, or files cannot be written or read. In each case, the image is not recorded.
    pub fn start_recording(
        &mut self,
        image: &ImageDescription,
        now_us: i64,
    ) -> Result<RecordingWriter<S>, PrivateError> {
        let live = self.recordings.values();
        if live
            .filter(|recording| recording.state == WriterState::Live)
            .count()
            >= MAX_LIVE_RECORDINGS
        {
            return Err(PrivateError::TooManyRecordings {
                limit: MAX_LIVE_RECORDINGS,
                stream_id: image.stream_id,
                session_id: image.session_id,
            });
        }
        let key = SessionKey::of_image(image);
        let start = Start::of(image.join_position, self.earlier(&key));
        let now_ms = now_us / 1000;
        let session = self
            .store
            .start_recording(describe(image, start.position, now_ms))?;
        let mut writer = RecordingWriter::new(session, image.mtu_length, start.missed_since);
        let recording_id = writer.recording_id();
        if let Some(earlier) = start.copy_from
            && let Err(error) = self.copy(earlier, image.join_position, &mut writer, now_us)
        {
            // If stopping the recording fails too, the next open of the archive adds the end to the catalog entry. The
            // first error is returned, because it is more useful.
            let _ = self
                .store
                .stop_recording(recording_id, start.position, now_ms);
            return Err(error);
        }
        let recording = Recording {
            key,
            stream: *writer.stream(),
            published: writer.published().clone(),
            state: WriterState::Live,
        };
        debug_assert!(
            !self.recordings.contains_key(&recording_id),
            "two recordings must not have the id {recording_id}"
        );
        self.recordings.insert(recording_id, recording);
        Ok(writer)
    }

    /// Ends a recording at its writer's position. `is_end_of_stream` says whether the stream itself has ended.
    ///
    /// # Errors
    /// The catalog cannot be written. The next open of the archive finds the end in the segment files.
    pub fn end_recording(
        &mut self,
        writer: RecordingWriter<S>,
        is_end_of_stream: bool,
        now_ms: i64,
    ) -> Result<(), PrivateError> {
        let recording_id = writer.recording_id();
        if let Some(recording) = self.recordings.get_mut(&recording_id) {
            debug_assert_eq!(
                recording.state,
                WriterState::Live,
                "recording {recording_id} must not end twice"
            );
            recording.state = WriterState::Ended {
                at_ms: now_ms,
                is_end_of_stream,
            };
        }
        let position = writer.recorded_position();
        Ok(self.store.stop_recording(recording_id, position, now_ms)?)
    }

    /// Returns a log line if the file system has too little space for the open segments and for all bytes that may be
    /// retained. Call this function after a recording has started.
    pub fn space_warning(&self) -> Option<String> {
        let segments: i64 = self
            .recordings
            .values()
            .filter(|recording| recording.state == WriterState::Live)
            .map(|recording| recording.stream.segment_length())
            .sum();
        let rest = self
            .max_retained_bytes
            .saturating_sub(self.retained_bytes());
        let needed = rest.saturating_add(segments as u64);
        let free = self.storage().free_bytes().ok()?;
        (free < needed).then(|| {
            format!(
                "the private archive's file system has {} MiB free, {} MiB are needed to retain maxRetainedBytes: recording stops when it is full",
                free >> 20,
                needed >> 20
            )
        })
    }
}

/// Describes the recording of an image. The recording begins at `start_position`.
fn describe(image: &ImageDescription, start_position: i64, now_ms: i64) -> NewRecording {
    NewRecording {
        start_timestamp_ms: now_ms,
        join_position: start_position,
        initial_term_id: image.initial_term_id,
        term_length: image.term_length,
        mtu_length: image.mtu_length,
        session_id: image.session_id,
        stream_id: image.stream_id,
        stripped_channel: image.stripped_channel.clone(),
        original_channel: image.original_channel.clone(),
        source_identity: image.source_identity.clone(),
    }
}
