//! Cleaning: zeroes the bytes that all consumers have passed, so that the partition can hold its next term.

use super::buffers::LogBuffers;
use super::frame::FRAME_ALIGNMENT;
use crate::words::Words;

/// Zeroes the log from `clean_position` to the last frame boundary at or before `target_position`, at most to the end
/// of one term. Returns the position up to which the log is clean.
///
/// Only the driver calls this, and only for bytes that all consumers have passed. The first word is zeroed last, with
/// release: a reader that finds no frame at that word finds no frame after it.
pub fn clean<W: Words>(log: &LogBuffers<W>, clean_position: i64, target_position: i64) -> i64 {
    debug_assert!(
        clean_position % FRAME_ALIGNMENT as i64 == 0,
        "no frame can begin at the clean position {clean_position}"
    );
    // The target follows from positions that other processes write, so it may not be aligned.
    let target_position = target_position & -(FRAME_ALIGNMENT as i64);
    if target_position <= clean_position {
        return clean_position;
    }
    let offset = log.positions().term_offset(clean_position);
    let left_in_term = (log.term_length() - offset) as i64;
    let length = (target_position - clean_position).min(left_in_term) as usize;
    debug_assert!(
        length >= FRAME_ALIGNMENT,
        "the {length} bytes to clean from {clean_position} on are no whole frame"
    );
    let term = log.term_at(clean_position);
    term.fill_zero(offset + 8, length - 8);
    term.store_i64_release(offset, 0);
    clean_position + length as i64
}
