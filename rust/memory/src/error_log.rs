//! Distinct error log: each error text once, with the number and times of its observations
//! (`docs/spec/01-memory-layouts.md`, section 8).
//!
//! The CnC file and the archive's mark files contain this layout. One process writes, any process reads. Entries are
//! never removed. A reader of a new entry may still see no observation (count 0, last time 0).

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::{Mutex, PoisonError};

use aeron_layout::reports::{ERROR_ENTRY_ALIGNMENT as ENTRY_ALIGNMENT, ErrorEntryLayout};
use aeron_layout::{I32, I64, offset};

use crate::words::{Words, align};

/// Length of the header before the text of an entry, in bytes.
pub const ENTRY_HEADER_LENGTH: usize = ErrorEntryLayout::LENGTH;

const LENGTH_OFFSET: usize = offset!(ErrorEntryLayout, length: I32);
const OBSERVATION_COUNT_OFFSET: usize = offset!(ErrorEntryLayout, observation_count: I32);
const LAST_OBSERVATION_OFFSET: usize = offset!(ErrorEntryLayout, last_observation_ms: I64);
const FIRST_OBSERVATION_OFFSET: usize = offset!(ErrorEntryLayout, first_observation_ms: I64);

/// The writer of the log. Threads of one process may share it: a lock serialises them, so recording an error may wait
/// for another thread.
#[derive(Debug)]
pub struct DistinctErrorLog<W> {
    words: W,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    offset_of: HashMap<Box<str>, usize>,
    next_offset: usize,
}

/// The log has no room for a new text. Observations of known texts are still counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error log of {length} bytes is full: an entry of {needed} bytes does not fit")]
pub struct ErrorLogFull {
    /// Length of the log in bytes.
    pub length: usize,
    /// Length of the refused entry in bytes.
    pub needed: usize,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorObservation {
    /// Number of observations.
    pub observation_count: i32,
    /// Time of the first observation, in epoch milliseconds.
    pub first_observation_ms: i64,
    /// Time of the last observation, in epoch milliseconds.
    pub last_observation_ms: i64,
    /// The text; bytes that are not UTF-8 are replaced.
    pub text: String,
}

impl<W: Words> DistinctErrorLog<W> {
    /// Creates a log in `words`, which must be zero.
    pub fn new(words: W) -> Self {
        Self {
            words,
            entries: Mutex::default(),
        }
    }

    /// Counts one observation of `text` at `epoch_ms`. The first observation of a text adds an entry.
    pub fn record(&self, epoch_ms: i64, text: &str) -> Result<(), ErrorLogFull> {
        let offset = self.find_or_add(epoch_ms, text)?;
        self.words
            .fetch_add_i32(offset + OBSERVATION_COUNT_OFFSET, 1);
        self.words
            .store_i64_release(offset + LAST_OBSERVATION_OFFSET, epoch_ms);
        Ok(())
    }

    fn find_or_add(&self, epoch_ms: i64, text: &str) -> Result<usize, ErrorLogFull> {
        // If a thread panicked while it held the lock, all entries are still complete: the length is published last.
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&offset) = entries.offset_of.get(text) {
            return Ok(offset);
        }
        let offset = entries.next_offset;
        let needed = ENTRY_HEADER_LENGTH + text.len();
        if needed > self.words.len().saturating_sub(offset) || i32::try_from(needed).is_err() {
            let length = self.words.len();
            return Err(ErrorLogFull { length, needed });
        }
        debug_assert!(
            offset.is_multiple_of(ENTRY_ALIGNMENT),
            "readers would not find an entry at the offset {offset}"
        );
        self.words
            .copy_in(offset + ENTRY_HEADER_LENGTH, text.as_bytes());
        self.words
            .store_i64_relaxed(offset + FIRST_OBSERVATION_OFFSET, epoch_ms);
        entries.next_offset = offset + align(needed, ENTRY_ALIGNMENT);
        entries.offset_of.insert(text.into(), offset);
        self.words
            .store_i32_release(offset + LENGTH_OFFSET, needed as i32);
        Ok(offset)
    }
}

/// Whether the log in `words` has an entry.
pub fn has_errors<W: Words>(words: &W) -> bool {
    words.len() >= ENTRY_HEADER_LENGTH && words.load_i32_acquire(LENGTH_OFFSET) != 0
}

/// Returns the entries of the log in `words` that were last seen at `since_ms` (epoch milliseconds) or later, oldest
/// entry first.
///
/// Accepts any bytes and never reads outside `words`. An entry that would exceed the end is truncated, and a length
/// below [`ENTRY_HEADER_LENGTH`] ends the log.
pub fn read<W: Words>(words: &W, since_ms: i64) -> Vec<ErrorObservation> {
    let mut observations = Vec::new();
    let mut offset = 0;
    while words.len().saturating_sub(offset) >= ENTRY_HEADER_LENGTH {
        let length = words.load_i32_acquire(offset + LENGTH_OFFSET).max(0) as usize;
        if length < ENTRY_HEADER_LENGTH {
            break;
        }
        let observation = read_entry(words, offset, length.min(words.len() - offset));
        if observation.last_observation_ms >= since_ms {
            observations.push(observation);
        }
        offset += align(length, ENTRY_ALIGNMENT);
    }
    observations
}

fn read_entry<W: Words>(words: &W, offset: usize, length: usize) -> ErrorObservation {
    let last_observation_ms = words.load_i64_acquire(offset + LAST_OBSERVATION_OFFSET);
    let mut text = vec![0; length - ENTRY_HEADER_LENGTH];
    words.copy_out(offset + ENTRY_HEADER_LENGTH, &mut text);
    ErrorObservation {
        observation_count: words.load_i32_relaxed(offset + OBSERVATION_COUNT_OFFSET),
        first_observation_ms: words.load_i64_relaxed(offset + FIRST_OBSERVATION_OFFSET),
        last_observation_ms,
        text: String::from_utf8_lossy(&text).into_owned(),
    }
}

/// Writes `observations` as the text in which a restarted driver saves the errors of the previous driver; `time`
/// formats epoch milliseconds.
pub fn write_report(
    out: &mut impl Write,
    observations: &[ErrorObservation],
    time: impl Fn(i64) -> String,
) -> fmt::Result {
    for observation in observations {
        writeln!(
            out,
            "***\n{} observations from {} to {} for:\n {}",
            observation.observation_count,
            time(observation.first_observation_ms),
            time(observation.last_observation_ms),
            observation.text,
        )?;
    }
    writeln!(out, "\n{} distinct errors observed.", observations.len())
}
