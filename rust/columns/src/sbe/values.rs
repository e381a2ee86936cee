//! Reads the values of Arrow columns as values of fields.

use std::borrow::Cow;
use std::collections::HashSet;

use aeron_sbe::number::SbeNumber;
use aeron_sbe::plan::{SbeExponent, SbeField, SbeKind, SbeTimeUnit};
use aeron_sbe::value::SbeValue;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{DataType, TimeUnit};

use super::decimal_text::decimal_of_text;
use super::lists::{items_of, list_range};
use super::time_types::check_time_type;

/// Reads the value of a row. The error is a reason without the name of the field.
pub(super) type ValueReader<'a> = Box<dyn Fn(usize) -> Result<SbeValue<'a>, String> + 'a>;

/// Creates the reader of a column with the values of a field. Nulls are null values.
pub(super) fn value_reader<'a>(
    field: &'a SbeField,
    column: &'a ArrayRef,
) -> Result<ValueReader<'a>, String> {
    check_time_type(field, column.data_type())?;
    let read = valid_reader(field, column)?;
    if column.null_count() == 0 {
        return Ok(read);
    }
    Ok(Box::new(move |row| match column.is_valid(row) {
        true => read(row),
        false => Ok(SbeValue::Null),
    }))
}

fn valid_reader<'a>(field: &'a SbeField, column: &'a ArrayRef) -> Result<ValueReader<'a>, String> {
    macro_rules! numbers {
        ($column:ty, $variant:ident) => {{
            let values = column.as_primitive::<$column>();
            Box::new(move |row| {
                Ok(SbeValue::Number(SbeNumber::$variant(
                    values.value(row).into(),
                )))
            })
        }};
    }
    macro_rules! texts {
        ($texts:expr) => {{
            let texts = $texts;
            match &field.kind {
                SbeKind::Decimal(_) => Box::new(move |row| decimal_of_text(texts.value(row))),
                _ => Box::new(move |row| Ok(SbeValue::Text(Cow::Borrowed(texts.value(row))))),
            }
        }};
    }
    macro_rules! bytes {
        ($bytes:expr) => {{
            let bytes = $bytes;
            Box::new(move |row| Ok(SbeValue::Bytes(Cow::Borrowed(bytes.value(row)))))
        }};
    }
    macro_rules! times {
        ($column:ty, $unit:ident) => {{
            let values = column.as_primitive::<$column>();
            let convert = conversion(field, SbeTimeUnit::$unit);
            Box::new(move |row| convert(i64::from(values.value(row))))
        }};
    }
    Ok(match column.data_type() {
        DataType::Int8 => numbers!(Int8Type, Signed),
        DataType::Int16 => numbers!(Int16Type, Signed),
        DataType::Int32 => numbers!(Int32Type, Signed),
        DataType::Int64 => numbers!(Int64Type, Signed),
        DataType::UInt8 => numbers!(UInt8Type, Unsigned),
        DataType::UInt16 => numbers!(UInt16Type, Unsigned),
        DataType::UInt32 => numbers!(UInt32Type, Unsigned),
        DataType::UInt64 => numbers!(UInt64Type, Unsigned),
        DataType::Float32 if matches!(field.kind, SbeKind::Decimal(_)) => {
            // The shortest decimal of a float of 4 bytes has fewer digits than that of the same float of 8 bytes.
            let values = column.as_primitive::<Float32Type>();
            Box::new(move |row| {
                let number = values.value(row).to_string().parse();
                Ok(SbeValue::from(number.unwrap_or(f64::NAN)))
            })
        }
        DataType::Float32 => numbers!(Float32Type, Float),
        DataType::Float16 => {
            let values = column.as_primitive::<Float16Type>();
            Box::new(move |row| Ok(SbeValue::from(f64::from(values.value(row)))))
        }
        DataType::Float64 => numbers!(Float64Type, Float),
        DataType::Boolean => {
            let values = column.as_boolean();
            Box::new(move |row| Ok(integer(values.value(row).into())))
        }
        DataType::Utf8 => texts!(column.as_string::<i32>()),
        DataType::LargeUtf8 => texts!(column.as_string::<i64>()),
        DataType::Utf8View => texts!(column.as_string_view()),
        DataType::Binary => bytes!(column.as_binary::<i32>()),
        DataType::LargeBinary => bytes!(column.as_binary::<i64>()),
        DataType::BinaryView => bytes!(column.as_binary_view()),
        DataType::FixedSizeBinary(_) => bytes!(column.as_fixed_size_binary()),
        DataType::Dictionary(..) => of_dictionary(field, column)?,
        DataType::Decimal128(_, scale) => {
            let (values, scale) = (column.as_primitive::<Decimal128Type>(), *scale);
            Box::new(move |row| Ok(decimal(field, values.value(row), -i32::from(scale))))
        }
        DataType::Decimal32(_, scale) => {
            let (values, scale) = (column.as_primitive::<Decimal32Type>(), *scale);
            Box::new(move |row| Ok(decimal(field, values.value(row).into(), -i32::from(scale))))
        }
        DataType::Decimal64(_, scale) => {
            let (values, scale) = (column.as_primitive::<Decimal64Type>(), *scale);
            Box::new(move |row| Ok(decimal(field, values.value(row).into(), -i32::from(scale))))
        }
        DataType::Decimal256(_, scale) => {
            let (values, scale) = (column.as_primitive::<Decimal256Type>(), *scale);
            Box::new(move |row| {
                let value = values.value(row).to_i128();
                let value = value.map(|value| decimal(field, value, -i32::from(scale)));
                value.ok_or_else(|| "a decimal has more than 38 digits".to_owned())
            })
        }
        DataType::Date32 => {
            let values = column.as_primitive::<Date32Type>();
            Box::new(move |row| Ok(integer(values.value(row).into())))
        }
        DataType::Timestamp(TimeUnit::Second, _) => times!(TimestampSecondType, Second),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            times!(TimestampMillisecondType, Millisecond)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            times!(TimestampMicrosecondType, Microsecond)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => times!(TimestampNanosecondType, Nanosecond),
        DataType::Time32(TimeUnit::Second) => times!(Time32SecondType, Second),
        DataType::Time32(_) => times!(Time32MillisecondType, Millisecond),
        DataType::Time64(TimeUnit::Microsecond) => times!(Time64MicrosecondType, Microsecond),
        DataType::Time64(_) => times!(Time64NanosecondType, Nanosecond),
        DataType::Struct(_) => of_struct(field, column)?,
        DataType::Null => Box::new(|_| Ok(SbeValue::Null)),
        other => match items_of(column) {
            Some(items) => of_list(field, column, items)?,
            None => {
                return Err(format!(
                    "column '{}' cannot be {other}: cast it",
                    field.name
                ));
            }
        },
    })
}

/// Returns a decimal; an integer for the fields of integers, which Spark has as decimals too. If the message has the
/// exponent, the mantissa gets as few digits as possible: the scale of the column is not that of the value.
fn decimal(field: &SbeField, mantissa: i128, exponent: i32) -> SbeValue<'static> {
    let on_wire = match &field.kind {
        SbeKind::Decimal(decimal) => matches!(decimal.exponent, SbeExponent::Wire { .. }),
        _ => false,
    };
    match (&field.kind, u64::try_from(mantissa)) {
        (SbeKind::Number(_) | SbeKind::Set { .. }, Ok(number)) if exponent == 0 => {
            SbeValue::Number(SbeNumber::Unsigned(number))
        }
        _ if on_wire => {
            let (mantissa, exponent) = SbeValue::stripped(mantissa, exponent);
            SbeValue::Decimal { mantissa, exponent }
        }
        _ => SbeValue::Decimal { mantissa, exponent },
    }
}

/// Returns the conversion of times in `from` to the unit of the field. Fields without a unit have the integers as they
/// are.
fn conversion<'a>(
    field: &'a SbeField,
    from: SbeTimeUnit,
) -> impl Fn(i64) -> Result<SbeValue<'a>, String> + 'a {
    let to = match &field.kind {
        SbeKind::Time(time) => time.unit(),
        _ => from,
    };
    let (factor, divisor) = match (from.nanoseconds(), to.nanoseconds()) {
        (from, to) if from >= to => (from / to, 1),
        (from, to) => (1, to / from),
    };
    move |time| {
        let converted = time.checked_mul(factor).filter(|time| time % divisor == 0);
        let converted = converted.map(|time| integer(time / divisor));
        converted.ok_or_else(|| format!("time {time} does not fit its unit"))
    }
}

/// Returns an integer as a value.
fn integer(number: i64) -> SbeValue<'static> {
    SbeValue::Number(SbeNumber::Signed(number))
}

fn of_dictionary<'a>(field: &'a SbeField, column: &'a ArrayRef) -> Result<ValueReader<'a>, String> {
    let dictionary = column.as_any_dictionary();
    let read = value_reader(field, dictionary.values())?;
    let keys = match dictionary.values().is_empty() {
        true => vec![0; column.len()],
        false => dictionary.normalized_keys(),
    };
    Ok(Box::new(move |row| read(keys[row])))
}

fn of_list<'a>(
    field: &'a SbeField,
    lists: &'a ArrayRef,
    items: &'a ArrayRef,
) -> Result<ValueReader<'a>, String> {
    let read = value_reader(field, items)?;
    Ok(Box::new(move |row| {
        let items = list_range(lists.as_ref(), row).map(&read);
        Ok(SbeValue::List(items.collect::<Result<_, _>>()?))
    }))
}

/// Checks that each name occurs once and is known.
pub(super) fn check_names(
    columns: &StructArray,
    is_known: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let mut names = HashSet::new();
    for name in columns.column_names() {
        if !is_known(name) {
            return Err(format!("no element '{name}' exists: drop the column"));
        }
        if !names.insert(name) {
            return Err(format!("two columns have the name '{name}'"));
        }
    }
    Ok(())
}

/// Creates the reader of composites, or of sets as booleans.
fn of_struct<'a>(field: &'a SbeField, column: &'a ArrayRef) -> Result<ValueReader<'a>, String> {
    let columns = column.as_struct();
    match &field.kind {
        SbeKind::Struct(composite) => {
            check_names(columns, |name| {
                let mut members = composite.members.iter();
                members.any(|member| member.name == name)
            })
            .map_err(|reason| format!("column '{}': {reason}", field.name))?;
            let members = composite.members.iter().map(|member| {
                let column = columns.column_by_name(&member.name);
                column
                    .map(|column| value_reader(member, column))
                    .transpose()
            });
            let members = members.collect::<Result<Vec<_>, _>>()?;
            Ok(Box::new(move |row| {
                let values = members.iter().map(|read| match read {
                    Some(read) => read(row),
                    None => Ok(SbeValue::Null),
                });
                Ok(SbeValue::Struct(values.collect::<Result<_, _>>()?))
            }))
        }
        SbeKind::Set { .. } => {
            let names = columns.column_names().into_iter();
            let flags = names.zip(columns.columns());
            let flags = flags.map(|(name, flags)| {
                let flags = flags.as_boolean_opt();
                let flags = flags
                    .ok_or_else(|| format!("column '{}': '{name}' is not a boolean", field.name))?;
                Ok((name, flags))
            });
            let flags: Vec<_> = flags.collect::<Result<_, String>>()?;
            Ok(Box::new(move |row| {
                let set = flags
                    .iter()
                    .filter(|(_, flags)| flags.is_valid(row) && flags.value(row));
                let names = set.map(|(name, _)| SbeValue::Text(Cow::Borrowed(*name)));
                Ok(SbeValue::List(names.collect()))
            }))
        }
        _ => Err(format!("column '{}' cannot be a structure", field.name)),
    }
}
