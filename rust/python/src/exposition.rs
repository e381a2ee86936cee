//! The native half of `aeron.metrics.Exporter`: the text of the metrics, and a check of passwords.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use aeron_archive::server::users::Users;
use aeron_metrics::{ArchiveSource, CustomMetrics, DriverSource, Exposition, ExpositionOptions};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;

/// The metrics of drivers and archives in the text format of Prometheus. Thread-safe.
#[pyclass(frozen, module = "aeron._aeron", name = "_Exposition")]
pub struct PyExposition {
    exposition: Mutex<Exposition>,
}

#[pymethods]
impl PyExposition {
    #[new]
    #[pyo3(signature = (drivers, archives, *, max_series, per_session, custom))]
    fn new(
        drivers: Vec<(String, PathBuf)>,
        archives: Vec<(String, PathBuf)>,
        max_series: usize,
        per_session: bool,
        custom: &str,
    ) -> PyResult<Self> {
        let custom = CustomMetrics::parse(custom)
            .map_err(|error| raise("InvalidArgumentError", error.to_string()))?;
        let options = ExpositionOptions {
            max_series,
            is_per_session: per_session,
            custom,
        };
        let drivers = drivers.into_iter();
        let archives = archives.into_iter();
        let exposition = Exposition::new(
            drivers
                .map(|(name, directory)| DriverSource::new(name, directory))
                .collect(),
            archives
                .map(|(name, directory)| ArchiveSource::new(name, directory))
                .collect(),
            options,
        );
        Ok(Self {
            exposition: Mutex::new(exposition),
        })
    }

    /// Returns name, type and description of each metric that can occur.
    fn families(&self) -> Vec<(String, &'static str, String)> {
        let exposition = self.exposition.lock();
        exposition
            .unwrap_or_else(PoisonError::into_inner)
            .families()
    }

    /// Reads all files and returns the text. Other Python threads run meanwhile: a service with thousands of streams
    /// must not wait for its own metrics.
    fn render<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let text = py.detach(|| {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            let mut exposition = self
                .exposition
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            exposition.render(now.as_millis() as i64)
        });
        PyBytes::new(py, text.as_bytes())
    }
}

/// The users in a users file of an archive. Thread-safe.
#[pyclass(frozen, module = "aeron._aeron", name = "_Users")]
pub struct PyUsers {
    users: Users,
}

#[pymethods]
impl PyUsers {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let users = Users::load(&path);
        let users = users.map_err(|error| raise("ConfigurationError", error.to_string()))?;
        Ok(Self { users })
    }

    /// Returns whether a user has a password.
    fn has_password(&self, py: Python<'_>, name: &str, password: &[u8]) -> bool {
        py.detach(|| self.users.has_password(name, password))
    }
}
