//! Layouts of fixed binary records: a text that names the fields, and the way of their values into Arrow columns and back.
//!
//! The text is the same for source and sink: fields separated by commas, `name type` each, packed in order and little-endian.
//! `>` before a type makes it big-endian, `@n` before a name sets the offset of that field, `=n` at the end fixes the length of
//! the record; what no field covers is skipped by the decoder and zero in what the encoder writes.
//!
//! ```
//! use aeron_columns::layout::Layout;
//!
//! let layout: Layout = "time ts_ns, price f64, @20 side i8, venue char[4] =32".parse()?;
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

pub use decode::Decoder;
pub use encode::Encoder;
pub use error::{EncodeError, LayoutError, MalformedRecord};

/// Longest record, in bytes.
pub const MAX_RECORD_LENGTH: usize = 64 * 1024;

/// Digits of the decimal that `dec64` becomes.
pub const DEC64_PRECISION: u8 = 18;

/// Digits of the decimal that `u64` becomes.
pub const U64_PRECISION: u8 = 20;

/// A parsed layout: fields that do not overlap, in the order of the text, within a record of fixed length. Immutable.
///
/// Its text by [`Display`](fmt::Display) gives every offset and the length, and parses to an equal layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
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
}

/// What the bytes of a field mean.
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
    /// UTF-8 text in so many bytes; zeros and spaces at its end do not belong to it.
    Char(usize),
    /// So many bytes.
    Bytes(usize),
    /// Milliseconds since the epoch, 8 bytes.
    TimestampMs,
    /// Microseconds since the epoch, 8 bytes.
    TimestampUs,
    /// Nanoseconds since the epoch, 8 bytes; columns keep microseconds.
    TimestampNs,
    /// Integer of 8 bytes with so many decimal places.
    Dec64(u8),
}

impl Layout {
    /// All fields, in the order of the text.
    pub fn fields(&self) -> &[LayoutField] {
        &self.fields
    }

    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&LayoutField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Bytes of a record, 1 to [`MAX_RECORD_LENGTH`].
    pub fn record_length(&self) -> usize {
        self.record_length
    }

    /// The columns that records become, each nullable though no value ever is null.
    pub fn columns(&self) -> Vec<Field> {
        let column = |field: &LayoutField| Field::new(&field.name, field.kind.column_type(), true);
        self.fields.iter().map(column).collect()
    }
}

impl LayoutField {
    /// Its name, which no other field of the layout has, in whatever case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its bytes mean.
    pub fn kind(&self) -> FieldType {
        self.kind
    }

    /// Whether its most significant byte comes first.
    pub fn is_big_endian(&self) -> bool {
        self.is_big_endian
    }

    /// Where in the record it begins, in bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Where in the record it ends.
    fn end(&self) -> usize {
        self.offset + self.kind.length()
    }
}

impl FieldType {
    /// Bytes in the record.
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

    /// The type of the column: of an unsigned integer the next wider signed one, of a time microseconds in UTC.
    pub fn column_type(self) -> DataType {
        match self {
            Self::I8 => DataType::Int8,
            Self::I16 | Self::U8 => DataType::Int16,
            Self::I32 | Self::U16 => DataType::Int32,
            Self::I64 | Self::U32 => DataType::Int64,
            Self::U64 => DataType::Decimal128(U64_PRECISION, 0),
            Self::F32 => DataType::Float32,
            Self::F64 => DataType::Float64,
            Self::Bool => DataType::Boolean,
            Self::Char(_) => DataType::Utf8,
            Self::Bytes(_) => DataType::Binary,
            Self::TimestampMs | Self::TimestampUs | Self::TimestampNs => timestamp_type(),
            Self::Dec64(scale) => DataType::Decimal128(DEC64_PRECISION, scale as i8),
        }
    }

    /// Whether the order of the bytes matters.
    fn has_byte_order(self) -> bool {
        self.length() > 1 && !matches!(self, Self::Char(_) | Self::Bytes(_))
    }
}

/// The type of every column of times.
pub fn timestamp_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

impl fmt::Display for Layout {
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
