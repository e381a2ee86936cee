//! [`RecordedFrames`]: reads the frames of one recording, for the dump of `ArchiveTool`.

use aeron_protocol::archive::TimeEdge;

use super::{ArchiveFiles, ToolError};
use crate::catalog::RecordingState;
use crate::frame::CheckedFrame;
use crate::index::find_position;
use crate::reader::RecordingReader;
use crate::storage::Storage;
use crate::stream::RecordedStream;

/// Reads the frames of a recording, in order. For one thread.
#[derive(Debug)]
pub struct RecordedFrames<S: Storage> {
    reader: RecordingReader<S>,
}

impl<S: Storage + Clone> ArchiveFiles<S> {
    /// Creates a reader of the frames of a recording, up to the stop position. If the recording has no stop position,
    /// the reader ends after the last whole frame.
    ///
    /// # Errors
    /// The recording is unknown or deleted, its values are not valid, or its end cannot be found.
    pub fn frames(&self, recording_id: i64) -> Result<RecordedFrames<S>, ToolError> {
        self.frames_in_time(recording_id, None, None)
    }

    /// Creates a reader like [`frames`](Self::frames), but only of messages that arrived in a range
    /// of time, in microseconds since the epoch. Without an index, the range has whole segments: see
    /// [`TimeSearch`](crate::index::TimeSearch).
    ///
    /// # Errors
    /// The same errors as [`frames`](Self::frames). The index cannot be read.
    pub fn frames_in_time(
        &self,
        recording_id: i64,
        since_us: Option<i64>,
        until_us: Option<i64>,
    ) -> Result<RecordedFrames<S>, ToolError> {
        let entry = self.entry(recording_id)?;
        if entry.state == RecordingState::Deleted {
            return Err(ToolError::UnknownRecording { recording_id });
        }
        let descriptor = &entry.descriptor;
        let stream = RecordedStream::of_recording(descriptor)?;
        let start = descriptor.start_position;
        let end = self.end_of(descriptor, &stream)?;
        let edge = |edge, time_us: Option<i64>| {
            time_us
                .map(|time_us| find_position(&self.storage, descriptor, end, edge, time_us))
                .transpose()
        };
        let from = edge(TimeEdge::Since, since_us)?.map_or(start, |found| found.position);
        let to = edge(TimeEdge::Until, until_us)?.map_or(end, |found| found.position);
        let reader = RecordingReader::new(self.storage.clone(), stream, from, to.max(from))?;
        Ok(RecordedFrames { reader })
    }
}

impl<S: Storage> RecordedFrames<S> {
    /// Returns the next frame, padding included; `None` after the last frame that the reader covers.
    ///
    /// # Errors
    /// [`ToolError::Read`]: the next bytes cannot be read, or are not a frame of the recording.
    pub fn next_frame(&mut self) -> Result<Option<CheckedFrame<'_>>, ToolError> {
        Ok(self.reader.next_frame()?)
    }
}
