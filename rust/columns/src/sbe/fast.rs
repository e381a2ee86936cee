//! Fast writers of columns whose values need little conversion: a loop writes one field of many blocks.

use std::ops::Range;

use aeron_sbe::plan::{SbeExponent, SbeField, SbeKind, SbeTimeKind, SbeUnitSource};
use aeron_sbe::read::SbeWireNumber;
use aeron_sbe::schema::SbeEnum;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use super::number::by_integer;

/// Writes the values of rows into the blocks at their places. Returns whether all values could be written in this way.
pub(super) type FastWriter<'a> = Box<dyn Fn(Range<usize>, &mut [u8], &[u32]) -> bool + 'a>;

/// Returns the writer of a column whose values are the numbers of a field, or are converted by a factor or a table.
pub(super) fn fast_writer<'a>(field: &'a SbeField, column: &'a ArrayRef) -> Option<FastWriter<'a>> {
    macro_rules! numbers {
        ($column:ty) => {{
            let values = column.as_primitive::<$column>();
            writer(field, values.values(), values.nulls(), Some)
        }};
    }
    macro_rules! times {
        ($column:ty, $nanoseconds:expr) => {{
            let values = column.as_primitive::<$column>();
            return time_writer(field, values.values(), values.nulls(), $nanoseconds);
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
            return Some(by_integer!(time.scalar, day_of(field, values, nulls)));
        }
        (SbeKind::Decimal(decimal), DataType::Decimal128(_, scale)) => {
            let SbeExponent::Constant(exponent) = decimal.exponent else {
                return None;
            };
            let power = -i32::from(*scale) - exponent;
            let factor = 10_i64.checked_pow(power.unsigned_abs())?;
            let values = column.as_primitive::<Decimal128Type>();
            let (values, nulls) = (values.values(), values.nulls());
            // Division and multiplication of 64 bits are much faster than those of 128 bits.
            return Some(match power {
                0 => by_integer!(decimal.mantissa, mantissa_of(field, values, nulls, Some)),
                1.. => {
                    let convert = move |value: i64| value.checked_mul(factor);
                    by_integer!(decimal.mantissa, mantissa_of(field, values, nulls, convert))
                }
                _ => {
                    let convert = move |value: i64| (value % factor == 0).then_some(value / factor);
                    by_integer!(decimal.mantissa, mantissa_of(field, values, nulls, convert))
                }
            });
        }
        (SbeKind::Enum { scalar, names }, DataType::Dictionary(key, _))
            if **key == DataType::Int32 =>
        {
            return by_integer!(scalar, enum_writer(field, column, names));
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
    values: &'a [V],
    nulls: Option<&'a NullBuffer>,
    convert: impl Fn(V) -> Option<T> + 'a,
) -> FastWriter<'a> {
    Box::new(move |rows, bytes, places| {
        let mut is_converted = true;
        let mut number = |value: V| {
            let number = convert(value);
            is_converted &= number.is_some();
            number
        };
        let written = match nulls {
            None => {
                let values = values[rows].iter();
                field.put_column(bytes, places, values.map(|value| number(*value)))
            }
            Some(nulls) => {
                let numbers = rows.map(|row| match nulls.is_valid(row) {
                    true => number(values[row]),
                    false => None,
                });
                field.put_column(bytes, places, numbers)
            }
        };
        written.is_ok() && is_converted
    })
}

/// Returns the writer of decimals. `convert` makes mantissas of those that fit 64 bits.
fn mantissa_of<'a, T: SbeWireNumber + TryFrom<i64> + 'a>(
    field: &'a SbeField,
    values: &'a [i128],
    nulls: Option<&'a NullBuffer>,
    convert: impl Fn(i64) -> Option<i64> + 'a,
) -> FastWriter<'a> {
    writer(field, values, nulls, move |value| {
        T::try_from(convert(i64::try_from(value).ok()?)?).ok()
    })
}

fn day_of<'a, T: SbeWireNumber + TryFrom<i32> + 'a>(
    field: &'a SbeField,
    values: &'a [i32],
    nulls: Option<&'a NullBuffer>,
) -> FastWriter<'a> {
    writer(field, values, nulls, |day| T::try_from(day).ok())
}

/// Returns the writer of timestamps in a unit of this many nanoseconds.
fn time_writer<'a>(
    field: &'a SbeField,
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
        time_of(field, values, nulls, convert)
    ))
}

fn time_of<'a, T: SbeWireNumber + TryFrom<i64> + 'a>(
    field: &'a SbeField,
    values: &'a [i64],
    nulls: Option<&'a NullBuffer>,
    convert: impl Fn(i64) -> Option<i64> + 'a,
) -> FastWriter<'a> {
    writer(field, values, nulls, move |time| {
        T::try_from(convert(time)?).ok()
    })
}

/// Returns the writer of the names of an enum: a table has the number of each name.
fn enum_writer<'a, T: SbeWireNumber + 'a>(
    field: &'a SbeField,
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
        keys.values(),
        keys.nulls(),
        move |key: i32| *numbers.get(usize::try_from(key).ok()?)?,
    ))
}
