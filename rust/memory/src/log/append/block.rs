//! Appends a block of frames that were formatted elsewhere, for example in a recording of the same stream.

use aeron_layout::frame::DataHeaderLayout;
use aeron_layout::{I32, Layout};

use super::exclusive::ExclusiveAppender;
use super::{AppendError, InvalidBlock};
use crate::log::frame::{HEADER_LENGTH, aligned_length, frame_type, offset as field};
use crate::words::Words;

impl<W: Words> ExclusiveAppender<W> {
    /// Appends a block of frames that continues the stream at its position. Returns the position after the block.
    ///
    /// The first frame must be a data frame with this stream's session id and stream id, and with the term id and term
    /// offset of the stream's position. The frames must fill the block exactly. The whole block becomes readable at
    /// once.
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    pub fn offer_block(&mut self, limit: i64, block: &[u8]) -> Result<i64, AppendError> {
        if self.term_offset() == self.log().term_length() && !self.next_term() {
            return Err(AppendError::MaxPositionExceeded);
        }
        self.check_limit(limit, block.len())?;
        let header = self.check_block(block).map_err(AppendError::InvalidBlock)?;
        let offset = self.claim(block.len())?;
        debug_assert_eq!(
            offset as i32,
            header.term_offset.get(),
            "the block was formatted for another offset than the one that was claimed"
        );
        let writer = self.writer();
        writer.open(offset, block.len(), 0, frame_type::DATA);
        let rest = &block[field::TERM_OFFSET..];
        writer.term.copy_in(offset + field::TERM_OFFSET, rest);
        let [first_word, ..] = header.words();
        writer
            .term
            .store_i64_release(offset + field::FRAME_LENGTH, first_word);
        Ok(self.position())
    }

    /// Validates a block, and returns the header of its first frame.
    fn check_block<'a>(&self, block: &'a [u8]) -> Result<&'a DataHeaderLayout, InvalidBlock> {
        let remaining = self.log().term_length() - self.term_offset();
        if block.len() > remaining {
            return Err(InvalidBlock::TooLong {
                length: block.len(),
                remaining,
            });
        }
        let first = check_frames(block)?;
        let ids = self.log().header();
        check_field("term offset", first.term_offset, self.term_offset() as i32)?;
        check_field("session id", first.session_id, ids.session_id())?;
        check_field("stream id", first.stream_id, ids.stream_id())?;
        check_field("term id", first.term_id, self.term_id())?;
        let found = first.header.frame_type.get() as u16;
        if found != frame_type::DATA {
            return Err(InvalidBlock::Field {
                field: "type",
                found: found.into(),
                expected: frame_type::DATA.into(),
            });
        }
        Ok(first)
    }
}

/// Checks that the frames of a block fill the block exactly, and returns the header of the first frame. An empty block
/// is refused, because it has no first frame.
fn check_frames(block: &[u8]) -> Result<&DataHeaderLayout, InvalidBlock> {
    let mut at = 0;
    loop {
        let header = DataHeaderLayout::first_in(&block[at..]).ok_or(InvalidBlock::Frames(at))?;
        let length = header.header.frame_length.get();
        let aligned = aligned_length(length.max(0) as usize);
        if length < HEADER_LENGTH as i32 || aligned > block.len() - at {
            return Err(InvalidBlock::Frames(at));
        }
        at += aligned;
        if at == block.len() {
            return DataHeaderLayout::first_in(block).ok_or(InvalidBlock::Frames(0));
        }
    }
}

fn check_field(field: &'static str, found: I32, expected: i32) -> Result<(), InvalidBlock> {
    let found = found.get();
    if found == expected {
        Ok(())
    } else {
        Err(InvalidBlock::Field {
            field,
            found,
            expected,
        })
    }
}
