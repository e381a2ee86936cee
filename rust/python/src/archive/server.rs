//! [`PyArchive`]: an archive inside this process.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use aeron_agent::setting::Setting;
use aeron_agent::sources::Sources;
use aeron_archive::server::context::{
    ARCHIVE_SETTINGS, ArchiveContext, ArchiveThreadingMode, InvokedDriver,
};
use aeron_archive::server::{Archive, ArchiveStartError};
use aeron_driver::ThreadingMode;
use aeron_objects::open_objects;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::authentication::authenticate_function;
use super::errors::from_start;
use crate::argument;
use crate::connection::DriverName;
use crate::driver::{self, PyMediaDriver};
use crate::errors::raise;
use crate::exit::{self, Closable};
use crate::fork::OfProcess;
use crate::settings;
use crate::signals::SIGNAL_INTERVAL;
use crate::waiting::{DEFAULT_MAX_IDLE_PARK_NS, interruptible_with};
use crate::with_block::with_block;

/// Interval between duty cycles of a driver without threads, while a starting archive waits for the driver.
const DRIVER_INTERVAL: Duration = Duration::from_micros(100);
/// Default channel of the replays that source archives send for replications.
const DEFAULT_REPLICATION_CHANNEL: &str = "aeron:udp?endpoint=localhost:0";
const CONTROL_CHANNEL_ENABLED: &str = "control_channel_enabled";
const CONTROL_CHANNEL_ENABLED_VARIABLE: &str = "AERON_ARCHIVE_CONTROL_CHANNEL_ENABLED";
/// Settings that the constructor takes as arguments with other names: `driver` and `directory`.
const ARGUMENTS: [&str; 2] = ["aeron_dir", "archive_dir"];

/// An archive inside this process: it records streams of a media driver in a directory, and replays them.
///
/// The archive creates the directory if it is missing. Every setting of Aeron's archive is a keyword. The
/// keyword of a time ends in its unit, and lengths are in bytes. If a setting is not passed, its
/// environment variable is used, otherwise its default. The documentation page of all settings names the
/// variables.
///
/// Some defaults differ from Aeron's: all agents share one thread (`threading_mode="SHARED"`), an idle
/// archive parks longer (`max_idle_park_ns`), requests over the network are received only if
/// `control_channel` is set, and `replication_channel` is `aeron:udp?endpoint=localhost:0`. The end of a
/// `with` block closes the archive. Thread-safe.
///
/// A driver with `threading_mode="INVOKER"` has no threads, so the archive runs it: on the archive's thread in
/// mode `SHARED`, in `do_work` in mode `INVOKER`. The mode `DEDICATED` is refused for such a driver.
///
#[doc = include_str!("../docs/archive_keywords.txt")]
/// Raises:
///     ConfigurationError: If a setting is not valid, or contradicts another setting.
///     ArchiveActiveError: If a live archive uses the directory or the archive id.
///     ArchiveDirectoryError: If the directory, the catalog or a recording cannot be used.
///     DriverTimeoutError: If no driver responds within the driver timeout.
///
/// Example:
///     ```python
///     with aeron.MediaDriver() as driver, aeron.Archive("recordings", driver) as server:
///         archive = aeron.connect_archive(aeron.connect(driver))
///     ```
#[pyclass(frozen, weakref, module = "aeron", name = "Archive")]
pub struct PyArchive {
    archive: OfProcess<Arc<SharedArchive>>,
    archive_id: i64,
    context: ArchiveContext,
    /// Keeps an embedded driver alive while its archive exists.
    _driver: Option<Py<PyMediaDriver>>,
}

/// The archive; `None` after the close.
struct SharedArchive(Mutex<Option<Archive>>);

impl SharedArchive {
    fn lock(&self) -> MutexGuard<'_, Option<Archive>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the archive. Call it without the GIL.
    fn close(&self) {
        let archive = self.lock().take();
        if let Some(mut archive) = archive {
            archive.close();
        }
    }
}

impl Closable for SharedArchive {
    fn close_at_exit(&self) {
        self.close();
    }
}

/// Returns the settings of an embedded archive in an empty environment.
fn embedded_defaults() -> ArchiveContext {
    ArchiveContext {
        control_channel_enabled: false,
        threading_mode: ArchiveThreadingMode::Shared,
        max_idle_park_ns: DEFAULT_MAX_IDLE_PARK_NS,
        replication_channel: DEFAULT_REPLICATION_CHANNEL.to_owned(),
        ..ArchiveContext::default()
    }
}

/// Returns all settings of an archive, with their defaults if no property is set.
#[pyfunction]
#[pyo3(name = "_archive_settings")]
pub fn archive_settings(py: Python<'_>) -> PyResult<Vec<settings::SettingRow>> {
    settings::rows(py, ARCHIVE_SETTINGS, &embedded_defaults())
}

/// Returns the defaults of an embedded archive, changed by environment variables. The caller calls
/// [`complete_control_channel`] next, or after the keywords.
fn embedded_context() -> PyResult<ArchiveContext> {
    let mut context = embedded_defaults();
    context
        .apply(&Sources::environment())
        .map_err(|error| raise("ConfigurationError", error.to_string()))?;
    Ok(context)
}

/// Sets `control_channel_enabled`, unless a keyword or the environment has set it. Requests over the network need a
/// control channel, and its default is empty.
fn complete_control_channel(context: &mut ArchiveContext, is_given: bool) {
    if !is_given && std::env::var_os(CONTROL_CHANNEL_ENABLED_VARIABLE).is_none() {
        context.control_channel_enabled = !context.control_channel.is_empty();
    }
}

/// Returns the settings that are keywords.
fn keywords() -> impl Iterator<Item = &'static Setting<ArchiveContext>> {
    ARCHIVE_SETTINGS
        .iter()
        .filter(|setting| !ARGUMENTS.contains(&setting.name))
}

/// Stores a keyword argument.
fn set(context: &mut ArchiveContext, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if name == "max_idle_park_ns" {
        context.max_idle_park_ns = argument::max_idle_park_ns(value)?;
        return Ok(());
    }
    if name == "authenticator" {
        if !value.is_none() {
            context.authenticate = Some(authenticate_function(value)?);
        }
        return Ok(());
    }
    let setting = keywords().find(|setting| setting.name == name);
    let setting = setting.ok_or_else(|| {
        let reason = format!("Archive has no setting {name}; Archive.settings() lists all");
        raise("ArgumentTypeError", reason)
    })?;
    settings::store(setting, context, value)
}

fn launch(context: ArchiveContext) -> Result<Archive, ArchiveStartError> {
    match context.threading_mode {
        ArchiveThreadingMode::Invoker => Archive::launch_with_main_loop(context, open_objects),
        _ => Archive::launch(context, open_objects),
    }
}

fn dict_of<'py>(py: Python<'py>, context: &ArchiveContext) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    settings::fill(&dict, keywords(), context)?;
    dict.set_item("max_idle_park_ns", context.max_idle_park_ns)?;
    Ok(dict)
}

/// Returns the driver if it has no threads. Such a driver must be run while a starting archive waits for it.
fn driver_to_run(
    driver: Option<&Bound<'_, PyMediaDriver>>,
) -> PyResult<Option<Arc<driver::SharedDriver>>> {
    match driver {
        Some(driver) if driver.get().context().threading_mode == ThreadingMode::Invoker => {
            Ok(Some(Arc::clone(driver.get().shared()?)))
        }
        _ => Ok(None),
    }
}

with_block!(PyArchive);

#[pymethods]
impl PyArchive {
    #[new]
    #[pyo3(signature = (directory, driver = None, **settings))]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = argument::directory)] directory: PathBuf,
        #[pyo3(from_py_with = argument::driver)] driver: Option<DriverName>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut context = embedded_context()?;
        context.archive_dir = directory;
        let driver = match driver {
            None => None,
            Some(DriverName::Directory(directory)) => {
                context.aeron_dir = directory;
                None
            }
            Some(DriverName::Embedded(driver)) => {
                context
                    .aeron_dir
                    .clone_from(&driver.bind(py).get().context().dir);
                Some(driver)
            }
        };
        let run = driver_to_run(driver.as_ref().map(|driver| driver.bind(py)))?;
        let mut is_control_given = false;
        for (name, value) in settings.into_iter().flatten() {
            let name = name.cast::<PyString>()?.to_str()?.to_owned();
            set(&mut context, &name, &value)?;
            is_control_given |= name == CONTROL_CHANNEL_ENABLED;
        }
        complete_control_channel(&mut context, is_control_given);
        let interval = match run {
            Some(_) => DRIVER_INTERVAL,
            None => SIGNAL_INTERVAL,
        };
        context.driver_invoker = run
            .clone()
            .map(|driver| InvokedDriver::new(move || driver.do_work().unwrap_or_default()));
        let work = || {
            if let Some(driver) = &run {
                driver.do_work();
            }
        };
        let to_launch = context.clone();
        // If an archive was killed in this directory, the start may wait for up to ten seconds.
        let launching = move || launch(to_launch);
        let archive = interruptible_with(py, "aeron-archive-launch", launching, interval, work)?
            .map_err(|error| from_start(&error))?;
        let archive_id = archive.archive_id();
        let shared = Arc::new(SharedArchive(Mutex::new(Some(archive))));
        exit::add_archive(&shared);
        // The archive alone keeps the function, until its close.
        context.authenticate = None;
        Ok(Self {
            archive: OfProcess::new(shared),
            archive_id,
            context,
            _driver: driver,
        })
    }

    /// Returns all settings with their defaults in this process, which depend on its environment variables.
    ///
    /// `control_channel_enabled` is `False` if no variable sets it or `control_channel`. If the constructor gets a
    /// `control_channel`, the default in the new archive is `True`.
    ///
    /// Returns:
    ///     A dictionary from names to values.
    ///
    /// Raises:
    ///     ConfigurationError: If a variable of the environment is not valid.
    #[staticmethod]
    fn settings(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let mut context = embedded_context()?;
        complete_control_channel(&mut context, false);
        dict_of(py, &context)
    }

    /// The settings of this archive: a dictionary from names to values.
    #[getter]
    fn configuration<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        dict_of(py, &self.context)
    }

    /// Id of the archive among the archives of its driver.
    #[getter]
    fn archive_id(&self) -> i64 {
        self.archive_id
    }

    /// Directory of the recordings.
    #[getter]
    fn directory(&self) -> &Path {
        &self.context.archive_dir
    }

    /// `DEDICATED`, `SHARED` or `INVOKER`.
    #[getter]
    fn threading_mode(&self) -> &'static str {
        self.context.threading_mode.name()
    }

    /// Runs one duty cycle of an archive in mode `INVOKER`. Call it often, from one thread at a time.
    ///
    /// Returns:
    ///     The amount of work; 0 if there was no work.
    ///
    /// Raises:
    ///     ReentrantCallError: If another thread uses the archive at the same time: it runs the duty cycle, reads
    ///         `is_terminated` or `is_closed`, or closes the archive.
    fn do_work(&self, py: Python<'_>) -> PyResult<usize> {
        let shared = self.archive.get()?;
        let done = py.detach(|| match shared.0.try_lock() {
            Ok(mut archive) => Some(archive.as_mut().map_or(0, Archive::do_work)),
            Err(TryLockError::Poisoned(poisoned)) => {
                Some(poisoned.into_inner().as_mut().map_or(0, Archive::do_work))
            }
            Err(TryLockError::WouldBlock) => None,
        });
        done.ok_or_else(|| raise("ReentrantCallError", "another thread uses this archive"))
    }

    /// Whether the archive ended because its driver ended, or because the program closed the
    /// archive.
    ///
    /// If the driver ended, close the archive.
    #[getter]
    fn is_terminated(&self, py: Python<'_>) -> PyResult<bool> {
        let shared = self.archive.get()?;
        Ok(py.detach(|| shared.lock().as_ref().is_none_or(Archive::is_terminated)))
    }

    /// Whether the archive was closed.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> PyResult<bool> {
        let shared = self.archive.get()?;
        Ok(py.detach(|| shared.lock().is_none()))
    }

    /// Ends all recordings and replays, and releases the directory. Idempotent.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let shared = self.archive.get()?;
        py.detach(|| shared.close());
        Ok(())
    }

    fn __fspath__(&self) -> String {
        self.context.archive_dir.display().to_string()
    }

    fn __repr__(&self) -> String {
        format!(
            "<Archive {} {} in {}>",
            self.archive_id,
            self.context.threading_mode.name(),
            self.context.archive_dir.display()
        )
    }
}

impl Drop for PyArchive {
    fn drop(&mut self) {
        if let Ok(shared) = self.archive.get() {
            Python::attach(|py| py.detach(|| shared.close()));
        }
    }
}
