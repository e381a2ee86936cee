//! [`Statistics`]: what a recorder has seen, in numbers.

use std::sync::atomic::{AtomicI64, Ordering};

/// One number, for any thread.
#[derive(Debug, Default)]
pub struct Number(AtomicI64);

impl Number {
    /// Its value.
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

/// Numbers of a recorder. Sums are over all runs of the query.
#[derive(Debug, Default)]
pub struct Statistics {
    /// Images that are recorded now.
    pub images: Number,
    /// Bytes of stream that Spark has not taken yet.
    pub backlog_bytes: Number,
    /// Complete messages that Spark has not taken yet.
    pub backlog_messages: Number,
    /// Bytes recorded and not committed.
    pub retained_bytes: Number,
    /// Time for which nothing was polled because too much is retained, in milliseconds.
    pub retention_full_ms: Number,
    /// Bytes of sessions that were missed between two recordings, as far as they are known.
    pub gap_bytes: Number,
    /// Bytes that were lost and should not have been.
    pub lost_bytes: Number,
    /// Images that came.
    pub joined: Number,
    /// Images that went.
    pub ended: Number,
    /// Messages and records that workers dropped of batches that are finished.
    pub malformed: Number,
    /// Ranges of sessions that were missed, and nobody knows how long they are.
    pub unknown_gaps: Number,
}

/// Names of the numbers, in the order in which they are shown.
pub const STATISTICS: [&str; 11] = [
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
];

/// The first of [`STATISTICS`] describe the present. The others are sums, and go on when the query is restarted.
const PRESENT_NUMBERS: usize = 4;

impl Statistics {
    /// The numbers, in the order of [`STATISTICS`].
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
        ]
    }

    /// The sums, by name.
    pub(super) fn sums(&self) -> impl Iterator<Item = (&'static str, &Number)> {
        let named = STATISTICS.into_iter().zip(self.all());
        named.skip(PRESENT_NUMBERS)
    }
}
