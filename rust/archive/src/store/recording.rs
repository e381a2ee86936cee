//! Starts, extends and stops recordings in the catalog and the segment files. The archive server calls these methods of
//! the store.

use std::io;

use super::deletion::SegmentFile;
use super::open::recorded_stream;
use super::{ArchiveStore, StoreError};
use crate::catalog::{Extension, NULL_VALUE, RecordingDescriptor};
use crate::index::{
    INDEX_EXTENSION, IndexError, IndexFile, IndexForm, IndexRecorder, SegmentIndex,
    last_arrival_ms, repair_last,
};
use crate::recorder::RecorderSession;
use crate::segments::sidecar_name;
use crate::storage::{Access, Storage};
use crate::stream::RecordedStream;

/// An image that is to be recorded from its join position on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecording {
    /// Time at which recording begins, in milliseconds since the epoch.
    pub start_timestamp_ms: i64,
    /// Position at which the image was joined.
    pub join_position: i64,
    /// Id of the stream's first term.
    pub initial_term_id: i32,
    /// Length of the stream's terms in bytes.
    pub term_length: i32,
    /// Longest frame of the stream in bytes.
    pub mtu_length: i32,
    /// Session id of the stream.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Channel with only the parameters that identify the stream.
    pub stripped_channel: String,
    /// Channel of the request.
    pub original_channel: String,
    /// Source of the image: `aeron:ipc`, or address and port.
    pub source_identity: String,
}

/// An image that extends a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// Position at which the image was joined.
    pub join_position: i64,
    /// Id of the stream's first term.
    pub initial_term_id: i32,
    /// Length of the stream's terms in bytes.
    pub term_length: i32,
    /// Longest frame of the stream in bytes.
    pub mtu_length: i32,
    /// Session id of the image.
    pub session_id: i32,
    /// Control session of the request.
    pub control_session_id: i64,
    /// Correlation id of the request.
    pub correlation_id: i64,
}

impl<S: Storage + Clone> ArchiveStore<S> {
    /// Checks that the file system has more free bytes than the threshold. The server calls this
    /// function for each request, and again when a recording begins.
    ///
    /// # Errors
    /// [`StoreError::LowSpace`] if too few bytes are free, [`StoreError::Storage`] if the file
    /// system returns an error.
    pub fn check_storage_space(&self) -> Result<(), StoreError> {
        let usable = self
            .storage
            .free_bytes()
            .map_err(|source| StoreError::storage(".", "ask for its free space", source))?;
        let threshold = self.options.low_storage_space_threshold;
        if usable <= threshold {
            return Err(StoreError::LowSpace { threshold, usable });
        }
        Ok(())
    }

    /// Begins a recording: adds it to the catalog and creates its first segment file.
    ///
    /// # Errors
    /// The file system has too little space or returns an error, or a value of the image is not
    /// valid. Then the recording is not active. If the catalog already had the recording at the time
    /// of the error, an empty recording remains.
    pub fn start_recording(
        &mut self,
        recording: NewRecording,
    ) -> Result<RecorderSession<S>, StoreError> {
        self.check_storage_space()?;
        let (start, now_ms) = (recording.join_position, recording.start_timestamp_ms);
        let descriptor = recording.into_descriptor(self.options.segment_length);
        let recording_id = self.catalog.add(descriptor)?;
        let begun = self.create_session(recording_id);
        if begun.is_err() {
            // An error of `stop` is ignored: the error in `begun` is more useful, and the next opening of the store
            // sets the stop position.
            let _ = self.catalog.stop(recording_id, start, now_ms);
        }
        begun
    }

    /// Checks whether an image of a stream may extend a recording, before the image is available.
    ///
    /// # Errors
    /// The recording does not exist, has another stream, is active, or its end is being deleted.
    /// The file system has too little space.
    pub fn check_extension(&self, recording_id: i64, stream_id: i32) -> Result<(), StoreError> {
        let descriptor = self.recording(recording_id)?;
        if descriptor.stream_id != stream_id {
            return Err(StoreError::OtherStream {
                recording_id,
                stream_id,
                recorded: descriptor.stream_id,
            });
        }
        self.check_is_extensible(descriptor)?;
        self.check_storage_space()
    }

    /// Extends a recording by an image that begins where the recording ends.
    ///
    /// # Errors
    /// The recording does not exist, is active, or its end is being deleted. The image does not continue the
    /// recording. The file system has too little space or returns an error. Then the recording is unchanged, with one
    /// exception: if the change of the catalog failed, the catalog may already have the extension.
    pub fn extend_recording(
        &mut self,
        recording_id: i64,
        image: &Continuation,
    ) -> Result<RecorderSession<S>, StoreError> {
        let descriptor = self.recording(recording_id)?;
        self.check_is_extensible(descriptor)?;
        image.check(descriptor)?;
        self.check_storage_space()?;
        self.check_no_file_follows(descriptor)?;
        let extended = RecordingDescriptor {
            session_id: image.session_id,
            ..descriptor.clone()
        };
        let session = RecorderSession::reopen(
            self.storage.clone(),
            RecordedStream::new(&(&extended).into())?,
            image.join_position,
            self.options.file_sync_level,
        )?;
        let index = self.reopen_index(descriptor, &extended, image)?;
        // After the next change of the catalog, recovery searches the last file for the end of the recording. So a loss
        // of power must not restore files that a truncation has deleted.
        self.sync_directory()?;
        let extension = Extension {
            session_id: image.session_id,
            control_session_id: image.control_session_id,
            correlation_id: image.correlation_id,
        };
        self.catalog.extend(recording_id, &extension)?;
        Ok(session
            .with_checksum(self.options.record_checksum)
            .with_index(index))
    }

    /// Sets the position and the time at which a recording ended. The time is the latest of `now_ms`, the start time,
    /// and the last arrival time in the index, because the wall clock may have been set back.
    ///
    /// # Errors
    /// The recording does not exist, the position cannot be its end, or the file system returns an error. Then the
    /// recording is active until it is stopped or the store is opened again.
    pub fn stop_recording(
        &mut self,
        recording_id: i64,
        position: i64,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let stream = RecordedStream::new(&self.recording(recording_id)?.into())?;
        debug_assert!(
            self.catalog
                .recording(recording_id)
                .is_ok_and(RecordingDescriptor::is_unfinished),
            "recording {recording_id} must not be stopped twice"
        );
        debug_assert!(
            position >= stream.start_position(),
            "recording {recording_id} starts at {} and stops at {position}",
            stream.start_position()
        );
        let arrival_ms = last_arrival_ms(&self.storage, &stream, position);
        let stopped_ms = arrival_ms.map_or(now_ms, |arrival_ms| arrival_ms.max(now_ms));
        Ok(self.catalog.stop(recording_id, position, stopped_ms)?)
    }

    fn create_session(&self, recording_id: i64) -> Result<RecorderSession<S>, StoreError> {
        let descriptor = self.recording(recording_id)?;
        let stream = RecordedStream::new(&descriptor.into())?;
        let level = self.options.file_sync_level;
        let session = RecorderSession::create(self.storage.clone(), stream, level)?;
        let recorder = self.index_recorder(descriptor, descriptor.start_position);
        let create = |form| {
            let (storage, clock) = (self.storage.clone(), self.arrivals.clone());
            SegmentIndex::create(storage, stream, form, recorder, clock)
        };
        let index = self.options.index.map(create).transpose()?;
        Ok(session
            .with_checksum(self.options.record_checksum)
            .with_index(index))
    }

    /// Continues the index of a recording for the recorder of an extension. The extension is not in the catalog yet.
    fn reopen_index(
        &self,
        descriptor: &RecordingDescriptor,
        extended: &RecordingDescriptor,
        image: &Continuation,
    ) -> Result<Option<SegmentIndex<S>>, StoreError> {
        let Some(form) = self.options.index else {
            return Ok(None);
        };
        self.rename_old_indexes(extended.recording_id);
        let recorder = IndexRecorder {
            control_session_id: image.control_session_id,
            correlation_id: image.correlation_id,
            ..self.index_recorder(extended, image.join_position)
        };
        let index = SegmentIndex::reopen(
            self.storage.clone(),
            RecordedStream::of_recording(extended)?,
            form,
            recorder,
            self.arrivals.clone(),
            self.is_index_trusted(descriptor, image.join_position)?,
        );
        match index {
            // The index of a damaged segment cannot be repaired, so the recording continues without an index.
            Err(IndexError::Read(_)) => Ok(None),
            index => Ok(Some(index?)),
        }
    }

    /// Repairs the index of the last segment of a recording whose recorder was killed.
    pub(super) fn repair_index(
        &self,
        stream: &RecordedStream,
        end_position: i64,
    ) -> Result<(), StoreError> {
        let descriptor = self.recording(stream.recording_id())?;
        let base = stream.segment_base(end_position);
        if let Some(form) = self.options.index
            && self.has_file(&stream.segment_name(base))?
        {
            let recorder = self.index_recorder(descriptor, end_position);
            let is_trusted = self.is_index_trusted(descriptor, end_position)?;
            let storage = &self.storage;
            repair_last(storage, stream, end_position, form, &recorder, is_trusted)?;
        }
        Ok(())
    }

    fn has_file(&self, name: &str) -> Result<bool, StoreError> {
        match self.storage.open(name, Access::Read) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(StoreError::storage(name, "open it", source)),
        }
    }

    /// Opens the index of a segment for reading. Returns `None` if the segment has no valid index.
    ///
    /// # Errors
    /// The index has a later version than this software reads, or the file system returns an error.
    pub(super) fn index_file(
        &self,
        recording_id: i64,
        base: i64,
    ) -> Result<Option<IndexFile<S::File>>, StoreError> {
        let name = sidecar_name(recording_id, base, INDEX_EXTENSION);
        IndexFile::open(&self.storage, recording_id, base, Access::Read)
            .map_err(|source| StoreError::storage(&name, "read it", source))
    }

    /// Returns whether the index of the last segment is complete for a recording that ends at `end_position`.
    fn is_index_trusted(
        &self,
        descriptor: &RecordingDescriptor,
        end_position: i64,
    ) -> Result<bool, StoreError> {
        let base = descriptor.segment_base(end_position);
        let id = descriptor.recording_id;
        let file = self.index_file(id, base)?;
        Ok(file.is_some_and(|file| match file.header().form {
            // No other software writes into a directory with dense indexes.
            IndexForm::Dense => self.options.index == Some(IndexForm::Dense),
            IndexForm::Sparse => {
                let recorder = file.recorder();
                recorder.is_some_and(|recorder| recorder.is_last_of(descriptor, end_position))
            }
        }))
    }

    fn index_recorder(
        &self,
        descriptor: &RecordingDescriptor,
        begin_position: i64,
    ) -> IndexRecorder {
        IndexRecorder {
            session_id: descriptor.session_id,
            control_session_id: descriptor.control_session_id,
            correlation_id: descriptor.correlation_id,
            begin_position,
            boot_id: self.options.boot_id,
            sync_level: self.options.file_sync_level,
            session_field: self.options.record_checksum.into(),
        }
    }

    fn check_is_extensible(&self, descriptor: &RecordingDescriptor) -> Result<(), StoreError> {
        let recording_id = descriptor.recording_id;
        if descriptor.is_unfinished() {
            return Err(StoreError::ExtendsActive { recording_id });
        }
        self.check_not_half_migrated(recording_id)?;
        match self.deleting_up_to(recording_id) {
            Some(position) if position >= descriptor.stop_position => {
                Err(StoreError::ExtendsDeleted { recording_id })
            }
            _ => Ok(()),
        }
    }

    /// Checks that no segment file after the recording's end exists. An interrupted deletion may have left such files,
    /// and a recorder must not use them.
    fn check_no_file_follows(&self, descriptor: &RecordingDescriptor) -> Result<(), StoreError> {
        let stream = recorded_stream(descriptor)?;
        let last = stream.segment_base(descriptor.stop_position);
        let files = self.segment_files(descriptor.recording_id)?;
        match files.into_iter().find(|file| file.base > last) {
            Some(SegmentFile { name, .. }) => Err(StoreError::SegmentFileExists { name }),
            None => Ok(()),
        }
    }

    pub(super) fn names(&self) -> Result<Vec<String>, StoreError> {
        self.storage
            .names()
            .map_err(|source| StoreError::storage(".", "list its files", source))
    }
}

impl NewRecording {
    /// Returns a recording of an IPC stream from position 0.
    #[cfg(test)]
    pub(crate) fn of_ipc(session_id: i32, stream_id: i32) -> Self {
        Self {
            start_timestamp_ms: 1,
            join_position: 0,
            initial_term_id: 0,
            term_length: 64 * 1024,
            mtu_length: 1408,
            session_id,
            stream_id,
            stripped_channel: "aeron:ipc".into(),
            original_channel: "aeron:ipc".into(),
            source_identity: "aeron:ipc".into(),
        }
    }

    fn into_descriptor(self, segment_length: i32) -> RecordingDescriptor {
        RecordingDescriptor {
            control_session_id: 0,
            correlation_id: 0,
            recording_id: NULL_VALUE,
            start_timestamp_ms: self.start_timestamp_ms,
            stop_timestamp_ms: NULL_VALUE,
            start_position: self.join_position,
            stop_position: NULL_VALUE,
            initial_term_id: self.initial_term_id,
            segment_length: segment_length.max(self.term_length),
            term_length: self.term_length,
            mtu_length: self.mtu_length,
            session_id: self.session_id,
            stream_id: self.stream_id,
            stripped_channel: self.stripped_channel.into(),
            original_channel: self.original_channel.into(),
            source_identity: self.source_identity.into(),
        }
    }
}

impl Continuation {
    /// Checks that the image continues at the end of the recording, and has the same initial term
    /// id, term length and MTU.
    fn check(&self, recording: &RecordingDescriptor) -> Result<(), StoreError> {
        let fields = [
            (
                "joinPosition",
                self.join_position,
                "stopPosition",
                recording.stop_position,
            ),
            (
                "initialTermId",
                self.initial_term_id.into(),
                "initialTermId",
                recording.initial_term_id.into(),
            ),
            (
                "termBufferLength",
                self.term_length.into(),
                "termBufferLength",
                recording.term_length.into(),
            ),
            (
                "mtuLength",
                self.mtu_length.into(),
                "mtuLength",
                recording.mtu_length.into(),
            ),
        ];
        for (image_field, image, recorded_field, recorded) in fields {
            if image != recorded {
                return Err(StoreError::InvalidExtension {
                    recording_id: recording.recording_id,
                    image_field,
                    image,
                    recorded_field,
                    recorded,
                });
            }
        }
        Ok(())
    }
}
