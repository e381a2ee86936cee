//! Rebuilds a term from the datagrams that carry its frames.

use aeron_layout::frame::DataHeaderLayout;

use super::frame::{FRAME_ALIGNMENT, FirstWord, HEADER_LENGTH, offset as field};
use crate::words::Words;

/// Copies a datagram of one or more frames into `term` at `offset`. Returns whether the datagram was copied.
///
/// Returns `false` if a frame already begins at `offset`: then the datagram is a duplicate. Also returns `false` if the
/// datagram is shorter than a header, its first length word is not positive, or it does not fit into the term on a
/// frame boundary. All frames of the datagram become readable at once. The caller must check that the datagram consists
/// of consecutive whole frames.
pub fn insert<W: Words>(term: &W, offset: usize, datagram: &[u8]) -> bool {
    let fits = offset.is_multiple_of(FRAME_ALIGNMENT)
        && offset <= term.len()
        && datagram.len() <= term.len() - offset;
    let Some((header, frames)) = datagram.split_first_chunk::<HEADER_LENGTH>() else {
        return false;
    };
    if !fits || term.load_i32_relaxed(offset + field::FRAME_LENGTH) != 0 {
        return false;
    }
    let [first, place, stream, reserved_value] = DataHeaderLayout::of(header).words();
    if FirstWord(first).frame_length() <= 0 {
        return false;
    }
    // The first word of the first frame is stored last: readers stop at it until the whole datagram is in the term.
    term.copy_in(offset + HEADER_LENGTH, frames);
    term.store_i64_relaxed(offset + field::RESERVED_VALUE, reserved_value);
    term.store_i64_relaxed(offset + field::STREAM_ID, stream);
    term.store_i64_relaxed(offset + field::TERM_OFFSET, place);
    term.store_i64_release(offset + field::FRAME_LENGTH, first);
    true
}
