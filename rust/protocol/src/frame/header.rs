//! The 8 bytes that every frame begins with.

use super::FrameError;
use super::layout::{At, Place};

const LENGTH: usize = 8;
const VERSION: u8 = 0;

const FRAME_LENGTH: At = At(0);
const VERSION_AT: usize = 4;
pub(super) const FLAGS_AT: usize = 5;
const TYPE_AT: usize = 6;

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
        let header: &[u8; LENGTH] = datagram.first_chunk().ok_or(FrameError::TooShort {
            length: datagram.len(),
            required: LENGTH,
        })?;
        if header[VERSION_AT] != VERSION {
            return Err(FrameError::Version(header[VERSION_AT]));
        }
        let type_id = type_id(header);
        Ok(Self {
            frame_length: FRAME_LENGTH.read(header),
            flags: header[FLAGS_AT],
            frame_type: FrameType::from_id(type_id).ok_or(FrameError::Type(type_id))?,
        })
    }

    /// Writes the header at the start of `frame`, which has room for it.
    pub(super) fn write(&self, frame: &mut [u8]) {
        FRAME_LENGTH.write(frame, self.frame_length);
        frame[VERSION_AT] = VERSION;
        frame[FLAGS_AT] = self.flags;
        frame[TYPE_AT..LENGTH].copy_from_slice(&self.frame_type.id().to_le_bytes());
    }
}

/// The type id of a frame of at least 8 bytes.
pub(super) fn type_id(frame: &[u8]) -> i16 {
    i16::from_le_bytes([frame[TYPE_AT], frame[TYPE_AT + 1]])
}
