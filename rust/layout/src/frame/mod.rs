//! Frames: the same bytes in term buffers, in recordings and in datagrams.

mod control;
mod data;

pub use control::{
    ErrorFrameLayout, NakLayout, ResolutionEntryLayout, ResolutionIpv4Layout, ResolutionIpv6Layout,
    ResponseSetupLayout, RttmLayout, SetupLayout, StatusMessageLayout,
};
pub use data::{DataHeaderLayout, FirstWord, place_word, stream_word};

use crate::declare::layout;
use crate::{I16, I32};

layout! {
    /// The first bytes of every frame.
    pub struct FrameHeaderLayout: 8 {
        /// Length of the frame with its header and without alignment.
        pub frame_length: I32 = 0,
        /// Version of the protocol: 0.
        pub version: u8 = 4,
        /// Bits that depend on the type; for frames of data see [`flags`].
        pub flags: u8 = 5,
        /// Type of the frame; see [`frame_type`].
        pub frame_type: I16 = 6,
    }
}

/// Version of all frames.
pub const VERSION: u8 = 0;

/// Alignment of data frames in their term, in bytes.
pub const FRAME_ALIGNMENT: usize = 32;

/// Maximum length of a datagram that a driver sends, in bytes, and maximum MTU: the largest aligned length that UDP
/// over IPv4 can carry.
pub const MAX_UDP_PAYLOAD_LENGTH: usize = 65_504;

/// Minimum length of a term in bytes.
pub const MIN_TERM_LENGTH: usize = 64 * 1024;

/// Maximum length of a term in bytes.
pub const MAX_TERM_LENGTH: usize = 1024 * 1024 * 1024;

/// Types of the frames that occur in logs.
pub mod frame_type {
    /// A range of a term without messages.
    pub const PADDING: u16 = 0;
    /// A fragment of a message, or on the wire a heartbeat.
    pub const DATA: u16 = 1;
}

/// Flags of frames of data.
pub mod flags {
    /// First fragment of a message.
    pub const BEGIN: u8 = 0x80;
    /// Last fragment of a message.
    pub const END: u8 = 0x40;
    /// A message in one fragment; also a heartbeat while the stream continues.
    pub const UNFRAGMENTED: u8 = BEGIN | END;
    /// In heartbeats: the stream ends at the position of the heartbeat.
    pub const END_OF_STREAM: u8 = 0x20;
    /// In heartbeats, with [`END_OF_STREAM`]: the publisher ended the stream without waiting for its receivers.
    pub const REVOKED: u8 = 0x10;
}
