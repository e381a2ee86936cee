//! Python objects as values of messages.

use std::borrow::Cow;

use aeron_sbe::number::SbeNumber;
use aeron_sbe::plan::{SbeBlockPlan, SbeField, SbeKind, SbeTime, SbeTimeKind};
use aeron_sbe::schema::SbePresence;
use aeron_sbe::value::{SbeRecord, SbeValue};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::schema::invalid;

/// Returns the values of a dictionary in the order of the block. Missing keys are nulls.
pub(super) fn record_of(
    plan: &SbeBlockPlan,
    values: &Bound<'_, PyAny>,
) -> PyResult<SbeRecord<'static>> {
    let values = dictionary(values, "a message or an entry")?;
    check_names(plan, values)?;
    let fields = plan.fields.iter().map(|field| {
        let value = values.get_item(&field.name)?;
        match value {
            Some(value) => value_of(field, &value),
            None => Ok(SbeValue::Null),
        }
    });
    let groups = plan.groups.iter().map(|group| {
        let Some(entries) = values.get_item(&group.name)?.filter(|it| !it.is_none()) else {
            return Ok(Vec::new());
        };
        let entries = entries.try_iter()?;
        entries
            .map(|entry| record_of(&group.block, &entry?))
            .collect()
    });
    let data = plan.data.iter().map(|data| {
        let Some(value) = values.get_item(&data.name)?.filter(|it| !it.is_none()) else {
            return Ok(None);
        };
        let bytes = match (value.cast::<PyString>(), data.layout.character_set) {
            (Ok(text), Some(set)) => {
                let text = text.to_cow()?;
                let bytes = set.encode(&text).map(Cow::into_owned);
                bytes.ok_or_else(|| {
                    invalid(format!("data '{}' cannot encode this text", data.name))
                })?
            }
            _ => value.extract::<Vec<u8>>()?,
        };
        Ok(Some(Cow::Owned(bytes)))
    });
    Ok(SbeRecord {
        fields: fields.collect::<PyResult<_>>()?,
        groups: groups.collect::<PyResult<_>>()?,
        data: data.collect::<PyResult<_>>()?,
    })
}

fn dictionary<'a, 'py>(
    values: &'a Bound<'py, PyAny>,
    name: &str,
) -> PyResult<&'a Bound<'py, PyDict>> {
    values
        .cast::<PyDict>()
        .map_err(|_| invalid(format!("{name} is not a dict of values")))
}

fn check_names(plan: &SbeBlockPlan, values: &Bound<'_, PyDict>) -> PyResult<()> {
    for name in values.keys() {
        let name: String = name.extract()?;
        let is_known = plan.field(&name).is_some()
            || plan.group(&name).is_some()
            || plan.data.iter().any(|data| data.name == name);
        if !is_known {
            return Err(invalid(format!("the message has no element '{name}'")));
        }
    }
    Ok(())
}

fn value_of(field: &SbeField, value: &Bound<'_, PyAny>) -> PyResult<SbeValue<'static>> {
    if value.is_none() || field.presence == SbePresence::Constant {
        return Ok(SbeValue::Null);
    }
    if let SbeKind::Struct(composite) = &field.kind {
        let values = dictionary(value, &field.name)?;
        let members = composite.members.iter().map(|member| {
            let value = values.get_item(&member.name)?;
            value.map_or(Ok(SbeValue::Null), |value| value_of(member, &value))
        });
        return Ok(SbeValue::Struct(members.collect::<PyResult<_>>()?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| plain_value(field, &item?));
        return Ok(SbeValue::List(items.collect::<PyResult<_>>()?));
    }
    plain_value(field, value)
}

fn plain_value(field: &SbeField, value: &Bound<'_, PyAny>) -> PyResult<SbeValue<'static>> {
    if matches!(field.kind, SbeKind::Decimal(_)) {
        return decimal(value);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(SbeValue::Text(Cow::Owned(text.to_cow()?.into_owned())));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(SbeValue::Bytes(Cow::Owned(bytes.as_bytes().to_vec())));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(SbeValue::Number(SbeNumber::Float(value.extract()?)));
    }
    if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyInt>() {
        return integer(value);
    }
    match &field.kind {
        SbeKind::Time(time) => time_value(time, value),
        // For example numpy's integers and floats.
        _ => integer(value).or_else(|_| Ok(SbeValue::Number(SbeNumber::Float(value.extract()?)))),
    }
}

fn integer(value: &Bound<'_, PyAny>) -> PyResult<SbeValue<'static>> {
    let number = value
        .extract::<i64>()
        .map(SbeNumber::Signed)
        .or_else(|_| value.extract::<u64>().map(SbeNumber::Unsigned))?;
    Ok(SbeValue::Number(number))
}

/// Returns the decimal of a number or a text; a float has the digits of its `repr`.
fn decimal(value: &Bound<'_, PyAny>) -> PyResult<SbeValue<'static>> {
    let py = value.py();
    let class = py.import("decimal")?.getattr("Decimal")?;
    let number = class.call1((value.str()?,));
    let number = number.map_err(|_| invalid(format!("{value} is no decimal")))?;
    let parts = number.call_method0("as_tuple")?;
    let (sign, digits, exponent): (u8, Vec<u8>, Bound<'_, PyAny>) = parts.extract()?;
    let exponent = exponent.extract::<i32>();
    let exponent = exponent.map_err(|_| invalid(format!("{value} is not a finite decimal")))?;
    let mantissa = digits.iter().try_fold(0_i128, |mantissa, digit| {
        mantissa.checked_mul(10)?.checked_add(i128::from(*digit))
    });
    let mantissa = mantissa.ok_or_else(|| invalid(format!("{value} has too many digits")))?;
    Ok(SbeValue::Decimal {
        mantissa: if sign == 1 { -mantissa } else { mantissa },
        exponent,
    })
}

/// Returns a `datetime`, `time` or `date` in the unit of its field. A `datetime` without a time zone is UTC.
fn time_value(time: &SbeTime, value: &Bound<'_, PyAny>) -> PyResult<SbeValue<'static>> {
    let helper = value.py().import("aeron.sbe")?;
    let name = match time.kind {
        SbeTimeKind::Timestamp => "_epoch_ns",
        SbeTimeKind::TimeOfDay => "_midnight_ns",
        SbeTimeKind::Date => "_epoch_days",
    };
    let number: i64 = helper.getattr(name)?.call1((value,))?.extract()?;
    let unit = match time.kind {
        SbeTimeKind::Date => 1,
        _ => time.unit().nanoseconds(),
    };
    if number % unit != 0 {
        let reason = format!(
            "{value} is not a whole number of the field's unit {:?}",
            time.unit()
        );
        return Err(invalid(reason));
    }
    Ok(SbeValue::from(number / unit))
}
