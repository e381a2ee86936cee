//! Passes the log records of native threads to Python's module `logging`.
//!
//! A thread of its own does this. So a handler that blocks delays no conductor: the records wait in a bounded queue,
//! and are dropped and counted if it is full.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use aeron_agent::logging::{self, Level, LevelFilter, LogRecord, Repeats, one_line, queue};
use pyo3::prelude::*;

/// Interval of the looks for records that have repeated.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum time for which the end of the interpreter waits for handlers.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Tells the end of the thread.
static IS_DONE: Mutex<Option<Receiver<()>>> = Mutex::new(None);

/// Begins to queue records. The first record starts the thread, so that most processes do without it.
pub fn install() {
    logging::install(LevelFilter::Info, start);
}

fn start() {
    let (done, is_done) = sync_channel(1);
    let thread = std::thread::Builder::new().name("aeron-log".to_owned());
    let thread = thread.spawn(move || {
        pass_on();
        let _ = done.send(());
    });
    if let (Ok(_), Ok(mut place)) = (thread, IS_DONE.try_lock()) {
        *place = Some(is_done);
    }
}

/// Passes records on until the queue is closed or the interpreter ends.
fn pass_on() {
    let mut repeats = Repeats::default();
    while let Some(records) = queue().take(LOOK_INTERVAL) {
        let now = Instant::now();
        let admitted = records
            .into_iter()
            .filter_map(|record| repeats.admit(record, now));
        let mut records: Vec<_> = admitted.collect();
        records.extend(repeats.ended(now));
        if !records.is_empty() && !handle(&records) {
            return;
        }
    }
    handle(&repeats.all());
}

/// Calls the loggers. Returns false if the interpreter ends.
fn handle(records: &[LogRecord]) -> bool {
    let handled = Python::try_attach(|py| {
        for record in records {
            if let Err(error) = handle_one(py, record) {
                error.write_unraisable(py, None);
            }
        }
    });
    handled.is_some()
}

fn handle_one(py: Python<'_>, record: &LogRecord) -> PyResult<()> {
    let logger = py
        .import("logging")?
        .call_method1("getLogger", (&record.target,))?;
    let level = match record.level {
        Level::Error => 40,
        Level::Warn => 30,
        Level::Info => 20,
        Level::Debug | Level::Trace => 10,
    };
    // A peer may have written a part of the text: it is no format, and must not look like further lines.
    logger.call_method1("log", (level, "%s", one_line(&record.text)))?;
    Ok(())
}

/// Passes the last records on, before the interpreter ends.
pub fn end(py: Python<'_>) {
    queue().close();
    let is_done = IS_DONE.try_lock().ok().and_then(|mut place| place.take());
    if let Some(is_done) = is_done {
        py.detach(move || _ = is_done.recv_timeout(EXIT_TIMEOUT));
    }
}
