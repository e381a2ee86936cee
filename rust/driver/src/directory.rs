//! The driver's directory before and after: whether another driver lives in it, what a dead one left, and its removal.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aeron_agent::{EpochClock, SystemEpochClock, console};
use aeron_memory::cnc::{CncError, CncFile, Reader};
use aeron_memory::date::format_date;
use aeron_memory::directory::{cnc_file, create_directories};
use aeron_memory::error_log;

use crate::config::Context;
use crate::media_driver::StartError;

/// How often a CnC file in the making is looked at again.
const CNC_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Makes an empty directory for a driver; fails when a live driver has it.
pub fn prepare(context: &Context) -> Result<(), StartError> {
    let dir = &context.dir;
    if dir.exists() {
        if context.dir_warn_if_exists {
            console::warn(format_args!("WARNING: {} exists", dir.display()));
        }
        if !context.dir_delete_on_start {
            take_over(context)?;
        }
        remove(dir).map_err(|error| StartError::io(&error, "failed to remove", dir))?;
    }
    create_directories(dir).map_err(|error| StartError::io(&error, "failed to create", dir))
}

/// Removes the directory and all that is in it.
pub fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Makes sure that no driver lives in the directory, and saves the errors of one that did.
fn take_over(context: &Context) -> Result<(), StartError> {
    let path = cnc_file(&context.dir);
    let Some(cnc) = open_initialised(&path, context.driver_timeout_ms)? else {
        return Ok(());
    };
    let now_ms = SystemEpochClock.time_ms();
    if context.dir_warn_if_exists {
        let age_ms = now_ms.saturating_sub(cnc.to_driver().consumer_heartbeat_ms());
        console::warn(format_args!(
            "INFO: Aeron driver heartbeat is {age_ms} ms old"
        ));
    }
    if cnc.is_active(now_ms, context.driver_timeout_ms) {
        return Err(StartError::ActiveDriver(path));
    }
    save_errors(&context.dir, &cnc, now_ms)
}

/// The CnC file of a driver that got as far as to say so; a driver that is starting is waited for. A file that cannot be understood
/// may be that of a live driver of another version.
fn open_initialised(path: &Path, timeout_ms: i64) -> Result<Option<CncFile>, StartError> {
    let deadline = Instant::now().checked_add(Duration::from_millis(timeout_ms.unsigned_abs()));
    loop {
        match CncFile::map(path, Reader::Tool) {
            Ok(Ok(cnc)) => return Ok(Some(cnc)),
            Ok(Err(error)) => {
                let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                match error {
                    error if error.is_transient() && !is_late => {
                        std::thread::sleep(CNC_POLL_INTERVAL);
                    }
                    CncError::NotPopulated { .. } | CncError::NotInitialised => return Ok(None),
                    reason => {
                        let path = path.to_owned();
                        return Err(StartError::ForeignCnc { path, reason });
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StartError::io(&error, "failed to map", path)),
        }
    }
}

fn save_errors(dir: &Path, cnc: &CncFile, now_ms: i64) -> Result<(), StartError> {
    if !error_log::has_errors(cnc.error_log()) {
        return Ok(());
    }
    let mut report = String::new();
    let observations = error_log::read(cnc.error_log(), 0);
    error_log::write_report(&mut report, &observations, format_date)
        .expect("writing to a string does not fail");
    let path = error_file(dir, now_ms);
    fs::write(&path, report)
        .map_err(|error| StartError::io(&error, "failed to save existing errors to", &path))?;
    console::warn(format_args!(
        "WARNING: Existing errors saved to: {}",
        path.display()
    ));
    Ok(())
}

/// `<dir>-<date>-error.log`, beside the directory.
fn error_file(dir: &Path, now_ms: i64) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(format!(
        "-{}-error.log",
        format_date(now_ms).replace(':', "-")
    ));
    name.into()
}
