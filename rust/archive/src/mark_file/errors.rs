//! Writes a distinct error log to a file. The log has each error text once, with the number of its
//! observations and the times of the first and the last observation.
//!
//! Errors that clients cause may fill a quarter of the log. So an error of the archive's own data
//! has room after any number of requests. One entry for each [`ErrorOrigin`] counts the errors that
//! the log has no room for.
//!
//! [`aeron_memory::error_log`] reads the same layout; this module writes it to a file that is not memory-mapped.

use std::collections::HashMap;

use aeron_layout::reports::{ERROR_ENTRY_ALIGNMENT as ENTRY_ALIGNMENT, ErrorEntryLayout};
use aeron_layout::{I32, I64, offset};
use aeron_memory::error_log::{ENTRY_HEADER_LENGTH, ErrorLogFull};

use super::{HEADER_LENGTH, MarkFileError, writing};
use crate::storage::StorageFile;
use crate::text::truncated;

const OBSERVATION_COUNT_OFFSET: usize = offset!(ErrorEntryLayout, observation_count: I32);
const FIRST_OBSERVATION_OFFSET: usize = offset!(ErrorEntryLayout, first_observation_ms: I64);

/// Errors that clients cause may fill the log's length divided by this number.
const CLIENT_SHARE_DIVISOR: usize = 4;
/// Maximum length of the text of an error that a client causes, in bytes. A longer text is cut.
const MAX_CLIENT_TEXT_LENGTH: usize = 1024;

/// The cause of an error. The log reserves room for errors that no client causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorOrigin {
    /// The archive, its data, its disk or its driver.
    Archive,
    /// A message of a client.
    Client,
}

impl ErrorOrigin {
    const ALL: [Self; 2] = [Self::Archive, Self::Client];

    /// Returns the text of the entry that counts the errors without room.
    const fn without_room(self) -> &'static str {
        match self {
            Self::Archive => {
                "further errors of the archive: the error log has no room for their texts"
            }
            Self::Client => {
                "WARN - further errors that clients caused: the error log has no room for their texts"
            }
        }
    }
}

/// The texts of the log, and the offsets of their entries.
#[derive(Debug)]
pub(super) struct ErrorLog {
    entries: HashMap<Box<str>, ErrorEntry>,
    end: usize,
    /// Bytes of the log.
    length: usize,
    /// Bytes of the entries that clients caused.
    client_bytes: usize,
}

#[derive(Debug)]
struct ErrorEntry {
    /// Offset of the entry in the file.
    offset: u64,
    observation_count: i32,
}

impl ErrorLog {
    /// Creates a log of `length` bytes, without entries.
    pub(super) fn new(length: usize) -> Self {
        Self {
            entries: HashMap::new(),
            end: 0,
            length,
            client_bytes: 0,
        }
    }

    /// Counts one observation of `text` in the log of `file`.
    ///
    /// # Errors
    /// The file system returns an error. The text is new and has no room; then another entry counts
    /// the observation.
    pub(super) fn observe(
        &mut self,
        file: &impl StorageFile,
        now_ms: i64,
        origin: ErrorOrigin,
        text: &str,
    ) -> Result<(), MarkFileError> {
        let text = match origin {
            ErrorOrigin::Archive => text,
            ErrorOrigin::Client => truncated(text, MAX_CLIENT_TEXT_LENGTH),
        };
        if self.entries.contains_key(text) {
            return self.count(file, now_ms, text);
        }
        let needed = ENTRY_HEADER_LENGTH + text.len();
        if needed <= self.room_for(origin) {
            let begin = self.end;
            self.add(file, now_ms, text)?;
            if origin == ErrorOrigin::Client {
                self.client_bytes += self.end - begin;
            }
            return Ok(());
        }
        let instead = origin.without_room();
        if self.entries.contains_key(instead) {
            self.count(file, now_ms, instead)?;
        } else if ENTRY_HEADER_LENGTH + instead.len() <= self.length.saturating_sub(self.end) {
            self.add(file, now_ms, instead)?;
        }
        Err(MarkFileError::ErrorLogFull(ErrorLogFull {
            length: self.length,
            needed,
        }))
    }

    /// Returns the bytes that a new entry of this origin may have.
    fn room_for(&self, origin: ErrorOrigin) -> usize {
        // The entries that count the other errors keep their room.
        let reserved: usize = ErrorOrigin::ALL
            .into_iter()
            .map(ErrorOrigin::without_room)
            .filter(|text| !self.entries.contains_key(*text))
            .map(|text| aligned(ENTRY_HEADER_LENGTH + text.len()))
            .sum();
        let free = self.length.saturating_sub(self.end + reserved);
        match origin {
            ErrorOrigin::Archive => free,
            ErrorOrigin::Client => {
                let share = self.length / CLIENT_SHARE_DIVISOR;
                free.min(share.saturating_sub(self.client_bytes))
            }
        }
    }

    /// Counts one observation of a text that the log has.
    fn count(
        &mut self,
        file: &impl StorageFile,
        now_ms: i64,
        text: &str,
    ) -> Result<(), MarkFileError> {
        let Some(entry) = self.entries.get_mut(text) else {
            return Ok(());
        };
        let observation_count = entry.observation_count.saturating_add(1);
        let bytes = entry_bytes(observation_count, now_ms, text);
        let counted = OBSERVATION_COUNT_OFFSET..FIRST_OBSERVATION_OFFSET;
        file.write_all_at(
            &bytes[counted],
            entry.offset + OBSERVATION_COUNT_OFFSET as u64,
        )
        .map_err(writing)?;
        entry.observation_count = observation_count;
        Ok(())
    }

    /// Appends an entry, for which the log has room.
    fn add(
        &mut self,
        file: &impl StorageFile,
        now_ms: i64,
        text: &str,
    ) -> Result<(), MarkFileError> {
        let offset = (HEADER_LENGTH + self.end) as u64;
        let bytes = entry_bytes(1, now_ms, text);
        // The entry becomes valid when its length is written, so the length is written last.
        let (length, rest) = bytes.split_at(OBSERVATION_COUNT_OFFSET);
        file.write_all_at(rest, offset + OBSERVATION_COUNT_OFFSET as u64)
            .and_then(|()| file.write_all_at(length, offset))
            .map_err(writing)?;
        let entry = ErrorEntry {
            offset,
            observation_count: 1,
        };
        self.entries.insert(text.into(), entry);
        self.end = aligned(self.end + bytes.len());
        Ok(())
    }
}

const fn aligned(length: usize) -> usize {
    length.next_multiple_of(ENTRY_ALIGNMENT)
}

/// Returns an entry that was first and last seen at `now_ms`.
fn entry_bytes(observation_count: i32, now_ms: i64, text: &str) -> Vec<u8> {
    let length = ENTRY_HEADER_LENGTH + text.len();
    let header = ErrorEntryLayout {
        length: (length as i32).into(),
        observation_count: observation_count.into(),
        last_observation_ms: now_ms.into(),
        first_observation_ms: now_ms.into(),
    };
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}
