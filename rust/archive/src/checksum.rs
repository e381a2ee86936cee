//! [`Checksum`]: the checksums of frames and catalog entries.
//!
//! An archive that writes checksums stores the checksum of a data frame in the frame's session id field. The session id
//! itself is in the recording's catalog entry. The checksum covers the bytes after the frame's header, up to the
//! aligned end of the frame. A padding frame has no checksum: its session id field has the session id.

use std::fmt;
use std::str::FromStr;

use aeron_layout::frame::DataHeaderLayout;
use aeron_layout::{I32, Layout};
use aeron_memory::log::frame::{HEADER_LENGTH, aligned_length, frame_type, offset};

/// A checksum algorithm. The checksum has 32 bits, as many as a session id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// CRC-32 with the polynomial of zlib and Ethernet.
    Crc32,
    /// CRC-32C with the Castagnoli polynomial.
    Crc32c,
}

/// No checksum has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown checksum {name}: use CRC-32, CRC-32C, or the class name of one of them in io.aeron.archive.checksum or org.agrona.checksum"
)]
pub struct UnknownChecksum {
    /// The unknown name.
    pub name: String,
}

/// A data frame whose session id field is not the checksum of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("frame at position {position} has checksum {found}, expected {computed}")]
pub struct ChecksumMismatch {
    /// Position of the frame in the stream.
    pub position: i64,
    /// Checksum of the frame's bytes.
    pub computed: i32,
    /// Value of the session id field.
    pub found: i32,
}

impl FromStr for Checksum {
    type Err = UnknownChecksum;

    /// Parses a name or a Java class name, as in the property `aeron.archive.record.checksum`.
    fn from_str(name: &str) -> Result<Self, UnknownChecksum> {
        match name {
            "CRC-32" | "io.aeron.archive.checksum.Crc32" | "org.agrona.checksum.Crc32" => {
                Ok(Self::Crc32)
            }
            "CRC-32C" | "io.aeron.archive.checksum.Crc32c" | "org.agrona.checksum.Crc32c" => {
                Ok(Self::Crc32c)
            }
            _ => Err(UnknownChecksum {
                name: name.to_owned(),
            }),
        }
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Crc32 => "CRC-32",
            Self::Crc32c => "CRC-32C",
        })
    }
}

impl Checksum {
    /// All algorithms, the most usual first.
    pub(crate) const ALL: [Self; 2] = [Self::Crc32c, Self::Crc32];

    /// Computes the checksum of `bytes`.
    #[must_use]
    pub fn compute(self, bytes: &[u8]) -> i32 {
        let value = match self {
            Self::Crc32 => crc32fast::hash(bytes),
            Self::Crc32c => crc32c::crc32c(bytes),
        };
        value as i32
    }

    /// Writes the checksum of each data frame of `block` into the frame's session id field.
    ///
    /// The caller has checked the block: it holds whole data frames, or the header of one padding frame.
    pub(crate) fn stamp(self, block: &mut [u8]) {
        let mut rest = block;
        while let Some(header) = DataHeaderLayout::first_in(rest) {
            if header.header.frame_type.get() as u16 == frame_type::PADDING {
                return;
            }
            let frame_length = usize::try_from(header.header.frame_length.get()).unwrap_or(0);
            let length = aligned_length(frame_length).clamp(HEADER_LENGTH, rest.len());
            let (frame, next) = rest.split_at_mut(length);
            let value = I32::new(self.compute(&frame[HEADER_LENGTH..]));
            frame[offset::SESSION_ID..][..size_of::<I32>()].copy_from_slice(&value.to_bytes());
            rest = next;
        }
    }
}
