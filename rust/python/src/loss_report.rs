//! `read_loss_report`: reads the losses of a driver's images.

use std::io;
use std::path::PathBuf;

use aeron_memory::directory;
use aeron_memory::loss_report::{self, LossObservation};
use aeron_memory::mapped::MappedFile;
use pyo3::prelude::*;

use crate::argument;
use crate::snapshot::snapshot;

snapshot! {
    /// The losses of one image. Immutable. Comparison and pickling use the values.
    PyLossObservation("LossObservation") {
        /// Number of gaps.
        observation_count: i64,
        /// Length of all gaps, in bytes.
        total_bytes_lost: i64,
        /// Time of the first gap, in milliseconds since the epoch.
        first_observation_ms: i64,
        /// Time of the last gap, in milliseconds since the epoch.
        last_observation_ms: i64,
        /// Session id of the stream.
        session_id: i32,
        /// Stream id.
        stream_id: i32,
        /// Channel of the subscription.
        channel: String,
        /// Address of the publisher, `ip:port`.
        source: String,
    }

    fn __repr__(&self) -> String {
        format!(
            "LossObservation({} gaps, {} bytes of session {} on {}, stream {}, from {})",
            self.observation_count,
            self.total_bytes_lost,
            self.session_id,
            self.channel,
            self.stream_id,
            self.source
        )
    }
}

impl From<LossObservation> for PyLossObservation {
    fn from(seen: LossObservation) -> Self {
        Self {
            observation_count: seen.observation_count,
            total_bytes_lost: seen.total_bytes_lost,
            first_observation_ms: seen.first_observation_ms,
            last_observation_ms: seen.last_observation_ms,
            session_id: seen.image.session_id,
            stream_id: seen.image.stream_id,
            channel: seen.image.channel,
            source: seen.image.source,
        }
    }
}

/// Returns the losses of a live or dead driver's images.
///
/// Args:
///     aeron_dir: Directory of the driver.
///
/// Returns:
///     A list with one item for each image, in the order of the first gap.
///
/// Raises:
///     FileNotFoundError: If the directory has no loss report.
#[pyfunction]
pub fn read_loss_report(
    #[pyo3(from_py_with = argument::aeron_dir)] aeron_dir: PathBuf,
) -> PyResult<Vec<PyLossObservation>> {
    let path = directory::loss_report_file(&aeron_dir);
    let file = MappedFile::open_private(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    let observations = loss_report::read(file.buffer());
    Ok(observations
        .into_iter()
        .map(PyLossObservation::from)
        .collect())
}
