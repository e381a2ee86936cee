//! [`RecordedStream`]: the segment files of a recording by position, and the header values of its frames.

use crate::catalog::RecordingDescriptor;
use crate::frame::FrameRules;
use crate::segments;
use aeron_memory::log::LogError;
use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_memory::log::position::Positions;
use thiserror::Error;

/// The values of a catalog entry from which a [`RecordedStream`] is made. They are not checked yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamDescription {
    /// Recording id.
    pub recording_id: i64,
    /// Start position of the recording.
    pub start_position: i64,
    /// Length of a segment file, in bytes.
    pub segment_length: i32,
    /// Length of a term, in bytes.
    pub term_length: i32,
    /// Term id of the stream's first term.
    pub initial_term_id: i32,
    /// Session id of the stream.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
}

/// Positions, segments and frame rules of one recording. A purge moves the start position. A value
/// from before the purge can still be used, because the bases of the segments stay the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedStream {
    recording_id: i64,
    start_position: i64,
    segment_length: i64,
    rules: FrameRules,
}

/// A value that no catalog entry can have.
#[derive(Debug, Error)]
pub enum StreamError {
    /// The term length is invalid.
    #[error("recording {recording_id}: {source}")]
    TermLength {
        /// Recording id of the entry.
        recording_id: i64,
        /// Reason.
        source: LogError,
    },
    /// The segment length is not a power of two from the term length to 1 GiB.
    #[error(
        "recording {recording_id}: segment length {segment_length} is not a power of two from the term length {term_length} to 1073741824"
    )]
    SegmentLength {
        /// Recording id of the entry.
        recording_id: i64,
        /// Segment length, in bytes.
        segment_length: i32,
        /// Term length, in bytes.
        term_length: usize,
    },
    /// The start position is negative, beyond the stream's maximum, or not a multiple of the frame alignment.
    #[error("recording {recording_id}: no frame begins at start position {start_position}")]
    StartPosition {
        /// Recording id of the entry.
        recording_id: i64,
        /// The value that was given.
        start_position: i64,
    },
}

impl RecordedStream {
    /// Creates a stream from its description.
    ///
    /// # Errors
    /// [`StreamError`] names the value that is invalid.
    pub fn new(description: &StreamDescription) -> Result<Self, StreamError> {
        let &StreamDescription {
            recording_id,
            start_position,
            segment_length,
            initial_term_id,
            session_id,
            stream_id,
            ..
        } = description;
        let term_length = usize::try_from(description.term_length).unwrap_or(0);
        let positions = Positions::new(term_length, initial_term_id).map_err(|source| {
            StreamError::TermLength {
                recording_id,
                source,
            }
        })?;
        if segment_length < description.term_length || segment_length.count_ones() != 1 {
            return Err(StreamError::SegmentLength {
                recording_id,
                segment_length,
                term_length,
            });
        }
        let possible = 0..=positions.max_position();
        if !possible.contains(&start_position) || !is_aligned(start_position) {
            return Err(StreamError::StartPosition {
                recording_id,
                start_position,
            });
        }
        Ok(Self {
            recording_id,
            start_position,
            segment_length: i64::from(segment_length),
            rules: FrameRules::new(positions, session_id, stream_id),
        })
    }

    /// Creates the stream of a recording's segment files. Frames may have any session id. An extension has frames of
    /// another session, and a frame checksum replaces the session id.
    ///
    /// # Errors
    /// [`StreamError`] names the value that is invalid.
    pub fn of_recording(descriptor: &RecordingDescriptor) -> Result<Self, StreamError> {
        Ok(Self::new(&descriptor.into())?.any_session())
    }

    /// Accepts frames of any session. An archive that writes frame checksums stores them in the session id
    /// field.
    #[must_use]
    pub fn any_session(mut self) -> Self {
        self.rules = self.rules.any_session();
        self
    }

    /// Returns the stream after a purge of all segments before the one that holds `position`.
    #[must_use]
    pub fn purged_to(mut self, position: i64) -> Self {
        self.start_position = self.start_position.max(self.segment_base(position));
        self
    }

    /// Returns the recording id.
    #[inline]
    pub fn recording_id(&self) -> i64 {
        self.recording_id
    }

    /// Returns the session id of the recording. If sessions have extended it, the id of the last session.
    #[must_use]
    pub fn session_id(&self) -> i32 {
        self.rules.session_id()
    }

    /// Returns the start position of the recording.
    #[inline]
    pub fn start_position(&self) -> i64 {
        self.start_position
    }

    /// Returns the geometry of terms and positions.
    #[inline]
    pub fn positions(&self) -> Positions {
        self.rules.positions()
    }

    /// Returns the length of each segment file, in bytes.
    #[inline]
    pub fn segment_length(&self) -> i64 {
        self.segment_length
    }

    /// Returns the position of the first byte of the segment file that holds `position`, which is not before the start
    /// position.
    #[inline]
    pub fn segment_base(&self, position: i64) -> i64 {
        let term_length = self.positions().term_length() as i32;
        let segment_length = self.segment_length as i32;
        segments::segment_base(position, self.start_position, term_length, segment_length)
    }

    /// Returns the name of the segment file that begins at `base`.
    pub fn segment_name(&self, base: i64) -> String {
        segments::segment_name(self.recording_id, base)
    }

    /// Returns the header values that each frame of this stream has.
    #[inline]
    pub fn rules(&self) -> FrameRules {
        self.rules
    }
}

impl From<&RecordingDescriptor> for StreamDescription {
    fn from(descriptor: &RecordingDescriptor) -> Self {
        Self {
            recording_id: descriptor.recording_id,
            start_position: descriptor.start_position,
            segment_length: descriptor.segment_length,
            term_length: descriptor.term_length,
            initial_term_id: descriptor.initial_term_id,
            session_id: descriptor.session_id,
            stream_id: descriptor.stream_id,
        }
    }
}

/// Returns whether a frame can begin at `position`.
pub(crate) fn is_aligned(position: i64) -> bool {
    position & (FRAME_ALIGNMENT as i64 - 1) == 0
}
