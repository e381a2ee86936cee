//! Writes a distinct error log to a file. The log has each error text once, with the number of its
//! observations and the times of the first and the last observation.
//!
//! [`aeron_memory::error_log`] reads the same layout; this module writes it to a file that is not memory-mapped.

use std::collections::HashMap;

use aeron_layout::reports::{ERROR_ENTRY_ALIGNMENT as ENTRY_ALIGNMENT, ErrorEntryLayout};
use aeron_layout::{I32, I64, offset};
use aeron_memory::error_log::{ENTRY_HEADER_LENGTH, ErrorLogFull};

use super::{HEADER_LENGTH, MarkFileError, writing};
use crate::storage::StorageFile;

const OBSERVATION_COUNT_OFFSET: usize = offset!(ErrorEntryLayout, observation_count: I32);
const FIRST_OBSERVATION_OFFSET: usize = offset!(ErrorEntryLayout, first_observation_ms: I64);

/// The texts of the log, and the offsets of their entries.
#[derive(Debug)]
pub(super) struct ErrorLog {
    entries: HashMap<Box<str>, ErrorEntry>,
    end: usize,
    /// Bytes of the log.
    length: usize,
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
        }
    }

    /// Counts one observation of `text` in the log of `file`.
    pub(super) fn observe(
        &mut self,
        file: &impl StorageFile,
        now_ms: i64,
        text: &str,
    ) -> Result<(), MarkFileError> {
        let Some(entry) = self.entries.get_mut(text) else {
            return self.add(file, now_ms, text);
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

    fn add(
        &mut self,
        file: &impl StorageFile,
        now_ms: i64,
        text: &str,
    ) -> Result<(), MarkFileError> {
        let needed = ENTRY_HEADER_LENGTH + text.len();
        if needed > self.length.saturating_sub(self.end) {
            return Err(MarkFileError::ErrorLogFull(ErrorLogFull {
                length: self.length,
                needed,
            }));
        }
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
        self.end = (self.end + needed).next_multiple_of(ENTRY_ALIGNMENT);
        Ok(())
    }
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
