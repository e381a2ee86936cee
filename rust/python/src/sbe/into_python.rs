//! Values of messages as Python objects, and the description of a block.

use aeron_sbe::number::SbeNumber;
use aeron_sbe::plan::{SbeBlockPlan, SbeData, SbeField, SbeKind};
use aeron_sbe::read::SbeBlock;
use aeron_sbe::schema::SbePresence;
use aeron_sbe::value::SbeValue;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyType};

use super::errors::malformed;

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Returns the value of variable data: text or bytes, or `None` if the data are absent.
pub(super) fn data_object<'py>(
    py: Python<'py>,
    data: &SbeData,
    bytes: Option<&[u8]>,
) -> PyResult<Bound<'py, PyAny>> {
    match (bytes, data.layout.character_set) {
        (None, _) => Ok(py.None().into_bound(py)),
        (Some(bytes), None) => Ok(PyBytes::new(py, bytes).into_any()),
        (Some(bytes), Some(set)) => {
            let stable = stable_bytes(bytes, bytes.len());
            let text = set.decode(&stable, &data.name).map_err(malformed)?;
            text.into_bound_py_any(py)
        }
    }
}

/// Returns the value of a field as an object: see [`value_object`].
pub(super) fn field_object<'py>(
    py: Python<'py>,
    field: &SbeField,
    block: SbeBlock<'_>,
    exponent: impl Fn(usize, usize) -> Option<SbeNumber>,
) -> PyResult<Bound<'py, PyAny>> {
    let stable;
    let block = match field.kind {
        SbeKind::Text { .. } | SbeKind::Character(_) | SbeKind::Struct(_) => {
            stable = stable_bytes(block.bytes, field.end());
            SbeBlock {
                bytes: &stable,
                ..block
            }
        }
        _ => block,
    };
    let value = field.value_with(block, exponent).map_err(malformed)?;
    value_object(py, field, &value)
}

/// Returns a copy of the bytes before `end`.
///
/// Another process may write to the bytes of a message. A text that was checked must still be one when Python reads it
/// again to make a `str`.
fn stable_bytes(bytes: &[u8], end: usize) -> Vec<u8> {
    bytes[..end.min(bytes.len())].to_vec()
}

/// Returns a value. An enum is its name, or its number if the schema does not know it. A set is a list of names. A time
/// is an integer in the unit of its field.
fn value_object<'py>(
    py: Python<'py>,
    field: &SbeField,
    value: &SbeValue<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    match (value, &field.kind) {
        (SbeValue::Number(number), SbeKind::Set { choices, .. }) => {
            let bits = number.as_u64().unwrap_or_default();
            let is_set = |bit: u32| bits.checked_shr(bit).is_some_and(|bits| bits & 1 == 1);
            let choices = choices.choices.iter();
            let names = choices.filter(|choice| is_set(choice.bit));
            let names: Vec<&str> = names.map(|choice| choice.name.as_str()).collect();
            names.into_bound_py_any(py)
        }
        (SbeValue::Struct(values), SbeKind::Struct(composite)) => {
            let members = PyDict::new(py);
            for (member, value) in composite.members.iter().zip(values) {
                members.set_item(&member.name, value_object(py, member, value)?)?;
            }
            Ok(members.into_any())
        }
        (SbeValue::List(values), _) => {
            let values = values.iter().map(|value| value_object(py, field, value));
            values.collect::<PyResult<Vec<_>>>()?.into_bound_py_any(py)
        }
        (SbeValue::Number(number), _) => number_object(py, *number),
        (SbeValue::Text(text), _) => text.into_bound_py_any(py),
        (SbeValue::Bytes(bytes), _) => Ok(PyBytes::new(py, bytes).into_any()),
        (
            SbeValue::Symbol {
                name: Some(name), ..
            },
            _,
        ) => name.into_bound_py_any(py),
        (SbeValue::Symbol { number, .. }, _) => number_object(py, *number),
        (SbeValue::Decimal { mantissa, exponent }, _) => {
            let class = DECIMAL.import(py, "decimal", "Decimal")?;
            // Most mantissas fit 64 bits, which are formatted twice as fast as 128.
            let text = match i64::try_from(*mantissa) {
                Ok(mantissa) => format!("{mantissa}e{exponent}"),
                Err(_) => format!("{mantissa}e{exponent}"),
            };
            class.call1((text,))
        }
        (SbeValue::Null | SbeValue::Struct(_), _) => Ok(py.None().into_bound(py)),
    }
}

fn number_object(py: Python<'_>, number: SbeNumber) -> PyResult<Bound<'_, PyAny>> {
    match number {
        SbeNumber::Signed(value) => value.into_bound_py_any(py),
        SbeNumber::Unsigned(value) => value.into_bound_py_any(py),
        SbeNumber::Float(value) => value.into_bound_py_any(py),
    }
}

/// Depth, name, type, offset, presence and first version of an element.
pub(super) type ElementRow = (usize, String, String, Option<usize>, String, u32);

/// Returns depth, name, type, offset, presence and first version of each element of a block.
pub(super) fn describe(plan: &SbeBlockPlan) -> Vec<ElementRow> {
    let mut elements = Vec::new();
    describe_into(plan, 0, &mut elements);
    elements
}

fn describe_into(plan: &SbeBlockPlan, depth: usize, elements: &mut Vec<ElementRow>) {
    for field in &plan.fields {
        let is_constant = field.presence == SbePresence::Constant;
        let presence = match field.presence {
            SbePresence::Required => "required",
            SbePresence::Optional => "optional",
            SbePresence::Constant => "constant",
        };
        elements.push((
            depth,
            field.name.clone(),
            kind_name(&field.kind),
            (!is_constant).then_some(field.offset),
            presence.to_owned(),
            field.since_version,
        ));
    }
    for group in &plan.groups {
        let since = group.since_version;
        let group_row = (
            depth,
            group.name.clone(),
            "group".to_owned(),
            None,
            String::new(),
            since,
        );
        elements.push(group_row);
        describe_into(&group.block, depth + 1, elements);
    }
    for data in &plan.data {
        let kind = match data.layout.character_set {
            Some(set) => format!("data of {set:?}"),
            None => "data".to_owned(),
        };
        let since = data.since_version;
        elements.push((depth, data.name.clone(), kind, None, String::new(), since));
    }
}

fn kind_name(kind: &SbeKind) -> String {
    match kind {
        SbeKind::Number(scalar) => scalar.primitive.to_string(),
        SbeKind::Numbers { item, count } | SbeKind::Bytes { item, count } => {
            format!("{}[{count}]", item.primitive)
        }
        SbeKind::Character(_) => "char".to_owned(),
        SbeKind::Text { count, .. } => format!("char[{count}]"),
        SbeKind::Enum { names, .. } => format!("enum {}", names.name),
        SbeKind::Set { choices, .. } => format!("set {}", choices.name),
        SbeKind::Decimal(decimal) => format!("decimal of {}", decimal.mantissa.primitive),
        SbeKind::Time(time) => format!("{:?} in {:?}s", time.kind, time.unit()).to_lowercase(),
        SbeKind::Struct(composite) => format!("composite {}", composite.name),
    }
}
