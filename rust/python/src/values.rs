//! Parses sizes and durations in the form of the driver's settings and channel URIs.

use aeron_agent::value;
use pyo3::prelude::*;

use crate::argument;
use crate::errors::raise;

/// Parses a size.
///
/// Args:
///     text: A number of bytes, or a number with the suffix `k`, `m` or `g`.
///
/// Returns:
///     The size in bytes.
///
/// Raises:
///     InvalidArgumentError: If the text is not a size.
///
/// Example:
///     ```python
///     aeron.parse_size("64k")
///     ```
#[pyfunction]
pub fn parse_size(#[pyo3(from_py_with = argument::text)] text: String) -> PyResult<i64> {
    value::parse_size(&text).map_err(|error| raise("InvalidArgumentError", error.to_string()))
}

/// Parses a duration.
///
/// Args:
///     text: A number of nanoseconds, or a number with the suffix `ns`, `us`, `ms` or `s`.
///
/// Returns:
///     The duration in nanoseconds.
///
/// Raises:
///     InvalidArgumentError: If the text is not a duration.
///
/// Example:
///     ```python
///     aeron.parse_duration_ns("100ms")
///     ```
#[pyfunction]
pub fn parse_duration_ns(#[pyo3(from_py_with = argument::text)] text: String) -> PyResult<i64> {
    value::parse_duration_ns(&text)
        .map_err(|error| raise("InvalidArgumentError", error.to_string()))
}
