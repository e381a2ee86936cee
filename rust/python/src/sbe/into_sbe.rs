//! Python objects as values of messages.

use std::borrow::Cow;

use aeron_sbe::number::{SbeNumber, SbePrimitive};
use aeron_sbe::plan::{SbeBlockPlan, SbeData, SbeField, SbeKind, SbeScalar};
use aeron_sbe::schema::SbePresence;
use aeron_sbe::value::{SbeRecord, SbeValue};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::record::PySbeRecord;
use super::time::time_value;
use super::unsuitable::{UnsuitableValue, about_value, shown};
use crate::buffers::View;

type Converted<T> = Result<T, UnsuitableValue>;

/// Returns the values of a record in the order of the block. Missing names are nulls.
pub(super) fn record_of(
    plan: &SbeBlockPlan,
    values: &Bound<'_, PyAny>,
) -> Converted<SbeRecord<'static>> {
    let values = dictionary(values)?;
    check_names(plan, &values)?;
    let given = |name: &str| -> PyResult<_> {
        let value = values.get_item(name)?;
        Ok(value.filter(|value| !value.is_none()))
    };
    let fields = plan.fields.iter().map(|field| match given(&field.name)? {
        Some(value) => value_of(field, &value).map_err(|error| error.within(&field.name)),
        None => Ok(SbeValue::Null),
    });
    let groups = plan.groups.iter().map(|group| match given(&group.name)? {
        Some(value) => entries_of(&group.block, &value).map_err(|error| error.within(&group.name)),
        None => Ok(Vec::new()),
    });
    let data = plan.data.iter().map(|data| match given(&data.name)? {
        Some(value) => {
            let bytes = data_of(data, &value).map_err(|error| error.within(&data.name))?;
            Ok(Some(Cow::Owned(bytes)))
        }
        None => Ok(None),
    });
    Ok(SbeRecord {
        fields: fields.collect::<Converted<_>>()?,
        groups: groups.collect::<Converted<_>>()?,
        data: data.collect::<Converted<_>>()?,
    })
}

/// Returns the values of a record by name. A record is a dict or another mapping, a decoded message, a named tuple, or
/// an object of a data class.
fn dictionary<'py>(values: &Bound<'py, PyAny>) -> Converted<Bound<'py, PyDict>> {
    if let Ok(values) = values.cast::<PyDict>() {
        return Ok(values.clone());
    }
    if let Ok(record) = values.cast::<PySbeRecord>() {
        return Ok(record.get().as_dict(values.py())?);
    }
    let helper = values.py().import("aeron.sbe")?.getattr("_dict_of")?;
    let found = helper.call1((values,))?;
    let found = found.cast_into::<PyDict>();
    found.map_err(|_| UnsuitableValue::of_type(values, "a dict of values"))
}

fn check_names(plan: &SbeBlockPlan, values: &Bound<'_, PyDict>) -> Converted<()> {
    for key in values.keys() {
        let name = key.extract::<String>();
        let name = name.map_err(|_| UnsuitableValue::of_type(&key, "names of elements as str"))?;
        let is_known = plan.field(&name).is_some()
            || plan.group(&name).is_some()
            || plan.data.iter().any(|data| data.name == name);
        if !is_known {
            let reason = format!("the message has no element '{name}'");
            return Err(UnsuitableValue::value(reason));
        }
    }
    Ok(())
}

fn entries_of(
    plan: &SbeBlockPlan,
    entries: &Bound<'_, PyAny>,
) -> Converted<Vec<SbeRecord<'static>>> {
    let refused = || UnsuitableValue::of_type(entries, "a list of dicts");
    if entries.is_instance_of::<PyString>() || entries.is_instance_of::<PyDict>() {
        return Err(refused());
    }
    let entries = entries
        .try_iter()
        .map_err(|error| about_value(error, entries.py(), refused))?;
    let record = |(index, entry): (usize, PyResult<_>)| {
        record_of(plan, &entry?).map_err(|error| error.within(&format!("[{index}]")))
    };
    entries.enumerate().map(record).collect()
}

fn data_of(data: &SbeData, value: &Bound<'_, PyAny>) -> Converted<Vec<u8>> {
    match (value.cast::<PyString>(), data.layout.character_set) {
        (Ok(text), Some(set)) => {
            let bytes = set.encode(&text_of(text)?).map(Cow::into_owned);
            bytes.ok_or_else(|| {
                let reason = format!("{} is not in the character set {set:?}", shown(value));
                UnsuitableValue::value(reason)
            })
        }
        (Ok(_), None) => Err(UnsuitableValue::of_type(value, "bytes")),
        (Err(_), set) => bytes_of(value).ok_or_else(|| {
            let expected = set.map_or("bytes", |_| "a str or bytes");
            UnsuitableValue::of_type(value, expected)
        }),
    }
}

/// Returns the bytes of an object with the buffer protocol, whose items are bytes, or of a list of numbers below 256.
fn bytes_of(value: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return value.extract().ok();
    }
    let view = View::bytes_of(value).ok()?;
    (view.item_size() == 1).then(|| view.bytes().to_vec())
}

fn text_of<'a>(text: &'a Bound<'_, PyString>) -> Converted<Cow<'a, str>> {
    text.to_cow().map_err(|_| {
        let reason = format!("{} has a surrogate without its pair", shown(text));
        UnsuitableValue::value(reason)
    })
}

fn value_of(field: &SbeField, value: &Bound<'_, PyAny>) -> Converted<SbeValue<'static>> {
    if value.is_none() {
        return Ok(SbeValue::Null);
    }
    if field.presence == SbePresence::Constant {
        // The encoder compares the value with the constant.
        return plain_value(field, value);
    }
    match &field.kind {
        SbeKind::Struct(composite) => {
            let values = dictionary(value)?;
            let members = composite.members.iter().map(|member| {
                let value = values.get_item(&member.name)?;
                let value = value.map_or(Ok(SbeValue::Null), |value| value_of(member, &value));
                value.map_err(|error| error.within(&member.name))
            });
            Ok(SbeValue::Struct(members.collect::<Converted<_>>()?))
        }
        SbeKind::Bytes { .. } if !value.is_instance_of::<PyString>() => {
            let bytes = bytes_of(value);
            let bytes = bytes.ok_or_else(|| UnsuitableValue::of_type(value, "bytes"))?;
            Ok(SbeValue::Bytes(Cow::Owned(bytes)))
        }
        SbeKind::Numbers { .. } | SbeKind::Set { .. } if is_sequence(value) => items(field, value),
        _ => plain_value(field, value),
    }
}

/// Whether the object has items, and is no text and no scalar of numpy.
fn is_sequence(value: &Bound<'_, PyAny>) -> bool {
    let is_scalar = value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>();
    !is_scalar && value.try_iter().is_ok()
}

fn items(field: &SbeField, value: &Bound<'_, PyAny>) -> Converted<SbeValue<'static>> {
    let item = |(index, item): (usize, PyResult<Bound<'_, PyAny>>)| {
        let item = item?;
        let value = match item.is_none() {
            true => Err(UnsuitableValue::of_type(&item, "a value for each item")),
            false => plain_value(field, &item),
        };
        value.map_err(|error| error.within(&format!("[{index}]")))
    };
    let items = value.try_iter()?.enumerate().map(item);
    Ok(SbeValue::List(items.collect::<Converted<_>>()?))
}

fn plain_value(field: &SbeField, value: &Bound<'_, PyAny>) -> Converted<SbeValue<'static>> {
    if matches!(field.kind, SbeKind::Decimal(_)) {
        return decimal(value);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(SbeValue::Text(Cow::Owned(text_of(text)?.into_owned())));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(SbeValue::Bytes(Cow::Owned(bytes.as_bytes().to_vec())));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(SbeValue::Number(SbeNumber::Float(value.extract()?)));
    }
    if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyInt>() {
        return number(field, value);
    }
    match &field.kind {
        SbeKind::Time(time) => time_value(time, value),
        // For example numpy's integers and floats.
        _ => number(field, value),
    }
}

fn number(field: &SbeField, value: &Bound<'_, PyAny>) -> Converted<SbeValue<'static>> {
    let py = value.py();
    let too_large = match value.extract::<i64>() {
        Ok(number) => return Ok(SbeValue::Number(SbeNumber::Signed(number))),
        Err(error) => error.is_instance_of::<PyOverflowError>(py),
    };
    if let Ok(number) = value.extract::<u64>() {
        return Ok(SbeValue::Number(SbeNumber::Unsigned(number)));
    }
    let is_float = match &field.kind {
        SbeKind::Number(scalar) | SbeKind::Numbers { item: scalar, .. } => is_float(scalar),
        _ => false,
    };
    if too_large && !is_float {
        let reason = format!("{} does not fit 64 bits", shown(value));
        return Err(UnsuitableValue::value(reason));
    }
    let number = value.extract::<f64>().map_err(|error| {
        let is_beyond = error.is_instance_of::<PyOverflowError>(py);
        about_value(error, py, || match is_beyond {
            true => UnsuitableValue::value(format!("{} does not fit a double", shown(value))),
            false => UnsuitableValue::of_type(value, expected(field)),
        })
    })?;
    Ok(SbeValue::Number(SbeNumber::Float(number)))
}

fn is_float(scalar: &SbeScalar) -> bool {
    matches!(scalar.primitive, SbePrimitive::Float | SbePrimitive::Double)
}

/// Returns the Python types of a field, for errors.
fn expected(field: &SbeField) -> &'static str {
    match &field.kind {
        SbeKind::Number(scalar) if is_float(scalar) => "a float",
        SbeKind::Number(_) => "an int",
        SbeKind::Numbers { .. } => "a list of numbers",
        SbeKind::Bytes { .. } => "bytes",
        SbeKind::Character(_) | SbeKind::Text { .. } => "a str",
        SbeKind::Enum { .. } => "the name of a value",
        SbeKind::Set { .. } => "a list of names",
        SbeKind::Decimal(_) => "a Decimal",
        SbeKind::Time(_) => "an int or a time",
        SbeKind::Struct(_) => "a dict of values",
    }
}

/// Returns the decimal of a number or a text; a float has the digits of its `repr`.
fn decimal(value: &Bound<'_, PyAny>) -> Converted<SbeValue<'static>> {
    let py = value.py();
    let class = py.import("decimal")?.getattr("Decimal")?;
    let refused = || UnsuitableValue::of_type(value, "a Decimal, a number or a text of digits");
    let number = class
        .call1((value.str()?,))
        .map_err(|error| about_value(error, py, refused))?;
    let parts = number.call_method0("as_tuple")?;
    let (sign, digits, exponent): (u8, Vec<u8>, Bound<'_, PyAny>) = parts.extract()?;
    let exponent = exponent.extract::<i32>().map_err(|_| {
        let reason = format!("{} is not a finite decimal", shown(value));
        UnsuitableValue::value(reason)
    })?;
    let mantissa = digits.iter().try_fold(0_i128, |mantissa, digit| {
        mantissa.checked_mul(10)?.checked_add(i128::from(*digit))
    });
    let mantissa = mantissa.ok_or_else(|| {
        let reason = format!("{} has more than 38 digits", shown(value));
        UnsuitableValue::value(reason)
    })?;
    Ok(SbeValue::Decimal {
        mantissa: if sign == 1 { -mantissa } else { mantissa },
        exponent,
    })
}
