//! [`FrameBoundaries`]: distinguishes frames from bytes that only resemble a frame.
//!
//! An aborted claim keeps its content, and a message may contain arbitrary bytes. Both can contain the header of a
//! frame at a position where no frame begins. A NAK names a position. Only a walk from the start of a real frame shows
//! whether a frame begins at this position. The sender therefore records the start positions of some frames.

use std::ops::Range;

use aeron_memory::Words;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::LogBuffers;
use aeron_memory::log::frame::{FRAME_ALIGNMENT, aligned_length, offset as field};

/// Maximum number of slices of a term. More slices need more memory. With fewer slices, walks are longer.
const MAX_SLICES: usize = 1024;
/// Minimum length of a slice in bytes.
const MIN_SLICE_LENGTH: usize = 4096;

/// Positions at which frames begin: at most one for each slice of the last `term_length` bytes of the stream.
///
/// A walk begins at most two slices before the requested position. Bytes more than a term length before the sender
/// position may have been cleaned, so a walk there would find no frame.
#[derive(Debug)]
pub struct FrameBoundaries {
    /// The recorded positions. The index of a slice is the number of the slice modulo the length of the array. The
    /// recorded position shows whether an entry belongs to the slice or to an older slice with the same index.
    noted: Box<[i64]>,
    slice_bits: u32,
}

impl FrameBoundaries {
    /// Creates the boundaries of a stream that begins at `start_position`.
    pub fn new(start_position: i64, term_length: usize) -> Self {
        let slice_length = (term_length / MAX_SLICES).max(MIN_SLICE_LENGTH);
        let mut boundaries = Self {
            noted: vec![i64::MIN; term_length / slice_length].into(),
            slice_bits: slice_length.ilog2(),
        };
        // `index` masks the number of a slice.
        debug_assert!(
            boundaries.noted.len().is_power_of_two(),
            "a term of {term_length} bytes has {} slices, which is no power of two",
            boundaries.noted.len()
        );
        boundaries.note(start_position);
        boundaries
    }

    /// Records that a frame begins at `position`. Positions must be recorded in ascending order.
    pub fn note(&mut self, position: i64) {
        let slice = position >> self.slice_bits;
        let index = self.index(slice);
        debug_assert!(
            self.noted[index] <= position,
            "the boundary {position} is recorded after the later boundary {}",
            self.noted[index]
        );
        if self.noted[index] >> self.slice_bits != slice {
            self.noted[index] = position;
        }
    }

    /// Records the frames of a GSO batch of `log` that was cut into datagrams of `datagram_length` bytes.
    pub fn note_batch(
        &mut self,
        log: &LogBuffers<SharedBuffer>,
        batch: Range<i64>,
        datagram_length: usize,
    ) {
        if datagram_length > 1 << self.slice_bits {
            self.note_frames(log, batch);
        } else {
            for datagram in batch.step_by(datagram_length) {
                self.note(datagram);
            }
        }
    }

    fn note_frames(&mut self, log: &LogBuffers<SharedBuffer>, frames: Range<i64>) {
        let term = log.term_at(frames.start);
        let mut at = frames.start;
        while at < frames.end {
            self.note(at);
            let offset = log.positions().term_offset(at);
            let frame_length = term.load_i32_acquire(offset + field::FRAME_LENGTH);
            at += aligned_length(frame_length.max(1) as usize) as i64;
        }
    }

    /// Returns whether a frame of `log` begins at `position`. The position must be less than a term length before the
    /// sender position.
    pub fn begins_frame(&self, log: &LogBuffers<SharedBuffer>, position: i64) -> bool {
        let positions = log.positions();
        let term_begin = positions.term_begin(position);
        let term = log.term_at(position);
        let mut at = self.last_before(term_begin, position);
        while at < position {
            let offset = positions.term_offset(at);
            let frame_length = term.load_i32_acquire(offset + field::FRAME_LENGTH);
            if frame_length <= 0 {
                return false;
            }
            at += aligned_length(frame_length as usize) as i64;
        }
        at == position
    }

    /// Returns the last recorded position from `term_begin` to `position`, else `term_begin`.
    fn last_before(&self, term_begin: i64, position: i64) -> i64 {
        let slices = (term_begin >> self.slice_bits)..=(position >> self.slice_bits);
        slices
            .rev()
            .map(|slice| (slice, self.noted[self.index(slice)]))
            .find(|(slice, noted)| noted >> self.slice_bits == *slice && *noted <= position)
            .map_or(term_begin, |(_, noted)| noted)
    }

    fn index(&self, slice: i64) -> usize {
        slice as usize & (self.noted.len() - 1)
    }
}

/// Returns the last position at or before `position` at which a frame could begin.
pub fn aligned_position(position: i64) -> i64 {
    position & !(FRAME_ALIGNMENT as i64 - 1)
}
