//! [`row_counts`]: the counts of messages and values without rows, as attributes of an iterator over rows.

/// Defines the attributes of a class with a method `counts`.
macro_rules! row_counts {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// Number of malformed messages and records so far: left out, or kept as rows without values.
            #[getter]
            fn malformed(&self, py: Python<'_>) -> PyResult<u64> {
                Ok(self.counts(py)?.malformed)
            }

            /// Number of messages so far that were left out because they have another template or schema.
            #[getter]
            fn skipped(&self, py: Python<'_>) -> PyResult<u64> {
                Ok(self.counts(py)?.skipped)
            }

            /// Number of values of enums so far that the schema does not know. They are null.
            #[getter]
            fn unknown(&self, py: Python<'_>) -> PyResult<u64> {
                Ok(self.counts(py)?.unknown)
            }
        }
    };
}
pub(crate) use row_counts;
