//! Rotation: makes the next term of a log the active term. Several callers for the same term rotate the log only once.

use super::buffers::LogBuffers;
use super::position::{PARTITION_COUNT, RawTail, partition_of_count};
use crate::words::Words;

/// Ends the term `term_id`, which has `term_count` terms before it. Several publishers and the driver may call this
/// function at the same time. Each caller completes unfinished steps of the other callers. Returns whether this call
/// advanced the active term count.
pub(super) fn rotate<W: Words>(log: &LogBuffers<W>, term_count: i32, term_id: i32) -> bool {
    let metadata = log.metadata();
    let next_term_id = term_id.wrapping_add(1);
    let next_count = term_count.wrapping_add(1);
    let next_partition = partition_of_count(next_count);
    let expected_term_id = next_term_id.wrapping_sub(PARTITION_COUNT as i32);
    loop {
        let tail = metadata.tail(next_partition);
        let replaced = tail.term_id() != expected_term_id
            || metadata.replace_tail(next_partition, tail, RawTail::new(next_term_id, 0));
        if replaced {
            break;
        }
    }
    // After the tail: a publisher that sees the new count claims bytes at the tail of the new term.
    metadata.replace_active_term_count(term_count, next_count)
}
