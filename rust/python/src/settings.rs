//! The tables of settings and of channel parameters. `tools/reference.py` generates docstrings and pages from these
//! tables.

use aeron_agent::setting::{Grammar, Setting, Value};
use aeron_protocol::uri::key;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use crate::argument;
use crate::errors::raise;

/// One setting in Python: name, property, environment variable, kind, default of a driver or archive in a separate
/// process, default of an embedded driver or archive, limits, choices, meaning.
pub type SettingRow = (
    &'static str,
    String,
    String,
    &'static str,
    Py<PyAny>,
    Py<PyAny>,
    Option<(i64, i64)>,
    Vec<&'static str>,
    &'static str,
);

/// Returns a row for each setting. `embedded` has the defaults of a driver or archive in this process.
pub fn rows<C: Default + 'static>(
    py: Python<'_>,
    settings: &'static [Setting<C>],
    embedded: &C,
) -> PyResult<Vec<SettingRow>> {
    let defaults = C::default();
    let rows = settings.iter().map(|setting| {
        Ok((
            setting.name,
            setting.property.to_owned(),
            setting.variable(),
            kind_of(setting.grammar),
            to_python(py, setting.get(&defaults))?,
            to_python(py, setting.get(embedded))?,
            setting.grammar.limits(),
            setting.choices.to_vec(),
            setting.meaning(),
        ))
    });
    rows.collect()
}

/// Stores the value of a keyword argument.
pub fn store<C>(setting: &Setting<C>, context: &mut C, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let (given, value) = (value, value_of(setting.name, value)?);
    let is_choice = setting.choices.is_empty()
        || matches!(&value, Value::Text(text) if setting.choices.contains(&text.as_str()));
    if !is_choice || !setting.set(context, value) {
        let (name, expected) = (setting.name, expected(setting, context));
        let reason = format!("{name}={} {expected}", given.repr()?);
        return Err(raise("ConfigurationError", reason));
    }
    Ok(())
}

/// Converts the argument of a setting.
fn value_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(Value::Boolean(value.is_true()));
    }
    if let Ok(value) = value.extract::<i64>() {
        return Ok(Value::Number(value));
    }
    let text: std::path::PathBuf = value
        .extract()
        .map_err(|_| argument::wrong_type(value, name, "a bool, an int, a str or a path"))?;
    let text = text.display().to_string();
    // Aeron's names of threading modes are upper case. The keyword accepts lower case too.
    Ok(Value::Text(if name == "threading_mode" {
        text.to_uppercase()
    } else {
        text
    }))
}

/// Describes the valid values of a setting.
fn expected<C>(setting: &Setting<C>, context: &C) -> String {
    if !setting.choices.is_empty() {
        return format!("is not one of {}", setting.choices.join(", "));
    }
    if let Some((min, max)) = setting.grammar.limits() {
        return format!("is not a number from {min} to {max}");
    }
    let kind = match setting.get(context) {
        Value::Boolean(_) => "True or False",
        Value::Number(_) => "a number",
        Value::Text(_) => "a text",
    };
    format!("is not {kind}")
}

/// Adds the values of settings to a dict.
pub fn fill<C: 'static>(
    dict: &Bound<'_, PyDict>,
    settings: impl Iterator<Item = &'static Setting<C>>,
    context: &C,
) -> PyResult<()> {
    let py = dict.py();
    { settings }.try_for_each(|it| dict.set_item(it.name, to_python(py, it.get(context))?))
}

/// Returns name and meaning of all parameters of a channel, in the order in which a builder prints them.
#[pyfunction]
#[pyo3(name = "_channel_parameters")]
pub fn channel_parameters() -> Vec<(&'static str, &'static str)> {
    let meanings = key::MEANINGS.iter().map(|meaning| meaning.trim_start());
    key::ALL.into_iter().zip(meanings).collect()
}

fn kind_of(grammar: Grammar) -> &'static str {
    match grammar {
        Grammar::Boolean => "bool",
        Grammar::Size(..) => "size",
        Grammar::Duration(..) => "duration",
        Grammar::Integer(..) | Grammar::LeadingDigits(..) => "int",
        Grammar::Text => "str",
    }
}

fn to_python(py: Python<'_>, value: Value) -> PyResult<Py<PyAny>> {
    match value {
        Value::Boolean(value) => value.into_py_any(py),
        Value::Number(value) => value.into_py_any(py),
        Value::Text(value) => value.into_py_any(py),
    }
}
