//! What a recording's catalog entry says about its frames: which file holds a position, and what a frame there must look like.

use crate::catalog::RecordingDescriptor;
use crate::frame::FrameRules;
use crate::segments;
use aeron_memory::log::LogError;
use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_memory::log::position::Positions;
use thiserror::Error;

/// What a catalog says of a recording, as far as its segment files are concerned. Any values may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamDescription {
    /// Id in the catalog.
    pub recording_id: i64,
    /// Where the recording starts.
    pub start_position: i64,
    /// Bytes of a segment file.
    pub segment_length: i32,
    /// Bytes of a term.
    pub term_length: i32,
    /// Id of the stream's first term.
    pub initial_term_id: i32,
    /// Session.
    pub session_id: i32,
    /// Stream.
    pub stream_id: i32,
}

/// The arithmetic of one recording. A start position that a purge moves later changes nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedStream {
    recording_id: i64,
    start_position: i64,
    segment_length: i64,
    rules: FrameRules,
}

/// A catalog entry that no recording can have.
#[derive(Debug, Error)]
pub enum StreamError {
    /// The term length is not possible.
    #[error("recording {recording_id}: {source}")]
    TermLength {
        /// Whose entry it is.
        recording_id: i64,
        /// What is wrong.
        source: LogError,
    },
    /// The segment length is no power of two from the term length to 1 GiB.
    #[error(
        "recording {recording_id}: segment length {segment_length} is no power of two from the term length {term_length} to 1073741824"
    )]
    SegmentLength {
        /// Whose entry it is.
        recording_id: i64,
        /// As given, in bytes.
        segment_length: i32,
        /// In bytes.
        term_length: usize,
    },
    /// The start position is negative, beyond the stream's last, or not where a frame can begin.
    #[error("recording {recording_id}: no frame begins at start position {start_position}")]
    StartPosition {
        /// Whose entry it is.
        recording_id: i64,
        /// As given.
        start_position: i64,
    },
}

impl RecordedStream {
    /// The stream that is described.
    ///
    /// # Errors
    /// [`StreamError`] names the value that is impossible.
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

    /// The stream of a recording as its segment files have it: an extension brings frames of another session, and a checksum is in the place
    /// of the session id.
    ///
    /// # Errors
    /// [`StreamError`] names the value that is impossible.
    pub fn of_recording(descriptor: &RecordingDescriptor) -> Result<Self, StreamError> {
        Ok(Self::new(&descriptor.into())?.any_session())
    }

    /// Takes frames of any session. An archive that writes frame checksums keeps them in the field of the session id.
    #[must_use]
    pub fn any_session(mut self) -> Self {
        self.rules = self.rules.any_session();
        self
    }

    /// The recording without the segments before the one that holds `position`, as a purge leaves it.
    #[must_use]
    pub fn purged_to(mut self, position: i64) -> Self {
        self.start_position = self.start_position.max(self.segment_base(position));
        self
    }

    /// Id in the catalog.
    #[inline]
    pub fn recording_id(&self) -> i64 {
        self.recording_id
    }

    /// Where the recording starts.
    #[inline]
    pub fn start_position(&self) -> i64 {
        self.start_position
    }

    /// Terms and positions.
    #[inline]
    pub fn positions(&self) -> Positions {
        self.rules.positions()
    }

    /// Bytes of each segment file.
    #[inline]
    pub fn segment_length(&self) -> i64 {
        self.segment_length
    }

    /// Position of the first byte of the segment file that holds `position`, which is not before the start position.
    #[inline]
    pub fn segment_base(&self, position: i64) -> i64 {
        let term_length = self.positions().term_length() as i32;
        let segment_length = self.segment_length as i32;
        segments::segment_base(position, self.start_position, term_length, segment_length)
    }

    /// Name of the segment file that begins at `base`.
    pub fn segment_name(&self, base: i64) -> String {
        segments::segment_name(self.recording_id, base)
    }

    /// What a frame of this stream must look like.
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

/// Whether a frame can begin at `position`.
pub(crate) fn is_aligned(position: i64) -> bool {
    position & (FRAME_ALIGNMENT as i64 - 1) == 0
}
