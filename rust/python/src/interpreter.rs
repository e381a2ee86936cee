//! Refuses subinterpreters, because all interpreters of a process would share this module's classes and exceptions.

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// CPython numbers interpreters from 0 on, and the main interpreter is the first.
const MAIN_INTERPRETER_ID: i64 = 0;

/// Raises `ImportError` in a subinterpreter, with the text that CPython 3.12 uses. Call it before any class is added.
///
/// From 3.12 on, CPython itself refuses the import. In older versions, the classes would belong to the first
/// interpreter, and other interpreters would get exceptions of the first interpreter.
pub fn refuse_subinterpreter(py: Python<'_>) -> PyResult<()> {
    // SAFETY: this thread is attached, so it has an interpreter, which exists at least until the call returns.
    let id = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    match id {
        MAIN_INTERPRETER_ID => Ok(()),
        -1 => Err(PyErr::fetch(py)),
        _ => Err(PyImportError::new_err(
            "module aeron._aeron does not support loading in subinterpreters",
        )),
    }
}
