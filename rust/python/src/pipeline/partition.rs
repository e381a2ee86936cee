//! [`PyPartitionReader`]: reads a partition of a recording as record batches.

use std::sync::{Arc, Mutex, PoisonError};

use aeron_columns::read::{Mode, Projection, RowCounts, ValueFormat};
use aeron_objects::reading::CopiedDirectory;
use aeron_pipeline::partition::Partition;
use aeron_pipeline::private::{self, RowNotes};
use aeron_pipeline::rows::PartitionRowReader;
use pyo3::prelude::*;

use super::column_batch::PyColumnBatch;
use super::layout;
use super::row_counts::row_counts;
use crate::argument;
use crate::arrow::schema_of;
use crate::errors::{raise, spark_error};
use crate::malformed::MalformedTreatment;

/// An iterator over the rows of a partition, as record batches with exactly the given schema.
///
/// * `partition` is a text that `LiveSource.partitions` or `plan_recordings` returned.
/// * `schema` is any object with the method ``__arrow_c_schema__``.
/// * `value_format` is ``"binary"``, ``"string"``, ``"struct"`` or ``"sbe"``. With ``"struct"``, `value_schema` is the
///   record layout. With ``"sbe"``, it is a JSON object: the text of the schema, the template, and options of columns.
/// * `malformed` is ``"fail"``, ``"drop"`` or ``"keep"``, as for `read_recording`.
/// * `channel` is the value of the column `channel` if the partition does not name the channel of its recording.
/// * With `verify_checksums`, a frame with a wrong checksum is an error.
///
/// The archive must be on this machine. The same partition always yields the same batches. Errors have the classes
/// of ``aeron.spark.errors``. Thread-safe. Batches are decoded without the GIL.
#[pyclass(frozen, module = "aeron._pipeline", name = "PartitionReader")]
pub struct PyPartitionReader {
    reader: Mutex<PartitionRowReader<CopiedDirectory>>,
    partition: Partition,
    directory: CopiedDirectory,
}

row_counts!(PyPartitionReader);

#[pymethods]
impl PyPartitionReader {
    #[new]
    #[pyo3(signature = (
        partition, schema, *, value_format = "binary", value_schema = None, malformed = MalformedTreatment::FAIL, channel = None,
        verify_checksums = true
    ))]
    #[allow(clippy::too_many_arguments, reason = "keywords of a Python class")]
    fn new(
        partition: &str,
        schema: &Bound<'_, PyAny>,
        value_format: &str,
        value_schema: Option<&str>,
        #[pyo3(from_py_with = argument::malformed)] malformed: MalformedTreatment,
        channel: Option<&str>,
        verify_checksums: bool,
    ) -> PyResult<Self> {
        let partition = Partition::from_json(partition)
            .map_err(|error| raise("InvalidArgumentError", error.to_string()))?;
        let mode = malformed.0;
        let projection = projection_of(schema, value_format, value_schema, mode)?;
        let directory = private::visible(&partition.archive)
            .map_err(|error| spark_error("NOT_VISIBLE", &error.to_string()))?;
        let directory = CopiedDirectory::new(directory.path());
        let reader = PartitionRowReader::new(
            directory.clone(),
            &partition,
            projection,
            mode,
            channel,
            verify_checksums,
        )
        .map_err(|error| spark_error(error.code(), &error.to_string()))?;
        Ok(Self {
            reader: Mutex::new(reader),
            partition,
            directory,
        })
    }

    /// Writes files with the numbers above into the archive directory, for the live source that planned the partition.
    /// Raises ``OSError`` if a file cannot be created.
    fn report_counts(&self, py: Python<'_>) -> PyResult<()> {
        let notes = RowNotes {
            recording_id: self.partition.recording.id,
            from: self.partition.from,
            to: self.partition.to,
            counts: self.counts(py)?,
        };
        py.detach(|| notes.leave(&self.directory))?;
        Ok(())
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyColumnBatch>> {
        let batch = py.detach(|| self.lock().next_batch());
        match batch {
            Ok(batch) => Ok(batch.map(PyColumnBatch::new)),
            Err(error) => Err(spark_error(error.code(), &error.to_string())),
        }
    }
}

impl PyPartitionReader {
    fn counts(&self, py: Python<'_>) -> PyResult<RowCounts> {
        Ok(py.detach(|| self.lock().counts()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, PartitionRowReader<CopiedDirectory>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the columns that a reader creates.
pub(super) fn projection_of(
    schema: &Bound<'_, PyAny>,
    value_format: &str,
    value_schema: Option<&str>,
    mode: Mode,
) -> PyResult<Projection> {
    let format = value_format_of(value_format, value_schema)?;
    Projection::new(Arc::new(schema_of(schema)?), &format, mode)
        .map_err(|error| spark_error("OPTION", &error.to_string()))
}

fn value_format_of(name: &str, layout: Option<&str>) -> PyResult<ValueFormat> {
    match (name, layout) {
        ("binary", None) => Ok(ValueFormat::binary()),
        ("string", None) => Ok(ValueFormat::text()),
        ("struct", Some(text)) => Ok(ValueFormat::records(layout::parse(text)?)),
        ("sbe", Some(json)) => crate::sbe::format::sbe_format(json),
        _ => Err(raise(
            "InvalidArgumentError",
            format!(
                "value_format '{name}': expected binary or string without a value_schema, or struct or sbe with a value_schema"
            ),
        )),
    }
}
