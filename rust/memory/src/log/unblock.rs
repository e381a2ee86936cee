//! Unblocking: completes a claim that a dead publisher will never finish, so that consumers can continue.
//!
//! The driver decides whether a publisher is dead. Readers cannot distinguish the padding of the driver from padding of
//! the publisher.

use super::buffers::LogBuffers;
use super::frame::{
    FRAME_ALIGNMENT, FirstWord, HEADER_LENGTH, aligned_length, flags, frame_type, offset as field,
};
use super::position::partition_of_count;
use super::rotation::rotate;
use crate::words::Words;

/// Makes the log readable after `blocked_position`, which all consumers have reached. Returns whether the log was
/// changed.
///
/// A claim at the tail that has no header is not changed, because its publisher may only be slow.
pub fn unblock<W: Words>(log: &LogBuffers<W>, blocked_position: i64) -> bool {
    unblock_with(log, blocked_position, false)
}

/// Does the same as [`unblock`] for a log whose publishers have all left. No publisher can finish the claim at the
/// tail, so this claim becomes padding too.
pub fn unblock_abandoned<W: Words>(log: &LogBuffers<W>, blocked_position: i64) -> bool {
    unblock_with(log, blocked_position, true)
}

fn unblock_with<W: Words>(log: &LogBuffers<W>, blocked_position: i64, is_abandoned: bool) -> bool {
    let positions = log.positions();
    if blocked_position >= positions.max_position() {
        // Nothing follows the last term. A rotation would give the next term a negative position.
        return false;
    }
    let metadata = log.metadata();
    let blocked_count = positions.term_count(positions.term_id(blocked_position));
    let blocked_offset = positions.term_offset(blocked_position);
    let active_count = metadata.active_term_count();

    if active_count == blocked_count.wrapping_sub(1) && blocked_offset == 0 {
        // A publisher filled its term and died before it rotated the log.
        let tail = metadata.tail(partition_of_count(active_count));
        rotate(log, active_count, tail.term_id());
        return true;
    }
    let partition = partition_of_count(blocked_count);
    let tail = metadata.tail(partition);
    // Only a hostile publisher leaves a tail off the frame boundaries. Padding up to it could be shorter than a header,
    // and every reader would find a corrupt log.
    let tail_offset = tail.offset(positions.term_length()) & !(FRAME_ALIGNMENT - 1);
    let is_claimed =
        positions.term_count(tail.term_id()) == blocked_count && blocked_offset < tail_offset;
    if !is_claimed || !blocked_offset.is_multiple_of(FRAME_ALIGNMENT) {
        return false;
    }
    let term = Unblocking {
        log,
        term: log.term(partition),
        term_id: tail.term_id(),
        is_abandoned,
    };
    match term.unblock(blocked_offset, tail_offset) {
        Outcome::NoAction => false,
        Outcome::Unblocked => true,
        Outcome::UnblockedToEnd => {
            let end = positions.term_begin(blocked_position) + positions.term_length() as i64;
            if end < positions.max_position() {
                rotate(log, blocked_count, tail.term_id());
            }
            true
        }
    }
}

enum Outcome {
    NoAction,
    Unblocked,
    UnblockedToEnd,
}

struct Unblocking<'a, W> {
    log: &'a LogBuffers<W>,
    term: &'a W,
    term_id: i32,
    is_abandoned: bool,
}

impl<W: Words> Unblocking<'_, W> {
    fn unblock(&self, blocked: usize, tail: usize) -> Outcome {
        let length = self.length_at(blocked);
        if length < 0 {
            return self.unblock_claimed(blocked, length);
        }
        if length > 0 {
            return Outcome::NoAction;
        }
        let next = self.next_frame(blocked, tail);
        if next < tail {
            // A claim may have been filled after the forward scan passed it.
            if self.is_zero(blocked, next) {
                self.pad(blocked, next - blocked);
                return Outcome::Unblocked;
            }
        } else if next == self.log.term_length() && self.length_at(blocked) == 0 {
            self.pad(blocked, next - blocked);
            return Outcome::UnblockedToEnd;
        } else if self.is_abandoned && self.is_zero(blocked, next) {
            self.pad(blocked, next - blocked);
            return Outcome::Unblocked;
        }
        // If the tail is within the term, the last claim may belong to a publisher that is only slow.
        Outcome::NoAction
    }

    fn unblock_claimed(&self, blocked: usize, length: i32) -> Outcome {
        let claimed = length.unsigned_abs() as usize;
        let possible =
            claimed >= HEADER_LENGTH && aligned_length(claimed) <= self.log.term_length() - blocked;
        if !possible {
            return Outcome::NoAction;
        }
        self.pad(blocked, claimed);
        Outcome::Unblocked
    }

    /// Returns the offset of the first frame after `blocked`, at most `tail`.
    fn next_frame(&self, blocked: usize, tail: usize) -> usize {
        (blocked + FRAME_ALIGNMENT..tail)
            .step_by(FRAME_ALIGNMENT)
            .find(|offset| self.length_at(*offset) != 0)
            .unwrap_or(tail)
    }

    /// Whether no frame begins between `begin` and `end`. Checks the range backwards.
    fn is_zero(&self, begin: usize, end: usize) -> bool {
        (begin..end)
            .step_by(FRAME_ALIGNMENT)
            .rev()
            .all(|offset| self.length_at(offset) == 0)
    }

    fn length_at(&self, offset: usize) -> i32 {
        self.term.load_i32_acquire(offset + field::FRAME_LENGTH)
    }

    fn pad(&self, offset: usize, length: usize) {
        write_padding(self.log, self.term, offset, self.term_id, length);
    }
}

/// Writes the header of a padding frame of `length` bytes at `offset`. The bytes after the header do not change.
pub(super) fn write_padding<W: Words>(
    log: &LogBuffers<W>,
    term: &W,
    offset: usize,
    term_id: i32,
    length: usize,
) {
    debug_assert!(
        offset + length <= term.len(),
        "padding of {length} bytes at {offset} ends after its term"
    );
    let header = log.header();
    // Readers look at the first word: the release store makes the rest of the header visible with it.
    term.store_i64_relaxed(
        offset + field::TERM_OFFSET,
        header.offset_and_session(offset),
    );
    term.store_i64_relaxed(offset + field::STREAM_ID, header.stream_and_term(term_id));
    term.store_i64_relaxed(offset + field::RESERVED_VALUE, 0);
    term.store_i64_release(
        offset,
        FirstWord::new(length as i32, flags::UNFRAGMENTED, frame_type::PADDING).0,
    );
}
