//! Scans a term for frames to send.

use super::buffers::LogBuffers;
use super::frame::{HEADER_LENGTH, aligned_length, frame_type, offset as field};
use super::reader::CorruptLog;
use crate::words::Words;

/// Data to send at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Available {
    /// Whole frames of `length` bytes in total; 0 if there is no frame. The last frame may be the header of a padding
    /// frame. Then the `padding` bytes after the header are not sent, but the position advances by `length` and
    /// `padding`.
    Frames {
        /// Number of bytes to send.
        length: usize,
        /// Number of bytes of padding after the bytes to send.
        padding: usize,
        /// Whether no later frame can be sent together with these frames: the next frame is too long, the limit is
        /// reached, the last frame is padding, or the term ends.
        is_full: bool,
    },
    /// Length of the first frame, which exceeds the limit.
    TooLong(usize),
}

/// Finds the frames from `position` on that together have at most `max_length` bytes and are in the same term.
///
/// # Errors
/// A frame has an impossible length, or no frame can begin at `position`.
pub fn scan<W: Words>(
    log: &LogBuffers<W>,
    position: i64,
    max_length: usize,
) -> Result<Available, CorruptLog> {
    let begin = log.cursor(position)?.offset();
    let term = log.term_at(position);
    let limit = max_length.min(term.len() - begin);
    let frames = |length, padding, is_full| Available::Frames {
        length,
        padding,
        is_full,
    };
    let mut length = 0;
    while length < limit {
        let at = begin + length;
        let frame_length = term.load_i32_acquire(at + field::FRAME_LENGTH);
        if frame_length <= 0 {
            return Ok(frames(length, 0, false));
        }
        let aligned = aligned_length(frame_length as usize);
        if frame_length < HEADER_LENGTH as i32 || aligned > term.len() - at {
            return Err(CorruptLog::frame_length(
                position + length as i64,
                frame_length,
            ));
        }
        let is_padding = term.load_u16_relaxed(at + field::TYPE) == frame_type::PADDING;
        let to_send = if is_padding { HEADER_LENGTH } else { aligned };
        if to_send > limit - length {
            if length == 0 {
                return Ok(Available::TooLong(to_send));
            }
            break;
        }
        length += to_send;
        let padding = aligned - to_send;
        if padding > 0 {
            return Ok(frames(length, padding, true));
        }
    }
    debug_assert!(
        length <= max_length,
        "frames of {length} bytes do not fit into a datagram of {max_length} bytes"
    );
    Ok(frames(length, 0, true))
}
