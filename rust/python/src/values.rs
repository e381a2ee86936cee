//! Sizes and durations as texts, as the driver's settings and channel URIs have them.

use aeron_agent::value;
use pyo3::prelude::*;

use crate::argument;
use crate::errors::raise;

/// Bytes of a size such as `64k`, `16m`, `1g` or `4096`.
#[pyfunction]
pub fn parse_size(#[pyo3(from_py_with = argument::text)] text: String) -> PyResult<i64> {
    value::parse_size(&text).map_err(|error| raise("InvalidArgumentError", error.to_string()))
}

/// Nanoseconds of a duration such as `100ms`, `5s`, `10us` or `1000` (nanoseconds).
#[pyfunction]
pub fn parse_duration_ns(#[pyo3(from_py_with = argument::text)] text: String) -> PyResult<i64> {
    value::parse_duration_ns(&text)
        .map_err(|error| raise("InvalidArgumentError", error.to_string()))
}
