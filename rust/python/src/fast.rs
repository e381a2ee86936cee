//! Implements two methods with the C API, because programs call them once for each message: `offer(message)` and
//! `poll(handler, limit)`.
//!
//! PyO3's code around the body of a method takes about 10 of the 60 ns of a call: it changes thread-local state, parses
//! arguments, and looks for references to drop. This time limits the rate of a program that makes one call for each
//! message. So these methods are attached to their classes without PyO3. A call in any other form, for instance with
//! keywords, is passed to the method that PyO3 generated.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::{Borrowed, PyClass};

use crate::calls::PyObject_Vectorcall;

/// A class with a method that is attached without PyO3 and has one or two positional arguments.
pub trait Method: PyClass<Frozen = True> + Sync {
    /// Name of the method.
    const METHOD: &'static CStr;
    /// Signature and docstring of the method.
    const DESCRIPTION: &'static CStr;
    /// Name of the method that PyO3 generated, which accepts calls in any form.
    const GENERAL: &'static CStr;
    /// Whether the method accepts a second positional argument.
    const TAKES_TWO: bool;

    /// Body of the method.
    fn call(
        &self,
        first: &Bound<'_, PyAny>,
        second: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>>;
}

/// Attaches the method to the class.
pub fn attach<C: Method>(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<C>();
    let method = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: C::METHOD.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: entry::<C>,
        },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: C::DESCRIPTION.as_ptr(),
    }));
    // SAFETY: the class is alive, and the definition is never freed. The result is a new reference, or null with an
    // exception set.
    let descriptor = unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), method))?
    };
    class.setattr(C::METHOD.to_string_lossy(), descriptor)
}

/// # Safety
/// Only Python may call this function, from an attached thread. `this` must be an object of the method's class.
/// `arguments` must contain `count` arguments, and one more for each keyword.
unsafe extern "C" fn entry<C: Method>(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let has_two = count == 2 && C::TAKES_TWO;
    if !(count == 1 || has_two) || !keywords.is_null() {
        // SAFETY: Python passes valid arguments.
        return unsafe { call_general::<C>(this, arguments, count, keywords) };
    }
    // SAFETY: Python passes valid arguments, and the method's descriptor has checked the class of `this`.
    let (py, this, first, second) = unsafe {
        let py = Python::assume_attached();
        let this = Borrowed::from_ptr(py, this).cast_unchecked::<C>();
        let second = has_two.then(|| Borrowed::from_ptr(py, *arguments.add(1)));
        (py, this, Borrowed::from_ptr(py, *arguments), second)
    };
    let body = || this.get().call(&first, second.as_deref());
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        let name = C::METHOD.to_string_lossy();
        Err(PyRuntimeError::new_err(format!(
            "{name} panicked, see standard error"
        )))
    });
    match outcome {
        Ok(answer) => answer.into_ptr(),
        Err(error) => {
            error.restore(py);
            ptr::null_mut()
        }
    }
}

/// # Safety
/// As [`entry`].
#[cold]
unsafe fn call_general<C: Method>(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: all objects are alive during the call. The reference to the bound method is released after the call.
    unsafe {
        let method = ffi::PyObject_GetAttrString(this, C::GENERAL.as_ptr());
        if method.is_null() {
            return ptr::null_mut();
        }
        let answer = PyObject_Vectorcall(method, arguments, count as usize, keywords);
        ffi::Py_DECREF(method);
        answer
    }
}
