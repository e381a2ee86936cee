//! [`FrameWriter`]: writes frames into claimed bytes of a term. Both appenders call it.
//!
//! A frame's length word is negative while the frame is being written. A release fence after the store of the negative
//! length ensures that the other bytes of the frame become visible after this length. So if a publisher dies, the
//! driver can read the length of the abandoned frame. A run of frames works in the same way: until the whole run is
//! written, its first length word is minus the length of the run.

use std::ops::Range;

use super::batch::MessageBatch;
use super::source::MessageSource;
use crate::log::buffers::LogBuffers;
use crate::log::frame::{
    FRAME_ALIGNMENT, FirstWord, Framing, HEADER_LENGTH, aligned_length, flags, frame_type,
    offset as field,
};
use crate::log::reader::LogFragment;
use crate::words::Words;

/// Writes frames of one stream into one term.
pub(super) struct FrameWriter<'a, W> {
    pub(super) log: &'a LogBuffers<W>,
    pub(super) term: &'a W,
    pub(super) term_id: i32,
    /// Position of the term's first byte.
    pub(super) term_begin: i64,
}

impl<W> Clone for FrameWriter<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for FrameWriter<'_, W> {}

impl<W: Words> FrameWriter<'_, W> {
    /// Writes a whole message from `offset` on, fragment by fragment. The caller has claimed enough bytes.
    #[inline(always)]
    pub(super) fn message<S, R>(self, offset: usize, mut source: S, mut reserved: Option<R>)
    where
        S: MessageSource,
        R: FnMut(LogFragment<'_, W>) -> i64,
    {
        let length = source.remaining();
        if length <= self.log.framing().max_payload_length() {
            let place = flags::UNFRAGMENTED;
            self.frame(offset, place, length, &mut source, &mut reserved);
        } else {
            self.fragments(offset, source, reserved);
        }
    }

    #[inline(never)]
    fn fragments<S, R>(self, mut offset: usize, mut source: S, mut reserved: Option<R>)
    where
        S: MessageSource,
        R: FnMut(LogFragment<'_, W>) -> i64,
    {
        for (place, length) in Fragments::new(self.log.framing(), source.remaining()) {
            self.frame(offset, place, length, &mut source, &mut reserved);
            offset += aligned_length(length + HEADER_LENGTH);
        }
        debug_assert_eq!(source.remaining(), 0, "bytes of the message are missing");
    }

    #[inline(always)]
    fn frame<S, R>(
        self,
        offset: usize,
        place: u8,
        length: usize,
        source: &mut S,
        reserved: &mut Option<R>,
    ) where
        S: MessageSource,
        R: FnMut(LogFragment<'_, W>) -> i64,
    {
        let frame_length = HEADER_LENGTH + length;
        self.open(offset, frame_length, place, frame_type::DATA);
        source.give(length, self.term, offset + HEADER_LENGTH);
        if let Some(reserved) = reserved {
            let written = FirstWord::new(frame_length as i32, place, frame_type::DATA);
            let fragment = LogFragment::new(self.term, self.term_begin, offset, written);
            self.term
                .store_i64_relaxed(offset + field::RESERVED_VALUE, reserved(fragment));
        }
        self.publish(offset, frame_length);
    }

    /// Writes a frame that readers skip: only its header, and no payload bytes.
    pub(super) fn padding(self, offset: usize, frame_length: usize) {
        debug_assert!(
            frame_length >= HEADER_LENGTH,
            "padding of {frame_length} bytes has no room for its header"
        );
        let place = flags::UNFRAGMENTED;
        self.open(offset, frame_length, place, frame_type::PADDING);
        self.publish(offset, frame_length);
    }

    /// Writes the header of a frame that is not readable yet.
    #[inline(always)]
    pub(super) fn open(self, offset: usize, frame_length: usize, place: u8, frame_type: u16) {
        debug_assert!(
            offset.is_multiple_of(FRAME_ALIGNMENT),
            "no frame can begin at the offset {offset}"
        );
        debug_assert!(
            offset + frame_length <= self.term.len(),
            "a frame of {frame_length} bytes at {offset} ends after its term"
        );
        let first = FirstWord::new(-(frame_length as i32), place, frame_type);
        // The negative length comes first. If the publisher dies now, the driver finds it and knows the claim's length.
        self.term.store_i64_release(offset, first.0);
        self.term.fence_release();
        self.term
            .store_i64s_relaxed(offset + field::TERM_OFFSET, self.rest_of_header(offset));
    }

    /// Makes a written frame readable. If a run begins with this frame, the whole run becomes readable.
    #[inline(always)]
    pub(super) fn publish(self, offset: usize, frame_length: usize) {
        self.term
            .store_i32_release(offset + field::FRAME_LENGTH, frame_length as i32);
    }

    /// Writes the messages of `range` as one run of `run_length` bytes from `offset` on.
    #[inline(always)]
    pub(super) fn run<M: MessageBatch + ?Sized>(
        self,
        offset: usize,
        run_length: usize,
        messages: &M,
        range: Range<usize>,
    ) {
        let max_payload_length = self.log.framing().max_payload_length();
        let first_length = messages.message(range.start).len().min(max_payload_length);
        let run = offset..offset + run_length;
        let mut at = offset;
        for index in range {
            let message = messages.message(index);
            let reserved_value = || messages.reserved_value(index);
            at = if message.len() <= max_payload_length {
                self.run_frame(&run, at, flags::UNFRAGMENTED, message, reserved_value)
            } else {
                self.run_fragments(&run, at, message, reserved_value)
            };
        }
        assert!(at == run.end, "{CHANGED_LENGTHS}");
        self.publish(offset, HEADER_LENGTH + first_length);
    }

    #[inline(never)]
    fn run_fragments(
        self,
        run: &Range<usize>,
        mut at: usize,
        message: &[u8],
        reserved_value: impl Fn() -> i64,
    ) -> usize {
        let mut rest = message;
        for (place, length) in Fragments::new(self.log.framing(), message.len()) {
            let (payload, later) = rest.split_at(length);
            at = self.run_frame(run, at, place, payload, &reserved_value);
            rest = later;
        }
        at
    }

    /// Writes one frame of a run. Returns the offset of the next frame.
    #[inline(always)]
    fn run_frame(
        self,
        run: &Range<usize>,
        at: usize,
        place: u8,
        payload: &[u8],
        reserved_value: impl Fn() -> i64,
    ) -> usize {
        let frame_length = HEADER_LENGTH + payload.len();
        let next = at + aligned_length(frame_length);
        assert!(next <= run.end, "{CHANGED_LENGTHS}");
        if at == run.start {
            self.open(at, run.len(), place, frame_type::DATA);
        } else {
            let first = FirstWord::new(frame_length as i32, place, frame_type::DATA);
            let [second, third] = self.rest_of_header(at);
            self.term.store_i64s_relaxed(at, [first.0, second, third]);
        }
        self.term.copy_in(at + HEADER_LENGTH, payload);
        let reserved_value = reserved_value();
        // The driver has zeroed the term, so a reserved value of 0 is already there.
        if reserved_value != 0 {
            self.term
                .store_i64_relaxed(at + field::RESERVED_VALUE, reserved_value);
        }
        next
    }

    /// Returns the 64-bit words at the offsets 8 and 16 of a frame's header.
    #[inline(always)]
    pub(super) fn rest_of_header(self, offset: usize) -> [i64; 2] {
        let header = self.log.header();
        [
            header.offset_and_session(offset),
            header.stream_and_term(self.term_id),
        ]
    }
}

const CHANGED_LENGTHS: &str = "the messages of a batch changed their lengths while it was appended";

/// The flags and payload lengths of a fragmented message's frames.
struct Fragments {
    max_payload_length: usize,
    remaining: usize,
    place: u8,
}

impl Fragments {
    /// Splits a message of `length` bytes, which is longer than one frame.
    fn new(framing: Framing, length: usize) -> Self {
        // A single frame with the flags of a fragment would be a part of a message for readers.
        debug_assert!(
            length > framing.max_payload_length(),
            "a message of {length} bytes fits into one frame"
        );
        Self {
            max_payload_length: framing.max_payload_length(),
            remaining: length,
            place: flags::BEGIN,
        }
    }
}

impl Iterator for Fragments {
    type Item = (u8, usize);

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            return None;
        }
        let length = self.remaining.min(self.max_payload_length);
        self.remaining -= length;
        let end = if self.remaining == 0 { flags::END } else { 0 };
        let place = std::mem::take(&mut self.place) | end;
        Some((place, length))
    }
}
