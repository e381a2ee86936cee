//! [`SbeColumnOptions`]: the choices of the caller about the types of columns.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};

/// Choices about the types of columns.
#[derive(Debug, Clone, Copy)]
pub struct SbeColumnOptions {
    /// Whether all columns have types of Spark: no unsigned integers, no dictionaries, and times in microseconds.
    pub for_spark: bool,
    /// Type of decimals whose exponent is not a constant.
    pub decimals: SbeDecimalColumn,
    /// Type of sets.
    pub sets: SbeSetColumn,
    /// Type of enums.
    pub enums: SbeEnumColumn,
    /// Whether a value of an enum, or a bit of a set, that the schema does not know is malformed. If not, the value is
    /// null, and the bit is left out. Integers keep both.
    pub refuses_unknown: bool,
}

impl SbeColumnOptions {
    /// Returns the field of a list's items, with the name that Arrow or Spark gives it.
    pub(super) fn item(&self, data_type: &DataType) -> FieldRef {
        let name = if self.for_spark {
            "element"
        } else {
            Field::LIST_FIELD_DEFAULT_NAME
        };
        Arc::new(Field::new(name, data_type.clone(), true))
    }
}

/// Type of decimals whose exponent is not a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SbeDecimalColumn {
    /// Decimals of 38 digits with this many decimal places, 0 to 38. A value that would be rounded is malformed.
    Scale(u8),
    /// Floating point numbers of 8 bytes.
    Float,
}

/// Type of enums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SbeEnumColumn {
    /// Names of the values.
    Names,
    /// The integer of the encoding, also of values that the schema does not know.
    Integer,
}

/// Type of sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SbeSetColumn {
    /// Lists of the names of the choices.
    Names,
    /// Structures with a boolean for each choice.
    Booleans,
    /// The integer of the encoding.
    Integer,
}

impl Default for SbeColumnOptions {
    fn default() -> Self {
        Self {
            for_spark: false,
            decimals: SbeDecimalColumn::Scale(9),
            sets: SbeSetColumn::Names,
            enums: SbeEnumColumn::Names,
            refuses_unknown: false,
        }
    }
}
