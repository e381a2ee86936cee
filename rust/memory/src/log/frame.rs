//! Frames: the 32-byte header before each fragment of a log, and what its fields mean.
//!
//! A frame begins on a 32-byte boundary and takes its length rounded up to one. Its length word is 0 while nothing is
//! there, negative while the frame is being written, and positive from the moment that it may be read.

use super::LogError;

/// Bytes of a frame's header.
pub const HEADER_LENGTH: usize = 32;
/// Frames begin at multiples of this many bytes.
pub const FRAME_ALIGNMENT: usize = 32;
/// Largest datagram payload, and so the largest MTU.
pub const MAX_MTU_LENGTH: usize = 65_504;
/// No message is longer than this many bytes, however long the term.
pub const MAX_MESSAGE_LENGTH: usize = 16 * 1024 * 1024;

/// Offsets of the header's fields.
pub mod offset {
    /// i32: header and payload; see the module for zero and negative values.
    pub const FRAME_LENGTH: usize = 0;
    /// u8: always 0.
    pub const VERSION: usize = 4;
    /// u8: see [`flags`](super::flags).
    pub const FLAGS: usize = 5;
    /// u16: see [`frame_type`](super::frame_type).
    pub const TYPE: usize = 6;
    /// i32: where in its term the frame begins.
    pub const TERM_OFFSET: usize = 8;
    /// i32.
    pub const SESSION_ID: usize = 12;
    /// i32.
    pub const STREAM_ID: usize = 16;
    /// i32.
    pub const TERM_ID: usize = 20;
    /// i64: the application's own.
    pub const RESERVED_VALUE: usize = 24;
}

/// Bits of the flags byte.
pub mod flags {
    /// First fragment of a message.
    pub const BEGIN: u8 = 0x80;
    /// Last fragment of a message.
    pub const END: u8 = 0x40;
    /// A message in one fragment.
    pub const UNFRAGMENTED: u8 = BEGIN | END;
}

/// Values of the type field that occur in logs.
pub mod frame_type {
    /// Nothing to deliver.
    pub const PADDING: u16 = 0;
    /// A fragment.
    pub const DATA: u16 = 1;
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
            session: u64::from(session_id as u32) << 32,
            stream: u64::from(stream_id as u32),
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

    /// The word at 8: term offset and session id.
    #[inline]
    pub(super) fn offset_and_session(self, term_offset: usize) -> i64 {
        (self.session | term_offset as u64) as i64
    }

    /// The word at 16: stream id and term id.
    #[inline]
    pub(super) fn stream_and_term(self, term_id: i32) -> i64 {
        (self.stream | u64::from(term_id as u32) << 32) as i64
    }
}

/// The word at 0: length, version 0, flags and type. One load gives a reader all that it decides by.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstWord(pub(super) i64);

impl FirstWord {
    #[inline(always)]
    pub(super) const fn new(frame_length: i32, flags: u8, frame_type: u16) -> Self {
        let word = (frame_length as u32 as u64) | (flags as u64) << 40 | (frame_type as u64) << 48;
        Self(word as i64)
    }

    #[inline(always)]
    pub(super) fn frame_length(self) -> i32 {
        self.0 as i32
    }

    #[inline(always)]
    pub(super) fn flags(self) -> u8 {
        (self.0 >> 40) as u8
    }

    #[inline(always)]
    pub(super) fn frame_type(self) -> u16 {
        (self.0 >> 48) as u16
    }
}
