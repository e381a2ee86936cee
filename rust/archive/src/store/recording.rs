//! Recordings that begin, go on and end.

use super::deletion::SegmentFile;
use super::open::recorded_stream;
use super::{ArchiveStore, StoreError};
use crate::catalog::{Extension, NULL_VALUE, RecordingDescriptor};
use crate::recorder::RecorderSession;
use crate::storage::Storage;
use crate::stream::RecordedStream;

/// An image that is to be recorded from where it was joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecording {
    /// Time in epoch milliseconds.
    pub start_timestamp_ms: i64,
    /// Position at which the image was joined.
    pub join_position: i64,
    /// Id of the stream's first term.
    pub initial_term_id: i32,
    /// Length of the stream's terms in bytes.
    pub term_length: i32,
    /// Longest frame of the stream in bytes.
    pub mtu_length: i32,
    /// Session of the stream.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Channel without the parameters that do not identify it.
    pub stripped_channel: String,
    /// Channel of the request.
    pub original_channel: String,
    /// Source of the image: `aeron:ipc`, or address and port.
    pub source_identity: String,
}

/// An image that continues a recording.
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
    /// Session of the image.
    pub session_id: i32,
    /// Control session of the request.
    pub control_session_id: i64,
    /// Correlation id of the request.
    pub correlation_id: i64,
}

impl<S: Storage + Clone> ArchiveStore<S> {
    /// Checks that the file system has more free bytes than the threshold. The server asks when a request comes; recordings that begin later
    /// are checked again.
    ///
    /// # Errors
    /// [`StoreError::LowSpace`], [`StoreError::Storage`].
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
    /// The file system has too little space or refuses, or a value of the image is impossible. No recording runs then; if its segment file
    /// could not be created, an empty recording remains.
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
            // The first error tells more. An entry without an end gets one when the store is opened.
            let _ = self.catalog.stop(recording_id, start, now_ms);
        }
        begun
    }

    /// Checks whether a stream may be recorded behind the end of a recording, before its image is there.
    ///
    /// # Errors
    /// The recording does not exist, is of another stream, is recorded, or its end is being deleted; or space is low.
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

    /// Continues a recording with an image that begins where the recording ends.
    ///
    /// # Errors
    /// The recording does not exist, is recorded, or its end is being deleted; the image does not continue it; or the file system has too
    /// little space or refuses. The recording is as it was then.
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
        // From now on recovery looks for the end in the last file: those that a truncation has deleted must not come back.
        self.sync_directory()?;
        let extension = Extension {
            session_id: image.session_id,
            control_session_id: image.control_session_id,
            correlation_id: image.correlation_id,
        };
        self.catalog.extend(recording_id, &extension)?;
        Ok(session.with_checksum(self.options.record_checksum))
    }

    /// Notes where and when a recording ended.
    ///
    /// # Errors
    /// The recording does not exist, the position cannot be its end, or the file system refuses; then the recording counts as running, until
    /// it is stopped or the store is opened again.
    pub fn stop_recording(
        &mut self,
        recording_id: i64,
        position: i64,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.recording(recording_id)?;
        Ok(self.catalog.stop(recording_id, position, now_ms)?)
    }

    fn create_session(&self, recording_id: i64) -> Result<RecorderSession<S>, StoreError> {
        let stream = RecordedStream::new(&self.recording(recording_id)?.into())?;
        let level = self.options.file_sync_level;
        let session = RecorderSession::create(self.storage.clone(), stream, level)?;
        Ok(session.with_checksum(self.options.record_checksum))
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

    /// A deletion that was killed may have left files, which a recorder must never take for its own.
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
            stripped_channel: self.stripped_channel,
            original_channel: self.original_channel,
            source_identity: self.source_identity,
        }
    }
}

impl Continuation {
    /// Checks that the image goes on where the recording ends, in terms and datagrams of the same lengths.
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
