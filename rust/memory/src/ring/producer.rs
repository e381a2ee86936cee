//! Writes into the ring: claims, fills and publishes records. Clients call these methods to send commands.

use aeron_layout::buffers::RECORD_ALIGNMENT;

use super::{
    HEAD_CACHE_POSITION_OFFSET, HEAD_POSITION_OFFSET, LENGTH_OFFSET, ManyToOneRing,
    PADDING_TYPE_ID, RECORD_HEADER_LENGTH, TAIL_POSITION_OFFSET, TYPE_OFFSET,
};
use crate::words::{Words, align};

/// Reason why nothing was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The consumer has to make room first; try again later.
    #[error("ring buffer is full")]
    Full,
    /// The payload exceeds [`ManyToOneRing::max_message_length`].
    #[error("message of {length} bytes exceeds the maximum of {max} bytes")]
    TooLong {
        /// Length of the payload in bytes.
        length: usize,
        /// Maximum payload length of this ring in bytes.
        max: usize,
    },
    /// Types below 1 are reserved.
    #[error("message type id {0} must be at least 1")]
    InvalidType(i32),
}

/// Reason why a claim could not be committed or aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// `try_claim` cannot have returned the index.
    #[error("payload index {index} is not inside the ring of {capacity} bytes")]
    OutOfBounds {
        /// The index that was passed.
        index: usize,
        /// Length of the data area in bytes.
        capacity: usize,
    },
    /// The record was committed, aborted or unblocked before.
    #[error("the claim at payload index {index} was committed, aborted or unblocked before")]
    NotClaimed {
        /// The index that was passed.
        index: usize,
    },
}

impl<W: Words> ManyToOneRing<W> {
    /// Writes one message: copies `payload` and makes it visible to the consumer.
    pub fn write(&self, msg_type_id: i32, payload: &[u8]) -> Result<(), ClaimError> {
        let index = self.try_claim(msg_type_id, payload.len())?;
        self.words.copy_in(index, payload);
        let record = index - RECORD_HEADER_LENGTH;
        self.words.store_i32_release(
            record + LENGTH_OFFSET,
            (RECORD_HEADER_LENGTH + payload.len()) as i32,
        );
        Ok(())
    }

    /// Claims a message of `length` payload bytes. Returns the index of the payload in [`words`](Self::words).
    ///
    /// The consumer waits at the claim until it is [committed](Self::commit) or [aborted](Self::abort).
    pub fn try_claim(&self, msg_type_id: i32, length: usize) -> Result<usize, ClaimError> {
        let max = self.max_message_length();
        if msg_type_id < 1 {
            return Err(ClaimError::InvalidType(msg_type_id));
        }
        if length > max {
            return Err(ClaimError::TooLong { length, max });
        }
        let record_length = RECORD_HEADER_LENGTH + length;
        let record = self.claim(align(record_length, RECORD_ALIGNMENT))?;
        debug_assert!(
            record + record_length <= self.capacity,
            "a record of {record_length} bytes at {record} would wrap around the end of the ring"
        );
        self.begin(record, record_length);
        self.words
            .store_i32_relaxed(record + TYPE_OFFSET, msg_type_id);
        Ok(record + RECORD_HEADER_LENGTH)
    }

    /// Makes the claim at `index` visible to the consumer.
    pub fn commit(&self, index: usize) -> Result<(), CommitError> {
        let (record, length) = self.claimed(index)?;
        self.words.store_i32_release(record + LENGTH_OFFSET, length);
        Ok(())
    }

    /// Abandons the claim at `index`: the consumer skips it.
    pub fn abort(&self, index: usize) -> Result<(), CommitError> {
        let (record, length) = self.claimed(index)?;
        self.pad(record, length as usize);
        Ok(())
    }

    /// Returns the record of a claim and its length.
    fn claimed(&self, index: usize) -> Result<(usize, i32), CommitError> {
        let in_bounds = (RECORD_HEADER_LENGTH..=self.capacity).contains(&index);
        if !in_bounds || !index.is_multiple_of(RECORD_ALIGNMENT) {
            return Err(CommitError::OutOfBounds {
                index,
                capacity: self.capacity,
            });
        }
        let record = index - RECORD_HEADER_LENGTH;
        match self.words.load_i32_relaxed(record + LENGTH_OFFSET) {
            length @ i32::MIN..0 => Ok((record, length.wrapping_neg())),
            _ => Err(CommitError::NotClaimed { index }),
        }
    }

    /// Marks a record as being written. The fence keeps later stores to the record from being visible before the mark.
    /// So the consumer can distinguish an untouched claim from a claim in progress.
    fn begin(&self, record: usize, length: usize) {
        self.words
            .store_i32_relaxed(record + LENGTH_OFFSET, -(length as i32));
        self.words.fence_release();
    }

    /// Claims `need` contiguous bytes and returns their index. If the bytes do not fit before the end of the data area,
    /// fills the end with padding and claims the bytes at the start of the data area.
    fn claim(&self, need: usize) -> Result<usize, ClaimError> {
        let mut head = self
            .words
            .load_i64_acquire(self.trailer(HEAD_CACHE_POSITION_OFFSET));
        loop {
            let tail = self
                .words
                .load_i64_acquire(self.trailer(TAIL_POSITION_OFFSET));
            if need as i64 > self.available(tail, head) {
                head = self.head();
                if need as i64 > self.available(tail, head) {
                    return Err(ClaimError::Full);
                }
                self.cache_head(head);
            }
            let index = self.index(tail);
            let to_end = self.capacity - index;
            if need <= to_end {
                if self.advance_tail(tail, need) {
                    return Ok(index);
                }
                continue;
            }
            if need > self.index(head) {
                head = self.head();
                self.cache_head(head);
            }
            let room_at_start = need <= self.index(head);
            let claimed = if room_at_start { to_end + need } else { to_end };
            if self.advance_tail(tail, claimed) {
                self.begin(index, to_end);
                self.pad(index, to_end);
                // If only the padding was claimed, a retry succeeds after the consumer has read past the end.
                return if room_at_start {
                    Ok(0)
                } else {
                    Err(ClaimError::Full)
                };
            }
        }
    }

    fn head(&self) -> i64 {
        self.words
            .load_i64_acquire(self.trailer(HEAD_POSITION_OFFSET))
    }

    fn cache_head(&self, head: i64) {
        self.words
            .store_i64_release(self.trailer(HEAD_CACHE_POSITION_OFFSET), head);
    }

    /// Returns the number of free bytes. The distance from head to tail is taken modulo 2^32. With a stale head, the
    /// distance may exceed the capacity. Then no byte is free.
    fn available(&self, tail: i64, head: i64) -> i64 {
        self.capacity as i64 - i64::from(tail.wrapping_sub(head) as i32)
    }

    fn advance_tail(&self, tail: i64, bytes: usize) -> bool {
        let new = tail.wrapping_add(bytes as i64);
        self.words
            .compare_exchange_i64(self.trailer(TAIL_POSITION_OFFSET), tail, new)
            .is_ok()
    }
}

const _: () = assert!(PADDING_TYPE_ID < 1, "padding is no message type");
