//! `plan_recordings`: plans the partitions in which the recordings of a directory are read. `ended_archives`: finds the
//! private archives of ended queries.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use aeron_pipeline::partition::Partition;
use aeron_pipeline::recordings::{self, RecordingCutting, RecordingSelection, RecordingsError};
use pyo3::prelude::*;

use crate::argument;
use crate::errors::spark_error;

use super::layout;

/// Returns the private archives of ended queries in `directory`, and the number of bytes on disk of each archive.
#[pyfunction]
#[pyo3(name = "_ended_archives")]
pub fn ended_archives(py: Python<'_>, directory: PathBuf) -> Vec<(PathBuf, u64)> {
    py.detach(|| aeron_pipeline::private::ended_archives(&directory))
}

/// Returns the partitions of the recordings in an archive directory, as texts for `PartitionReader`.
///
/// Each message is in exactly one partition. `recording_ids` are pairs of the first and the last id. `value_schema` is
/// the record layout if each record is a row. Nothing is written to the directory. Raises ``AeronSparkError``.
#[pyfunction]
#[pyo3(signature = (
    directory, *, stream_ids = None, recording_ids = None, min_partitions = None, max_rows_per_partition = None,
    value_schema = None
))]
pub fn plan_recordings(
    py: Python<'_>,
    directory: PathBuf,
    stream_ids: Option<Vec<i32>>,
    recording_ids: Option<Vec<(i64, i64)>>,
    #[pyo3(from_py_with = argument::min_partitions)] min_partitions: Option<usize>,
    #[pyo3(from_py_with = argument::max_rows_per_partition)] max_rows_per_partition: Option<u64>,
    value_schema: Option<&str>,
) -> PyResult<Vec<String>> {
    let layout = value_schema.map(layout::parse).transpose()?;
    let wanted = RecordingSelection {
        stream_ids,
        recording_ids,
    };
    let cutting = RecordingCutting {
        min_partitions,
        max_rows: max_rows_per_partition,
        record_length: layout.and_then(|layout| NonZeroUsize::new(layout.record_length())),
    };
    py.detach(|| recordings::plan(&directory, &wanted, &cutting))
        .map(|partitions| partitions.iter().map(Partition::to_json).collect())
        .map_err(|error| spark_error(code(&error), &error.to_string()))
}

fn code(error: &RecordingsError) -> &'static str {
    match error {
        RecordingsError::NoArchive(_)
        | RecordingsError::SeveralArchives { .. }
        | RecordingsError::UnknownRecording { .. }
        | RecordingsError::TooManyPartitions { .. }
        | RecordingsError::TooManySegments { .. } => "OPTION",
        _ => "ARCHIVE",
    }
}
