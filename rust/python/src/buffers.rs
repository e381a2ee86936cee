//! Borrows the bytes of Python objects, and lends memory of this module to Python.
//!
//! [`View`] borrows the bytes of any object with the buffer protocol. [`Exporter`] lends memory to Python. The exporter
//! owns the memory, and each Python view of the memory keeps the exporter alive, so no view can dangle.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use aeron_memory::Loans;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;

use crate::argument::named;
use crate::errors::raise;
use pyo3::types::PyBytes;

/// Kind of an argument whose bytes are sent, for error texts.
const BYTES_LIKE: &str =
    "bytes-like: pass bytes, a bytearray, a memoryview or another object with the buffer protocol";

/// Copies of more bytes than this release the GIL.
pub const LARGE_COPY_LENGTH: usize = 1 << 20;

/// A buffer borrowed from a Python object, and released when the view is dropped.
pub struct View<'py> {
    buffer: ffi::Py_buffer,
    _py: Python<'py>,
}

impl<'py> View<'py> {
    /// Borrows the object's bytes, which must be contiguous.
    ///
    /// # Errors
    /// `BufferError` or `TypeError` if the object has no contiguous bytes. `TypeError` if the bytes are addresses of
    /// the values, and not the values.
    pub fn bytes_of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        match Self::acquire(object, ffi::PyBUF_ND | ffi::PyBUF_FORMAT) {
            Ok(view) => view.without_addresses(object),
            // Some types, such as numpy's dates, have bytes but no format.
            Err(_) => {
                let view = Self::acquire(object, ffi::PyBUF_SIMPLE)?;
                match has_objects(object) {
                    true => Err(holds_addresses(object)),
                    false => Ok(view),
                }
            }
        }
    }

    /// As [`bytes_of`](Self::bytes_of), for an argument. If the object has no buffer, the error contains the argument's
    /// name.
    pub fn named(object: &Bound<'py, PyAny>, name: impl FnOnce() -> String) -> PyResult<Self> {
        Self::bytes_of(object).map_err(|error| named(error, object, &name(), BYTES_LIKE))
    }

    /// Borrows the object's memory with its shape, strides and format.
    ///
    /// # Errors
    /// `BufferError` or `TypeError` if the object has no such memory. `TypeError` if the memory contains addresses of
    /// the values, and not the values.
    pub fn shape_of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::acquire(object, ffi::PyBUF_RECORDS_RO)?.without_addresses(object)
    }

    fn without_addresses(self, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        if names_addresses(self.format()) {
            return Err(holds_addresses(object));
        }
        Ok(self)
    }

    fn acquire(object: &Bound<'py, PyAny>, flags: c_int) -> PyResult<Self> {
        let mut buffer = MaybeUninit::<ffi::Py_buffer>::uninit();
        // SAFETY: the object is alive and `buffer` is writable; on success Python has filled it.
        let result =
            unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), buffer.as_mut_ptr(), flags) };
        if result != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(Self {
            // SAFETY: the call has succeeded, so Python has filled the buffer.
            buffer: unsafe { buffer.assume_init() },
            _py: object.py(),
        })
    }

    /// Returns the bytes of contiguous memory. For memory with gaps use [`shape`](Self::shape) and
    /// [`strides`](Self::strides).
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the object keeps `len` bytes at `buf` alive until the view is released.
        unsafe { bytes_at(self.buffer.buf.cast(), self.buffer.len as usize) }
    }

    /// Address of the first item.
    pub fn start(&self) -> *const u8 {
        self.buffer.buf.cast()
    }

    /// Number of items in each dimension.
    pub fn shape(&self) -> &[isize] {
        self.dimensions(self.buffer.shape)
    }

    /// Distance between the starts of two items in each dimension, in bytes.
    pub fn strides(&self) -> &[isize] {
        self.dimensions(self.buffer.strides)
    }

    /// Length of an item, in bytes.
    pub fn item_size(&self) -> usize {
        self.buffer.itemsize as usize
    }

    /// Format of an item, as the module `struct` writes it; `B` if the object has no format.
    pub fn format(&self) -> &str {
        if self.buffer.format.is_null() {
            return "B";
        }
        // SAFETY: the format is a zero-terminated text that is valid as long as the view.
        unsafe { CStr::from_ptr(self.buffer.format) }
            .to_str()
            .unwrap_or("?")
    }

    fn dimensions(&self, first: *mut ffi::Py_ssize_t) -> &[isize] {
        if first.is_null() {
            return &[];
        }
        // SAFETY: the buffer protocol guarantees `ndim` numbers at this address.
        unsafe { std::slice::from_raw_parts(first, self.buffer.ndim as usize) }
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        // SAFETY: PyObject_GetBuffer acquired the buffer, which is released only here. `_py` shows that the thread is
        // attached to the interpreter.
        unsafe { ffi::PyBuffer_Release(&mut self.buffer) }
    }
}

/// Whether an item of this format contains an address, such as the address of a Python object (`O`) or of a C string
/// (`z`, `Z`).
///
/// Names of fields are between colons and may contain any letter, so they are skipped. `Zd`, `Zf` and `Zg` are complex
/// numbers.
fn names_addresses(format: &str) -> bool {
    let is_address = |text: &str| {
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                'O' | 'P' | '&' | 'z' | 'X' => return true,
                'Z' if !matches!(letters.peek(), Some('d' | 'f' | 'g')) => return true,
                _ => {}
            }
        }
        false
    };
    format.split(':').step_by(2).any(is_address)
}

/// Whether the object is a numpy array whose memory contains references to Python objects and not the values.
pub fn has_objects(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    let has_objects = object
        .getattr(intern!(py, "dtype"))
        .and_then(|dtype| dtype.getattr(intern!(py, "hasobject"))?.is_truthy());
    has_objects.unwrap_or(false)
}

#[cold]
pub fn holds_addresses(object: &Bound<'_, PyAny>) -> PyErr {
    let kind = object
        .getattr("dtype")
        .and_then(|dtype| dtype.str())
        .map_or_else(
            |_| object.get_type().to_string(),
            |dtype| format!("an array of dtype {dtype}"),
        );
    let reason = "holds addresses of its values, not the values: \
                  convert it to bytes or to a dtype without objects, such as \"S16\", first";
    raise("ArgumentTypeError", format!("{kind} {reason}"))
}

/// Whether the object's type has the buffer protocol.
pub fn has_buffer(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is alive and the GIL is held.
    unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) != 0 }
}

/// Returns the `len` bytes at `start`. If `len` is 0, `start` may be null.
///
/// # Safety
/// `len` bytes at `start` must be readable for as long as the result is used.
unsafe fn bytes_at<'a>(start: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(start, len) }
}

/// Calls `f` with the bytes of the argument `name`. An object of the type `bytes` is borrowed directly, which is a
/// third faster than the buffer protocol.
#[inline]
pub fn with_bytes<R>(
    object: &Bound<'_, PyAny>,
    name: &str,
    f: impl FnOnce(&[u8]) -> R,
) -> PyResult<R> {
    if let Ok(bytes) = object.cast_exact::<PyBytes>() {
        return Ok(f(bytes.as_bytes()));
    }
    Ok(f(View::named(object, || name.to_owned())?.bytes()))
}

/// Memory that an [`Exporter`] lends.
pub trait Lent: Send + Sync + 'static {
    /// Address of the first byte. The address never changes.
    fn start(&self) -> *mut u8;
    /// Length in bytes.
    fn len(&self) -> usize;
    /// Whether Python may write into the memory.
    fn is_writable(&self) -> bool {
        false
    }
    /// Format of an item, as the module `struct` writes it, and its length in bytes.
    fn items(&self) -> (&'static CStr, usize) {
        (c"B", 1)
    }
}

/// Lends memory through the buffer protocol. Thread-safe.
#[pyclass(frozen, module = "aeron._aeron", name = "_Memory")]
pub struct Exporter {
    memory: Arc<dyn Lent>,
    /// One loan for each view.
    loans: Loans,
    shape: ffi::Py_ssize_t,
    item_size: ffi::Py_ssize_t,
}

impl Exporter {
    pub fn new(memory: Arc<dyn Lent>) -> Self {
        let (_, item_size) = memory.items();
        Self {
            shape: (memory.len() / item_size) as ffi::Py_ssize_t,
            item_size: item_size as ffi::Py_ssize_t,
            memory,
            loans: Loans::default(),
        }
    }

    /// Returns an exporter of the memory and a memoryview of it.
    pub fn view(
        py: Python<'_>,
        memory: Arc<dyn Lent>,
    ) -> PyResult<(Bound<'_, Self>, Bound<'_, PyAny>)> {
        let exporter = Bound::new(py, Self::new(memory))?;
        // SAFETY: the exporter is alive; the result is a new reference or null with an exception set.
        let view = unsafe {
            Bound::from_owned_ptr_or_err(py, ffi::PyMemoryView_FromObject(exporter.as_ptr()))?
        };
        Ok((exporter, view))
    }

    /// Stops lending the memory, and releases `view`. Returns `false` if another view of the memory exists.
    pub fn expire(&self, view: &Bound<'_, PyAny>) -> bool {
        self.loans.refuse();
        view.call_method0(pyo3::intern!(view.py(), "release"))
            .is_ok()
            && self.loans.count() == 0
    }
}

#[pymethods]
impl Exporter {
    unsafe fn __getbuffer__(
        slf: &Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let this = slf.get();
        if !this.loans.begin() {
            return Err(raise(
                "ViewError",
                "this memory is released: copy the bytes before its handler returns or its claim ends",
            ));
        }
        let read_only = c_int::from(!this.memory.is_writable());
        let start: *mut c_void = this.memory.start().cast();
        let len = this.memory.len() as ffi::Py_ssize_t;
        // SAFETY: Python passes a writable `view`. The view owns a reference to `slf`, so the memory outlives the view.
        let result =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, len, read_only, flags) };
        if result != 0 {
            this.loans.end();
            return Err(PyErr::fetch(slf.py()));
        }
        let (format, _) = this.memory.items();
        // SAFETY: `view` was just filled. Shape and item size are fields of the exporter, which outlives the view. They
        // never change.
        unsafe {
            (*view).itemsize = this.item_size;
            if !(*view).format.is_null() {
                (*view).format = format.as_ptr().cast_mut();
            }
            if !(*view).shape.is_null() {
                (*view).shape = std::ptr::from_ref(&this.shape).cast_mut();
            }
            if !(*view).strides.is_null() {
                (*view).strides = std::ptr::from_ref(&this.item_size).cast_mut();
            }
        }
        Ok(())
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.loans.end();
    }
}
