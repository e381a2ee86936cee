//! [`with_block`]: makes an object usable in a `with` block, whose end closes the object.

/// Defines `__enter__` and `__exit__` of a class with a method `close`.
macro_rules! with_block {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            fn __enter__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __exit__(
                &self,
                py: Python<'_>,
                _type: &Bound<'_, PyAny>,
                _error: &Bound<'_, PyAny>,
                _traceback: &Bound<'_, PyAny>,
            ) -> PyResult<()> {
                self.close(py)
            }
        }
    };
}
pub(crate) use with_block;
