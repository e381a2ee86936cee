//! [`RecordingReader`]: reads the frames of a range of a recording, in order. Each frame is checked completely.
//!
//! The reader fills its buffer by `pread` and lends frames from the buffer. So a frame is checked but not copied. A
//! range may begin and end at any frame and span any number of segments. If the bytes are not a valid frame of the
//! recording, the reader returns an error with file and position. A frame is never skipped silently.

use crate::checksum::Checksum;
use crate::frame::{CheckedFrame, FrameFault};
use crate::storage::Storage;
use crate::stream::{RecordedStream, is_aligned};
use crate::verifier::FrameVerifier;
use crate::window::Window;
use std::io;
use thiserror::Error;

/// Reads a range of a recording. For one thread; several readers may read ranges of one recording at once.
#[derive(Debug)]
pub struct RecordingReader<S: Storage> {
    window: Window<S>,
    position: i64,
    end_position: i64,
    /// Checks the session id fields of the frames.
    verifier: Option<FrameVerifier>,
}

/// Why a range cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The range is not within the recording's stream.
    #[error(
        "recording {recording_id}: {from} to {to} is not a range of frames; the recording starts at {start_position}"
    )]
    Range {
        /// Recording id.
        recording_id: i64,
        /// First position of the range, as given.
        from: i64,
        /// End position of the range, as given.
        to: i64,
        /// Start position of the recording.
        start_position: i64,
    },
    /// A segment file cannot be opened or read.
    #[error("{name}, position {position}: {source}")]
    Storage {
        /// Name of the file.
        name: String,
        /// Position in the stream.
        position: i64,
        /// Error of the storage.
        source: io::Error,
    },
    /// The bytes in a segment file are not the recording's next frame.
    #[error("{name}, position {position}: {fault}")]
    Frame {
        /// Name of the file.
        name: String,
        /// Position in the stream.
        position: i64,
        /// Fault at this position.
        fault: FrameFault,
    },
}

impl<S: Storage> RecordingReader<S> {
    /// Creates a reader of the frames from position `from` to position `to`. No file is opened yet.
    ///
    /// # Errors
    /// [`ReadError::Range`] if `to` is below `from`, `from` is before the start of the recording,
    /// or a frame cannot begin at one of them.
    pub fn new(storage: S, stream: RecordedStream, from: i64, to: i64) -> Result<Self, ReadError> {
        let start_position = stream.start_position();
        let bounds = [start_position, from, to, stream.positions().max_position()];
        if !bounds.is_sorted() || !is_aligned(from) || !is_aligned(to) {
            return Err(ReadError::Range {
                recording_id: stream.recording_id(),
                from,
                to,
                start_position,
            });
        }
        Ok(Self {
            window: Window::new(storage, stream),
            position: from,
            end_position: to,
            verifier: None,
        })
    }

    /// Also checks that each data frame has the checksum of its bytes, or a session id if the archive writes no
    /// checksums. Otherwise only the headers are checked.
    #[must_use]
    pub fn verifying(mut self) -> Self {
        self.verifier = Some(FrameVerifier::new(self.window.stream()));
        self
    }

    /// Returns the checksum that the frames of the current segment have, if a frame has shown it.
    pub(crate) fn checksum(&self) -> Option<Checksum> {
        self.verifier.as_ref().and_then(FrameVerifier::checksum)
    }

    /// Returns the position of the next frame.
    #[inline]
    pub fn position(&self) -> i64 {
        self.position
    }

    /// Returns the next frame, padding included; `None` at the end of the range. After an error, the next call tries
    /// the same frame again.
    ///
    /// # Errors
    /// [`ReadError::Storage`] and [`ReadError::Frame`]. A frame that ends after the end of the
    /// range is also an error.
    #[inline(always)]
    pub fn next_frame(&mut self) -> Result<Option<CheckedFrame<'_>>, ReadError> {
        let Self {
            window,
            position,
            end_position,
            verifier,
        } = self;
        let (begin, end) = (*position, *end_position);
        if begin >= end {
            return Ok(None);
        }
        let stream = *window.stream();
        let at = match window.hold(begin, end) {
            Ok(at) => at,
            Err(source) => return Err(storage_error(&stream, begin, source)),
        };
        let window = &*window;
        let frame = match window.held(begin, at) {
            Ok(frame) => frame,
            Err(fault) => return Err(frame_error(&stream, begin, fault)),
        };
        let next = frame.end_position();
        if next > end {
            return Err(frame_error(
                &stream,
                begin,
                FrameFault::Incomplete {
                    length: (next - begin) as i32,
                    available: (end - begin) as usize,
                },
            ));
        }
        if let Some(verifier) = verifier
            && let Err(fault) = verifier.verify(window, &frame)
        {
            return Err(frame_error(&stream, begin, fault));
        }
        debug_assert!(
            next > begin,
            "a frame at {begin} must not end at {next}: the reader would never come to an end"
        );
        *position = next;
        Ok(Some(frame))
    }
}

#[cold]
fn frame_error(stream: &RecordedStream, position: i64, fault: FrameFault) -> ReadError {
    ReadError::Frame {
        name: stream.segment_name(stream.segment_base(position)),
        position,
        fault,
    }
}

#[cold]
fn storage_error(stream: &RecordedStream, position: i64, source: io::Error) -> ReadError {
    ReadError::Storage {
        name: stream.segment_name(stream.segment_base(position)),
        position,
        source,
    }
}
