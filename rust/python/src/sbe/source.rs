//! [`HeldBytes`]: the object with the bytes of a decoded message.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::buffers::with_bytes;

/// The object with the bytes of a decoded message, and the number of bytes before the message.
///
/// The buffer of the object is taken anew for each read, unless the object is `bytes`: between two reads its owner can
/// release it, as a poll does after its handler, or change its length.
pub(super) struct HeldBytes {
    object: Py<PyAny>,
    skip: usize,
}

impl HeldBytes {
    pub(super) fn new(object: &Bound<'_, PyAny>, skip: usize) -> Self {
        let object = object.clone().unbind();
        Self { object, skip }
    }

    pub(super) fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            object: self.object.clone_ref(py),
            skip: self.skip,
        }
    }

    /// Calls `read` with the bytes of the message.
    ///
    /// # Errors
    /// The exception of the object if it has no bytes now, such as `ValueError` of a released memoryview.
    #[inline]
    pub(super) fn with<R>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&[u8]) -> PyResult<R>,
    ) -> PyResult<R> {
        let object = self.object.bind(py);
        with_bytes(object, "message", |bytes| read(after(bytes, self.skip)))?
    }

    /// Returns the bytes of the message: the object itself, or a copy.
    pub(super) fn message<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        match self.object.bind(py).cast_exact::<PyBytes>() {
            Ok(bytes) if self.skip == 0 => Ok(bytes.clone()),
            _ => self.with(py, |message| Ok(PyBytes::new(py, message))),
        }
    }
}

/// Returns the bytes after the first ones; none if there are fewer.
pub(super) fn after(bytes: &[u8], skip: usize) -> &[u8] {
    bytes.get(skip..).unwrap_or_default()
}
