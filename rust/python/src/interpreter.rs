//! Subinterpreters are refused: classes and exceptions of this module belong to the process.

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// CPython numbers interpreters from the main one on.
const MAIN_INTERPRETER_ID: i64 = 0;

/// Raises `ImportError` in a subinterpreter, in the words of CPython 3.12.
///
/// CPython refuses by itself from 3.12 on. In older versions, the classes would belong to the first interpreter, and
/// other interpreters would use its exceptions. Call this before any class is added.
pub fn refuse_subinterpreter(py: Python<'_>) -> PyResult<()> {
    // SAFETY: this thread is attached, so it has an interpreter, which lives at least as long as the call.
    let id = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    match id {
        MAIN_INTERPRETER_ID => Ok(()),
        -1 => Err(PyErr::fetch(py)),
        _ => Err(PyImportError::new_err(
            "module aeron._aeron does not support loading in subinterpreters",
        )),
    }
}
