//! [`ErrorReports`]: receives the errors that the operator of the archive must see, and the archive's heartbeats.

use aeron_agent::console;
use aeron_client::Counter;

use crate::ownership::OwnedDirectory;

/// Receives errors and heartbeats of the archive.
pub trait ErrorReports: Send {
    /// Reports an error.
    fn report(&mut self, now_ms: i64, error: &str);

    /// Writes the archive's heartbeat. The conductor calls it in each duty cycle.
    fn heartbeat(&mut self, now_ms: i64);

    /// Releases the archive's directory.
    fn close(&mut self);
}

/// Writes errors to the error log of the mark file, and counts them.
pub(super) struct MarkFileReports {
    /// The directory of the archive; `None` after it was released.
    directory: Option<OwnedDirectory>,
    errors: Counter,
}

impl MarkFileReports {
    pub fn new(directory: OwnedDirectory, errors: Counter) -> Self {
        Self {
            directory: Some(directory),
            errors,
        }
    }
}

impl ErrorReports for MarkFileReports {
    fn report(&mut self, now_ms: i64, error: &str) {
        if !self.errors.is_closed() {
            self.errors.fetch_add(1);
        }
        let recorded = self
            .directory
            .as_mut()
            .map_or(Ok(()), |directory| directory.record_error(now_ms, error));
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
            .map_or(Ok(()), |directory| directory.heartbeat(now_ms));
        if let Err(failure) = beaten {
            self.report(now_ms, &failure.to_string());
        }
    }

    fn close(&mut self) {
        if let Some(directory) = self.directory.take()
            && let Err(failure) = directory.release()
        {
            console::warn(format_args!("aeron archive: {failure}"));
        }
    }
}
