//! Times of Python as integers in the unit of a field.

use aeron_sbe::plan::{SbeTime, SbeTimeKind, SbeTimeUnit};
use aeron_sbe::value::SbeValue;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::unsuitable::{UnsuitableValue, about_value, shown};

/// Returns a `datetime`, `time` or `date`, or a time of numpy, in the unit of its field. `NaT` is null. A `datetime`
/// without a time zone is UTC.
pub(super) fn time_value(
    time: &SbeTime,
    value: &Bound<'_, PyAny>,
) -> Result<SbeValue<'static>, UnsuitableValue> {
    let py = value.py();
    let (helper, expected) = match time.kind {
        SbeTimeKind::Timestamp => ("_timestamp", "an integer or a datetime"),
        SbeTimeKind::TimeOfDay => ("_time_of_day", "an integer or a time"),
        SbeTimeKind::Date => ("_date", "an integer or a date"),
    };
    let unit = match time.kind {
        SbeTimeKind::Date => SbeTimeUnit::Day,
        _ => time.unit(),
    };
    let helper = py.import("aeron._sbe_times")?.getattr(helper)?;
    let number = helper.call1((value, unit.nanoseconds())).map_err(|error| {
        let is_inexact = error.is_instance_of::<PyValueError>(py);
        about_value(error, py, || match is_inexact {
            true => UnsuitableValue::value(format!(
                "{} is not a whole number of {}, the unit of the field",
                shown(value),
                unit_name(unit)
            )),
            false => UnsuitableValue::of_type(value, expected),
        })
    })?;
    if number.is_none() {
        return Ok(SbeValue::Null);
    }
    let number = number.extract::<i64>().map_err(|_| {
        let unit = unit_name(unit);
        UnsuitableValue::value(format!("{} is beyond 64 bits of {unit}", shown(value)))
    })?;
    Ok(SbeValue::from(number))
}

fn unit_name(unit: SbeTimeUnit) -> &'static str {
    match unit {
        SbeTimeUnit::Day => "days",
        SbeTimeUnit::Second => "seconds",
        SbeTimeUnit::Millisecond => "milliseconds",
        SbeTimeUnit::Microsecond => "microseconds",
        SbeTimeUnit::Nanosecond => "nanoseconds",
    }
}
