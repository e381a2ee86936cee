//! Writing frames into claimed bytes of a term.
//!
//! A frame's length word is negative while the frame is written. The release fence behind that store keeps all other bytes
//! of the frame from becoming visible before it, so that a driver who finds the frame abandoned knows its length. A run of
//! frames works alike: its first length word is minus the length of the whole run until all of it is written.

use std::ops::Range;

use super::batch::Messages;
use super::source::Source;
use crate::log::frame::{
    Framing, HEADER_LENGTH, HeaderWords, aligned_length, first_word, flags, frame_type,
    offset as field,
};
use crate::log::reader::Fragment;
use crate::words::Words;

/// Writes frames of one stream into one term.
pub(super) struct FrameWriter<'a, W> {
    pub(super) term: &'a W,
    pub(super) term_id: i32,
    /// Position of the term's first byte.
    pub(super) term_begin: i64,
    pub(super) header: HeaderWords,
    pub(super) framing: Framing,
}

impl<W: Words> FrameWriter<'_, W> {
    /// Writes a whole message from `offset` on, fragment by fragment. The bytes were claimed and are enough.
    #[inline(always)]
    pub(super) fn message<S, R>(&self, offset: usize, mut source: S, mut reserved: Option<R>)
    where
        S: Source,
        R: FnMut(Fragment<'_, W>) -> i64,
    {
        let length = source.remaining();
        if length <= self.framing.max_payload_length() {
            self.frame(
                offset,
                flags::UNFRAGMENTED,
                length,
                &mut source,
                &mut reserved,
            );
        } else {
            self.fragments(offset, source, reserved);
        }
    }

    fn fragments<S, R>(&self, mut offset: usize, mut source: S, mut reserved: Option<R>)
    where
        S: Source,
        R: FnMut(Fragment<'_, W>) -> i64,
    {
        let mut place = flags::BEGIN;
        while place & flags::END == 0 {
            let length = source.remaining().min(self.framing.max_payload_length());
            if length == source.remaining() {
                place |= flags::END;
            }
            self.frame(offset, place, length, &mut source, &mut reserved);
            offset += aligned_length(length + HEADER_LENGTH);
            place &= !flags::BEGIN;
        }
    }

    #[inline(always)]
    fn frame<S, R>(
        &self,
        offset: usize,
        place: u8,
        length: usize,
        source: &mut S,
        reserved: &mut Option<R>,
    ) where
        S: Source,
        R: FnMut(Fragment<'_, W>) -> i64,
    {
        let frame_length = HEADER_LENGTH + length;
        self.open(offset, frame_length, place, frame_type::DATA);
        source.give(length, self.term, offset + HEADER_LENGTH);
        if let Some(reserved) = reserved {
            let value = reserved(Fragment::new(
                self.term,
                self.term_begin,
                offset,
                frame_length,
            ));
            self.term
                .store_i64_relaxed(offset + field::RESERVED_VALUE, value);
        }
        self.publish(offset, frame_length);
    }

    /// Writes a frame without payload bytes that readers skip.
    pub(super) fn padding(&self, offset: usize, frame_length: usize) {
        self.open(
            offset,
            frame_length,
            flags::UNFRAGMENTED,
            frame_type::PADDING,
        );
        self.publish(offset, frame_length);
    }

    /// Writes the header of a frame that is not readable yet.
    #[inline(always)]
    pub(super) fn open(&self, offset: usize, frame_length: usize, place: u8, frame_type: u16) {
        let claimed = -(frame_length as i32);
        self.term
            .store_i64_release(offset, first_word(claimed, place, frame_type));
        self.term.fence_release();
        self.rest_of_header(offset);
    }

    /// Makes a written frame, or the run that it begins, readable.
    #[inline(always)]
    pub(super) fn publish(&self, offset: usize, frame_length: usize) {
        self.term
            .store_i32_release(offset + field::FRAME_LENGTH, frame_length as i32);
    }

    #[inline(always)]
    fn rest_of_header(&self, offset: usize) {
        self.term.store_i64_relaxed(
            offset + field::TERM_OFFSET,
            self.header.offset_and_session(offset),
        );
        self.term.store_i64_relaxed(
            offset + field::STREAM_ID,
            self.header.stream_and_term(self.term_id),
        );
    }

    /// Writes the messages of `range` as one run of `run_length` bytes from `offset` on.
    #[inline(always)]
    pub(super) fn run<M: Messages + ?Sized>(
        &self,
        offset: usize,
        run_length: usize,
        messages: &M,
        range: Range<usize>,
    ) {
        let end = offset + run_length;
        let mut first_length = 0;
        let mut at = offset;
        for index in range {
            let mut message = messages.message(index);
            let mut place = flags::BEGIN;
            while place & flags::END == 0 {
                let length = message.len().min(self.framing.max_payload_length());
                if length == message.len() {
                    place |= flags::END;
                }
                let frame_length = HEADER_LENGTH + length;
                let next = at + aligned_length(frame_length);
                assert!(next <= end, "Messages changed their lengths");
                if at == offset {
                    self.open(at, run_length, place, frame_type::DATA);
                    first_length = frame_length;
                } else {
                    let word = first_word(frame_length as i32, place, frame_type::DATA);
                    self.term.store_i64_relaxed(at, word);
                    self.rest_of_header(at);
                }
                message.give(length, self.term, at + HEADER_LENGTH);
                at = next;
                place &= !flags::BEGIN;
            }
        }
        assert!(at == end, "Messages changed their lengths");
        self.publish(offset, first_length);
    }
}
