//! [`PyMediaDriver`]: a media driver inside this process, and the `aeronmd` command.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use aeron_agent::{AgentTurns, console};
use aeron_driver::closing::describe_unconsumed;
use aeron_driver::config::{SETTINGS, Sources};
use aeron_driver::{Context, MediaDriver, StartError, ThreadingMode, command_line};
use aeron_memory::directory::default_directory;
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::argument;
use crate::errors::raise;
use crate::exit::{self, Closable};
use crate::fork::OfProcess;
use crate::program;
use crate::settings;
use crate::waiting::{DEFAULT_MAX_IDLE_PARK_NS, WaitPolicy, interruptible};
use crate::with_block::with_block;

/// Interval between two checks whether a drain is complete.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum duration of the drain of a driver that the program did not close. It is shorter than the 2 s for which the
/// end of the interpreter waits for all objects.
const EXIT_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A media driver inside this process. Thread-safe.
///
/// Every setting of Aeron's driver is a keyword. The keyword of a time ends in its unit, and lengths are in
/// bytes. If a setting is not passed, its environment variable is used, otherwise its default. The
/// documentation page of all settings names the variables. `MediaDriver.settings()` returns the defaults of
/// this process, which depend on its environment variables.
///
/// Some defaults differ from those of `aeronmd`: all agents share one thread (`threading_mode="SHARED"`),
/// there is room for 16,384 counters (`counters_values_buffer_length`), and an idle driver parks longer
/// (`max_idle_park_ns`). The directory is a new one, which is removed when the driver closes. If the
/// process is killed, the next embedded driver removes the directory.
///
/// A client that `aeron.connect(driver)` creates runs the driver's sender and receiver itself while the
/// client's polls find nothing. A client that `aeron.connect(driver.dir)` creates does not. The end of a
/// `with` block closes the driver.
///
#[doc = include_str!("docs/driver_keywords.txt")]
/// Raises:
///     ConfigurationError: If a setting is not valid, or contradicts another setting.
///     DriverActiveError: If a live driver owns the directory.
///     DriverError: If the directory cannot be used.
///
/// Example:
///     ```python
///     with aeron.MediaDriver(threading_mode="DEDICATED", mtu_length=8192) as driver:
///         print(driver.dir)
///     ```
#[pyclass(frozen, weakref, module = "aeron", name = "MediaDriver")]
pub struct PyMediaDriver {
    driver: OfProcess<Arc<SharedDriver>>,
    context: Context,
}

/// The driver, shared by its Python object, its clients and the close at exit.
pub struct SharedDriver {
    /// `None` after the close.
    driver: Mutex<Option<MediaDriver>>,
    network_turns: Option<AgentTurns>,
}

impl SharedDriver {
    fn lock(&self) -> MutexGuard<'_, Option<MediaDriver>> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns the driver, so that the caller can close it.
    fn take(&self) -> Option<MediaDriver> {
        self.lock().take()
    }

    /// Runs one duty cycle in mode INVOKER. Returns `None` if another thread has the lock.
    pub fn do_work(&self) -> Option<usize> {
        match self.driver.try_lock() {
            Ok(mut driver) => Some(driver.as_mut().map_or(0, MediaDriver::do_work)),
            Err(TryLockError::Poisoned(poisoned)) => Some(
                poisoned
                    .into_inner()
                    .as_mut()
                    .map_or(0, MediaDriver::do_work),
            ),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Closable for SharedDriver {
    fn close_at_exit(&self) {
        let Some(mut driver) = self.take() else {
            return;
        };
        let deadline = Instant::now() + EXIT_DRAIN_TIMEOUT;
        let mut drain = driver.begin_drain();
        while !driver.is_drained(&mut drain) && Instant::now() < deadline {
            std::thread::sleep(DRAIN_POLL_INTERVAL);
        }
        if let Some(lost) = describe_unconsumed(drain.unconsumed()) {
            console::warn(format_args!("WARNING: {lost}"));
        }
        // The result is ignored: if the directory cannot be removed, no caller could handle the error at exit.
        let _ = driver.close();
    }
}

impl PyMediaDriver {
    pub fn context(&self) -> &Context {
        &self.context
    }

    pub fn shared(&self) -> PyResult<&Arc<SharedDriver>> {
        self.driver.get()
    }

    /// Returns the turns of the driver's network agents, if the driver has them and belongs to this process.
    pub fn network_turns(&self) -> Option<AgentTurns> {
        self.driver.get().ok()?.network_turns.clone()
    }
}

/// Launches an embedded driver for this process. The settings are the defaults, changed by environment variables.
pub fn launch_embedded() -> Result<MediaDriver, StartError> {
    let mut embedded = Embedded::new();
    embedded.context.apply(&Sources::environment());
    embedded.launch()
}

/// Returns the settings of an embedded driver in an empty environment.
fn embedded_defaults() -> Context {
    Embedded::new().context
}

/// Returns all settings of a driver that have an environment variable, with their defaults if no variable is set.
#[pyfunction]
#[pyo3(name = "_driver_settings")]
pub fn driver_settings(py: Python<'_>) -> PyResult<Vec<settings::SettingRow>> {
    settings::rows(py, SETTINGS, &embedded_defaults())
}

/// Length of the counters' values of an embedded driver, in bytes: room for 16,384 counters. A stream needs about four
/// counters.
///
/// With their metadata, the counters need 10 MiB. Containers have 64 MiB of shared memory by default, and the usual 8
/// MiB of values would need 40 MiB.
const EMBEDDED_COUNTERS_VALUES_LENGTH: usize = 2 * 1024 * 1024;

/// The settings of an embedded driver, before it is launched.
struct Embedded {
    context: Context,
    /// A directory with a generated name. It is used if the program passes no directory.
    private_dir: PathBuf,
}

impl Embedded {
    fn new() -> Self {
        let mut context = Context {
            threading_mode: ThreadingMode::Shared,
            counters_values_buffer_length: EMBEDDED_COUNTERS_VALUES_LENGTH,
            ..Context::default()
        };
        let private_dir = fresh_directory(&context.dir);
        context.dir_delete_on_shutdown = true;
        context.max_idle_park_ns = DEFAULT_MAX_IDLE_PARK_NS;
        context.dir.clone_from(&private_dir);
        Self {
            context,
            private_dir,
        }
    }

    /// Returns the defaults, changed by environment variables.
    fn from_environment(py: Python<'_>) -> PyResult<Self> {
        let mut embedded = Self::new();
        let sources = Sources::environment();
        if let Some(reason) = Context::misread(&sources, |_| true) {
            return Err(raise("ConfigurationError", reason));
        }
        let warnings = py.import("warnings")?;
        for warning in embedded.context.apply(&sources) {
            warnings.call_method1("warn", (warning,))?;
        }
        Ok(embedded)
    }

    /// Starts the driver. If the directory has a generated name, first removes the directories of killed embedded
    /// drivers.
    fn launch(self) -> Result<MediaDriver, StartError> {
        let mut context = self.context;
        context.is_dir_private = context.dir == self.private_dir;
        if context.is_dir_private {
            aeron_driver::remove_abandoned(&default_directory());
        }
        match context.threading_mode {
            ThreadingMode::Invoker => MediaDriver::launch_with_main_loop(context),
            _ => MediaDriver::launch(context),
        }
    }
}

/// Returns the path of a directory that no other driver uses. A part of the name is random, because containers that
/// share a file system may have the same process ids.
fn fresh_directory(default: &Path) -> PathBuf {
    let random = RandomState::new().hash_one(SystemTime::now()) as u32;
    let mut name = default.as_os_str().to_owned();
    name.push(format!("-{}-{random:08x}", std::process::id()));
    name.into()
}

/// Stores a keyword argument.
fn set(context: &mut Context, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if name == "max_idle_park_ns" {
        context.max_idle_park_ns = argument::max_idle_park_ns(value)?;
        return Ok(());
    }
    if name == "incoming_loss" {
        return set_incoming_loss(context, value);
    }
    let setting = Context::setting(name).ok_or_else(|| {
        raise(
            "ArgumentTypeError",
            format!("MediaDriver has no setting {name:?}; MediaDriver.settings() lists all"),
        )
    })?;
    settings::store(setting, context, value)
}

/// Stores the settings of the argument `incoming_loss`: one loss of `aeron.loss`, an iterable of losses, or `None`.
fn set_incoming_loss(context: &mut Context, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let kind = "a loss, such as aeron.RandomLoss, an iterable of losses, or None";
    let losses: Vec<Bound<'_, PyAny>> = if value.is_none() {
        Vec::new()
    } else if value.hasattr("interceptor")? {
        vec![value.clone()]
    } else {
        let items = value.try_iter();
        let items = items.map_err(|error| argument::named(error, value, "incoming_loss", kind))?;
        items.collect::<PyResult<_>>()?
    };
    if !losses
        .iter()
        .all(|loss| loss.hasattr("interceptor").unwrap_or(false))
    {
        return Err(argument::wrong_type(value, "incoming_loss", kind));
    }
    let mut names: Vec<String> = Vec::new();
    for loss in &losses {
        let name: String = loss.getattr("interceptor")?.extract()?;
        let kind = name.replace('-', "_");
        let setting = format!("udp_channel_transport_bindings_{kind}_args");
        set(context, &setting, &loss.call_method0("arguments")?)?;
        if names.contains(&name) {
            let reason = format!("incoming_loss takes each kind of loss once, not {name} twice");
            return Err(raise("InvalidArgumentError", reason));
        }
        names.push(name);
    }
    context.udp_channel_incoming_interceptors = names.join(",");
    Ok(())
}

fn start_error(error: &StartError) -> PyErr {
    match error {
        StartError::Configuration(_) => raise("ConfigurationError", error.to_string()),
        StartError::ActiveDriver(_) => raise("DriverActiveError", error.to_string()),
        StartError::DamagedCnc { .. }
        | StartError::ForeignCnc { .. }
        | StartError::ForeignEntry(_)
        | StartError::LinkedDirectory(_)
        | StartError::NameResolver(_)
        | StartError::Io { .. } => raise("DriverError", error.to_string()),
    }
}

with_block!(PyMediaDriver);

#[pymethods]
impl PyMediaDriver {
    #[new]
    #[pyo3(signature = (**settings))]
    fn new(py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut embedded = Embedded::from_environment(py)?;
        for (name, value) in settings.into_iter().flatten() {
            set(
                &mut embedded.context,
                name.cast::<pyo3::types::PyString>()?.to_str()?,
                &value,
            )?;
        }
        // If another driver may still use the directory, the launch waits for up to `driver_timeout_ms`. So it runs on
        // another thread, and a signal can end the wait.
        let driver = interruptible(py, "aeron-launch", move || embedded.launch())?
            .map_err(|error| start_error(&error))?;
        let context = driver.context().clone();
        let shared = Arc::new(SharedDriver {
            network_turns: driver.network_turns().cloned(),
            driver: Mutex::new(Some(driver)),
        });
        exit::add_driver(&shared);
        Ok(Self {
            driver: OfProcess::new(shared),
            context,
        })
    }

    /// Returns all settings with their defaults in this process, which depend on its environment variables.
    ///
    /// A variable with a value that is not valid has no effect. Such a value causes a `UserWarning`, except for a
    /// setting that is `True` or `False`.
    ///
    /// Returns:
    ///     A dictionary from names to values.
    #[staticmethod]
    fn settings(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        dict_of(py, &Embedded::from_environment(py)?.context)
    }

    /// The settings of this driver: a dictionary from names to values.
    #[getter]
    fn configuration<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.driver.get()?;
        dict_of(py, &self.context)
    }

    /// Reads the state of the driver, as `aeron.metrics.snapshot` does.
    ///
    /// Returns:
    ///     The state.
    ///
    /// Raises:
    ///     DriverTimeoutError: If the driver is closed.
    ///     OSError: If the loss report cannot be read.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let module = py.import("aeron.metrics")?;
        module.call_method1("snapshot", (self.dir()?,))
    }

    /// Directory of the driver.
    #[getter]
    fn dir(&self) -> PyResult<String> {
        self.driver.get()?;
        Ok(self.context.dir.display().to_string())
    }

    /// `DEDICATED`, `SHARED_NETWORK`, `SHARED` or `INVOKER`.
    #[getter]
    fn threading_mode(&self) -> &'static str {
        self.context.threading_mode.name()
    }

    /// Runs one duty cycle of a driver in mode `INVOKER`. Call it often, from one thread at a time.
    ///
    /// Returns:
    ///     The amount of work; 0 if there was no work.
    ///
    /// Raises:
    ///     ReentrantCallError: If another thread uses the driver at the same time: it runs the duty cycle, reads
    ///         `is_terminated` or `is_closed`, or closes the driver.
    fn do_work(&self) -> PyResult<usize> {
        self.driver
            .get()?
            .do_work()
            .ok_or_else(|| raise("ReentrantCallError", "another thread uses this driver"))
    }

    /// Whether the driver has accepted a termination command, or is closed.
    ///
    /// A termination command does not stop the driver: it runs until the program closes it.
    #[getter]
    fn is_terminated(&self, py: Python<'_>) -> PyResult<bool> {
        let driver = self.driver.get()?;
        Ok(py.detach(|| {
            driver
                .lock()
                .as_ref()
                .is_none_or(MediaDriver::is_terminated)
        }))
    }

    /// Whether the driver was closed.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> PyResult<bool> {
        let driver = self.driver.get()?;
        Ok(py.detach(|| driver.lock().is_none()))
    }

    /// Closes the driver. Clients detect the end because the driver's heartbeat ends. Idempotent.
    ///
    /// The driver first sends all messages that were published over UDP. Then it waits until each live receiver
    /// has reported that it consumed its stream to the end. The wait lasts at most for the linger time of the
    /// publications, and there is no wait without receivers. A `RuntimeWarning` names the streams that were not
    /// consumed. An interrupt (Ctrl-C) ends the wait, and the driver closes.
    ///
    /// Raises:
    ///     DriverError: If the directory cannot be removed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let shared = self.driver.get()?;
        let Some(mut driver) = py.detach(|| shared.take()) else {
            return Ok(());
        };
        let drained = drain(py, &mut driver);
        let closed = py.detach(|| driver.close());
        if let Some(lost) = drained? {
            py.import("warnings")?
                .call_method1("warn", (lost, py.get_type::<PyRuntimeWarning>()))?;
        }
        closed.map_err(|error| {
            raise(
                "DriverError",
                format!("failed to remove {}: {error}", self.context.dir.display()),
            )
        })
    }

    fn __fspath__(&self) -> PyResult<String> {
        self.dir()
    }

    fn __repr__(&self) -> String {
        format!(
            "<MediaDriver {} in {}>",
            self.context.threading_mode.name(),
            self.context.dir.display()
        )
    }
}

impl Drop for PyMediaDriver {
    fn drop(&mut self) {
        if let Ok(driver) = self.driver.get() {
            // The close waits for the agents' threads, so it releases the GIL.
            Python::attach(|py| py.detach(|| driver.close_at_exit()));
        }
    }
}

/// Waits until all data was sent and live receivers have consumed the data, or until the linger time is over. Returns
/// a text about unconsumed data.
fn drain(py: Python<'_>, driver: &mut MediaDriver) -> PyResult<Option<String>> {
    let mut drain = driver.begin_drain();
    let patience = WaitPolicy::new(None, DRAIN_POLL_INTERVAL.as_nanos() as u64)?;
    let is_over = || driver.is_drained(&mut drain).then_some(());
    patience.wait_without_gil(py, is_over)?;
    Ok(describe_unconsumed(drain.unconsumed()))
}

fn dict_of<'py>(py: Python<'py>, context: &Context) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    settings::fill(&dict, SETTINGS.iter(), context)?;
    dict.set_item("max_idle_park_ns", context.max_idle_park_ns)?;
    Ok(dict)
}

/// Returns the driver directories of this user that no live driver uses: path, bytes on disk, and whether the next
/// embedded driver removes the directory.
#[pyfunction]
#[pyo3(name = "_left_directories")]
pub fn left_directories(py: Python<'_>) -> Vec<(PathBuf, u64, bool)> {
    py.detach(|| {
        aeron_driver::left_directories(&default_directory())
            .into_iter()
            .map(|left| (left.path, left.bytes, left.is_removed_next))
            .collect()
    })
}

/// Runs a driver in the foreground, as the command `aeronmd` does.
///
/// The driver runs until a signal or a termination command ends it.
///
/// Args:
///     arguments: Arguments after the program's name. `None` takes them from `sys.argv`.
///
/// Returns:
///     The exit status.
#[pyfunction]
#[pyo3(signature = (arguments = None))]
pub fn aeronmd_main(
    py: Python<'_>,
    #[pyo3(from_py_with = argument::arguments)] arguments: Option<Vec<String>>,
) -> PyResult<i32> {
    let arguments = program::begin(py, arguments)?;
    Ok(py.detach(|| command_line::run(arguments)))
}
