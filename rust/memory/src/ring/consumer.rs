//! [`RingConsumer`]: reads from the ring, and unblocks the ring after a producer died. The driver's conductor calls it.

use super::{
    HEAD_POSITION_OFFSET, ManyToOneRing, PADDING_TYPE_ID, RECORD_ALIGNMENT, RECORD_HEADER_LENGTH,
    TYPE_OFFSET,
};
use crate::words::{Words, align};

/// Decision of a handler of [`RingConsumer::controlled_read`] after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordAction {
    /// Do not consume the message, and stop: the next read delivers it again.
    Abort,
    /// Stop after this message.
    Break,
    /// Release the space of this message and of all earlier ones to the producers, then continue.
    Commit,
    /// Continue.
    Continue,
}

/// A record has an impossible length. All claimed bytes up to the end of the data area were discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "corrupt record in the ring buffer: length {length}, type {msg_type_id} at position {position}; {discarded} bytes discarded"
)]
pub struct CorruptRecord {
    /// Position of the record.
    pub position: i64,
    /// Length field of the record.
    pub length: i32,
    /// Type field of the record.
    pub msg_type_id: i32,
    /// Number of bytes that were skipped.
    pub discarded: usize,
}

/// The only reader of a ring. The consumer copies each message before it calls the handler, because producers could
/// still change the message.
#[derive(Debug)]
pub struct RingConsumer<W: Words> {
    ring: ManyToOneRing<W>,
    scratch: Vec<u8>,
}

impl<W: Words> RingConsumer<W> {
    /// Creates the consumer of `ring`. There must be only one consumer at a time.
    pub fn new(ring: ManyToOneRing<W>) -> Self {
        let scratch = vec![0; ring.max_message_length()];
        Self { ring, scratch }
    }

    /// Returns the ring.
    pub fn ring(&self) -> &ManyToOneRing<W> {
        &self.ring
    }

    /// Calls `handler(msg_type_id, payload)` for up to `limit` messages. Returns the number of messages.
    ///
    /// Stops at the end of the data area; the next call continues at its start. If the handler panics, the messages
    /// passed to the handler are consumed.
    pub fn read(
        &mut self,
        limit: usize,
        mut handler: impl FnMut(i32, &[u8]),
    ) -> Result<usize, CorruptRecord> {
        self.controlled_read(limit, |msg_type_id, payload| {
            handler(msg_type_id, payload);
            RecordAction::Continue
        })
    }

    /// Like [`read`](Self::read), but the handler decides after each message how to continue. An aborted message does
    /// not count.
    pub fn controlled_read(
        &mut self,
        limit: usize,
        mut handler: impl FnMut(i32, &[u8]) -> RecordAction,
    ) -> Result<usize, CorruptRecord> {
        let mut lap = Lap::begin(&self.ring);
        let mut messages = 0;
        while messages < limit {
            let Some((msg_type_id, length)) = lap.next_message(self.scratch.len())? else {
                break;
            };
            let payload = &mut self.scratch[..length];
            lap.copy_payload(payload);
            lap.consume(RECORD_HEADER_LENGTH + length);
            match handler(msg_type_id, payload) {
                RecordAction::Abort => {
                    lap.take_back(RECORD_HEADER_LENGTH + length);
                    break;
                }
                RecordAction::Break => {
                    messages += 1;
                    break;
                }
                RecordAction::Commit => lap.release(),
                RecordAction::Continue => {}
            }
            messages += 1;
        }
        Ok(messages)
    }

    /// Turns an unfinished record at the head into padding. Returns whether a record was turned into padding.
    ///
    /// Call this method only if the head has not moved for longer than a live producer could need. A claim without any
    /// written word is turned into padding only if a later record shows where the claim ends, or if all bytes up to the
    /// end of the data area are claimed: a claim never crosses this end.
    pub fn unblock(&mut self) -> bool {
        let ring = &self.ring;
        let head = ring.consumer_position();
        let tail = ring.producer_position();
        if head == tail {
            return false;
        }
        let blocked = ring.index(head);
        match ring.words.load_i32_acquire(blocked) {
            length @ i32::MIN..0 => {
                let block = ring.capacity - blocked;
                ring.pad(
                    blocked,
                    (length.unsigned_abs() as usize).clamp(RECORD_HEADER_LENGTH, block),
                );
                true
            }
            0 => self.unblock_unwritten(blocked, tail.wrapping_sub(head)),
            _ => false,
        }
    }

    /// Pads the space from `blocked` up to the next written word, if a second check finds no written word in that
    /// space. `claimed` is the number of claimed bytes from `blocked` on.
    fn unblock_unwritten(&self, blocked: usize, claimed: i64) -> bool {
        let words = &self.ring.words;
        let to_end = (self.ring.capacity - blocked) as i64;
        let limit = blocked + claimed.clamp(0, to_end) as usize;
        // Without a claim after the end, a claim that ends there may be the last one, and its producer only slow. In a
        // full ring, no producer can make that claim.
        let is_closed = claimed > to_end || claimed >= self.ring.capacity as i64;
        let unwritten = |index: usize| words.load_i32_acquire(index) == 0;
        let mut candidates = (blocked + RECORD_ALIGNMENT..limit).step_by(RECORD_ALIGNMENT);
        let written = candidates.find(|&index| !unwritten(index));
        let Some(written) = written.or(is_closed.then_some(limit)) else {
            return false;
        };
        // During the search, a producer may have written one of these words, so they are checked again. The blocked
        // record is checked last.
        let still_unwritten = (blocked..written)
            .step_by(RECORD_ALIGNMENT)
            .rev()
            .all(unwritten);
        if still_unwritten {
            debug_assert!(
                blocked < written && written <= self.ring.capacity,
                "padding from {blocked} to {written} is empty or ends after the ring"
            );
            self.ring.pad(blocked, written - blocked);
        }
        still_unwritten
    }
}

/// The part of a read that is consumed but not yet released to the producers. Dropping a lap releases its bytes.
struct Lap<'a, W: Words> {
    ring: &'a ManyToOneRing<W>,
    head: i64,
    index: usize,
    consumed: usize,
}

impl<'a, W: Words> Lap<'a, W> {
    fn begin(ring: &'a ManyToOneRing<W>) -> Self {
        let head = ring
            .words
            .load_i64_relaxed(ring.trailer(HEAD_POSITION_OFFSET));
        Self {
            ring,
            head,
            index: ring.index(head),
            consumed: 0,
        }
    }

    /// Skips padding up to the next message. Returns its type and payload length.
    fn next_message(&mut self, max_length: usize) -> Result<Option<(i32, usize)>, CorruptRecord> {
        while self.at() < self.ring.capacity {
            let length = self.ring.words.load_i32_acquire(self.at());
            if length <= 0 {
                return Ok(None);
            }
            let msg_type_id = self.ring.words.load_i32_relaxed(self.at() + TYPE_OFFSET);
            let record_length = length as usize;
            let is_padding = msg_type_id == PADDING_TYPE_ID;
            let max_record_length = match is_padding {
                true => self.ring.capacity - self.at(),
                false => (self.ring.capacity - self.at()).min(RECORD_HEADER_LENGTH + max_length),
            };
            if !(RECORD_HEADER_LENGTH..=max_record_length).contains(&record_length) {
                return Err(self.discard(length, msg_type_id));
            }
            if !is_padding {
                return Ok(Some((msg_type_id, record_length - RECORD_HEADER_LENGTH)));
            }
            self.consume(record_length);
        }
        Ok(None)
    }

    fn copy_payload(&self, payload: &mut [u8]) {
        self.ring
            .words
            .copy_out(self.at() + RECORD_HEADER_LENGTH, payload);
    }

    fn consume(&mut self, record_length: usize) {
        self.consumed += align(record_length, RECORD_ALIGNMENT);
        debug_assert!(
            self.at() <= self.ring.capacity,
            "a record of {record_length} bytes ends at {}, after the {} bytes of the ring",
            self.at(),
            self.ring.capacity
        );
    }

    fn take_back(&mut self, record_length: usize) {
        debug_assert!(
            align(record_length, RECORD_ALIGNMENT) <= self.consumed,
            "a record of {record_length} bytes cannot be the last of {} consumed bytes",
            self.consumed
        );
        self.consumed -= align(record_length, RECORD_ALIGNMENT);
    }

    /// Zeroes the consumed bytes and releases them to the producers.
    fn release(&mut self) {
        if self.consumed == 0 {
            return;
        }
        debug_assert!(
            self.index + self.consumed <= self.ring.capacity,
            "{} bytes at {} include the trailer of the ring",
            self.consumed,
            self.index
        );
        // The zeros come before the new head: a producer that sees the head must not claim bytes with old lengths.
        self.ring.words.fill_zero(self.index, self.consumed);
        self.head = self.head.wrapping_add(self.consumed as i64);
        self.index += self.consumed;
        self.consumed = 0;
        let head_position = self.ring.trailer(HEAD_POSITION_OFFSET);
        self.ring.words.store_i64_release(head_position, self.head);
    }

    /// Discards all claimed bytes up to the end of the data area, because the start of the next record is unknown.
    fn discard(&mut self, length: i32, msg_type_id: i32) -> CorruptRecord {
        let position = self.head.wrapping_add(self.consumed as i64);
        let claimed = self.ring.producer_position().wrapping_sub(position);
        let rest = self.ring.capacity - self.at();
        // A tail at or before a written record is also corrupt. Then all bytes up to the end of the data area are
        // discarded.
        let discarded = match usize::try_from(claimed) {
            Ok(claimed @ 1..) => align(claimed.min(rest), RECORD_ALIGNMENT),
            _ => rest,
        };
        debug_assert!(
            (1..=rest).contains(&discarded),
            "{discarded} of {rest} bytes discarded: the next read would find the same record, or the trailer"
        );
        self.consumed += discarded;
        CorruptRecord {
            position,
            length,
            msg_type_id,
            discarded,
        }
    }

    /// Returns the index of the first byte that is not consumed.
    fn at(&self) -> usize {
        self.index + self.consumed
    }
}

impl<W: Words> Drop for Lap<'_, W> {
    fn drop(&mut self) {
        self.release();
    }
}
