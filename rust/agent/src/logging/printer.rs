//! [`LogPrinter`]: prints the log records of a program on the standard error output.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{LevelFilter, LogRecord, Repeats, install, queue};
use crate::console;
use crate::sources::Sources;

/// Interval of the looks into the file of the level, and for repeated records.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time for which the end of a program waits for its last records.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum length of the file of the level: other bytes are no level.
const MAX_LEVEL_LENGTH: u64 = 16;

/// Form of the printed lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Time, level, logger and text.
    Text,
    /// A JSON object a line, with the fields `time`, `level`, `logger` and `text`.
    Json,
}

/// How a program prints its log.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// Form of the lines.
    pub format: LogFormat,
    /// Highest level that is printed.
    pub level: LevelFilter,
    /// Returns the text of a time in milliseconds since the epoch.
    pub format_date: fn(i64) -> String,
}

/// The thread that prints the log records of a program. Dropping it waits until the last records are printed, for at
/// most a second.
#[derive(Debug)]
pub struct LogPrinter {
    is_done: Receiver<()>,
    level: LogLevel,
}

/// The level of a program's log. Clones change the same level, from any thread.
#[derive(Clone, Debug)]
pub struct LogLevel {
    sources: Arc<Mutex<LevelSources>>,
}

/// The sources of the level.
#[derive(Debug)]
struct LevelSources {
    /// Level of the settings. It applies if there is none of the files.
    setting: LevelFilter,
    /// Files with a level. The last one that exists decides.
    files: Vec<PathBuf>,
}

impl LogLevel {
    /// Changes the level of the settings. A file with a level still decides, as long as it exists.
    pub fn set(&self, level: LevelFilter) {
        let mut sources = self.lock();
        sources.setting = level;
        sources.apply();
    }

    fn lock(&self) -> MutexGuard<'_, LevelSources> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LevelSources {
    /// Applies the text in the files of the level, or the level of the settings if there is no such file. A text that
    /// is no level changes nothing: the file may be half written.
    fn apply(&self) {
        let mut existing = self.files.iter().filter(|file| file.exists()).peekable();
        if existing.peek().is_none() {
            log::set_max_level(self.setting);
        }
        if let Some(level) = existing.filter_map(|file| level_in(file)).next_back() {
            log::set_max_level(level);
        }
    }
}

impl LogSettings {
    /// Reads `AERON_LOG_FORMAT` (`text`, `json`) and `AERON_LOG_LEVEL` (`off`, `error`, `warn`, `info`). The
    /// defaults are `text` and `info`.
    ///
    /// # Errors
    /// A text that is not one of these.
    pub fn from_environment(
        variable: impl Fn(&str) -> Option<String>,
        format_date: fn(i64) -> String,
    ) -> Result<Self, String> {
        let format = match variable("AERON_LOG_FORMAT").as_deref() {
            None | Some("text") => LogFormat::Text,
            Some("json") => LogFormat::Json,
            Some(other) => return Err(format!("AERON_LOG_FORMAT={other} is not text or json")),
        };
        let level = match variable("AERON_LOG_LEVEL") {
            None => LevelFilter::Info,
            Some(text) => level_of(&text)
                .ok_or_else(|| format!("AERON_LOG_LEVEL={text} is not off, error, warn or info"))?,
        };
        Ok(Self {
            format,
            level,
            format_date,
        })
    }

    /// Reads the level that the variables in `sources` name.
    ///
    /// # Errors
    /// The text of a variable is not one that [`from_environment`](Self::from_environment) knows.
    pub fn level_of(sources: &Sources) -> Result<LevelFilter, String> {
        let variable = |name: &str| sources.get(name).map(str::to_owned);
        Self::from_environment(variable, |_| String::new()).map(|settings| settings.level)
    }

    /// Returns a record as one line.
    fn line(&self, record: &LogRecord) -> String {
        let (time, level) = ((self.format_date)(record.time_ms), record.level.as_str());
        match self.format {
            LogFormat::Text => {
                format!(
                    "{time} {level} {} {}",
                    record.target,
                    one_line(&record.text)
                )
            }
            LogFormat::Json => format!(
                "{{\"time\":\"{time}\",\"level\":\"{level}\",\"logger\":\"{}\",\"text\":\"{}\"}}",
                escaped(&record.target),
                escaped(&record.text)
            ),
        }
    }
}

/// Reads a level from a file; `None` if the file has no level.
fn level_in(file: &Path) -> Option<LevelFilter> {
    let found = fs::metadata(file).ok()?;
    // Anybody may have made the file: to read a FIFO would wait for ever.
    let is_small = found.is_file() && found.len() <= MAX_LEVEL_LENGTH;
    let text = is_small.then(|| fs::read_to_string(file).ok())??;
    level_of(text.trim())
}

impl LogPrinter {
    /// Starts to print the log of a program with the variables in `sources`. A program calls this function once.
    ///
    /// # Errors
    /// The text of a variable is not one that [`LogSettings::from_environment`] knows.
    pub fn of_program(sources: &Sources, format_date: fn(i64) -> String) -> Result<Self, String> {
        let variable = |name: &str| sources.get(name).map(str::to_owned);
        LogSettings::from_environment(variable, format_date).map(Self::start)
    }

    /// From now on, the text of a file is the level, as long as the file exists. Removes the file of an earlier
    /// program.
    pub fn follow(&self, level_file: PathBuf) {
        let _ = fs::remove_file(&level_file);
        self.level.lock().files.push(level_file);
    }

    /// Returns the level, to change it while the program runs.
    pub fn level(&self) -> LogLevel {
        self.level.clone()
    }

    fn start(settings: LogSettings) -> Self {
        install(settings.level, || ());
        queue().read_by_caller();
        log::set_max_level(settings.level);
        let level = LogLevel {
            sources: Arc::new(Mutex::new(LevelSources {
                setting: settings.level,
                files: Vec::new(),
            })),
        };
        let printed = level.clone();
        let (done, is_done) = sync_channel(1);
        let thread = std::thread::Builder::new().name("aeron-log".to_owned());
        // Without a thread, the records are dropped, and the program runs.
        let _ = thread.spawn(move || {
            print(&settings, &printed);
            let _ = done.send(());
        });
        Self { is_done, level }
    }
}

impl Drop for LogPrinter {
    fn drop(&mut self) {
        queue().close();
        // A pipe that nobody reads must not keep the program from ending.
        let _ = self.is_done.recv_timeout(END_TIMEOUT);
    }
}

fn print(settings: &LogSettings, level: &LogLevel) {
    let mut repeats = Repeats::default();
    while let Some(records) = queue().take(LOOK_INTERVAL) {
        let now = Instant::now();
        let admitted = records
            .into_iter()
            .filter_map(|record| repeats.admit(record, now));
        let lines: Vec<_> = admitted.collect();
        for record in lines.iter().chain(&repeats.ended(now)) {
            console::warn(settings.line(record));
        }
        level.lock().apply();
    }
    for record in repeats.all() {
        console::warn(settings.line(&record));
    }
}

/// Parses a level.
#[must_use]
pub fn level_of(text: &str) -> Option<LevelFilter> {
    let levels = ["off", "error", "warn", "info"];
    levels.contains(&text).then(|| text.parse().ok())?
}

/// Joins the lines of a text, and escapes control characters: other processes may have written a part of it.
#[must_use]
pub fn one_line(text: &str) -> String {
    let joined = text.trim_end().replace('\n', ": ");
    let shown = joined
        .chars()
        .map(|character| match character.is_control() {
            true => character.escape_default().to_string(),
            false => character.to_string(),
        });
    shown.collect()
}

/// Escapes a text for JSON.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '\\' => escaped.extend(['\\', character]),
            '\n' => escaped.push_str("\\n"),
            _ if character.is_control() => {
                escaped.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    fn settings(format: LogFormat) -> LogSettings {
        LogSettings {
            format,
            level: LevelFilter::Info,
            format_date: |time_ms| time_ms.to_string(),
        }
    }

    fn record(text: &str) -> LogRecord {
        LogRecord {
            time_ms: 7,
            level: Level::Error,
            target: "aeron.driver".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_record_is_one_line_without_control_characters() {
        let line = settings(LogFormat::Text).line(&record("a\nb\u{1b}[2J\n"));
        assert_eq!(line, "7 ERROR aeron.driver a: b\\u{1b}[2J");
    }

    #[test]
    fn variables_choose_form_and_level() {
        let read = |name: &'static str, text: &'static str| {
            let variable = move |given: &str| (given == name).then(|| text.to_owned());
            LogSettings::from_environment(variable, |_| String::new())
        };
        let read_settings = read("", "").unwrap();
        assert_eq!(read_settings.format, LogFormat::Text);
        assert_eq!(read_settings.level, LevelFilter::Info);
        let json = read("AERON_LOG_FORMAT", "json").unwrap();
        assert_eq!(json.format, LogFormat::Json);
        for (text, level) in [("off", LevelFilter::Off), ("warn", LevelFilter::Warn)] {
            assert_eq!(read("AERON_LOG_LEVEL", text).unwrap().level, level);
        }
        for (name, text) in [
            ("AERON_LOG_FORMAT", "xml"),
            ("AERON_LOG_LEVEL", "loud"),
            ("AERON_LOG_LEVEL", "debug"),
        ] {
            let error = read(name, text).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_line_of_json_has_the_text(text in "(?s).{0,60}") {
            let line = settings(LogFormat::Json).line(&record(&text));
            proptest::prop_assert!(!line.contains('\n'));
            let value: serde_json::Value = serde_json::from_str(&line).unwrap();
            proptest::prop_assert_eq!(value["text"].as_str(), Some(text.as_str()));
        }
    }
}
