//! The header of a data frame: its fields, and the 64-bit words with which logs are written and read.

use super::FrameHeaderLayout;
use crate::declare::layout;
use crate::offset;
use crate::{I16, I32, I64};

layout! {
    /// Header of a data frame: a fragment, padding, or (only on the wire) a heartbeat.
    pub struct DataHeaderLayout: 32 {
        /// Length, version, flags and type.
        pub header: FrameHeaderLayout = 0,
        /// Term offset of the frame.
        pub term_offset: I32 = 8,
        /// Session id of the stream.
        pub session_id: I32 = 12,
        /// Stream id.
        pub stream_id: I32 = 16,
        /// Term id of the frame.
        pub term_id: I32 = 20,
        /// Application-defined value.
        pub reserved_value: I64 = 24,
    }
}

impl DataHeaderLayout {
    /// Returns the header as the four 64-bit words in which logs store it.
    #[inline(always)]
    #[must_use]
    pub fn words(self) -> [i64; 4] {
        let words: [I64; 4] = zerocopy::transmute!(self);
        words.map(I64::get)
    }
}

/// The 64-bit word at offset 0 of a frame: length, version, flags and type. With one load, a reader gets all values
/// that determine the treatment of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstWord(pub i64);

impl FirstWord {
    const VERSION_SHIFT: usize = 8 * offset!(DataHeaderLayout, header.version: u8);
    const FLAGS_SHIFT: usize = 8 * offset!(DataHeaderLayout, header.flags: u8);
    const TYPE_SHIFT: usize = 8 * offset!(DataHeaderLayout, header.frame_type: I16);
    const VERSION_AND_TYPE_MASK: u64 = 0xFF << Self::VERSION_SHIFT | 0xFFFF << Self::TYPE_SHIFT;

    /// Creates the word of a frame of version 0.
    #[inline(always)]
    #[must_use]
    pub const fn new(frame_length: i32, flags: u8, frame_type: u16) -> Self {
        let flags = (flags as u64) << Self::FLAGS_SHIFT;
        Self((frame_length as u32 as u64 | flags | Self::of_type(frame_type)) as i64)
    }

    /// Returns the [`version_and_type`](Self::version_and_type) of frames of version 0 and this type.
    #[inline(always)]
    #[must_use]
    pub const fn of_type(frame_type: u16) -> u64 {
        (frame_type as u64) << Self::TYPE_SHIFT
    }

    /// Returns the length of the frame with its header and without alignment.
    #[inline(always)]
    #[must_use]
    pub const fn frame_length(self) -> i32 {
        self.0 as i32
    }

    /// Returns the version of the frame.
    #[inline(always)]
    #[must_use]
    pub const fn version(self) -> u8 {
        (self.0 >> Self::VERSION_SHIFT) as u8
    }

    /// Returns the flags of the frame.
    #[inline(always)]
    #[must_use]
    pub const fn flags(self) -> u8 {
        (self.0 >> Self::FLAGS_SHIFT) as u8
    }

    /// Returns the type of the frame.
    #[inline(always)]
    #[must_use]
    pub const fn frame_type(self) -> u16 {
        (self.0 >> Self::TYPE_SHIFT) as u16
    }

    /// Returns version and type at their places in the word, to compare both at once with [`of_type`](Self::of_type).
    #[inline(always)]
    #[must_use]
    pub const fn version_and_type(self) -> u64 {
        self.0 as u64 & Self::VERSION_AND_TYPE_MASK
    }
}

/// Returns the 64-bit word at the offset of `term_offset`: term offset, which is below 2^32, and session id.
#[inline(always)]
#[must_use]
pub const fn place_word(term_offset: usize, session_id: i32) -> u64 {
    const {
        assert!(
            offset!(DataHeaderLayout, session_id: I32)
                == offset!(DataHeaderLayout, term_offset: I32) + 4
        )
    };
    (session_id as u32 as u64) << 32 | term_offset as u64
}

/// Returns the 64-bit word at the offset of `stream_id`: stream id and term id.
#[inline(always)]
#[must_use]
pub const fn stream_word(stream_id: i32, term_id: i32) -> u64 {
    const {
        assert!(
            offset!(DataHeaderLayout, term_id: I32)
                == offset!(DataHeaderLayout, stream_id: I32) + 4
        )
    };
    (term_id as u32 as u64) << 32 | stream_id as u32 as u64
}
