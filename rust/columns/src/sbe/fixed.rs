//! Encodes the rows of a fixed template by column: a loop writes one field of all messages of a part.

use std::ops::Range;

use aeron_sbe::plan::{SbeExponent, SbeField, SbeKind, SbeTemplate, SbeTimeKind, SbeUnitSource};
use aeron_sbe::read::SbeWireNumber;
use aeron_sbe::schema::SbeEnum;
use aeron_sbe::value::SbeValue;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use super::number::by_integer;
use super::values::{ValueReader, value_reader};

/// Length of messages that are encoded at a time, in bytes, so that they stay in the innermost cache.
const PART_LENGTH: usize = 16 * 1024;

/// An error, with the row if there is one.
pub(super) type BadRow = (Option<usize>, String);

/// Writes the values of rows into blocks. Returns whether all values could be written in this way.
type FastWriter<'a> = Box<dyn Fn(Range<usize>, &mut [u8]) -> bool + 'a>;

struct ColumnWriter<'a> {
    field: &'a SbeField,
    /// The way for columns whose values need no check of their own.
    fast: Option<FastWriter<'a>>,
    /// The way for all columns, which finds the reason of an error.
    read: ValueReader<'a>,
}

/// Returns whether rows of a template can be encoded by column.
pub(super) fn is_by_column(template: &SbeTemplate) -> bool {
    let has_other_exponent = |field: &SbeField| match &field.kind {
        SbeKind::Decimal(decimal) => matches!(decimal.exponent, SbeExponent::Field { .. }),
        _ => false,
    };
    template.is_fixed() && !template.block.fields.iter().any(has_other_exponent)
}

/// Appends the messages of all rows. All of them have the same length.
pub(super) fn encode(
    template: &SbeTemplate,
    columns: &StructArray,
    bytes: &mut Vec<u8>,
) -> Result<(), BadRow> {
    let header = template.header.length;
    let stride = header + template.block.block_length;
    let rows = columns.len();
    let mut blank = vec![0; stride];
    let whole = |reason: String| (None, reason);
    let first = |reason: String| (Some(0), reason);
    template
        .write_header(&mut blank)
        .map_err(|error| whole(error.to_string()))?;
    let mut writers = Vec::new();
    for field in &template.block.fields {
        match columns.column_by_name(&field.name) {
            Some(column) => writers.push(ColumnWriter {
                read: value_reader(field, column).map_err(whole)?,
                fast: fast_writer(field, column, stride),
                field,
            }),
            None if rows > 0 => field
                .put(&mut blank[header..], &SbeValue::Null)
                .map_err(|error| first(error.to_string()))?,
            None => {}
        }
    }
    let begin = bytes.len();
    bytes.resize(begin + rows * stride, 0);
    let at_once = (PART_LENGTH / stride).max(1);
    let parts = bytes[begin..].chunks_mut(at_once * stride).enumerate();
    for (number, part) in parts {
        let messages = part.chunks_exact_mut(stride);
        messages.for_each(|message| message.copy_from_slice(&blank));
        let first = number * at_once;
        let rows = first..first + part.len() / stride;
        for writer in &writers {
            writer.write(rows.clone(), &mut part[header..], stride)?;
        }
    }
    Ok(())
}

impl ColumnWriter<'_> {
    fn write(&self, rows: Range<usize>, blocks: &mut [u8], stride: usize) -> Result<(), BadRow> {
        let fast = self.fast.as_ref();
        if fast.is_some_and(|write| write(rows.clone(), blocks)) {
            return Ok(());
        }
        for (block, row) in blocks.chunks_mut(stride).zip(rows) {
            let value = (self.read)(row).map_err(|reason| (Some(row), reason))?;
            let written = self.field.put(block, &value);
            written.map_err(|error| (Some(row), error.to_string()))?;
        }
        Ok(())
    }
}

/// Returns the writer of a column whose values are the numbers of a field, or are converted by a factor or a table.
fn fast_writer<'a>(
    field: &'a SbeField,
    column: &'a ArrayRef,
    stride: usize,
) -> Option<FastWriter<'a>> {
    macro_rules! numbers {
        ($column:ty) => {{
            let values = column.as_primitive::<$column>();
            writer(field, stride, values.values(), values.nulls(), Some)
        }};
    }
    macro_rules! times {
        ($column:ty, $nanoseconds:expr) => {{
            let values = column.as_primitive::<$column>();
            return time_writer(field, stride, values.values(), values.nulls(), $nanoseconds);
        }};
    }
    match (&field.kind, column.data_type()) {
        (SbeKind::Time(_), DataType::Timestamp(unit, _)) => match unit {
            TimeUnit::Second => times!(TimestampSecondType, 1_000_000_000),
            TimeUnit::Millisecond => times!(TimestampMillisecondType, 1_000_000),
            TimeUnit::Microsecond => times!(TimestampMicrosecondType, 1000),
            TimeUnit::Nanosecond => times!(TimestampNanosecondType, 1),
        },
        (SbeKind::Time(time), DataType::Date32) if time.kind == SbeTimeKind::Date => {
            let values = column.as_primitive::<Date32Type>();
            let (values, nulls) = (values.values(), values.nulls());
            return Some(by_integer!(
                time.scalar,
                day_of(field, stride, values, nulls)
            ));
        }
        (SbeKind::Decimal(decimal), DataType::Decimal128(_, scale)) => {
            let SbeExponent::Constant(exponent) = decimal.exponent else {
                return None;
            };
            let power = -i32::from(*scale) - exponent;
            let factor = 10_i128.checked_pow(power.unsigned_abs())?;
            let values = column.as_primitive::<Decimal128Type>();
            let nulls = values.nulls();
            let convert = move |value: i128| match power >= 0 {
                true => value.checked_mul(factor),
                false => (value % factor == 0).then_some(value / factor),
            };
            return Some(by_integer!(
                decimal.mantissa,
                mantissa_of(field, stride, values.values(), nulls, convert)
            ));
        }
        (SbeKind::Enum { scalar, names }, DataType::Dictionary(key, _))
            if **key == DataType::Int32 =>
        {
            return by_integer!(scalar, enum_writer(field, stride, column, names));
        }
        (SbeKind::Number(_) | SbeKind::Enum { .. } | SbeKind::Set { .. } | SbeKind::Time(_), _) => {
        }
        _ => return None,
    }
    Some(match column.data_type() {
        DataType::Int8 => numbers!(Int8Type),
        DataType::Int16 => numbers!(Int16Type),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::UInt8 => numbers!(UInt8Type),
        DataType::UInt16 => numbers!(UInt16Type),
        DataType::UInt32 => numbers!(UInt32Type),
        DataType::UInt64 => numbers!(UInt64Type),
        DataType::Float32 => numbers!(Float32Type),
        DataType::Float64 => numbers!(Float64Type),
        _ => return None,
    })
}

/// Returns the writer of values that `convert` makes numbers of the encoding. A value without a result is written by
/// the general way.
fn writer<'a, V: Copy, T: SbeWireNumber + 'a>(
    field: &'a SbeField,
    stride: usize,
    values: &'a [V],
    nulls: Option<&'a NullBuffer>,
    convert: impl Fn(V) -> Option<T> + 'a,
) -> FastWriter<'a> {
    Box::new(move |rows, blocks| {
        let mut is_converted = true;
        let mut number = |value: V| {
            let number = convert(value);
            is_converted &= number.is_some();
            number
        };
        let written = match nulls {
            None => {
                let values = values[rows].iter();
                field.put_column(blocks, stride, values.map(|value| number(*value)))
            }
            Some(nulls) => {
                let numbers = rows.map(|row| match nulls.is_valid(row) {
                    true => number(values[row]),
                    false => None,
                });
                field.put_column(blocks, stride, numbers)
            }
        };
        written.is_ok() && is_converted
    })
}

fn mantissa_of<'a, T: SbeWireNumber + TryFrom<i128> + 'a>(
    field: &'a SbeField,
    stride: usize,
    values: &'a [i128],
    nulls: Option<&'a NullBuffer>,
    convert: impl Fn(i128) -> Option<i128> + 'a,
) -> FastWriter<'a> {
    writer(field, stride, values, nulls, move |value| {
        T::try_from(convert(value)?).ok()
    })
}

fn day_of<'a, T: SbeWireNumber + TryFrom<i32> + 'a>(
    field: &'a SbeField,
    stride: usize,
    values: &'a [i32],
    nulls: Option<&'a NullBuffer>,
) -> FastWriter<'a> {
    writer(field, stride, values, nulls, |day| T::try_from(day).ok())
}

/// Returns the writer of timestamps in a unit of this many nanoseconds.
fn time_writer<'a>(
    field: &'a SbeField,
    stride: usize,
    values: &'a [i64],
    nulls: Option<&'a NullBuffer>,
    nanoseconds: i64,
) -> Option<FastWriter<'a>> {
    let SbeKind::Time(time) = &field.kind else {
        return None;
    };
    let SbeUnitSource::Constant(unit) = time.unit else {
        return None;
    };
    if time.kind != SbeTimeKind::Timestamp {
        return None;
    }
    let to = unit.nanoseconds();
    let (factor, divisor) = match nanoseconds >= to {
        true => (nanoseconds / to, 1),
        false => (1, to / nanoseconds),
    };
    let convert = move |time: i64| {
        let time = time.checked_mul(factor)?;
        match divisor {
            1 => Some(time),
            divisor => (time % divisor == 0).then_some(time / divisor),
        }
    };
    Some(by_integer!(
        time.scalar,
        time_of(field, stride, values, nulls, convert)
    ))
}

fn time_of<'a, T: SbeWireNumber + TryFrom<i64> + 'a>(
    field: &'a SbeField,
    stride: usize,
    values: &'a [i64],
    nulls: Option<&'a NullBuffer>,
    convert: impl Fn(i64) -> Option<i64> + 'a,
) -> FastWriter<'a> {
    writer(field, stride, values, nulls, move |time| {
        T::try_from(convert(time)?).ok()
    })
}

/// Returns the writer of the names of an enum: a table has the number of each name.
fn enum_writer<'a, T: SbeWireNumber + 'a>(
    field: &'a SbeField,
    stride: usize,
    column: &'a ArrayRef,
    names: &SbeEnum,
) -> Option<FastWriter<'a>> {
    let dictionary = column.as_dictionary_opt::<Int32Type>()?;
    let texts = dictionary.values().as_string_opt::<i32>()?;
    let number = |name: Option<&str>| T::from_number(names.value_of(name?)?);
    let numbers: Vec<Option<T>> = texts.iter().map(number).collect();
    let keys = dictionary.keys();
    Some(writer(
        field,
        stride,
        keys.values(),
        keys.nulls(),
        move |key: i32| *numbers.get(usize::try_from(key).ok()?)?,
    ))
}
