//! `read_loss_report`: what the images of a driver have lost.

use std::io;
use std::path::PathBuf;

use aeron_memory::directory;
use aeron_memory::loss_report::{self, LossObservation};
use aeron_memory::mapped::MappedFile;
use pyo3::prelude::*;

/// What one image has lost, as it was when it was looked at. Immutable.
#[pyclass(frozen, module = "aeron._aeron", name = "LossObservation")]
pub struct PyLossObservation(LossObservation);

/// What the images of the driver on `aeron_dir` have lost, oldest first; the driver may be dead.
///
/// Raises `FileNotFoundError` without a loss report in that directory.
#[pyfunction]
pub fn read_loss_report(aeron_dir: PathBuf) -> PyResult<Vec<PyLossObservation>> {
    let path = directory::loss_report_file(&aeron_dir);
    let file = MappedFile::open_private(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    let observations = loss_report::read(file.buffer());
    Ok(observations.into_iter().map(PyLossObservation).collect())
}

#[pymethods]
impl PyLossObservation {
    /// How many gaps were reported.
    #[getter]
    fn observation_count(&self) -> i64 {
        self.0.observation_count
    }

    /// Bytes of all reported gaps.
    #[getter]
    fn total_bytes_lost(&self) -> i64 {
        self.0.total_bytes_lost
    }

    /// When the first gap was reported, in epoch milliseconds.
    #[getter]
    fn first_observation_ms(&self) -> i64 {
        self.0.first_observation_ms
    }

    /// When the last gap was reported, in epoch milliseconds.
    #[getter]
    fn last_observation_ms(&self) -> i64 {
        self.0.last_observation_ms
    }

    /// Session of the stream.
    #[getter]
    fn session_id(&self) -> i32 {
        self.0.image.session_id
    }

    /// Stream id.
    #[getter]
    fn stream_id(&self) -> i32 {
        self.0.image.stream_id
    }

    /// Channel of the subscription.
    #[getter]
    fn channel(&self) -> &str {
        &self.0.image.channel
    }

    /// Address of the publisher, `ip:port`.
    #[getter]
    fn source(&self) -> &str {
        &self.0.image.source
    }

    fn __repr__(&self) -> String {
        let image = &self.0.image;
        format!(
            "LossObservation({} gaps, {} bytes of session {} on {}, stream {}, from {})",
            self.0.observation_count,
            self.0.total_bytes_lost,
            image.session_id,
            image.channel,
            image.stream_id,
            image.source
        )
    }
}
