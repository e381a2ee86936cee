//! Calling Python functions from a thread that the interpreter may end meanwhile.
//!
//! CPython before 3.14 ends a daemon thread that runs Python when the interpreter is gone by unwinding its stack, which frames
//! of Rust cannot take part in: the process would abort. So such a thread stops here instead, until the process is gone too.

use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Calls `function(*arguments)`.
#[inline]
pub fn call<'py>(
    function: &Bound<'py, PyAny>,
    arguments: impl CallArguments<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let arguments = arguments.into_pyobject(function.py()).map_err(Into::into)?;
    // Declared behind the arguments, so that unwinding meets it before it would drop them without the GIL.
    let stop = StopOnUnwind;
    // SAFETY: function and arguments are alive and the GIL is held; the result is a new reference or null.
    let result = unsafe { PyObject_Call(function.as_ptr(), arguments.as_ptr(), ptr::null_mut()) };
    std::mem::forget(stop);
    // SAFETY: a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), result) }
}

/// Calls `function(first, second)` without a tuple for the arguments, which would cost a quarter of a short handler's call.
#[inline]
pub fn call_with_two<'py>(
    function: &Bound<'py, PyAny>,
    first: &Bound<'py, PyAny>,
    second: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    /// The callee may use the place before the arguments, for a bound method's `self`.
    const ARGUMENTS_OFFSET: usize = 1 << (usize::BITS - 1);
    let mut arguments = [ptr::null_mut(), first.as_ptr(), second.as_ptr()];
    let stop = StopOnUnwind;
    // SAFETY: function and arguments are alive and the GIL is held; two arguments follow the place that the flag offers to the
    // callee; the result is a new reference or null.
    let result = unsafe {
        let first = arguments.as_mut_ptr().add(1);
        PyObject_Vectorcall(
            function.as_ptr(),
            first,
            2 | ARGUMENTS_OFFSET,
            ptr::null_mut(),
        )
    };
    std::mem::forget(stop);
    // SAFETY: a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), result) }
}

// As in CPython's headers, but for the fact that they may unwind.
unsafe extern "C-unwind" {
    fn PyObject_Call(
        function: *mut ffi::PyObject,
        arguments: *mut ffi::PyObject,
        keywords: *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;

    /// In the stable ABI since 3.12 only, but exported by every CPython since 3.9 in this form.
    pub fn PyObject_Vectorcall(
        function: *mut ffi::PyObject,
        arguments: *const *mut ffi::PyObject,
        count_and_flags: usize,
        keywords: *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;
}

/// What a function is called with: a tuple.
pub trait CallArguments<'py>:
    IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>
{
}

impl<'py, T> CallArguments<'py> for T where
    T: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>
{
}

/// Stops the thread when its stack is unwound.
struct StopOnUnwind;

impl Drop for StopOnUnwind {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}
