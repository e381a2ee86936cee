//! The `aeronarchive` command: an archive in the foreground, which uses a running driver or starts a driver.

use aeron_agent::ShutdownSignalBarrier;
use aeron_agent::console;
use aeron_agent::sources::Sources;
use aeron_archive::server::command_line::{Command, RunArchive, fail, one_line, run_archive};
use aeron_driver::{Context, MediaDriver, StartError};
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
    match ShutdownSignalBarrier::new() {
        Ok(signals) => serve(&run, &signals),
        Err(error) => fail(format_args!("ERROR: signals: {error}")),
    }
}

/// Runs the archive. If the archive has its own driver, the driver starts before the archive and ends after it.
fn serve(run: &RunArchive, signals: &ShutdownSignalBarrier) -> i32 {
    if !run.is_with_driver {
        return run_archive(&run.sources, open_objects, signals, || false);
    }
    let mut driver = match launch_driver(&run.sources) {
        Ok(driver) => driver,
        Err(error) => return fail(format_args!("ERROR: driver init {}", one_line(&error))),
    };
    let status = run_archive(&run.sources, open_objects, signals, || {
        driver.is_terminated()
    });
    match driver.close() {
        Ok(()) => status,
        Err(error) => fail(format_args!("ERROR: driver close {error}")),
    }
}

fn launch_driver(sources: &Sources) -> Result<MediaDriver, StartError> {
    let mut context = Context::default();
    for warning in context.apply(sources) {
        console::warn(warning);
    }
    MediaDriver::launch(context)
}
