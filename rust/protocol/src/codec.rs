//! How a message is laid out, said once per message: its fields in order, each read and written by its type.
//!
//! Integers are little-endian and stand on multiples of 4 bytes; a byte string is an i32 length followed by that many
//! bytes. Where a field follows a byte string, the string is padded to the next multiple of 4, and the pad is not counted
//! in its length: so aligning before each field is all that padding takes. Bytes after the last field are ignored.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::ErrorCode;

/// Why the bytes of a message were not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No message of this direction has the type id.
    #[error("command={type_id} unknown")]
    UnknownTypeId {
        /// Type id of the record.
        type_id: i32,
    },
    /// The message ends before its last field does, or a declared length goes beyond its end.
    #[error("command={type_id} too short: length={length}")]
    TooShort {
        /// Type id of the record.
        type_id: i32,
        /// Bytes that the message has.
        length: usize,
    },
    /// A declared length is negative.
    #[error("command={type_id} has a negative length: {field}={declared}")]
    NegativeLength {
        /// Type id of the record.
        type_id: i32,
        /// The byte string whose length is declared.
        field: &'static str,
        /// The declared length.
        declared: i32,
    },
}

impl DecodeError {
    /// The code under which a driver or client reports this.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownTypeId { .. } => ErrorCode::UnknownCommandTypeId,
            Self::TooShort { .. } | Self::NegativeLength { .. } => ErrorCode::MalformedCommand,
        }
    }
}

/// A message does not fit in the bytes it was to be written to; nothing useful was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message of {required} bytes does not fit in {available}")]
pub struct EncodeError {
    /// Bytes that the message takes.
    pub required: usize,
    /// Bytes that were given.
    pub available: usize,
}

/// Takes fields off the front of a message.
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

    /// Bytes of the whole message.
    pub(crate) fn length(&self) -> usize {
        self.body.len()
    }

    pub(crate) fn field<F: Field<'a>>(&mut self, name: &'static str) -> Result<F, DecodeError> {
        self.position = self.position.next_multiple_of(FIELD_ALIGNMENT);
        F::read(self, name)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let taken = self
            .body
            .get(self.position..)
            .and_then(|rest| rest.get(..length))
            .ok_or(DecodeError::TooShort {
                type_id: self.type_id,
                length: self.body.len(),
            })?;
        self.position += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }
}

/// Puts fields one after another, and goes on counting when there is no room left, so that an empty one measures.
pub(crate) struct Writer<'b> {
    out: &'b mut [u8],
    position: usize,
}

impl Writer<'_> {
    pub(crate) fn field<'a>(&mut self, field: &impl Field<'a>) {
        self.pad_to(self.position.next_multiple_of(FIELD_ALIGNMENT));
        field.write(self);
    }

    /// Zeros up to a length of `length` bytes.
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

/// A message: a run of fields.
pub(crate) trait Message<'a>: Sized {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;
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
        // A record's length is an i32, so a longer message has nowhere to go and no length field can overflow.
        if required > available || i32::try_from(required).is_err() {
            return Err(EncodeError {
                required,
                available,
            });
        }
        Ok(required)
    }
}

/// What a message is made of.
pub(crate) trait Field<'a>: Sized {
    fn read(reader: &mut Reader<'a>, name: &'static str) -> Result<Self, DecodeError>;
    fn write(&self, writer: &mut Writer<'_>);
}

const FIELD_ALIGNMENT: usize = 4;

macro_rules! integer_field {
    ($($integer:ty),*) => {$(
        impl<'a> Field<'a> for $integer {
            fn read(reader: &mut Reader<'a>, _: &'static str) -> Result<Self, DecodeError> {
                reader.array().map(Self::from_le_bytes)
            }

            fn write(&self, writer: &mut Writer<'_>) {
                writer.put(&self.to_le_bytes());
            }
        }
    )*};
}

integer_field!(i32, i64, u64);

impl<'a> Field<'a> for &'a [u8] {
    fn read(reader: &mut Reader<'a>, name: &'static str) -> Result<Self, DecodeError> {
        let declared: i32 = reader.field(name)?;
        let length = usize::try_from(declared).map_err(|_| DecodeError::NegativeLength {
            type_id: reader.type_id,
            field: name,
            declared,
        })?;
        reader.take(length)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        // A length beyond i32 saturates here and is refused by `encode`, which sees the whole message's length.
        writer.field(&i32::try_from(self.len()).unwrap_or(i32::MAX));
        writer.put(self);
    }
}

impl<'a> Field<'a> for ErrorCode {
    fn read(reader: &mut Reader<'a>, name: &'static str) -> Result<Self, DecodeError> {
        reader.field(name).map(Self::from_value)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.field(&self.value());
    }
}

const ADDRESS_TYPE_IPV4: u16 = 1;
const ADDRESS_TYPE_IPV6: u16 = 2;

/// 20 bytes: type i16, port u16 in little-endian, then the address in network order, IPv4 in the first 4 of 16 bytes.
impl<'a> Field<'a> for Option<SocketAddr> {
    fn read(reader: &mut Reader<'a>, _: &'static str) -> Result<Self, DecodeError> {
        let address_type = u16::from_le_bytes(reader.array()?);
        let port = u16::from_le_bytes(reader.array()?);
        let octets: [u8; 16] = reader.array()?;
        let [a, b, c, d, ..] = octets;
        let ip: IpAddr = match address_type {
            ADDRESS_TYPE_IPV4 => Ipv4Addr::new(a, b, c, d).into(),
            ADDRESS_TYPE_IPV6 => Ipv6Addr::from(octets).into(),
            _ => return Ok(None),
        };
        Ok(Some(SocketAddr::new(ip, port)))
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let (address_type, port) = match self {
            Some(SocketAddr::V4(address)) => (ADDRESS_TYPE_IPV4, address.port()),
            Some(SocketAddr::V6(address)) => (ADDRESS_TYPE_IPV6, address.port()),
            None => (0, 0),
        };
        let end = writer.position + 20;
        writer.put(&address_type.to_le_bytes());
        writer.put(&port.to_le_bytes());
        match self {
            Some(SocketAddr::V4(address)) => writer.put(&address.ip().octets()),
            Some(SocketAddr::V6(address)) => writer.put(&address.ip().octets()),
            None => {}
        }
        writer.pad_to(end);
    }
}

/// Declares a message's fields in the order in which they travel; `at least n` is the length it is padded to.
macro_rules! message {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident $(<$lifetime:lifetime>)? $(at least $minimum:literal)? {
            $( $(#[$field_attribute:meta])* pub $field:ident: $type:ty, )*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name $(<$lifetime>)? {
            $( $(#[$field_attribute])* pub $field: $type, )*
        }

        impl<'a> $crate::codec::Message<'a> for $name $(<$lifetime>)? {
            fn read(reader: &mut $crate::codec::Reader<'a>) -> Result<Self, $crate::DecodeError> {
                Ok(Self { $( $field: reader.field(stringify!($field))?, )* })
            }

            fn write(&self, writer: &mut $crate::codec::Writer<'_>) {
                $( writer.field(&self.$field); )*
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

            /// The type id that goes in the record's header.
            #[must_use]
            pub const fn type_id(&self) -> i32 {
                match self {
                    $( Self::$variant(_) => $type_id, )*
                }
            }

            /// Bytes that [`encode`](Self::encode) writes.
            #[must_use]
            pub fn encoded_length(&self) -> usize {
                use $crate::codec::Message;
                match self {
                    $( Self::$variant(message) => message.measure(), )*
                }
            }

            /// Writes the body at the start of `out` and answers its length in bytes.
            ///
            /// # Errors
            /// [`EncodeError`](crate::EncodeError) when `out` is shorter than [`encoded_length`](Self::encoded_length).
            pub fn encode(&self, out: &mut [u8]) -> Result<usize, $crate::EncodeError> {
                use $crate::codec::Message;
                match self {
                    $( Self::$variant(message) => message.encode(out), )*
                }
            }
        }
    };
}

pub(crate) use {message, message_set};
