//! [`Statistics`]: the counts of a recorder.

use std::sync::atomic::{AtomicI64, Ordering};

/// A number that any thread may read and write.
#[derive(Debug, Default)]
pub struct Number(AtomicI64);

impl Number {
    /// Returns the value.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, value: i64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }
}

/// Statistics of a recorder. Sums cover all runs of the query.
#[derive(Debug, Default)]
pub struct Statistics {
    /// Images that are being recorded.
    pub images: Number,
    /// Stream bytes that Spark has not taken yet.
    pub backlog_bytes: Number,
    /// Complete messages that Spark has not taken yet.
    pub backlog_messages: Number,
    /// Bytes recorded and not committed.
    pub retained_bytes: Number,
    /// Time in milliseconds during which the recorder polled no image, because the retained bytes were at their limit.
    pub retention_full_ms: Number,
    /// Bytes that were missed between two recordings of a session. Includes only gaps of known length.
    pub gap_bytes: Number,
    /// Bytes that were recorded and then lost.
    pub lost_bytes: Number,
    /// Images that became available.
    pub joined: Number,
    /// Images that became unavailable.
    pub ended: Number,
    /// Malformed messages and records that workers found, in finished batches.
    pub malformed: Number,
    /// Number of gaps of unknown length.
    pub unknown_gaps: Number,
    /// Messages of other templates and schemas that workers skipped, in finished batches.
    pub skipped: Number,
    /// Values of enums that the schema does not know, in finished batches.
    pub unknown_enums: Number,
}

/// Names of the numbers, in the order in which they are shown.
pub const STATISTICS: [&str; 13] = [
    "images",
    "backlogBytes",
    "backlogMessages",
    "retainedBytes",
    "retentionFullMs",
    "gapBytes",
    "lostBytes",
    "joined",
    "ended",
    "malformed",
    "unknownGaps",
    "skipped",
    "unknownEnums",
];

/// Number of statistics at the start of [`STATISTICS`] that describe the current state. The others are sums and
/// continue after a restart.
const PRESENT_NUMBERS: usize = 4;

impl Statistics {
    /// Returns the numbers in the order of [`STATISTICS`].
    pub fn all(&self) -> [&Number; STATISTICS.len()] {
        [
            &self.images,
            &self.backlog_bytes,
            &self.backlog_messages,
            &self.retained_bytes,
            &self.retention_full_ms,
            &self.gap_bytes,
            &self.lost_bytes,
            &self.joined,
            &self.ended,
            &self.malformed,
            &self.unknown_gaps,
            &self.skipped,
            &self.unknown_enums,
        ]
    }

    /// Returns the sums with their names.
    pub(super) fn sums(&self) -> impl Iterator<Item = (&'static str, &Number)> {
        let named = STATISTICS.into_iter().zip(self.all());
        named.skip(PRESENT_NUMBERS)
    }
}
