//! The `aeronmd` command: runs a driver in the foreground.

use std::fmt::Display;

use aeron_agent::known::{self, Program};
use aeron_agent::logging::LogPrinter;
use aeron_agent::version::{COMMIT, TEXT as VERSION};
use aeron_agent::{Shutdown, ShutdownSignalBarrier, console};
use aeron_memory::date::format_date;
use aeron_memory::directory;

use crate::config::{Context, SETTINGS, Setting, Sources, SourcesError};
use crate::media_driver::MediaDriver;

const FAILURE: i32 = 1;

const USAGE: &str =
    "Usage: aeronmd [-v][-Dname=value] [--dir directory] [--strict] [properties-file ...]";

/// Error of a command with `--strict` after warnings.
pub const STRICT_ERROR: &str = "ERROR: --strict, and there are warnings";

/// Variables that Aeron's drivers do not have. A wrong text is an error: no other driver ignores it.
const OUR_VARIABLES: [&str; 2] = ["AERON_UDP_GSO", "AERON_UDP_GRO"];

const HELP: &str = "
Runs a media driver in the foreground until SIGINT, SIGTERM or a terminate command ends it.

Settings are AERON_* environment variables, then -Daeron.name=value, then properties files: later ones win, and --dir
wins over them all. The exit status is the signal's number (2, 15), 0 after a terminate command, 1 after a failure.

  -v               print the version
  -Dname=value     set a property, such as -Daeron.threading.mode=SHARED
  --dir directory  directory of the driver
  --strict         end with status 1 if there is a warning about a setting
  -h, --help       print this text";

/// Runs a driver until a signal or a terminate command ends it. Returns the exit status of the process.
///
/// Settings come first from the environment, then from `-Dname=value` arguments, then from properties files. All other
/// arguments are names of properties files. Later settings override earlier settings. The directory of `--dir`
/// overrides all other settings of the directory.
///
/// The exit status is the number of the signal (2 or 15), or 0 after a terminate command, `-v` or `--help`. It is 1
/// after a failure; stderr then shows the reason.
pub fn run(arguments: impl IntoIterator<Item = String>) -> i32 {
    let mut sources = Sources::environment();
    let mut late = OverridingArguments::default();
    let mut is_strict = false;
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let taken = match argument.as_str() {
            "-v" => return show(&version_line()),
            "-h" | "--help" => return show(&format!("{USAGE}\n{HELP}")),
            "-D" => define(&mut sources, &arguments.next().unwrap_or_default()),
            "--dir" => late.name_directory(arguments.next()),
            "--strict" => {
                is_strict = true;
                Ok(())
            }
            option if option.starts_with("-D") => define(&mut sources, &option[2..]),
            option if option.starts_with('-') => Err(format!(
                "aeronmd: invalid option -- '{}'\n{USAGE}",
                option.trim_start_matches('-')
            )),
            _ => {
                late.files.push(argument);
                Ok(())
            }
        };
        if let Err(reason) = taken {
            return fail(reason);
        }
    }
    match late.apply(&mut sources) {
        Ok(()) => run_driver(&sources, is_strict),
        Err(error) => fail(format_args!("ERROR: {error}")),
    }
}

/// Settings that override every `-D` argument, wherever they are on the command line.
#[derive(Default)]
struct OverridingArguments {
    files: Vec<String>,
    directory: Option<String>,
}

impl OverridingArguments {
    fn name_directory(&mut self, directory: Option<String>) -> Result<(), String> {
        if directory.is_none() {
            return Err(format!(
                "aeronmd: option requires an argument -- 'dir'\n{USAGE}"
            ));
        }
        self.directory = directory;
        Ok(())
    }

    fn apply(self, sources: &mut Sources) -> Result<(), SourcesError> {
        for file in self.files {
            sources.load_file(&file)?;
        }
        match self.directory {
            Some(directory) => sources.define(&format!("aeron.dir={directory}")),
            None => Ok(()),
        }
    }
}

fn define(sources: &mut Sources, definition: &str) -> Result<(), String> {
    sources
        .define(definition)
        .map_err(|error| error.to_string())
}

fn run_driver(sources: &Sources, is_strict: bool) -> i32 {
    if let Some(reason) = refused_setting(sources) {
        return fail(format_args!("ERROR: {reason}"));
    }
    let mut context = Context::default();
    let mut warnings = context.apply(sources);
    warnings.extend(known::without_effect(
        sources,
        Program::Driver,
        Context::has_variable,
    ));
    warnings.extend(known::unknown(sources, Context::has_variable));
    for warning in &warnings {
        console::warn(warning);
    }
    if is_strict && !warnings.is_empty() {
        return fail(STRICT_ERROR);
    }
    let signals = match ShutdownSignalBarrier::new() {
        Ok(signals) => signals,
        Err(error) => return fail(format_args!("ERROR: signals: {error}")),
    };
    let log = match LogPrinter::of_program(sources, format_date) {
        Ok(log) => log,
        Err(reason) => return fail(format_args!("ERROR: {reason}")),
    };
    let mut driver = match MediaDriver::launch_with_main_loop(context) {
        Ok(driver) => driver,
        Err(error) => return fail(format_args!("ERROR: driver init {}", one_line(&error))),
    };
    log.follow(directory::log_level_file(&driver.context().dir));
    log::info!(target: "aeron.driver", "{}", started(driver.context()));
    driver.name_thread();
    while signals.received().is_none() && !driver.is_terminated() {
        let work_count = driver.do_work();
        driver.idle(work_count);
    }
    console::print_line("Shutting down driver...");
    let closed = driver.close();
    let status = match signals.received() {
        Some(Shutdown::Signal(number)) => number,
        _ => 0,
    };
    log::info!(target: "aeron.driver", "ended: {}", reason_of(status));
    drop(log);
    match closed {
        Ok(()) => status,
        Err(error) => fail(format_args!("ERROR: driver close {error}")),
    }
}

/// Returns the first line of a driver's log.
pub fn started(context: &Context) -> String {
    let defaults = Context::default();
    let is_changed = |setting: &&Setting| setting.get(context) != setting.get(&defaults);
    format!(
        "started: version {VERSION}, commit {COMMIT}, directory {}, pid {}, threading mode {}, settings that are not defaults: {}",
        context.dir.display(),
        std::process::id(),
        context.threading_mode.name(),
        SETTINGS.iter().filter(is_changed).count()
    )
}

/// Returns why a program ended with an exit status.
fn reason_of(status: i32) -> String {
    match status {
        0 => "a terminate command".to_owned(),
        _ => format!("signal {status}"),
    }
}

/// Returns why a text of a setting is refused; `None` if every text is accepted, possibly with a warning.
pub fn refused_setting(sources: &Sources) -> Option<String> {
    Context::misread(sources, |name| OUR_VARIABLES.contains(&name))
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

fn show(text: &str) -> i32 {
    console::print_line(text);
    0
}

/// Joins the lines of an error into one line, for tools that read stderr line by line.
fn one_line(error: &impl Display) -> String {
    error.to_string().replace('\n', ": ")
}

fn fail(reason: impl Display) -> i32 {
    console::warn(reason);
    FAILURE
}
