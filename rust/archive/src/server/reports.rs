//! [`ErrorReports`]: receives the errors that the operator of the archive must see, and the archive's heartbeats.

use std::collections::HashSet;

use aeron_agent::console;
use aeron_agent::logging::is_installed;
use aeron_client::Counter;

use crate::ownership::{OwnedDirectory, OwnershipError};

/// Maximum number of different errors that an archive writes to the standard error output. It is one number for errors
/// of the archive, and the same number again for errors that clients cause.
const MAX_PRINTED: usize = 100;

/// Name of the archive's logger.
const TARGET: &str = "aeron.archive";

/// Receives errors and heartbeats of the archive.
pub trait ErrorReports: Send {
    /// Reports an error of the archive or its data.
    fn report(&mut self, now_ms: i64, error: &str);

    /// Reports a panic. `evidence` has the text of the error and the backtrace, for the error log.
    fn report_evidence(&mut self, now_ms: i64, error: &str, evidence: &str) {
        let _ = evidence;
        self.report(now_ms, error);
    }

    /// Reports an error that a client has caused. Any number of such errors leaves room for the errors of the archive.
    fn report_client(&mut self, now_ms: i64, error: &str);

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
    printed: PrintedErrors,
    printed_of_clients: PrintedErrors,
}

impl MarkFileReports {
    pub fn new(directory: OwnedDirectory, errors: Counter) -> Self {
        Self {
            directory: Some(directory),
            errors,
            printed: PrintedErrors::default(),
            printed_of_clients: PrintedErrors::default(),
        }
    }

    fn count(&self) {
        if !self.errors.is_closed() {
            self.errors.fetch_add(1);
        }
    }
}

impl ErrorReports for MarkFileReports {
    fn report(&mut self, now_ms: i64, error: &str) {
        self.report_evidence(now_ms, error, error);
    }

    fn report_evidence(&mut self, now_ms: i64, error: &str, evidence: &str) {
        self.count();
        log::error!(target: TARGET, "{error}");
        let directory = self.directory.as_mut();
        if let Some(Err(failure)) = directory.map(|owned| owned.record_error(now_ms, evidence)) {
            self.printed.print(error, &failure);
        }
    }

    fn report_client(&mut self, now_ms: i64, error: &str) {
        self.count();
        log::info!(target: TARGET, "{error}");
        let directory = self.directory.as_mut();
        if let Some(Err(failure)) = directory.map(|owned| owned.record_client_error(now_ms, error))
        {
            self.printed_of_clients.print(error, &failure);
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

/// The errors that were written to the standard error output, because the error log has no room or cannot be written.
#[derive(Debug, Default)]
struct PrintedErrors {
    texts: HashSet<Box<str>>,
}

impl PrintedErrors {
    /// Prints an error that no logger has taken.
    fn print(&mut self, error: &str, failure: &OwnershipError) {
        if is_installed() {
            return;
        }
        if let Some(line) = self.line(error, failure) {
            console::warn(line);
        }
    }

    /// Returns the line for an error; `None` if the error was printed before, or if too many errors were printed.
    fn line(&mut self, error: &str, failure: &OwnershipError) -> Option<String> {
        if self.texts.len() > MAX_PRINTED || self.texts.contains(error) {
            return None;
        }
        self.texts.insert(error.into());
        Some(match self.texts.len() > MAX_PRINTED {
            true => format!(
                "aeron archive: more than {MAX_PRINTED} different errors are not in the error log ({failure}): the \
                 archive only counts further errors"
            ),
            false => format!("aeron archive: {error} (not in the error log: {failure})"),
        })
    }
}

#[cfg(test)]
mod tests {
    use aeron_memory::error_log::ErrorLogFull;

    use super::*;
    use crate::mark_file::MarkFileError;

    #[test]
    fn each_error_is_printed_once_and_a_flood_of_errors_ends_with_one_line() {
        let full = ErrorLogFull {
            length: 64,
            needed: 65,
        };
        let failure = OwnershipError::from(MarkFileError::from(full));
        let mut printed = PrintedErrors::default();
        let lines: Vec<_> = (0..3 * MAX_PRINTED)
            .filter_map(|at| printed.line(&format!("error {}", at / 2), &failure))
            .collect();
        assert_eq!(lines.len(), MAX_PRINTED + 1);
        assert!(lines[0].starts_with("aeron archive: error 0 (not in the error log: "));
        let last = &lines[MAX_PRINTED];
        assert!(last.contains("more than 100 different errors"), "{last}");
    }
}
