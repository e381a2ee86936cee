//! `CncFile`: a driver's CnC file, for tools that read the file without a client and do not write to it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use aeron_memory::cnc::{Cnc, CncError, Reader};
use aeron_memory::directory;
use aeron_memory::error_log::{self, ErrorObservation};
use aeron_memory::mapped::MappedFile;
use aeron_memory::{SharedBuffer, Words};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::argument;
use crate::counters::PyCounterSnapshot;
use crate::errors::{from_client, raise};
use crate::snapshot::snapshot;

/// Time between two checks of a file that a driver is still creating.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// The CnC file of a live or dead driver.
///
/// The file is mapped read-only, and no client is created. Thread-safe. The end of a `with` block closes
/// the file.
///
/// Args:
///     aeron_dir: Directory of the driver.
///     timeout_ms: Milliseconds to wait for a complete file.
///
/// Raises:
///     DriverTimeoutError: If there is no complete file within `timeout_ms`.
///     DriverError: If the file has another version or is damaged.
///
/// Example:
///     ```python
///     with aeron.CncFile(driver.dir) as cnc:
///         print(cnc.pid, len(cnc.counters()))
///     ```
#[pyclass(frozen, module = "aeron", name = "CncFile")]
pub struct PyCncFile {
    cnc: RwLock<Option<Cnc<SharedBuffer>>>,
}

snapshot! {
    /// A distinct error of an error log, with the number of its observations and the times of the first and the last.
    /// Immutable. Comparison and pickling use the values.
    PyErrorObservation("ErrorObservation") {
        /// Number of observations.
        observation_count: i32,
        /// Time of the first observation, in milliseconds since the epoch.
        first_observation_ms: i64,
        /// Time of the last observation, in milliseconds since the epoch.
        last_observation_ms: i64,
        /// Text that the driver or archive logged.
        text: String,
    }

    fn __repr__(&self) -> String {
        format!(
            "ErrorObservation({} x {:?})",
            self.observation_count, self.text
        )
    }
}

impl From<ErrorObservation> for PyErrorObservation {
    fn from(seen: ErrorObservation) -> Self {
        Self {
            observation_count: seen.observation_count,
            first_observation_ms: seen.first_observation_ms,
            last_observation_ms: seen.last_observation_ms,
            text: seen.text,
        }
    }
}

#[pymethods]
impl PyCncFile {
    #[new]
    #[pyo3(signature = (aeron_dir, *, timeout_ms = 1000))]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = argument::aeron_dir)] aeron_dir: PathBuf,
        #[pyo3(from_py_with = argument::timeout_ms)] timeout_ms: u64,
    ) -> PyResult<Self> {
        let path = directory::cnc_file(&aeron_dir);
        let cnc = py.detach(|| open(&path, Duration::from_millis(timeout_ms)))?;
        Ok(Self {
            cnc: RwLock::new(Some(cnc)),
        })
    }

    /// Version of the file's layout: `major << 16 | minor << 8 | patch`.
    #[getter]
    fn version(&self) -> PyResult<i32> {
        self.with(|cnc| cnc.version().0)
    }

    /// Process id of the driver.
    #[getter]
    fn pid(&self) -> PyResult<i64> {
        self.with(|cnc| cnc.identity().pid)
    }

    /// Start of the driver, in milliseconds since the epoch.
    #[getter]
    fn start_timestamp_ms(&self) -> PyResult<i64> {
        self.with(|cnc| cnc.identity().start_timestamp_ms)
    }

    /// Nanoseconds without a keepalive after which the driver closes a client.
    #[getter]
    fn client_liveness_timeout_ns(&self) -> PyResult<i64> {
        self.with(|cnc| cnc.identity().client_liveness_timeout_ns)
    }

    /// Time of the driver's last heartbeat, in milliseconds since the epoch; -1 if the driver was closed normally.
    #[getter]
    fn heartbeat_ms(&self) -> PyResult<i64> {
        self.with(|cnc| cnc.to_driver().consumer_heartbeat_ms())
    }

    /// The highest possible counter id.
    #[getter]
    fn max_counter_id(&self) -> PyResult<i32> {
        self.with(|cnc| cnc.counters().max_counter_id())
    }

    /// Takes a snapshot of all allocated counters.
    ///
    /// Returns:
    ///     A list in the order of the counter ids.
    ///
    /// Raises:
    ///     InvalidArgumentError: If the file is closed.
    fn counters(&self) -> PyResult<Vec<PyCounterSnapshot>> {
        self.with(|cnc| {
            let records = cnc.counters().records();
            records.map(PyCounterSnapshot::from).collect()
        })
    }

    /// Returns the distinct errors of the driver's error log.
    ///
    /// Args:
    ///     since_ms: Milliseconds since the epoch. Errors that were last observed before this time are left out.
    ///         `None` returns all errors.
    ///
    /// Returns:
    ///     A list in the order of the first observation.
    ///
    /// Raises:
    ///     InvalidArgumentError: If the file is closed.
    #[pyo3(signature = (*, since_ms = None))]
    fn errors(
        &self,
        #[pyo3(from_py_with = argument::since_ms)] since_ms: Option<i64>,
    ) -> PyResult<Vec<PyErrorObservation>> {
        self.with(|cnc| observations(cnc.error_log(), since_ms))
    }

    /// Unmaps the file. All other methods then raise `InvalidArgumentError`. Idempotent.
    fn close(&self) {
        self.cnc
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) {
        self.close();
    }
}

impl PyCncFile {
    fn with<T>(&self, read: impl FnOnce(&Cnc<SharedBuffer>) -> T) -> PyResult<T> {
        let cnc = self.cnc.read().unwrap_or_else(PoisonError::into_inner);
        let open = cnc.as_ref().map(read);
        open.ok_or_else(|| raise("InvalidArgumentError", "the CnC file is closed"))
    }
}

/// Maps and checks the file. If the file is missing or incomplete, a driver may be starting, so `open` tries again
/// until `timeout` has passed.
fn open(path: &std::path::Path, timeout: Duration) -> PyResult<Cnc<SharedBuffer>> {
    let deadline = Instant::now() + timeout;
    loop {
        let (error, may_pass) = match try_open(path) {
            Ok(Ok(cnc)) => return Ok(cnc),
            Ok(Err(error)) => (error.to_string(), error.is_transient()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (format!("CnC file not created: {}", path.display()), true)
            }
            Err(error) => (format!("cannot map {}: {error}", path.display()), false),
        };
        if !may_pass {
            return Err(raise("DriverError", error));
        }
        if Instant::now() >= deadline {
            return Err(raise("DriverTimeoutError", error));
        }
        thread::sleep(RETRY_INTERVAL);
    }
}

fn try_open(path: &Path) -> io::Result<Result<Cnc<SharedBuffer>, CncError>> {
    match MappedFile::open_private(path) {
        Ok(file) => Ok(Cnc::open(file.buffer().clone(), Reader::Tool)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Ok(Err(CncError::NotPopulated { length: 0 }))
        }
        Err(error) => Err(error),
    }
}

/// Returns the directory that drivers and clients use by default.
///
/// Returns:
///     The value of `AERON_DIR`; without it, `/dev/shm/aeron-<user>` on Linux and `aeron-<user>` in the
///     temporary directory on other systems.
#[pyfunction]
pub fn default_directory() -> PathBuf {
    directory::default_directory()
}

/// Returns whether a driver runs in a directory.
///
/// If a driver is starting, the call waits for up to `timeout_ms`.
///
/// Args:
///     aeron_dir: Directory of the driver.
///     timeout_ms: Age of the driver's heartbeat, in milliseconds, after which the driver counts as dead.
///
/// Returns:
///     `True` if the driver's heartbeat is not older than `timeout_ms`.
///
/// Raises:
///     DriverTimeoutError: If the CnC file is still incomplete after `timeout_ms`.
///     ConfigurationError: If the CnC file has another version.
///     DriverError: If the CnC file is damaged or cannot be mapped.
#[pyfunction]
#[pyo3(signature = (aeron_dir, *, timeout_ms = 10_000))]
pub fn is_driver_active(
    py: Python<'_>,
    #[pyo3(from_py_with = argument::aeron_dir)] aeron_dir: PathBuf,
    #[pyo3(from_py_with = argument::timeout_ms)] timeout_ms: u64,
) -> PyResult<bool> {
    let timeout = Duration::from_millis(timeout_ms);
    let active = py.detach(|| aeron_client::is_driver_active(&aeron_dir, timeout));
    active.map_err(|error| from_client(&error))
}

/// Asks a driver to terminate. The driver terminates if its termination validator accepts the token.
///
/// Args:
///     aeron_dir: Directory of the driver.
///     token: Bytes for the termination validator. `None` stands for no bytes.
///
/// Returns:
///     `True` if the request was written to the driver's CnC file, even if the driver is dead. `False` if the
///     directory has no complete CnC file.
///
/// Raises:
///     ConfigurationError: If the CnC file has another version.
///     DriverError: If the CnC file is damaged or cannot be mapped.
#[pyfunction]
#[pyo3(signature = (aeron_dir, token = None))]
pub fn request_driver_termination(
    #[pyo3(from_py_with = argument::aeron_dir)] aeron_dir: PathBuf,
    #[pyo3(from_py_with = argument::token)] token: Option<PyBackedBytes>,
) -> PyResult<bool> {
    aeron_client::request_driver_termination(&aeron_dir, token.as_deref().unwrap_or_default())
        .map_err(|error| from_client(&error))
}

/// Returns the distinct errors in a copy of an error log.
///
/// Args:
///     data: The copy.
///     offset: Offset of the log in `data`, in bytes.
///     since_ms: Milliseconds since the epoch. Errors that were last observed before this time are left out.
///         `None` returns all errors.
///
/// Returns:
///     A list in the order of the first observation.
///
/// Raises:
///     InvalidArgumentError: If `offset` is beyond the end of `data`.
#[pyfunction]
#[pyo3(signature = (data, offset = 0, *, since_ms = None))]
pub fn read_error_log(
    #[pyo3(from_py_with = argument::data)] data: PyBackedBytes,
    #[pyo3(from_py_with = argument::offset)] offset: usize,
    #[pyo3(from_py_with = argument::since_ms)] since_ms: Option<i64>,
) -> PyResult<Vec<PyErrorObservation>> {
    let log = data.get(offset..).ok_or_else(|| {
        raise(
            "InvalidArgumentError",
            format!("offset {offset} is beyond the end of {} bytes", data.len()),
        )
    })?;
    Ok(observations(&SharedBuffer::copy_of(log), since_ms))
}

fn observations<W: Words>(log: &W, since_ms: Option<i64>) -> Vec<PyErrorObservation> {
    let read = error_log::read(log, since_ms.unwrap_or(i64::MIN));
    read.into_iter().map(PyErrorObservation::from).collect()
}
