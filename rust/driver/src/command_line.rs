//! The `aeronmd` command: runs a driver in the foreground.

use std::fmt::Display;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use aeron_agent::known::{self, Program};
use aeron_agent::logging::{LogLevel, LogPrinter, LogSettings};
use aeron_agent::version::{COMMIT, TEXT as VERSION};
use aeron_agent::{
    ReloadRequests, ReloadThread, ServiceNotifier, Shutdown, ShutdownSignalBarrier, console, crash,
    unapplied,
};
use aeron_memory::date::format_date;
use aeron_memory::directory;

use crate::closing::describe_unconsumed;
use crate::config::{Context, SETTINGS, Setting, Sources, SourcesError};
use crate::diagnostics::TARGET;
use crate::media_driver::MediaDriver;

const FAILURE: i32 = 1;
/// Interval between two checks whether a drain is complete.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum of `--drain`, in seconds: a day.
const MAX_DRAIN_SECONDS: u64 = 86_400;

const USAGE: &str = "Usage: aeronmd [-v][-Dname=value] [--dir directory] [--drain seconds] [--strict] [properties-file ...]";

/// Error of a command with `--strict` after warnings.
pub const STRICT_ERROR: &str = "ERROR: --strict, and there are warnings";

/// Variables that Aeron's drivers do not have. A wrong text is an error: no other driver ignores it.
const OUR_VARIABLES: [&str; 2] = ["AERON_UDP_GSO", "AERON_UDP_GRO"];

const HELP: &str = "
Runs a media driver in the foreground until SIGINT, SIGTERM or a terminate command ends it.

Settings are AERON_* environment variables, then -Daeron.name=value, then properties files: later ones win, and --dir
wins over them all. The exit status is the signal's number (2, 15), 0 after a terminate command, 1 after a failure.
SIGHUP or `aeron reload` reads the properties files again, and applies the level of the log.

  -v               print the version
  -Dname=value     set a property, such as -Daeron.threading.mode=SHARED
  --dir directory  directory of the driver
  --drain seconds  at the end, wait up to so many seconds until live receivers have consumed all published messages; 0
                   by default. A second signal ends the wait
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
    let arguments: Vec<String> = arguments.into_iter().collect();
    match Command::parse(&arguments) {
        Ok(Command::Run(run)) => run_driver(&run, arguments),
        Ok(Command::Show(text)) => {
            console::print_line(text);
            0
        }
        Err(reason) => fail(reason),
    }
}

/// The meaning of the arguments.
enum Command {
    /// Run a driver with these settings.
    Run(RunDriver),
    /// Print a text and exit.
    Show(String),
}

/// The settings of the program.
struct RunDriver {
    sources: Sources,
    is_strict: bool,
    /// Maximum duration of the drain at the end.
    drain: Duration,
}

impl Command {
    /// Parses the arguments, and reads the properties files. The error is a text about the wrong argument or file.
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut sources = Sources::environment();
        let mut late = OverridingArguments::default();
        let (mut is_strict, mut drain) = (false, Duration::ZERO);
        let mut arguments = arguments.iter().cloned();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "-v" => return Ok(Self::Show(version_line())),
                "-h" | "--help" => return Ok(Self::Show(format!("{USAGE}\n{HELP}"))),
                "-D" => define(&mut sources, &arguments.next().unwrap_or_default())?,
                "--dir" => late.directory = Some(value_of("dir", arguments.next())?),
                "--drain" => drain = drain_of(&value_of("drain", arguments.next())?)?,
                "--strict" => is_strict = true,
                option if option.starts_with("-D") => define(&mut sources, &option[2..])?,
                option if option.starts_with('-') => {
                    return Err(format!(
                        "aeronmd: invalid option -- '{}'\n{USAGE}",
                        option.trim_start_matches('-')
                    ));
                }
                _ => late.files.push(argument),
            }
        }
        late.apply(&mut sources)
            .map_err(|error| format!("ERROR: {error}"))?;
        Ok(Self::Run(RunDriver {
            sources,
            is_strict,
            drain,
        }))
    }
}

fn value_of(option: &str, value: Option<String>) -> Result<String, String> {
    value.ok_or_else(|| format!("aeronmd: option requires an argument -- '{option}'\n{USAGE}"))
}

fn drain_of(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 0..=MAX_DRAIN_SECONDS) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!(
            "aeronmd: --drain {text} is not a number of seconds from 0 to {MAX_DRAIN_SECONDS}\n{USAGE}"
        )),
    }
}

/// Settings that override every `-D` argument, wherever they are on the command line.
#[derive(Default)]
struct OverridingArguments {
    files: Vec<String>,
    directory: Option<String>,
}

impl OverridingArguments {
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

fn run_driver(run: &RunDriver, arguments: Vec<String>) -> i32 {
    let sources = &run.sources;
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
    if run.is_strict && !warnings.is_empty() {
        return fail(STRICT_ERROR);
    }
    crash::install();
    let signals =
        ShutdownSignalBarrier::new().and_then(|signals| Ok((signals, ReloadRequests::new()?)));
    let (signals, reloads) = match signals {
        Ok(signals) => signals,
        Err(error) => return fail(format_args!("ERROR: signals: {error}")),
    };
    let log = match LogPrinter::of_program(sources, format_date) {
        Ok(log) => log,
        Err(reason) => return fail(format_args!("ERROR: {reason}")),
    };
    let given = context.clone();
    let mut driver = match MediaDriver::launch_with_main_loop(context) {
        Ok(driver) => driver,
        Err(error) => return fail(format_args!("ERROR: driver init {}", one_line(&error))),
    };
    log.follow(directory::log_level_file(&driver.context().dir));
    log::info!(target: "aeron.driver", "{}", started(driver.context()));
    driver.name_thread();
    let reloading = match serve_reloads(reloads, &driver, &log, given, arguments) {
        Ok(reloading) => reloading,
        Err(error) => return fail(format_args!("ERROR: thread aeron-reload: {error}")),
    };
    let mut service = ServiceNotifier::from_environment();
    // A panic of the main loop has been reported. The program then ends in order, like after a panic of another thread.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        driver.do_work();
        service.ready(&serving(&driver));
        while signals.received().is_none() && !driver.is_terminated() && !crash::has_panicked() {
            let work_count = driver.do_work();
            service.on_duty_cycle(|| driver.take_progress());
            driver.idle(work_count);
        }
        console::print_line("Shutting down driver...");
        drop(reloading);
        service.stopping("stopping");
        if !run.drain.is_zero() && !crash::has_panicked() {
            drain(&mut driver, &mut service, run.drain);
        }
    }));
    let closed = driver.close();
    for report in crash::take_reports() {
        driver.errors().note_panic(&report);
    }
    let status = match signals.received() {
        Some(Shutdown::Signal(number)) => number,
        _ => 0,
    };
    let reason = match crash::has_panicked() {
        true => "a panic".to_owned(),
        false => reason_of(status),
    };
    log::info!(target: "aeron.driver", "ended: {reason}");
    drop(log);
    match closed {
        Ok(()) if crash::has_panicked() => fail(crash::ERROR),
        Ok(()) => status,
        Err(error) => fail(format_args!("ERROR: driver close {error}")),
    }
}

/// Waits until live receivers have consumed all published messages, but at most for `limit`. A further signal ends the
/// wait.
fn drain(driver: &mut MediaDriver, service: &mut ServiceNotifier, limit: Duration) {
    let deadline = Instant::now() + limit;
    // The first signal has woken the other barrier.
    let signals = ShutdownSignalBarrier::new();
    service.status(&format!(
        "waiting up to {} s until receivers have consumed all messages",
        limit.as_secs()
    ));
    let is_interrupted = || matches!(&signals, Ok(signals) if signals.received().is_some());
    let mut drain = driver.begin_drain();
    while !driver.is_drained(&mut drain) && Instant::now() < deadline && !is_interrupted() {
        service.on_duty_cycle(|| driver.take_progress());
        std::thread::sleep(DRAIN_POLL_INTERVAL);
    }
    if let Some(lost) = describe_unconsumed(&driver.unconsumed(&drain)) {
        log::warn!(target: TARGET, "{lost}");
    }
}

/// Starts the thread that reloads the level of the log. `given` has the settings of the start.
fn serve_reloads(
    reloads: ReloadRequests,
    driver: &MediaDriver,
    log: &LogPrinter,
    given: Context,
    arguments: Vec<String>,
) -> io::Result<ReloadThread> {
    let (level, errors) = (log.level(), driver.errors().clone());
    let file = directory::reload_file(&driver.context().dir);
    reloads.serve(file, serving(driver), move || {
        let reloaded = reload(&arguments, &given, &level);
        match &reloaded {
            Ok(line) => log::info!(target: TARGET, "reloaded: {line}"),
            Err(reason) => errors.note(&format!("not reloaded, nothing has changed: {reason}\n")),
        }
        reloaded
    })
}

/// Reads the settings again and applies the level of the log. Returns a line for the operator.
fn reload(arguments: &[String], given: &Context, level: &LogLevel) -> Result<String, String> {
    let Command::Run(run) = Command::parse(arguments)? else {
        unreachable!("the program runs a driver");
    };
    let new_level = LogSettings::level_of(&run.sources)?;
    let mut context = Context::default();
    // A warning of the start would only come again.
    context.apply(&run.sources);
    level.set(new_level);
    let is_changed = |setting: &&Setting<Context>| setting.get(&context) != setting.get(given);
    let changed = SETTINGS.iter().filter(is_changed);
    let changed: Vec<_> = changed.map(|setting| setting.name).collect();
    let level = new_level.as_str().to_lowercase();
    Ok(format!("log level {level}{}", unapplied(&changed)))
}

/// Returns the state of a running driver, for the service manager.
fn serving(driver: &MediaDriver) -> String {
    format!("serving clients in {}", driver.context().dir.display())
}

/// Returns the first line of a driver's log.
pub fn started(context: &Context) -> String {
    let defaults = Context::default();
    let is_changed = |setting: &&Setting<Context>| setting.get(context) != setting.get(&defaults);
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

/// Joins the lines of an error into one line, for tools that read stderr line by line.
fn one_line(error: &impl Display) -> String {
    error.to_string().replace('\n', ": ")
}

fn fail(reason: impl Display) -> i32 {
    console::warn(reason);
    FAILURE
}
