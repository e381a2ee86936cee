//! Many-to-one ring buffer: transports the commands of all clients to the driver (`docs/spec/01-memory-layouts.md`,
//! section 3).
//!
//! The data area is followed by the trailer. A record is a 32-bit length (0: no record yet, negative: being written,
//! positive: complete), a 32-bit type and the payload. A record begins on an 8-byte boundary and never wraps. Producers
//! of any process claim space with a compare-and-swap of the tail. The only consumer zeroes the bytes that it has read,
//! and then releases the head. So on the next lap, the length 0 means "not yet written" again.
//!
//! No function panics because of a value that another process writes: positions are masked into the buffer, and lengths
//! are read once and checked.

mod consumer;
mod producer;

pub use consumer::{CorruptRecord, RecordAction, RingConsumer};
pub use producer::{ClaimError, CommitError};

use aeron_layout::buffers::{RECORD_ALIGNMENT, RecordHeaderLayout, RingTrailerLayout};
use aeron_layout::{I32, I64, offset};

use crate::words::Words;

/// Length of the trailer after the data area, in bytes.
pub const TRAILER_LENGTH: usize = RingTrailerLayout::LENGTH;
/// Length of the header before the payload of a record, in bytes.
pub const RECORD_HEADER_LENGTH: usize = RecordHeaderLayout::LENGTH;
/// Type of a record that only fills space.
pub const PADDING_TYPE_ID: i32 = -1;

// Offsets in a record.
const LENGTH_OFFSET: usize = offset!(RecordHeaderLayout, length: I32);
const TYPE_OFFSET: usize = offset!(RecordHeaderLayout, msg_type_id: I32);

// Offsets in the trailer.
const TAIL_POSITION_OFFSET: usize = offset!(RingTrailerLayout, tail_position: I64);
const HEAD_CACHE_POSITION_OFFSET: usize = offset!(RingTrailerLayout, head_cache_position: I64);
const HEAD_POSITION_OFFSET: usize = offset!(RingTrailerLayout, head_position: I64);
const CORRELATION_COUNTER_OFFSET: usize = offset!(RingTrailerLayout, correlation_counter: I64);
const CONSUMER_HEARTBEAT_OFFSET: usize = offset!(RingTrailerLayout, consumer_heartbeat_ms: I64);

/// The section has a length that no ring buffer can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "ring buffer of {length} bytes: length - {TRAILER_LENGTH} must be a power of two from 8 to 2^30"
)]
pub struct InvalidRingLength {
    /// Length of the section in bytes.
    pub length: usize,
}

/// A ring buffer. May be used by any number of threads and processes at once.
#[derive(Clone, Debug)]
pub struct ManyToOneRing<W> {
    words: W,
    capacity: usize,
}

impl<W: Words> ManyToOneRing<W> {
    /// Creates the ring in `words`, which consist of the data area and the trailer. The length of the data area is a
    /// power of two.
    pub fn new(words: W) -> Result<Self, InvalidRingLength> {
        let length = words.len();
        let capacity = length.saturating_sub(TRAILER_LENGTH);
        if !capacity.is_power_of_two() || !(RECORD_ALIGNMENT..=1 << 30).contains(&capacity) {
            return Err(InvalidRingLength { length });
        }
        Ok(Self { words, capacity })
    }

    /// Returns the length of the data area in bytes, a power of two.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the maximum payload length in bytes: an eighth of the capacity (at least 8, if 8 fit).
    pub fn max_message_length(&self) -> usize {
        if self.capacity == RECORD_ALIGNMENT {
            return 0;
        }
        (self.capacity / 8).max(8)
    }

    /// Returns the memory of data area and trailer. Write the payload of a claim through these words.
    pub fn words(&self) -> &W {
        &self.words
    }

    /// Returns a number that is unique among all clients and drivers of this ring.
    pub fn next_correlation_id(&self) -> i64 {
        self.words
            .fetch_add_i64(self.trailer(CORRELATION_COUNTER_OFFSET), 1)
    }

    /// Returns the time of the consumer's last heartbeat in epoch milliseconds; 0 before the first heartbeat, -1 after
    /// the consumer closed.
    pub fn consumer_heartbeat_ms(&self) -> i64 {
        self.words
            .load_i64_acquire(self.trailer(CONSUMER_HEARTBEAT_OFFSET))
    }

    /// Stores a heartbeat of the consumer and publishes all its earlier stores.
    pub fn set_consumer_heartbeat_ms(&self, epoch_ms: i64) {
        self.words
            .store_i64_release(self.trailer(CONSUMER_HEARTBEAT_OFFSET), epoch_ms);
    }

    /// Returns the number of bytes claimed since the ring was created.
    pub fn producer_position(&self) -> i64 {
        self.words
            .load_i64_acquire(self.trailer(TAIL_POSITION_OFFSET))
    }

    /// Returns the number of bytes consumed since the ring was created.
    pub fn consumer_position(&self) -> i64 {
        self.words
            .load_i64_acquire(self.trailer(HEAD_POSITION_OFFSET))
    }

    /// Returns the number of bytes claimed and not yet consumed, from 0 to the capacity.
    pub fn size(&self) -> usize {
        let mut head = self.consumer_position();
        loop {
            let tail = self.producer_position();
            let head_after = self.consumer_position();
            if head == head_after {
                let size = tail.wrapping_sub(head).clamp(0, self.capacity as i64);
                return size as usize;
            }
            head = head_after;
        }
    }

    fn trailer(&self, offset: usize) -> usize {
        self.capacity + offset
    }

    /// Returns the index of the record at `position`. Clears the low bits, so that a corrupt position gives an aligned
    /// index.
    fn index(&self, position: i64) -> usize {
        position as usize & (self.capacity - RECORD_ALIGNMENT)
    }

    /// Turns the `length` bytes at `index`, which no producer writes any more, into a padding record.
    fn pad(&self, index: usize, length: usize) {
        self.words
            .store_i32_relaxed(index + TYPE_OFFSET, PADDING_TYPE_ID);
        self.words
            .store_i32_release(index + LENGTH_OFFSET, length as i32);
    }
}
