//! Waiting in an event loop for the driver's answer to a command that adds no resource.

use aeron_client::Error;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use crate::errors::from_client;

/// A coroutine that polls until there is an answer, and returns its value.
pub fn value(
    py: Python<'_>,
    poll: impl Fn() -> Result<Option<i32>, Error> + Send + Sync + 'static,
) -> PyResult<Bound<'_, PyAny>> {
    let poll = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        let answer = arguments.py().detach(&poll);
        answer.map_err(|error| from_client(&error))
    };
    let poll = PyCFunction::new_closure(py, None, None, poll)?;
    py.import("aeron.aio")?.call_method1("operation", (poll,))
}

/// As [`value`], returning `result` instead.
pub fn done<'py, R: IntoPyObject<'py>>(
    py: Python<'py>,
    poll: impl Fn() -> Result<Option<i32>, Error> + Send + Sync + 'static,
    result: R,
) -> PyResult<Bound<'py, PyAny>> {
    let operation = value(py, poll)?;
    py.import("aeron.aio")?
        .call_method1("done", (operation, result))
}
