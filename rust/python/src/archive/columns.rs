//! Converts recordings to Arrow columns, for `Recordings.to_arrow`.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use super::recording::PyRecording;
use crate::pipeline::column_batch::PyColumnBatch;

/// Returns a record batch with a row for each recording and a column for each field of a recording.
#[pyfunction]
pub fn _recording_columns(recordings: &Bound<'_, PyAny>) -> PyResult<PyColumnBatch> {
    let recordings: Vec<Py<PyRecording>> = PyIterator::from_object(recordings)?
        .map(|each| Ok(each?.cast_into::<PyRecording>()?.unbind()))
        .collect::<PyResult<_>>()?;
    let rows: Vec<&PyRecording> = recordings.iter().map(Py::get).collect();
    let long = |get: fn(&PyRecording) -> Option<i64>| -> ArrayRef {
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| get(row))))
    };
    let integer = |get: fn(&PyRecording) -> i32| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(
            rows.iter().map(|row| get(row)),
        ))
    };
    let text = |get: fn(&PyRecording) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(
            rows.iter().map(|row| get(row)),
        ))
    };
    let time = |get: fn(&PyRecording) -> Option<i64>| -> ArrayRef {
        let times = TimestampMillisecondArray::from_iter(rows.iter().map(|row| get(row)));
        Arc::new(times.with_timezone("UTC"))
    };
    let columns = [
        ("recording_id", long(|row| Some(row.recording_id))),
        ("start_timestamp", time(|row| Some(row.start_timestamp_ms))),
        ("stop_timestamp", time(|row| row.stop_timestamp_ms)),
        ("start_position", long(|row| Some(row.start_position))),
        ("stop_position", long(|row| row.stop_position)),
        ("session_id", integer(|row| row.session_id)),
        ("stream_id", integer(|row| row.stream_id)),
        ("stripped_channel", text(|row| &row.stripped_channel)),
        ("original_channel", text(|row| &row.original_channel)),
        ("source_identity", text(|row| &row.source_identity)),
        ("initial_term_id", integer(|row| row.initial_term_id)),
        ("term_buffer_length", integer(|row| row.term_buffer_length)),
        (
            "segment_file_length",
            integer(|row| row.segment_file_length),
        ),
        ("mtu_length", integer(|row| row.mtu_length)),
    ];
    let nullable = columns.map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(nullable)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyColumnBatch::new(batch))
}
