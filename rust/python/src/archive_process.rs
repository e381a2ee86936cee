//! The `aeronarchive` command: an archive in the foreground, which uses a running driver or starts a driver.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aeron_agent::known::{self, Program};
use aeron_agent::logging::LogPrinter;
use aeron_agent::sources::Sources;
use aeron_agent::{ReloadRequests, ShutdownSignalBarrier, console, crash};
use aeron_archive::server::command_line::{
    ArchiveProgram, Command, OwnDriver, RunArchive, fail, one_line, run_archive,
};
use aeron_archive::server::context::{ArchiveContext, InvokedDriver};
use aeron_driver::command_line::{STRICT_ERROR, refused_setting, started};
use aeron_driver::{Context, MediaDriver, StartError, ThreadingMode};
use aeron_memory::date::format_date;
use aeron_memory::directory::log_level_file;
use aeron_objects::open_objects;
use pyo3::prelude::*;

use crate::argument;
use crate::program;

/// Runs an archive in the foreground, as the command `aeronarchive` does, until a signal ends the archive.
///
/// Args:
///     arguments: Arguments after the program's name. `None` takes them from `sys.argv`.
///
/// Returns:
///     The exit status.
#[pyfunction]
#[pyo3(signature = (arguments = None))]
pub fn aeronarchive_main(
    py: Python<'_>,
    #[pyo3(from_py_with = argument::arguments)] arguments: Option<Vec<String>>,
) -> PyResult<i32> {
    let arguments = program::begin(py, arguments)?;
    Ok(py.detach(|| run(arguments)))
}

fn run(arguments: Vec<String>) -> i32 {
    let run = match Command::parse(arguments) {
        Ok(Command::Run(run)) => run,
        Ok(Command::Show(text)) => {
            console::print_line(text);
            return 0;
        }
        Err(reason) => return fail(reason),
    };
    crash::install();
    let signals =
        ShutdownSignalBarrier::new().and_then(|signals| Ok((signals, ReloadRequests::new()?)));
    match signals {
        Ok((signals, reloads)) => serve(&run, &signals, reloads),
        Err(error) => fail(format_args!("ERROR: signals: {error}")),
    }
}

/// Runs the archive. If the archive has its own driver, the driver starts before the archive and ends after it.
fn serve(run: &RunArchive, signals: &ShutdownSignalBarrier, reloads: ReloadRequests) -> i32 {
    let mut context = run.is_with_driver.then(Context::default);
    if let (true, Some(reason)) = (run.is_with_driver, refused_setting(&run.sources)) {
        return fail(format_args!("ERROR: {reason}"));
    }
    let warnings = warnings(&run.sources, context.as_mut());
    for warning in &warnings {
        console::warn(warning);
    }
    if run.is_strict && !warnings.is_empty() {
        return fail(STRICT_ERROR);
    }
    let log = match LogPrinter::of_program(&run.sources, format_date) {
        Ok(log) => log,
        Err(reason) => return fail(format_args!("ERROR: {reason}")),
    };
    let program = ArchiveProgram {
        run,
        log: &log,
        signals,
        reloads,
        driver: None,
    };
    let Some(context) = context else {
        return run_archive(program, open_objects);
    };
    let driver = match LaunchedDriver::launch(context) {
        Ok(driver) => driver,
        Err(error) => return fail(format_args!("ERROR: driver init {}", one_line(&error))),
    };
    log.follow(log_level_file(&driver.lock().context().dir));
    log::info!(target: "aeron.driver", "{}", started(driver.lock().context()));
    let program = ArchiveProgram {
        driver: Some(&driver),
        ..program
    };
    let status = run_archive(program, open_objects);
    match driver.lock().close() {
        Ok(()) => status,
        Err(error) => fail(format_args!("ERROR: driver close {error}")),
    }
}

/// Applies the settings of the driver in this process, if there is one. Returns the warnings about all settings.
fn warnings(sources: &Sources, driver: Option<&mut Context>) -> Vec<String> {
    let is_with_driver = driver.is_some();
    let has_effect = |variable: &str| {
        ArchiveContext::has_variable(variable)
            || (is_with_driver && Context::has_variable(variable))
    };
    let mut warnings = driver.map_or_else(Vec::new, |driver| driver.apply(sources));
    if is_with_driver {
        warnings.extend(known::without_effect(sources, Program::Driver, has_effect));
    }
    warnings.extend(known::without_effect(sources, Program::Archive, has_effect));
    warnings.extend(known::unknown(sources, has_effect));
    warnings
}

/// The driver of this process. In mode INVOKER, the archive's thread runs it.
struct LaunchedDriver {
    driver: Arc<Mutex<MediaDriver>>,
    is_invoked: bool,
}

impl LaunchedDriver {
    fn launch(context: Context) -> Result<Self, StartError> {
        let is_invoked = context.threading_mode == ThreadingMode::Invoker;
        let driver = match is_invoked {
            true => MediaDriver::launch_with_main_loop(context),
            false => MediaDriver::launch(context),
        }?;
        Ok(Self {
            driver: Arc::new(Mutex::new(driver)),
            is_invoked,
        })
    }

    fn lock(&self) -> MutexGuard<'_, MediaDriver> {
        lock(&self.driver)
    }
}

impl OwnDriver for LaunchedDriver {
    fn invoker(&self) -> Option<InvokedDriver> {
        let driver = Arc::clone(&self.driver);
        self.is_invoked
            .then(|| InvokedDriver::new(move || lock(&driver).do_work()))
    }

    fn is_terminated(&self) -> bool {
        self.lock().is_terminated()
    }

    fn take_progress(&self) -> bool {
        self.lock().take_progress()
    }
}

fn lock(driver: &Mutex<MediaDriver>) -> MutexGuard<'_, MediaDriver> {
    driver.lock().unwrap_or_else(PoisonError::into_inner)
}
