//! The death of a publisher between two stores at the end of a term.
//!
//! If a claim does not fit into the term, its publisher stores the claim, the padding and the tail of the next term.
//! After the fourth store, the term count, nothing is left to do.

use aeron_client::LogBuffers;
use aeron_layout::log::{LOG_METADATA_LENGTH, LogMetadataLayout};
use aeron_layout::{I64, offset};
use aeron_memory::log::frame::HEADER_LENGTH;
use aeron_memory::{SharedBuffer, Words};
use aeron_protocol::frame::{DataHeader, flags};

use crate::schedule::TermEndDeath;

const TAIL_COUNTERS: usize = offset!(LogMetadataLayout, tail_counters: [I64; PARTITION_COUNT]);
const PARTITION_COUNT: usize = 3;

/// Claims `length` bytes at the end of the active term of a log, and writes all up to the last store of the publisher.
///
/// Returns whether the claim passes the end of the term. If it does not, nothing changes.
pub fn die_at_term_end(memory: &SharedBuffer, length: usize, death: TermEndDeath) -> bool {
    let Ok(log) = LogBuffers::attach(memory) else {
        return false;
    };
    let metadata = memory.slice(memory.len() - LOG_METADATA_LENGTH, LOG_METADATA_LENGTH);
    let partition_of = |count: i32| count.rem_euclid(PARTITION_COUNT as i32) as usize;
    let tail_of = |count: i32| TAIL_COUNTERS + size_of::<i64>() * partition_of(count);
    let count = log.metadata().active_term_count();
    let tail = log.metadata().tail(partition_of(count));
    let offset = tail.offset(log.term_length());
    if offset + length <= log.term_length() {
        return false;
    }
    metadata.fetch_add_i64(tail_of(count), length as i64);
    if death == TermEndDeath::AfterClaim {
        return true;
    }
    if offset < log.term_length() {
        pad(&log, log.term(partition_of(count)), tail.term_id(), offset);
    }
    if death == TermEndDeath::AfterNextTail {
        let next_tail = i64::from(tail.term_id().wrapping_add(1)) << 32;
        metadata.store_i64_release(tail_of(count.wrapping_add(1)), next_tail);
    }
    true
}

/// Writes the header of a padding frame from `offset` to the end of a term. The first word is written last.
fn pad(log: &LogBuffers<SharedBuffer>, term: &SharedBuffer, term_id: i32, offset: usize) {
    let description = log.metadata().description();
    let header = DataHeader {
        frame_length: (log.term_length() - offset) as i32,
        flags: flags::UNFRAGMENTED,
        is_padding: true,
        term_offset: offset as i32,
        session_id: description.session_id,
        stream_id: description.stream_id,
        term_id,
        reserved_value: 0,
    };
    let mut bytes = [0; HEADER_LENGTH];
    header.encode(&mut bytes);
    let (words, _) = bytes.as_chunks::<{ size_of::<i64>() }>();
    for (index, word) in words.iter().enumerate().rev() {
        term.store_i64_release(offset + index * size_of::<i64>(), i64::from_le_bytes(*word));
    }
}
