//! Values of fields, independent of their encodings.

use std::borrow::Cow;

use crate::number::SbeNumber;

/// Value of a field, read from a message or to be written.
#[derive(Debug, Clone, PartialEq)]
pub enum SbeValue<'a> {
    /// No value: the field is null, or newer than the message.
    Null,
    /// An integer, float, `char` array item, time (in the field's unit), or the bits of a set.
    Number(SbeNumber),
    /// A text, or the name of an enum's value on writing.
    Text(Cow<'a, str>),
    /// Bytes that are not a text.
    Bytes(Cow<'a, [u8]>),
    /// Value of an enum.
    Symbol {
        /// The encoded number.
        number: SbeNumber,
        /// Name in the schema, or `None` if the schema does not know the number.
        name: Option<&'a str>,
    },
    /// A decimal number.
    Decimal {
        /// The integer that is multiplied by the power of ten.
        mantissa: i128,
        /// Power of ten.
        exponent: i32,
    },
    /// Items of an array, or names of the choices of a set on writing.
    List(Vec<SbeValue<'a>>),
    /// Values of the members of a composite, in their order, also of constants.
    Struct(Vec<SbeValue<'a>>),
}

impl SbeValue<'_> {
    /// Returns mantissa and exponent of the same decimal, without zeros at the end of the mantissa.
    pub fn stripped(mantissa: i128, exponent: i32) -> (i128, i32) {
        let (mut mantissa, mut exponent) = (mantissa, exponent);
        while mantissa != 0 && mantissa % 10 == 0 && exponent < i32::MAX {
            (mantissa, exponent) = (mantissa / 10, exponent + 1);
        }
        match mantissa {
            0 => (0, 0),
            mantissa => (mantissa, exponent),
        }
    }
}

/// Values of a message or of a group entry, in the order of the plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SbeRecord<'a> {
    /// One value for each field of the plan, also for constants.
    pub fields: Vec<SbeValue<'a>>,
    /// Entries of each group of the plan. A group that is absent has no entries.
    pub groups: Vec<Vec<SbeRecord<'a>>>,
    /// Bytes of each data of the plan, or `None` for data that are newer than the message.
    pub data: Vec<Option<Cow<'a, [u8]>>>,
}

impl<'a> From<i64> for SbeValue<'a> {
    fn from(value: i64) -> Self {
        Self::Number(SbeNumber::Signed(value))
    }
}

impl<'a> From<u64> for SbeValue<'a> {
    fn from(value: u64) -> Self {
        Self::Number(SbeNumber::Unsigned(value))
    }
}

impl<'a> From<f64> for SbeValue<'a> {
    fn from(value: f64) -> Self {
        Self::Number(SbeNumber::Float(value))
    }
}

impl<'a> From<&'a str> for SbeValue<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}
