//! The `aeronarchive` command: runs an archive in the foreground.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use aeron_agent::logging::{LevelFilter, LogLevel, LogPrinter, LogSettings};
use aeron_agent::setting::{Grammar, Value};
use aeron_agent::sources::{Sources, SourcesError};
use aeron_agent::version::{COMMIT, TEXT as VERSION};
use aeron_agent::{
    ReloadRequests, ServiceNotifier, Shutdown, ShutdownSignalBarrier, console, crash, unapplied,
};
use aeron_client::{Error, is_driver_active};

use super::context::{ARCHIVE_SETTINGS, ArchiveContext, InvokedDriver};
use super::{Archive, ArchiveReloads};
use crate::objects::OpenObjects;

const FAILURE: i32 = 1;
/// Name of the archive's logger.
const TARGET: &str = "aeron.archive";
/// File with the level of the log. `aeron log-level` writes it.
const LOG_LEVEL_FILE: &str = "archive.log-level";
/// File with a request to reload. `aeron reload` writes it, and the archive writes the outcome.
const RELOAD_FILE: &str = "archive.reload";
/// The driver's variable that lets it print its settings at the start. The archive prints its own settings too.
const PRINT_CONFIGURATION: &str = "AERON_PRINT_CONFIGURATION";
/// Interval of the polls for the driver. A signal ends the wait.
const DRIVER_POLL_INTERVAL: Duration = Duration::from_millis(10);

const USAGE: &str = "Usage: aeronarchive [-v][-Dname=value] [--dir directory] [--archive-dir directory] [--with-driver] [--strict] [properties-file ...]";

const HELP: &str = "
Runs an archive in the foreground until SIGINT or SIGTERM ends it, or its driver ends. The archive works with the media driver of a directory, or
with a driver of its own in the same process.

Settings are AERON_* environment variables, then -Daeron.name=value, then properties files: later ones win, and the options
for directories win over them all. The exit status is the signal's number (2, 15). It is 1 after a failure, and if the archive ends by
itself because its driver ended or timed it out. With --with-driver, it is 0 after a terminate command.
SIGHUP or `aeron reload` reads the users file, the retention file and the properties files again, and applies users, policies and the level of
the log.

  -v                       print the version
  -Dname=value             set a property, such as -Daeron.archive.control.channel=aeron:udp?endpoint=localhost:8010
  --dir directory          directory of the media driver
  --archive-dir directory  directory of the recordings
  --with-driver            run a media driver too; it ends with the archive. With -Daeron.threading.mode=INVOKER, the archive's thread runs
                           it; aeron.archive.threading.mode must then be SHARED or INVOKER
  --strict                 end with status 1 if there is a warning about a setting
  -h, --help               print this text";

/// The meaning of the command's arguments.
#[derive(Debug)]
pub enum Command {
    /// Run an archive with these settings.
    Run(RunArchive),
    /// Print a text and exit.
    Show(String),
}

/// The settings of an archive, and whether a driver runs in the same process.
#[derive(Debug)]
pub struct RunArchive {
    /// Settings of the archive, and of its driver.
    pub sources: Sources,
    /// Arguments of the command, from which a reload reads the settings again.
    pub arguments: Vec<String>,
    /// Whether a driver runs in the same process.
    pub is_with_driver: bool,
    /// Whether a warning about a setting ends the start.
    pub is_strict: bool,
}

impl Command {
    /// Parses the arguments of the command. They take precedence over the environment of the process.
    ///
    /// # Errors
    /// An argument is wrong. The error is a text about this argument.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let given: Vec<String> = arguments.into_iter().collect();
        let mut sources = Sources::environment();
        let mut late = OverridingArguments::default();
        let (mut is_with_driver, mut is_strict) = (false, false);
        let mut arguments = given.iter().cloned();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "-v" => return Ok(Self::Show(version_line())),
                "-h" | "--help" => return Ok(Self::Show(format!("{USAGE}\n{HELP}"))),
                "-D" => define(&mut sources, &arguments.next().unwrap_or_default())?,
                "--dir" => late.set("aeron.dir", "dir", arguments.next())?,
                "--archive-dir" => {
                    late.set("aeron.archive.dir", "archive-dir", arguments.next())?;
                }
                "--with-driver" => is_with_driver = true,
                "--strict" => is_strict = true,
                option if option.starts_with("-D") => define(&mut sources, &option[2..])?,
                option if option.starts_with('-') => {
                    let option = option.trim_start_matches('-');
                    return Err(format!(
                        "aeronarchive: invalid option -- '{option}'\n{USAGE}"
                    ));
                }
                _ => late.files.push(argument),
            }
        }
        late.apply(&mut sources)
            .map_err(|error| format!("ERROR: {error}"))?;
        Ok(Self::Run(RunArchive {
            sources,
            arguments: given,
            is_with_driver,
            is_strict,
        }))
    }
}

/// Settings from arguments that take precedence over every `-D`.
#[derive(Default)]
struct OverridingArguments {
    files: Vec<String>,
    definitions: Vec<String>,
}

impl OverridingArguments {
    fn set(&mut self, property: &str, option: &str, value: Option<String>) -> Result<(), String> {
        let Some(value) = value else {
            return Err(format!(
                "aeronarchive: option requires an argument -- '{option}'\n{USAGE}"
            ));
        };
        self.definitions.push(format!("{property}={value}"));
        Ok(())
    }

    fn apply(self, sources: &mut Sources) -> Result<(), SourcesError> {
        for file in self.files {
            sources.load_file(&file)?;
        }
        for definition in self.definitions {
            sources.define(&definition)?;
        }
        Ok(())
    }
}

fn define(sources: &mut Sources, definition: &str) -> Result<(), String> {
    sources
        .define(definition)
        .map_err(|error| error.to_string())
}

fn version_line() -> String {
    format!("aeronarchive <aeron version={VERSION} commit={COMMIT}>")
}

/// The driver in the process of an archive.
pub trait OwnDriver {
    /// Returns the function by which the archive runs the driver; `None` if the driver has threads.
    fn invoker(&self) -> Option<InvokedDriver>;

    /// Returns whether a client has terminated the driver.
    fn is_terminated(&self) -> bool;

    /// Returns whether each agent with a thread of the driver has completed a duty cycle since this function last
    /// returned true.
    fn take_progress(&self) -> bool;
}

/// The parts of an archive's program that exist before the archive starts.
pub struct ArchiveProgram<'a> {
    /// The settings.
    pub run: &'a RunArchive,
    /// The printer of the log. A file in the directory of the archive can change its level.
    pub log: &'a LogPrinter,
    /// The signals that end the program.
    pub signals: &'a ShutdownSignalBarrier,
    /// The signals that request a reload.
    pub reloads: ReloadRequests,
    /// The driver of the process, if it has one.
    pub driver: Option<&'a dyn OwnDriver>,
}

/// Runs an archive until the process receives a signal, or the driver ends. Returns the exit status of the process:
/// `aeronarchive --help` documents it. If the settings name object storage, `open_objects` opens it.
pub fn run_archive(program: ArchiveProgram<'_>, open_objects: OpenObjects) -> i32 {
    let ArchiveProgram {
        run,
        log,
        signals,
        reloads,
        driver,
    } = program;
    let sources = &run.sources;
    let mut context = ArchiveContext {
        driver_invoker: driver.and_then(OwnDriver::invoker),
        ..ArchiveContext::default()
    };
    if let Err(error) = context.apply(sources) {
        return fail(format_args!("ERROR: {error}"));
    }
    if let Err(error) = context.conclude() {
        return fail(format_args!("ERROR: {error}"));
    }
    let prints = sources.get(PRINT_CONFIGURATION);
    if prints.and_then(|text| Grammar::Boolean.parse(text)) == Some(Value::Boolean(true)) {
        console::print_line(context.to_print());
    }
    let mut service = ServiceNotifier::from_environment();
    let aeron_dir = context.aeron_dir.display().to_string();
    service.status(&format!("waiting for the media driver in {aeron_dir}"));
    match await_driver(&context, signals) {
        DriverWait::Found => {}
        DriverWait::Interrupted => return status(signals),
        DriverWait::Missing => {
            return fail(format_args!(
                "ERROR: no media driver in {aeron_dir} after {} ms: start one there, or use --with-driver",
                context.driver_timeout_ms
            ));
        }
    }
    let archive_dir = context.archive_dir.clone();
    service.status(&format!("opening {}", archive_dir.display()));
    let serving = format!("serving requests for {}", archive_dir.display());
    let first_line = started(&context);
    let given = context.clone();
    let mut archive = match Archive::launch_with_main_loop(context, open_objects) {
        Ok(archive) => archive,
        Err(error) => return fail(format_args!("ERROR: {}", one_line(&error))),
    };
    log.follow(archive_dir.join(LOG_LEVEL_FILE));
    log::info!(target: TARGET, "{first_line}");
    let file = archive_dir.join(RELOAD_FILE);
    let reloading = Reloading {
        arguments: run.arguments.clone(),
        given,
        level: log.level(),
        archive: archive.reloads(),
    };
    let reloading = match reloads.serve(file, serving.clone(), move || reloading.reload()) {
        Ok(reloading) => reloading,
        Err(error) => return fail(format_args!("ERROR: thread aeron-reload: {error}")),
    };
    let is_over = || driver.is_some_and(OwnDriver::is_terminated);
    // A panic of the main loop has been reported. The program then ends in order, like after a panic of another thread.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        archive.do_work();
        service.ready(&serving);
        while signals.received().is_none()
            && !archive.is_terminated()
            && !is_over()
            && !crash::has_panicked()
        {
            let work_count = archive.do_work();
            service.on_duty_cycle(|| {
                archive.take_progress() && driver.is_none_or(OwnDriver::take_progress)
            });
            archive.idle(work_count);
        }
    }));
    // Read before the close, which terminates the archive in any case.
    let is_lost = archive.is_terminated() && signals.received().is_none();
    console::print_line("Shutting down archive...");
    drop(reloading);
    service.stopping("stopping");
    archive.close();
    if crash::has_panicked() {
        log::info!(target: TARGET, "ended: a panic");
        return fail(crash::ERROR);
    }
    if is_lost {
        return fail(
            "ERROR: the archive ended because it lost its driver: start the driver and the archive again",
        );
    }
    let status = status(signals);
    log::info!(target: TARGET, "ended: {}", reason_of(status));
    status
}

/// The parts of the program that a reload uses.
struct Reloading {
    arguments: Vec<String>,
    /// The settings of the start.
    given: ArchiveContext,
    level: LogLevel,
    archive: ArchiveReloads,
}

impl Reloading {
    /// Reads settings and files again. Applies the users, the policies and the level of the log, or nothing. Returns a
    /// line for the operator.
    fn reload(&self) -> Result<String, String> {
        let (level, changed) = self
            .read_settings()
            .inspect_err(|reason| self.archive.fail(reason))?;
        let files = self.archive.reload()?;
        self.level.set(level);
        let line = [
            files,
            format!("log level {}", level.as_str().to_lowercase()),
        ];
        let line = line.into_iter().filter(|part| !part.is_empty());
        let line = line.collect::<Vec<_>>().join(", ") + &unapplied(&changed);
        log::info!(target: TARGET, "reloaded: {line}");
        Ok(line)
    }

    /// Returns the level of the log, and the names of changed settings.
    fn read_settings(&self) -> Result<(LevelFilter, Vec<&'static str>), String> {
        let Command::Run(run) = Command::parse(self.arguments.clone())? else {
            unreachable!("the program runs an archive");
        };
        let level = LogSettings::level_of(&run.sources)?;
        let mut context = ArchiveContext::default();
        let applied = context.apply(&run.sources);
        applied.map_err(|error| error.to_string())?;
        let changed = ARCHIVE_SETTINGS
            .iter()
            .filter(|setting| setting.get(&context) != setting.get(&self.given));
        Ok((level, changed.map(|setting| setting.name).collect()))
    }
}

/// Returns the first line of an archive's log.
fn started(context: &ArchiveContext) -> String {
    let defaults = ArchiveContext::default();
    let changed = ARCHIVE_SETTINGS
        .iter()
        .filter(|setting| setting.get(context) != setting.get(&defaults));
    format!(
        "started: version {VERSION}, commit {COMMIT}, directory {}, pid {}, directory of the driver {}, threading mode {}, control channel \"{}\", \
         settings that are not defaults: {}",
        context.archive_dir.display(),
        std::process::id(),
        context.aeron_dir.display(),
        context.threading_mode.name(),
        context.control_channel,
        changed.count()
    )
}

/// Returns why a program ended with an exit status.
fn reason_of(status: i32) -> String {
    match status {
        0 => "a terminate command".to_owned(),
        _ => format!("signal {status}"),
    }
}

/// The outcome of waiting for the driver.
enum DriverWait {
    Found,
    Missing,
    /// A signal ended the command.
    Interrupted,
}

/// Waits for the driver up to the driver timeout. The launch waits too, but a signal cannot end that wait.
fn await_driver(context: &ArchiveContext, signals: &ShutdownSignalBarrier) -> DriverWait {
    let timeout = Duration::from_millis(context.driver_timeout_ms as u64);
    let deadline = Instant::now() + timeout;
    loop {
        match is_driver_active(&context.aeron_dir, timeout) {
            Ok(false) | Err(Error::DriverTimeout(_)) => {}
            // If the CnC file is unusable, the launch returns the error.
            Ok(true) | Err(_) => return DriverWait::Found,
        }
        if Instant::now() >= deadline {
            return DriverWait::Missing;
        }
        if signals.wait_timeout(DRIVER_POLL_INTERVAL).is_some() {
            return DriverWait::Interrupted;
        }
    }
}

/// Returns the exit status of a command that ended without an error.
fn status(signals: &ShutdownSignalBarrier) -> i32 {
    match signals.received() {
        Some(Shutdown::Signal(number)) => number,
        _ => 0,
    }
}

/// Prints the reason why the command failed. Returns the exit status of a failed command.
pub fn fail(reason: impl Display) -> i32 {
    console::warn(reason);
    FAILURE
}

/// Returns the text of an error on one line, for tools that read stderr line by line.
pub fn one_line(error: &impl Display) -> String {
    error.to_string().replace('\n', ": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Command, String> {
        Command::parse(arguments.iter().map(|argument| argument.to_string()))
    }

    #[track_caller]
    fn context_of(arguments: &[&str]) -> ArchiveContext {
        let Command::Run(run) = parse(arguments).unwrap() else {
            panic!("the command does not run an archive");
        };
        let mut context = ArchiveContext::default();
        context.apply(&run.sources).unwrap();
        context
    }

    #[test]
    fn options_override_properties_files_and_properties_files_override_definitions() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            "aeron.archive.id=2\naeron.archive.dir=/b\naeron.dir=/c",
        )
        .unwrap();
        let context = context_of(&[
            "--archive-dir",
            "/a",
            file.path().to_str().unwrap(),
            "-Daeron.archive.id=1",
            "-D",
            "aeron.archive.control.stream.id=77",
            "--dir",
            "/d",
        ]);
        assert_eq!((context.archive_id, context.control_stream_id), (2, 77));
        assert_eq!(context.archive_dir.to_str(), Some("/a"));
        assert_eq!(context.aeron_dir.to_str(), Some("/d"));
    }

    #[test]
    fn the_option_with_driver_is_parsed() {
        for (arguments, expected) in [(&[][..], false), (&["--with-driver"], true)] {
            let Command::Run(run) = parse(arguments).unwrap() else {
                panic!("the command does not run an archive");
            };
            assert_eq!(run.is_with_driver, expected);
        }
    }

    #[test]
    fn help_and_version_are_shown_and_unknown_options_are_refused() {
        let Command::Show(help) = parse(&["-h"]).unwrap() else {
            panic!("no help");
        };
        assert!(help.starts_with("Usage: aeronarchive"));
        let Command::Show(version) = parse(&["-v"]).unwrap() else {
            panic!("no version");
        };
        assert!(version.starts_with("aeronarchive <aeron version="));
        let wrong: [(&[&str], &str); 4] = [
            (
                &["--wrong"],
                "aeronarchive: invalid option -- 'wrong'\nUsage: ",
            ),
            (
                &["--dir"],
                "aeronarchive: option requires an argument -- 'dir'\nUsage: ",
            ),
            (&["-Dnothing"], "malformed define: nothing"),
            (
                &["/no/such/file"],
                "ERROR: loading properties from /no/such/file ",
            ),
        ];
        for (arguments, text) in wrong {
            let error = parse(arguments).unwrap_err();
            assert!(error.starts_with(text), "{error}");
        }
    }
}
