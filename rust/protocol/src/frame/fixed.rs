//! Frames that are alone in their datagram: common functions, and a macro for frames of fixed length.

use aeron_layout::Layout;
use aeron_layout::frame::FrameHeaderLayout;

use super::{FrameError, FrameHeader, FrameType};

/// Returns the header and the fixed part of a frame of `frame_type` that is alone in its datagram. The frame length in
/// the header may be shorter than the fixed part, but must not exceed the datagram.
pub(super) fn fixed_part<L: Layout>(
    datagram: &[u8],
    frame_type: FrameType,
) -> Result<(FrameHeader, &L), FrameError> {
    let header = FrameHeader::decode(datagram)?;
    if header.frame_type != frame_type {
        return Err(FrameError::Type(header.frame_type.id()));
    }
    let fixed = L::first_in(datagram).ok_or(FrameError::TooShort {
        length: datagram.len(),
        required: L::LENGTH,
    })?;
    match usize::try_from(header.frame_length) {
        Ok(frame_length) if frame_length <= datagram.len() => Ok((header, fixed)),
        _ => Err(FrameError::FrameLength {
            frame_length: header.frame_length,
            available: datagram.len(),
        }),
    }
}

/// Returns the header of a frame of `length` bytes.
pub(super) fn header(frame_type: FrameType, flags: u8, length: usize) -> FrameHeaderLayout {
    let header = FrameHeader {
        frame_length: i32::try_from(length).expect("frames fit in datagrams"),
        flags,
        frame_type,
    };
    header.layout()
}

/// Returns `bit` if `is_set`, otherwise 0.
pub(super) const fn flag(is_set: bool, bit: u8) -> u8 {
    if is_set { bit } else { 0 }
}

/// Declares a frame of fixed length: the layout of its bytes, its flags, and the fields of the layout.
macro_rules! fixed_frame {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident($layout:ident) {
            $( flags { $( $(#[$flag_attribute:meta])* $flag:ident = $bit:literal, )* } )?
            $( $(#[$field_attribute:meta])* pub $field:ident: $type:ty, )*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $( $( $(#[$flag_attribute])* pub $flag: bool, )* )?
            $( $(#[$field_attribute])* pub $field: $type, )*
        }

        impl $name {
            /// Length of the frame in bytes.
            pub const LENGTH: usize = $layout::LENGTH;

            /// Reads the frame. The frame is alone in its datagram: bytes after the frame are ignored. Does not
            /// validate the values.
            ///
            /// # Errors
            /// [`FrameError`](super::FrameError) for a frame of another type, or a truncated frame.
            pub fn decode(datagram: &[u8]) -> Result<Self, super::FrameError> {
                use super::fixed::fixed_part;
                let (_header, frame) = fixed_part::<$layout>(datagram, super::FrameType::$name)?;
                Ok(Self {
                    $( $( $flag: _header.flags & $bit != 0, )* )?
                    $( $field: frame.$field.get(), )*
                })
            }

            /// Writes the frame at the start of `out` and returns its length.
            ///
            /// # Panics
            /// If `out` is shorter than the frame.
            pub fn encode(&self, out: &mut [u8]) -> usize {
                let flags = 0 $( $( | super::fixed::flag(self.$flag, $bit) )* )?;
                let frame = $layout {
                    header: super::fixed::header(super::FrameType::$name, flags, Self::LENGTH),
                    $( $field: self.$field.into(), )*
                };
                out[..Self::LENGTH].copy_from_slice(aeron_layout::IntoBytes::as_bytes(&frame));
                Self::LENGTH
            }
        }
    };
}

pub(super) use fixed_frame;
