//! Appends a block of frames that the caller writes directly into the term, for example by reading a file.

use super::exclusive::ExclusiveAppender;
use super::{AppendError, InvalidBlock};
use crate::log::frame::{FirstWord, HEADER_LENGTH, aligned_length, frame_type, offset as field};
use crate::words::Words;

/// Bytes of the active term that no reader accesses yet. [`ExclusiveAppender::fill_block`] passes them to its caller.
#[derive(Debug)]
pub struct BlockSpace<'a, W> {
    term: &'a W,
    offset: usize,
    length: usize,
}

/// The frames that a caller of [`ExclusiveAppender::fill_block`] has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilledBlock {
    /// Length in bytes of all frames: the sum of their aligned lengths; 0 if there is no frame.
    pub length: usize,
    /// First word of the first frame's header.
    pub first_word: FirstWord,
}

/// Reason why [`ExclusiveAppender::fill_block`] appended nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillBlockError<A, E> {
    /// The stream cannot accept data now, or cannot accept this block.
    Append(A),
    /// The function `fill` of the caller returned this error.
    Fill(E),
}

impl<A, E> FillBlockError<A, E> {
    /// Converts an error of the stream.
    pub fn map_append<B: From<A>>(self) -> FillBlockError<B, E> {
        match self {
            Self::Append(error) => FillBlockError::Append(error.into()),
            Self::Fill(error) => FillBlockError::Fill(error),
        }
    }
}

impl<'a, W> BlockSpace<'a, W> {
    /// Returns the memory of the term.
    pub fn term(&self) -> &'a W {
        self.term
    }

    /// Returns the offset of the space in the term. The caller must leave the first eight bytes zero: readers stop
    /// there until the block is complete.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the length of the space in bytes, at least the length of a header.
    pub fn length(&self) -> usize {
        self.length
    }
}

impl<W: Words> ExclusiveAppender<W> {
    /// Appends frames that `fill` writes directly into the term, in a space of at most `max_length` bytes. Returns the
    /// position after the frames.
    ///
    /// `fill` writes everything except the first word of the first frame, and returns that word. The word is stored
    /// last and makes the whole block readable at once. The frames must have this stream's session id and stream id,
    /// and the term id and term offset of their own location. `fill` may also change the bytes of the space after the
    /// block: they are zeroed. If `fill` fails or writes no frame, nothing is appended.
    ///
    /// # Errors
    /// See [`FillBlockError`]; nothing was appended.
    pub fn fill_block<E>(
        &mut self,
        limit: i64,
        max_length: usize,
        fill: impl FnOnce(&BlockSpace<'_, W>) -> Result<FilledBlock, E>,
    ) -> Result<i64, FillBlockError<AppendError, E>> {
        self.check_limit(limit, max_length)
            .map_err(FillBlockError::Append)?;
        if self.term_offset() == self.log().term_length() && !self.next_term() {
            return Err(FillBlockError::Append(AppendError::MaxPositionExceeded));
        }
        let space = BlockSpace {
            term: self.writer().term,
            offset: self.term_offset(),
            length: max_length.min(self.log().term_length() - self.term_offset()),
        };
        let filled = fill(&space).map_err(FillBlockError::Fill);
        let checked = filled.and_then(|filled| {
            let checked = self.check_filled(&space, filled);
            checked.map_err(|fault| FillBlockError::Append(AppendError::InvalidBlock(fault)))
        });
        let length = checked.as_ref().map_or(0, |filled| filled.length);
        // As soon as the first word of the block is stored, readers continue after the block. So the bytes there must
        // be zero before that store.
        let rest = (space.offset + length)..(space.offset + space.length);
        space.term.fill_zero(rest.start, rest.len());
        let (filled, written_at) = (checked?, space.offset);
        if length == 0 {
            return Ok(self.position());
        }
        let offset = self.claim(length).map_err(FillBlockError::Append)?;
        debug_assert_eq!(
            offset, written_at,
            "the block was written at another offset than the one that was claimed"
        );
        self.writer()
            .term
            .store_i64_release(offset + field::FRAME_LENGTH, filled.first_word.0);
        Ok(self.position())
    }

    /// Checks that the block is within its space, and that its first frame continues the stream.
    fn check_filled(
        &self,
        space: &BlockSpace<'_, W>,
        filled: FilledBlock,
    ) -> Result<FilledBlock, InvalidBlock> {
        if filled.length == 0 {
            return Ok(filled);
        }
        if filled.length > space.length {
            return Err(InvalidBlock::TooLong {
                length: filled.length,
                remaining: space.length,
            });
        }
        let first_length = usize::try_from(filled.first_word.frame_length()).unwrap_or(0);
        let is_whole = (HEADER_LENGTH..=filled.length).contains(&first_length)
            && aligned_length(first_length) <= filled.length
            && filled.length == aligned_length(filled.length)
            && filled.first_word.frame_type() == frame_type::DATA;
        let at = space.offset + field::TERM_OFFSET;
        let found = [at, at + 8].map(|at| space.term.load_i64_relaxed(at));
        match is_whole && found == self.writer().rest_of_header(space.offset) {
            true => Ok(filled),
            false => Err(InvalidBlock::Frames(0)),
        }
    }
}
