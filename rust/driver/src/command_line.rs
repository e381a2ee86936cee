//! The `aeronmd` command: a driver in the foreground.

use std::fmt::Display;

use aeron_agent::version::{COMMIT, TEXT as VERSION};
use aeron_agent::{Shutdown, ShutdownSignalBarrier};

use crate::config::{Context, Sources};
use crate::media_driver::MediaDriver;

const FAILURE: i32 = 1;

/// Runs a driver until a signal or a terminate command ends it; answers the exit status of the process.
///
/// Settings come from the environment, then from `-Dname=value` arguments, then from properties files, which are the other
/// arguments. The status is the number of the signal (2 or 15), 0 after a terminate command or `-v`, 1 after a failure, which
/// stderr explains.
pub fn run(arguments: impl IntoIterator<Item = String>) -> i32 {
    let mut sources = Sources::environment();
    let mut files = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "-v" {
            println!("{}", version_line());
            return 0;
        }
        if let Some(definition) = argument.strip_prefix("-D") {
            let definition = if definition.is_empty() {
                arguments.next().unwrap_or_default()
            } else {
                definition.to_owned()
            };
            if let Err(error) = sources.define(&definition) {
                return fail(error);
            }
        } else if argument.starts_with('-') {
            eprintln!(
                "aeronmd: invalid option -- '{}'",
                argument.trim_start_matches('-')
            );
            return fail("Usage: aeronmd [-v][-Dname=value] [properties-file ...]");
        } else {
            files.push(argument);
        }
    }
    for file in files {
        if let Err(error) = sources.load_file(&file) {
            return fail(format_args!("ERROR: {error}"));
        }
    }
    run_driver(&sources)
}

fn run_driver(sources: &Sources) -> i32 {
    let mut context = Context::default();
    for warning in context.apply(sources) {
        eprintln!("{warning}");
    }
    let signals = match ShutdownSignalBarrier::new() {
        Ok(signals) => signals,
        Err(error) => return fail(format_args!("ERROR: signals: {error}")),
    };
    let mut driver = match MediaDriver::launch_with_main_loop(context) {
        Ok(driver) => driver,
        Err(error) => return fail(format_args!("ERROR: driver init {error}")),
    };
    while signals.received().is_none() && !driver.is_terminated() {
        let work_count = driver.do_work();
        driver.idle(work_count);
    }
    println!("Shutting down driver...");
    if let Err(error) = driver.close() {
        return fail(format_args!("ERROR: driver close {error}"));
    }
    match signals.received() {
        Some(Shutdown::Signal(number)) => number,
        _ => 0,
    }
}

fn version_line() -> String {
    let mut numbers = VERSION.split('.');
    let mut number = || numbers.next().unwrap_or_default();
    format!(
        "aeronmd <aeron version={VERSION} commit={COMMIT}> major {} minor {} patch {} git {COMMIT}",
        number(),
        number(),
        number()
    )
}

fn fail(reason: impl Display) -> i32 {
    eprintln!("{reason}");
    FAILURE
}
