//! [`RetentionLog`]: a text file in the archive's directory. It has a line for each deletion of
//! data and each removal of a reader by retention.

use std::fmt::Display;
use std::io;

use jiff::Timestamp;

use crate::extensions::NamedReader;
use crate::retention::{ReaderExpiry, RetentionOutcome};
use crate::storage::{Access, Storage, StorageFile};

/// Name of the file.
const LOG_FILE_NAME: &str = "archive-retention.log";
/// Name of the previous file.
const OLD_LOG_FILE_NAME: &str = "archive-retention.old.log";
/// If the file has at least this length in bytes, it is renamed before the next line is written.
const MAX_LENGTH: u64 = 1024 * 1024;

/// Writes a line for each deletion and each removal of a reader by retention. If a line cannot be written, the archive
/// continues.
pub(in crate::server) struct RetentionLog<S> {
    storage: S,
}

impl<S: Storage> RetentionLog<S> {
    /// Creates the log of a directory. The file is created with the first line.
    pub fn new(storage: S) -> Self {
        Self { storage }
    }

    /// Writes the line of a deletion.
    pub fn on_freed(&self, now_ms: i64, outcome: &RetentionOutcome, bytes: i64) {
        let RetentionOutcome {
            recording_id,
            start_position,
            new_start_position,
            ..
        } = outcome;
        let whole = match outcome.is_purge {
            true => ", the whole recording",
            false => "",
        };
        self.note(
            now_ms,
            format_args!(
                "recording {recording_id}: freed {bytes} bytes, positions {start_position} to {new_start_position}{whole}"
            ),
        );
    }

    /// Writes the line of an expired reader that was removed.
    pub fn on_expired(&self, now_ms: i64, reader: &NamedReader, expiry: &ReaderExpiry) {
        let NamedReader {
            recording_id,
            name,
            position,
            ..
        } = reader;
        self.note(
            now_ms,
            format_args!(
                "recording {recording_id}: reader {name:?} at position {position} expired: {expiry}"
            ),
        );
    }

    /// Writes the line of data that would be deleted if the clock was trusted.
    pub fn on_doubted(&self, now_ms: i64, outcome: &RetentionOutcome) {
        let RetentionOutcome {
            recording_id,
            new_start_position,
            allowed_position,
            ..
        } = outcome;
        self.note(
            now_ms,
            format_args!(
                "recording {recording_id}: the clock is not trusted; by this clock, positions {new_start_position} to {allowed_position} are too old"
            ),
        );
    }

    /// Writes a line about the clock.
    pub fn on_clock(&self, now_ms: i64, text: impl Display) {
        self.note(now_ms, text);
    }

    fn note(&self, now_ms: i64, text: impl Display) {
        let time = Timestamp::from_millisecond(now_ms).unwrap_or_default();
        // An error is ignored. Otherwise a full disk would stop retention, which frees space.
        let _ = self.append(format!("{time:.3} {text}\n").as_bytes());
    }

    fn append(&self, line: &[u8]) -> io::Result<()> {
        let file = match self.storage.open(LOG_FILE_NAME, Access::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.storage.create(LOG_FILE_NAME, 0)?
            }
            opened => opened?,
        };
        let length = file.length()?;
        if length < MAX_LENGTH {
            return file.write_all_at(line, length);
        }
        self.storage.rename(LOG_FILE_NAME, OLD_LOG_FILE_NAME)?;
        self.storage.create(LOG_FILE_NAME, 0)?.write_all_at(line, 0)
    }
}
