//! Fields and their meanings.

use std::sync::Arc;

use crate::plan::SbeScalar;
use crate::schema::{SbeCharacterSet, SbeConstant, SbeEnum, SbePresence, SbeSet};

/// A field of a block, or a member of a composite.
#[derive(Debug, Clone)]
pub struct SbeField {
    /// Name of the field.
    pub name: String,
    /// Id of the field, or `None` for a member of a composite.
    pub id: Option<u32>,
    /// Offset of the value in the block or in the composite, in bytes.
    pub offset: usize,
    /// Length of the value in bytes: 0 for constants.
    pub length: usize,
    /// Presence. A decimal or time is also optional if its mantissa or time is.
    pub presence: SbePresence,
    /// Value of a constant.
    pub constant: Option<SbeConstant>,
    /// Version of the schema that added the field.
    pub since_version: u32,
    /// Version of the schema that deprecated the field.
    pub deprecated: Option<u32>,
    /// Semantic type of the field or of its type.
    pub semantic_type: Option<String>,
    /// Description in the schema.
    pub description: Option<String>,
    /// Encoding and meaning.
    pub kind: SbeKind,
}

impl SbeField {
    /// Returns whether a block may have no value: the field is optional, or newer than the first version.
    pub fn is_nullable(&self) -> bool {
        self.presence == SbePresence::Optional || self.since_version > 0
    }

    /// Returns the offset after the value.
    pub fn end(&self) -> usize {
        self.offset + self.length
    }
}

/// Encoding and meaning of a field.
#[derive(Debug, Clone)]
pub enum SbeKind {
    /// An integer or float.
    Number(SbeScalar),
    /// An array of integers of more than one byte, of `int8`, or of floats.
    Numbers {
        /// Encoding of one item.
        item: SbeScalar,
        /// Number of items.
        count: usize,
    },
    /// An array of `uint8` without a known character set, or of `char` with an unknown one.
    Bytes {
        /// Encoding of one byte: `uint8` or `char`.
        item: SbeScalar,
        /// Number of bytes.
        count: usize,
    },
    /// A single `char`.
    Character(SbeScalar),
    /// A text of fixed length, which ends at its first NUL.
    Text {
        /// Number of bytes.
        count: usize,
        /// Character set of the bytes.
        character_set: SbeCharacterSet,
    },
    /// A value of an enum.
    Enum {
        /// Encoding of the number. Its null value is that of the field or the enum.
        scalar: SbeScalar,
        /// Names of the values.
        names: Arc<SbeEnum>,
    },
    /// A set of choices.
    Set {
        /// Encoding of the bits.
        scalar: SbeScalar,
        /// Names of the choices.
        choices: Arc<SbeSet>,
    },
    /// A decimal number.
    Decimal(SbeDecimal),
    /// A time or date.
    Time(SbeTime),
    /// A composite without a meaning of its own.
    Struct(Arc<SbeStruct>),
}

/// Members of a composite.
#[derive(Debug, Clone)]
pub struct SbeStruct {
    /// Name of the type.
    pub name: String,
    /// Members in their order, also constants. Their offsets begin at the composite.
    pub members: Vec<SbeField>,
    /// Length in bytes.
    pub length: usize,
}

impl SbeStruct {
    /// Returns the first member that takes bytes. Its null value makes an optional composite null.
    pub fn first_encoded(&self) -> Option<&SbeField> {
        self.members.iter().find(|member| member.length > 0)
    }
}

/// A decimal number: a mantissa, times ten to the power of an exponent.
#[derive(Debug, Clone)]
pub struct SbeDecimal {
    /// Encoding of the mantissa: an integer.
    pub mantissa: SbeScalar,
    /// Offset of the mantissa in the field, in bytes.
    pub mantissa_offset: usize,
    /// Source of the exponent.
    pub exponent: SbeExponent,
}

/// Source of a decimal's exponent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SbeExponent {
    /// A constant of the schema.
    Constant(i32),
    /// A number in the field.
    Wire {
        /// Encoding of the exponent.
        scalar: SbeScalar,
        /// Offset of the exponent in the field, in bytes.
        offset: usize,
    },
    /// Another field of the same block or of a block around it.
    Field {
        /// Number of blocks outwards: 0 for the field's own block.
        levels_up: usize,
        /// Index of the field in [`crate::plan::SbeBlockPlan::fields`].
        index: usize,
    },
}

/// A time or date in an integer, or in a composite of a time and a unit.
#[derive(Debug, Clone)]
pub struct SbeTime {
    /// Meaning of the integer.
    pub kind: SbeTimeKind,
    /// Encoding of the integer.
    pub scalar: SbeScalar,
    /// Offset of the integer in the field, in bytes.
    pub offset: usize,
    /// Unit of the integer.
    pub unit: SbeUnitSource,
}

impl SbeTime {
    /// Returns the unit of values that were read. Values with a unit on the wire are converted to nanoseconds.
    pub fn unit(&self) -> SbeTimeUnit {
        match self.unit {
            SbeUnitSource::Constant(unit) => unit,
            SbeUnitSource::Wire { .. } => SbeTimeUnit::Nanosecond,
        }
    }
}

/// Meaning of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SbeTimeKind {
    /// Time since 1970-01-01 in UTC (`UTCTimestamp`).
    Timestamp,
    /// Time since midnight in UTC (`UTCTimeOnly`).
    TimeOfDay,
    /// Days since 1970-01-01 (`UTCDateOnly`, `LocalMktDate`).
    Date,
}

/// Unit of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SbeTimeUnit {
    /// Days, for dates.
    Day,
    /// Seconds.
    Second,
    /// Milliseconds.
    Millisecond,
    /// Microseconds.
    Microsecond,
    /// Nanoseconds.
    Nanosecond,
}

impl SbeTimeUnit {
    /// Returns the unit of a number in the standard's enum `TimeUnit`: 0, 3, 6 or 9.
    pub fn from_power(power: u64) -> Option<Self> {
        match power {
            0 => Some(Self::Second),
            3 => Some(Self::Millisecond),
            6 => Some(Self::Microsecond),
            9 => Some(Self::Nanosecond),
            _ => None,
        }
    }

    /// Returns the unit of a name, such as `nanosecond` or `ns`. Ignores case.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "second" | "seconds" | "s" => Some(Self::Second),
            "millisecond" | "milliseconds" | "ms" => Some(Self::Millisecond),
            "microsecond" | "microseconds" | "us" => Some(Self::Microsecond),
            "nanosecond" | "nanoseconds" | "ns" => Some(Self::Nanosecond),
            _ => None,
        }
    }

    /// Returns the number of nanoseconds in one unit.
    pub fn nanoseconds(self) -> i64 {
        match self {
            Self::Day => 86_400_000_000_000,
            Self::Second => 1_000_000_000,
            Self::Millisecond => 1_000_000,
            Self::Microsecond => 1_000,
            Self::Nanosecond => 1,
        }
    }
}

/// Source of a time's unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SbeUnitSource {
    /// A constant of the schema or of the options.
    Constant(SbeTimeUnit),
    /// A number in the field, as in the standard's enum `TimeUnit`.
    Wire {
        /// Encoding of the unit.
        scalar: SbeScalar,
        /// Offset of the unit in the field, in bytes.
        offset: usize,
    },
}
