//! The 8 bytes that every frame begins with.

use aeron_layout::Layout;
use aeron_layout::frame::{FrameHeaderLayout, VERSION};

use super::FrameError;

/// What a frame is. Type ids 8 to 10 are reserved for transport security and −1 for extensions; nobody sends them, and they
/// are refused like any unknown one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum FrameType {
    /// A range of a term without messages; only its header travels.
    Pad = 0,
    /// A message, a fragment of one, or a heartbeat.
    Data = 1,
    /// A receiver misses bytes.
    Nak = 2,
    /// A receiver says what it has consumed, or wants a setup.
    StatusMessage = 3,
    /// A receiver has rejected the stream.
    Error = 4,
    /// A sender says what it needs for a receiver to begin.
    Setup = 5,
    /// A measurement of the round trip, or its answer.
    Rttm = 6,
    /// Names and addresses of drivers.
    Resolution = 7,
    /// A receiver names the stream that answers the one it receives.
    ResponseSetup = 11,
}

impl FrameType {
    /// The type with this id.
    #[must_use]
    pub const fn from_id(id: i16) -> Option<Self> {
        Some(match id {
            0 => Self::Pad,
            1 => Self::Data,
            2 => Self::Nak,
            3 => Self::StatusMessage,
            4 => Self::Error,
            5 => Self::Setup,
            6 => Self::Rttm,
            7 => Self::Resolution,
            11 => Self::ResponseSetup,
            _ => return None,
        })
    }

    /// The id that travels.
    #[must_use]
    pub const fn id(self) -> i16 {
        self as i16
    }
}

/// What all frames have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Length of the frame in bytes with its header and without alignment, 0 in heartbeats; any value, as it came.
    pub frame_length: i32,
    /// Meaning depends on the type; undefined bits are ignored.
    pub flags: u8,
    /// What the frame is.
    pub frame_type: FrameType,
}

impl FrameHeader {
    /// Reads the header of a datagram's first frame.
    ///
    /// # Errors
    /// [`FrameError`] for fewer than 8 bytes, another version than 0, or an unknown type.
    pub fn decode(datagram: &[u8]) -> Result<Self, FrameError> {
        let header = FrameHeaderLayout::first_in(datagram).ok_or(FrameError::TooShort {
            length: datagram.len(),
            required: FrameHeaderLayout::LENGTH,
        })?;
        if header.version != VERSION {
            return Err(FrameError::Version(header.version));
        }
        let type_id = header.frame_type.get();
        Ok(Self {
            frame_length: header.frame_length.get(),
            flags: header.flags,
            frame_type: FrameType::from_id(type_id).ok_or(FrameError::Type(type_id))?,
        })
    }

    /// The header as bytes.
    pub(super) fn layout(&self) -> FrameHeaderLayout {
        FrameHeaderLayout {
            frame_length: self.frame_length.into(),
            version: VERSION,
            flags: self.flags,
            frame_type: self.frame_type.id().into(),
        }
    }
}
