//! Macros that declare layouts, and the trait of all layouts.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A field of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the field.
    pub name: &'static str,
    /// Offset of the field in bytes.
    pub offset: usize,
    /// Length of the field in bytes.
    pub length: usize,
}

/// A sequence of bytes with named fields. Any bytes are valid, so a cast from bytes of the right length cannot fail.
pub trait Layout: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned + Copy {
    /// Name of the struct.
    const NAME: &'static str;

    /// Length of the layout in bytes.
    const LENGTH: usize;

    /// All fields in their order, reserved ones included.
    const FIELDS: &'static [Field];

    /// Returns the first [`LENGTH`](Self::LENGTH) bytes of `bytes` as this layout; `None` if `bytes` is shorter.
    #[inline(always)]
    fn first_in(bytes: &[u8]) -> Option<&Self> {
        Self::ref_from_prefix(bytes).ok().map(|(layout, _)| layout)
    }

    /// Like [`first_in`](Self::first_in), but returns a mutable reference.
    #[inline(always)]
    fn first_in_mut(bytes: &mut [u8]) -> Option<&mut Self> {
        Self::mut_from_prefix(bytes).ok().map(|(layout, _)| layout)
    }
}

/// Declares layouts: `pub struct Name: length { pub field: Type = offset, ... }`.
///
/// Offsets and length are numbers of the specification; the compiler compares them with the struct.
macro_rules! layout {
    ($(
        $(#[$attribute:meta])*
        pub struct $name:ident: $length:literal {
            $( $(#[$field_attribute:meta])* $visibility:vis $field:ident: $type:ty = $offset:literal, )*
        }
    )*) => {$(
        $(#[$attribute])*
        #[derive(
            Clone,
            Copy,
            Debug,
            zerocopy_derive::FromBytes,
            zerocopy_derive::IntoBytes,
            zerocopy_derive::KnownLayout,
            zerocopy_derive::Immutable,
            zerocopy_derive::Unaligned,
        )]
        #[repr(C)]
        pub struct $name {
            $( $(#[$field_attribute])* $visibility $field: $type, )*
        }

        const _: () = {
            $( assert!(::core::mem::offset_of!($name, $field) == $offset, stringify!($name.$field)); )*
            assert!(size_of::<$name>() == $length, stringify!($name));
        };

        impl $name {
            /// Length of the layout in bytes.
            pub const LENGTH: usize = $length;

            /// Returns an array of the right length as this layout.
            #[inline(always)]
            #[must_use]
            pub fn of(bytes: &[u8; $length]) -> &Self {
                zerocopy::transmute_ref!(bytes)
            }

            /// Returns the bytes as an array.
            #[inline(always)]
            #[must_use]
            pub fn to_bytes(self) -> [u8; $length] {
                zerocopy::transmute!(self)
            }
        }

        impl $crate::Layout for $name {
            const NAME: &'static str = stringify!($name);
            const LENGTH: usize = $length;
            const FIELDS: &'static [$crate::Field] = &[$(
                $crate::Field {
                    name: stringify!($field),
                    offset: ::core::mem::offset_of!($name, $field),
                    length: size_of::<$type>(),
                },
            )*];
        }
    )*};
}

pub(crate) use layout;

/// Offset in bytes of a field, for shared memory: `offset!(Layout, field: Type)`, or `outer.inner: Type` for a nested
/// field.
///
/// The type names the width that the load or store must have. A wrong type does not compile:
///
/// ```compile_fail
/// use aeron_layout::{I64, frame::DataHeaderLayout, offset};
///
/// const TERM_ID: usize = offset!(DataHeaderLayout, term_id: I64);
/// ```
#[macro_export]
macro_rules! offset {
    ($layout:ty, $($field:ident).+: $type:ty) => {{
        const _: fn(&$layout) -> &$type = |layout| &layout.$($field).+;
        ::core::mem::offset_of!($layout, $($field).+)
    }};
}
