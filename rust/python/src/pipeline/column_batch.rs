//! [`PyColumnBatch`]: a record batch for Python.

use arrow_array::RecordBatch;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::arrow::{batch_capsules, schema_capsule_of};

/// A record batch. ``pyarrow.record_batch(batch)`` shares its memory. Immutable, so thread-safe.
#[pyclass(frozen, module = "aeron._pipeline", name = "ColumnBatch")]
pub struct PyColumnBatch {
    batch: RecordBatch,
}

impl PyColumnBatch {
    pub fn new(batch: RecordBatch) -> Self {
        Self { batch }
    }
}

#[pymethods]
impl PyColumnBatch {
    /// Returns the columns through the Arrow C data interface. A requested schema is ignored.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        batch_capsules(py, &self.batch)
    }

    /// Returns the schema of the columns.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule_of(py, self.batch.schema_ref())
    }

    /// Returns the number of rows.
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }
}
