//! Decodes records into columns: for each field, a loop collects its values from a block of records.
//!
//! A block fits into the innermost cache, so that each record is read from memory once, however many fields it has. A
//! malformed value sets a flag. If the flag is set after the last block, the decoder searches all records for the first
//! malformed value.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{ArrayRef, BinaryArray, BooleanArray, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::{DEC64_PRECISION, FieldType, LayoutField, MalformedRecord, NOT_A_TIME, RecordLayout};

/// Length of a block in bytes; a longer record is its own block.
const BLOCK_LENGTH: usize = 16 * 1024;

/// The absolute value of a `dec64` mantissa is below this value.
const DEC64_LIMIT: u64 = 10_u64.pow(DEC64_PRECISION as u32);

/// Decoder of records into columns for some fields of a layout. The fields may be in any order. A decoder is immutable.
#[derive(Debug, Clone)]
pub struct RecordDecoder {
    fields: Vec<LayoutField>,
    record_length: usize,
}

impl RecordDecoder {
    /// Creates a decoder of all fields.
    pub fn new(layout: &RecordLayout) -> Self {
        Self::of_fields(layout, 0..layout.fields.len())
    }

    /// Creates a decoder of the fields with these indexes. Other fields are not checked for malformed values.
    ///
    /// # Panics
    /// If a field does not exist.
    pub fn of_fields(layout: &RecordLayout, fields: impl IntoIterator<Item = usize>) -> Self {
        let field = |number: usize| layout.fields[number].clone();
        Self {
            fields: fields.into_iter().map(field).collect(),
            record_length: layout.record_length,
        }
    }

    /// Returns the length of a record in bytes.
    pub fn record_length(&self) -> usize {
        self.record_length
    }

    /// Decodes `records`, which are consecutive in memory, into columns: one row for each record. Only
    /// times can be null.
    ///
    /// # Errors
    /// The first record and field with a value that no column can hold.
    ///
    /// # Panics
    /// If the length is not a multiple of the record length, or is 2 GiB or more.
    pub fn decode(&self, records: &[u8]) -> Result<Vec<ArrayRef>, MalformedRecord> {
        assert!(
            records.len().is_multiple_of(self.record_length)
                && i32::try_from(records.len()).is_ok(),
            "the bytes must be whole records of {} bytes, less than 2 GiB in all",
            self.record_length
        );
        let mut columns = self.empty_columns(records.len() / self.record_length);
        let block_length = (BLOCK_LENGTH / self.record_length).max(1) * self.record_length;
        let mut is_sound = true;
        for block in records.chunks(block_length) {
            for column in &mut columns {
                is_sound &= column.append(block, self.record_length);
            }
        }
        if !is_sound && let Some(malformed) = self.first_malformed(records) {
            return Err(malformed);
        }
        Ok(columns.into_iter().map(|column| column.finish()).collect())
    }

    /// Returns the first value in `records` that no column can hold. Ignores an incomplete record at the end.
    pub fn first_malformed(&self, records: &[u8]) -> Option<MalformedRecord> {
        let mut records = records.chunks_exact(self.record_length).enumerate();
        records.find_map(|(record, bytes)| {
            self.fields.iter().find_map(|field| {
                Some(MalformedRecord {
                    record,
                    field: field.name.clone(),
                    offset: field.offset,
                    reason: field.what_is_malformed(bytes)?,
                })
            })
        })
    }

    fn empty_columns(&self, rows: usize) -> Vec<Box<dyn ColumnDecoder>> {
        let columns = self.fields.iter();
        columns.map(|field| column(field, rows)).collect()
    }
}

impl LayoutField {
    /// Returns why the value of the field in a whole record is malformed; `None` if the value is valid.
    fn what_is_malformed(&self, record: &[u8]) -> Option<String> {
        let bytes = &record[self.offset..self.end()];
        match self.kind {
            FieldType::Bool => (bytes[0] > 1).then(|| format!("is {} instead of 0 or 1", bytes[0])),
            FieldType::Char(_) => {
                let is_text = std::str::from_utf8(trimmed(bytes)).is_ok();
                (!is_text).then(|| "is not UTF-8".to_owned())
            }
            FieldType::TimestampMs => {
                let ms = self.int64(bytes);
                let is_in_range = ms == NOT_A_TIME || ms.checked_mul(1000).is_some();
                (!is_in_range).then(|| format!("is {ms} ms, outside the times of a timestamp"))
            }
            FieldType::Dec64(_) => {
                let mantissa = self.int64(bytes);
                let is_in_range = mantissa.unsigned_abs() < DEC64_LIMIT;
                (!is_in_range).then(|| format!("is {mantissa}, more than {DEC64_PRECISION} digits"))
            }
            _ => None,
        }
    }

    /// Returns the integer of a field of 8 bytes.
    fn int64(&self, bytes: &[u8]) -> i64 {
        let bytes = *bytes
            .first_chunk()
            .expect("fields of this kind have 8 bytes");
        match self.is_big_endian {
            true => i64::from_be_bytes(bytes),
            false => i64::from_le_bytes(bytes),
        }
    }
}

/// A column that grows block by block.
trait ColumnDecoder {
    /// Adds the field's values in a block of whole records. Returns `false` if any of the values is
    /// malformed.
    fn append(&mut self, block: &[u8], record_length: usize) -> bool;

    /// Returns the column. Must not be called after a malformed value.
    fn finish(self: Box<Self>) -> ArrayRef;
}

/// Creates an empty column with room for `rows` rows.
fn column(field: &LayoutField, rows: usize) -> Box<dyn ColumnDecoder> {
    /// A column of numbers that `$convert` makes from a `$number` in the record.
    macro_rules! numbers {
        ($number:ty => $column:ty, $convert:expr) => {
            numbers!($number => $column, $convert, null: None)
        };
        ($number:ty => $column:ty, $convert:expr, null: $null:expr) => {
            if field.is_big_endian {
                NumberDecoder::<$column, _, _>::boxed(field, rows, $null, |bytes| {
                    $convert(<$number>::from_be_bytes(bytes))
                })
            } else {
                NumberDecoder::<$column, _, _>::boxed(field, rows, $null, |bytes| {
                    $convert(<$number>::from_le_bytes(bytes))
                })
            }
        };
    }
    /// A column of times. `$convert` must map [`NOT_A_TIME`] to itself, and no other value to it.
    macro_rules! times {
        ($column:ty, $convert:expr) => {
            numbers!(i64 => $column, $convert, null: Some(NOT_A_TIME))
        };
    }
    match field.kind {
        FieldType::I8 => numbers!(i8 => Int8Type, sound),
        FieldType::I16 => numbers!(i16 => Int16Type, sound),
        FieldType::I32 => numbers!(i32 => Int32Type, sound),
        FieldType::I64 => numbers!(i64 => Int64Type, sound),
        FieldType::U8 => numbers!(u8 => Int16Type, sound),
        FieldType::U16 => numbers!(u16 => Int32Type, sound),
        FieldType::U32 => numbers!(u32 => Int64Type, sound),
        FieldType::U64 => numbers!(u64 => Decimal128Type, sound),
        FieldType::F32 => numbers!(f32 => Float32Type, sound),
        FieldType::F64 => numbers!(f64 => Float64Type, sound),
        FieldType::TimestampMs => times!(TimestampMicrosecondType, |ms: i64| {
            let (us, is_too_large) = ms.overflowing_mul(1000);
            match ms {
                NOT_A_TIME => (NOT_A_TIME, true),
                _ => (us, !is_too_large),
            }
        }),
        FieldType::TimestampUs => times!(TimestampMicrosecondType, sound),
        FieldType::TimestampNs if field.keeps_nanoseconds => {
            times!(TimestampNanosecondType, sound)
        }
        FieldType::TimestampNs => times!(TimestampMicrosecondType, |ns: i64| {
            let us = ns.div_euclid(1000);
            sound(if ns == NOT_A_TIME { ns } else { us })
        }),
        FieldType::Dec64(_) => numbers!(i64 => Decimal128Type, |mantissa: i64| {
            (i128::from(mantissa), mantissa.unsigned_abs() < DEC64_LIMIT)
        }),
        FieldType::Bool => Box::new(BoolDecoder {
            offset: field.offset,
            values: Vec::with_capacity(rows),
        }),
        FieldType::Bytes(length) => Box::new(ByteDecoder {
            offset: field.offset,
            length,
            values: Vec::with_capacity(rows * length),
        }),
        FieldType::Char(length) => Box::new(TextDecoder::new(field.offset, length, rows)),
    }
}

/// Converts a value of a type that has no malformed values to the column's type.
fn sound<T: From<U>, U>(value: U) -> (T, bool) {
    (value.into(), true)
}

struct NumberDecoder<T: ArrowPrimitiveType, F, const LENGTH: usize> {
    offset: usize,
    values: Vec<T::Native>,
    data_type: DataType,
    /// The value that is a null in the column.
    null: Option<T::Native>,
    /// Converts the field's bytes. Returns the value, and whether the bytes are well-formed.
    value: F,
}

impl<T, F, const LENGTH: usize> NumberDecoder<T, F, LENGTH>
where
    T: ArrowPrimitiveType,
    F: Fn([u8; LENGTH]) -> (T::Native, bool) + 'static,
{
    fn boxed(
        field: &LayoutField,
        rows: usize,
        null: Option<T::Native>,
        value: F,
    ) -> Box<dyn ColumnDecoder> {
        Box::new(Self {
            offset: field.offset,
            values: Vec::with_capacity(rows),
            data_type: field.column_type(),
            null,
            value,
        })
    }
}

impl<T, F, const LENGTH: usize> ColumnDecoder for NumberDecoder<T, F, LENGTH>
where
    T: ArrowPrimitiveType,
    F: Fn([u8; LENGTH]) -> (T::Native, bool),
{
    fn append(&mut self, block: &[u8], record_length: usize) -> bool {
        let mut is_sound = true;
        let values = fields::<LENGTH>(block, record_length, self.offset);
        self.values.extend(values.map(|bytes| {
            let (value, is_value) = (self.value)(bytes);
            is_sound &= is_value;
            value
        }));
        is_sound
    }

    fn finish(self: Box<Self>) -> ArrayRef {
        let nulls = self.null.filter(|null| self.values.contains(null));
        let nulls = nulls.map(|null| {
            let is_valid = |row: usize| self.values[row] != null;
            NullBuffer::from(BooleanBuffer::collect_bool(self.values.len(), is_valid))
        });
        let values = PrimitiveArray::<T>::new(self.values.into(), nulls);
        Arc::new(values.with_data_type(self.data_type))
    }
}

/// Returns the `LENGTH` bytes at `offset` of each record of a block.
fn fields<const LENGTH: usize>(
    block: &[u8],
    record_length: usize,
    offset: usize,
) -> impl ExactSizeIterator<Item = [u8; LENGTH]> {
    // Asserted once, so that the compiler can omit the check for each record.
    assert!(offset <= record_length && LENGTH <= record_length - offset);
    block.chunks_exact(record_length).map(move |record| {
        let field = &record[offset..offset + LENGTH];
        field.try_into().expect("the slice has this length")
    })
}

struct BoolDecoder {
    offset: usize,
    values: Vec<u8>,
}

impl ColumnDecoder for BoolDecoder {
    fn append(&mut self, block: &[u8], record_length: usize) -> bool {
        let mut seen = 0;
        let values = fields::<1>(block, record_length, self.offset);
        self.values.extend(values.map(|[byte]| {
            seen |= byte;
            byte
        }));
        seen <= 1
    }

    fn finish(self: Box<Self>) -> ArrayRef {
        let is_set = |row: usize| self.values[row] != 0;
        let values = BooleanBuffer::collect_bool(self.values.len(), is_set);
        Arc::new(BooleanArray::new(values, None))
    }
}

struct ByteDecoder {
    offset: usize,
    length: usize,
    values: Vec<u8>,
}

impl ColumnDecoder for ByteDecoder {
    fn append(&mut self, block: &[u8], record_length: usize) -> bool {
        for record in block.chunks_exact(record_length) {
            let field = &record[self.offset..self.offset + self.length];
            self.values.extend_from_slice(field);
        }
        true
    }

    fn finish(self: Box<Self>) -> ArrayRef {
        let rows = self.values.len() / self.length;
        let offsets = OffsetBuffer::from_repeated_length(self.length, rows);
        Arc::new(BinaryArray::new(
            offsets,
            Buffer::from_vec(self.values),
            None,
        ))
    }
}

struct TextDecoder {
    offset: usize,
    length: usize,
    /// Offset of the end of each text in `values`. The first entry is 0.
    ends: Vec<i32>,
    values: Vec<u8>,
}

impl TextDecoder {
    fn new(offset: usize, length: usize, rows: usize) -> Self {
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(0);
        Self {
            offset,
            length,
            ends,
            values: Vec::with_capacity(rows * length),
        }
    }
}

impl ColumnDecoder for TextDecoder {
    fn append(&mut self, block: &[u8], record_length: usize) -> bool {
        let mut is_sound = true;
        for record in block.chunks_exact(record_length) {
            let text = trimmed(&record[self.offset..self.offset + self.length]);
            is_sound &= text.is_ascii() || std::str::from_utf8(text).is_ok();
            self.values.extend_from_slice(text);
            self.ends.push(self.values.len() as i32);
        }
        is_sound
    }

    fn finish(self: Box<Self>) -> ArrayRef {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.ends));
        Arc::new(StringArray::new(
            offsets,
            Buffer::from_vec(self.values),
            None,
        ))
    }
}

/// Returns a text without the zeros and spaces at its end.
fn trimmed(field: &[u8]) -> &[u8] {
    let last = field.iter().rposition(|byte| !matches!(byte, 0 | b' '));
    &field[..last.map_or(0, |last| last + 1)]
}
