//! [`PyLayout`]: a record layout for Python.

use std::sync::Arc;

use aeron_columns::layout::{RecordDecoder, RecordLayout};
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use super::column_batch::PyColumnBatch;
use crate::arrow::{array_of, schema_capsule_of, value_error};
use crate::buffers::View;
use crate::errors::{raise, spark_error};

/// The layout of fixed-length records, parsed from a text such as ``"ts ts_ns, px f64, @24 sym char[8] =32"``.
///
/// Arrow libraries read the layout as the schema of the columns for these records. If the text is not valid, the
/// constructor raises ``AeronOptionError``, which names the field and the offset. Immutable, so thread-safe.
#[pyclass(frozen, module = "aeron._pipeline", name = "Layout")]
pub struct PyLayout {
    layout: RecordLayout,
}

#[pymethods]
impl PyLayout {
    #[new]
    #[pyo3(signature = (text, *, nanoseconds = false))]
    fn new(text: &str, nanoseconds: bool) -> PyResult<Self> {
        let layout = parse(text)?;
        let layout = match nanoseconds {
            true => layout.with_nanoseconds(),
            false => layout,
        };
        Ok(Self { layout })
    }

    /// Length of a record, in bytes.
    #[getter]
    fn record_length(&self) -> usize {
        self.layout.record_length()
    }

    /// Name, type and offset of each field, in the order of the text.
    #[getter]
    fn fields(&self) -> Vec<(String, String, usize)> {
        let fields = self.layout.fields().iter();
        let field = fields.map(|field| {
            let order = if field.is_big_endian() { ">" } else { "" };
            let kind = format!("{order}{}", field.kind());
            (field.name().to_owned(), kind, field.offset())
        });
        field.collect()
    }

    /// Converts records to columns, and returns them as a record batch. `records` are the bytes of any number of
    /// records.
    ///
    /// Raises ``AeronRecordError`` for a value that its column cannot represent. Raises ``ValueError`` if the number of
    /// bytes is not a multiple of the record length, or is 2 GiB or more.
    fn decode(&self, records: &Bound<'_, PyAny>) -> PyResult<PyColumnBatch> {
        let view = View::bytes_of(records)?;
        let records = view.bytes();
        if !records.len().is_multiple_of(self.layout.record_length())
            || i32::try_from(records.len()).is_err()
        {
            return Err(raise(
                "InvalidArgumentError",
                format!(
                    "{} bytes are no records of {} bytes: pass a multiple of the record length below 2 GiB",
                    records.len(),
                    self.layout.record_length()
                ),
            ));
        }
        let columns = RecordDecoder::new(&self.layout)
            .decode(records)
            .map_err(|malformed| {
                let text = format!("record {}: {malformed}", malformed.record);
                spark_error("RECORD", &text)
            })?;
        let schema = Arc::new(Schema::new(self.layout.columns()));
        let batch = RecordBatch::try_new(schema, columns).map_err(value_error)?;
        Ok(PyColumnBatch::new(batch))
    }

    /// Converts a record batch with a column for each field to records, and returns their bytes.
    ///
    /// Raises ``AeronRecordError`` for a missing column, a column of another type, a null, and a value that does not
    /// fit into its field.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        batch: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let batch = array_of(batch)?
            .filter(|array| matches!(array.data_type(), DataType::Struct(_)))
            .filter(|array| array.null_count() == 0)
            .ok_or_else(|| {
                raise(
                    "ArgumentTypeError",
                    "only an Arrow record batch can be converted to records: pass one",
                )
            })?;
        let batch = RecordBatch::from(batch.as_struct());
        let mut records = Vec::new();
        let encoder = self.layout.encoder(&batch);
        encoder
            .and_then(|encoder| encoder.encode(0..batch.num_rows(), &mut records))
            .map_err(|error| spark_error("RECORD", &error.to_string()))?;
        Ok(PyBytes::new(py, &records))
    }

    /// Returns the schema of the columns for these records.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule_of(py, &Schema::new(self.layout.columns()))
    }

    fn __str__(&self) -> String {
        self.layout.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Layout('{}')", self.layout)
    }
}

/// Parses the text of the option `valueSchema`.
pub fn parse(text: &str) -> PyResult<RecordLayout> {
    RecordLayout::parse(text).map_err(|error| {
        let text = format!(
            "option valueSchema: {error}, got '{text}'; see the types in the documentation"
        );
        spark_error("OPTION", &text)
    })
}
