//! [`RecordingReader`]: the frames of a range of a recording, in order, each checked completely.
//!
//! Reads by `pread` and lends what it read: a frame costs its check and no copy. A range may begin and end at any frame and go
//! over any number of segments. Bytes that are not what the recording says are an error that names file and position, and
//! never a frame that is left out.

use crate::frame::{Frame, FrameFault};
use crate::storage::Storage;
use crate::stream::{RecordedStream, is_aligned};
use crate::window::Window;
use std::io;
use thiserror::Error;

/// Reads a range of a recording. For one thread; ranges of one recording may be read by several readers at once.
#[derive(Debug)]
pub struct RecordingReader<S: Storage> {
    window: Window<S>,
    position: i64,
    end_position: i64,
}

/// Why a range cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The range does not lie within the recording's stream.
    #[error(
        "recording {recording_id}: no range of frames from {from} to {to}; it starts at {start_position}"
    )]
    Range {
        /// Recording id.
        recording_id: i64,
        /// First position, as given.
        from: i64,
        /// End position, as given.
        to: i64,
        /// Where the recording starts.
        start_position: i64,
    },
    /// A segment file cannot be opened or read.
    #[error("{name}, position {position}: {source}")]
    Storage {
        /// Name of the file.
        name: String,
        /// Where in the stream.
        position: i64,
        /// What the storage answers.
        source: io::Error,
    },
    /// What a segment file holds is not the recording's next frame.
    #[error("{name}, position {position}: {fault}")]
    Frame {
        /// Name of the file.
        name: String,
        /// Where in the stream.
        position: i64,
        /// What is wrong there.
        fault: FrameFault,
    },
}

impl<S: Storage> RecordingReader<S> {
    /// Reads the frames from position `from` to position `to`. Nothing is opened yet.
    ///
    /// # Errors
    /// [`ReadError::Range`] for positions that are not in order, before the start, or not where a frame can begin.
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
        })
    }

    /// Where the next frame begins.
    #[inline]
    pub fn position(&self) -> i64 {
        self.position
    }

    /// The next frame, padding included; `None` at the end of the range. After an error the same frame is tried again.
    ///
    /// # Errors
    /// [`ReadError::Storage`] and [`ReadError::Frame`]; also for a frame that goes beyond the end of the range.
    #[inline(always)]
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, ReadError> {
        let Self {
            window,
            position,
            end_position,
        } = self;
        let (begin, end) = (*position, *end_position);
        if begin >= end {
            return Ok(None);
        }
        let stream = *window.stream();
        let frame = match window.frame(begin, end) {
            Ok(Ok(frame)) => frame,
            Ok(Err(fault)) => return Err(frame_error(&stream, begin, fault)),
            Err(source) => return Err(storage_error(&stream, begin, source)),
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
