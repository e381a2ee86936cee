//! Calls Python functions from threads that the interpreter may end during the call.
//!
//! When the interpreter has ended, CPython before 3.14 unwinds the stack of each daemon thread that runs Python, to
//! end the thread. Rust frames cannot be unwound in this way: the process would abort. So such a thread stops here
//! and waits for the end of the process.

use std::ptr;

use pyo3::call::PyCallArgs;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// Flag of `PyObject_Vectorcall`: the callee may overwrite the place before the first argument, for a bound method's
/// `self`.
const ARGUMENTS_OFFSET: usize = 1 << (usize::BITS - 1);

/// Calls `function(*arguments)`.
pub fn call<'py>(
    function: &Bound<'py, PyAny>,
    arguments: impl CallArguments<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let arguments = arguments.into_pyobject(function.py()).map_err(Into::into)?;
    // The tuple keeps the arguments alive.
    let mut places = vec![ptr::null_mut()];
    places.extend(arguments.iter().map(|argument| argument.as_ptr()));
    call_with(function, &mut places)
}

/// Calls `function(first, second)` without a tuple for the arguments. For a short handler, building a tuple would take
/// a quarter of the time of the call.
#[inline]
pub fn call_with_two<'py>(
    function: &Bound<'py, PyAny>,
    first: &Bound<'py, PyAny>,
    second: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    call_with(
        function,
        &mut [ptr::null_mut(), first.as_ptr(), second.as_ptr()],
    )
}

/// Calls `function` with the objects in all places except the first, which is reserved for the callee. The objects must
/// be alive.
#[inline]
fn call_with<'py>(
    function: &Bound<'py, PyAny>,
    places: &mut [*mut ffi::PyObject],
) -> PyResult<Bound<'py, PyAny>> {
    let count = places.len() - 1;
    let stop = StopOnUnwind;
    // SAFETY: function and arguments are alive, and the GIL is held. The arguments follow the place that the callee may
    // overwrite. The result is a new reference or null.
    let result = unsafe {
        let first = places.as_mut_ptr().add(1);
        PyObject_Vectorcall(
            function.as_ptr(),
            first,
            count | ARGUMENTS_OFFSET,
            ptr::null_mut(),
        )
    };
    std::mem::forget(stop);
    // SAFETY: the result is a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), result) }
}

/// Calls a function of `aeron.aio`. The caller is a thread of the program, which the interpreter does not unwind.
pub fn call_aio<'py>(
    py: Python<'py>,
    function: &str,
    arguments: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("aeron.aio")?.call_method1(function, arguments)
}

/// Drops the result of a handler inside a [`call`], because the interpreter may end while the result's finalizer runs.
pub fn drop_in_python(result: Bound<'_, PyAny>) {
    if result.is_none() {
        return;
    }
    let py = result.py();
    let clear = PyList::new(py, [result]).and_then(|results| results.getattr("clear"));
    if let Err(error) = clear.and_then(|clear| call(&clear, ())) {
        error.write_unraisable(py, None);
    }
}

/// Passes an error for which no caller waits to `sys.unraisablehook`.
///
/// A hook of the program runs inside a [`call`], because the interpreter may end while the hook runs. The hook's
/// argument has the usual attributes.
pub fn show_unraisable(py: Python<'_>, error: PyErr, object: Option<&Bound<'_, PyAny>>) {
    let show = || -> PyResult<bool> {
        let sys = py.import("sys")?;
        let hook = sys.getattr("unraisablehook")?;
        if hook.is(&sys.getattr("__unraisablehook__")?) {
            return Ok(false);
        }
        let parts = PyDict::new(py);
        parts.set_item("exc_type", error.get_type(py))?;
        parts.set_item("exc_value", error.value(py))?;
        parts.set_item("exc_traceback", error.traceback(py))?;
        parts.set_item("err_msg", py.None())?;
        parts.set_item("object", object)?;
        let namespace = py.import("types")?.getattr("SimpleNamespace")?;
        call(&hook, (namespace.call((), Some(&parts))?,)).map(drop_in_python)?;
        Ok(true)
    };
    match show() {
        Ok(true) => {}
        Ok(false) => error.write_unraisable(py, object),
        Err(other) => {
            error.write_unraisable(py, object);
            other.write_unraisable(py, None);
        }
    }
}

// The declaration is as in CPython's headers, except that the function may unwind. Do not add a function that
// pyo3 declares too: the linker would merge both declarations into one that does not unwind.
unsafe extern "C-unwind" {
    /// Part of the stable ABI since 3.12 only, but every CPython since 3.9 exports this function in this form.
    pub fn PyObject_Vectorcall(
        function: *mut ffi::PyObject,
        arguments: *const *mut ffi::PyObject,
        count_and_flags: usize,
        keywords: *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;
}

/// The arguments of a call: a tuple.
pub trait CallArguments<'py>:
    IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>
{
}

impl<'py, T> CallArguments<'py> for T where
    T: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>
{
}

/// Runs `f` on a thread of this module, and stops the thread if the interpreter unwinds its stack. Needed because
/// Python code also runs outside of [`call`], for instance finalizers of dropped objects and hooks for errors.
pub fn stopping_on_unwind(f: impl FnOnce()) {
    let stop = StopOnUnwind;
    f();
    std::mem::forget(stop);
}

/// Stops the thread if the interpreter unwinds its stack. A panic of Rust code is not stopped.
struct StopOnUnwind;

impl Drop for StopOnUnwind {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        loop {
            std::thread::park();
        }
    }
}
