//! Primitive types, byte orders and numbers.

use std::fmt;

/// Order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SbeByteOrder {
    /// The least significant byte is first.
    #[default]
    Little,
    /// The most significant byte is first.
    Big,
}

impl SbeByteOrder {
    fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }
}

impl SbeByteOrder {
    fn bytes16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    fn bytes32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    fn bytes64(self, value: u64) -> [u8; 8] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }
}

/// Copies an array to the start of `bytes`. Returns whether it fits.
fn put<const N: usize>(bytes: &mut [u8], array: [u8; N]) -> bool {
    bytes
        .first_chunk_mut()
        .map(|place: &mut [u8; N]| *place = array)
        .is_some()
}

/// Primitive type of an encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SbePrimitive {
    /// One byte of a text.
    Char,
    /// Signed integer of 1 byte.
    Int8,
    /// Signed integer of 2 bytes.
    Int16,
    /// Signed integer of 4 bytes.
    Int32,
    /// Signed integer of 8 bytes.
    Int64,
    /// Unsigned integer of 1 byte.
    Uint8,
    /// Unsigned integer of 2 bytes.
    Uint16,
    /// Unsigned integer of 4 bytes.
    Uint32,
    /// Unsigned integer of 8 bytes.
    Uint64,
    /// IEEE 754 number of 4 bytes.
    Float,
    /// IEEE 754 number of 8 bytes.
    Double,
}

/// All primitive types with their names in schemas.
const NAMES: [(&str, SbePrimitive); 11] = [
    ("char", SbePrimitive::Char),
    ("int8", SbePrimitive::Int8),
    ("int16", SbePrimitive::Int16),
    ("int32", SbePrimitive::Int32),
    ("int64", SbePrimitive::Int64),
    ("uint8", SbePrimitive::Uint8),
    ("uint16", SbePrimitive::Uint16),
    ("uint32", SbePrimitive::Uint32),
    ("uint64", SbePrimitive::Uint64),
    ("float", SbePrimitive::Float),
    ("double", SbePrimitive::Double),
];

impl SbePrimitive {
    /// Returns the primitive type of a name in schemas, such as `uint16`.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, primitive)| *primitive)
    }

    /// Returns the name in schemas, such as `uint16`.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].0
    }

    /// Returns the length in bytes: 1, 2, 4 or 8.
    pub fn length(self) -> usize {
        match self {
            Self::Char | Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float => 4,
            Self::Int64 | Self::Uint64 | Self::Double => 8,
        }
    }

    /// Returns whether the type is one of the unsigned integers. `char` is not.
    pub fn is_unsigned(self) -> bool {
        matches!(
            self,
            Self::Uint8 | Self::Uint16 | Self::Uint32 | Self::Uint64
        )
    }

    /// Returns whether the type is one of the signed integers.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64)
    }

    /// Returns whether the type is a signed or unsigned integer. `char` is not.
    pub fn is_integer(self) -> bool {
        self.is_signed() || self.is_unsigned()
    }

    /// Returns the null value that applies if the schema states none.
    ///
    /// It is the minimum of signed types, the maximum of unsigned types, 0 for `char` and NaN for floats.
    pub fn default_null(self) -> SbeNumber {
        let bits = 8 * self.length() as u32;
        match self {
            Self::Char => SbeNumber::Unsigned(0),
            Self::Float | Self::Double => SbeNumber::Float(f64::NAN),
            _ if self.is_signed() => SbeNumber::Signed(i64::MIN >> (64 - bits)),
            _ => SbeNumber::Unsigned(u64::MAX >> (64 - bits)),
        }
    }

    /// Returns the least and the greatest number, also if one of them is the null value.
    pub fn range(self) -> (SbeNumber, SbeNumber) {
        let unused = 64 - 8 * self.length() as u32;
        match self {
            Self::Float => (
                SbeNumber::Float(f32::MIN.into()),
                SbeNumber::Float(f32::MAX.into()),
            ),
            Self::Double => (SbeNumber::Float(f64::MIN), SbeNumber::Float(f64::MAX)),
            _ if self.is_signed() => (
                SbeNumber::Signed(i64::MIN >> unused),
                SbeNumber::Signed(i64::MAX >> unused),
            ),
            _ => (
                SbeNumber::Unsigned(0),
                SbeNumber::Unsigned(u64::MAX >> unused),
            ),
        }
    }

    /// Reads the number at the start of `bytes`. Returns `None` if `bytes` is shorter than the type.
    #[inline]
    pub fn read(self, bytes: &[u8], order: SbeByteOrder) -> Option<SbeNumber> {
        let raw = match self.length() {
            1 => u64::from(*bytes.first()?),
            2 => bytes.first_chunk().map(|it| order.u16(*it).into())?,
            4 => bytes.first_chunk().map(|it| order.u32(*it).into())?,
            _ => bytes.first_chunk().map(|it| order.u64(*it))?,
        };
        let unused = 64 - 8 * self.length() as u32;
        Some(match self {
            Self::Float => SbeNumber::Float(f64::from(f32::from_bits(raw as u32))),
            Self::Double => SbeNumber::Float(f64::from_bits(raw)),
            _ if self.is_signed() => SbeNumber::Signed((raw << unused) as i64 >> unused),
            _ => SbeNumber::Unsigned(raw),
        })
    }

    /// Writes a number to the start of `bytes`.
    ///
    /// Returns whether the number fits the type and the type fits `bytes`. If not, `bytes` is unchanged. A float is
    /// rounded to 4 bytes.
    pub fn write(self, number: SbeNumber, order: SbeByteOrder, bytes: &mut [u8]) -> bool {
        let Some(raw) = self.raw(number) else {
            return false;
        };
        // Each width on its own: a copy of a length that is known only at run time is a call.
        match self.length() {
            1 => put(bytes, [raw as u8]),
            2 => put(bytes, order.bytes16(raw as u16)),
            4 => put(bytes, order.bytes32(raw as u32)),
            _ => put(bytes, order.bytes64(raw)),
        }
    }

    /// Returns whether the type can hold a number exactly. Floats are held by both float types.
    pub fn holds(self, number: SbeNumber) -> bool {
        self.raw(number).is_some()
    }

    fn raw(self, number: SbeNumber) -> Option<u64> {
        match self {
            Self::Float => Some(u64::from((number.as_f64() as f32).to_bits())),
            Self::Double => Some(number.as_f64().to_bits()),
            _ => {
                let unused = 64 - 8 * self.length() as u32;
                if self.is_signed() {
                    let value = number.as_i64()?;
                    ((value << unused) >> unused == value).then_some(value as u64)
                } else {
                    let value = number.as_u64()?;
                    ((value << unused) >> unused == value).then_some(value)
                }
            }
        }
    }

    /// Parses a number of this type as schemas write it: decimal digits, `NaN`, or a character for `char`.
    ///
    /// Returns `None` if the text is not a number, or if the type cannot hold it. For `char`, one character is that
    /// character, and more digits are its code. The text `0` is ambiguous: `parse` returns the character.
    pub fn parse(self, text: &str) -> Option<SbeNumber> {
        let number = match self {
            Self::Char => match text.as_bytes() {
                [byte] => SbeNumber::Unsigned(u64::from(*byte)),
                _ => SbeNumber::Unsigned(text.trim().parse().ok()?),
            },
            Self::Float | Self::Double => SbeNumber::Float(text.trim().parse().ok()?),
            _ if self.is_signed() => SbeNumber::Signed(text.trim().parse().ok()?),
            _ => SbeNumber::Unsigned(text.trim().parse().ok()?),
        };
        self.holds(number).then_some(number)
    }
}

impl fmt::Display for SbePrimitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A number of any primitive type.
#[derive(Debug, Clone, Copy)]
pub enum SbeNumber {
    /// Value of a signed integer.
    Signed(i64),
    /// Value of an unsigned integer or of a `char`.
    Unsigned(u64),
    /// Value of a float.
    Float(f64),
}

impl SbeNumber {
    /// Returns whether a number is less than another. NaN is not less than any number.
    pub fn is_less(self, other: Self) -> bool {
        match (self.as_i128(), other.as_i128()) {
            (Some(one), Some(two)) => one < two,
            _ => self.as_f64() < other.as_f64(),
        }
    }

    /// Returns the value as a signed integer, or `None` if it is a float or too large.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Self::Signed(value) => Some(value),
            Self::Unsigned(value) => value.try_into().ok(),
            Self::Float(_) => None,
        }
    }

    /// Returns the value as an unsigned integer, or `None` if it is a float or negative.
    pub fn as_u64(self) -> Option<u64> {
        match self {
            Self::Signed(value) => value.try_into().ok(),
            Self::Unsigned(value) => Some(value),
            Self::Float(_) => None,
        }
    }

    /// Returns the value as an integer, or `None` if it is a float.
    pub fn as_i128(self) -> Option<i128> {
        match self {
            Self::Signed(value) => Some(value.into()),
            Self::Unsigned(value) => Some(value.into()),
            Self::Float(_) => None,
        }
    }

    /// Returns the value as a float. Integers above 2^53 are rounded.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Signed(value) => value as f64,
            Self::Unsigned(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

/// Two numbers are equal if they have the same value. Any NaN equals any NaN: SBE's null of floats is any NaN.
impl PartialEq for SbeNumber {
    fn eq(&self, other: &Self) -> bool {
        if let (Self::Signed(one), Self::Signed(two)) = (self, other) {
            return one == two;
        }
        match (self.as_i128(), other.as_i128()) {
            (Some(one), Some(two)) => one == two,
            (None, None) => {
                let (one, two) = (self.as_f64(), other.as_f64());
                one == two || (one.is_nan() && two.is_nan())
            }
            _ => false,
        }
    }
}

impl fmt::Display for SbeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signed(value) => value.fmt(f),
            Self::Unsigned(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
        }
    }
}
