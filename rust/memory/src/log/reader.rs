//! Reads a log from a subscriber's position.
//!
//! A [`Cursor`] iterates over the readable frames of one term. The cursor itself consumes nothing. After any number of
//! fragments, its owner stores [`Cursor::position`] as the subscriber's position.
//!
//! Frame lengths are read once and checked. No value that another process stores makes a cursor panic or leave its
//! term: for an impossible length, the cursor returns [`CorruptLog`].

use super::buffers::LogBuffers;
use super::frame::{
    FRAME_ALIGNMENT, FirstWord, HEADER_LENGTH, aligned_length, frame_type, offset as field,
};
use crate::words::Words;

/// A length or tail that no publisher or driver writes. The stream cannot be read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("corrupt log: {value} {what} at position {position}")]
pub struct CorruptLog {
    /// Stream position of the value.
    pub position: i64,
    /// The invalid value.
    pub value: i64,
    what: &'static str,
}

impl CorruptLog {
    #[cold]
    pub(super) fn frame_length(position: i64, length: i32) -> Self {
        Self {
            position,
            value: length.into(),
            what: "as a frame length (below 32, or beyond the end of the term)",
        }
    }

    #[cold]
    pub(super) fn misaligned_tail(term_begin: i64, offset: usize) -> Self {
        Self {
            position: term_begin,
            value: offset as i64,
            what: "as the tail offset of the term (not a multiple of 32, or the term precedes the stream)",
        }
    }

    #[cold]
    fn misaligned_position(position: i64) -> Self {
        Self {
            position,
            value: position,
            what: "as a subscriber position (negative, or not a multiple of 32)",
        }
    }
}

/// A frame with a payload. The payload is in shared memory: copy it out, or read its words.
#[derive(Debug)]
pub struct LogFragment<'a, W> {
    term: &'a W,
    term_begin: i64,
    offset: usize,
    first_word: FirstWord,
}

impl<W> Clone for LogFragment<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for LogFragment<'_, W> {}

impl<'a, W: Words> LogFragment<'a, W> {
    #[inline(always)]
    pub(super) fn new(term: &'a W, term_begin: i64, offset: usize, first_word: FirstWord) -> Self {
        debug_assert!(
            offset.is_multiple_of(FRAME_ALIGNMENT),
            "no frame can begin at the offset {offset}"
        );
        debug_assert!(
            first_word.frame_length() >= HEADER_LENGTH as i32,
            "a frame of {} bytes has no room for its header",
            first_word.frame_length()
        );
        Self {
            term,
            term_begin,
            offset,
            first_word,
        }
    }

    /// Returns the term that contains the frame.
    #[inline]
    pub fn term(&self) -> &'a W {
        self.term
    }

    /// Returns the offset of the frame in the term.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the number of bytes of header and payload.
    #[inline]
    pub fn frame_length(&self) -> usize {
        self.first_word.frame_length() as usize
    }

    /// Returns the offset of the payload in the term.
    #[inline]
    pub fn payload_offset(&self) -> usize {
        self.offset + HEADER_LENGTH
    }

    /// Returns the length of the payload in bytes.
    #[inline]
    pub fn payload_length(&self) -> usize {
        self.frame_length() - HEADER_LENGTH
    }

    /// Copies the first bytes of the payload into `bytes`, which is at most as long as the payload.
    ///
    /// # Panics
    /// If `bytes` is longer than the payload.
    #[inline]
    pub fn copy_payload(&self, bytes: &mut [u8]) {
        assert!(bytes.len() <= self.payload_length());
        self.term.copy_out(self.payload_offset(), bytes);
    }

    /// Returns a copy of the payload.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.payload_length()];
        self.copy_payload(&mut bytes);
        bytes
    }

    /// Returns the flags of the frame; see [`flags`](super::frame::flags).
    #[inline]
    pub fn flags(&self) -> u8 {
        self.first_word.flags()
    }

    /// Returns the type of the frame.
    #[inline]
    pub fn frame_type(&self) -> u16 {
        self.first_word.frame_type()
    }

    /// Returns the session id in the header.
    #[inline]
    pub fn session_id(&self) -> i32 {
        self.term.load_i32_relaxed(self.offset + field::SESSION_ID)
    }

    /// Returns the stream id in the header.
    #[inline]
    pub fn stream_id(&self) -> i32 {
        self.term.load_i32_relaxed(self.offset + field::STREAM_ID)
    }

    /// Returns the term id in the header.
    #[inline]
    pub fn term_id(&self) -> i32 {
        self.term.load_i32_relaxed(self.offset + field::TERM_ID)
    }

    /// Returns the reserved value in the header.
    #[inline]
    pub fn reserved_value(&self) -> i64 {
        self.term
            .load_i64_relaxed(self.offset + field::RESERVED_VALUE)
    }

    /// Returns the stream position of the frame's first byte.
    #[inline]
    pub fn begin_position(&self) -> i64 {
        self.term_begin + self.offset as i64
    }

    /// Returns the stream position after the frame.
    #[inline]
    pub fn position(&self) -> i64 {
        self.begin_position() + aligned_length(self.frame_length()) as i64
    }
}

/// Iterator over the frames of one term.
#[derive(Debug)]
pub struct Cursor<'a, W> {
    term: &'a W,
    term_begin: i64,
    offset: usize,
    /// Frames that begin at or after this offset are not read.
    end: usize,
}

impl<W: Words> LogBuffers<W> {
    /// Creates a cursor from `position` to the end of its term.
    ///
    /// # Errors
    /// No frame can begin at `position`.
    #[inline]
    pub fn cursor(&self, position: i64) -> Result<Cursor<'_, W>, CorruptLog> {
        if position < 0 || position % FRAME_ALIGNMENT as i64 != 0 {
            return Err(CorruptLog::misaligned_position(position));
        }
        let positions = self.positions();
        Ok(Cursor {
            term: self.term_at(position),
            term_begin: positions.term_begin(position),
            offset: positions.term_offset(position),
            end: positions.term_length(),
        })
    }
}

impl<'a, W: Words> Cursor<'a, W> {
    /// Limits the cursor to frames that begin before `limit`. The last frame may end after the limit.
    #[must_use]
    pub fn bounded(mut self, limit: i64) -> Self {
        let ahead = limit.saturating_sub(self.position()).max(0);
        self.end = self.end.min(self.offset.saturating_add(ahead as usize));
        self
    }

    /// Returns the stream position of the next frame.
    #[inline]
    pub fn position(&self) -> i64 {
        self.term_begin + self.offset as i64
    }

    /// Returns the offset of the next frame in its term.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the next fragment and skips padding before it; `None` if this term has no further frame yet.
    ///
    /// # Errors
    /// The next frame has an impossible length; the cursor does not move past it.
    #[inline]
    pub fn next_fragment(&mut self) -> Result<Option<LogFragment<'a, W>>, CorruptLog> {
        while self.offset < self.end {
            let Some((first_word, next)) = self.frame_at(self.offset)? else {
                break;
            };
            let fragment = LogFragment::new(self.term, self.term_begin, self.offset, first_word);
            self.offset = next;
            if first_word.frame_type() != frame_type::PADDING {
                return Ok(Some(fragment));
            }
        }
        Ok(None)
    }

    /// Returns the next fragment if its frame has the same length, flags and type as `like`, a fragment of this cursor.
    /// Otherwise returns `None`, and the cursor does not move. Loops over messages of equal length are faster with this
    /// method: the location of the next frame does not depend on a load from the current frame.
    #[inline(always)]
    pub fn next_alike(&mut self, like: &LogFragment<'a, W>) -> Option<LogFragment<'a, W>> {
        debug_assert_eq!(
            like.term_begin, self.term_begin,
            "the fragment is in another term than the cursor"
        );
        let next = self.offset + aligned_length(like.frame_length());
        let is_there = self.offset < self.end
            && next <= self.term.len()
            && self.term.load_i64_acquire(self.offset) == like.first_word.0;
        if !is_there {
            return None;
        }
        let offset = std::mem::replace(&mut self.offset, next);
        Some(LogFragment { offset, ..*like })
    }

    /// Moves back to the start of a fragment that this cursor returned, so that the cursor returns it again.
    #[inline]
    pub fn return_to(&mut self, fragment: &LogFragment<'a, W>) {
        debug_assert_eq!(
            fragment.term_begin, self.term_begin,
            "the fragment is in another term than the cursor"
        );
        debug_assert!(
            fragment.offset <= self.offset,
            "the cursor at {} has not read the fragment at {}",
            self.offset,
            fragment.offset
        );
        self.offset = fragment.offset;
    }

    /// Moves back to `position`: the stream position at which a fragment that this cursor returned begins.
    pub fn return_to_position(&mut self, position: i64) {
        let offset = position - self.term_begin;
        assert!(
            0 <= offset && offset <= self.offset as i64,
            "position {position} was not read by this cursor"
        );
        debug_assert!(
            position % FRAME_ALIGNMENT as i64 == 0,
            "no frame can begin at the position {position}"
        );
        self.offset = offset as usize;
    }

    /// Moves back to the start of a block that this cursor returned.
    #[inline]
    pub fn return_to_block(&mut self, block: &Block<'a, W>) {
        debug_assert!(
            block.term_begin == self.term_begin && block.offset <= self.offset,
            "the cursor at {} has not read the block at {}",
            self.position(),
            block.begin_position()
        );
        self.offset = block.offset;
    }

    /// Returns the next block: consecutive whole frames, together at most `limit` bytes, without padding. A padding
    /// frame at the cursor is returned alone, even if it is longer than `limit`. `None` if there is no frame, or the
    /// first frame exceeds the limit.
    ///
    /// # Errors
    /// A frame has an impossible length. The frames before it were not consumed.
    pub fn next_block(&mut self, limit: usize) -> Result<Option<Block<'a, W>>, CorruptLog> {
        let begin = self.offset;
        let end = begin.saturating_add(limit).min(self.end);
        let mut at = begin;
        while at < end {
            let Some((first_word, next)) = self.frame_at(at)? else {
                break;
            };
            if first_word.frame_type() == frame_type::PADDING {
                if at == begin {
                    at = next;
                }
                break;
            }
            if next > end {
                break;
            }
            at = next;
        }
        debug_assert!(
            at <= self.term.len(),
            "the block at {begin} ends at {at}, which is after the end of its term"
        );
        self.offset = at;
        Ok((at > begin).then_some(Block {
            term: self.term,
            term_begin: self.term_begin,
            offset: begin,
            length: at - begin,
        }))
    }

    /// Returns the first word of the frame at `offset`, and the offset of the next frame; `None` if there is no frame
    /// yet.
    #[inline(always)]
    fn frame_at(&self, offset: usize) -> Result<Option<(FirstWord, usize)>, CorruptLog> {
        let first_word = FirstWord(self.term.load_i64_acquire(offset));
        let length = first_word.frame_length();
        if length <= 0 {
            return Ok(None);
        }
        let next = offset + aligned_length(length as usize);
        if length < HEADER_LENGTH as i32 || next > self.term.len() {
            return Err(CorruptLog::frame_length(
                self.term_begin + offset as i64,
                length,
            ));
        }
        Ok(Some((first_word, next)))
    }
}

/// Consecutive whole frames of one term.
#[derive(Debug)]
pub struct Block<'a, W> {
    term: &'a W,
    term_begin: i64,
    offset: usize,
    length: usize,
}

impl<'a, W: Words> Block<'a, W> {
    /// Returns the term that contains the frames.
    pub fn term(&self) -> &'a W {
        self.term
    }

    /// Returns the offset of the first frame in the term.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the length of the frames in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the session id in the first header.
    pub fn session_id(&self) -> i32 {
        self.term.load_i32_relaxed(self.offset + field::SESSION_ID)
    }

    /// Returns the term id in the first header.
    pub fn term_id(&self) -> i32 {
        self.term.load_i32_relaxed(self.offset + field::TERM_ID)
    }

    /// Returns the stream position of the first frame.
    pub fn begin_position(&self) -> i64 {
        self.term_begin + self.offset as i64
    }
}
