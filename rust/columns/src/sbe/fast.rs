//! Fast writers for columns of numbers: a loop writes one field of many blocks, with little conversion.

use std::ops::Range;

use aeron_sbe::plan::{SbeExponent, SbeField, SbeKind, SbeScalar, SbeTimeKind, SbeUnitSource};
use aeron_sbe::read::SbeWireNumber;
use aeron_sbe::schema::SbeEnum;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use super::number::by_integer;

/// Number of values that are converted before they are written: the compiler makes vector instructions of many loops
/// that only convert.
const AT_ONCE: usize = 256;

/// Writes the values of rows into the blocks at their places. Returns whether all values could be written in this way.
pub(super) type FastWriter<'a> = Box<dyn Fn(Range<usize>, &mut [u8], &[u32]) -> bool + 'a>;

/// Returns the writer of a column if its values are the numbers of the field, or a factor or a table converts them.
pub(super) fn fast_writer<'a>(field: &'a SbeField, column: &'a ArrayRef) -> Option<FastWriter<'a>> {
    macro_rules! numbers {
        ($column:ty) => {{
            let values = column.as_primitive::<$column>();
            writer(field, values.values(), values.nulls(), Some)
        }};
    }
    macro_rules! integers {
        ($column:ty) => {{
            let values = column.as_primitive::<$column>();
            let (values, nulls) = (values.values(), values.nulls());
            match scalar_of(field)? {
                scalar
                    if scalar.primitive == <$column as ArrowPrimitiveType>::Native::PRIMITIVE =>
                {
                    writer(field, values, nulls, Some)
                }
                scalar if scalar.primitive.is_integer() => {
                    let values = values.iter().map(|value| i64::try_from(*value).ok());
                    let values = values.collect::<Option<Vec<i64>>>()?;
                    by_integer!(scalar, integer_of(field, values, nulls))
                }
                _ => return None,
            }
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
        // Spark has unsigned integers of 64 bits as decimals.
        (SbeKind::Number(scalar), DataType::Decimal128(_, 0)) if scalar.primitive.is_integer() => {
            let values = column.as_primitive::<Decimal128Type>();
            let (values, nulls) = (values.values(), values.nulls());
            return Some(by_integer!(scalar, mantissa_of(field, values, nulls, Some)));
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
        DataType::Int8 => integers!(Int8Type),
        DataType::Int16 => integers!(Int16Type),
        DataType::Int32 => integers!(Int32Type),
        DataType::Int64 => integers!(Int64Type),
        DataType::UInt8 => integers!(UInt8Type),
        DataType::UInt16 => integers!(UInt16Type),
        DataType::UInt32 => integers!(UInt32Type),
        DataType::UInt64 => integers!(UInt64Type),
        DataType::Float32 => numbers!(Float32Type),
        DataType::Float64 => numbers!(Float64Type),
        _ => return None,
    })
}

/// Returns the writer of values that `convert` makes numbers of the encoding. A value without a result is written by
/// the general way.
fn writer<'a, V: Copy, T: SbeWireNumber + 'a>(
    field: &'a SbeField,
    values: impl AsRef<[V]> + 'a,
    nulls: Option<&'a NullBuffer>,
    convert: impl Fn(V) -> Option<T> + 'a,
) -> FastWriter<'a> {
    Box::new(move |rows, bytes, places| {
        let values = values.as_ref();
        rows.clone()
            .step_by(AT_ONCE)
            .zip(places.chunks(AT_ONCE))
            .all(|(first, places)| {
                let values = &values[first..first + places.len()];
                let nulls = nulls.map(|nulls| nulls.slice(first, places.len()));
                match nulls.filter(|nulls| nulls.null_count() > 0) {
                    None => write_values(field, bytes, places, values, &convert),
                    Some(nulls) => {
                        let split = |is_valid: bool| {
                            let rows =
                                (0..places.len()).filter(|row| nulls.is_valid(*row) == is_valid);
                            rows.map(|row| (places[row], values[row])).unzip()
                        };
                        let (given, values): (Vec<u32>, Vec<V>) = split(true);
                        let (missing, _) = split(false);
                        write_values(field, bytes, &given, &values, &convert)
                            && field.put_nulls(bytes, &missing)
                    }
                }
            })
    })
}

/// Writes at most [`AT_ONCE`] values. Returns whether all of them are written.
fn write_values<V: Copy, T: SbeWireNumber>(
    field: &SbeField,
    bytes: &mut [u8],
    places: &[u32],
    values: &[V],
    convert: &impl Fn(V) -> Option<T>,
) -> bool {
    let mut numbers = [T::default(); AT_ONCE];
    let numbers = &mut numbers[..places.len()];
    let mut is_converted = true;
    for (number, value) in numbers.iter_mut().zip(values) {
        match convert(*value) {
            Some(converted) => *number = converted,
            None => is_converted = false,
        }
    }
    is_converted && field.put_column(bytes, places, numbers)
}

/// Returns the encoding of a field with one number.
fn scalar_of(field: &SbeField) -> Option<&SbeScalar> {
    match &field.kind {
        SbeKind::Number(scalar) | SbeKind::Enum { scalar, .. } | SbeKind::Set { scalar, .. } => {
            Some(scalar)
        }
        SbeKind::Time(time) => Some(&time.scalar),
        _ => None,
    }
}

fn integer_of<'a, T: SbeWireNumber + TryFrom<i64> + 'a>(
    field: &'a SbeField,
    values: Vec<i64>,
    nulls: Option<&'a NullBuffer>,
) -> FastWriter<'a> {
    writer(field, values, nulls, |value| T::try_from(value).ok())
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
    Some(match (factor, divisor) {
        (1, 1) => by_integer!(time.scalar, time_of(field, values, nulls, Some)),
        (factor, 1) => {
            let convert = move |time: i64| time.checked_mul(factor);
            by_integer!(time.scalar, time_of(field, values, nulls, convert))
        }
        (_, divisor) => {
            let convert = move |time: i64| (time % divisor == 0).then_some(time / divisor);
            by_integer!(time.scalar, time_of(field, values, nulls, convert))
        }
    })
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
