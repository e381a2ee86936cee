//! `offer(message)` against the C API.
//!
//! What PyO3 puts around the body of a method (thread-local state, argument parsing, looking for references that wait to be
//! dropped) takes some 10 ns, of 60 that a call has. Where a program makes one call for each message that is its rate, so the
//! one method that matters is attached to its classes by hand. A call in any other form than `offer(message)` is passed on to
//! `_offer`, which PyO3 made.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::{Borrowed, PyClass};

use crate::calls::PyObject_Vectorcall;

/// A class that can offer.
pub trait Offers: PyClass<Frozen = True> + Sync {
    /// Offers a message; answers a position or a false constant.
    fn offer(&self, message: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>>;
}

const NAME: &CStr = c"offer";
const DOC: &CStr = c"offer($self, message, *, reserved_value=None)
--

Sends anything with the buffer protocol; answers the stream position after it, or one of the false constants
`NOT_CONNECTED`, `BACK_PRESSURED` and `ADMIN_ACTION`.

`reserved_value` is an integer, or a function that is given each fragment's payload and answers one.";

/// Gives the class its method `offer`.
pub fn attach<C: Offers>(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<C>();
    let method = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: NAME.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: offer::<C>,
        },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: DOC.as_ptr(),
    }));
    // SAFETY: the class and, for ever, the definition are alive; the result is a new reference or null with an exception set.
    let descriptor = unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), method))?
    };
    class.setattr("offer", descriptor)
}

/// # Safety
/// Called by Python: attached, `this` of the class that the method belongs to, `count` arguments and one more for each
/// keyword.
unsafe extern "C" fn offer<C: Offers>(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    if count != 1 || !keywords.is_null() {
        // SAFETY: as Python promises.
        return unsafe { offer_otherwise(this, arguments, count, keywords) };
    }
    // SAFETY: as Python promises; the method's descriptor has checked the class.
    let (py, this, message) = unsafe {
        let py = Python::assume_attached();
        let this = Borrowed::from_ptr(py, this).cast_unchecked::<C>();
        (py, this, Borrowed::from_ptr(py, *arguments))
    };
    let outcome =
        catch_unwind(AssertUnwindSafe(|| this.get().offer(&message))).unwrap_or_else(|_| {
            Err(PyRuntimeError::new_err(
                "offer panicked, see standard error",
            ))
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
/// As [`offer`].
#[cold]
unsafe fn offer_otherwise(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: all are alive during the call; the bound method is given back after it.
    unsafe {
        let method = ffi::PyObject_GetAttrString(this, c"_offer".as_ptr());
        if method.is_null() {
            return ptr::null_mut();
        }
        let answer = PyObject_Vectorcall(method, arguments, count as usize, keywords);
        ffi::Py_DECREF(method);
        answer
    }
}
