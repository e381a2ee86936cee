//! Layouts of fixed records, as Python knows them.

use aeron_pipeline::layout::Layout;
use arrow_schema::Schema;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::spark_error;
use crate::arrow::{SCHEMA_CAPSULE, value_error};

/// A layout of fixed records; to Arrow it is the schema of their columns. Immutable.
#[pyclass(frozen, module = "aeron._aeron", name = "Layout")]
pub struct PyLayout {
    layout: Layout,
}

#[pymethods]
impl PyLayout {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let layout = parse(text)?;
        Ok(Self { layout })
    }

    /// Bytes of a record.
    #[getter]
    fn record_length(&self) -> usize {
        self.layout.record_length()
    }

    /// The schema of the columns that records become.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = Schema::new(self.layout.columns());
        let schema = FFI_ArrowSchema::try_from(&schema).map_err(value_error)?;
        PyCapsule::new_with_value(py, schema, SCHEMA_CAPSULE)
    }
}

/// The layout of a text, which is an option.
pub fn parse(text: &str) -> PyResult<Layout> {
    Layout::parse(text).map_err(|error| {
        spark_error(
            "OPTION",
            &format!(
                "option valueSchema: {error}, got '{text}'; see the types in the documentation"
            ),
        )
    })
}
