//! The tables of settings and of channel parameters. `tools/reference.py` generates docstrings and pages from these
//! tables.

use aeron_agent::setting::{Grammar, Value};
use aeron_archive::server::context::ARCHIVE_SETTINGS;
use aeron_driver::config::SETTINGS;
use aeron_protocol::uri::key;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::archive;
use crate::driver;

/// One setting in Python: name, property, environment variable, kind, default of a driver or archive in a separate
/// process, default of an embedded driver or archive, limits, choices, meaning.
type Row = (
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

/// Returns all settings of a driver that have an environment variable, with their defaults if no variable is set.
#[pyfunction]
#[pyo3(name = "_driver_settings")]
pub fn driver_settings(py: Python<'_>) -> PyResult<Vec<Row>> {
    let embedded = driver::embedded_defaults();
    let defaults = aeron_driver::Context::default();
    let rows = SETTINGS.iter().map(|setting| {
        Ok((
            setting.name,
            setting.property(),
            setting.variable.to_owned(),
            kind_of(setting.grammar),
            to_python(py, setting.get(&defaults))?,
            to_python(py, setting.get(&embedded))?,
            setting.grammar.limits(),
            setting.choices().to_vec(),
            setting.meaning(),
        ))
    });
    rows.collect()
}

/// Returns all settings of an archive, with their defaults if no property is set.
#[pyfunction]
#[pyo3(name = "_archive_settings")]
pub fn archive_settings(py: Python<'_>) -> PyResult<Vec<Row>> {
    let embedded = archive::embedded_defaults();
    let defaults = aeron_archive::server::context::ArchiveContext::default();
    let rows = ARCHIVE_SETTINGS.iter().map(|setting| {
        Ok((
            setting.name,
            setting.property.to_owned(),
            setting.variable(),
            kind_of(setting.grammar),
            to_python(py, setting.get(&defaults))?,
            to_python(py, setting.get(&embedded))?,
            setting.grammar.limits(),
            setting.choices().to_vec(),
            setting.meaning(),
        ))
    });
    rows.collect()
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
