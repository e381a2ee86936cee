//! Decides by the CnC file whether a driver of another implementation uses a directory, because such a driver has no
//! lock file. Also saves the errors of a dead driver.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aeron_agent::{EpochClock, SystemEpochClock, console};
use aeron_memory::cnc::{CLOSED_HEARTBEAT_MS, Cnc, CncError, CncFile, Reader};
use aeron_memory::date::format_date;
use aeron_memory::directory::cnc_file;
use aeron_memory::error_log;
use aeron_memory::mapped::MappedFile;
use rustix::process::{Pid, test_kill_process};

use crate::config::Context;
use crate::start_error::StartError;

/// Interval between two reads of a CnC file.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Time for which a heartbeat is watched. Aeron's drivers write the heartbeat in every timer interval, which is a
/// second by default.
const HEARTBEAT_WATCH_TIME: Duration = Duration::from_millis(2_500);

/// Returns the CnC file of the directory.
///
/// Returns `None` if the file does not exist, or if the file is unreadable and may be ignored. If a driver is just
/// starting, waits up to the driver timeout for its file. If `is_dead` is set, no driver is starting, and there is no
/// wait.
///
/// # Errors
/// The file cannot be mapped, is not the CnC file of a driver, or is damaged.
pub fn find_cnc(context: &Context, is_dead: bool) -> Result<Option<CncFile>, StartError> {
    let path = cnc_file(&context.dir);
    let patience = match is_dead {
        true => Duration::ZERO,
        false => Duration::from_millis(context.driver_timeout_ms.unsigned_abs()),
    };
    let deadline = Instant::now().checked_add(patience);
    loop {
        let error = match CncFile::map(&path, Reader::Tool) {
            Ok(Ok(cnc)) => return Ok(Some(cnc)),
            Ok(Err(error)) => error,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StartError::io(&error, "failed to map", &path)),
        };
        let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if !error.is_transient() || is_late {
            return check_unreadable(context, path, error, is_dead);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Returns `None` if an unreadable CnC file may be ignored, otherwise an error.
///
/// The file may be ignored in three cases: its driver is dead, its driver stopped before the file was complete, or
/// the file is damaged and `dir_delete_on_start` is set. The file of a dead driver of a later version is ignored only
/// if `dir_delete_on_start` is set: that driver may have left errors which this version cannot read and save.
fn check_unreadable(
    context: &Context,
    path: PathBuf,
    reason: CncError,
    is_dead: bool,
) -> Result<Option<CncFile>, StartError> {
    let has_aerons_version = !matches!(
        reason,
        CncError::NotPopulated { .. }
            | CncError::NotInitialised
            | CncError::IncompatibleVersion { .. }
    );
    let is_later = matches!(reason, CncError::IncompatibleVersion { .. });
    let is_ignored = match context.dir_delete_on_start {
        true => is_dead || has_aerons_version,
        false => is_dead && !is_later,
    };
    if is_ignored {
        return Ok(None);
    }
    if has_aerons_version {
        return Err(StartError::DamagedCnc { path, reason });
    }
    let is_half_made = MappedFile::open_private(&path)
        .is_ok_and(|file| Cnc::is_without_version_only(file.buffer().clone()));
    match is_half_made {
        true => Ok(None),
        false => Err(StartError::ForeignCnc { path, reason }),
    }
}

/// Prints the age of the heartbeat in `cnc`.
pub fn print_heartbeat_age(cnc: &CncFile) {
    let now_ms = SystemEpochClock.time_ms();
    let age_ms = now_ms.saturating_sub(cnc.to_driver().consumer_heartbeat_ms());
    console::warn(format_args!(
        "INFO: Aeron driver heartbeat is {age_ms} ms old"
    ));
}

/// Prints the age of the heartbeat of the driver that holds the lock, if its CnC file is complete.
pub fn print_live_heartbeat_age(dir: &Path) {
    if let Ok(Ok(cnc)) = CncFile::map(&cnc_file(dir), Reader::Tool) {
        print_heartbeat_age(&cnc);
    }
}

/// Returns an error if a driver may be active, according to the heartbeat and the process id.
///
/// # Errors
/// [`StartError::ActiveDriver`] if the heartbeat is recent and the process exists. If the process does not exist, or
/// `dir_delete_on_start` is set, a recent heartbeat is not enough: the heartbeat must also advance.
pub fn check_dead(context: &Context, cnc: &CncFile) -> Result<(), StartError> {
    let now_ms = SystemEpochClock.time_ms();
    if !cnc.is_active(now_ms, context.driver_timeout_ms) {
        return Ok(());
    }
    // A process that is not found may still run in another pid namespace. The heartbeat is therefore watched.
    let must_show = context.dir_delete_on_start || !is_process_alive(cnc.identity().pid);
    if must_show && !shows_life(context, cnc) {
        return Ok(());
    }
    Err(StartError::ActiveDriver(cnc_file(&context.dir)))
}

/// Returns whether the heartbeat advances while it is watched.
fn shows_life(context: &Context, cnc: &CncFile) -> bool {
    let first_ms = cnc.to_driver().consumer_heartbeat_ms();
    let deadline = Instant::now() + HEARTBEAT_WATCH_TIME;
    loop {
        let heartbeat_ms = cnc.to_driver().consumer_heartbeat_ms();
        if heartbeat_ms != first_ms {
            return heartbeat_ms != CLOSED_HEARTBEAT_MS;
        }
        let is_stale = !cnc.is_active(SystemEpochClock.time_ms(), context.driver_timeout_ms);
        if is_stale || Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn is_process_alive(pid: i64) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // The signal also fails for an existing process of another user. Only "no such process" proves that there is no
    // process.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Writes the distinct errors of a dead driver, if it has any, into a file beside its directory.
pub fn save_errors(dir: &Path, cnc: &CncFile) -> Result<(), StartError> {
    if !error_log::has_errors(cnc.error_log()) {
        return Ok(());
    }
    let mut report = String::new();
    let observations = error_log::read(cnc.error_log(), 0);
    error_log::write_report(&mut report, &observations, format_date)
        .expect("writing to a string does not fail");
    let path = error_file(dir, SystemEpochClock.time_ms());
    fs::write(&path, report)
        .map_err(|error| StartError::io(&error, "failed to save existing errors to", &path))?;
    console::warn(format_args!(
        "WARNING: Existing errors saved to: {}",
        path.display()
    ));
    Ok(())
}

/// Returns `<dir>-<date>-error.log`, a path beside the directory.
fn error_file(dir: &Path, now_ms: i64) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(format!(
        "-{}-error.log",
        format_date(now_ms).replace(':', "-")
    ));
    name.into()
}
