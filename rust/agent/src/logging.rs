//! Log records of native threads. A bounded queue is between the threads that log and the one thread that writes.
//!
//! Driver, client and archive log through the macros of the crate `log`, with the targets `aeron.driver`,
//! `aeron.client` and `aeron.archive`. Programs print the records with a [`LogPrinter`]. In a Python process, the
//! bindings pass them to the module `logging`. Without [`install`], nothing is logged, and a macro costs one load.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use log::{Level, LevelFilter};

mod printer;
mod repeats;

pub use printer::{LogFormat, LogLevel, LogPrinter, LogSettings, one_line};
pub use repeats::Repeats;

/// Target of the lines about requests that delete data, change a policy or are refused.
pub const AUDIT: &str = "aeron.archive.audit";

/// Maximum number of records that wait. More are dropped, and counted.
const MAX_WAITING: usize = 1024;
/// Further lines of the audit that wait: a flood of other records must not hide them.
const MAX_WAITING_AUDIT: usize = 1024;
/// Logger of records about the log itself.
const LOG: &str = "aeron.log";
/// Maximum length of a text in bytes: a record must not keep the memory of a large message.
const MAX_TEXT_LENGTH: usize = 8 * 1024;
/// Number of queues. A forked process uses the next one, because a thread of its parent may have locked the queue.
const QUEUES: usize = 8;

static QUEUE_OF_PROCESS: [LogQueue; QUEUES] = [const { LogQueue::new() }; QUEUES];
static FORKS: AtomicUsize = AtomicUsize::new(0);
static LOGGER: Logger = Logger;
static START: OnceLock<fn()> = OnceLock::new();
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

/// A log record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Time in milliseconds since the epoch.
    pub time_ms: i64,
    /// Level.
    pub level: Level,
    /// Name of the logger, such as `aeron.driver`.
    pub target: String,
    /// Text, of one or more lines.
    pub text: String,
}

/// The queue of the records of a process.
#[derive(Debug)]
pub struct LogQueue {
    state: Mutex<State>,
    is_ready: Condvar,
    dropped: AtomicU64,
}

#[derive(Debug)]
struct State {
    records: VecDeque<LogRecord>,
    /// Process of the thread that reads the queue. After several forks, a process can get the queue of an ancestor.
    reader: Option<u32>,
    is_closed: bool,
}

struct Logger;

/// Logs an error, or prints it if no logger is installed: an error must not be lost.
pub fn error(target: &str, text: &str) {
    match is_installed() {
        true => log::error!(target: target, "{text}"),
        false => crate::console::warn(format_args!("{target}: {}", text.trim_end())),
    }
}

/// Begins to queue the records of this process with at most `level`. Calls `start` at the first record, on the thread
/// that logs: it starts the thread that reads the queue.
///
/// Does nothing if another logger is installed.
pub fn install(level: LevelFilter, start: fn()) {
    let _ = START.set(start);
    if log::set_logger(&LOGGER).is_ok() {
        IS_INSTALLED.store(true, Ordering::Relaxed);
        log::set_max_level(level);
    }
}

/// Returns whether records go to the queue of this process, or to no place because of their level. Otherwise an error
/// that has no other place is printed.
pub fn is_installed() -> bool {
    IS_INSTALLED.load(Ordering::Relaxed)
}

/// Returns the queue of this process.
pub fn queue() -> &'static LogQueue {
    &QUEUE_OF_PROCESS[FORKS.load(Ordering::Relaxed) % QUEUES]
}

/// Gives a forked child a queue of its own. Only changes an atomic, as a handler of forks must.
pub fn mark_forked_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

impl log::Log for Logger {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        // Libraries use the same macros, and their records are no concern of an operator of Aeron.
        metadata.target().starts_with("aeron") && metadata.level() <= log::max_level()
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            queue().push(record);
        }
    }

    fn flush(&self) {}
}

impl LogQueue {
    const fn new() -> Self {
        Self {
            state: Mutex::new(State {
                records: VecDeque::new(),
                reader: None,
                is_closed: false,
            }),
            is_ready: Condvar::new(),
            dropped: AtomicU64::new(0),
        }
    }

    /// Appends a record, or counts it as dropped. The lock is held only while a record is moved, so the thread that
    /// logs never waits for the one that writes.
    fn push(&self, record: &log::Record<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return;
        }
        let room = match record.target() == AUDIT {
            true => MAX_WAITING + MAX_WAITING_AUDIT,
            false => MAX_WAITING,
        };
        if state.records.len() >= room {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let process = std::process::id();
        let is_first = state.reader.replace(process) != Some(process);
        drop(state);
        if is_first && let Some(start) = START.get() {
            start();
        }
        let record = LogRecord {
            time_ms: now_ms(),
            level: record.level(),
            target: record.target().to_owned(),
            text: shortened(record.args().to_string()),
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.records.push_back(record);
        debug_assert!(
            state.reader.is_some(),
            "records wait for a reader that nobody has started"
        );
        drop(state);
        self.is_ready.notify_one();
    }

    /// Takes the place of the thread that [`install`] would start.
    fn read_by_caller(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.reader = Some(std::process::id());
    }

    /// Waits for up to `timeout` for records, and takes all of them. Returns `None` after [`close`](Self::close) once
    /// no record is left. If records were dropped, the last record says how many.
    pub fn take(&self, timeout: Duration) -> Option<Vec<LogRecord>> {
        let deadline = Instant::now() + timeout;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.records.is_empty() && !state.is_closed {
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Some(Vec::new());
            }
            let waited = self.is_ready.wait_timeout(state, rest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.records.is_empty() {
            return None;
        }
        let mut records: Vec<_> = std::mem::take(&mut state.records).into();
        drop(state);
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            records.push(LogRecord {
                time_ms: now_ms(),
                level: Level::Warn,
                target: LOG.to_owned(),
                text: format!("{dropped} log records were dropped: more than {MAX_WAITING} waited"),
            });
        }
        Some(records)
    }

    /// Ends the queue: later records are ignored, and the thread that reads it ends.
    pub fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_closed = true;
        drop(state);
        self.is_ready.notify_all();
    }
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_millis() as i64
}

fn shortened(mut text: String) -> String {
    if text.len() > MAX_TEXT_LENGTH {
        let is_boundary = |length: &usize| text.is_char_boundary(*length);
        let length = (0..=MAX_TEXT_LENGTH).rev().find(is_boundary);
        text.truncate(length.unwrap_or(0));
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &LogQueue, text: &str) {
        let mut record = log::Record::builder();
        record.level(Level::Error).target("aeron.driver");
        queue.push(&record.args(format_args!("{text}")).build());
    }

    #[test]
    fn records_beyond_the_bound_are_dropped_and_counted() {
        let queue = LogQueue::new();
        for number in 0..MAX_WAITING + 7 {
            push(&queue, &number.to_string());
        }
        let records = queue.take(Duration::ZERO).unwrap();
        assert_eq!(records.len(), MAX_WAITING + 1);
        assert_eq!(records[MAX_WAITING - 1].text, "1023");
        assert!(
            records[MAX_WAITING]
                .text
                .starts_with("7 log records were dropped")
        );
        assert_eq!(queue.take(Duration::ZERO), Some(Vec::new()));
    }

    #[test]
    fn a_flood_leaves_room_for_the_audit() {
        let queue = LogQueue::new();
        for number in 0..2 * MAX_WAITING {
            push(&queue, &number.to_string());
        }
        let mut record = log::Record::builder();
        record.level(Level::Info).target(AUDIT);
        queue.push(&record.args(format_args!("deleted")).build());
        let records = queue.take(Duration::ZERO).unwrap();
        assert!(records.iter().any(|record| record.text == "deleted"));
    }

    #[test]
    fn a_closed_queue_gives_its_last_records_and_ends() {
        let queue = LogQueue::new();
        push(&queue, "last");
        queue.close();
        push(&queue, "late");
        assert_eq!(queue.take(Duration::ZERO).unwrap().len(), 1);
        assert_eq!(queue.take(Duration::from_secs(60)), None);
    }

    #[test]
    fn a_reader_wakes_up_at_the_next_record() {
        let queue = LogQueue::new();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| queue.take(Duration::from_secs(60)));
            push(&queue, "next");
            assert_eq!(reader.join().unwrap().unwrap()[0].text, "next");
        });
    }

    #[test]
    fn a_long_text_is_cut() {
        let queue = LogQueue::new();
        push(&queue, &"ä".repeat(MAX_TEXT_LENGTH));
        let [record] = &queue.take(Duration::ZERO).unwrap()[..] else {
            panic!("one record");
        };
        assert_eq!(record.text.len(), MAX_TEXT_LENGTH + 3);
    }
}
