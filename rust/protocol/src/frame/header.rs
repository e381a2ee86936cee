//! The 8 bytes at the start of every frame.

use aeron_layout::Layout;
use aeron_layout::frame::{FrameHeaderLayout, VERSION};

use super::FrameError;

/// Type of a frame. Type ids 8 to 10 are reserved for transport security and −1 for extensions. They are not in use,
/// and are refused like any unknown type id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum FrameType {
    /// A range of a term without messages; only its header is sent.
    Pad = 0,
    /// A message, a fragment of a message, or a heartbeat.
    Data = 1,
    /// A receiver requests missing bytes.
    Nak = 2,
    /// A receiver reports its consumption, or requests a setup.
    StatusMessage = 3,
    /// A receiver has rejected the stream.
    Error = 4,
    /// A sender announces the properties of a stream.
    Setup = 5,
    /// A measurement of the round-trip time, or the response to a measurement.
    Rttm = 6,
    /// Names and addresses of drivers.
    Resolution = 7,
    /// A receiver of a request stream tells its sender the session id of the response stream.
    ResponseSetup = 11,
}

impl FrameType {
    /// Returns the type with this id.
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

    /// Returns the type id on the wire.
    #[must_use]
    pub const fn id(self) -> i16 {
        self as i16
    }
}

/// The fields that all frames have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Length of the frame in bytes with its header and without alignment, 0 in heartbeats; not validated.
    pub frame_length: i32,
    /// Meaning depends on the type; undefined bits are ignored.
    pub flags: u8,
    /// Type of the frame.
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

    /// Returns the header as bytes.
    pub(super) fn layout(&self) -> FrameHeaderLayout {
        FrameHeaderLayout {
            frame_length: self.frame_length.into(),
            version: VERSION,
            flags: self.flags,
            frame_type: self.frame_type.id().into(),
        }
    }
}
