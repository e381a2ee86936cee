//! Loss report: the lost bytes of each image, with times and source (`docs/spec/01-memory-layouts.md`, section 9).
//!
//! The driver's conductor writes the report; any process can read it. The first reported gap of an image creates an
//! entry, and later gaps update it.

use aeron_layout::reports::{LOSS_ENTRY_ALIGNMENT as ENTRY_ALIGNMENT, LossEntryLayout};
use aeron_layout::{I32, I64, offset};

use crate::words::{Words, align};

const OBSERVATION_COUNT_OFFSET: usize = offset!(LossEntryLayout, observation_count: I64);
const TOTAL_BYTES_LOST_OFFSET: usize = offset!(LossEntryLayout, total_bytes_lost: I64);
const FIRST_OBSERVATION_OFFSET: usize = offset!(LossEntryLayout, first_observation_ms: I64);
const LAST_OBSERVATION_OFFSET: usize = offset!(LossEntryLayout, last_observation_ms: I64);
const SESSION_ID_OFFSET: usize = offset!(LossEntryLayout, session_id: I32);
const STREAM_ID_OFFSET: usize = offset!(LossEntryLayout, stream_id: I32);
const CHANNEL_OFFSET: usize = LossEntryLayout::LENGTH;

const TEXT_ALIGNMENT: usize = 4;
const LENGTH_OF_LENGTH: usize = size_of::<I32>();

/// The only writer of the report: the driver's conductor.
#[derive(Debug)]
pub struct LossReport<W> {
    words: W,
    next_offset: usize,
}

/// The entry of one image, in which later gaps of the image are counted.
#[derive(Clone, Debug)]
pub struct LossEntry<W> {
    words: W,
}

/// The report has no room for another image; existing entries are still updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("loss report of {length} bytes is full: an entry of {needed} bytes does not fit")]
pub struct LossReportFull {
    /// Length of the report in bytes.
    pub length: usize,
    /// Length of the refused entry in bytes.
    pub needed: usize,
}

/// Identity of an image that lost data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossSource {
    /// Session id of the stream.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// URI of the subscription's channel.
    pub channel: String,
    /// Address of the sender, `ip:port`.
    pub source: String,
}

/// An entry of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossObservation {
    /// Number of reported gaps.
    pub observation_count: i64,
    /// Number of bytes in all reported gaps.
    pub total_bytes_lost: i64,
    /// Time of the first reported gap, in epoch milliseconds.
    pub first_observation_ms: i64,
    /// Time of the last reported gap, in epoch milliseconds.
    pub last_observation_ms: i64,
    /// Identity of the image.
    pub image: LossSource,
}

impl<W: Words> LossReport<W> {
    /// Creates a report in `words`, which must be zero.
    pub fn new(words: W) -> Self {
        Self {
            words,
            next_offset: 0,
        }
    }

    /// Adds the entry of `image` with its first gap of `bytes_lost` bytes, reported at `epoch_ms`.
    pub fn create_entry(
        &mut self,
        image: &LossSource,
        bytes_lost: i64,
        epoch_ms: i64,
    ) -> Result<LossEntry<W>, LossReportFull> {
        let needed = CHANNEL_OFFSET
            + align(LENGTH_OF_LENGTH + image.channel.len(), TEXT_ALIGNMENT)
            + LENGTH_OF_LENGTH
            + image.source.len();
        if needed > self.words.len().saturating_sub(self.next_offset) {
            let length = self.words.len();
            return Err(LossReportFull { length, needed });
        }
        debug_assert!(
            bytes_lost > 0,
            "an image without a gap needs no entry: {bytes_lost} bytes lost"
        );
        let words = self.words.slice(self.next_offset, needed);
        self.next_offset += align(needed, ENTRY_ALIGNMENT);
        words.store_i64_relaxed(TOTAL_BYTES_LOST_OFFSET, bytes_lost);
        words.store_i64_relaxed(FIRST_OBSERVATION_OFFSET, epoch_ms);
        words.store_i64_relaxed(LAST_OBSERVATION_OFFSET, epoch_ms);
        words.store_i32_relaxed(SESSION_ID_OFFSET, image.session_id);
        words.store_i32_relaxed(STREAM_ID_OFFSET, image.stream_id);
        let end = write_text(&words, CHANNEL_OFFSET, &image.channel);
        write_text(&words, align(end, TEXT_ALIGNMENT), &image.source);
        // Stored last: readers stop at an entry without observations, so they see only whole entries.
        words.store_i64_release(OBSERVATION_COUNT_OFFSET, 1);
        Ok(LossEntry { words })
    }
}

impl<W: Words> LossEntry<W> {
    /// Counts another gap of `bytes_lost` bytes, reported at `epoch_ms`.
    pub fn record(&self, bytes_lost: i64, epoch_ms: i64) {
        debug_assert!(
            bytes_lost > 0,
            "a gap of {bytes_lost} bytes is no loss, and must not be counted"
        );
        self.words
            .store_i64_release(LAST_OBSERVATION_OFFSET, epoch_ms);
        self.words
            .fetch_add_i64(TOTAL_BYTES_LOST_OFFSET, bytes_lost);
        self.words.fetch_add_i64(OBSERVATION_COUNT_OFFSET, 1);
    }
}

/// Returns the entries of the report in `words`, oldest first.
///
/// Accepts any bytes and never reads outside `words`: reading stops at an entry whose texts would exceed the end.
pub fn read<W: Words>(words: &W) -> Vec<LossObservation> {
    let mut observations = Vec::new();
    let mut offset = 0;
    while let Some((observation, length)) = read_entry(words, offset) {
        observations.push(observation);
        offset += align(length, ENTRY_ALIGNMENT);
    }
    observations
}

/// Returns the entry at `offset` and its length.
fn read_entry<W: Words>(words: &W, offset: usize) -> Option<(LossObservation, usize)> {
    if offset + CHANNEL_OFFSET > words.len() {
        return None;
    }
    let observation_count = words.load_i64_acquire(offset + OBSERVATION_COUNT_OFFSET);
    if observation_count <= 0 {
        return None;
    }
    let (channel, end) = read_text(words, offset + CHANNEL_OFFSET)?;
    let (source, end) = read_text(words, align(end, TEXT_ALIGNMENT))?;
    let observation = LossObservation {
        observation_count,
        total_bytes_lost: words.load_i64_acquire(offset + TOTAL_BYTES_LOST_OFFSET),
        first_observation_ms: words.load_i64_relaxed(offset + FIRST_OBSERVATION_OFFSET),
        last_observation_ms: words.load_i64_acquire(offset + LAST_OBSERVATION_OFFSET),
        image: LossSource {
            session_id: words.load_i32_relaxed(offset + SESSION_ID_OFFSET),
            stream_id: words.load_i32_relaxed(offset + STREAM_ID_OFFSET),
            channel,
            source,
        },
    };
    Some((observation, end - offset))
}

/// Writes the length and bytes of `text` at `offset`. Returns the offset after the text.
fn write_text<W: Words>(words: &W, offset: usize, text: &str) -> usize {
    words.store_i32_relaxed(offset, text.len() as i32);
    words.copy_in(offset + LENGTH_OF_LENGTH, text.as_bytes());
    offset + LENGTH_OF_LENGTH + text.len()
}

/// Returns the text at `offset` and the offset after the text; `None` if the text would exceed the end of `words`.
fn read_text<W: Words>(words: &W, offset: usize) -> Option<(String, usize)> {
    let start = offset + LENGTH_OF_LENGTH;
    let room = words.len().checked_sub(start)?;
    let length = usize::try_from(words.load_i32_relaxed(offset)).ok()?;
    if length > room {
        return None;
    }
    let mut bytes = vec![0; length];
    words.copy_out(start, &mut bytes);
    Some((String::from_utf8_lossy(&bytes).into_owned(), start + length))
}
