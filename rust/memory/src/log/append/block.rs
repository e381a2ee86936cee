//! Appending a block of frames that were formatted elsewhere, such as in a recording of the same stream.

use super::exclusive::ExclusiveAppender;
use super::{AppendError, InvalidBlock};
use crate::log::frame::{HEADER_LENGTH, aligned_length, frame_type, offset as field};
use crate::words::Words;

impl<W: Words> ExclusiveAppender<W> {
    /// Appends a block of frames which continues the stream at its position; answers the position after it.
    ///
    /// The first header has this stream's session and stream ids and the term id and offset that come next; the frames fill
    /// the block exactly. The whole block becomes readable at once.
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    pub fn offer_block(&mut self, limit: i64, block: &[u8]) -> Result<i64, AppendError> {
        if self.term_offset() == self.log().term_length() && !self.next_term() {
            return Err(AppendError::MaxPositionExceeded);
        }
        self.check_limit(limit, block.len())?;
        self.check_block(block).map_err(AppendError::InvalidBlock)?;
        let offset = self.claim(block.len())?;
        let writer = self.writer();
        let (first_word, rest) = block.split_at(8);
        writer.open(offset, block.len(), 0, frame_type::DATA);
        writer.term.copy_in(offset + 8, rest);
        let first_word = i64::from_le_bytes(first_word.try_into().expect("eight bytes"));
        writer.term.store_i64_release(offset, first_word);
        Ok(self.position())
    }

    fn check_block(&self, block: &[u8]) -> Result<(), InvalidBlock> {
        let remaining = self.log().term_length() - self.term_offset();
        if block.len() > remaining {
            return Err(InvalidBlock::TooLong {
                length: block.len(),
                remaining,
            });
        }
        check_frames(block)?;
        let header = self.log().header();
        check_field(
            block,
            "term offset",
            field::TERM_OFFSET,
            self.term_offset() as i32,
        )?;
        check_field(block, "session id", field::SESSION_ID, header.session_id())?;
        check_field(block, "stream id", field::STREAM_ID, header.stream_id())?;
        check_field(block, "term id", field::TERM_ID, self.term_id())?;
        let found = u16::from_le_bytes([block[field::TYPE], block[field::TYPE + 1]]);
        if found != frame_type::DATA {
            return Err(InvalidBlock::Field {
                field: "type",
                found: found.into(),
                expected: frame_type::DATA.into(),
            });
        }
        Ok(())
    }
}

/// Checks that the frames of a block fill it exactly. An empty block has no first frame, which is wrong as well.
fn check_frames(block: &[u8]) -> Result<(), InvalidBlock> {
    let mut at = 0;
    loop {
        let header = block
            .get(at..at + HEADER_LENGTH)
            .ok_or(InvalidBlock::Frames(at))?;
        let length = word(header, field::FRAME_LENGTH);
        let aligned = aligned_length(length.max(0) as usize);
        if length < HEADER_LENGTH as i32 || aligned > block.len() - at {
            return Err(InvalidBlock::Frames(at));
        }
        at += aligned;
        if at == block.len() {
            return Ok(());
        }
    }
}

fn check_field(
    block: &[u8],
    field: &'static str,
    offset: usize,
    expected: i32,
) -> Result<(), InvalidBlock> {
    let found = word(block, offset);
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

fn word(bytes: &[u8], offset: usize) -> i32 {
    i32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}
