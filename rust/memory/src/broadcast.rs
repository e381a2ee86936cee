//! Broadcast buffer: transmits the driver's events to all clients (`docs/spec/01-memory-layouts.md`, section 4).
//!
//! One transmitter overwrites the oldest records. Receivers only read, and detect afterwards whether the transmitter
//! overtook them. A record is a 32-bit length, a 32-bit type and the payload. It begins on an 8-byte boundary and never
//! wraps. Both sides access the same bytes at the same time, so records are written and copied with relaxed accesses.
//! Before the transmitter overwrites bytes, it announces the position up to which it will write (`tail_intent`). After
//! copying a record, a receiver loads the announced position. The copy is valid only if the announced write does not
//! reach the record.

use aeron_layout::buffers::{BroadcastTrailerLayout, RECORD_ALIGNMENT, RecordHeaderLayout};
use aeron_layout::{I32, I64, offset};

use crate::words::{Words, align};

/// Length of the trailer after the data area, in bytes.
pub const TRAILER_LENGTH: usize = BroadcastTrailerLayout::LENGTH;
/// Length of the header before the payload of a record, in bytes.
pub const RECORD_HEADER_LENGTH: usize = RecordHeaderLayout::LENGTH;
/// Type of a record that only fills the space before the end.
pub const PADDING_TYPE_ID: i32 = -1;

// Offsets in a record.
const LENGTH_OFFSET: usize = offset!(RecordHeaderLayout, length: I32);
const TYPE_OFFSET: usize = offset!(RecordHeaderLayout, msg_type_id: I32);

// Offsets in the trailer.
const TAIL_INTENT_OFFSET: usize = offset!(BroadcastTrailerLayout, tail_intent: I64);
const TAIL_OFFSET: usize = offset!(BroadcastTrailerLayout, tail: I64);
const LATEST_OFFSET: usize = offset!(BroadcastTrailerLayout, latest: I64);

/// The section has a length that no broadcast buffer can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "broadcast buffer of {length} bytes: length - {TRAILER_LENGTH} must be a power of two from 8 to 2^30"
)]
pub struct InvalidBroadcastLength {
    /// Length of the section in bytes.
    pub length: usize,
}

/// Reason why a message was not transmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransmitError {
    /// The payload exceeds an eighth of the capacity.
    #[error("message of {length} bytes exceeds the maximum of {max} bytes")]
    TooLong {
        /// Length of the payload in bytes.
        length: usize,
        /// Maximum payload length in bytes.
        max: usize,
    },
    /// Types below 1 are reserved.
    #[error("message type id {0} must be at least 1")]
    InvalidType(i32),
}

/// Reason why a receiver lost messages. The receiver continues with the next message that is transmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// The transmitter overwrote messages that were not read yet.
    #[error("unable to keep up with broadcast")]
    Lapped,
    /// A record has an impossible length.
    #[error(
        "corrupt record in the broadcast buffer: length {length}, type {msg_type_id} at position {position}"
    )]
    Corrupt {
        /// Position of the record.
        position: i64,
        /// Length field of the record.
        length: i32,
        /// Type field of the record.
        msg_type_id: i32,
    },
}

/// Data area and trailer, used by both sides.
#[derive(Clone, Debug)]
struct Broadcast<W> {
    words: W,
    capacity: usize,
}

/// The only writer of a broadcast buffer.
#[derive(Debug)]
pub struct BroadcastTransmitter<W> {
    buffer: Broadcast<W>,
}

/// One of many readers, with a separate position and a private copy of each message.
#[derive(Debug)]
pub struct BroadcastReceiver<W> {
    buffer: Broadcast<W>,
    next_record: i64,
    lapped_count: u64,
    scratch: Vec<u8>,
}

impl<W: Words> BroadcastTransmitter<W> {
    /// Creates the transmitter of the buffer in `words`. There must be only one transmitter.
    pub fn new(words: W) -> Result<Self, InvalidBroadcastLength> {
        Ok(Self {
            buffer: Broadcast::new(words)?,
        })
    }

    /// Returns the maximum payload length in bytes.
    pub fn max_message_length(&self) -> usize {
        self.buffer.max_message_length()
    }

    /// Sends one message to all receivers.
    pub fn transmit(&mut self, msg_type_id: i32, payload: &[u8]) -> Result<(), TransmitError> {
        let max = self.max_message_length();
        if msg_type_id < 1 {
            return Err(TransmitError::InvalidType(msg_type_id));
        }
        if payload.len() > max {
            return Err(TransmitError::TooLong {
                length: payload.len(),
                max,
            });
        }
        let Broadcast { words, capacity } = &self.buffer;
        let record_length = RECORD_HEADER_LENGTH + payload.len();
        let need = align(record_length, RECORD_ALIGNMENT);
        let mut start = words.load_i64_relaxed(capacity + TAIL_OFFSET);
        let mut index = self.buffer.index(start);
        let to_end = capacity - index;
        let padding = if to_end < need { to_end } else { 0 };
        let tail = start.wrapping_add((padding + need) as i64);

        self.announce(tail);
        if padding > 0 {
            self.buffer.put_header(index, padding, PADDING_TYPE_ID);
            start = start.wrapping_add(padding as i64);
            index = 0;
        }
        debug_assert!(
            index + need <= *capacity,
            "a record of {need} bytes at {index} would wrap around the end of the buffer"
        );
        self.buffer.put_header(index, record_length, msg_type_id);
        words.copy_in_relaxed(index + RECORD_HEADER_LENGTH, payload);
        // The tail is last. A receiver that starts between the two stores begins at this record and waits for the tail.
        words.store_i64_release(capacity + LATEST_OFFSET, start);
        words.store_i64_release(capacity + TAIL_OFFSET, tail);
        Ok(())
    }

    /// Announces the position up to which the buffer will be overwritten. The fence makes the announcement visible
    /// before the record: a reader that sees a byte of the record also sees the announcement.
    fn announce(&self, tail_intent: i64) {
        let Broadcast { words, capacity } = &self.buffer;
        words.store_i64_release(capacity + TAIL_INTENT_OFFSET, tail_intent);
        words.fence_release();
    }
}

impl<W: Words> BroadcastReceiver<W> {
    /// Creates a receiver that starts with the newest message, if there is one.
    pub fn new(words: W) -> Result<Self, InvalidBroadcastLength> {
        let buffer = Broadcast::new(words)?;
        let latest = buffer
            .words
            .load_i64_acquire(buffer.capacity + LATEST_OFFSET);
        Ok(Self {
            next_record: latest,
            lapped_count: 0,
            scratch: vec![0; buffer.max_message_length()],
            buffer,
        })
    }

    /// Returns the number of times that the transmitter has overtaken this receiver.
    pub fn lapped_count(&self) -> u64 {
        self.lapped_count
    }

    /// Calls `handler(msg_type_id, payload)` with the next message, if there is one. Returns whether a message was
    /// received.
    ///
    /// An error is returned once. The messages up to the newest message at that time are lost.
    pub fn receive(&mut self, handler: impl FnOnce(i32, &[u8])) -> Result<bool, ReceiveError> {
        match self.copy_next() {
            Ok(None) => Ok(false),
            Ok(Some((msg_type_id, length))) => {
                handler(msg_type_id, &self.scratch[..length]);
                Ok(true)
            }
            Err(error) => {
                self.next_record = self.buffer.tail();
                self.lapped_count += u64::from(error == ReceiveError::Lapped);
                Err(error)
            }
        }
    }

    /// Copies the next message into `scratch`. Returns the message's type and length.
    fn copy_next(&mut self) -> Result<Option<(i32, usize)>, ReceiveError> {
        let mut cursor = self.next_record;
        if self.buffer.tail() <= cursor {
            return Ok(None);
        }
        let (mut length, mut msg_type_id) = self.buffer.header(cursor)?;
        if msg_type_id == PADDING_TYPE_ID {
            cursor = cursor.wrapping_add(align(length, RECORD_ALIGNMENT) as i64);
            (length, msg_type_id) = self.buffer.header(cursor)?;
        }
        let payload_length = length - RECORD_HEADER_LENGTH;
        let payload_index = self.buffer.index(cursor) + RECORD_HEADER_LENGTH;
        let Some(payload) = self.scratch.get_mut(..payload_length) else {
            return Err(ReceiveError::Corrupt {
                position: cursor,
                length: length as i32,
                msg_type_id,
            });
        };
        self.buffer.words.copy_out_relaxed(payload_index, payload);
        self.buffer.validate(cursor)?;
        debug_assert!(
            payload_index + payload_length <= self.buffer.capacity,
            "a payload of {payload_length} bytes at {payload_index} includes the trailer of the buffer"
        );
        self.next_record = cursor.wrapping_add(align(length, RECORD_ALIGNMENT) as i64);
        Ok(Some((msg_type_id, payload_length)))
    }
}

impl<W: Words> Broadcast<W> {
    fn new(words: W) -> Result<Self, InvalidBroadcastLength> {
        let length = words.len();
        let capacity = length.saturating_sub(TRAILER_LENGTH);
        if !capacity.is_power_of_two() || !(RECORD_ALIGNMENT..=1 << 30).contains(&capacity) {
            return Err(InvalidBroadcastLength { length });
        }
        Ok(Self { words, capacity })
    }

    /// Returns an eighth of the capacity, or less if the header would not fit beside the payload.
    fn max_message_length(&self) -> usize {
        (self.capacity / 8).min(self.capacity - RECORD_HEADER_LENGTH)
    }

    /// Returns the index of the record at `position`. Clears the low bits, so that a corrupt position gives an aligned
    /// index.
    fn index(&self, position: i64) -> usize {
        position as usize & (self.capacity - RECORD_ALIGNMENT)
    }

    fn tail(&self) -> i64 {
        self.words.load_i64_acquire(self.capacity + TAIL_OFFSET)
    }

    fn put_header(&self, index: usize, length: usize, msg_type_id: i32) {
        self.words
            .store_i32_relaxed(index + LENGTH_OFFSET, length as i32);
        self.words
            .store_i32_relaxed(index + TYPE_OFFSET, msg_type_id);
    }

    /// Returns length and type of the record at `position`. Checks that both were not overwritten during the read, and
    /// that the record is inside the data area.
    fn header(&self, position: i64) -> Result<(usize, i32), ReceiveError> {
        let index = self.index(position);
        let length = self.words.load_i32_relaxed(index + LENGTH_OFFSET);
        let msg_type_id = self.words.load_i32_relaxed(index + TYPE_OFFSET);
        self.validate(position)?;
        match usize::try_from(length) {
            Ok(fits) if (RECORD_HEADER_LENGTH..=self.capacity - index).contains(&fits) => {
                Ok((fits, msg_type_id))
            }
            _ => Err(ReceiveError::Corrupt {
                position,
                length,
                msg_type_id,
            }),
        }
    }

    /// Checks that the transmitter has not announced a write over the bytes that were read from `position` on.
    fn validate(&self, position: i64) -> Result<(), ReceiveError> {
        self.words.fence_acquire();
        let tail_intent = self
            .words
            .load_i64_acquire(self.capacity + TAIL_INTENT_OFFSET);
        match tail_intent.wrapping_sub(position) < self.capacity as i64 {
            true => Ok(()),
            false => Err(ReceiveError::Lapped),
        }
    }
}
