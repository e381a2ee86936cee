//! `_RecordedRows`: the rows of a recording as record batches, on which `aeron.RecordedBatches` is built.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aeron_columns::layout::RecordLayout;
use aeron_columns::read::{Projection, RowCounts, RowReadError, ValueFormat};
use aeron_objects::reading::CopiedDirectory;
use aeron_pipeline::recordings::{PositionRange, RecordingsError, plan_range};
use aeron_pipeline::rows::{PartitionReadError, PartitionRowReader};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::recording::PyRecording;
use crate::argument;
use crate::arrow::{STREAM_CAPSULE, schema_capsule_of};
use crate::errors::raise;
use crate::malformed::MalformedTreatment;
use crate::pipeline::column_batch::PyColumnBatch;
use crate::pipeline::row_counts::row_counts;
use crate::sbe::format::sbe_format;

/// An iterator over record batches with the rows of a recording's messages.
///
/// The rows are from all messages that begin in the range, in the order of their positions. Thread-safe. Batches are
/// decoded without the GIL.
#[pyclass(frozen, module = "aeron._pipeline", name = "_RecordedRows")]
pub struct PyRecordedRows {
    rows: Arc<SharedRows>,
    /// The recording, as the catalog describes it.
    #[pyo3(get)]
    recording: Py<PyRecording>,
    /// Position at which the range begins.
    #[pyo3(get)]
    from_position: i64,
    /// Position at which the range ends.
    #[pyo3(get)]
    to_position: i64,
}

/// The reader of the rows. An iterator and any number of Arrow streams share it.
struct SharedRows {
    schema: SchemaRef,
    state: Mutex<ReaderState>,
}

struct ReaderState {
    reader: PartitionRowReader<CopiedDirectory>,
    /// The error that ended the reading. Each later call returns the same error. Otherwise a caller would regard the
    /// rows before the error as complete.
    error: Option<RowsError>,
}

/// Reason why no more rows can be read.
#[derive(Clone)]
struct RowsError {
    /// Name of the exception's class.
    class: &'static str,
    message: String,
}

row_counts!(PyRecordedRows);

#[pymethods]
impl PyRecordedRows {
    #[new]
    #[pyo3(signature = (
        directory, recording_id, *, from_position = None, to_position = None, layout = None, text = false,
        columns = None, malformed = MalformedTreatment::FAIL, verify_checksums = true, sbe = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "keywords of a Python class")]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = argument::directory)] directory: PathBuf,
        #[pyo3(from_py_with = argument::recording_id)] recording_id: i64,
        #[pyo3(from_py_with = argument::from_position)] from_position: Option<i64>,
        #[pyo3(from_py_with = argument::to_position)] to_position: Option<i64>,
        #[pyo3(from_py_with = argument::layout)] layout: Option<String>,
        #[pyo3(from_py_with = argument::text)] text: bool,
        #[pyo3(from_py_with = argument::columns)] columns: Option<Vec<String>>,
        #[pyo3(from_py_with = argument::malformed)] malformed: MalformedTreatment,
        #[pyo3(from_py_with = argument::verify_checksums)] verify_checksums: bool,
        sbe: Option<&str>,
    ) -> PyResult<Self> {
        let mode = malformed.0;
        let format = value_format(layout.as_deref(), text, sbe)?;
        let projection = Projection::of_columns(columns.as_deref(), &format, mode)
            .map_err(|error| raise("InvalidArgumentError", error.to_string()))?;
        let range = PositionRange {
            from: from_position,
            to: to_position,
        };
        let planned = py.detach(|| plan_range(&directory, recording_id, range));
        let planned = planned.map_err(|error| from_recordings(&error))?;
        let recording = PyRecording::from(planned.descriptor);
        let projection = projection.with_metadata(metadata(&recording, layout));
        let schema = projection.schema().clone();
        let partition = planned.partition;
        let reader = py.detach(|| {
            let storage = CopiedDirectory::new(&directory);
            PartitionRowReader::new(
                storage,
                &partition,
                projection,
                mode,
                None,
                verify_checksums,
            )
        });
        let reader = reader.map_err(|error| RowsError::from(error).raised())?;
        Ok(Self {
            rows: Arc::new(SharedRows {
                schema,
                state: Mutex::new(ReaderState {
                    reader,
                    error: None,
                }),
            }),
            recording: Py::new(py, recording)?,
            from_position: partition.from,
            to_position: partition.to,
        })
    }

    /// Position up to which all complete messages were returned.
    #[getter]
    fn position(&self, py: Python<'_>) -> i64 {
        py.detach(|| self.rows.lock().reader.position())
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyColumnBatch>> {
        let batch = py.detach(|| self.rows.next_batch());
        batch
            .map(|batch| batch.map(PyColumnBatch::new))
            .map_err(|error| error.raised())
    }

    /// Returns the schema of the columns.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule_of(py, &self.rows.schema)
    }

    /// Returns the remaining record batches through the Arrow C stream interface. A requested schema is ignored.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let stream = FFI_ArrowArrayStream::new(Box::new(RowStream(self.rows.clone())));
        PyCapsule::new_with_value(py, stream, STREAM_CAPSULE)
    }
}

impl PyRecordedRows {
    fn counts(&self, py: Python<'_>) -> PyResult<RowCounts> {
        Ok(py.detach(|| self.rows.lock().reader.counts()))
    }
}

impl SharedRows {
    fn lock(&self) -> MutexGuard<'_, ReaderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_batch(&self) -> Result<Option<RecordBatch>, RowsError> {
        let ReaderState { reader, error } = &mut *self.lock();
        if let Some(error) = error {
            return Err(error.clone());
        }
        reader
            .next_batch()
            .map_err(|found| error.insert(found.into()).clone())
    }
}

/// The remaining record batches as a stream for an Arrow library.
struct RowStream(Arc<SharedRows>);

impl Iterator for RowStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.0.next_batch().transpose()?;
        Some(batch.map_err(|error| {
            match error.class {
                // For this error, Arrow libraries raise their exception for invalid values. For others, they raise
                // their exception for file errors.
                "InvalidArgumentError" => ArrowError::InvalidArgumentError(error.message),
                _ => ArrowError::IoError(error.message, io::ErrorKind::InvalidData.into()),
            }
        }))
    }
}

impl RecordBatchReader for RowStream {
    fn schema(&self) -> SchemaRef {
        self.0.schema.clone()
    }
}

impl From<PartitionReadError> for RowsError {
    fn from(error: PartitionReadError) -> Self {
        match error {
            PartitionReadError::Rows(RowReadError::Malformed(_)) => Self {
                class: "InvalidArgumentError",
                message: format!("{error}: correct the layout, or drop such messages"),
            },
            _ => Self {
                class: "ArchiveDirectoryError",
                message: error.to_string(),
            },
        }
    }
}

impl RowsError {
    #[cold]
    fn raised(&self) -> PyErr {
        raise(self.class, self.message.clone())
    }
}

fn value_format(layout: Option<&str>, text: bool, sbe: Option<&str>) -> PyResult<ValueFormat> {
    match (layout, text, sbe) {
        (None, false, None) => Ok(ValueFormat::binary()),
        (None, true, None) => Ok(ValueFormat::text()),
        (None, false, Some(json)) => sbe_format(json),
        (Some(layout), false, None) => match RecordLayout::parse(layout) {
            Ok(layout) => Ok(ValueFormat::records(layout.with_nanoseconds())),
            Err(error) => Err(raise(
                "InvalidArgumentError",
                format!("layout='{layout}': {error}"),
            )),
        },
        _ => Err(raise(
            "InvalidArgumentError",
            "payloads are either records of a layout, text, or SBE messages: pass layout, text or sbe",
        )),
    }
}

/// Returns the metadata of the Arrow schema: the recording that the rows come from, and the layout if there is one.
fn metadata(recording: &PyRecording, layout: Option<String>) -> HashMap<String, String> {
    let mut metadata = HashMap::from([
        (
            "aeron.recording_id".to_owned(),
            recording.recording_id.to_string(),
        ),
        (
            "aeron.stream_id".to_owned(),
            recording.stream_id.to_string(),
        ),
        (
            "aeron.session_id".to_owned(),
            recording.session_id.to_string(),
        ),
        (
            "aeron.channel".to_owned(),
            recording.original_channel.clone(),
        ),
    ]);
    metadata.extend(layout.map(|layout| ("aeron.layout".to_owned(), layout)));
    metadata
}

#[cold]
fn from_recordings(error: &RecordingsError) -> PyErr {
    let class = match error {
        RecordingsError::Range { .. } => "InvalidArgumentError",
        _ => "ArchiveDirectoryError",
    };
    raise(class, error.to_string())
}
