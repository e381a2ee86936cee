//! NAK frames: a receiver requests missing bytes.

use aeron_layout::frame::NakLayout;

use super::FrameError;
use super::data::check_term_offset;
use super::fixed::fixed_frame;

fixed_frame! {
    /// Bytes of a stream that a receiver misses, within one term.
    pub struct Nak(NakLayout) {
        /// Session id of the stream.
        pub session_id: i32,
        /// Stream id.
        pub stream_id: i32,
        /// Term of the missing bytes.
        pub term_id: i32,
        /// Offset of the first missing byte in its term.
        pub term_offset: i32,
        /// Number of missing bytes.
        pub length: i32,
    }
}

impl Nak {
    /// Checks that the range lies within a term of `term_length` bytes and begins at a multiple of 32. The range may be
    /// empty.
    ///
    /// # Errors
    /// [`FrameError::TermOffset`] or [`FrameError::MissingRange`]: an invalid packet.
    pub fn check(&self, term_length: usize) -> Result<(), FrameError> {
        let begin = check_term_offset(self.term_offset, term_length)?;
        match usize::try_from(self.length) {
            Ok(length) if length <= term_length - begin => Ok(()),
            _ => Err(FrameError::MissingRange {
                term_offset: self.term_offset,
                length: self.length,
                term_length,
            }),
        }
    }
}
