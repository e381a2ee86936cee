//! Frames: the 32-byte header before each fragment of a log, and what its fields mean.
//!
//! A frame begins on a 32-byte boundary and takes its length rounded up to one. Its length word is 0 while nothing is
//! there, negative while the frame is being written, and positive from the moment that it may be read.

use aeron_layout::frame::{DataHeaderLayout, place_word, stream_word};

use super::LogError;

pub(super) use aeron_layout::frame::FirstWord;
pub use aeron_layout::frame::{
    FRAME_ALIGNMENT, MAX_UDP_PAYLOAD_LENGTH as MAX_MTU_LENGTH, flags, frame_type,
};

/// Bytes of a frame's header.
pub const HEADER_LENGTH: usize = DataHeaderLayout::LENGTH;
/// No message is longer than this many bytes, however long the term.
pub const MAX_MESSAGE_LENGTH: usize = 16 * 1024 * 1024;

/// Offsets of the header's fields.
pub mod offset {
    use aeron_layout::frame::DataHeaderLayout;
    use aeron_layout::{I16, I32, I64, offset};

    /// i32: header and payload; see the module for zero and negative values.
    pub const FRAME_LENGTH: usize = offset!(DataHeaderLayout, header.frame_length: I32);
    /// u8: always 0.
    pub const VERSION: usize = offset!(DataHeaderLayout, header.version: u8);
    /// u8: see [`flags`](super::flags).
    pub const FLAGS: usize = offset!(DataHeaderLayout, header.flags: u8);
    /// 16 bits: see [`frame_type`](super::frame_type).
    pub const TYPE: usize = offset!(DataHeaderLayout, header.frame_type: I16);
    /// i32: where in its term the frame begins.
    pub const TERM_OFFSET: usize = offset!(DataHeaderLayout, term_offset: I32);
    /// i32.
    pub const SESSION_ID: usize = offset!(DataHeaderLayout, session_id: I32);
    /// i32.
    pub const STREAM_ID: usize = offset!(DataHeaderLayout, stream_id: I32);
    /// i32.
    pub const TERM_ID: usize = offset!(DataHeaderLayout, term_id: I32);
    /// i64: the application's own.
    pub const RESERVED_VALUE: usize = offset!(DataHeaderLayout, reserved_value: I64);
}

/// Bytes that a frame of `frame_length` takes in the log.
#[inline]
pub const fn aligned_length(frame_length: usize) -> usize {
    (frame_length + (FRAME_ALIGNMENT - 1)) & !(FRAME_ALIGNMENT - 1)
}

/// How messages become frames in one log: the bounds that follow from its MTU and term length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    mtu_length: usize,
    max_message_length: usize,
}

impl Framing {
    /// Framing of a log with this MTU and term length, in bytes.
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

    /// Largest frame, in bytes.
    #[inline]
    pub fn mtu_length(self) -> usize {
        self.mtu_length
    }

    /// Largest payload of one frame, in bytes.
    #[inline]
    pub fn max_payload_length(self) -> usize {
        self.mtu_length - HEADER_LENGTH
    }

    /// Largest message, in bytes.
    #[inline]
    pub fn max_message_length(self) -> usize {
        self.max_message_length
    }

    /// Bytes of log that a message of `length` bytes takes, its headers and alignment included; `None` when it is too long.
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

    /// Bytes of log that the longest fragmented message takes.
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

/// The parts of a frame header that stay the same within a stream, made ready to be stored as 64-bit words.
#[derive(Debug, Clone, Copy)]
pub struct HeaderWords {
    session: u64,
    stream: u64,
}

impl HeaderWords {
    /// Headers for frames of this session and stream.
    pub fn new(session_id: i32, stream_id: i32) -> Self {
        Self {
            session: place_word(0, session_id),
            stream: stream_word(stream_id, 0),
        }
    }

    /// Session id.
    pub fn session_id(self) -> i32 {
        (self.session >> 32) as i32
    }

    /// Stream id.
    pub fn stream_id(self) -> i32 {
        self.stream as i32
    }

    /// The word of term offset and session id.
    #[inline]
    pub(super) fn offset_and_session(self, term_offset: usize) -> i64 {
        (self.session | place_word(term_offset, 0)) as i64
    }

    /// The word of stream id and term id.
    #[inline]
    pub(super) fn stream_and_term(self, term_id: i32) -> i64 {
        (self.stream | stream_word(0, term_id)) as i64
    }
}
