//! How a frame that travels alone is laid out, said once per frame: where each field stands.

use super::header::FLAGS_AT;
use super::{FrameError, FrameHeader, FrameType};

/// An integer at an offset, little-endian, without regard to alignment.
#[derive(Clone, Copy)]
pub(super) struct At(pub usize);

/// A bit of the flags.
#[derive(Clone, Copy)]
pub(super) struct Flag(pub u8);

/// Where a field of type `T` stands in a frame that is long enough to hold it.
pub(super) trait Place<T> {
    fn read(self, frame: &[u8]) -> T;
    fn write(self, frame: &mut [u8], value: T);
}

macro_rules! integer_place {
    ($($integer:ty),*) => {$(
        impl Place<$integer> for At {
            #[inline]
            fn read(self, frame: &[u8]) -> $integer {
                let mut bytes = [0; size_of::<$integer>()];
                bytes.copy_from_slice(&frame[self.0..self.0 + size_of::<$integer>()]);
                <$integer>::from_le_bytes(bytes)
            }

            #[inline]
            fn write(self, frame: &mut [u8], value: $integer) {
                frame[self.0..self.0 + size_of::<$integer>()].copy_from_slice(&value.to_le_bytes());
            }
        }
    )*};
}

integer_place!(i32, i64);

impl Place<bool> for Flag {
    #[inline]
    fn read(self, frame: &[u8]) -> bool {
        frame[FLAGS_AT] & self.0 != 0
    }

    #[inline]
    fn write(self, frame: &mut [u8], value: bool) {
        if value {
            frame[FLAGS_AT] |= self.0;
        }
    }
}

/// The header and the fixed part of the frame of `frame_type` that is the whole datagram. Its frame length may fall short of
/// the fixed part, but not go beyond the datagram.
pub(super) fn fixed_part<const LENGTH: usize>(
    datagram: &[u8],
    frame_type: FrameType,
) -> Result<(FrameHeader, &[u8; LENGTH]), FrameError> {
    let header = FrameHeader::decode(datagram)?;
    if header.frame_type != frame_type {
        return Err(FrameError::Type(header.frame_type.id()));
    }
    let fixed = datagram.first_chunk().ok_or(FrameError::TooShort {
        length: datagram.len(),
        required: LENGTH,
    })?;
    match usize::try_from(header.frame_length) {
        Ok(frame_length) if frame_length <= datagram.len() => Ok((header, fixed)),
        _ => Err(FrameError::FrameLength {
            frame_length: header.frame_length,
            available: datagram.len(),
        }),
    }
}

/// Begins a frame of `length` bytes at the start of `out`: writes the header without flags, and answers the frame.
pub(super) fn begin(out: &mut [u8], frame_type: FrameType, length: usize) -> &mut [u8] {
    let frame = &mut out[..length];
    let header = FrameHeader {
        frame_length: i32::try_from(length).expect("frames fit in datagrams"),
        flags: 0,
        frame_type,
    };
    header.write(frame);
    frame
}

/// Declares a frame of fixed length: its fields, and where each stands.
macro_rules! fixed_frame {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident: $length:literal {
            $( $(#[$field_attribute:meta])* pub $field:ident: $type:ty = $place:expr, )*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$field_attribute])* pub $field: $type, )*
        }

        impl $name {
            /// Bytes of the frame.
            pub const LENGTH: usize = $length;

            /// Reads the frame, which is the whole datagram; bytes after it are ignored. Values are as they came.
            ///
            /// # Errors
            /// [`FrameError`](super::FrameError) for a frame of another type, or one that is cut off.
            pub fn decode(datagram: &[u8]) -> Result<Self, super::FrameError> {
                let (_, frame) = super::layout::fixed_part::<$length>(datagram, super::FrameType::$name)?;
                Ok(Self { $( $field: super::layout::Place::read($place, frame), )* })
            }

            /// Writes the frame at the start of `out` and answers its length.
            ///
            /// # Panics
            /// When `out` is shorter than that.
            pub fn encode(&self, out: &mut [u8]) -> usize {
                let frame = super::layout::begin(out, super::FrameType::$name, $length);
                $( super::layout::Place::write($place, frame, self.$field); )*
                $length
            }
        }
    };
}

pub(super) use fixed_frame;
