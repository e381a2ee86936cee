//! Encodes and decodes messages between clients and driver. A message has fields at fixed offsets, with a declared
//! layout, and then texts.
//!
//! A text is an i32 length and the bytes. A text begins at a multiple of 4; the padding before the next text is not
//! counted in the length. Bytes after the last text are ignored.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use aeron_layout::event::SocketAddressLayout;
use aeron_layout::{FromZeros, I32, I64, Layout, U32};

use crate::ErrorCode;

/// Reason why a message cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No command, or no event, has the type id.
    #[error("command={type_id} unknown")]
    UnknownTypeId {
        /// Type id of the record.
        type_id: i32,
    },
    /// The message ends before its last field, or a declared length exceeds the message.
    #[error("command={type_id} too short: length={length}")]
    TooShort {
        /// Type id of the record.
        type_id: i32,
        /// Length of the message in bytes.
        length: usize,
    },
    /// A declared length is negative.
    #[error("command={type_id} has a negative length: {field}={declared}")]
    NegativeLength {
        /// Type id of the record.
        type_id: i32,
        /// Name of the byte string with the declared length.
        field: &'static str,
        /// The declared length.
        declared: i32,
    },
}

impl DecodeError {
    /// Returns the code under which a driver or client reports this error.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownTypeId { .. } => ErrorCode::UnknownCommandTypeId,
            Self::TooShort { .. } | Self::NegativeLength { .. } => ErrorCode::MalformedCommand,
        }
    }
}

/// A message does not fit into the output buffer. The content of the buffer is undefined after this error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message of {required} bytes does not fit in {available}")]
pub struct EncodeError {
    /// Length of the message in bytes.
    pub required: usize,
    /// Length of the buffer in bytes.
    pub available: usize,
}

/// Reads the parts of a message in order.
pub(crate) struct Reader<'a> {
    type_id: i32,
    body: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(type_id: i32, body: &'a [u8]) -> Self {
        Self {
            type_id,
            body,
            position: 0,
        }
    }

    /// Returns the length of the whole message in bytes.
    pub(crate) fn length(&self) -> usize {
        self.body.len()
    }

    /// Returns the fields at fixed offsets, which are at the start of the message.
    pub(crate) fn layout<L: Layout>(&mut self) -> Result<&'a L, DecodeError> {
        let too_short = self.too_short();
        L::first_in(self.take(L::LENGTH)?).ok_or(too_short)
    }

    /// Returns the next text; `name` is the field's name in errors.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<&'a [u8], DecodeError> {
        self.position = self.position.next_multiple_of(TEXT_ALIGNMENT);
        let mut declared = [0; size_of::<I32>()];
        declared.copy_from_slice(self.take(size_of::<I32>())?);
        let declared = I32::from_bytes(declared).get();
        let length = usize::try_from(declared).map_err(|_| DecodeError::NegativeLength {
            type_id: self.type_id,
            field: name,
            declared,
        })?;
        self.take(length)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let taken = self
            .body
            .get(self.position..)
            .and_then(|rest| rest.get(..length))
            .ok_or(self.too_short())?;
        self.position += length;
        Ok(taken)
    }

    const fn too_short(&self) -> DecodeError {
        DecodeError::TooShort {
            type_id: self.type_id,
            length: self.body.len(),
        }
    }
}

/// Writes the parts of a message in order. If the buffer is full, only counts the bytes. An empty buffer therefore
/// measures the length.
pub(crate) struct Writer<'b> {
    out: &'b mut [u8],
    position: usize,
}

impl Writer<'_> {
    pub(crate) fn layout(&mut self, layout: &impl Layout) {
        self.put(layout.as_bytes());
    }

    pub(crate) fn text(&mut self, text: &[u8]) {
        self.pad_to(self.position.next_multiple_of(TEXT_ALIGNMENT));
        // A length above i32 saturates here; `encode` then refuses the message because of its total length.
        let length = I32::new(i32::try_from(text.len()).unwrap_or(i32::MAX));
        self.put(&length.to_bytes());
        self.put(text);
    }

    /// Writes a variable-length field of a message to or from an archive: its length and its bytes, not aligned.
    pub(crate) fn data(&mut self, data: &[u8]) {
        // A length above u32 saturates here; `encode` then refuses the message because of its total length.
        let length = U32::new(u32::try_from(data.len()).unwrap_or(u32::MAX));
        self.put(&length.to_bytes());
        self.put(data);
    }

    /// Returns the number of bytes written so far.
    pub(crate) const fn length(&self) -> usize {
        self.position
    }

    /// Writes zeros up to a total length of `length` bytes.
    pub(crate) fn pad_to(&mut self, length: usize) {
        let end = length.min(self.out.len());
        if let Some(pad) = self.out.get_mut(self.position..end) {
            pad.fill(0);
        }
        self.position = self.position.max(length);
    }

    fn put(&mut self, bytes: &[u8]) {
        let end = self.position + bytes.len();
        if let Some(place) = self.out.get_mut(self.position..end) {
            place.copy_from_slice(bytes);
        }
        self.position = end;
    }
}

/// A message that can be written into a buffer of the caller.
pub(crate) trait Encode {
    fn write(&self, writer: &mut Writer<'_>);

    fn measure(&self) -> usize {
        let mut writer = Writer {
            out: &mut [],
            position: 0,
        };
        self.write(&mut writer);
        writer.position
    }

    fn encode(&self, out: &mut [u8]) -> Result<usize, EncodeError> {
        let available = out.len();
        let mut writer = Writer { out, position: 0 };
        self.write(&mut writer);
        let required = writer.position;
        // The length of a record is an i32. Therefore a longer message is refused, and no length field can overflow.
        if required > available || i32::try_from(required).is_err() {
            return Err(EncodeError {
                required,
                available,
            });
        }
        Ok(required)
    }
}

/// A message between client and driver: fields at fixed offsets, then texts.
pub(crate) trait Message<'a>: Encode + Sized {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;
}

const TEXT_ALIGNMENT: usize = 4;

/// A value that converts to and from the type `L` of a field in a layout.
pub(crate) trait Value<L> {
    fn of(layout: L) -> Self;
    fn layout(self) -> L;
}

macro_rules! integer_value {
    ($($integer:ty, $layout:ty;)*) => {$(
        impl Value<$layout> for $integer {
            fn of(layout: $layout) -> Self {
                layout.get()
            }

            fn layout(self) -> $layout {
                self.into()
            }
        }
    )*};
}

integer_value!(i32, I32; i64, I64;);

impl Value<I32> for ErrorCode {
    fn of(layout: I32) -> Self {
        Self::from_value(layout.get())
    }

    fn layout(self) -> I32 {
        self.value().into()
    }
}

const ADDRESS_TYPE_IPV4: u16 = 1;
const ADDRESS_TYPE_IPV6: u16 = 2;

impl Value<SocketAddressLayout> for Option<SocketAddr> {
    fn of(layout: SocketAddressLayout) -> Self {
        let [a, b, c, d, ..] = layout.address;
        let ip: IpAddr = match layout.address_type.get() {
            ADDRESS_TYPE_IPV4 => Ipv4Addr::new(a, b, c, d).into(),
            ADDRESS_TYPE_IPV6 => Ipv6Addr::from(layout.address).into(),
            _ => return None,
        };
        Some(SocketAddr::new(ip, layout.port.get()))
    }

    fn layout(self) -> SocketAddressLayout {
        let Some(socket_address) = self else {
            return SocketAddressLayout::new_zeroed();
        };
        let mut address = [0; 16];
        let address_type = match socket_address.ip() {
            IpAddr::V4(ip) => {
                address[..4].copy_from_slice(&ip.octets());
                ADDRESS_TYPE_IPV4
            }
            IpAddr::V6(ip) => {
                address = ip.octets();
                ADDRESS_TYPE_IPV6
            }
        };
        SocketAddressLayout {
            address_type: address_type.into(),
            port: socket_address.port().into(),
            address,
        }
    }
}

/// Declares a message: the layout of its fields at fixed offsets, then its texts. `at least n` pads a shorter message
/// to `n` bytes.
macro_rules! message {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident $(<$lifetime:lifetime>)? ($layout:ident) $(at least $minimum:literal)? {
            $( $(#[$field_attribute:meta])* pub $field:ident: $type:ty, )*
            $( texts { $( $(#[$text_attribute:meta])* $text:ident, )* } )?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name $(<$lifetime>)? {
            $( $(#[$field_attribute])* pub $field: $type, )*
            $( $( $(#[$text_attribute])* pub $text: &'a [u8], )* )?
        }

        impl<'a> $crate::codec::Message<'a> for $name $(<$lifetime>)? {
            fn read(reader: &mut $crate::codec::Reader<'a>) -> Result<Self, $crate::DecodeError> {
                let layout = reader.layout::<$layout>()?;
                Ok(Self {
                    $( $field: $crate::codec::Value::of(layout.$field), )*
                    $( $( $text: reader.text(stringify!($text))?, )* )?
                })
            }
        }

        impl $(<$lifetime>)? $crate::codec::Encode for $name $(<$lifetime>)? {
            fn write(&self, writer: &mut $crate::codec::Writer<'_>) {
                writer.layout(&$layout {
                    $( $field: $crate::codec::Value::layout(self.$field), )*
                });
                $( $( writer.text(self.$text); )* )?
                $( writer.pad_to($minimum); )?
            }
        }
    };
}

/// Declares the messages of one direction with their type ids.
macro_rules! message_set {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $( $(#[$variant_attribute:meta])* $variant:ident($message:ty) = $type_id:path, )*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name<'a> {
            $( $(#[$variant_attribute])* $variant($message), )*
        }

        impl<'a> $name<'a> {
            /// Reads the body of a record whose header gives `type_id`. Byte strings are borrowed from `body`; bytes
            /// after the last field are ignored.
            ///
            /// # Errors
            /// [`DecodeError`](crate::DecodeError) for an unknown type id, a body that ends too early, or a negative
            /// length. Never reads outside `body` and never panics.
            pub fn decode(type_id: i32, body: &'a [u8]) -> Result<Self, $crate::DecodeError> {
                use $crate::codec::{Message, Reader};
                let mut reader = Reader::new(type_id, body);
                match type_id {
                    $( $type_id => <$message>::read(&mut reader).map(Self::$variant), )*
                    _ => Err($crate::DecodeError::UnknownTypeId { type_id }),
                }
            }

            /// Returns the type id for the record's header.
            #[must_use]
            pub const fn type_id(&self) -> i32 {
                match self {
                    $( Self::$variant(_) => $type_id, )*
                }
            }

            /// Returns the number of bytes that [`encode`](Self::encode) writes.
            #[must_use]
            pub fn encoded_length(&self) -> usize {
                use $crate::codec::Encode;
                match self {
                    $( Self::$variant(message) => message.measure(), )*
                }
            }

            /// Writes the body at the start of `out`. Returns its length in bytes.
            ///
            /// # Errors
            /// [`EncodeError`](crate::EncodeError) if `out` is shorter than [`encoded_length`](Self::encoded_length).
            pub fn encode(&self, out: &mut [u8]) -> Result<usize, $crate::EncodeError> {
                use $crate::codec::Encode;
                match self {
                    $( Self::$variant(message) => message.encode(out), )*
                }
            }
        }
    };
}

pub(crate) use {message, message_set};
