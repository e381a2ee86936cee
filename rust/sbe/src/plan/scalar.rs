//! A number at an offset.

use crate::number::{SbeByteOrder, SbeNumber, SbePrimitive};

/// Encoding of one number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SbeScalar {
    /// Primitive type.
    pub primitive: SbePrimitive,
    /// Byte order.
    pub order: SbeByteOrder,
    /// The null value. It means null only if the presence is optional.
    pub null: SbeNumber,
    /// Least value on encoding, if the schema states one.
    pub min: Option<SbeNumber>,
    /// Greatest value on encoding, if the schema states one.
    pub max: Option<SbeNumber>,
}

impl SbeScalar {
    /// Returns the length in bytes.
    pub fn length(&self) -> usize {
        self.primitive.length()
    }

    /// Reads the number at the start of `bytes`. Returns `None` if `bytes` is too short.
    #[inline]
    pub fn read(&self, bytes: &[u8]) -> Option<SbeNumber> {
        self.primitive.read(bytes, self.order)
    }

    /// Returns whether a number is the null value. For floats with the default null, any NaN is.
    #[inline]
    pub fn is_null(&self, number: SbeNumber) -> bool {
        self.null == number
    }
}
