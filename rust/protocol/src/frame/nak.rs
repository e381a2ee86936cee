//! NAK frames: a receiver requests missing bytes.

use aeron_layout::frame::NakLayout;

use super::FrameError;
use super::data::check_term_offset;
use super::fixed::fixed_frame;

fixed_frame! {
    /// Request for a range of missing bytes within one term of a stream.
    pub struct Nak(NakLayout) {
        /// Session id of the stream.
        pub session_id: i32,
        /// Stream id.
        pub stream_id: i32,
        /// Id of the term that contains the missing bytes.
        pub term_id: i32,
        /// Term offset of the first missing byte.
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
    /// [`FrameError::TermOffset`] or [`FrameError::MissingRange`]. The datagram then counts as an invalid packet.
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
