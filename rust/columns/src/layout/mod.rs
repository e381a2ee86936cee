//! Layouts of fixed-length binary records. A text describes the fields, and a layout converts them to and from Arrow
//! columns.
//!
//! The text is the same for source and sink. It lists the fields as `name type`, separated by commas. The fields are
//! packed in this order, and are little-endian. `>` before a type makes it big-endian. `@n` before a name sets the
//! offset of that field. `=n` at the end sets the length of the record. The decoder skips bytes that belong to no
//! field; the encoder writes them as zeros.
//!
//! ```
//! use aeron_columns::layout::RecordLayout;
//!
//! let layout: RecordLayout = "time ts_ns, price f64, @20 side i8, venue char[4] =32".parse()?;
//! assert_eq!(layout.record_length(), 32);
//! assert_eq!(layout.field("side").unwrap().offset(), 20);
//! # Ok::<(), aeron_columns::layout::LayoutError>(())
//! ```

mod decode;
mod encode;
mod error;
mod parse;

use std::fmt;

use arrow_schema::{DataType, Field, TimeUnit};

pub use decode::RecordDecoder;
pub use encode::RecordEncoder;
pub use error::{LayoutError, MalformedRecord, RecordEncodeError};

/// Longest record, in bytes.
pub const MAX_RECORD_LENGTH: usize = 64 * 1024;

/// Digits of the decimal type for `dec64`.
pub const DEC64_PRECISION: u8 = 18;

/// Digits of the decimal type for `u64`.
pub const U64_PRECISION: u8 = 20;

/// The value of a time that is missing, in every unit: numpy's `NaT`. Columns have a null instead.
const NOT_A_TIME: i64 = i64::MIN;

/// A parsed layout: fields that do not overlap, in the order of the text, within a record of fixed length. Immutable.
///
/// [`Display`](fmt::Display) prints a text with every offset and the record length. This text parses to an equal
/// layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordLayout {
    fields: Vec<LayoutField>,
    record_length: usize,
}

/// A field of a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutField {
    name: String,
    kind: FieldType,
    is_big_endian: bool,
    offset: usize,
    /// Whether the column of a `ts_ns` field has nanoseconds instead of microseconds.
    keeps_nanoseconds: bool,
}

/// Type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// Signed integer of 1 byte.
    I8,
    /// Signed integer of 2 bytes.
    I16,
    /// Signed integer of 4 bytes.
    I32,
    /// Signed integer of 8 bytes.
    I64,
    /// Unsigned integer of 1 byte.
    U8,
    /// Unsigned integer of 2 bytes.
    U16,
    /// Unsigned integer of 4 bytes.
    U32,
    /// Unsigned integer of 8 bytes.
    U64,
    /// Floating point number of 4 bytes.
    F32,
    /// Floating point number of 8 bytes.
    F64,
    /// One byte that is 0 or 1.
    Bool,
    /// UTF-8 text in this many bytes; zeros and spaces at its end are padding.
    Char(usize),
    /// Bytes of this length.
    Bytes(usize),
    /// Milliseconds since the epoch, 8 bytes; columns have microseconds. The least integer is a null in the column.
    TimestampMs,
    /// Microseconds since the epoch, 8 bytes. The least integer is a null in the column.
    TimestampUs,
    /// Nanoseconds since the epoch, 8 bytes; columns have microseconds, or nanoseconds after
    /// [`RecordLayout::with_nanoseconds`]. The least integer is a null in the column.
    TimestampNs,
    /// Integer of 8 bytes with this many decimal places.
    Dec64(u8),
}

impl RecordLayout {
    /// Returns all fields, in the order of the text.
    pub fn fields(&self) -> &[LayoutField] {
        &self.fields
    }

    /// Returns the field of this name.
    pub fn field(&self, name: &str) -> Option<&LayoutField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the length of a record in bytes, 1 to [`MAX_RECORD_LENGTH`].
    pub fn record_length(&self) -> usize {
        self.record_length
    }

    /// Returns the layout with columns of nanoseconds for its `ts_ns` fields. Spark needs microseconds, which are the
    /// default.
    #[must_use]
    pub fn with_nanoseconds(mut self) -> Self {
        for field in &mut self.fields {
            field.keeps_nanoseconds = true;
        }
        self
    }

    /// Returns the columns for the records. They are nullable, although only times can be null.
    pub fn columns(&self) -> Vec<Field> {
        let column = |field: &LayoutField| Field::new(&field.name, field.column_type(), true);
        self.fields.iter().map(column).collect()
    }
}

impl LayoutField {
    /// Returns the name. No other field of the layout has the same name, even in another case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the type.
    pub fn kind(&self) -> FieldType {
        self.kind
    }

    /// Returns whether the most significant byte is the first.
    pub fn is_big_endian(&self) -> bool {
        self.is_big_endian
    }

    /// Returns the offset in the record, in bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the type of the column. An unsigned integer becomes the next wider signed type, `u64` becomes a decimal,
    /// and a time becomes microseconds in UTC, or nanoseconds in UTC.
    pub fn column_type(&self) -> DataType {
        match self.kind {
            FieldType::I8 => DataType::Int8,
            FieldType::I16 | FieldType::U8 => DataType::Int16,
            FieldType::I32 | FieldType::U16 => DataType::Int32,
            FieldType::I64 | FieldType::U32 => DataType::Int64,
            FieldType::U64 => DataType::Decimal128(U64_PRECISION, 0),
            FieldType::F32 => DataType::Float32,
            FieldType::F64 => DataType::Float64,
            FieldType::Bool => DataType::Boolean,
            FieldType::Char(_) => DataType::Utf8,
            FieldType::Bytes(_) => DataType::Binary,
            FieldType::TimestampNs if self.keeps_nanoseconds => {
                DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
            }
            FieldType::TimestampMs | FieldType::TimestampUs | FieldType::TimestampNs => {
                timestamp_type()
            }
            FieldType::Dec64(scale) => DataType::Decimal128(DEC64_PRECISION, scale as i8),
        }
    }

    /// Returns the offset of the field's end in the record.
    fn end(&self) -> usize {
        self.offset + self.kind.length()
    }
}

impl FieldType {
    /// Returns the number of bytes in the record.
    pub fn length(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::Dec64(_) => 8,
            Self::TimestampMs | Self::TimestampUs | Self::TimestampNs => 8,
            Self::Char(length) | Self::Bytes(length) => length,
        }
    }

    /// Returns whether the type has a byte order.
    fn has_byte_order(self) -> bool {
        self.length() > 1 && !matches!(self, Self::Char(_) | Self::Bytes(_))
    }
}

/// Returns the type of timestamp columns in Spark, and of the arrival times everywhere.
pub fn timestamp_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

impl fmt::Display for RecordLayout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for field in &self.fields {
            let order = if field.is_big_endian { ">" } else { "" };
            let LayoutField {
                name, kind, offset, ..
            } = field;
            write!(formatter, "@{offset} {name} {order}{kind}, ")?;
        }
        write!(formatter, "={}", self.record_length)
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Char(length) => write!(formatter, "char[{length}]"),
            Self::Bytes(length) => write!(formatter, "bytes[{length}]"),
            Self::Dec64(scale) => write!(formatter, "dec64:{scale}"),
            plain => {
                let named = parse::PLAIN_TYPES.iter().find(|(_, kind)| kind == plain);
                formatter.write_str(named.map_or("", |(name, _)| name))
            }
        }
    }
}
