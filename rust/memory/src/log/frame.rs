//! Frames: the 32-byte header before each fragment of a log, and the meaning of its fields.
//!
//! A frame begins on a 32-byte boundary and occupies its length rounded up to a multiple of 32. Its length word is 0 if
//! there is no frame, negative while the frame is being written, and positive when the frame is readable.

use aeron_layout::frame::{DataHeaderLayout, place_word, stream_word};

use super::LogError;

pub(super) use aeron_layout::frame::FirstWord;
pub use aeron_layout::frame::{
    FRAME_ALIGNMENT, MAX_UDP_PAYLOAD_LENGTH as MAX_MTU_LENGTH, flags, frame_type,
};

/// Length of a frame's header in bytes.
pub const HEADER_LENGTH: usize = DataHeaderLayout::LENGTH;
/// Maximum length of a message in bytes, for any term length.
pub const MAX_MESSAGE_LENGTH: usize = 16 * 1024 * 1024;

/// Offsets of the header's fields.
pub mod offset {
    use aeron_layout::frame::DataHeaderLayout;
    use aeron_layout::{I16, I32, I64, offset};

    /// i32: length of header and payload in bytes; the documentation of the module explains zero and negative values.
    pub const FRAME_LENGTH: usize = offset!(DataHeaderLayout, header.frame_length: I32);
    /// u8: always 0.
    pub const VERSION: usize = offset!(DataHeaderLayout, header.version: u8);
    /// u8: see [`flags`](super::flags).
    pub const FLAGS: usize = offset!(DataHeaderLayout, header.flags: u8);
    /// 16 bits: see [`frame_type`](super::frame_type).
    pub const TYPE: usize = offset!(DataHeaderLayout, header.frame_type: I16);
    /// i32: offset of the frame in its term.
    pub const TERM_OFFSET: usize = offset!(DataHeaderLayout, term_offset: I32);
    /// i32: session id.
    pub const SESSION_ID: usize = offset!(DataHeaderLayout, session_id: I32);
    /// i32: stream id.
    pub const STREAM_ID: usize = offset!(DataHeaderLayout, stream_id: I32);
    /// i32: term id.
    pub const TERM_ID: usize = offset!(DataHeaderLayout, term_id: I32);
    /// i64: application-defined value.
    pub const RESERVED_VALUE: usize = offset!(DataHeaderLayout, reserved_value: I64);
}

/// Returns the number of bytes that a frame of `frame_length` bytes occupies in a log.
#[inline]
pub const fn aligned_length(frame_length: usize) -> usize {
    (frame_length + (FRAME_ALIGNMENT - 1)) & !(FRAME_ALIGNMENT - 1)
}

/// Limits and lengths of the frames and messages of one log. They follow from the log's MTU and term length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    mtu_length: usize,
    max_message_length: usize,
}

impl Framing {
    /// Creates the framing of a log with this MTU and term length, in bytes.
    ///
    /// # Errors
    /// [`LogError::MtuLength`] unless `mtu_length` is a multiple of 32 from 64 to [`MAX_MTU_LENGTH`].
    pub fn new(mtu_length: i64, term_length: usize) -> Result<Self, LogError> {
        let within = mtu_length > HEADER_LENGTH as i64 && mtu_length <= MAX_MTU_LENGTH as i64;
        if !within || mtu_length % FRAME_ALIGNMENT as i64 != 0 {
            return Err(LogError::MtuLength(mtu_length));
        }
        Ok(Self {
            mtu_length: mtu_length as usize,
            max_message_length: (term_length / 8).min(MAX_MESSAGE_LENGTH),
        })
    }

    /// Returns the maximum length of a frame in bytes.
    #[inline]
    pub fn mtu_length(self) -> usize {
        self.mtu_length
    }

    /// Returns the maximum payload of one frame in bytes.
    #[inline]
    pub fn max_payload_length(self) -> usize {
        self.mtu_length - HEADER_LENGTH
    }

    /// Returns the maximum length of a message in bytes.
    #[inline]
    pub fn max_message_length(self) -> usize {
        self.max_message_length
    }

    /// Returns the number of bytes that a message of `length` bytes occupies in a log, with headers and alignment;
    /// `None` if the message is too long.
    #[inline(always)]
    pub fn framed_length(self, length: usize) -> Option<usize> {
        if length <= self.max_payload_length() {
            Some(aligned_length(length + HEADER_LENGTH))
        } else if length <= self.max_message_length {
            Some(self.fragmented_length(length))
        } else {
            None
        }
    }

    /// Returns the number of bytes that the longest fragmented message occupies in a log.
    pub fn max_framed_length(self) -> usize {
        self.fragmented_length(self.max_message_length)
    }

    #[inline(never)]
    fn fragmented_length(self, length: usize) -> usize {
        let full = length / self.max_payload_length();
        let rest = length % self.max_payload_length();
        let last = if rest > 0 {
            aligned_length(rest + HEADER_LENGTH)
        } else {
            0
        };
        full * self.mtu_length + last
    }
}

/// The fields of a frame header that are equal in all frames of a stream, prepared as 64-bit words.
#[derive(Debug, Clone, Copy)]
pub struct HeaderWords {
    session: u64,
    stream: u64,
}

impl HeaderWords {
    /// Creates the words for frames of this session and stream.
    pub fn new(session_id: i32, stream_id: i32) -> Self {
        Self {
            session: place_word(0, session_id),
            stream: stream_word(stream_id, 0),
        }
    }

    /// Returns the session id.
    pub fn session_id(self) -> i32 {
        (self.session >> 32) as i32
    }

    /// Returns the stream id.
    pub fn stream_id(self) -> i32 {
        self.stream as i32
    }

    /// Returns the word with the term offset and the session id.
    #[inline]
    pub(super) fn offset_and_session(self, term_offset: usize) -> i64 {
        (self.session | place_word(term_offset, 0)) as i64
    }

    /// Returns the word with the stream id and the term id.
    #[inline]
    pub(super) fn stream_and_term(self, term_id: i32) -> i64 {
        (self.stream | stream_word(0, term_id)) as i64
    }
}
