//! [`FrameRewrite`]: converts recorded frames in a term to frames of the replay's publication.

use aeron_layout::frame::FirstWord;
use aeron_memory::Words;
use aeron_memory::log::frame::{HEADER_LENGTH, offset};

use crate::checksum::Checksum;
use crate::frame::{FrameFault, FrameRules, HeaderWords};

/// Consecutive frames: a block of data frames, then a padding frame. The block or the padding frame
/// may be missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FrameRun {
    /// Number of bytes of the block.
    pub data_length: usize,
    /// Length of the padding frame with its header; 0 if the run has no padding.
    pub padding_length: usize,
}

/// Why a recorded frame cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunFault {
    /// The first frame is not valid for the recording.
    Frame(FrameFault),
    /// The checksum of a frame is wrong.
    Checksum {
        /// Position of the frame.
        position: i64,
    },
}

/// Recorded bytes in the term of a publication. The first word of the first header is zero in the term. Its recorded
/// value is in `first_word`.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordedBytes<'a, W> {
    /// Memory of the term.
    pub term: &'a W,
    /// Offset of the first byte.
    pub offset: usize,
    /// Number of bytes.
    pub length: usize,
    /// First word of the first header.
    pub first_word: FirstWord,
}

/// How the frames of a recording are checked and rewritten for a replay.
#[derive(Debug)]
pub(super) struct FrameRewrite {
    /// The header values of valid frames.
    rules: FrameRules,
    /// Checksum in the session id field, if it is verified.
    checksum: Option<Checksum>,
    /// Session id of the publication.
    session_id: i32,
    /// Stream id of the publication.
    stream_id: i32,
    /// Memory for a copy of a frame whose checksum is verified.
    payload: Vec<u8>,
}

impl FrameRewrite {
    /// Creates the rewrite of a recording's frames for a publication with these ids.
    pub fn new(
        rules: FrameRules,
        checksum: Option<Checksum>,
        session_id: i32,
        stream_id: i32,
    ) -> Self {
        Self {
            rules,
            checksum,
            session_id,
            stream_id,
            payload: Vec::new(),
        }
    }

    /// Finds the run at the start of `bytes`, which are at `position` of the recording. Writes the
    /// ids of the publication into the data frames of the run.
    ///
    /// The run ends with the frame that reaches `limit`, with padding, or before bytes that are not a complete frame.
    ///
    /// # Errors
    /// The first frame is not valid, or the checksum of any frame of the run is wrong. Then no part of the run may be
    /// used.
    // Inlined into the duty cycle, the loop would keep its values on the stack.
    #[inline(never)]
    pub fn take_run<W: Words>(
        &mut self,
        position: i64,
        limit: i64,
        bytes: RecordedBytes<'_, W>,
    ) -> Result<FrameRun, RunFault> {
        let RecordedBytes { term, length, .. } = bytes;
        // All bytes are in one term, so these values are the same for each frame.
        let rules = self.rules.of_term(position);
        let sent = rules.with_ids(self.session_id, self.stream_id);
        let term_offset = self.rules.positions().term_offset(position);
        let mut run = FrameRun::default();
        while run.data_length + HEADER_LENGTH <= length {
            let begin = position + run.data_length as i64;
            if begin >= limit {
                break;
            }
            let at = bytes.offset + run.data_length;
            let first = match run.data_length {
                0 => bytes.first_word,
                _ => FirstWord(term.load_i64_relaxed(at)),
            };
            let header = HeaderWords::in_term(first, term, at);
            let Some(header) = rules.header(term_offset + run.data_length, header) else {
                match self.rules.check_header(begin, header) {
                    Err(fault) if run.data_length == 0 => return Err(RunFault::Frame(fault)),
                    _ => break,
                }
            };
            if header.is_padding() {
                run.padding_length = header.frame_length();
                break;
            }
            let frame_length = header.aligned_length();
            if frame_length > length - run.data_length {
                break;
            }
            if !self.has_checksum(term, at, frame_length) {
                return Err(RunFault::Checksum { position: begin });
            }
            let words = sent.place_words(term_offset + run.data_length);
            term.store_i64s_relaxed(at + offset::TERM_OFFSET, words);
            run.data_length += frame_length;
        }
        debug_assert!(
            run.data_length <= length && run.data_length.is_multiple_of(HEADER_LENGTH),
            "a run of {} bytes must be whole frames within the {length} bytes that were read",
            run.data_length
        );
        Ok(run)
    }

    /// Returns whether the checksum in the session id field of a data frame is correct. Returns
    /// `true` if checksums are not verified.
    #[inline]
    fn has_checksum<W: Words>(&mut self, term: &W, at: usize, frame_length: usize) -> bool {
        let Some(checksum) = self.checksum else {
            return true;
        };
        self.payload.resize(frame_length - HEADER_LENGTH, 0);
        term.copy_out(at + HEADER_LENGTH, &mut self.payload);
        checksum.compute(&self.payload) == term.load_i32_relaxed(at + offset::SESSION_ID)
    }
}

impl FrameRun {
    /// Returns whether the run has no complete frame.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}
