//! Finds gaps in a term that is rebuilt from the network, and fills gaps that the sender will not fill.

use super::buffers::LogBuffers;
use super::frame::{FRAME_ALIGNMENT, HEADER_LENGTH, aligned_length, offset as field};
use super::position::partition_of_count;
use super::reader::CorruptLog;
use super::unblock::write_padding;
use crate::words::Words;

/// Missing bytes in a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Offset of the gap in the term.
    pub offset: usize,
    /// Length in bytes, a multiple of 32.
    pub length: usize,
}

/// Result of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanned {
    /// Offset up to which the term is complete. May be after the limit of the scan.
    pub complete: usize,
    /// The first gap before the limit.
    pub gap: Option<Gap>,
}

/// Finds the first gap in `term` between the frame boundaries `from` and `limit`.
///
/// # Errors
/// A frame has an impossible length. The error contains the frame's position, which is computed from `term_begin`, the
/// position of the term's first byte.
pub fn scan<W: Words>(
    term: &W,
    term_begin: i64,
    from: usize,
    limit: usize,
) -> Result<Scanned, CorruptLog> {
    let limit = limit.min(term.len());
    debug_assert!(
        from.is_multiple_of(FRAME_ALIGNMENT) && limit.is_multiple_of(FRAME_ALIGNMENT),
        "a scan from {from} to {limit} does not begin and end at frame boundaries"
    );
    let mut complete = from;
    while complete < limit {
        let length = length_at(term, complete);
        if length <= 0 {
            break;
        }
        let next = complete + aligned_length(length as usize);
        if length < HEADER_LENGTH as i32 || next > term.len() {
            return Err(CorruptLog::frame_length(
                term_begin + complete as i64,
                length,
            ));
        }
        complete = next;
    }
    let gap = (complete < limit).then(|| {
        let end = (complete + FRAME_ALIGNMENT..limit)
            .step_by(FRAME_ALIGNMENT)
            .find(|offset| length_at(term, *offset) != 0)
            .unwrap_or(limit);
        Gap {
            offset: complete,
            length: end - complete,
        }
    });
    Ok(Scanned { complete, gap })
}

/// Replaces `gap` in the term `term_id` by one padding frame. Returns whether the gap was replaced.
///
/// A gap is not replaced if data has arrived in it, if it is empty, or if it is not within the term. A gap is not
/// replaced either if its offset or its length is not a multiple of 32.
pub fn fill<W: Words>(log: &LogBuffers<W>, term_id: i32, gap: Gap) -> bool {
    let term = log.term(partition_of_count(log.positions().term_count(term_id)));
    let end = gap.offset.saturating_add(gap.length);
    let aligned = (gap.offset | gap.length).is_multiple_of(FRAME_ALIGNMENT);
    if !aligned || gap.length == 0 || end > term.len() {
        return false;
    }
    let is_empty = (gap.offset..end)
        .step_by(FRAME_ALIGNMENT)
        .rev()
        .all(|offset| term.load_i32_relaxed(offset + field::FRAME_LENGTH) == 0);
    if is_empty {
        write_padding(log, term, gap.offset, term_id, gap.length);
    }
    is_empty
}

fn length_at<W: Words>(term: &W, offset: usize) -> i32 {
    term.load_i32_acquire(offset + field::FRAME_LENGTH)
}
