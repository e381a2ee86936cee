//! [`RecordingSession`]: writes one image into a recording.

use aeron_client::{Counter, Image, TryPollError};
use aeron_memory::Words;

use super::events::{RecordedImage, RecordingEvents};
use crate::recorder::{RecorderError, RecorderSession};
use crate::server::ArchiveError;
use crate::storage::{BLOCK_LENGTH, Storage};

/// The recording of one image.
pub(in crate::server) struct RecordingSession<S: Storage> {
    image: Image,
    recorder: RecorderSession<S>,
    position: Counter,
    block_limit: usize,
    description: RecordedImage,
    /// Position in the last progress event.
    told_position: i64,
    /// Base of the segment that was written in the last duty cycle.
    segment_base: i64,
}

/// The outcome of one duty cycle of a recording.
#[derive(Debug)]
pub(super) enum SessionProgress {
    /// Number of bytes of the stream that were recorded.
    Recorded(usize),
    /// The image has ended. No bytes will follow.
    EndOfImage,
    /// An error occurred. No further bytes can be recorded.
    Failed(ArchiveError),
}

impl SessionProgress {
    /// Returns the number of bytes of the stream that were recorded.
    pub fn recorded_bytes(&self) -> usize {
        match self {
            Self::Recorded(bytes) => *bytes,
            Self::EndOfImage | Self::Failed(_) => 0,
        }
    }
}

impl<S: Storage> RecordingSession<S> {
    /// Records `image` from its position on. `position` is the counter of the recorded position. A
    /// block has at most `block_limit` bytes.
    pub fn new(
        image: Image,
        recorder: RecorderSession<S>,
        position: Counter,
        original_channel: String,
        block_limit: usize,
    ) -> Self {
        let join_position = recorder.recorded_position();
        Self {
            description: RecordedImage {
                recording_id: recorder.stream().recording_id(),
                join_position,
                session_id: image.session_id(),
                stream_id: image.stream_id(),
                original_channel,
                source_identity: image.source_identity().to_owned(),
            },
            told_position: join_position,
            segment_base: recorder.segment_base(),
            block_limit: block_limit
                .min(BLOCK_LENGTH)
                .min(image.term_buffer_length()),
            image,
            recorder,
            position,
        }
    }

    /// Publishes the started event.
    pub(super) fn report_started(&self, events: &mut RecordingEvents) {
        events.started(&self.description);
    }

    /// Publishes the stopped event.
    pub(super) fn report_stopped(&self, events: &mut RecordingEvents) {
        events.stopped(&self.description, self.recorded_position());
    }

    /// Publishes a progress event, if the recording has advanced since the last event.
    pub(super) fn report_progress(&mut self, events: &mut RecordingEvents) {
        let position = self.recorded_position();
        debug_assert!(
            position >= self.told_position,
            "recording {}: recorded position {position} is before position {}, which subscribers already know",
            self.recording_id(),
            self.told_position
        );
        if position > self.told_position && events.progress(&self.description, position) {
            self.told_position = position;
        }
    }

    /// Writes the last index entry. If the write fails and the recording is extended later, the new recorder computes
    /// the entry from the segment.
    pub(super) fn finish_index(&mut self) {
        let _ = self.recorder.finish_index();
    }

    /// Returns whether the recording has entered a new segment since the last call.
    pub(super) fn take_new_segment(&mut self) -> bool {
        let base = self.recorder.segment_base();
        debug_assert!(
            base >= self.segment_base,
            "recording {}: after the segment at {}, a recorder must not go back to {base}",
            self.recording_id(),
            self.segment_base
        );
        std::mem::replace(&mut self.segment_base, base) != base
    }

    /// Returns the reason why the recording continues without an index. Returns each reason once.
    pub(super) fn take_index_error(&mut self) -> Option<RecorderError> {
        self.recorder.take_index_error()
    }

    pub fn recording_id(&self) -> i64 {
        self.recorder.stream().recording_id()
    }

    pub fn recorded_position(&self) -> i64 {
        self.recorder.recorded_position()
    }

    /// Records the next block. The counter moves only after the block is written.
    pub(super) fn do_work(&mut self, buffer: &mut Vec<u8>) -> SessionProgress {
        let (recorder, limit) = (&mut self.recorder, self.block_limit);
        let polled = self.image.block_poll(
            |block| {
                // A padding frame may be longer than any block; only its header is written.
                let length = block.length().min(limit);
                buffer.resize(length.max(buffer.len()), 0);
                let bytes = &mut buffer[..length];
                block.term().copy_out(block.offset(), bytes);
                recorder.append(bytes, |_| {})?;
                recorder.publish().map(drop)
            },
            limit,
        );
        match polled {
            Ok(0) if self.image.is_closed() || self.image.is_end_of_stream() => {
                SessionProgress::EndOfImage
            }
            Ok(bytes) => {
                // Subscribers of the counter may read the segment file up to the position in it.
                debug_assert_eq!(
                    self.recorder.appended_position(),
                    self.recorder.recorded_position(),
                    "recording {}: all appended bytes must be recorded before the counter shows their end",
                    self.recording_id()
                );
                match bytes {
                    0 => self.recorder.note_pause(),
                    _ => self.position.set(self.recorder.recorded_position()),
                }
                SessionProgress::Recorded(bytes)
            }
            Err(TryPollError::Poll(error)) => SessionProgress::Failed(error.into()),
            Err(TryPollError::Handler(error)) => SessionProgress::Failed(error.into()),
        }
    }
}

impl From<RecorderError> for ArchiveError {
    fn from(error: RecorderError) -> Self {
        Self::new(error.archive_error_code(), error.to_string())
    }
}
