//! [`ErrorReports`]: where errors go that no client is told of.

use std::fs::File;

use aeron_agent::console;
use aeron_client::Counter;

use crate::mark_file::MarkFile;
use crate::ownership::{LockFile, OwnedDirectory};

/// Takes errors of the archive.
pub trait ErrorReports: Send {
    /// Notes an error.
    fn report(&mut self, now_ms: i64, error: &str);

    /// Shows that the archive works; called in each duty cycle.
    fn heartbeat(&mut self, now_ms: i64);

    /// Gives the archive's directory up.
    fn close(&mut self);
}

/// Errors go to the error log of the mark file and are counted.
pub(super) struct MarkFileReports {
    /// Mark file and lock of the directory; `None` once it is given up.
    directory: Option<(MarkFile<File>, LockFile)>,
    errors: Counter,
}

impl MarkFileReports {
    pub fn new(directory: OwnedDirectory, errors: Counter) -> Self {
        Self {
            directory: Some(directory.into_parts()),
            errors,
        }
    }
}

impl ErrorReports for MarkFileReports {
    fn report(&mut self, now_ms: i64, error: &str) {
        if !self.errors.is_closed() {
            self.errors.fetch_add(1);
        }
        let recorded = self.directory.as_mut().map_or(Ok(()), |(mark_file, _)| {
            mark_file.record_error(now_ms, error)
        });
        if let Err(failure) = recorded {
            console::warn(format_args!(
                "aeron archive: {error} (not in the error log: {failure})"
            ));
        }
    }

    fn heartbeat(&mut self, now_ms: i64) {
        let beaten = self
            .directory
            .as_mut()
            .map_or(Ok(()), |(mark_file, _)| mark_file.heartbeat(now_ms));
        if let Err(failure) = beaten {
            self.report(now_ms, &failure.to_string());
        }
    }

    fn close(&mut self) {
        // The lock is freed after the mark file says that the archive has ended.
        if let Some((mark_file, _lock)) = self.directory.take()
            && let Err(failure) = mark_file.close()
        {
            console::warn(format_args!("aeron archive: {failure}"));
        }
    }
}
