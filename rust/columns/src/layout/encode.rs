//! Encodes columns as records: for each field, a loop distributes its values over a block of records.

use std::fmt::Display;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, ByteArrayType, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, BooleanArray, GenericByteArray, PrimitiveArray, RecordBatch};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field, Schema, TimeUnit};

use super::{DEC64_PRECISION, FieldType, LayoutField, NOT_A_TIME, RecordEncodeError, RecordLayout};

/// Length of a block in bytes. A block of this length stays in the innermost cache while all fields are written. A
/// longer record is its own block.
const BLOCK_LENGTH: usize = 16 * 1024;

/// The absolute value of a `dec64` mantissa is below this value.
const DEC64_LIMIT: u128 = 10_u128.pow(DEC64_PRECISION as u32);

/// Encodes the rows of one record batch as records.
pub struct RecordEncoder<'a> {
    columns: Vec<(&'a str, Box<dyn ColumnEncoder + 'a>)>,
    record_length: usize,
}

impl RecordLayout {
    /// Checks that columns of this schema can become records: each field needs a column with its name and type. Other
    /// columns are ignored.
    ///
    /// [`columns`](Self::columns) returns the required types. Large strings, large binaries, timestamps with any time
    /// zone, and nanoseconds for `ts_ns` are also accepted.
    ///
    /// # Errors
    /// [`RecordEncodeError::Missing`] or [`RecordEncodeError::Type`].
    pub fn check_columns(&self, schema: &Schema) -> Result<(), RecordEncodeError> {
        let check = |field: &LayoutField| check_type(field, column_of(field, schema)?.1);
        self.fields.iter().try_for_each(check)
    }

    /// Creates an encoder for the rows of `batch`.
    ///
    /// # Errors
    /// The same errors as [`check_columns`](Self::check_columns), or [`RecordEncodeError::Null`] for the first null
    /// of a column without times. A missing time is written as numpy's `NaT`.
    pub fn encoder<'a>(
        &'a self,
        batch: &'a RecordBatch,
    ) -> Result<RecordEncoder<'a>, RecordEncodeError> {
        let mut columns = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            let (number, column) = column_of(field, batch.schema_ref())?;
            check_type(field, column)?;
            let values = batch.column(number).as_ref();
            check_nulls(field, values)?;
            columns.push((field.name.as_str(), writer(field, values)));
        }
        Ok(RecordEncoder {
            columns,
            record_length: self.record_length,
        })
    }
}

impl RecordEncoder<'_> {
    /// Appends the records of `rows`, one after the other. Bytes that belong to no field are zero.
    ///
    /// # Errors
    /// [`RecordEncodeError::Value`] for a row with a value that does not fit; it is not always the first such row. The
    /// caller must then discard the appended bytes.
    ///
    /// # Panics
    /// If the record batch has no such rows.
    pub fn encode(
        &self,
        rows: Range<usize>,
        records: &mut Vec<u8>,
    ) -> Result<(), RecordEncodeError> {
        let begin = records.len();
        records.resize(begin + rows.len() * self.record_length, 0);
        let rows_per_block = (BLOCK_LENGTH / self.record_length).max(1);
        let blocks = records[begin..].chunks_mut(rows_per_block * self.record_length);
        for (block, first_row) in blocks.zip(rows.step_by(rows_per_block)) {
            for (name, column) in &self.columns {
                if let Err(row) = column.write(first_row, block, self.record_length) {
                    return Err(RecordEncodeError::Value {
                        row,
                        column: (*name).to_owned(),
                        reason: column.what_does_not_fit(row),
                    });
                }
            }
        }
        Ok(())
    }
}

fn column_of<'s>(
    field: &LayoutField,
    schema: &'s Schema,
) -> Result<(usize, &'s Field), RecordEncodeError> {
    let missing = || RecordEncodeError::Missing(field.name.clone());
    schema.column_with_name(&field.name).ok_or_else(missing)
}

fn check_type(field: &LayoutField, column: &Field) -> Result<(), RecordEncodeError> {
    let is_accepted = match (field.kind, column.data_type()) {
        (FieldType::Char(_), DataType::LargeUtf8)
        | (FieldType::Bytes(_), DataType::LargeBinary) => true,
        // The time zone only affects the display of timestamps; the values are in UTC. Spark sets the time zone of the
        // Spark session.
        (
            FieldType::TimestampMs | FieldType::TimestampUs | FieldType::TimestampNs,
            DataType::Timestamp(TimeUnit::Microsecond, Some(_)),
        )
        | (FieldType::TimestampNs, DataType::Timestamp(TimeUnit::Nanosecond, Some(_))) => true,
        (_, found) => *found == field.column_type(),
    };
    if is_accepted {
        return Ok(());
    }
    Err(RecordEncodeError::Type {
        column: field.name.clone(),
        kind: field.kind.to_string(),
        found: column.data_type().clone(),
        expected: field.column_type(),
    })
}

fn check_nulls(field: &LayoutField, values: &dyn Array) -> Result<(), RecordEncodeError> {
    if values.null_count() == 0 || matches!(values.data_type(), DataType::Timestamp(..)) {
        return Ok(());
    }
    let row = (0..values.len()).find(|row| values.is_null(*row));
    let column = field.name.clone();
    row.map_or(Ok(()), |row| Err(RecordEncodeError::Null { row, column }))
}

/// A column with values for a field. Only times can be null.
trait ColumnEncoder {
    /// Writes the values of the rows from `first_row` on into a block of records. The error is the index of a row with
    /// a value that does not fit.
    fn write(&self, first_row: usize, block: &mut [u8], record_length: usize) -> Result<(), usize>;

    /// Returns why the value of this row does not fit.
    fn what_does_not_fit(&self, row: usize) -> String;
}

/// Returns the writer of a column whose type was checked.
fn writer<'a>(field: &'a LayoutField, values: &'a dyn Array) -> Box<dyn ColumnEncoder + 'a> {
    /// Values of `$column` that `$convert` converts to a `$number`, if they fit.
    macro_rules! numbers {
        ($column:ty => $number:ty, $convert:expr) => {
            numbers!(
                $column => $number, $convert, values.as_primitive::<$column>().values().clone()
            )
        };
        ($column:ty => $number:ty, $convert:expr, $values:expr) => {{
            let values = $values;
            if field.is_big_endian {
                numbers::<$column, _, _>(field, values, |value| {
                    $convert(value).map(<$number>::to_be_bytes)
                })
            } else {
                numbers::<$column, _, _>(field, values, |value| {
                    $convert(value).map(<$number>::to_le_bytes)
                })
            }
        }};
        ($column:ty => $number:ty) => {
            numbers!($column => $number, |value| <$number>::try_from(value).ok())
        };
    }
    /// Times of `$column` that `$convert` converts to the unit of the record, if they fit.
    macro_rules! times {
        ($column:ty, $convert:expr) => {
            numbers!(
                $column => i64,
                |time| if time == NOT_A_TIME { Some(time) } else { $convert(time) },
                times_of(values.as_primitive::<$column>())
            )
        };
    }
    match field.kind {
        FieldType::I8 => numbers!(Int8Type => i8),
        FieldType::I16 => numbers!(Int16Type => i16),
        FieldType::I32 => numbers!(Int32Type => i32),
        FieldType::I64 => numbers!(Int64Type => i64),
        FieldType::U8 => numbers!(Int16Type => u8),
        FieldType::U16 => numbers!(Int32Type => u16),
        FieldType::U32 => numbers!(Int64Type => u32),
        FieldType::U64 => numbers!(Decimal128Type => u64),
        FieldType::F32 => numbers!(Float32Type => f32),
        FieldType::F64 => numbers!(Float64Type => f64),
        FieldType::TimestampMs => {
            times!(TimestampMicrosecondType, |us: i64| Some(
                us.div_euclid(1000)
            ))
        }
        FieldType::TimestampUs => times!(TimestampMicrosecondType, Some),
        FieldType::TimestampNs => match values.data_type() {
            DataType::Timestamp(TimeUnit::Nanosecond, _) => times!(TimestampNanosecondType, Some),
            _ => times!(TimestampMicrosecondType, |us: i64| us.checked_mul(1000)),
        },
        FieldType::Dec64(_) => numbers!(Decimal128Type => i64, |mantissa: i128| {
            let is_in_range = mantissa.unsigned_abs() < DEC64_LIMIT;
            is_in_range.then_some(mantissa as i64)
        }),
        FieldType::Bool => Box::new(BoolEncoder {
            field,
            values: values.as_boolean(),
        }),
        FieldType::Char(_) => match values.data_type() {
            DataType::LargeUtf8 => texts(field, values.as_string::<i64>()),
            _ => texts(field, values.as_string::<i32>()),
        },
        FieldType::Bytes(_) => match values.data_type() {
            DataType::LargeBinary => texts(field, values.as_binary::<i64>()),
            _ => texts(field, values.as_binary::<i32>()),
        },
    }
}

/// Returns the times of a column, with [`NOT_A_TIME`] for each null.
fn times_of<T: ArrowPrimitiveType<Native = i64>>(column: &PrimitiveArray<T>) -> ScalarBuffer<i64> {
    if column.null_count() == 0 {
        return column.values().clone();
    }
    let times = column.iter().map(|time| time.unwrap_or(NOT_A_TIME));
    times.collect()
}

struct NumberEncoder<'a, T: ArrowPrimitiveType, F> {
    field: &'a LayoutField,
    values: ScalarBuffer<T::Native>,
    /// Converts a value to the bytes of the field, if the value fits.
    bytes: F,
}

fn numbers<'a, T, F, const LENGTH: usize>(
    field: &'a LayoutField,
    values: ScalarBuffer<T::Native>,
    bytes: F,
) -> Box<dyn ColumnEncoder + 'a>
where
    T: ArrowPrimitiveType<Native: Display>,
    F: Fn(T::Native) -> Option<[u8; LENGTH]> + 'a,
{
    Box::new(NumberEncoder::<T, F> {
        field,
        values,
        bytes,
    })
}

impl<T, F, const LENGTH: usize> ColumnEncoder for NumberEncoder<'_, T, F>
where
    T: ArrowPrimitiveType<Native: Display>,
    F: Fn(T::Native) -> Option<[u8; LENGTH]>,
{
    fn write(&self, first_row: usize, block: &mut [u8], record_length: usize) -> Result<(), usize> {
        let offset = self.field.offset;
        // Asserted once, so that the compiler can omit the check for each record.
        assert!(offset <= record_length && LENGTH <= record_length - offset);
        let values = &self.values[first_row..first_row + block.len() / record_length];
        let records = block.chunks_exact_mut(record_length);
        for (index, (record, value)) in records.zip(values).enumerate() {
            let bytes = (self.bytes)(*value).ok_or(first_row + index)?;
            record[offset..offset + LENGTH].copy_from_slice(&bytes);
        }
        Ok(())
    }

    fn what_does_not_fit(&self, row: usize) -> String {
        let (value, field) = (&self.values[row], self.field);
        format!("is {value}, which is out of range for {}", field.kind)
    }
}

struct BoolEncoder<'a> {
    field: &'a LayoutField,
    values: &'a BooleanArray,
}

impl ColumnEncoder for BoolEncoder<'_> {
    fn write(&self, first_row: usize, block: &mut [u8], record_length: usize) -> Result<(), usize> {
        for (index, record) in block.chunks_exact_mut(record_length).enumerate() {
            record[self.field.offset] = self.values.value(first_row + index).into();
        }
        Ok(())
    }

    fn what_does_not_fit(&self, _row: usize) -> String {
        String::new()
    }
}

struct TextEncoder<'a, T: ByteArrayType> {
    field: &'a LayoutField,
    values: &'a GenericByteArray<T>,
}

fn texts<'a, T: ByteArrayType<Native: AsRef<[u8]>>>(
    field: &'a LayoutField,
    values: &'a GenericByteArray<T>,
) -> Box<dyn ColumnEncoder + 'a> {
    Box::new(TextEncoder { field, values })
}

impl<T: ByteArrayType<Native: AsRef<[u8]>>> TextEncoder<'_, T> {
    fn value(&self, row: usize) -> &[u8] {
        self.values.value(row).as_ref()
    }

    /// Returns whether a value of this length fits. A text may be shorter than its field. Bytes must fill their field,
    /// because the decoder could not find the end of shorter bytes.
    fn fits(&self, length: usize) -> bool {
        match self.field.kind {
            FieldType::Char(room) => length <= room,
            kind => length == kind.length(),
        }
    }
}

impl<T: ByteArrayType<Native: AsRef<[u8]>>> ColumnEncoder for TextEncoder<'_, T> {
    fn write(&self, first_row: usize, block: &mut [u8], record_length: usize) -> Result<(), usize> {
        for (index, record) in block.chunks_exact_mut(record_length).enumerate() {
            let row = first_row + index;
            let value = self.value(row);
            if !self.fits(value.len()) {
                return Err(row);
            }
            let begin = self.field.offset;
            record[begin..begin + value.len()].copy_from_slice(value);
        }
        Ok(())
    }

    fn what_does_not_fit(&self, row: usize) -> String {
        let length = self.value(row).len();
        format!("has {length} bytes, which do not fit {}", self.field.kind)
    }
}
