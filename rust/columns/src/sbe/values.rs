//! Reads the values of Arrow columns as values of fields.

use std::borrow::Cow;
use std::ops::Range;

use aeron_sbe::number::SbeNumber;
use aeron_sbe::plan::{SbeField, SbeKind, SbeTimeUnit};
use aeron_sbe::schema::SbePresence;
use aeron_sbe::value::SbeValue;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};

use super::encode::integer;
use super::time_types::check_time_type;

/// Reads the value of a row.
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
            Box::new(move |row| Ok(SbeValue::Text(Cow::Borrowed(texts.value(row)))))
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
        DataType::Float32 => numbers!(Float32Type, Float),
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
        DataType::List(_) => of_list(field, column, column.as_list::<i32>().values())?,
        DataType::LargeList(_) => of_list(field, column, column.as_list::<i64>().values())?,
        DataType::FixedSizeList(..) => {
            of_list(field, column, column.as_fixed_size_list().values())?
        }
        DataType::Struct(_) => of_struct(field, column)?,
        DataType::Null => Box::new(|_| Ok(SbeValue::Null)),
        other => {
            return Err(format!(
                "column '{}' cannot be {other}: cast it",
                field.name
            ));
        }
    })
}

/// Returns a decimal; an integer for the fields of integers, which Spark has as decimals too.
fn decimal(field: &SbeField, mantissa: i128, exponent: i32) -> SbeValue<'static> {
    match (&field.kind, u64::try_from(mantissa)) {
        (SbeKind::Number(_), Ok(number)) if exponent == 0 => {
            SbeValue::Number(SbeNumber::Unsigned(number))
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
        converted
            .ok_or_else(|| format!("field '{}': time {time} does not fit its unit", field.name))
    }
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

/// Returns the indexes of the items of a list. The row is not null.
pub(super) fn list_range(lists: &dyn Array, row: usize) -> Range<usize> {
    match lists.data_type() {
        DataType::LargeList(_) => {
            let offsets = lists.as_list::<i64>().value_offsets();
            offsets[row] as usize..offsets[row + 1] as usize
        }
        DataType::FixedSizeList(..) => {
            let lists = lists.as_fixed_size_list();
            let begin = lists.value_offset_at(row);
            begin..begin + lists.value_length() as usize
        }
        _ => {
            let offsets = lists.as_list::<i32>().value_offsets();
            offsets[row] as usize..offsets[row + 1] as usize
        }
    }
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

/// Creates the reader of composites, or of sets as booleans.
fn of_struct<'a>(field: &'a SbeField, column: &'a ArrayRef) -> Result<ValueReader<'a>, String> {
    let columns = column.as_struct();
    match &field.kind {
        SbeKind::Struct(composite) => {
            let members = composite.members.iter().map(|member| {
                let column = columns.column_by_name(&member.name);
                let column = column.filter(|_| member.presence != SbePresence::Constant);
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
            let flags = flags.filter_map(|(name, flags)| Some((name, flags.as_boolean_opt()?)));
            let flags: Vec<_> = flags.collect();
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
